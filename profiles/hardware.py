"""Hardware profiles: what a GPU can do, with how sure we are of each figure."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HARDWARE = Path(__file__).parent / "hardware"


class ProfileError(ValueError):
    """A profile that isn't there or does not read."""


@dataclass(frozen=True)
class HardwareProfile:
    """One GPU. Rates are per core and clock cycle unless the name says otherwise.

    ``cores``: GPU cores. ``clock_ghz``. ``bandwidth_gbs``: DRAM, GB/s (1e9). ``slc_mb``: last-level cache.
    ``cache_bandwidth_gbs``: on-chip cache to all cores together. ``cache_line_bytes``. ``threadgroup_memory_bytes``:
    limit per threadgroup. ``fp32_flops``, ``fp16_flops``, ``matrix_fp16_flops``: FLOPs per core and cycle.
    ``special``: evaluations per core and cycle of each special function. ``simd_shuffle_cycles`` and
    ``simd_reduction_cycles``: cycles of one simdgroup's operation on one of a core's four schedulers.
    ``threadgroup_words``: 4-byte words of threadgroup memory per core and cycle. ``barrier_cycles``.
    ``max_threads_per_core``. ``dispatch_us``: cost of one dependent dispatch. ``confidence``: by field, ``high``,
    ``medium`` or ``low``.
    """

    name: str
    title: str
    family: str
    cores: int
    clock_ghz: float
    bandwidth_gbs: float
    cache_bandwidth_gbs: float
    slc_mb: float
    cache_line_bytes: int
    threadgroup_memory_bytes: int
    threadgroup_memory_per_core_bytes: int
    fp32_flops: float
    fp16_flops: float
    matrix_fp16_flops: float
    special: Mapping[str, float]
    simd_shuffle_cycles: float
    simd_reduction_cycles: float
    threadgroup_words: float
    barrier_cycles: float
    max_threads_per_core: int
    dispatch_us: float
    simd_width: int
    confidence: Mapping[str, str]
    notes: str = ""


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the package."""
    return sorted(path.stem for path in HARDWARE.glob("*.toml"))


def load_profile(name: str) -> HardwareProfile:
    """Load a profile by name (or a path to a TOML file); raise `ProfileError` with the nearest name when unknown."""
    path = Path(name) if name.endswith(".toml") else HARDWARE / f"{name}.toml"
    if not path.is_file():
        close = difflib.get_close_matches(name, profile_names(), n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(profile_names())}"
        raise ProfileError(f"unknown hardware profile '{name}': {hint}")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return HardwareProfile(**data)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as error:
        raise ProfileError(f"{path}: {error}") from error
