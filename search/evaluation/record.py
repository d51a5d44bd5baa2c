"""The frozen record of one evaluation, and its flat form in an event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PASSED = "passed"
FAILED = "failed"


@dataclass(frozen=True)
class Failure:
    """Why a program failed: at which stage, in words to act on, and the line (from 1) in the source or header."""

    stage: str
    message: str
    pass_name: str = ""
    line: int | None = None
    workload: str = ""
    in_header: bool = False


@dataclass(frozen=True)
class WorkloadTime:
    """Seconds of one run of one bench workload, its interval, the least time the hardware allows, and what bounds it.

    ``baseline_seconds`` is MLX's own call on the same device in the same run (0.0 where it can't run there).
    ``terms`` are modelled seconds by bound (``memory``, ``arithmetic`` ...), empty when measured.
    """

    workload: str
    seconds: float
    low: float
    high: float
    roofline_seconds: float
    baseline_seconds: float = 0.0
    bound_by: str = ""
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """What was found about one program on one device. Frozen: nothing changes it after the engine recorded it."""

    program: str
    outcome: str
    device: str
    kind: str
    on: str
    failure: Failure | None = None
    times: tuple[WorkloadTime, ...] = ()
    cases: int = 0
    worst_error: float = 0.0
    compile_seconds: float = 0.0
    elapsed_seconds: float = 0.0
    mlx_version: str = ""

    @property
    def passed(self) -> bool:
        """Whether the program is proven and timed."""
        return self.outcome == PASSED

    @property
    def roofline_fraction(self) -> float:
        """Geometric mean over workloads of least time over time, 0 when there is no time."""
        return _geometric_mean([t.roofline_seconds / t.seconds for t in self.times if t.seconds > 0])

    def speedup_over(self, other: Evaluation) -> float:
        """Geometric mean over shared workloads of the other's time by this one's; 0 when none or of another kind."""
        if (self.kind, self.on) != (other.kind, other.on):
            return 0.0
        theirs = {t.workload: t.seconds for t in other.times}
        return _geometric_mean(
            [theirs[t.workload] / t.seconds for t in self.times if t.workload in theirs and t.seconds > 0]
        )

    def speedup_over_baseline(self) -> float:
        """Geometric mean over workloads of MLX's own time by this one's; 0 where MLX was not measured."""
        return _geometric_mean(
            [t.baseline_seconds / t.seconds for t in self.times if t.baseline_seconds > 0 and t.seconds > 0]
        )

    def to_fields(self) -> dict[str, Any]:
        """Return the record as flat fields: strings, numbers and lists of them."""
        fields: dict[str, Any] = {
            "program": self.program,
            "outcome": self.outcome,
            "device": self.device,
            "time_kind": self.kind,
            "on": self.on,
            "cases": self.cases,
            "worst_error": self.worst_error,
            "compile_seconds": self.compile_seconds,
            "elapsed_seconds": self.elapsed_seconds,
            "mlx_version": self.mlx_version,
        }
        if self.failure:
            fields |= {
                "failure_stage": self.failure.stage,
                "failure_message": self.failure.message,
                "failure_pass": self.failure.pass_name,
                "failure_workload": self.failure.workload,
                "failure_in_header": self.failure.in_header,
            }
            if self.failure.line is not None:
                fields["failure_line"] = self.failure.line
        if self.times:
            fields |= {
                "workloads": [t.workload for t in self.times],
                "seconds": [t.seconds for t in self.times],
                "low": [t.low for t in self.times],
                "high": [t.high for t in self.times],
                "roofline_seconds": [t.roofline_seconds for t in self.times],
                "baseline_seconds": [t.baseline_seconds for t in self.times],
                "bound_by": [t.bound_by for t in self.times],
                "terms": [" ".join(f"{name}={value:.6g}" for name, value in t.terms.items()) for t in self.times],
            }
        return fields

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Evaluation:
        """Rebuild the record from `to_fields`; raises KeyError, TypeError or ValueError when it is not one."""
        failure = None
        if "failure_stage" in fields:
            failure = Failure(
                fields["failure_stage"],
                fields["failure_message"],
                fields["failure_pass"],
                fields.get("failure_line"),
                fields["failure_workload"],
                fields["failure_in_header"],
            )
        times = tuple(
            WorkloadTime(name, seconds, low, high, roof, base, bound, _terms(terms))
            for name, seconds, low, high, roof, base, bound, terms in zip(
                *(
                    fields.get(key, [])
                    for key in (
                        "workloads",
                        "seconds",
                        "low",
                        "high",
                        "roofline_seconds",
                        "baseline_seconds",
                        "bound_by",
                        "terms",
                    )
                ),
                strict=True,
            )
        )
        return Evaluation(
            fields["program"],
            fields["outcome"],
            fields["device"],
            fields["time_kind"],
            fields["on"],
            failure,
            times,
            fields["cases"],
            fields["worst_error"],
            fields["compile_seconds"],
            fields["elapsed_seconds"],
            fields["mlx_version"],
        )


def _terms(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in (entry.split("=") for entry in text.split())}


def _geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values and min(values) > 0 else 0.0
