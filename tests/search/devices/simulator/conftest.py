"""One simulator and one cache of compiled kernels for all of its tests, and short ways to write a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from profiles.counts import PassCounts
from profiles.hardware import load_profile
from search.devices.base import KernelFault
from search.devices.simulator.device import COUNTING_BUDGET, SimulatorDevice
from search.kernels.dtypes import DTYPES, Array, DType
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

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
