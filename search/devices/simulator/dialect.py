"""From Metal's dialect to C++ that ``headers/metal.h`` completes: what a header can't do, done on tokens.

Line by line the text stays where it was, so that a compiler's message names the kernel's own line.

- Address-space words go; ``threadgroup float tile[64];`` becomes storage that every threadgroup has of its own.
- ``1.0`` is a float in Metal, ``1.0h`` a half.
- A swizzle (``v.xz``) becomes a call, one to read and one to assign to.
- What is defined once for each address space is kept once (see overloads.py).
- Helpers that are called from several places note where (see calls.py).
- Includes of Metal's own library go; what the simulator has no meaning for is refused (see refused.py).

That the text reaches for nothing outside of a kernel was seen to before (see screening.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from search.devices.simulator.calls import NO_CALLS, Calls, note_calls
from search.devices.simulator.lasting import lasting_variable
from search.devices.simulator.overloads import drop_doubles
from search.devices.simulator.refused import function_pointer_at, refusal_of
from search.devices.simulator.tokens import Token, closing, following, join, preceding, tokenize

ERASED = frozenset({"device", "thread", "threadgroup", "kernel"})
_FLOAT = re.compile(r"(?!0[xX])(?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?(?P<suffix>[fF]|[hH]|bf|BF)?")
_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{2,4}")
_COMPONENTS = re.compile(r"[xyzw]{1,4}|[rgba]{1,4}")
_COMPONENT = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
STORAGE = "KSR_THREADGROUP"
"""What stands, in the translated text, once for each variable in threadgroup memory."""

_STORAGE = (
    f"using ksr_type_{{name}} = {{kind}}{{extents}}; {{alignment}} {STORAGE} "
    "ksr::room<ksr_type_{name}> ksr_tg_{name}; KSR_HAS_ZONE({name}) "
    'auto& {name} = ksr::threadgroup(ksr_tg_{name}, "{name}")'
)
_DECLARATION_WORDS = frozenset({"const", "volatile", "struct", "typename"})
_BUILT_IN_WORDS = frozenset({"unsigned", "signed", "short", "long", "int", "char", "float", "half", "bool"})


class DialectError(ValueError):
    """Text that is not a Metal kernel; ``line`` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class _Declaration:
    """Variables of one type: names with their extents as written, and the index of the semicolon after them."""

    kind: str
    alignment: str
    names: tuple[tuple[str, str], ...]
    end: int


def translate(text: str, *, in_kernel: bool, beside: str = "", calls: Calls = NO_CALLS) -> str:
    """Return ``text`` as C++ with the same lines.

    ``in_kernel`` says whether threadgroup storage is allowed here; ``beside`` is the kernel's other text (its header),
    whose structs may have members with names like swizzles; ``calls`` are those of both texts.
    """
    tokens = tokenize(text)
    _refuse(tokens)
    _drop_includes(tokens)
    check_brackets(tokens)
    if lasting := lasting_variable(tokens, whole=not in_kernel):
        name, line = lasting
        raise DialectError(
            f"'{name}' would keep its value: what is static, or outside of functions, must be constant in Metal", line
        )
    drop_doubles(tokens, whole=not in_kernel)
    _threadgroup_storage(tokens, in_kernel)
    _address_spaces(tokens)
    _swizzles(tokens, _members(tokens) | _members(tokenize(beside)))
    for token in tokens:
        if token.kind == "number":
            token.text = _literal(token.text)
    note_calls(tokens, calls)
    return join(tokens)


def storage_in(text: str) -> tuple[tuple[str, int], ...]:
    """Return the variables in threadgroup memory that ``text`` declares, each with its line."""
    tokens = tokenize(text)
    found: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.text == "threadgroup" and token.kind == "name" and not token.directive:
            begin = _statement_begin(tokens, index)
            declaration = _declaration(tokens, begin) if begin >= 0 else None
            found |= {name: token.line for name, _ in declaration.names} if declaration else {}
    return tuple(found.items())


def _refuse(tokens: list[Token]) -> None:
    """Refuse by name what the simulator has no meaning for."""
    for index, token in enumerate(tokens):
        if token.kind == "name" and (why := refusal_of(tokens, index)):
            raise DialectError(why, token.line)
        if token.text == "(" and (name := function_pointer_at(tokens, index)):
            raise DialectError(f"'{name}' is refused: the simulator has no pointers to functions", token.line)


def _drop_includes(tokens: list[Token]) -> None:
    for index, token in enumerate(tokens):
        if token.directive and token.text == "#":
            word = tokens[following(tokens, index)] if following(tokens, index) < len(tokens) else token
            if word.text in ("include", "include_next", "import"):
                _drop_include(tokens, index)


def check_brackets(tokens: list[Token]) -> None:
    """Refuse text that would end, or swallow, what is written around it."""
    open_ones: list[Token] = []
    for token in tokens:
        if token.directive or token.kind != "sign":
            continue
        if token.text in _PAIRS:
            open_ones.append(token)
        elif token.text in _PAIRS.values():
            if not open_ones or _PAIRS[open_ones[-1].text] != token.text:
                raise DialectError(f"'{token.text}' closes nothing", token.line)
            open_ones.pop()
    if open_ones:
        raise DialectError(f"'{open_ones[-1].text}' is never closed", open_ones[-1].line)


