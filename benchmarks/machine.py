"""The machine that a figure comes from, and the TOML file beside a benchmark that keeps both."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge a figure: processor, cores, system, versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "textual": version("textual"),
        "mlx": version("mlx"),
    }


def record(script: str, figures: dict[str, Any]) -> None:
    """Print ``figures`` and write them with the machine and the day to a TOML file beside ``script``."""
    rounded = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()}
    data = {"measured": datetime.now(UTC).date(), "figures": rounded, "machine": machine()}
    path = Path(script).with_suffix(".toml")
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    for key, value in rounded.items():
        print(f"{key:<36}{value}")


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
