"""What kernels do with an array: whether it goes in, comes out, or only holds something in between."""

from __future__ import annotations

from collections.abc import Sequence

from translator.host_values import HostArray
from translator.kernel_values import Access, Use
from translator.launch_plan import Role
from translator.sizes import ZERO, Size


def role_of(host: HostArray, launches: Sequence[Sequence[Access]]) -> Role:
    """Return the role of an array from its accesses, launch by launch."""
    written = False
    needed = False
    for step in launches:
        if not written:
            needed = needed or _reads_first(step) or any(a.scattered and a.use == Use.WRITE for a in step)
        written = written or any(access.use != Use.READ for access in step)
    if not written:
        return Role.INPUT
    if host.local and not (host.copied_in or host.copied_out or host.returned):
        return Role.SCRATCH
    if needed and not host.zeroed:
        return Role.INOUT
    return Role.OUTPUT


def _reads_first(accesses: Sequence[Access]) -> bool:
    """Whether a kernel reads an array other than where it has written it before."""
    for at, access in enumerate(accesses):
        if access.use == Use.WRITE:
            continue
        if not any(
            earlier.use == Use.WRITE
            and earlier.place == access.place
            and access.context[: len(earlier.context)] == earlier.context
            for earlier in accesses[:at]
        ):
            return True
    return False


def written_partly(launches: Sequence[Sequence[Access]], extent: Size | None) -> bool:
    """Whether a launch that writes an array of ``extent`` elements isn't known to begin, go on and end as that does."""
    for step in launches:
        writes = [access for access in step if access.use != Use.READ]
        if writes and not (
            any(access.begin == ZERO for access in writes)
            and any(access.extent == extent for access in writes)
            and any(access.dense for access in writes)
        ):
            return True
    return False