def _drop_include(tokens: list[Token], at: int) -> None:
    """Blank an include of Metal's own library, which is always there; refuse any other."""
    end = at
    while end < len(tokens) and tokens[end].kind != "newline":
        end += 1
    name = re.split(r"include_next|include|import", join(tokens[at:end]), maxsplit=1)[-1].strip()
    if not re.fullmatch(r"<(metal_\w+|simd/simd\.h)>.*", name, re.DOTALL):
        raise DialectError(
            f"a kernel can't include {name or 'files'}: Metal's library is there without", tokens[at].line
        )
    for token in tokens[at:end]:
        token.text = "\n" * token.text.count("\n")


def _literal(text: str) -> str:
    match = _FLOAT.fullmatch(text)
    if match is None:
        return text
    suffix = match["suffix"] or ""
    number = text.removesuffix(suffix) if suffix else text
    real = any(sign in number for sign in ".eE")
    if suffix in ("h", "H"):
        return f"half({number}{'' if real else '.0'}f)"
    if suffix in ("bf", "BF"):
        return f"bfloat({number}{'' if real else '.0'}f)"
    return f"{number}f" if real and not suffix else text


def _swizzles(tokens: list[Token], members: frozenset[str]) -> None:
    for index, token in enumerate(tokens):
        if token.kind != "name" or not _SWIZZLE.fullmatch(token.text) or token.text in members:
            continue
        before, after = preceding(tokens, index), following(tokens, index)
        if before < 0 or tokens[before].text not in (".", "->") or _of_swizzle(tokens, index, after):
            continue
        next_text = tokens[after].text if after < len(tokens) else ""
        lanes = ", ".join(str(_COMPONENT[letter]) for letter in token.text)
        token.text = f"{'ksr_set' if next_text in _ASSIGNMENTS else 'ksr_get'}(ksr::lanes<{lanes}>{{}})"


def _of_swizzle(tokens: list[Token], index: int, dot: int) -> bool:
    """Put what is taken of the swizzle at ``index``, if that is components again, in the place of both: zw.y is w."""
    at = following(tokens, dot)
    inner = tokens[at].text if at < len(tokens) and tokens[dot].text == "." else ""
    if not _COMPONENTS.fullmatch(inner) or any(_COMPONENT[letter] >= len(tokens[index].text) for letter in inner):
        return False
    tokens[at].text = "".join(tokens[index].text[_COMPONENT[letter]] for letter in inner)
    for token in tokens[index:at]:
        token.text, token.kind = "\n" * token.text.count("\n"), "space"
    return True


def _members(tokens: list[Token]) -> frozenset[str]:
    """Return the names like swizzles that structs of this text give their members."""
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token.text not in ("struct", "class", "union"):
            continue
        begin = following(tokens, index)
        if begin < len(tokens) and tokens[begin].kind == "name":
            begin = following(tokens, begin)
        if begin >= len(tokens) or tokens[begin].text != "{":
            continue
        for at in range(begin, closing(tokens, begin)):
            if _SWIZZLE.fullmatch(tokens[at].text) and tokens[preceding(tokens, at)].text not in (".", "->"):
                found.add(tokens[at].text)
    return frozenset(found)


def _address_spaces(tokens: list[Token]) -> None:
    for index, token in enumerate(tokens):
        if token.text == "coherent" and token.kind == "name":
            _drop_coherent(tokens, index)
        if token.kind != "name" or (token.text not in ERASED and token.text != "constant"):
            continue
        before = preceding(tokens, index)
        if before >= 0 and tokens[before].text in (".", "->", "::", "["):
            continue  # a member, or an attribute: [[threadgroup(0)]]
        after = following(tokens, index)
        builds = before >= 0 and tokens[before].text == ")" and after < len(tokens) and tokens[after].text == ":"
        if token.text == "constant" and not builds and not _is_const_already(tokens, index):
            token.text = "const"
        else:
            token.text = " "  # what stood around it must not become one sign


def _drop_coherent(tokens: list[Token], index: int) -> None:
    """Blank ``coherent``, or ``coherent(device)``, before an address space: memory is coherent here."""
    after = end = following(tokens, index)
    if after < len(tokens) and tokens[after].text == "(":
        end = following(tokens, closing(tokens, after))
    if end < len(tokens) and tokens[end].text in ("device", "const", "volatile"):
        for token in tokens[index:end]:
            token.text = "\n" * token.text.count("\n") or " "


def _is_const_already(tokens: list[Token], index: int) -> bool:
    """Return whether the words of the declaration around ``index`` say const or constexpr."""
    for step in (preceding, following):
        at = step(tokens, index)
        while 0 <= at < len(tokens) and tokens[at].text in ("static", "inline", "volatile", "const", "constexpr"):
            if tokens[at].text.startswith("const"):
                return True
            at = step(tokens, at)
    return False


