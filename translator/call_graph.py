"""Which functions lead back to themselves."""

from __future__ import annotations

from collections.abc import Mapping


def on_loops(calls: Mapping[str, set[str]]) -> set[str]:
    """Return the functions on a loop of calls, or between two: each maps to those that it calls, all of them keys.

    Functions that call nothing that is left are taken away, then those that nothing left calls: linear in the calls.
    """
    callers: dict[str, set[str]] = {name: set() for name in calls}
    for name, called in calls.items():
        for other in called:
            callers[other].add(name)
    left = _without_ends(calls, callers)
    return _without_ends({name: callers[name] & left for name in left}, {name: calls[name] & left for name in left})


def _without_ends(edges: Mapping[str, set[str]], back: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes from which a loop of the graph can be reached; ``back`` has its edges the other way round."""
    open_edges = {name: len(others) for name, others in edges.items()}
    ends = [name for name, count in open_edges.items() if not count]
    gone = set(ends)
    while ends:
        for before in back[ends.pop()]:
            open_edges[before] -= 1
            if not open_edges[before]:
                ends.append(before)
                gone.add(before)
    return set(edges) - gone
