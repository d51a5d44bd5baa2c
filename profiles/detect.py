"""From what Metal says about this machine's GPU to the name of its profile."""

from __future__ import annotations

import re

from profiles.hardware import profile_names


def local_profile(device_name: str, gpu_cores: int | None = None) -> str:
    """Return the profile for a Metal device name such as ``Apple M3 Max``, "" when there is none.

    A chip sold with fewer cores and less bandwidth has a profile of its own, named with its cores; it is taken when
    ``gpu_cores`` says so. Any other core count gets the chip's own profile.
    """
    name = re.sub(r"[^a-z0-9]+", "-", device_name.lower()).strip("-")
    known = set(profile_names())
    for candidate in (f"{name}-{gpu_cores}", name):
        if candidate in known:
            return candidate
    return ""
