"""How long the two headless runs take on the simulator: whole processes, first with empty caches, then with warm ones.

Writes runs.toml. The kernel cache is a fresh folder, so the first run of each problem compiles everything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import record

RUNS = (("attention_prefill", 12), ("softmax", 8))


def timed(problem: str, budget: int, cache: Path, session: Path) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ksearch_tui.cli", "run", problem, "--device", "simulator", "--json"),
            *("--budget", str(budget), "--session", str(session)),
        ],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "KSEARCH_CACHE": str(cache)},
    )
    return time.perf_counter() - began, json.loads(done.stdout)


def main() -> None:
    figures: dict[str, Any] = {}
    for problem, budget in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                session = Path(folder) / f"{state}.ksearch.toml"
                seconds, result = timed(problem, budget, Path(folder) / "cache", session)
                figures[f"{problem}_{state}_seconds"] = seconds
            figures[f"{problem}_budget"] = budget
            figures[f"{problem}_modelled_speedup_over_naive"] = result["best"]["speedup_over_root"]
            figures[f"{problem}_modelled_roofline_fraction"] = result["best"]["roofline_fraction"]
    record(__file__, figures)


if __name__ == "__main__":
    main()
