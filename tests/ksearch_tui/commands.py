"""A command as a person runs it: in a process of its own, without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def ksearch(*arguments: str, cwd: Path | None = None, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run ``ksearch-tui`` with its output captured."""
    return subprocess.run(
        [sys.executable, "-m", "ksearch_tui.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
    )