def _threadgroup_storage(tokens: list[Token], in_kernel: bool) -> None:
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text != "threadgroup":
            continue
        begin = index if token.directive else _statement_begin(tokens, index)
        declaration = _declaration(tokens, begin) if begin >= 0 else None
        if declaration is None:
            continue
        end = declaration.end
        if token.directive or not in_kernel:
            where = "a macro" if token.directive else "the header"
            name = declaration.names[0][0]
            raise DialectError(
                f"'{name}' is declared in threadgroup memory in {where}; declare it in the kernel's body", token.line
            )
        lines = sum(piece.text.count("\n") for piece in tokens[begin:end])
        storage = "; ".join(
            _STORAGE.format(kind=declaration.kind, alignment=declaration.alignment, name=name, extents=extents)
            for name, extents in declaration.names
        )
        for piece in tokens[begin:end]:
            piece.text, piece.kind = "", "space"
        tokens[begin].text = storage + "\n" * lines


def _statement_begin(tokens: list[Token], at: int) -> int:
    """Return where the declaration that has the specifier at ``at`` begins, or -1 when it doesn't begin a statement."""
    begin = at
    while True:
        before = preceding(tokens, begin)
        if (
            before < 0
            or tokens[before].text in (";", "{", "}", ":")
            or tokens[before].directive != tokens[at].directive
        ):
            return begin
        if tokens[before].text in _DECLARATION_WORDS or tokens[before].text == "static":
            begin = before
        elif tokens[before].text == ")" and (opened := _alignas(tokens, before)) >= 0:
            begin = opened
        else:
            return -1


def _alignas(tokens: list[Token], closed: int) -> int:
    """Return where the ``alignas(...)`` that ends at ``closed`` begins, or -1 when something else ends there."""
    for index in range(closed, -1, -1):
        if tokens[index].text == "alignas":
            opened = following(tokens, index)
            return index if closing(tokens, opened) == closed else -1
        if tokens[index].text in (";", "{", "}"):
            break
    return -1


def _declaration(tokens: list[Token], at: int) -> _Declaration | None:
    """Parse the declaration that begins at ``at``.

    None when it declares a pointer, a reference or a function: then the address space is what it points to.
    """
    kind: list[str] = []
    alignment, named = "", False
    while at < len(tokens):
        token = tokens[at]
        if token.text in _DECLARATION_WORDS:
            kind.append(token.text)
        elif token.text == "alignas":
            end = closing(tokens, following(tokens, at))
            alignment, at = on_one_line(tokens[at : end + 1]), end
        elif token.text in _BUILT_IN_WORDS:
            kind.append(token.text)
            named = True
        elif token.kind == "name" and not named and token.text not in ("threadgroup", "static"):
            end = end_of_type(tokens, at)
            kind.append(on_one_line(tokens[at : end + 1]))
            named, at = True, end
        elif not token.blank and token.text not in ("threadgroup", "static"):
            break
        at += 1
    names = declarators(tokens, at, initial=True)
    return names and _Declaration(" ".join(kind), alignment, *names)


def declarators(
    tokens: list[Token], at: int, *, initial: bool = False
) -> tuple[tuple[tuple[str, str], ...], int] | None:
    """Parse ``a[N], b;`` from ``at``: names with their extents, and where the semicolon is; None if it isn't that.

    ``initial`` values are passed over: Metal's compiler takes them for threadgroup memory, and stores none.
    """
    names: list[tuple[str, str]] = []
    while at < len(tokens) and tokens[at].kind == "name":
        name, extents = tokens[at], ""
        at = following(tokens, at)
        while at < len(tokens) and tokens[at].text == "[":
            end = closing(tokens, at)
            extents += on_one_line(tokens[at : end + 1])
            at = following(tokens, end)
        names.append((name.text, extents))
        text = tokens[at].text if at < len(tokens) else ""
        while initial and at < len(tokens) and text in ("=", "{"):
            at, text = _after_initial_value(tokens, at)
        if text == ";":
            return tuple(names), at
        if text in ("=", "{"):
            raise DialectError(f"'{name.text}' is in threadgroup memory, which can't be initialized", name.line)
        if text != ",":
            return None
        at = following(tokens, at)
    return None


def _after_initial_value(tokens: list[Token], at: int) -> tuple[int, str]:
    """Return the index of the sign after the value that begins at ``at``, and that sign."""
    while at < len(tokens) and tokens[at].text not in (",", ";"):
        at = closing(tokens, at) if tokens[at].text in ("(", "[", "{") else at
        at = following(tokens, at)
    return at, tokens[at].text if at < len(tokens) else ""


def on_one_line(tokens: list[Token]) -> str:
    """Return the text of ``tokens`` with a blank for each comment and newline."""
    return "".join(" " if token.blank else token.text for token in tokens)


def end_of_type(tokens: list[Token], at: int) -> int:
    """Return the index of the last token of the (qualified, templated) type name that begins at ``at``."""
    while True:
        after = following(tokens, at)
        if after < len(tokens) and tokens[after].text == "<":
            at = closing(tokens, after)
            after = following(tokens, at)
        if after < len(tokens) and tokens[after].text == "::":
            at = following(tokens, after)
            continue
        return at
