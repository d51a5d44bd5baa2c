"""How long `ksearch-tui --version` takes: the median of 21 runs of the installed command. Writes version_time.toml."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import record


def main() -> None:
    command = shutil.which("ksearch-tui", path=str(Path(sys.executable).parent))
    if command is None:
        raise SystemExit("ksearch-tui is not installed beside this Python")
    seconds = []
    for _ in range(21):
        began = time.perf_counter()
        subprocess.run([command, "--version"], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    record(__file__, {"median_seconds": statistics.median(seconds), "worst_seconds": max(seconds)})


if __name__ == "__main__":
    main()
