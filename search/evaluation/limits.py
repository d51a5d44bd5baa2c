"""How long an evaluation may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Seconds that one run of a check, the timing of one workload, and a whole evaluation may take."""

    run: float = 10.0
    timing: float = 60.0
    evaluation: float = 180.0


DEFAULT_LIMITS = Limits()
