"""Sizes in which names, or whole operations, are replaced by other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from translator.size_order import maximum, minimum
from translator.sizes import ZERO, Atom, Size, ceildiv, floordiv, modulo, nonzero, number, product


def substitute(size: Size, values: Mapping[str, Size]) -> Size:
    """Return ``size`` with names replaced."""
    return _replaced(size, dict(values.items()))


def replace_atom(size: Size, atom: Atom, value: Size) -> Size:
    """Return ``size`` with a name or a whole operation replaced."""
    return _replaced(size, {atom: value})


def _replaced(size: Size, values: Mapping[Atom, Size]) -> Size:
    if not values:
        return size
    total = ZERO
    for monomial, factor in size.terms:
        total = total + product([_replaced_atom(atom, values) for atom in monomial]) * number(factor)
    return total


def _replaced_atom(atom: Atom, values: Mapping[Atom, Size]) -> Size:
    if atom in values:
        return values[atom]
    if isinstance(atom, str):
        return Size((((atom,), 1),))
    return _apply(atom.kind, [_replaced(operand, values) for operand in atom.operands])


def _apply(kind: str, operands: Sequence[Size]) -> Size:
    if kind == "//":
        return floordiv(*operands)
    if kind == "%":
        return modulo(*operands)
    if kind == "ceildiv":
        return ceildiv(*operands)
    if kind == "nonzero":
        return nonzero(*operands)
    return minimum(*operands) if kind == "min" else maximum(*operands)
