"""The largest value that an index can take: each variable replaced by its bound where the index grows with it.

``row * cols + c`` with ``row < rows`` and ``c < cols`` is at most ``(rows - 1) * cols + cols - 1``. Bounds come from
facts (guards, loop conditions) and from what is known of a variable at all times (``threadIdx.x < blockDim.x``).
Variables start with ``.``; ``@a`` is an element of the array ``a`` and ``?a`` the largest one, which stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd

from translator.c_facts import Fact
from translator.size_order import at_least, maximum, minimum
from translator.sizes import (
    ONE,
    ZERO,
    Atom,
    Operation,
    Size,
    UnreadableSize,
    ceildiv,
    coefficient,
    floordiv,
    modulo,
    name,
    names_in,
    number,
    product,
    whole_terms,
)
from translator.substitution import replace_atom

_MOST_TRIES = 300


class Bounds:
    """What variables stay between: ``low`` and ``high`` at all times, ``facts`` where the code stands now."""

    def __init__(self) -> None:
        self.low: dict[str, Size] = {}
        self.high: dict[str, Size] = {}
        self.facts: list[Fact] = []

    def learn(self, facts: Iterable[Fact]) -> None:
        """Add facts, each divided by what all terms of its expression have in common."""
        self.facts.extend(divided for fact in facts if (divided := _divided(fact)) is not None)

    def upper(self, size: Size) -> Size | None:
        """Return the largest value of a size, over axes (and ``?array``), None when nothing bounds it."""
        try:
            return _Search(self).upper(size)
        except UnreadableSize:
            return None


def is_variable(atom: Atom) -> bool:
    """Whether an atom differs between threads, rounds or elements."""
    if isinstance(atom, str):
        return atom[0] in ".@"
    return any(is_variable(name) for operand in atom.operands for name in names_in(operand))


def variables_of(size: Size) -> list[Atom]:
    """Return the atoms of a size that aren't fixed, in canonical order."""
    found = {atom: None for monomial, _ in size.terms for atom in monomial if is_variable(atom)}
    return list(found)


def content(sizes: Sequence[Size]) -> Size:
    """Return what all terms of some sizes have in common, as one term without variables."""
    terms = [term for size in sizes for term in size.terms]
    if not terms:
        return ONE
    factor = gcd(*(times for _, times in terms))
    shared = list(terms[0][0])
    for monomial, _ in terms[1:]:
        shared = [atom for at, atom in enumerate(shared) if shared[: at + 1].count(atom) <= monomial.count(atom)]
    return product([Size((((atom,), 1),)) for atom in shared if not is_variable(atom)]) * number(max(factor, 1))


def _divided(fact: Fact) -> Fact | None:
    if not variables_of(fact.expression):
        return None
    try:
        common = content([fact.expression])
        if common == ONE:
            return fact
        low = ceildiv(fact.low, common) if fact.low is not None else None
        high = floordiv(fact.high, common) if fact.high is not None else None
        return Fact(floordiv(fact.expression, common), low, high)
    except UnreadableSize:
        return fact


