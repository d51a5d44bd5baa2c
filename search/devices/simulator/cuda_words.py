"""What the simulator says of a kernel, in CUDA's words instead of Metal's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from search.devices.base import CheckReport, KernelFault

_WORDS = (
    (r"threadgroup_barrier\(mem_flags::\w+\)", "__syncthreads()"),
    (r"simdgroup_barrier\(mem_flags::\w+\)", "__syncwarp()"),
    (r"threadgroup_barrier", "__syncthreads"),
    (r"simdgroup_barrier", "__syncwarp"),
    (r"threadgroup memory", "shared memory"),
    (r"device memory", "global memory"),
    (r"\bThreadgroups\b", "Blocks"),
    (r"\bthreadgroups\b", "blocks"),
    (r"\bthreadgroup\b", "block"),
    (r"\bsimdgroups\b", "warps"),
    (r"\bsimdgroup\b", "warp"),
    (r"split the kernel in two passes", "split the kernel in two launches"),
    (r"\bpass '", "kernel '"),
)
"""In the order in which they are put in; code that a message quotes is left as it is."""

_QUOTED = re.compile(r"(`[^`]*`)")


def in_cudas_words(message: str) -> str:
    """Return ``message`` with Metal's words replaced."""
    pieces = _QUOTED.split(message)
    for index in range(0, len(pieces), 2):
        for pattern, word in _WORDS:
            pieces[index] = re.sub(pattern, word, pieces[index])
    return "".join(pieces)


def cuda_report(report: CheckReport) -> CheckReport:
    """Return ``report`` in CUDA's words."""
    return replace(report, message=in_cudas_words(report.message))


@contextmanager
def telling_in_cudas_words() -> Iterator[None]:
    """Raise in CUDA's words the `KernelFault` that is raised within."""
    try:
        yield
    except KernelFault as fault:
        words = in_cudas_words(fault.message)
        raise KernelFault(fault.stage, words, pass_name=fault.pass_name, line=fault.line) from fault
