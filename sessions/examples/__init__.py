"""Recorded runs that come with the package, to replay without a GPU, a compiler or a model."""

from __future__ import annotations

import difflib
from pathlib import Path

from sessions.blocks import SessionError

_SUFFIX = ".ksearch.toml"


def example_names() -> list[str]:
    """Return the names of the recorded example sessions."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in Path(__file__).parent.glob(f"*{_SUFFIX}"))


def example_path(name: str) -> Path:
    """Return the file of an example session; raise `SessionError` with the nearest name when there is none."""
    if name not in example_names():
        close = difflib.get_close_matches(name, example_names(), n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(example_names())}"
        raise SessionError(f"there is no example session '{name}': {hint}")
    return Path(__file__).parent / f"{name}{_SUFFIX}"