class _Search:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.tries = 0
        self.known: dict[Size, Size | None] = {}

    def upper(self, size: Size) -> Size | None:
        if size not in self.known:
            self.tries += 1
            self.known[size] = None  # while it is looked for, so that two facts can't refer to each other for ever
            self.known[size] = self._upper(size)
        return self.known[size]

    def _upper(self, size: Size) -> Size | None:
        size = _with_rests(size)
        variables = variables_of(size)
        if not variables:
            return size
        if self.tries > _MOST_TRIES:
            return None
        for atom in variables:
            if isinstance(atom, Operation) and atom.kind in ("min", "max"):
                times = coefficient(size, atom)
                # each operand of a minimum is an upper bound of it, and one may cancel what stands around it
                if at_least(times if atom.kind == "min" else ZERO - times, ZERO):
                    return self._least(replace_atom(size, atom, operand) for operand in atom.operands)
        guarded = self._least(
            moved for fact in reversed(self.bounds.facts) for moved in _moved(size, fact, variables)
        )  # fmt: skip
        for variable in reversed(variables):
            replaced = self._replaced(size, variable)
            if replaced is not None:
                always = self.upper(replaced)
                # a guard says how large an array is, even where fewer threads than that get there
                return always if guarded is None or (always and at_least(guarded, always)) else guarded
        return guarded

    def _least(self, sizes: Iterable[Size]) -> Size | None:
        """Return the tightest of the bounds of some sizes, None when they have none."""
        best: Size | None = None
        for size in sizes:
            best = _tighter(best, self.upper(size))
        return best

    def _replaced(self, size: Size, variable: Atom) -> Size | None:
        """Return the size with one variable at its end that makes it largest, None when it has none."""
        times = coefficient(size, variable)
        if at_least(times, ZERO):
            bound = self._end(variable, True)
        elif at_least(ZERO, times):
            bound = self._end(variable, False)
        else:
            return None
        return None if bound is None else replace_atom(size, variable, bound)

    def _end(self, atom: Atom, high: bool) -> Size | None:
        if isinstance(atom, str):
            if atom[0] == "@":
                return self.bounds.high.get(atom, name("?" + atom[1:])) if high else ZERO
            found = (self.bounds.high if high else self.bounds.low).get(atom)
            return None if found is None or atom in names_in(found) else found
        return self._operation_end(atom, high)

    def _operation_end(self, atom: Operation, high: bool) -> Size | None:
        first, second = atom.operands[0], atom.operands[-1]
        if atom.kind in ("//", "ceildiv") and not variables_of(second):
            end = self._size_end(first, high)
            if end is None:
                return None if high else ZERO
            return floordiv(end, second) if atom.kind == "//" else ceildiv(end, second)
        if atom.kind == "%":
            if not high:
                return ZERO
            limit = self._size_end(second, True)
            if limit is None:
                return None
            whole = self._size_end(first, True)
            low = self._size_end(first, False)
            fits = whole is not None and low is not None and at_least(limit - ONE, whole)
            return whole if fits and whole is not None else limit - ONE
        if atom.kind in ("min", "max"):
            ends = [self._size_end(operand, high) for operand in atom.operands]
            known = [end for end in ends if end is not None]
            if not known:
                return None
            if (atom.kind == "min") == high:
                best: Size | None = None
                for end in known:
                    best = _tighter(best, end) if high else _tighter_low(best, end)
                return best
            if len(known) < len(ends):
                return None
            return maximum(*known) if high else minimum(*known)
        return None

    def _size_end(self, size: Size, high: bool) -> Size | None:
        if high:
            return self.upper(size)
        lowest = self.upper(ZERO - size)
        return None if lowest is None else ZERO - lowest


def _moved(size: Size, fact: Fact, variables: Sequence[Atom]) -> list[Size]:
    """Return the size with the fact's expression, where the size holds it as a whole, replaced by its bound."""
    inside = variables_of(fact.expression)
    for variable in inside:
        if variable not in variables:
            continue
        own = coefficient(fact.expression, variable).constant
        times = coefficient(size, variable)
        if own is None or variables_of(times):
            continue
        try:
            if own != 1:
                shared = floordiv(times, number(own))
                if shared * number(own) != times:
                    continue
                times = shared
        except UnreadableSize:
            continue
        positive = at_least(times, ZERO)
        bound = fact.high if positive else fact.low
        if bound is None or not (positive or at_least(ZERO, times)):
            continue
        rest = size - times * fact.expression
        left = variables_of(rest)
        if variable in left or len(left) >= len(variables) or (set(left) - set(variables)):
            continue
        if any(other in variables_of(bound) for other in inside):
            continue
        return [rest + times * bound]
    return []


def _with_rests(size: Size) -> Size:
    """Return ``x - x // b * b`` as ``x % b``."""
    for atom in variables_of(size):
        if not isinstance(atom, Operation) or atom.kind != "//":
            continue
        whole, divisor = atom.operands
        try:
            factor, _ = whole_terms(ZERO - coefficient(size, atom), divisor)
            if factor == ZERO:
                continue
            rest = size + factor * divisor * Size((((atom,), 1),)) - factor * whole
            left = variables_of(rest)
            if len(left) < len(variables_of(size)) and not set(left) & set(variables_of(whole)):
                return _with_rests(rest + factor * modulo(whole, divisor))
        except UnreadableSize:
            continue
    return size


def _tighter(best: Size | None, other: Size | None) -> Size | None:
    if best is None or other is None:
        return best if other is None else other
    if _weight(best)[0] != _weight(other)[0]:
        return min(best, other, key=_weight)
    if at_least(best, other):
        return other
    if at_least(other, best):
        return best
    return min(best, other, key=_weight)


def _tighter_low(best: Size | None, other: Size) -> Size:
    if best is None or at_least(other, best):
        return other
    return best


def _weight(size: Size) -> tuple[bool, int, int]:
    operations = sum(isinstance(atom, Operation) for atom in size.atoms)
    return any(text[0] == "?" for text in names_in(size)), operations, len(size.terms)


def variable_bounds(grid: Sequence[Size], block: Sequence[Size]) -> Mapping[str, Size]:
    """Return the largest value of each of CUDA's index variables."""
    found = {}
    for at, part in enumerate("xyz"):
        found[f".threadIdx.{part}"] = block[at] - ONE
        found[f".blockIdx.{part}"] = grid[at] - ONE
    return found
