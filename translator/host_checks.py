"""What the host checks of sizes before it launches, kept as requirements of the plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.host_values import Tensor
from translator.requirements import Requirement, requirements
from translator.sizes import name

if TYPE_CHECKING:
    from translator.host_code import HostCode


def require(host: HostCode, found: Sequence[Requirement]) -> None:
    """Keep requirements; an axis that must equal a number or another axis is one from here on."""
    for kind, size, other in found:
        axis, same = str(size), str(other)
        if kind == "equal" and axis in host.axes and (other.constant is not None or same in host.axes):
            if same in host.axes and host._named(axis) and not host._named(same):
                axis, other, same = same, size, axis
            host.fix(axis, other)
            if same in host.axes:
                continue
            size = name(axis)
        if (kind, size, other) not in host.requires:
            host.requires.append((kind, size, other))


def keep_check(host: HostCode, condition: Node | None, holds: bool) -> None:
    """Keep what the host checks, where it can be said."""
    if (match := re.search(r"(\w+)\.(?:dim|ndimension)\(\)==(\d)", "".join(host.of(condition).split()))) and holds:
        tensor = host.env.get(match[1])
        if isinstance(tensor, Tensor):
            host.dimensions[tensor.array] = int(match[2])
    found = requirements(condition, host, holds, partly=True)
    if found:
        require(host, found)
