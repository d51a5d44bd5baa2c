"""A session on disk: created, opened, appended to. The file only grows; every event is safe before the next begins.

The file gets the permissions of any other document (the umask decides): it holds no secrets, and it is for sharing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from search.config import RunConfig
from search.events import Event
from sessions.blocks import SessionError
from sessions.schema import Contents, read_contents, write_event, write_header

__all__ = ["Session", "SessionError", "SessionStore", "read_session"]


@dataclass(frozen=True)
class Session:
    """A session as read: ``repair`` says what had to be left out ("" if nothing), ``created`` when and by what."""

    config: RunConfig
    events: list[Event]
    repair: str
    created: Mapping[str, Any]


def read_session(path: Path) -> Session:
    """Read a session without touching the file, even while a run is writing it; raise `SessionError`."""
    with _explained(path, "read"):
        descriptor = _open_regular(path, os.O_RDONLY)
        try:
            data = _read_all(descriptor)
        finally:
            os.close(descriptor)
    contents = _understand(path, data)
    torn = len(data) - contents.whole
    repair = f"the last {torn} bytes of '{path}' are an event cut short, and are left out" if torn else ""
    return Session(contents.config, contents.events, repair, contents.created)


class SessionStore:
    """A session file held open for appending, and locked against other programs until `close`.

    ``events`` are those that were in the file when it was opened; ``repair`` says what was cut off then.
    """

    def __init__(self, path: Path, descriptor: int, contents: Contents, repair: str) -> None:
        self.path = path
        self.config = contents.config
        self.created = contents.created
        self.events = contents.events
        self.repair = repair
        self._descriptor = descriptor
        self._size = contents.whole
        self._recorded = len(contents.events)

    @staticmethod
    def create(path: Path, config: RunConfig) -> SessionStore:
        """Start a new file at ``path``; raise `SessionError` when one is there already or it can't be written."""
        with _explained(path, "created"):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                if path.is_dir():
                    raise IsADirectoryError from None
                raise SessionError(f"'{path}' is already there: resume it, or choose another name") from None
        try:
            with _explained(path, "created"):
                _lock(path, descriptor)
                data = write_header(config, datetime.now(UTC)).encode()
                _write_whole(descriptor, data)
                _sync_folder(path.parent)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return SessionStore(path, descriptor, read_contents(data), "")

    @staticmethod
    def open(path: Path) -> SessionStore:
        """Open a file to go on with it; a torn last event is moved to a file beside it. Raises `SessionError`."""
        with _explained(path, "opened for writing"):
            descriptor = _open_regular(path, os.O_RDWR | os.O_APPEND)
        try:
            with _explained(path, "opened for writing"):
                _lock(path, descriptor)
                data = _read_all(descriptor)
                contents = _understand(path, data)
                if not contents.current:
                    raise SessionError(
                        f"'{path}' is of the older schema version {contents.version}: "
                        "it can be replayed and exported, but not gone on with"
                    )
                repair = _cut(path, descriptor, data, contents.whole) if contents.whole < len(data) else ""
        except BaseException:
            os.close(descriptor)
            raise
        return SessionStore(path, descriptor, contents, repair)

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def append(self, event: Event) -> None:
        """Record ``event``: one write and one sync. Raises `SessionError`, and then the file is as it was before."""
        if self._descriptor < 0:
            raise SessionError(f"'{self.path}' is closed")
        if event.seq != self._recorded + 1:
            raise SessionError(f"event {event.seq} does not follow event {self._recorded} of '{self.path}'")
        data = write_event(event).encode()
        try:
            with _explained(self.path, "written"):
                _write_whole(self._descriptor, data)
        except SessionError:
            # Where even this fails, the torn event is cut off when the file is next opened.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self._recorded += 1

    def close(self) -> None:
        """Let go of the file; other programs can open it. Closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _understand(path: Path, data: bytes) -> Contents:
    try:
        return read_contents(data)
    except SessionError as error:
        raise SessionError(f"'{path}' can't be read: {error}") from error


def _open_regular(path: Path, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe would wait for someone to write into it.
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError if path.is_dir() else SessionError(f"'{path}' is not a file that can hold a session")
    return descriptor


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SessionError(
            f"'{path}' is open in another ksearch-tui: close it there, or replay the file instead"
        ) from None


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def _write_whole(descriptor: int, data: bytes) -> None:
    """Append ``data`` and wait until it is on the disk; a write that the disk took only half of is an error."""
    written = os.write(descriptor, data)
    if written < len(data):
        raise OSError(f"only {written} of {len(data)} bytes could be written; is the disk full?")
    os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name in ``folder`` survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cut(path: Path, descriptor: int, data: bytes, whole: int) -> str:
    """Move what follows the first ``whole`` bytes of the file into a file beside it; return what to tell a person."""
    kept, torn = _create_beside(path)
    try:
        _write_whole(torn, data[whole:])
    finally:
        os.close(torn)
    os.ftruncate(descriptor, whole)
    os.fsync(descriptor)
    return f"the last event was cut short when the program stopped: {len(data) - whole} bytes were moved to '{kept}'"


def _create_beside(path: Path) -> tuple[Path, int]:
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.damaged-{number}")
        try:
            return kept, os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            number += 1


@contextlib.contextmanager
def _explained(path: Path, done: str) -> Iterator[None]:
    """Turn an operating system's refusal into a `SessionError` for a person."""
    try:
        yield
    except IsADirectoryError:
        raise SessionError(f"'{path}' is a folder: name a file in it") from None
    except FileNotFoundError:
        missing = path if path.parent.is_dir() else path.parent
        raise SessionError(f"'{path}' can't be {done}: there is no '{missing}'") from None
    except OSError as error:
        raise SessionError(f"'{path}' can't be {done}: {error.strerror or error}") from error
