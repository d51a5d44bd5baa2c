"""Integer sizes as polynomials over names, kept in one canonical form and written as a person would.

``(n + 255) / 256`` and ``1 + (n - 1) / 256`` are both ``ceildiv(n, 256)`` here. Names stand for integers of at least 1
(axes); those that start with a mark of `VARIABLE_MARKS` for integers of at least 0. Division is exact for sizes that
aren't negative, where C's and the grammar's ``//`` agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd

VARIABLE_MARKS = ".@?"
OPEN_MARK = "#"
"""Starts the name of a size that a person is still to be asked for."""

_MOST_TERMS = 48
_MOST_DEPTH = 8
_LARGEST = 1 << 63
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*\Z")


class UnreadableSize(ValueError):
    """A size that this form can't hold, with what is the matter in words."""


@dataclass(frozen=True)
class Operation:
    """``//``, ``%``, ``ceildiv``, ``min``, ``max`` of sizes, or ``nonzero``: 1 where its operand isn't 0."""

    kind: str
    operands: tuple[Size, ...]
    depth: int


Atom = str | Operation
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Size:
    """A sum of terms: each a product of atoms and its factor, in canonical order."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Size) -> Size:
        return _with_whole_parts(sum_of([self, other]))

    def __sub__(self, other: Size) -> Size:
        return self + other * number(-1)

    def __mul__(self, other: Size) -> Size:
        if len(self.terms) * len(other.terms) > _MOST_TERMS * 4:
            raise UnreadableSize("this size has too many terms")
        return _collect(
            (tuple(sorted(left + right, key=_key)), factor * times)
            for left, factor in self.terms
            for right, times in other.terms
        )

    @property
    def constant(self) -> int | None:
        """The number that this is, None when it isn't one."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def offset(self) -> int:
        """The term without a name."""
        return next((factor for monomial, factor in self.terms if not monomial), 0)

    @property
    def atoms(self) -> frozenset[Atom]:
        """The names and operations that it is a polynomial of."""
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    def __str__(self) -> str:
        return render(self)


def number(value: int) -> Size:
    """Return a number as a size."""
    if abs(value) > _LARGEST:
        raise UnreadableSize("this number is too large")
    return Size((((), value),) if value else ())


def name(text: str) -> Size:
    """Return a name as a size."""
    return Size((((text,), 1),))


ZERO, ONE = number(0), number(1)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes, 1 of none."""
    return reduce(lambda left, right: left * right, sizes, ONE)


def floordiv(a: Size, b: Size) -> Size:
    """Return ``a // b``; raise `UnreadableSize` for a division by zero."""
    return _divide("//", a, b)


def ceildiv(a: Size, b: Size) -> Size:
    """Return ``a`` divided by ``b`` and rounded up; raise `UnreadableSize` for a division by zero."""
    return _divide("ceildiv", a, b)


def modulo(a: Size, b: Size) -> Size:
    """Return ``a % b``; raise `UnreadableSize` for a division by zero."""
    if b == ZERO:
        raise UnreadableSize("this divides by zero")
    _, rest = whole_terms(a, b)
    if rest.constant is not None and b.constant is not None:
        return number(rest.constant % b.constant)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and len(rest.terms[0][0]) == 1:
        atom = rest.terms[0][0][0]
        if isinstance(atom, Operation) and atom.kind == "%" and atom.operands[1] == b:
            return rest
    return rest if rest == ZERO else operation("%", rest, b)


def nonzero(size: Size) -> Size:
    """Return 1 where ``size`` isn't 0, else 0."""
    return number(int(size.constant != 0)) if size.constant is not None else operation("nonzero", size)


def coefficient(size: Size, atom: Atom) -> Size:
    """Return what ``atom`` is multiplied by, counting one power of it a term."""
    return _collect(
        (without_atom(monomial, atom), factor) for monomial, factor in size.terms if atom in monomial
    )  # fmt: skip


def names_in(size: Size) -> frozenset[str]:
    """Return every name in a size, those within operations too."""
    found: set[str] = set()
    for atom in size.atoms:
        if isinstance(atom, str):
            found.add(atom)
        else:
            found.update(*map(names_in, atom.operands))
    return frozenset(found)


