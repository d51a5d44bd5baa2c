"""A recorded run as something to walk through: forwards, backwards, and to any place."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from typing import Any

from search.events import Event
from search.tree import Tree, TreeError
from sessions.blocks import SessionError

# Going back folds again from the last checkpoint: few events to fold, and few trees to keep.
_CHECKPOINT_EVERY = 250
_LONGEST_GAP_SECONDS = 3.0


class Replay:
    """A cursor over the events of a run; ``tree`` is the state after the first ``position`` of them, to look at only.

    The whole run is folded once at the start: so events that don't fit together raise `SessionError` here, and no
    step does later.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(events)
        self.position = 0
        self.tree = Tree()
        self._checkpoints = [(0, Tree())]
        folding = Tree()
        for event in self.events:
            try:
                folding.apply(event)
            except TreeError as error:
                raise SessionError(f"the recorded run does not fit together: {error}") from error
            if event.seq % _CHECKPOINT_EVERY == 0:
                self._checkpoints.append((event.seq, _copy(folding)))

    def step(self) -> Event | None:
        """Go on by one event and return it; None at the end."""
        if self.position == len(self.events):
            return None
        event = self.events[self.position]
        self.tree.apply(event)
        self.position += 1
        return event

    def back(self) -> None:
        """Go back by one event; nothing happens at the start."""
        self.seek(self.position - 1)

    def seek(self, position: int) -> None:
        """Go to the state after the first ``position`` events, or to the nearest end when there are not that many."""
        position = min(max(position, 0), len(self.events))
        nearest = bisect.bisect_right(self._checkpoints, position, key=lambda checkpoint: checkpoint[0]) - 1
        start, tree = self._checkpoints[nearest]
        if not start <= self.position <= position:
            self.position, self.tree = start, _copy(tree)
        while self.position < position:
            self.step()

    def delay(self, speed: float) -> float:
        """Return the seconds to wait before the next event at ``speed`` times the run's own pace, long gaps cut short.

        0 at the start and the end. ``speed`` must be above 0.
        """
        if speed <= 0:
            raise ValueError(f"a replay's speed must be above 0, not {speed}")
        if not 0 < self.position < len(self.events):
            return 0.0
        before, after = (datetime.fromisoformat(self.events[place].at) for place in (self.position - 1, self.position))
        return min(max((after - before).total_seconds(), 0.0), _LONGEST_GAP_SECONDS) / speed


def _copy(tree: Tree) -> Tree:
    """Return a tree that can go its own way: its containers are its own, the frozen records in them are shared."""
    return Tree(**{field.name: _own(getattr(tree, field.name)) for field in fields(tree)})


def _own(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _own(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_own(entry) for entry in value]
    return set(value) if isinstance(value, set) else value
