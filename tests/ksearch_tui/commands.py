"""A command as a person runs it: in a process of its own, without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def ksearch(
    *arguments: str, cwd: Path | None = None, home: Path | None = None, timeout: float = 240, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run ``ksearch-tui`` with its output captured; with ``home``, it finds and leaves its files under that folder."""
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "CACHE", "CONFIG")} if home else {}
    return subprocess.run(
        [sys.executable, "-m", "ksearch_tui.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **folders, "COLUMNS": "100", **environ},
        stdin=subprocess.DEVNULL,
    )