def is_open(size: Size) -> bool:
    """Whether a size depends on one that a person is still to be asked for."""
    return any(text.startswith(OPEN_MARK) for text in names_in(size))


def renders(size: Size) -> bool:
    """Whether a size can be written in the grammar: plain names, and nothing that only C has."""
    for atom in size.atoms:
        if isinstance(atom, str):
            if not _PLAIN_NAME.match(atom):
                return False
        elif atom.kind == "nonzero" or not all(map(renders, atom.operands)):
            return False
    return True


def render(size: Size, order: Sequence[str] = ()) -> str:
    """Return a size as text; factors come in the order of ``order``, other names after them."""
    rank = {text: at for at, text in enumerate(order)}

    def atom_key(atom: Atom) -> tuple[int, int, str]:
        if isinstance(atom, Operation):
            return (1 if atom.kind in ("//", "%") else 0, len(rank) + 1, render_atom(atom, 0))
        return (0, rank.get(atom, len(rank)), atom)

    def term_key(term: tuple[Monomial, int]) -> tuple[int, bool, list[tuple[int, int, str]]]:
        return (-len(term[0]), term[1] < 0, sorted(map(atom_key, term[0])))

    def in_order(terms: Iterable[tuple[Monomial, int]]) -> list[tuple[Monomial, int]]:
        ordered = sorted(terms, key=term_key)
        first = next((at for at, (_, factor) in enumerate(ordered) if factor > 0), 0)
        return [ordered[first], *ordered[:first], *ordered[first + 1 :]]

    def render_atom(atom: Atom, level: int) -> str:
        if isinstance(atom, str):
            return atom
        if atom.kind in ("//", "%"):
            left, right = (render_sum(operand, 2 if at else 1) for at, operand in enumerate(atom.operands))
            text = f"{left} {atom.kind} {right}"
            return f"({text})" if level > 1 else text
        return f"{atom.kind}({', '.join(render_sum(operand, 0) for operand in atom.operands)})"

    def render_term(monomial: Monomial, factor: int, level: int) -> str:
        atoms = sorted(monomial, key=atom_key)
        parts = [str(factor)] if factor != 1 or not atoms else []
        for atom in atoms:
            parts.append(render_atom(atom, 2 if parts or level > 1 else 1))
        text = " * ".join(parts)
        return f"({text})" if level > 1 and len(parts) > 1 else text

    def render_sum(part: Size, level: int) -> str:
        """``level`` 0: any sum may stand here; 1: a product; 2: only an atom."""
        if not part.terms:
            return "0"
        terms = in_order(part.terms)
        if len(terms) == 1:
            monomial, factor = terms[0]
            if factor < 0:
                return f"({render_signed(terms)})" if level else render_signed(terms)
            return render_term(monomial, factor, level)
        return f"({render_signed(terms)})" if level else render_signed(terms)

    def render_signed(terms: list[tuple[Monomial, int]]) -> str:
        text = ""
        for monomial, factor in terms:
            shown = render_term(monomial, abs(factor), 1)
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {shown}" if text else (f"0 - {shown}" if factor < 0 else shown)
        return text

    return render_sum(size, 0)


@lru_cache(maxsize=65536)
def _key(atom: Atom) -> tuple[int, str]:
    return (0, atom) if isinstance(atom, str) else (1, repr(atom))


def of_atom(atom: Atom) -> Size:
    """Return a name or an operation as a size."""
    return Size((((atom,), 1),))


def without_atom(monomial: Monomial, atom: Atom) -> Monomial:
    """Return a product without one factor that it has."""
    at = monomial.index(atom)
    return monomial[:at] + monomial[at + 1 :]


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Size:
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    kept = [(monomial, factor) for monomial, factor in total.items() if factor]
    if len(kept) > _MOST_TERMS or any(len(monomial) > _MOST_TERMS for monomial, _ in kept):
        raise UnreadableSize("this size has too many terms")
    if any(abs(factor) > _LARGEST for _, factor in kept):
        raise UnreadableSize("this number is too large")
    return Size(tuple(sorted(kept, key=lambda term: (len(term[0]), [_key(atom) for atom in term[0]]))))


def sum_of(sizes: Sequence[Size]) -> Size:
    """Return the sum of sizes, term by term."""
    return _collect(term for size in sizes for term in size.terms)


