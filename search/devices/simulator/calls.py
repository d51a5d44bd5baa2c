"""Which helpers' calls the runtime has to know, and the words by which it tells them apart.

Lanes of a simdgroup that went different ways meet again by the place of an operation, the earliest first. A helper
stands in one place however often it is called, above all the code that calls it. So one that holds an operation, itself
or through others, gets a parameter more, whose default is the place of the call, and notes it while it lasts
(``ksr_call`` in runtime/abi.h). A helper that only touches memory does so in the checked mode, whose reports then say
which call it was. Where nothing is ambiguous, nothing is added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from search.devices.simulator.functions import Function, closing_angle, declaration_begin, functions_in, parameter_types
from search.devices.simulator.tokens import Token, following, pairs, preceding, tokenize

_OPERATION = re.compile(
    r"(simd|quad)_(sum|product|max|min|and|or|xor|prefix_\w+|shuffle\w*|broadcast\w*|ballot|active_threads_mask|all|any"
    r"|is_first)|simdgroup_(barrier|multiply|multiply_accumulate)|threadgroup_barrier"
    r"|__(syncthreads(_\w+)?|syncwarp|shfl(_\w+)?|(ballot|any|all)(_sync)?|activemask|match_\w+|reduce_\w+_sync)|sync"
    r"|shfl(_\w+)?"  # these of CUDA
    r"|TempStorage|(Block|Warp)(Reduce|Scan)|(In|Ex)clusive(Sum|Scan)"  # and what tells CUB's
)
_OF_CUB = ("TempStorage", "Block", "Warp", "Inclusive", "Exclusive")

_NOTE = "ksr_call ksr_in(ksr_at.place);"
NOTES_CALLS = f"{{ {_NOTE}"
"""What a function begins with that notes the place it was called from."""


@dataclass(frozen=True)
class Calls:
    """The names of helpers to note the calls of, in every build or only the checked one, and all that hold operations.

    Of the noted, those that are ``plain`` have no default arguments and no overloads.
    """

    noted: frozenset[str] = frozenset()
    traced: frozenset[str] = frozenset()
    operating: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()


NO_CALLS = Calls()


def calls_of(header: str, source: str) -> Calls:
    """Return what is ambiguous in a kernel's texts."""
    texts = [tokenize(header), tokenize(source)]
    found = [functions_in(tokens) for tokens in texts]
    holds = [entry for tokens, functions in zip(texts, found, strict=True) for entry in _words(tokens, functions)]
    operating = _operating(holds)
    declared = {id(texts[which][function.at]) for which in (0, 1) for function in found[which]}
    calls: Counter[str] = Counter()
    named = {function.name for function in chain(*found)} - {""}
    otherwise: set[str] = set()
    for tokens in texts:
        for index, token in enumerate(tokens):
            if token.text not in named or id(token) in declared:
                continue
            if not _is_call(tokens, index):
                otherwise.add(token.text)
            calls[token.text] += 2 if token.directive else 1
    within = _placed_within(texts, found, operating)
    anywhere = sum(calls[name] for name in operating & named) + sum(_operations(tokens) for tokens in texts)
    # Called once, a helper is out of order among operations elsewhere: it stands above the code that calls it.
    elsewhere = {name for name in operating & named if calls[name] == 1 and anywhere > within[name] + 1}
    ambiguous = ({name for name in named if calls[name] > 1} | elsewhere) - otherwise
    for tokens, functions in zip(texts, found, strict=True):
        ambiguous -= {function.name for function in functions if _cannot_note(tokens, function)}
    touching = {
        function.name
        for tokens, functions in zip(texts, found, strict=True)
        for function in functions
        if any(tokens[at].text in ("*", "&", "[") for at in function.parameters)
    }
    noted = frozenset(ambiguous & operating)
    shapes = {
        (function.name, parameter_types(tokens, function), any(tokens[at].text == "=" for at in function.parameters))
        for tokens, functions in zip(texts, found, strict=True)
        for function in functions
    }
    times = Counter(name for name, _, _ in shapes)
    plain = frozenset(name for name, _, optional in shapes if name in noted and times[name] == 1 and not optional)
    return Calls(noted, frozenset(ambiguous & touching - noted), operating, plain)


