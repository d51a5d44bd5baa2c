"""Hardware profiles: what a GPU can do, with how sure we are of each figure.

A profile is ``hardware/<name>.toml``. What every chip of a GPU family shares stands once, in
``hardware/families/<family>.toml``; a chip's own file adds to it and may override any of it.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HARDWARE = Path(__file__).parent / "hardware"
CONFIDENCE_LEVELS = ("high", "medium", "low")


class ProfileError(ValueError):
    """A profile that isn't there or does not read; the message says which file and which key."""


@dataclass(frozen=True)
class HardwareProfile:
    """One GPU. Rates are per core and clock cycle unless the name says otherwise.

    - ``cores``: GPU cores. ``clock_ghz``: GPU clock under load.
    - ``bandwidth_gbs``: DRAM as specified, GB/s (1e9); ``dram_efficiency``: the share of it that a copy reaches.
    - ``slc_mb``: last-level cache, MiB. ``cache_bandwidth_gbs``: on-chip cache to all cores together, GB/s.
      ``cache_latency_ns``/``memory_latency_ns``: of a load that hits that cache, and of one that goes to DRAM.
      ``cache_line_bytes``.
    - ``l1_bytes``: first-level cache of one core; with ``dynamic_caching``, what threadgroups leave free of the core's
      other memory serves as cache too. ``l1_bytes_per_cycle``: what it moves of one line. ``l1_latency_ns``.
    - ``threadgroup_memory_bytes``: limit for one threadgroup; ``threadgroup_memory_per_core_bytes``: shared by all
      threadgroups that one core runs at a time. ``threadgroup_words``: 4-byte words moved per core and cycle.
    - ``fp32_flops``, ``fp16_flops``, ``matrix_fp16_flops``: peak FLOPs; ``simdgroup_matrix_flops``: what
      ``simdgroup_multiply_accumulate`` reaches (it does not use the matrix units of Apple10).
    - ``special``: evaluations of each special function.
    - ``simd_shuffle_cycles``, ``simd_reduction_cycles``: one simdgroup's operation on one of ``schedulers`` per core.
      ``dependent_issue_cycles``: between two instructions of one simdgroup that can't overlap further.
    - ``register_file_bytes``: of one core. ``max_registers``: 32-bit ones that a thread can have; the rest spills.
    - ``barrier_cycles``: one threadgroup barrier. ``max_threads_per_core``: in flight. ``simd_width``: lanes.
    - ``dispatch_us``: cost of one dependent dispatch, microseconds.
    - ``confidence``: by field, ``high``, ``medium`` or ``low``. ``notes``: sources.
    """

    name: str
    title: str
    family: str
    cores: int
    clock_ghz: float
    bandwidth_gbs: float
    dram_efficiency: float
    cache_bandwidth_gbs: float
    cache_latency_ns: float
    memory_latency_ns: float
    slc_mb: float
    cache_line_bytes: int
    l1_bytes: int
    l1_bytes_per_cycle: int
    l1_latency_ns: float
    dynamic_caching: bool
    threadgroup_memory_bytes: int
    threadgroup_memory_per_core_bytes: int
    fp32_flops: float
    fp16_flops: float
    matrix_fp16_flops: float
    simdgroup_matrix_flops: float
    special: Mapping[str, float]
    simd_shuffle_cycles: float
    simd_reduction_cycles: float
    schedulers: int
    dependent_issue_cycles: float
    threadgroup_words: float
    barrier_cycles: float
    max_threads_per_core: int
    register_file_bytes: int
    max_registers: int
    dispatch_us: float
    simd_width: int
    confidence: Mapping[str, str]
    notes: str = ""

    @property
    def clock_hz(self) -> float:
        """GPU cycles per second."""
        return self.clock_ghz * 1e9


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the package."""
    return sorted(path.stem for path in HARDWARE.glob("*.toml"))


def load_profile(name: str) -> HardwareProfile:
    """Load a profile by name (or a path to a TOML file); raise `ProfileError` with the nearest name when unknown."""
    path = Path(name).expanduser() if name.endswith(".toml") else HARDWARE / f"{name}.toml"
    if not path.is_file():
        close = difflib.get_close_matches(name, profile_names(), n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(profile_names())}"
        raise ProfileError(f"unknown hardware profile '{name}': {hint}")
    own = _read(path)
    if own.get("name") != path.stem:
        raise ProfileError(f"{path}: name must be '{path.stem}', like the file, and it is {own.get('name')!r}")
    shared = {}
    family = HARDWARE / "families" / f"{str(own.get('family', '')).lower()}.toml"
    if family.is_file():
        shared = _read(family)
    merged = {**shared, **own}
    merged["confidence"] = {**shared.get("confidence", {}), **own.get("confidence", {})}
    merged["notes"] = "\n".join(part.strip() for part in (own.get("notes", ""), shared.get("notes", "")) if part)
    _check(path, merged)
    return HardwareProfile(**merged)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: {error}") from error
    for key, kind in (("confidence", dict), ("notes", str)):
        if not isinstance(data.get(key, kind()), kind):
            raise ProfileError(f"{path}: {key} must be a {'table' if kind is dict else 'text'}")
    return data


def _check(path: Path, data: Mapping[str, Any]) -> None:
    fields = {field.name: str(field.type) for field in dataclasses.fields(HardwareProfile)}
    if missing := [name for name in fields if name not in data]:
        raise ProfileError(f"{path}: {', '.join(missing)} missing")
    for key, value in data.items():
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            raise ProfileError(f"{path}: unknown key '{key}'" + (f"; did you mean '{close[0]}'?" if close else ""))
        kind = fields[key]
        if kind == "str" and not isinstance(value, str):
            raise ProfileError(f"{path}: {key} must be a text, and it is {value!r}")
        if kind == "bool" and not isinstance(value, bool):
            raise ProfileError(f"{path}: {key} must be true or false, and it is {value!r}")
        if kind in ("int", "float") and not _is_positive(value, whole=kind == "int"):
            number = "positive whole number" if kind == "int" else "positive number"
            raise ProfileError(f"{path}: {key} must be a {number}, and it is {value!r}")
    if data["dram_efficiency"] > 1:
        raise ProfileError(f"{path}: dram_efficiency is a share of bandwidth_gbs, at most 1")
    if not data["l1_latency_ns"] <= data["cache_latency_ns"] <= data["memory_latency_ns"]:
        raise ProfileError(f"{path}: l1_latency_ns, cache_latency_ns, memory_latency_ns must not fall")
    block, line = data["l1_bytes_per_cycle"], data["cache_line_bytes"]
    if block & (block - 1) or line & (line - 1) or not 16 <= block <= line:
        raise ProfileError(f"{path}: l1_bytes_per_cycle and cache_line_bytes must be powers of two, 16 <= l1 <= line")
    special = data["special"]
    if not isinstance(special, dict) or not special or not all(_is_positive(rate) for rate in special.values()):
        raise ProfileError(f"{path}: special must give each function a positive rate per core and cycle")
    for key, level in data["confidence"].items():
        if key not in fields:
            raise ProfileError(f"{path}: confidence of an unknown key '{key}'")
        if level not in CONFIDENCE_LEVELS:
            raise ProfileError(f"{path}: confidence of {key} must be high, medium or low, and it is {level!r}")


def _is_positive(value: object, *, whole: bool = False) -> bool:
    accepted = int if whole else (int, float)
    return isinstance(value, accepted) and not isinstance(value, bool) and math.isfinite(value) and value > 0
