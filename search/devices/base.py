"""What the evaluation needs from a device: run a bound program once, and say how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from search.kernels.dtypes import Array
from search.kernels.program import BoundProgram

MEASURED = "measured"
MODELLED = "modelled"


class DeviceUnavailable(RuntimeError):
    """This machine can't run the device; the message says what is missing and how to get it."""


class KernelFault(RuntimeError):
    """A kernel could not be compiled or did not end well.

    ``stage`` is ``lint``, ``compile``, ``crash``, ``timeout``, ``bounds``, ``divergence``, ``memory``, ``sandbox`` or
    ``launch``; ``line`` counts from 1 in the pass's ``source`` (or its ``header`` when ``in_header``), None when it is
    not known.
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


@dataclass(frozen=True)
class CheckReport:
    """One thing that a checked run found wrong: which kind, in words to act on, and where.

    ``stage`` is ``race``, ``bounds``, ``uninitialised``, ``misaligned``, ``divergence``, or that of a `KernelFault`.
    ``line`` and ``other_line`` (of a race) count from 1 in the source or header. ``certain`` is False for what is wrong
    only if its result is used.
    """

    stage: str
    message: str
    pass_name: str = ""
    line: int | None = None
    in_header: bool = False
    other_line: int | None = None
    other_in_header: bool = False
    certain: bool = True


@dataclass(frozen=True)
class Checked:
    """What a checked run found, its outputs, and whether every threadgroup ran in the time there was."""

    reports: tuple[CheckReport, ...]
    outputs: Mapping[str, Array]
    complete: bool


@runtime_checkable
class Checking(Protocol):
    """A device that can also say why a kernel is wrong."""

    def check(self, bound: BoundProgram, inputs: Mapping[str, Array], *, time_limit: float, seed: int = 0) -> Checked:
        """Run once, every access watched, threads in an order that ``seed`` chooses; at most ``time_limit`` seconds."""


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
