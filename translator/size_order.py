"""Which of two sizes is the larger one, as far as their signs and bounds tell."""

from __future__ import annotations

from collections.abc import Sequence

from translator.sizes import (
    ONE,
    VARIABLE_MARKS,
    ZERO,
    Operation,
    Size,
    number,
    of_atom,
    operation,
    sum_of,
    without_atom,
)


def minimum(*sizes: Size) -> Size:
    """Return the smallest of sizes, as one of them where it can be told which."""
    return _extreme("min", sizes)


def maximum(*sizes: Size) -> Size:
    """Return the largest of sizes, as one of them where it can be told which."""
    return _extreme("max", sizes)


def at_least(a: Size, b: Size) -> bool:
    """Whether ``a >= b`` whatever the names stand for, as far as signs of terms tell."""
    terms = sum_of([a, b * number(-1)])
    for _ in range(4):  # each round takes one operation out
        lower = _bounded_below(terms)
        if lower is None or lower == terms:
            break
        terms = lower
    shifted = ZERO
    for monomial, factor in terms.terms:
        grown = number(factor)
        for atom in monomial:
            positive = isinstance(atom, str) and atom[0] not in VARIABLE_MARKS
            grown = grown * (of_atom(atom) + ONE if positive else of_atom(atom))
        shifted = shifted + grown
    return all(factor >= 0 for _, factor in shifted.terms)


def _extreme(kind: str, sizes: Sequence[Size]) -> Size:
    flat: list[Size] = []
    for size in sizes:
        atom = size.terms[0][0][0] if len(size.terms) == 1 and len(size.terms[0][0]) == 1 else None
        if isinstance(atom, Operation) and atom.kind == kind and size.terms[0][1] == 1:
            flat.extend(atom.operands)
        else:
            flat.append(size)
    kept: list[Size] = []
    for size in dict.fromkeys(flat):
        if any(_beats(kind, other, size) for other in kept):
            continue
        kept = [other for other in kept if not _beats(kind, size, other)]
        kept.append(size)
    kept.sort(key=lambda size: size.constant is not None)  # min(blocks, 65535), as people write it
    return kept[0] if len(kept) == 1 else operation(kind, *kept)


def _beats(kind: str, a: Size, b: Size) -> bool:
    return at_least(b, a) if kind == "min" else at_least(a, b)


def _bounded_below(size: Size) -> Size | None:
    """Return a size that is at most this one, with one operation less, None when there is no operation."""
    for monomial, factor in size.terms:
        for atom in monomial:
            if not isinstance(atom, Operation):
                continue
            others = Size(((without_atom(monomial, atom), 1),))
            bound = _bound(atom, factor)
            if bound is None:
                return None
            return sum_of([size, Size(((monomial, -factor),)), bound * others])
    return None


def _bound(atom: Operation, factor: int) -> Size | None:
    """Return something that is at most ``factor * atom``."""
    first = atom.operands[0]
    if atom.kind in ("ceildiv", "//"):
        divisor = atom.operands[1].constant
        if divisor is None or divisor <= 0 or factor % divisor:
            return ZERO if factor > 0 else None
        times = number(factor // divisor)
        slack = number(divisor - 1)
        if factor > 0:
            return times * (first if atom.kind == "ceildiv" else first - slack)
        return times * (first + slack if atom.kind == "ceildiv" else first)
    if atom.kind == "%":
        return ZERO if factor > 0 else number(factor) * (atom.operands[1] - ONE)
    if atom.kind == "max" and factor > 0:
        return number(factor) * first
    if atom.kind == "min" and factor < 0:
        return number(factor) * first
    return None