def _with_whole_parts(size: Size) -> Size:
    """Return ``x // b + nonzero(x % b)`` as ``ceildiv(x, b)``."""
    for monomial, factor in size.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Operation) and monomial[0].kind == "nonzero":
            rest = monomial[0].operands[0]
            inner = next(iter(rest.atoms), "")
            if isinstance(inner, Operation) and inner.kind == "%" and rest == of_atom(inner):
                whole = operation("//", *inner.operands)
                if coefficient(size, next(iter(whole.atoms))) == number(factor):
                    taken = sum_of([whole, of_atom(monomial[0])])
                    return sum_of([size, taken * number(-factor), ceildiv(*inner.operands) * number(factor)])
    return size


def operation(kind: str, *operands: Size) -> Size:
    """Return an operation on sizes as a size; raise `UnreadableSize` when it is nested too deeply."""
    depth = 1 + max(
        (atom.depth for operand in operands for atom in operand.atoms if isinstance(atom, Operation)), default=0
    )
    if depth > _MOST_DEPTH:
        raise UnreadableSize("this size is nested too deeply")
    return of_atom(Operation(kind, operands, depth))


def whole_terms(a: Size, b: Size) -> tuple[Size, Size]:
    """Return a quotient and a rest with ``a = quotient * b + rest``, where only terms that divide are divided."""
    if len(b.terms) != 1:
        if a == b:
            return ONE, ZERO
        if (common := _common_factor(a, b)) is not None:
            return common, ZERO
        return ZERO, a
    divisor, factor = b.terms[0]
    quotient: list[tuple[Monomial, int]] = []
    rest: list[tuple[Monomial, int]] = []
    for monomial, times in a.terms:
        left: Monomial | None = monomial
        for atom in divisor:
            left = without_atom(left, atom) if left is not None and atom in left else None
        whole = times // factor if left is not None else 0
        if left is not None and (times % factor == 0 or (not monomial and not divisor)):
            quotient.append((left, whole))
            if times % factor:
                rest.append((monomial, times % factor))
        else:
            rest.append((monomial, times))
    return _collect(quotient), _collect(rest)


def _common_factor(a: Size, b: Size) -> Size | None:
    """Return ``a / b`` where ``a`` is ``b`` times one term, else None."""
    for monomial, factor in a.terms:
        first, times = b.terms[-1]
        left: Monomial | None = monomial
        for atom in first:
            left = without_atom(left, atom) if left is not None and atom in left else None
        if left is not None and factor % times == 0:
            candidate = Size(((left, factor // times),))
            if candidate * b == a:
                return candidate
    return None


def _divide(kind: str, a: Size, b: Size) -> Size:
    if b == ZERO:
        raise UnreadableSize("this divides by zero")
    quotient, rest = whole_terms(a, b)
    if rest == ZERO:
        return quotient
    if rest.constant is not None and b.constant is not None:
        whole = rest.constant // b.constant if kind == "//" else -(-rest.constant // b.constant)
        return quotient + number(whole)
    if kind == "ceildiv" and rest == ONE:
        return quotient + ONE
    if kind == "//":
        if rest == number(-1):
            return quotient - ONE
        if b.constant is not None and b.constant > 1 and rest.offset == b.constant - 1:
            return quotient + ceildiv(rest - number(rest.offset), b)
        if b.constant is None and rest.offset == -1 and len(rest.terms) > 1:
            return quotient + ceildiv(rest + ONE, b) - ONE
        if len(b.terms) > 1 and rest.offset == b.offset - 1 and _holds_terms(rest, b):
            return quotient + ceildiv(rest - b + ONE, b)
    shared = gcd(*(factor for _, factor in rest.terms), *(factor for _, factor in b.terms))
    if shared > 1:
        rest, b = (_collect((m, f // shared) for m, f in size.terms) for size in (rest, b))
        return quotient + _divide(kind, rest, b)
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and len(rest.terms[0][0]) == 1:
        atom = rest.terms[0][0][0]
        if isinstance(atom, Operation) and atom.kind == kind:
            return quotient + _divide(kind, atom.operands[0], atom.operands[1] * b)
    return quotient + operation(kind, rest, b)


def _holds_terms(a: Size, b: Size) -> bool:
    held = dict(a.terms)
    return all(held.get(monomial) == factor for monomial, factor in b.terms if monomial)
