"""The GPUs that CUDA kernels were written for: what a translation loses and gains by leaving them.

Nothing is modelled for these; a `profiles.hardware.HardwareProfile` is what a kernel is written *for*.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

from profiles.hardware import ProfileError

SOURCES = Path(__file__).parent / "sources"


@dataclass(frozen=True)
class SourceGpu:
    """One NVIDIA GPU, as its maker specifies it.

    - ``cores``: SMs. ``clock_ghz``: boost. ``bandwidth_gbs``: GB/s (1e9). ``last_cache_mb``: L2, MiB.
    - ``block_memory_bytes``: shared memory that one block can ask for; ``static_block_memory_bytes``: without asking.
      ``core_memory_bytes``: of one SM.
    - ``register_file_bytes``: of one SM. ``max_registers``: 32-bit ones of a thread.
    - ``fp32_tflops``, ``fp64_tflops``: without matrix units. ``matrix_fp16_tflops``: with them, dense.
    - ``notes``: sources.
    """

    name: str
    title: str
    cores: int
    clock_ghz: float
    bandwidth_gbs: float
    last_cache_mb: float
    block_memory_bytes: int
    static_block_memory_bytes: int
    core_memory_bytes: int
    register_file_bytes: int
    max_registers: int
    max_threads_per_block: int
    max_threads_per_core: int
    fp32_tflops: float
    fp64_tflops: float
    matrix_fp16_tflops: float
    notes: str


def source_gpu_names() -> list[str]:
    """Return the names of the source GPUs that come with the package."""
    return sorted(path.stem for path in SOURCES.glob("*.toml"))


def load_source_gpu(name: str) -> SourceGpu:
    """Load a source GPU by name; raise `ProfileError` when there is none or its file doesn't read."""
    path = SOURCES / f"{name}.toml"
    if name not in source_gpu_names():
        raise ProfileError(f"unknown source GPU '{name}': there are {', '.join(source_gpu_names())}")
    return read_source_gpu(path)


def read_source_gpu(path: Path) -> SourceGpu:
    """Read one file; raise `ProfileError` with the key that isn't right."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: {error}") from error
    fields = {field.name: str(field.type) for field in dataclasses.fields(SourceGpu)}
    for key in (*fields, *data):
        if key not in fields:
            raise ProfileError(f"{path}: unknown key '{key}'")
        if key not in data:
            raise ProfileError(f"{path}: {key} is missing")
        if not _fits(data[key], fields[key]):
            kind = {"str": "text", "int": "positive whole number", "float": "positive number"}[fields[key]]
            raise ProfileError(f"{path}: {key} must be a {kind}, and it is {data[key]!r}")
    return SourceGpu(**data)


def _fits(value: object, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str)
    accepted = int if kind == "int" else (int, float)
    return isinstance(value, accepted) and not isinstance(value, bool) and math.isfinite(value) and value > 0
