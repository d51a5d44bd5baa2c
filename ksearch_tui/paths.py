"""Where the program keeps a person's files, by the platform's own conventions."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from platformdirs import user_cache_path, user_config_path, user_data_path

SUFFIX = ".ksearch.toml"


def sessions_folder() -> Path:
    """Return the folder of sessions that were started without a file name."""
    return user_data_path("ksearch-tui") / "sessions"


def own_endpoints() -> Path:
    """Return the folder where a person puts model endpoints of their own."""
    return user_config_path("ksearch-tui") / "models"


def endpoint_memory() -> Path:
    """Return the file that keeps what model endpoints turned out to take."""
    return user_cache_path("ksearch-tui") / "endpoints.toml"


def new_session_path(problem: str, now: datetime | None = None) -> Path:
    """Return a path that is not taken yet, named after the problem and the time; its folder is made."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(problem).name).strip("-") or "session"
    moment = (now or datetime.now(UTC)).astimezone().strftime("%Y%m%d-%H%M%S")
    folder = sessions_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path, count = folder / f"{stem}-{moment}{SUFFIX}", 1
    while path.exists():
        count += 1
        path = folder / f"{stem}-{moment}-{count}{SUFFIX}"
    return path


def recent_sessions(limit: int = 8) -> list[Path]:
    """Return the sessions in the folder, newest first."""
    found = [path for path in sessions_folder().glob(f"*{SUFFIX}") if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:limit]
