"""Sizes that the host requires to be multiples of others."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from translator.requirements import Requirement
from translator.sizes import ZERO, Size, coefficient, floordiv, name, number, renders
from translator.substitution import substitute


class Multiples:
    """Sizes that the host requires to be multiples, written as such while bounds are looked for.

    With ``n = 4 * part``, ``n // 4 * 4`` is ``n`` and ``(heads - 1) // (heads // kv_heads)`` is ``kv_heads - 1``.
    """

    def __init__(self, requires: Sequence[Requirement]) -> None:
        self.of: dict[str, Size] = {}
        for kind, size, other in requires:
            axis = str(size)
            if kind != "multiple" or size != name(axis) or not renders(size):
                continue
            held = self.of.get(axis)
            if held is None:
                self.of[axis] = other
            elif held.constant and other.constant:
                self.of[axis] = number(lcm(held.constant, other.constant))
        self._parts = {axis: other * name(f"{axis}__part") for axis, other in self.of.items()}

    def parts(self, size: Size) -> Size:
        """Return a size with each of these axes as a multiple."""
        return substitute(size, self._parts)

    def whole(self, size: Size) -> Size:
        """Return a size in the axes themselves again."""
        for axis, other in self.of.items():
            part = f"{axis}__part"
            total = ZERO
            for monomial, factor in size.terms:
                term = Size(((monomial, factor),))
                if part in monomial:
                    times = coefficient(term, part)
                    shared = floordiv(times, other)
                    back = name(axis) if shared * other == times else floordiv(name(axis), other)
                    term = (shared if shared * other == times else times) * back
                total = total + term
            size = substitute(total, {part: floordiv(name(axis), other)})
        return size
