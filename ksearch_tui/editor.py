"""A text in a person's own editor, in the terminal that the app lends it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from pathlib import Path

from textual.app import App, SuspendNotSupported


class EditorError(RuntimeError):
    """The editor could not be used; the message says why."""


def editor_command() -> list[str]:
    """Return the command in ``$VISUAL`` or ``$EDITOR``; raise `EditorError` when that names no program."""
    spelled = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(spelled)
    except ValueError as error:
        raise EditorError(f"$EDITOR is '{spelled}', which can't be read as a command: {error}") from error
    if not command:
        raise EditorError("there is no editor: set $VISUAL or $EDITOR, such as EDITOR=nano")
    if shutil.which(command[0]) is None:
        raise EditorError(f"the editor '{command[0]}' is not there: set $VISUAL or $EDITOR to one that is")
    return command


def write_draft(text: str, name: str) -> Path:
    """Write ``text`` into a new private folder under ``name`` and return its path."""
    path = Path(tempfile.mkdtemp(prefix="ksearch-edit-")) / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def write_new(folder: Path, stem: str, suffix: str, text: str) -> Path:
    """Write ``text`` into a file of ``folder`` that was not there (``stem``, ``stem-2`` ...); raises OSError."""
    number = 1
    while True:
        path = folder / f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
        try:
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            return path
        except FileExistsError:
            number += 1


def discard_draft(path: Path) -> None:
    """Remove a draft and its folder."""
    path.unlink(missing_ok=True)
    path.parent.rmdir()


async def edit_file(app: App[object], path: Path) -> str:
    """Let a person edit ``path`` and return its text; the run goes on meanwhile. Raises `EditorError`."""
    command = editor_command()
    # An interrupt typed in the editor reaches this process too. A handler, unlike ignoring, is not inherited.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        # Nothing may be painted over the editor while the run goes on.
        with app.suspend(), app.batch_update():
            editor = await asyncio.create_subprocess_exec(*command, str(path))
            code = await editor.wait()
    except SuspendNotSupported as error:
        raise EditorError("this terminal can't be lent to an editor") from error
    except OSError as error:
        raise EditorError(f"'{command[0]}' did not start: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)
    if code != 0:
        raise EditorError(f"'{command[0]}' ended with code {code}; nothing was changed")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EditorError(f"{path} can't be read: {error}") from error
