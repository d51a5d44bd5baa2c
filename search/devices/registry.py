"""The devices by name. Each is imported only when it is opened."""

from __future__ import annotations

import platform

from profiles.hardware import HardwareProfile
from search.devices.base import Device, DeviceUnavailable

METAL, SIMULATOR = "metal", "simulator"


def device_names() -> list[str]:
    """Return the names that `open_device` knows."""
    return [METAL, SIMULATOR]


def default_device() -> str:
    """Return ``metal`` on a Mac with Apple silicon, else ``simulator``."""
    return METAL if platform.system() == "Darwin" and platform.machine() == "arm64" else SIMULATOR


def open_device(name: str, profile: HardwareProfile) -> Device:
    """Open the device ``name``; raise `DeviceUnavailable` when there is none or this machine can't run it.

    ``profile`` is the GPU that a simulated time is modelled for.
    """
    if name == METAL:
        try:
            from search.devices.metal import MetalDevice
        except ImportError as error:
            raise DeviceUnavailable(
                f"MLX has no back end on this machine ({error}): install mlx on a Mac, mlx[cpu] or mlx[cuda13] on Linux"
            ) from error
        return MetalDevice()
    if name == SIMULATOR:
        from search.devices.simulator.device import SimulatorDevice

        return SimulatorDevice(profile)
    raise DeviceUnavailable(f"unknown device '{name}': there are {', '.join(device_names())}")
