"""Where the app starts, as the command line says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from search.config import RunConfig
from search.events import Event
from search.tree import Tree
from sessions.store import SessionStore


@dataclass(frozen=True)
class AtStart:
    """The start screen; ``config`` fills its fields (None: defaults for this machine), ``said`` is what went wrong."""

    config: RunConfig | None = None
    said: str = ""


@dataclass(frozen=True)
class AtExplorer:
    """The explorer, on a new run whose session goes to ``session_path``, or on a resumed one (``store`` and ``tree``).

    The app closes ``store``.
    """

    config: RunConfig
    session_path: Path
    autopilot: bool = False
    store: SessionStore | None = None
    tree: Tree | None = None


@dataclass(frozen=True)
class AtReplay:
    """The replay of recorded events, under a title; ``speed`` times the run's own pace, ``paused`` at first or not."""

    events: Sequence[Event]
    config: RunConfig
    title: str
    speed: float = 1.0
    paused: bool = False


StartAt = AtStart | AtExplorer | AtReplay
