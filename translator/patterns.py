"""Patterns of fast kernels, found by their form in the syntax tree: what an option of the search can point at.

``patterns.toml`` says what each is for. Those that one word gives away (a shuffle, an atomic) come from the primitive
table's ``pattern`` key; this module finds those that are made of several statements. Each finder says what form it
takes for the pattern.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from tree_sitter import Node

from translator.bodies import Assignment, Bodies, Body, Loop, base_name, call_name, squeeze, within
from translator.cuda_source import CudaSource
from translator.pattern_table import load_patterns
from translator.span import Span
from translator.whole_numbers import whole_number

PATTERNS = {pattern.name: pattern.says for pattern in load_patterns()}

METAL_THREADGROUP_BYTES = 32 << 10
LARGEST_PAD = 8
"""Elements of padding that count as such; more is a halo or another array."""

_HALVING = re.compile(r">>=1$|/=2$|=\w+>>1$|=\w+/2$|<<=1$|\*=2$")
_TOGGLE = re.compile(r"\^=?\(?1\)?$|^\(?1-\w+\)?$|^!\w+$|&1\)?$|%(2|\w*[sS]tages?|\w*STAGES?)\)?$")
_DOUBLING = re.compile(r"<<=1$|\*=2$|=\w+<<1$|=\w+\*2$|=2\*\w+$")
_BLOCK = re.compile(r"blockIdx\.[xyz]")
_FAST_INDEX = re.compile(r"threadIdx\.x(%.*)?")
_SMALLER = re.compile(r"(?:\w+::)?u?min\(")
_SIZEOF = re.compile(r"sizeof\((\w+)\)")
_EXPONENTIAL = re.compile(r"exp|ex2", re.IGNORECASE)
_MAXIMUM = re.compile(r"max", re.IGNORECASE)
_ELEMENT_BYTES = {
    "double": 8, "long long": 8, "float4": 16, "int4": 16, "uint4": 16, "float2": 8, "float": 4, "int": 4,
    "unsigned": 4, "unsigned int": 4, "uint32_t": 4, "int32_t": 4, "half2": 4, "half": 2, "bfloat16": 2,
    "nv_bfloat16": 2, "short": 2, "uint8_t": 1, "int8_t": 1, "char": 1, "unsigned char": 1,
}  # fmt: skip
_PAD = re.compile(rf"(?:^|[\w)\]])\+([1-{LARGEST_PAD}])(?![\w.])")
_TREE_SHUFFLES = ("__shfl_xor_sync", "__shfl_down_sync", "__shfl_xor", "__shfl_down")
_UP_SHUFFLES = ("__shfl_up_sync", "__shfl_up")
_LOADS = ("__ldg", "__ldcs", "__ldcg")
_ASYNC_COPIES = ("__pipeline_memcpy_async", "memcpy_async")


def find_forms(source: CudaSource, bodies: Bodies) -> dict[str, Span]:
    """Return where each pattern made of several statements shows first."""
    finders: dict[str, Callable[[CudaSource, Bodies], Iterator[Span]]] = {
        "warp_reduce": _warp_reduces,
        "block_reduce": _block_reduces,
        "shared_tile": _shared_tiles,
        "padded_tile": _padded_tiles,
        "double_buffer": _double_buffers,
        "grid_stride": _grid_strides,
        "online_softmax": _online_softmaxes,
        "small_tiles": _small_tiles,
        "scan_ladder": _scan_ladders,
        "split_reduction": _split_reductions,
    }
    found = {pattern: min(finder(source, bodies), key=lambda span: span.start, default=None)
             for pattern, finder in finders.items()}  # fmt: skip
    return {pattern: span for pattern, span in found.items() if span is not None}


def _in_loop(loops: list[Loop], span: Span) -> list[Loop]:
    return [loop for loop in loops if loop.span.holds(span)]


def _warp_reduces(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A shuffle by xor or down in a loop that halves or doubles its distance, or three of them in one function."""
    for body in bodies.bodies:
        yield from _body_warp_reduces(body)


