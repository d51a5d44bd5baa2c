"""mlx-lm believes that there is an Apple GPU, and its Metal kernels run on the simulator: their text is MLX's own."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.base import CheckReport
from search.devices.mlx_kernel import from_mlx, to_mlx
from search.devices.simulator.device import SimulatorDevice
from search.devices.simulator.stand_in import dtype_of, scalar, spec_of
from search.kernels.dtypes import Array
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

SECONDS = 60.0


def to_numpy(array: mx.array) -> Array:
    """Return ``array`` as float64 (or its integers)."""
    return (
        np.array(array.astype(mx.float32), np.float64) if mx.issubdtype(array.dtype, mx.floating) else np.array(array)
    )


@dataclass
class Kernel:
    """Stands for what ``mx.fast.metal_kernel`` returns: asks MLX for its text, then runs that on the simulator."""

    device: SimulatorDevice
    real: Any
    name: str
    file: str
    input_names: list[str]
    output_names: list[str]
    row_contiguous: bool
    launches: int = 0
    repair: Callable[[str], str] = str
    reports: list[CheckReport] | None = None
    """What the checked mode reports; None: run without it."""
    in_turns: bool = False
    """Whether simdgroups keep pace, operation by operation, which the checked mode can have them do."""

    def __call__(self, *, inputs: list[Any], **launch: Any) -> list[mx.array]:
        arrays = [value if isinstance(value, mx.array) else scalar(value) for value in inputs]
        if self.row_contiguous:
            arrays = [mx.contiguous(array) for array in arrays]
        mx.eval(arrays)
        self.launches += 1
        reads = tuple(spec_of(name, array) for name, array in zip(self.input_names, arrays, strict=True))
        writes = tuple(
            ArraySpec(name, tuple(shape), dtype_of(dtype))
            for name, shape, dtype in zip(
                self.output_names, launch["output_shapes"], launch["output_dtypes"], strict=True
            )
        )
        text = generated_text(lambda *given: self.real(inputs=list(given), verbose=True, **launch), arrays)
        step = BoundPass(self.name, reads, writes, self.repair(text), "", launch["grid"], launch["threadgroup"], ())
        stored = {spec.name: from_mlx(array, spec.dtype) for spec, array in zip(reads, arrays, strict=True)}
        outputs = self.run(BoundProgram((step,), tuple(self.output_names)), stored)
        return [to_mlx(outputs[spec.name], spec.dtype) for spec in writes]

    def run(self, program: BoundProgram, inputs: dict[str, Array]) -> Mapping[str, Array]:
        """Run ``program`` in fast or checked mode; return its outputs."""
        if self.reports is not None or self.in_turns:
            checked = self.device.check(program, inputs, time_limit=SECONDS, in_turns=self.in_turns)
            assert checked.complete
            if self.reports is not None:
                self.reports.extend(checked.reports)
            return checked.outputs
        result = self.device.run(program, inputs, time_limit=SECONDS)
        assert result.overruns == ()
        return result.outputs


def generated_text(call: Any, arrays: list[mx.array]) -> str:
    """Return the Metal file that MLX would compile for ``call``: it prints it while the call is exported."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryDirectory() as folder:
        sys.stdout.flush()
        before = os.dup(1)
        try:
            os.dup2(printed.fileno(), 1)
            mx.export_function(f"{folder}/call.mlxfn", call, *arrays)
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(before, 1)
            os.close(before)
        printed.seek(0)
        text = printed.read().decode()
    return text.partition("```\n")[2].rpartition("\n```")[0]


@dataclass
class MlxLm:
    """The package's modules, and each Metal kernel that importing them made, by name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    metal_kernel: Any = None

    def module(self, name: str) -> Any:
        """Return a module of the package, such as ``models.ssm``."""
        return importlib.import_module(f"mlx_lm.{name}")


def modules_with_kernels() -> list[str]:
    """Return the modules of the installed package whose text makes a Metal kernel."""
    pytest.importorskip("mlx_lm")
    root = Path(str(importlib.import_module("mlx_lm").__file__)).parent
    return sorted(
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if "metal_kernel(" in path.read_text(encoding="utf-8")
    )


@pytest.fixture(scope="session")
def intercepted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlxLm]:
    """mlx-lm, imported anew where Metal seems to be there; outside of it everything is as it was."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if folder.name.startswith("popen-") else folder
    found = MlxLm()
    real = mx.fast.metal_kernel
    device = SimulatorDevice(load_profile("apple-m3-max"), workers=2)

    def metal_kernel(**made: Any) -> Kernel:
        file = sys._getframe(1).f_code.co_filename
        kernel = Kernel(
            device,
            real(**made),
            made["name"],
            "mlx_lm" + file.rpartition("mlx_lm")[2],
            made["input_names"],
            made["output_names"],
            made.get("ensure_row_contiguous", True),
        )
        found.kernels[kernel.name] = kernel
        return kernel

    found.environment = {"KSEARCH_CACHE": str(shared / "simulator-cache")}
    found.metal_kernel = metal_kernel
    with pytest.MonkeyPatch.context() as patch:
        pretend_metal(found, patch)
        for name in _imported():
            patch.delitem(sys.modules, name)
        for name in modules_with_kernels():
            importlib.import_module(f"mlx_lm.{name}")
        found.modules = {name: sys.modules.pop(name) for name in _imported()}
    yield found
    device.close()


@pytest.fixture
def mlx_lm(intercepted: MlxLm, monkeypatch: pytest.MonkeyPatch) -> MlxLm:
    """The intercepted mlx-lm, with Metal pretended for this test alone."""
    pretend_metal(intercepted, monkeypatch)
    for name, module in intercepted.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return intercepted


def pretend_metal(found: MlxLm, patch: pytest.MonkeyPatch) -> None:
    """Let mlx-lm find Metal and its kernels run on the simulator, until ``patch`` is undone."""
    for name, value in found.environment.items():
        patch.setenv(name, value)
    patch.setattr(mx.fast, "metal_kernel", found.metal_kernel)
    patch.setattr(mx.metal, "is_available", lambda: True)
    patch.setattr(mx, "default_device", lambda: mx.gpu)


def _imported() -> list[str]:
    return [name for name in sys.modules if name == "mlx_lm" or name.startswith("mlx_lm.")]
