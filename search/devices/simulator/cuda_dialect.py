"""From CUDA to C++ that ``headers/cuda.h`` completes: what a header can't do, done on tokens, every line left in place.

- ``__shared__ float tile[32][33];`` becomes storage that every block has of its own, in kernels, device functions and
  outside of both; ``extern __shared__`` becomes a pointer to the launch's dynamic shared memory.
- ``__global__`` and ``__device__`` become ``inline``: what a launch doesn't reach takes no room.
- A ``__constant__`` without a value becomes a variable that the launch fills (see cuda_unit.py).
- Includes go: what kernels use of CUDA's and C++'s headers is there without.
- Device functions that are called from several places note where (see calls.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from search.devices.simulator.calls import calls_of, note_calls
from search.devices.simulator.dialect import DialectError, check_brackets, declarators, end_of_type, on_one_line
from search.devices.simulator.tokens import Token, closing, following, join, pairs, preceding, tokenize

_STORAGE = (
    "using ksr_type_{name} = {kind}{extents}; "
    "alignas(16) {alignment} KSR_THREADGROUP ksr::room<ksr_type_{name}> ksr_tg_{name};"
)
_LOCAL = ' [[maybe_unused]] auto& {name} = ksr::threadgroup(ksr_tg_{name}, "{name}");'
_SHARED = '(ksr::threadgroup(ksr_tg_{name}, "{name}"))'
_DYNAMIC = '(ksr::dynamic_shared<{kind}>("{name}"))'
_INLINE = frozenset({"inline", "__inline__", "__inline", "__forceinline__"})
_SPECIFIERS = frozenset({"const", "volatile", "struct", "typename"})
_STORAGE_WORDS = frozenset({"__shared__", "static", "extern", "__constant__", "__device__", "inline", "constexpr"})
_BUILT_IN = frozenset({"unsigned", "signed", "short", "long", "int", "char", "float", "double", "half", "bool"})
_ALIGNMENTS = frozenset({"alignas", "__align__"})


@dataclass(frozen=True)
class Kernel:
    """A kernel: its qualified name, and how many parameters and template parameters it has."""

    name: str
    parameters: int
    template_parameters: int


@dataclass(frozen=True)
class DeviceCode:
    """Device code as C++: its kernels by name, the constants that a launch fills, and the variables that can change."""

    text: str
    kernels: dict[str, Kernel]
    constants: tuple[str, ...]
    state: tuple[str, ...]


@dataclass(frozen=True)
class _Variables:
    """Variables of one type in a memory space: names with extents, where the declaration begins and its semicolon."""

    kind: str
    alignment: str
    names: tuple[tuple[str, str], ...]
    begin: int
    end: int


def translate_cuda(text: str) -> DeviceCode:
    """Return device code as C++ with the same lines; raise `DialectError` where it can't be."""
    tokens = tokenize(text)
    _drop_includes(tokens)
    check_brackets(tokens)
    kernels = _kernels(tokens)
    _drop_linkage(tokens)
    scopes = _scopes(tokens)
    _shared_memory(tokens, scopes)
    constants = _constants(tokens)
    state = _qualifiers(tokens)
    note_calls(tokens, calls_of("", text))
    return DeviceCode(join(tokens), kernels, constants, state)


def _drop_includes(tokens: list[Token]) -> None:
    for index, token in enumerate(tokens):
        if not (token.directive and token.text == "#"):
            continue
        word = following(tokens, index)
        if word < len(tokens) and tokens[word].text in ("include", "include_next", "import"):
            at = index
            while at < len(tokens) and tokens[at].kind != "newline":
                tokens[at].text = "\n" * tokens[at].text.count("\n")
                tokens[at].kind = "space"
                at += 1


def _drop_linkage(tokens: list[Token]) -> None:
    """Blank ``extern "C"``, and the braces of one that has some: names are this file's own here."""
    for index, token in enumerate(tokens):
        if token.text != "extern" or token.directive:
            continue
        language = following(tokens, index)
        if language >= len(tokens) or tokens[language].kind != "string":
            continue
        opened = following(tokens, language)
        blanked = [index, language]
        if opened < len(tokens) and tokens[opened].text == "{":
            blanked += [opened, closing(tokens, opened)]
        for at in blanked:
            tokens[at].text, tokens[at].kind = " ", "space"


def _scopes(tokens: list[Token]) -> list[bool]:
    """Return for each token whether it stands in a function's body."""
    within: list[bool] = []
    stack: list[bool] = []
    for index, token in enumerate(tokens):
        if token.kind == "sign" and not token.directive:
            if token.text == "{":
                stack.append(bool(stack and stack[-1]) or not _opens_scope(tokens, index))
            elif token.text == "}" and stack:
                stack.pop()
        within.append(bool(stack and stack[-1]))
    return within


def _opens_scope(tokens: list[Token], brace: int) -> bool:
    """Whether the brace begins a namespace, a class or an enumeration."""
    at = brace - 1
    while at >= 0 and not (tokens[at].text in (";", "{", "}") and not tokens[at].directive):
        if tokens[at].text in ("namespace", "struct", "class", "union", "enum") and not tokens[at].directive:
            return not any(tokens[i].text == "(" and not tokens[i].directive for i in range(at, brace))
        at -= 1
    return False