def note_calls(tokens: list[Token], calls: Calls) -> None:
    """Write into ``tokens`` what notes the calls of the helpers in ``calls``, and of lambdas that hold operations."""
    outer = _outer_calls(tokens, calls)
    declared_before: set[tuple[str, tuple[str, ...]]] = set()
    defined_before: set[tuple[str, tuple[str, ...]]] = set()
    for function in functions_in(tokens):
        begin, end = "", ""
        if function.name in calls.traced:
            begin, end = " KSR_TRACED(", ")"
        elif function.name not in calls.noted and (function.name or not _holds(tokens, function, calls.operating)):
            continue
        if not function.name and _cannot_note(tokens, function):
            continue
        signature = (function.name, parameter_types(tokens, function))
        # Two definitions are two functions, though their parameters be the same: templates for other types.
        before = signature in declared_before or (function.body < 0 and signature in defined_before)
        again = function.special or (function.name != "" and before)
        (defined_before if function.body >= 0 else declared_before).add(signature)
        declared = "ksr_called ksr_at" if again else "KSR_CALLED"
        if function.opened < 0:
            tokens[function.closed].text += f" ({declared})"
        else:
            if signature[1] == ("void",):
                tokens[following(tokens, function.opened)].text = ""
                signature = (function.name, ())
            comma = ", " if signature[1] else ""
            tokens[function.closed].text = f"{begin}{comma}{declared}{end})"
        if function.body >= 0:
            tokens[function.body].text = f"{{ KSR_TRACED({_NOTE})" if begin else NOTES_CALLS
    _place(tokens, outer)


def _outer_calls(tokens: list[Token], calls: Calls) -> dict[int, bool]:
    """Return where calls end that have others in their arguments, and whether a helper is called."""
    found: dict[int, bool] = {}
    for opened, closed in pairs(tokens).items():
        name = preceding(tokens, opened) if tokens[opened].text == "(" else -1
        if name >= 0 and (_takes_place(tokens[name].text) or tokens[name].text in calls.plain):
            within = range(opened, closed)
            if any(_is_placed(tokens, at, calls) and _is_call(tokens, at) for at in within):
                found[closed] = tokens[name].text in calls.plain
    return found


def _place(tokens: list[Token], outer: dict[int, bool]) -> None:
    """Give each call that ends there its end as its place, as that is when it is made.

    The compiler tells where a call begins, which puts it before the calls in its arguments.
    """
    column = 1
    for index, token in enumerate(tokens):
        if index in outer:
            place = f"ksr::place(__LINE__, {column})"
            token.text = f", {f'ksr_called({place})' if outer[index] else place})"
        _, newline, after = token.text.rpartition("\n")
        column = len(after) + 1 if newline else column + len(after)


def _operations(tokens: list[Token], begin: int = 0, end: int | None = None) -> int:
    return sum(_OPERATION.fullmatch(token.text) is not None for token in tokens[begin:end])


def _placed_within(texts: list[list[Token]], found: list[list[Function]], operating: frozenset[str]) -> Counter[str]:
    """Return how many operations, and calls of what holds some, stand in each function."""
    counts: Counter[str] = Counter()
    for tokens, functions in zip(texts, found, strict=True):
        for function in functions:
            if function.body >= 0:
                words = _names(tokens, function.body, function.end)
                counts[function.name] += sum(word in operating for word in words)
    return counts


def _takes_place(name: str) -> bool:
    """Whether ``name`` is an operation all of whose other arguments are always given."""
    return _OPERATION.fullmatch(name) is not None and not ("fill" in name or name.startswith(("__shfl", *_OF_CUB)))


def _is_placed(tokens: list[Token], at: int, calls: Calls) -> bool:
    return tokens[at].text in calls.operating or _OPERATION.fullmatch(tokens[at].text) is not None


def _operating(holds: list[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """Return the names of functions and macros that hold an operation, themselves or through others."""
    operating = {word for _, words in holds for word in words if _OPERATION.fullmatch(word)}
    while more := {name for name, words in holds if name not in operating and words & operating}:
        operating |= more
    return frozenset(operating - {""})


def _words(tokens: list[Token], functions: list[Function]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield functions and macros by name, each with the words in it."""
    for function in functions:
        if function.body >= 0:
            yield function.name, frozenset(_names(tokens, max(function.opened, 0) or function.body, function.end))
    for index, token in enumerate(tokens):
        if token.directive and token.text == "define" and tokens[preceding(tokens, index)].text == "#":
            name = following(tokens, index)
            end = next((at for at in range(index, len(tokens)) if tokens[at].kind == "newline"), len(tokens))
            if name < end:
                yield tokens[name].text, frozenset(_names(tokens, name + 1, end))


def _names(tokens: list[Token], begin: int, end: int) -> Iterator[str]:
    return (tokens[at].text for at in range(begin, end) if tokens[at].kind == "name")


def _holds(tokens: list[Token], function: Function, words: frozenset[str]) -> bool:
    return any(word in words for word in _names(tokens, function.body, function.end))


def _is_call(tokens: list[Token], at: int) -> bool:
    after = following(tokens, at)
    if after < len(tokens) and tokens[after].text == "<":
        closed = closing_angle(tokens, after)
        after = following(tokens, closed) if closed >= 0 else after
    return after < len(tokens) and tokens[after].text == "("


def _cannot_note(tokens: list[Token], function: Function) -> bool:
    """Whether another parameter would be no parameter (after a pack), or the function must be a constant expression."""
    listed = any(tokens[at].text == "..." for at in function.parameters)
    head = range(declaration_begin(tokens, function.at), function.at)
    return listed or any(tokens[at].text in ("constexpr", "consteval") for at in head)
