"""One simulator and one cache of compiled kernels for all of its tests, and short ways to write a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from profiles.counts import PassCounts
from profiles.hardware import load_profile
from search.devices.base import Checked, KernelFault
from search.devices.simulator.cuda_device import CudaSimulator
from search.devices.simulator.device import COUNTING_BUDGET, SimulatorDevice
from search.kernels.cuda_program import (
    CUDA_DTYPES,
    ArrayValue,
    CudaArray,
    CudaLaunch,
    CudaProgram,
    IntegerValue,
    RealValue,
    StructValue,
    Value,
)
from search.kernels.dtypes import DTYPES, Array, DType
from search.kernels.program import ArraySpec, BoundPass, BoundProgram
from translator.launch_plan import Role

Triple = tuple[int, int, int]
SECONDS = 20.0


def spec_of(name: str, array: Array) -> ArraySpec:
    """Return the spec of an array whose numpy type is that of its dtype (no bfloat16)."""
    return ArraySpec(name, array.shape, DTYPES[array.dtype.name])


@dataclass(frozen=True)
class Bench:
    """Writes, runs and counts single kernels on one device."""

    device: SimulatorDevice

    def bind(
        self,
        source: str,
        *,
        inputs: Mapping[str, Array] | None = None,
        outputs: Mapping[str, tuple[tuple[int, ...], str]],
        grid: Triple | int,
        threadgroup: Triple | int,
        header: str = "",
        template: Mapping[str, int | bool | DType] | None = None,
        dtypes: Mapping[str, str] | None = None,
        init_value: float | None = None,
        atomic_outputs: bool = False,
    ) -> BoundProgram:
        """Return a program of one pass; an int for grid or threadgroup is an extent in x."""
        known = dtypes or {}
        reads = tuple(
            ArraySpec(name, array.shape, DTYPES[known[name]]) if name in known else spec_of(name, array)
            for name, array in (inputs or {}).items()
        )
        writes = tuple(ArraySpec(name, shape, DTYPES[dtype]) for name, (shape, dtype) in outputs.items())
        step = BoundPass(
            "kernel",
            reads,
            writes,
            source,
            header,
            (grid, 1, 1) if isinstance(grid, int) else grid,
            (threadgroup, 1, 1) if isinstance(threadgroup, int) else threadgroup,
            tuple((template or {}).items()),
            init_value,
            atomic_outputs,
        )
        return BoundProgram((step,), tuple(outputs))

    def run(self, source: str, **launch: Any) -> Mapping[str, Array]:
        """Run one kernel that must end well; return its outputs."""
        inputs = launch.get("inputs") or {}
        result = self.device.run(self.bind(source, **launch), inputs, time_limit=SECONDS)
        assert result.overruns == ()
        return result.outputs

    def fault(self, source: str, *, seconds: float = SECONDS, **launch: Any) -> KernelFault:
        """Run one kernel that must not end well; return why."""
        with pytest.raises(KernelFault) as caught:
            self.device.run(self.bind(source, **launch), launch.get("inputs") or {}, time_limit=seconds)
        return caught.value

    def counts(self, source: str, *, budget: int = COUNTING_BUDGET, **launch: Any) -> PassCounts:
        """Return the counts of one kernel."""
        bound, inputs = self.bind(source, **launch), launch.get("inputs") or {}
        return self.device.count(bound, inputs, time_limit=SECONDS, budget=budget)[0]


def dtype_of(name: str, array: Array, dtypes: Mapping[str, str]) -> DType:
    """Return the dtype that ``dtypes`` names, or that of the array's numpy type."""
    return CUDA_DTYPES[dtypes.get(name, array.dtype.name)]