def _kernels(tokens: list[Token]) -> dict[str, Kernel]:
    """Return the kernels by their bare names; one in a namespace has its qualified name."""
    partner = pairs(tokens)
    found: dict[str, Kernel] = {}
    spaces: list[tuple[str, int]] = []  # the namespaces around, and where they end
    for index, token in enumerate(tokens):
        while spaces and index > spaces[-1][1]:
            spaces.pop()
        if token.directive:
            continue
        if token.text == "namespace":
            named = following(tokens, index)
            words: list[str] = []
            while named < len(tokens) and tokens[named].text not in ("{", ";", "="):
                words.append(tokens[named].text)
                named = following(tokens, named)
            if named < len(tokens) and tokens[named].text == "{" and named in partner:
                spaces.append(("".join(words), partner[named]))
        elif token.text == "__global__":
            name = _function_name(tokens, index)
            if name >= 0:
                path = "::".join([space for space, _ in spaces if space] + [tokens[name].text])
                parameters = _listed(tokens, following(tokens, name))
                found.setdefault(tokens[name].text, Kernel(path, parameters, _template_parameters(tokens, index)))
    return found


def _function_name(tokens: list[Token], at: int) -> int:
    """Return where the name of the function that ``__global__`` at ``at`` belongs to is, or -1."""
    at = following(tokens, at)
    while at < len(tokens) and tokens[at].text not in (";", "{", "}"):
        after = following(tokens, at)
        if after < len(tokens) and tokens[after].text == "(" and tokens[at].kind == "name":
            if not tokens[at].text.startswith("__launch_bounds__") and tokens[at].text not in _ALIGNMENTS:
                return at
            at = closing(tokens, after)
        at = following(tokens, at)
    return -1


def _template_parameters(tokens: list[Token], at: int) -> int:
    begin = at
    while begin > 0 and tokens[begin - 1].text not in (";", "{", "}") and not tokens[begin - 1].directive:
        begin -= 1
    template = next((i for i in range(begin, at) if tokens[i].text == "template"), -1)
    if template < 0:
        return 0
    return _listed(tokens, following(tokens, template))


def _listed(tokens: list[Token], opened: int) -> int:
    """Return how many things stand, with commas between them, in the bracket at ``opened``."""
    end = closing(tokens, opened)
    if following(tokens, opened) >= end:
        return 0
    depth, count = 0, 1
    for index in range(opened, end):
        depth += (tokens[index].text in ("<", "(", "[", "{")) - (tokens[index].text in (">", ")", "]", "}"))
        count += tokens[index].text == "," and depth == 1
    return count


def _shared_memory(tokens: list[Token], scopes: list[bool]) -> None:
    everywhere: dict[str, str] = {}  # what stands for a name that is declared outside of functions
    for index, token in enumerate(tokens):
        if token.text != "__shared__":
            continue
        if token.directive:
            raise DialectError("shared memory is declared in a macro: write the declaration itself", token.line)
        variables = _variables(tokens, index)
        if variables is None:
            raise DialectError("this declaration of shared memory can't be read: declare one array in it", token.line)
        dynamic = any(tokens[i].text == "extern" for i in range(variables.begin, index)) or any(
            extents.replace(" ", "") == "[]" for _, extents in variables.names
        )
        pieces = [_declared(variables, name, extents, dynamic, scopes[index]) for name, extents in variables.names]
        if not scopes[index]:
            for name, _ in variables.names:
                everywhere[name] = (_DYNAMIC if dynamic else _SHARED).format(kind=variables.kind, name=name)
        _replace(tokens, variables, " ".join(pieces))
    for index, hidden in _within_functions(tokens, scopes, frozenset(everywhere)):
        before = preceding(tokens, index)
        if tokens[index].text not in hidden and tokens[before].text not in (".", "->", "::"):
            tokens[index].text = everywhere[tokens[index].text]


