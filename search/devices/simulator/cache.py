"""What was made once and is kept: compiled kernels, the runner, what is known of the compiler.

Everything lies in the user's cache under a hash of all that went into it, and gets there by a rename: two processes
that make the same thing at once both succeed, and none sees a half-written file.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from search.devices.base import DeviceUnavailable


def cache_folder() -> Path:
    """Return the folder for compiled things: $KSEARCH_CACHE, else the user's cache; raise `DeviceUnavailable`."""
    if chosen := os.environ.get("KSEARCH_CACHE"):
        folder = Path(chosen)
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "ksearch-tui"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ksearch-tui"
    folder = folder / "simulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceUnavailable(f"can't write the cache {folder}: {error.strerror}; set KSEARCH_CACHE") from error
    return folder


def kept(name: str, suffix: str, ingredients: list[str], build: Callable[[Path, Path], None]) -> Path:
    """Return the file that ``ingredients`` make, made by ``build(scratch folder, file to write)`` when it is new."""
    folder = cache_folder()
    digest = hashlib.sha256("\0".join(ingredients).encode()).hexdigest()[:32]
    path = folder / f"{name}-{digest}{suffix}"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as scratch:
        result = Path(scratch) / f"result{suffix}"
        build(Path(scratch), result)
        os.replace(result, path)
    return path
