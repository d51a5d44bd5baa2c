"""Words that no kernel here may use: what Metal's compute language lacks, and what the simulator does without."""

from __future__ import annotations

import re
from dataclasses import dataclass

from search.devices.simulator.tokens import Token, following, preceding


@dataclass(frozen=True)
class Refusal:
    """A word (a pattern of whole names) and why it is refused; ``before``: only where one of these signs follows.

    ``named`` refuses the word only where a name follows, as in a declaration: else it may be somebody's own name.
    """

    word: re.Pattern[str]
    why: str
    before: frozenset[str] = frozenset()
    named: bool = False


def _refusal(pattern: str, why: str, before: str = "", *, named: bool = False) -> Refusal:
    return Refusal(re.compile(pattern), why, frozenset(before.split()), named)


REFUSALS = (
    _refusal(r"(texture(1d|2d|3d|cube)|depth(2d|cube))(_ms)?(_array)?|texture_buffer", "the simulator has no textures"),
    _refusal("sampler", "the simulator has no textures", named=True),
    _refusal(r"os_log\w*", "the simulator prints nothing: write what you want to see to an output"),
    _refusal(r"double[234]?", "Metal has no double: use float"),
    _refusal(r"(visible|intersection)_function_table|function_handle", "the simulator has no function tables"),
    _refusal("function_constant", "MLX gives a kernel no function constants: use a template parameter"),
    _refusal(r"raytracing|acceleration_structure|primitive_acceleration_structure|instance_acceleration_structure|"
             r"intersection_(query|result|params)", "the simulator has no ray tracing"),
    _refusal("intersector", "the simulator has no ray tracing", "<"),
    _refusal(r"mesh_grid_properties|object_data|payload_t", "the simulator has no mesh shaders"),
    _refusal("mesh", "the simulator has no mesh shaders", "<"),
    _refusal(r"vertex|fragment", "the simulator runs kernels, and no other stage", "]", named=True),
    _refusal(r"imageblock\w*|threadgroup_imageblock|raster_order_group", "the simulator has no image blocks"),
    _refusal(r"(render|compute)_(command|pipeline_state)|command_buffer", "the simulator has no indirect commands"),
    _refusal(r"cooperative_tensor|tensor_handle|tensor_inline|tensor_ops|mpp", "the simulator has no Metal 4 tensors"),
    _refusal(r"simdgroup_async_copy|simdgroup_event", "these are not part of Metal: copy with a loop"),
    _refusal(r"atomic_flag|atomic_long", "Metal has no such atomic"),
    _refusal("memory_order_(acquire|release|acq_rel|consume)",
             "orders other than relaxed need MSL 4.1: use memory_order_relaxed, and a barrier or a second kernel"),
    _refusal("std", "Metal has no std: its library is metal", ":: ;"),
    _refusal(r"new|dynamic_cast|typeid|virtual|try|catch|throw|goto|thread_local|wchar_t|char(8|16|32)_t|co_await|co_yield|co_return",
             "Metal has no such thing"),
)  # fmt: skip
"""In the order in which they are asked."""


def refusal_of(tokens: list[Token], index: int) -> str:
    """Return why the name at ``index`` is refused, or an empty text."""
    token = tokens[index]
    before, after = preceding(tokens, index), following(tokens, index)
    if before >= 0 and tokens[before].text in (".", "->"):
        return ""
    follows = tokens[after] if after < len(tokens) else None
    for refusal in REFUSALS:
        if not refusal.word.fullmatch(token.text):
            continue
        named = refusal.named and follows is not None and follows.kind == "name"
        signed = follows is not None and follows.text in refusal.before
        if named or signed or not (refusal.named or refusal.before):
            return f"'{token.text}' is refused: {refusal.why}"
    if token.text == "memory_order_seq_cst" and _called_around(tokens, index) != "atomic_thread_fence":
        return "'memory_order_seq_cst' is refused: Metal's atomic operations take memory_order_relaxed"
    if token.text == "threadgroup" and _names_atomic_float(tokens, after):
        return (
            "'threadgroup atomic_float' is refused: it has no operations before MSL 4.1: "
            "reduce with simd_sum, or loop over atomic_compare_exchange_weak_explicit on an atomic_uint"
        )
    if token.text == "delete" and not (before >= 0 and tokens[before].text == "="):
        return "'delete' is refused: Metal has no such thing"
    return ""


def _called_around(tokens: list[Token], index: int) -> str:
    """Return the name before the innermost parenthesis that is open at ``index``, or an empty text."""
    closed = 0
    for at in range(index - 1, -1, -1):
        closed += (tokens[at].text == ")") - (tokens[at].text == "(")
        if closed < 0:
            before = preceding(tokens, at)
            return tokens[before].text if before >= 0 else ""
    return ""


def _names_atomic_float(tokens: list[Token], index: int) -> bool:
    """Return whether the type that begins at ``index`` is an atomic float."""
    words = [token.text for token in tokens[index : index + 16] if not token.blank]
    while words and words[0] in ("const", "volatile", "metal", "::"):
        del words[0]
    return words[:1] == ["atomic_float"] or words[:3] == ["atomic", "<", "float"]


def function_pointer_at(tokens: list[Token], index: int) -> str:
    """Return the name of the function pointer that begins with the parenthesis at ``index``, as in ``(*name)(``."""
    words = [at for at in range(index, min(len(tokens), index + 24)) if not tokens[at].blank][:5]
    texts = [tokens[at].text for at in words]
    before = preceding(tokens, index)
    if before >= 0 and tokens[before].text in ("if", "while", "switch", "for"):
        return ""
    if len(words) == 5 and [*texts[:2], *texts[3:]] == ["(", "*", ")", "("] and tokens[words[2]].kind == "name":
        return texts[2]
    return ""
