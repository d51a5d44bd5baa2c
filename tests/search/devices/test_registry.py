from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from profiles.hardware import load_profile
from search.devices.base import DeviceUnavailable
from search.devices.registry import default_device, device_names, open_device


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [("Darwin", "arm64", "metal"), ("Darwin", "x86_64", "simulator"), ("Linux", "aarch64", "simulator")],
)
def test_the_default_is_metal_on_apple_silicon_and_the_simulator_elsewhere(monkeypatch, system, machine, name):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert default_device() == name
    assert name in device_names()


def test_an_unknown_device_is_refused_with_the_known_ones():
    with pytest.raises(DeviceUnavailable, match="unknown device 'gpu': there are metal, simulator"):
        open_device("gpu", load_profile("apple-m3-max"))


def test_the_simulator_opens_by_name_for_a_profile():
    device = open_device("simulator", load_profile("apple-m3-max"))
    assert device.name == "simulator"
    assert "apple-m3-max" in device.describe()
    device.close()


def test_asking_for_names_imports_no_device():
    code = "import sys, search.devices.registry as r; r.default_device(); r.device_names(); print('mlx' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "False"