def _within_functions(
    tokens: list[Token], scopes: list[bool], names: frozenset[str]
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield where functions' bodies have one of ``names``, and which of these are parameters of the function."""
    partner = pairs(tokens)
    hidden: frozenset[str] = frozenset()
    for index, token in enumerate(tokens):
        if token.text == "{" and scopes[index] and not (index and scopes[index - 1]):
            closed = next((i for i in range(index, -1, -1) if tokens[i].text in (")", ";", "}")), -1)
            parameters = tokens[partner[closed] : closed] if tokens[closed].text == ")" and closed in partner else []
            hidden = names & {parameter.text for parameter in parameters}
        if scopes[index] and token.kind == "name" and token.text in names:
            yield index, hidden


def _declared(variables: _Variables, name: str, extents: str, dynamic: bool, local: bool) -> str:
    if dynamic:
        pointer = _DYNAMIC.format(kind=variables.kind, name=name)
        return f"[[maybe_unused]] {variables.kind}* {name} = {pointer};" if local else ""
    storage = _STORAGE.format(name=name, kind=variables.kind, extents=extents, alignment=variables.alignment)
    return storage + (_LOCAL.format(name=name) if local else "")


def _replace(tokens: list[Token], variables: _Variables, words: str) -> None:
    """Put ``words`` in the place of a declaration, semicolon and all, keeping its lines."""
    pieces = tokens[variables.begin : variables.end + 1]
    lines = sum(piece.text.count("\n") for piece in pieces)
    for piece in pieces:
        piece.text, piece.kind = "", "space"
    tokens[variables.begin].text = words + "\n" * lines


def _variables(tokens: list[Token], at: int) -> _Variables | None:
    """Parse the declaration that has the specifier at ``at``; None when it is none of variables."""
    begin = at
    while (before := preceding(tokens, begin)) >= 0 and tokens[before].text not in (";", "{", "}", ":"):
        if tokens[before].directive:
            break
        if tokens[before].text == ")":
            before = next((i for i in range(before, -1, -1) if tokens[i].text in _ALIGNMENTS), -1)
        elif tokens[before].text not in (_SPECIFIERS | _STORAGE_WORDS):
            return None
        if before < 0:
            return None
        begin = before
    kind: list[str] = []
    alignment, named, here = "", False, begin
    while here < len(tokens):
        token = tokens[here]
        if token.text in _ALIGNMENTS:
            opened = following(tokens, here)
            end = closing(tokens, opened)
            alignment, here = f"alignas{on_one_line(tokens[opened : end + 1])}", end
        elif token.text in ("struct", "union") and tokens[following(tokens, here)].text == "{":
            end = closing(tokens, following(tokens, here))
            kind.append(on_one_line(tokens[here : end + 1]))
            named, here = True, end
        elif token.text in _SPECIFIERS or (token.text in _BUILT_IN and (not named or kind[-1] in _BUILT_IN)):
            kind.append(token.text)
            named = named or token.text in _BUILT_IN
        elif token.kind == "name" and not named and token.text not in _STORAGE_WORDS:
            end = end_of_type(tokens, here)
            kind.append(on_one_line(tokens[here : end + 1]))
            named, here = True, end
        elif token.text == "*" and named:
            kind.append("*")
        elif not token.blank and token.text not in _STORAGE_WORDS:
            break
        here += 1
    found = declarators(tokens, here) if named else None
    return found and _Variables(" ".join(kind), alignment, found[0], begin, found[1])


def _constants(tokens: list[Token]) -> tuple[str, ...]:
    """Take ``__constant__`` apart: one with a value is a constant; the names of the others are returned."""
    filled_by_host: list[str] = []
    for index, token in enumerate(tokens):
        if token.text != "__constant__" or token.directive:
            continue
        end = next((i for i in range(index, len(tokens)) if tokens[i].text in ("=", "{", ";")), len(tokens) - 1)
        if tokens[end].text != ";":
            begin = next((i for i in range(index, -1, -1) if tokens[i].text in (";", "{", "}")), 0)
            told = any(tokens[i].text in ("const", "constexpr") for i in range(begin, end))
            token.text = " " if told else "KSR_CONSTANT"
            continue
        if (variables := _variables(tokens, index)) is None:
            raise DialectError("this declaration of constant memory can't be read: declare one array in it", token.line)
        filled_by_host += [name for name, _ in variables.names]
        token.text = "KSR_GLOBAL"
    return tuple(filled_by_host)


def _qualifiers(tokens: list[Token]) -> tuple[str, ...]:
    """``__device__`` and ``__global__`` become ``inline``, which is written once; return the variables among them."""
    variables: list[str] = []
    for index, token in enumerate(tokens):
        if token.kind != "name":
            continue
        if token.text in ("__global__", "__device__"):
            around = {
                tokens[i].text for i in (preceding(tokens, index), following(tokens, index)) if 0 <= i < len(tokens)
            }
            if around & {"]", "KSR_GLOBAL", "KSR_CONSTANT"}:  # a lambda, or constant memory
                token.text = " "
            elif name := _variable_name(tokens, index):
                token.text = "KSR_GLOBAL"
                variables.append(name)
            else:
                token.text = "inline"
        elif token.text in _INLINE:
            after = following(tokens, index)
            if not (after < len(tokens) and tokens[after].text == "namespace"):
                token.text = " "
    return tuple(variables)


def _variable_name(tokens: list[Token], at: int) -> str:
    """Return the name of the variable that can change which ``__device__`` at ``at`` declares, '' for anything else."""
    if tokens[at].text != "__device__" or tokens[at].directive:
        return ""
    begin = at
    while begin > 0 and tokens[begin - 1].text not in (";", "{", "}") and not tokens[begin - 1].directive:
        begin -= 1
    if any(tokens[i].text in ("const", "constexpr") for i in range(begin, at)):
        return ""
    name = ""
    while (at := following(tokens, at)) < len(tokens):
        text = tokens[at].text
        if text in ("(", "}", "const", "constexpr", "operator") or tokens[at].directive:
            return ""
        if text in ("[", "=", "{", ";", ","):
            return name
        if text == "<":
            at = closing(tokens, at)
        elif tokens[at].kind == "name":
            name = text
    return ""
