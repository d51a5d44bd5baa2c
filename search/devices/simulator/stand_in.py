"""``mx.fast.metal_kernel`` on the simulator: a Python program whose kernels need an Apple GPU runs on any machine.

MLX's own operations run on its CPU backend, which gives the same values; the Metal kernels that a program makes with
``mx.fast.metal_kernel`` run here, with their faults told by the line of the program's own text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest.mock import patch

import mlx.core as mx
import numpy as np

from search.devices.base import CheckReport, DeviceTime, KernelFault
from search.devices.mlx_kernel import from_mlx, to_mlx
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES, Array, DType
from search.kernels.program import ArraySpec, BoundPass, BoundProgram
from translator.reach import plain_comments


@dataclass
class Ledger:
    """What was run under `metal_simulated`: each kernel by name, in the order of their first launches."""

    kernels: dict[str, KernelRecord] = field(default_factory=dict)


@dataclass
class KernelRecord:
    """The launches of one kernel, the seconds that the simulator took for them, and what it found.

    ``reports`` has each thing at one place once, ``overruns`` the outputs that were written outside of their bounds
    (in checked mode the reports have the line), ``faults`` what ended a launch. Of ``partly_checked`` launches not all
    threadgroups were checked in the time there was. ``modelled`` are the seconds that the launches would take on the
    device's profile, where that was asked for, and ``bounds`` those seconds by the term that bounds them.
    """

    launches: int = 0
    seconds: float = 0.0
    reports: dict[str, CheckReport] = field(default_factory=dict)
    overruns: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    partly_checked: int = 0
    modelled: float = 0.0
    bounds: dict[str, float] = field(default_factory=dict)


@contextmanager
def metal_simulated(
    device: SimulatorDevice, *, checked: bool = False, timed: bool = False, time_limit: float = 60.0
) -> Iterator[Ledger]:
    """Let MLX find a Metal GPU whose kernels run on ``device``, in this process, until the block ends.

    ``checked``: every launch runs in checked mode and its reports are kept in the ledger. ``timed``: the first launch
    of a kernel with given shapes is counted, and its modelled time stands for all with them. ``time_limit``: seconds
    for a launch. A kernel that does not compile or end raises `KernelFault` where the program launched it. Functions
    made with ``mx.compile`` run uncompiled; under ``mx.vmap`` a kernel can't run.
    """
    ledger = Ledger()
    desk = _Desk(device, ledger, checked, timed, time_limit)

    def metal_kernel(
        name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, **more: Any
    ) -> SimulatedKernel:
        return SimulatedKernel(_Made(name, tuple(input_names), tuple(output_names), source, **more), desk)

    cpu_stream = mx.default_stream(mx.cpu)
    on_cpu = mx.stream
    instead: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (mx.fast, "metal_kernel", metal_kernel),
        (mx.metal, "is_available", lambda: True),
        (mx, "default_device", lambda: mx.Device(mx.gpu)),
        (mx, "set_default_device", lambda device: None),
        (mx, "default_stream", lambda device=None: cpu_stream),
        (mx, "new_stream", lambda device=None: cpu_stream),
        (mx, "stream", lambda stream: on_cpu(mx.cpu)),
    )
    with ExitStack() as patches:
        for where, name, function in instead:
            patches.enter_context(patch.object(where, name, function))
        mx.disable_compile()
        patches.callback(mx.enable_compile)
        yield ledger


@dataclass(frozen=True)
class _Made:
    """What ``mx.fast.metal_kernel`` was given."""

    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: str
    header: str = ""
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False


@dataclass(frozen=True)
class SimulatedKernel:
    """Stands for what ``mx.fast.metal_kernel`` returns; a call runs at once and returns evaluated arrays."""

    made: _Made
    desk: _Desk

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
        template: Sequence[tuple[str, Any]] = (),
        init_value: float | None = None,
        **_: Any,
    ) -> list[mx.array]:
        """Run one launch; arguments as MLX has them (``stream`` and ``verbose`` say nothing here).

        Raise `KernelFault` for a kernel that doesn't compile or end, `RuntimeError` within ``mx.vmap``.
        """
        for given, names in ((inputs, self.made.input_names), (output_shapes, self.made.output_names)):
            if len(given) != len(names):
                raise ValueError(f"'{self.made.name}' has {len(names)} arrays ({', '.join(names)}), not {len(given)}")
        arrays = self._evaluated(inputs)
        reads = tuple(spec_of(name, array) for name, array in zip(self.made.input_names, arrays, strict=True))
        writes = tuple(
            ArraySpec(name, tuple(shape), dtype_of(dtype))
            for name, shape, dtype in zip(self.made.output_names, output_shapes, output_dtypes, strict=True)
        )
        step = BoundPass(
            self.made.name,
            reads,
            writes,
            plain_comments(self.made.source),
            plain_comments(self.made.header),
            _triple(grid),
            _triple(threadgroup),
            tuple((name, _template_value(value)) for name, value in template or ()),
            init_value,
            self.made.atomic_outputs,
        )
        stored = {spec.name: from_mlx(array, spec.dtype) for spec, array in zip(reads, arrays, strict=True)}
        outputs = self.desk.run(step, stored)
        return [to_mlx(outputs[spec.name], spec.dtype) for spec in writes]

    def _evaluated(self, inputs: Sequence[Any]) -> list[mx.array]:
        arrays = [value if isinstance(value, mx.array) else scalar(value) for value in inputs]
        if self.made.ensure_row_contiguous:
            arrays = [mx.contiguous(array) for array in arrays]
        try:
            mx.eval(arrays)
        except ValueError as error:
            raise RuntimeError(f"the simulator can't run '{self.made.name}' here: {error}") from error
        return arrays


@dataclass
class _Desk:
    """Runs launches one after another, and enters them in the ledger."""

    device: SimulatorDevice
    ledger: Ledger
    checked: bool
    timed: bool
    time_limit: float
    times: dict[BoundPass, DeviceTime] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, step: BoundPass, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run one launch; raise `KernelFault` with the kernel's name and line before its message."""
        program = BoundProgram((step,), tuple(spec.name for spec in step.outputs))
        with self.lock:
            record = self.ledger.kernels.setdefault(step.name, KernelRecord())
            record.launches += 1
            start = perf_counter()
            try:
                outputs = self._outputs(program, inputs, record)
                if self.timed:
                    self._time(program, inputs, record)
            except KernelFault as fault:
                told = f"{step.name}{_where(fault)}: {fault.message}"
                record.faults.append(told)
                raise KernelFault(
                    fault.stage, told, pass_name=fault.pass_name, line=fault.line, in_header=fault.in_header
                ) from fault
            finally:
                record.seconds += perf_counter() - start
        return outputs

    def _outputs(self, program: BoundProgram, inputs: Mapping[str, Array], record: KernelRecord) -> Mapping[str, Array]:
        if self.checked:
            checked = self.device.check(program, inputs, time_limit=self.time_limit)
            for report in checked.reports:
                place = f"{report.stage} {report.in_header} {report.line} {report.other_line}"
                record.reports.setdefault(place, report)
            if checked.complete:
                return checked.outputs
            record.partly_checked += 1
        result = self.device.run(program, inputs, time_limit=self.time_limit)
        record.overruns |= set(result.overruns)
        return result.outputs

    def _time(self, program: BoundProgram, inputs: Mapping[str, Array], record: KernelRecord) -> None:
        (step,) = program.passes
        if step not in self.times:
            self.times[step] = self.device.time(program, inputs, time_limit=self.time_limit)
        time = self.times[step]
        record.modelled += time.seconds
        record.bounds[time.bound_by] = record.bounds.get(time.bound_by, 0.0) + time.seconds


