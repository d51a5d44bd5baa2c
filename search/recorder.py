"""The one way into a tree: an event is stamped, applied, and told to every listener, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from search.events import Event
from search.tree import Tree

Listener = Callable[[Event], None]


class RecordError(RuntimeError):
    """A listener could not take an event (a full disk, say), so nothing more may happen in this run."""


class Recorder:
    """Emits events into ``tree``; after a listener has failed it emits nothing any more.

    An event that a listener emits while it is told of another is told to everyone after that other one.
    """

    def __init__(self, tree: Tree, clock: Callable[[], datetime]) -> None:
        self.tree = tree
        self.broken = ""
        self._cause: Exception | None = None
        self._clock = clock
        self._listeners: list[Listener] = []
        self._untold: deque[Event] = deque()
        self._telling = False

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell ``listener`` every event from now on; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, kind: str, **data: Any) -> Event:
        """Record one event; raise `TreeError` (nothing happened) or `RecordError` (the run must end)."""
        self.check()
        at = self._clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = Event(len(self.tree.events) + 1, at, kind, data)
        self.tree.apply(event)
        self._untold.append(event)
        if not self._telling:
            self._tell()
        return event

    def _tell(self) -> None:
        self._telling = True
        try:
            while self._untold:
                event = self._untold.popleft()
                for listener in tuple(self._listeners):
                    self._tell_one(listener, event)
        finally:
            self._telling = False
        self.check()

    def check(self) -> None:
        """Raise `RecordError` when a listener has failed."""
        if self.broken:
            raise RecordError(self.broken) from self._cause

    def _tell_one(self, listener: Listener, event: Event) -> None:
        try:
            listener(event)
        # Whatever went wrong in a listener: an event that is not recorded must end the run, so nothing is let through.
        except Exception as error:
            if not self.broken:
                told = str(error) or type(error).__name__
                self.broken = f"the run has ended: event {event.seq} ({event.kind}) could not be recorded: {told}"
                self._cause = error
