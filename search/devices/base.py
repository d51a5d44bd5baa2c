"""What the evaluation needs from a device: run a bound program once, and say how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from search.kernels.dtypes import Array
from search.kernels.program import BoundProgram

MEASURED = "measured"
MODELLED = "modelled"


class DeviceUnavailable(RuntimeError):
    """This machine can't run the device; the message says what is missing and how to get it."""


class KernelFault(RuntimeError):
    """A kernel could not be compiled or did not end well.

    ``stage`` is ``lint``, ``compile``, ``crash``, ``timeout``, ``bounds``, ``divergence``, ``memory`` or ``launch``;
    ``line`` counts from 1 in the pass's ``source`` (or its ``header`` when ``in_header``), None when not known.
    """

    def __init__(
        self, stage: str, message: str, *, pass_name: str = "", line: int | None = None, in_header: bool = False
    ) -> None:
        super().__init__(message)
        self.stage, self.message = stage, message
        self.pass_name, self.line, self.in_header = pass_name, line, in_header


@dataclass(frozen=True)
class RunResult:
    """The outputs of one run by name, in storage dtype, and the names of arrays written outside their bounds."""

    outputs: Mapping[str, Array]
    overruns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassTime:
    """Modelled seconds of one pass, the terms that make them up (seconds by name), and the term that bounds it."""

    name: str
    seconds: float
    terms: Mapping[str, float]
    bound_by: str


@dataclass(frozen=True)
class DeviceTime:
    """How long one run takes: ``kind`` is ``measured`` or ``modelled``, never mixed; ``on`` says which GPU or profile.

    ``low``/``high`` bound the median's 95 % confidence interval of a measurement; they equal ``seconds`` when modelled.
    """

    kind: str
    on: str
    seconds: float
    low: float
    high: float
    bound_by: str = ""
    passes: tuple[PassTime, ...] = field(default=())


class Device(Protocol):
    """A place where a program runs."""

    name: str

    def describe(self) -> str:
        """Return what a person should see as the device, such as ``simulator → apple-m3-max (modelled)``."""

    def compile(self, bound: BoundProgram) -> None:
        """Compile every pass; raise `KernelFault` (stage ``compile``) with the kernel's own line. Repeats are free."""

    def run(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> RunResult:
        """Run once on ``inputs`` (storage dtype) with outputs poisoned and guarded; raise `KernelFault` on failure."""

    def time(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float) -> DeviceTime:
        """Return the time of one run."""

    def close(self) -> None:
        """Release processes and files."""
