"""Lines with the calls that led to them, as the runner reports them (``ksr_trail`` in runtime/calls.h)."""

from __future__ import annotations

from search.devices.simulator.unit import Unit

_BITS, _MOST = 20, 3


def lines_of(trail: int) -> tuple[int, ...]:
    """Return the line that ``trail`` ends in, then those that called from, as far as they are noted."""
    lines = [trail >> _BITS * index & (1 << _BITS) - 1 for index in range(_MOST)]
    return (lines[0], *(line for line in lines[1:] if line))


def where(unit: Unit, trail: int, preposition: str = "in") -> str:
    """Return ' in line 2 of the header, called from line 7', empty for what is no line of the kernel."""
    line, *callers = lines_of(trail)
    if not (here := _name(unit, line)):
        return ""
    called = "".join(f", called from {place}" for caller in callers if (place := _name(unit, caller)))
    return f" {f'{preposition} {here}'.strip()}{called}"


def parting(trail: int, other: int) -> tuple[int, int]:
    """Return the lines where two trails part, as seen from outside: what lies between the two calls, or accesses."""
    ways = lines_of(trail), lines_of(other)
    apart = ((here, there) for here, there in zip(*map(reversed, ways), strict=False) if here != there)
    return next(apart, (ways[0][0], ways[1][0]))


def _name(unit: Unit, line: int) -> str:
    place = unit.locate(line)
    return f"line {place[0]}{' of the header' if place[1] else ''}" if place else ""