def _body_warp_reduces(body: Body) -> Iterator[Span]:
    shuffles = [call for call in body.calls if call.name in _TREE_SHUFFLES]
    halving = [loop for loop in body.loops if _HALVING.search(loop.step)]
    for number, call in enumerate(shuffles, 1):
        if number >= 3 or _in_loop(halving, call.span):
            yield shuffles[0].span if number >= 3 else call.span
            return


def _block_reduces(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A halving loop with a barrier in it, or a warp's reduction stored to a slot that is read after a barrier."""
    reducing = _reducing_functions(bodies)
    for body in bodies.bodies:
        for loop in body.loops:
            if loop.step_span is not None and _HALVING.search(loop.step):
                yield from (loop.step_span for call in body.barriers if loop.span.holds(call.span))
        slots = {declaration.name for declaration in body.shared if len(declaration.extents) == 1}
        reduced_at = next(iter([*_body_warp_reduces(body), *(c.span for c in body.calls if c.name in reducing)]), None)
        last_barrier = max((call.span.start for call in body.barriers), default=-1)
        for store in body.assignments:
            if (
                reduced_at is not None
                and reduced_at.start < store.span.start < last_barrier
                and store.target_node.type == "subscript_expression"
                and base_name(source, store.target_node) in slots
                and not _reads_memory(source, store, set())
            ):
                yield store.span


def _reducing_functions(bodies: Bodies) -> set[str]:
    """Return the names of the functions that reduce over a warp, by themselves or by what they call."""
    names = {body.function.name for body in bodies.bodies if any(_body_warp_reduces(body))}
    while (
        more := {body.function.name for body in bodies.bodies if any(call.name in names for call in body.calls)} - names
    ):
        names |= more
    return names


def _names(source: CudaSource, node: Node) -> set[str]:
    return {source.text_of(inner) for inner in within(node, "identifier")}


def _shared_names(source: CudaSource, body: Body) -> set[str]:
    """Return the shared arrays of a body, and the pointers that are set from them."""
    names = {declaration.name for declaration in body.shared}
    for assignment in body.assignments:
        if assignment.target.isidentifier() and assignment.operator == "=":
            declares_pointer = source.text.startswith("*", assignment.span.start)
            if declares_pointer and base_name(source, assignment.value_node) in names:
                names.add(assignment.target)
    return names


def _reads_memory(source: CudaSource, assignment: Assignment, shared: set[str]) -> bool:
    """Whether a value has an array access, a dereference or a cached load that doesn't start from shared memory."""
    for node in within(assignment.value_node, "subscript_expression", "pointer_expression", "call_expression"):
        if node.type == "call_expression" and call_name(source, node) not in _LOADS:
            continue
        if node.type == "pointer_expression" and not source.text_of(node).startswith("*"):
            continue
        accessed = node.child_by_field_name("arguments") if node.type == "call_expression" else node
        if accessed is not None and base_name(source, accessed) not in shared | {""}:
            return True
    return False


def _shared_tiles(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A store into shared memory of what was read from elsewhere, or an asynchronous copy, in a body with a barrier.

    The value counts as read when it is an access itself or names a variable that was last set to one.
    """
    for body in bodies.bodies:
        yield from (call.span for call in body.calls if call.name in _ASYNC_COPIES)
        shared = _shared_names(source, body)
        if not shared or not body.barriers:
            continue
        loaded: set[str] = set()
        for assignment in body.assignments:
            reads = assignment.operator == "=" and _reads_memory(source, assignment, shared)
            if assignment.target_node.type not in ("subscript_expression", "pointer_expression"):
                (loaded.add if reads else loaded.discard)(assignment.target)
            elif (reads or _names(source, assignment.value_node) & loaded) and (
                _names(source, assignment.target_node) & shared
            ):
                yield assignment.span


def _padded_tiles(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A shared array whose rows are a few elements longer than they need, or a store that transposes."""
    for declaration in source.declarations:
        if declaration.space == "shared" and declaration.extents:
            last = squeeze(declaration.extents[-1])
            if _is_padded(bodies.constants.get(last, last), flat=len(declaration.extents) == 1):
                yield declaration.span
    for body in bodies.bodies:
        tiles = {declaration.name for declaration in body.shared if len(declaration.extents) == 2}
        stores = [a for a in body.assignments if tiles and base_name(source, a.target_node) in tiles]
        fast = {a.target for a in body.assignments if stores and a.operator == "=" and _FAST_INDEX.fullmatch(a.value)}
        fast.add("threadIdx.x")
        for store in stores:
            indices = _indices(source, store)
            if len(indices) == 2 and indices[0] in fast and indices[1] not in fast:
                yield store.span


def _is_padded(extent: str, *, flat: bool) -> bool:
    """Whether an extent reads like ``D + 1``, or in a flat array like ``ROWS * (D + 1)``."""
    return any(
        not flat or re.search(r"\*\([^()]*$|^\([^()]*$", extent[: pad.start(1)]) for pad in _PAD.finditer(extent)
    )


def _indices(source: CudaSource, store: Assignment) -> list[str]:
    """Return the indices of a store into an array, outermost first."""
    indices: list[str] = []
    node = store.target_node
    while node.type == "subscript_expression":
        index, inner = node.child_by_field_name("indices"), node.child_by_field_name("argument")
        if index is None or inner is None:
            break
        indices.insert(0, squeeze(source.text_of(index))[1:-1])
        node = inner
    return indices


def _double_buffers(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A shared array of 2 to 4 parts whose first index toggles, in place or by a variable that does so in a loop."""
    for body in bodies.bodies:
        parts = set()
        for declaration in body.shared:
            first = squeeze(declaration.extents[0]) if len(declaration.extents) > 1 else ""
            if bodies.constants.get(first, first) in ("2", "3", "4"):
                parts.add(declaration.name)
        indices = [access for access in body.accesses if access.array in parts]
        yield from (access.span for access in indices if _TOGGLE.search(access.index))
        words = {word for access in indices for word in re.findall(r"\w+", access.index)}
        for assignment in body.assignments:
            written = assignment.value if assignment.operator == "=" else assignment.operator + assignment.value
            if assignment.target in words and _TOGGLE.search(written) and _in_loop(body.loops, assignment.span):
                yield assignment.span


def _grid_strides(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A loop whose step has ``gridDim`` in it, or a variable that was set from it."""
    for body in bodies.bodies:
        strides = {a.target for a in body.assignments if "gridDim." in a.value and a.operator == "="}
        for loop in body.loops:
            words = set(re.findall(r"\w+", loop.step))
            if loop.step_span is not None and "=" in loop.step and ("gridDim" in words or words & strides):
                yield loop.step_span


def _online_softmaxes(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """In one loop: an exponential of ``a - b``, an assignment of b to a, and a maximum taken of them.

    ``a = b`` is either the running maximum moved on (``m = m_new``) or the old one kept (``m_old = m``); either way the
    exponential is the factor by which earlier sums shrink. A softmax in two passes has no such assignment. The
    difference may have a factor: ``(a - b) * scale`` or ``a * scale - b * scale``.
    """
    for body in bodies.bodies:
        moves = defaultdict(list)
        for assignment in body.assignments:
            if assignment.operator == "=":
                moves[assignment.target, assignment.value].append(assignment.span)
        exponentials = [call for call in body.calls if _EXPONENTIAL.search(call.name)]
        for span, left, right in body.differences if exponentials else ():
            pairs = {(a, b) for a in _factors(source, left) for b in _factors(source, right)}
            for pair in pairs & moves.keys():
                holding = [call.span for call in exponentials if call.span.holds(span)]
                loops = [
                    loop.span
                    for loop in _in_loop(body.loops, span)
                    if any(loop.span.holds(move) for move in moves[pair])
                ]
                if holding and any(_takes_maximum(body, loop, pair) for loop in loops):
                    yield holding[-1]


def _factors(source: CudaSource, node: Node | None) -> list[str]:
    """Return the text of an expression without parentheses, and of the factors that it is the product of."""
    while node is not None and node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    if node is None:
        return []
    texts = [squeeze(source.text_of(node))]
    operator = node.child_by_field_name("operator")
    if node.type == "binary_expression" and operator is not None and operator.type == "*":
        texts += [squeeze(source.text_of(side)) for side in node.named_children]
    return texts


def _takes_maximum(body: Body, loop: Span, pair: tuple[str, str]) -> bool:
    chosen = any(
        a.target in pair and loop.holds(a.span) and (_MAXIMUM.search(a.value) or "?" in a.value)
        for a in body.assignments
    )
    compared = any(
        loop.holds(span) and pair[0] in condition and pair[1] in condition and re.search("[<>]", condition)
        for span, condition in body.conditions
    )
    return chosen or compared


def _small_tiles(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """Shared arrays of one kernel, or the bytes that a launch asks for, that pass what Metal gives a threadgroup."""
    for body in bodies.bodies:
        total = 0
        for declaration in body.shared:
            extents = [whole_number(extent, bodies.constants) for extent in declaration.extents]
            size = _ELEMENT_BYTES.get(declaration.type.removeprefix("__").split("::")[-1], 0)
            for extent in extents:
                size *= extent or 0
            total += size
            if total > METAL_THREADGROUP_BYTES:
                yield declaration.span
                break
    for launch in source.launches:
        asked = _SIZEOF.sub(lambda match: str(_ELEMENT_BYTES.get(match[1], match[0])), launch.shared)
        if (whole_number(asked, bodies.constants) or 0) > METAL_THREADGROUP_BYTES:
            yield launch.span


def _scan_ladders(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A shuffle up in a loop that doubles its distance, or three of them in one function."""
    for body in bodies.bodies:
        shuffles = [call for call in body.calls if call.name in _UP_SHUFFLES]
        doubling = [loop for loop in body.loops if _DOUBLING.search(loop.step)]
        for number, call in enumerate(shuffles, 1):
            if number >= 3 or _in_loop(doubling, call.span):
                yield shuffles[0].span if number >= 3 else call.span
                break


def _split_reductions(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A loop over a chunk that the block chooses, which sums up in a variable from before it.

    The chunk starts at ``blockIdx * size``. The loop goes from there to ``min(start + size, all)``, or over
    ``min(size, all - start)`` elements.
    """
    for body in bodies.bodies:
        written = [a for a in body.assignments if a.operator == "=" and a.target.isidentifier()]
        ends = [a for a in written if _SMALLER.match(a.value)]
        if not ends:
            continue
        blocks = "|".join([r"blockIdx\.[xyz]", *(re.escape(a.target) for a in written if _BLOCK.fullmatch(a.value))])
        start_of = re.compile(rf"(?:{blocks})\*|\*(?:{blocks})(?!\w)")
        starts = {a.target for a in written if start_of.search(a.value)}
        for end in ends:
            if used := starts & set(re.findall(r"\w+", end.value)):
                for loop in body.loops:
                    head = squeeze(source.text[loop.span.start : loop.span.start + 200])
                    begin = re.match(rf"for\(([^;]*);[^;]*<{re.escape(end.target)};", head)
                    from_start = begin and used & set(re.findall(r"\w+", begin[1]))
                    counted = any(f"-{start}" in end.value for start in used)
                    if begin and (from_start or counted) and _sums_up(body, loop):
                        yield end.span


def _sums_up(body: Body, loop: Loop) -> bool:
    """Whether a loop adds to a variable that it doesn't set itself."""
    inside = [a for a in body.assignments if loop.span.holds(a.span) and a.target.isidentifier()]
    own = {a.target for a in inside if a.operator == "="}
    return any(a.operator == "+=" and a.target not in own for a in inside)
