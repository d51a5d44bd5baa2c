"""What the compiler is asked for, with its refusal as a fault in the kernel's own words and lines."""

from __future__ import annotations

from pathlib import Path

from search.devices.base import DeviceUnavailable
from search.devices.simulator.compilers import find_compiler
from search.devices.simulator.diagnostics import compile_fault
from search.devices.simulator.toolchain import CompileError, build_kernel, build_runner
from search.devices.simulator.unit import Unit


def build_unit(unit: Unit, how: str, pass_name: str) -> Path:
    """Return the library of one pass; raise `KernelFault` (stage ``compile``) at the kernel's own line."""
    try:
        return build_kernel(unit.text, how)
    except CompileError as error:
        raise compile_fault(str(error), unit, pass_name) from error


def built_runner() -> Path:
    """Return the program that runs kernels; raise `DeviceUnavailable` when this machine's compiler can't make it."""
    try:
        return build_runner()
    except CompileError as error:
        why = next((line for line in str(error).splitlines() if "error" in line), "no reason given")
        raise DeviceUnavailable(
            f"the simulator's own program does not compile with {find_compiler().version}: {why}"
        ) from error
