"""What the writer makes of a CUDA source: Metal passes as MLX builds them, or the reasons why there are none."""

from __future__ import annotations

from dataclasses import dataclass

from translator.launch_plan import Triple
from translator.span import Span


@dataclass(frozen=True)
class Refusal:
    """Something that has no correct translation: which kernel, why, and what a person could do. Numbers start at 1."""

    number: int
    kernel: str
    reason: str
    advice: str
    span: Span

    def __str__(self) -> str:
        return f"{self.span.line}:{self.span.column}: {self.reason}: {self.advice}"


@dataclass(frozen=True)
class TranslatedPass:
    """One Metal kernel as ``mx.fast.metal_kernel`` takes it, made of one launch.

    ``grid`` counts **threads**. ``template`` pairs a name with a dtype name, ``true``, ``false``, or an integer text
    over axes. ``init_value`` fills every output before the launch. ``header_lines`` and ``source_lines`` give each line
    of the two texts the CUDA line that it came from, 0 for one that is written anew.
    """

    name: str
    kernel: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    header: str
    source: str
    grid: Triple
    threadgroup: Triple
    template: tuple[tuple[str, str], ...]
    init_value: float | None
    header_lines: tuple[int, ...]
    source_lines: tuple[int, ...]


@dataclass(frozen=True)
class NamedArray:
    """An array of the passes: ``origin`` is the name that the plan has for it, ``shape`` is () for a scalar."""

    name: str
    origin: str
    shape: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Translation:
    """Passes in launch order, the arrays between them, and those that go in and come out.

    An array that a kernel changes in place goes in as ``x`` and comes out as ``x_out``. There is no pass for a kernel
    with a refusal. ``notes`` are what a person should know besides: conditions that Metal adds.
    """

    passes: tuple[TranslatedPass, ...]
    buffers: tuple[NamedArray, ...]
    inputs: tuple[NamedArray, ...]
    outputs: tuple[NamedArray, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()