@dataclass(frozen=True)
class CudaBench:
    """Writes, runs and checks small CUDA files.

    A kernel's arguments are names of arrays, ``(name, offset)`` into one, or numbers; ``inout`` arrays are inputs that
    are results too, and ``outputs`` and ``scratch`` have (shape, dtype) by name.
    """

    device: CudaSimulator

    def program(
        self,
        text: str,
        *launches: CudaLaunch,
        inputs: Mapping[str, Array] | None = None,
        inout: Mapping[str, Array] | None = None,
        outputs: Mapping[str, tuple[int, str]] | None = None,
        scratch: Mapping[str, tuple[int, str]] | None = None,
        zeroed: Mapping[str, tuple[int, str]] | None = None,
        dtypes: Mapping[str, str] | None = None,
    ) -> CudaProgram:
        """Return the program; see the class."""
        known = dtypes or {}
        arrays = []
        for role, given in ((Role.INPUT, inputs or {}), (Role.INOUT, inout or {})):
            for name, array in given.items():
                arrays.append(CudaArray(ArraySpec(name, array.shape, dtype_of(name, array, known)), role))
        for role, made in ((Role.OUTPUT, outputs or {}), (Role.SCRATCH, scratch or {}), (Role.OUTPUT, zeroed or {})):
            for name, (extent, dtype) in made.items():
                arrays.append(CudaArray(ArraySpec(name, (extent,), CUDA_DTYPES[dtype]), role, made is zeroed))
        return CudaProgram(text, launches, tuple(arrays))

    def run(self, text: str, *launches: CudaLaunch, **arrays: Any) -> Mapping[str, Array]:
        """Run a file that must end well and be free of findings, in the plain and the checked build; the outputs."""
        program, given = self.program(text, *launches, **arrays), self.given(arrays)
        result = self.device.run(program, given, time_limit=SECONDS)
        checked = self.device.check(program, given, time_limit=SECONDS, seed=3)
        assert result.overruns == ()
        assert [report.message for report in checked.reports if report.certain] == []
        for name, output in result.outputs.items():
            np.testing.assert_array_equal(checked.outputs[name], output)
        return result.outputs

    def check(self, text: str, *launches: CudaLaunch, seed: int = 0, **arrays: Any) -> Checked:
        """Run a file in checked mode."""
        program = self.program(text, *launches, **arrays)
        return self.device.check(program, self.given(arrays), time_limit=SECONDS, seed=seed)

    def fault(self, text: str, *launches: CudaLaunch, seconds: float = SECONDS, **arrays: Any) -> KernelFault:
        """Run a file that must not end well; return why."""
        with pytest.raises(KernelFault) as caught:
            self.device.run(self.program(text, *launches, **arrays), self.given(arrays), time_limit=seconds)
        return caught.value

    @staticmethod
    def given(arrays: Mapping[str, Any]) -> Mapping[str, Array]:
        """Return the arrays that have values."""
        return {**(arrays.get("inputs") or {}), **(arrays.get("inout") or {})}

    @staticmethod
    def launch(
        kernel: str,
        grid: Triple | int,
        block: Triple | int,
        *arguments: Any,
        template: tuple[str, ...] = (),
        shared: int = 0,
    ) -> CudaLaunch:
        """Return a launch; an int for grid or block is an extent in x."""
        return CudaLaunch(
            kernel,
            (grid, 1, 1) if isinstance(grid, int) else grid,
            (block, 1, 1) if isinstance(block, int) else block,
            tuple(map(value_of, arguments)),
            template,
            shared,
        )


def value_of(argument: Any) -> Value:
    """Return what a test writes as an argument: an array's name, (name, offset), a number, or a list of members."""
    if isinstance(argument, str):
        return ArrayValue(argument)
    if isinstance(argument, tuple):
        return ArrayValue(*argument)
    if isinstance(argument, list):
        return StructValue(tuple(map(value_of, argument)))
    return RealValue(argument) if isinstance(argument, float) else IntegerValue(argument)


@pytest.fixture(scope="session")
def cuda(bench: Bench) -> CudaBench:
    """A bench for CUDA files with the cache of the other one."""
    return CudaBench(CudaSimulator(workers=2))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench whose compiled kernels lie in the test run's own folder, shared by parallel workers."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if folder.name.startswith("popen-") else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSEARCH_CACHE", str(shared / "simulator-cache"))
        yield Bench(SimulatorDevice(load_profile("apple-m3-max"), workers=2))


@pytest.fixture
def random() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20)
