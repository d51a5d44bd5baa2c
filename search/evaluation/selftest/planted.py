"""The kernels that the judge itself is tried on, read from ``kernels/``: right ones, and faults planted in them.

A folder there is a problem (see `search.problems.definition`) with any number of kernels in the ``.metal`` form of
`search.kernels.text`, and a ``kernels.toml`` that says of each what is unusual about it and which faults are planted::

    [[kernel]]
    file = "tree.metal"
    what = "one threadgroup a row, a tree over threadgroup memory"

    [[kernel.fault]]
    name = "no barrier before the tree"
    category = "synchronization"
    what = "The first step reads partial sums that other simdgroups may not have written."
    stages = ["race"]
    find = "partial[t] = sum;\\nthreadgroup_barrier(mem_flags::mem_threadgroup);"
    replace = "partial[t] = sum;"

``find`` must occur in the file exactly ``times`` times (1 where it isn't said); each is replaced. ``stages`` are the
stages of the judge that may catch the fault: another one means that it was refused for another reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "kernels"

CATEGORIES = ("boundary", "synchronization", "indexing", "precision", "semantics")


class PlantingError(ValueError):
    """The list of kernels does not read; the message says which file and what is wrong with it."""


@dataclass(frozen=True)
class Fault:
    """A mistake of the sort that people and models make: ``find`` becomes ``replace``, and ``stages`` may catch it."""

    name: str
    category: str
    what: str
    find: str
    replace: str
    times: int
    stages: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """A right kernel for the problem in ``folder``, what is unusual about it, and the faults planted in it."""

    folder: Path
    name: str
    what: str
    text: str
    faults: tuple[Fault, ...]

    def with_fault(self, fault: Fault) -> str:
        """Return the text with ``fault`` planted; raise `PlantingError` when ``find`` is not there as often as said."""
        found = self.text.count(fault.find)
        if found != fault.times:
            raise PlantingError(f"{self.name}: '{fault.name}': {fault.find!r} occurs {found} times, not {fault.times}")
        return self.text.replace(fault.find, fault.replace)


def load_kernels(folder: Path = FOLDER) -> tuple[Kernel, ...]:
    """Return every kernel under ``folder``, in the order of the files; raise `PlantingError` with what is wrong."""
    kernels: list[Kernel] = []
    for path in sorted(folder.glob("*/kernels.toml")):
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))["kernel"]
            kernels += [_kernel(path.parent, entry) for entry in entries]
        except KeyError as error:
            raise PlantingError(f"{path}: {error.args[0]} is missing") from error
        except (OSError, TypeError, ValueError) as error:
            raise PlantingError(f"{path}: {error}") from error
        listed = {entry["file"] for entry in entries}
        if unlisted := sorted({file.name for file in path.parent.glob("*.metal")} - listed):
            raise PlantingError(f"{path}: {unlisted[0]} is not in the list")
    return tuple(kernels)


def _kernel(folder: Path, entry: Mapping[str, Any]) -> Kernel:
    file = folder / entry["file"]
    faults = tuple(_fault(fault) for fault in entry.get("fault", ()))
    return Kernel(folder, f"{folder.name}/{file.stem}", entry["what"], file.read_text(encoding="utf-8"), faults)


def _fault(entry: Mapping[str, Any]) -> Fault:
    name, category, stages = entry["name"], entry["category"], tuple(entry["stages"])
    if category not in CATEGORIES:
        raise ValueError(f"'{name}' has the category '{category}'; there are {', '.join(CATEGORIES)}")
    if not stages:
        raise ValueError(f"'{name}' has no stage that may catch it")
    times = entry.get("times", 1)
    return Fault(name, category, entry["what"], entry["find"], entry["replace"], times, stages)
