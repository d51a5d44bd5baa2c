"""Going on with a recorded run."""

from __future__ import annotations

from pathlib import Path

from search.tree import Tree, TreeError
from sessions.store import SessionError, SessionStore


def resume_state(path: Path) -> tuple[SessionStore, Tree]:
    """Open the session at ``path`` for appending and return it with the tree that its events make.

    Raises `SessionError` when the file can't be opened or its events don't fit together; then it is closed again.
    """
    store = SessionStore.open(path)
    try:
        return store, Tree.fold(store.events)
    except TreeError as error:
        store.close()
        raise SessionError(f"'{path}' can't be resumed: {error}") from error