def _where(fault: KernelFault) -> str:
    return f", line {fault.line} of its {'header' if fault.in_header else 'source'}" if fault.line else ""


def _triple(numbers: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (int(number) for number in numbers)
    return x, y, z


def _template_value(value: Any) -> int | bool | DType:
    return dtype_of(value) if isinstance(value, mx.Dtype) else value


def dtype_of(dtype: mx.Dtype) -> DType:
    """Return ``dtype`` as `DTYPES` has it; raise `TypeError` for one that no kernel here takes (complex64)."""
    name = str(dtype).removeprefix("mlx.core.").rstrip("_")
    if name not in DTYPES:
        raise TypeError(f"the simulator has no arrays of {name}")
    return DTYPES[name]


def scalar(value: float) -> mx.array:
    """Return a Python number as the array that MLX makes of it for a kernel: int32, float32 or bool."""
    kind = mx.bool_ if isinstance(value, bool) else mx.int32 if isinstance(value, int) else mx.float32
    return mx.array(value, kind)


def spec_of(name: str, array: mx.array) -> ArraySpec:
    """Return shape, type and, where it is not row-contiguous, strides of an evaluated array."""
    bits: Any = array.view(mx.uint16) if array.dtype == mx.bfloat16 else array  # numpy has no bfloat16
    view = np.asarray(memoryview(bits))
    strides = tuple(stride // view.itemsize for stride in view.strides)
    return ArraySpec(name, view.shape, dtype_of(array.dtype), () if view.flags.c_contiguous else strides)
