from __future__ import annotations

from pathlib import Path

import pytest

from profiles.hardware import ProfileError
from profiles.source_gpu import SOURCES, load_source_gpu, read_source_gpu, source_gpu_names


def test_every_source_gpu_loads_under_its_own_name():
    assert source_gpu_names() == ["a100", "h100"]
    for name in source_gpu_names():
        assert load_source_gpu(name).name == name


@pytest.mark.parametrize(("name", "lanes"), [("a100", 64), ("h100", 128)])
def test_the_float_rate_is_that_of_the_lanes_of_all_sms(name: str, lanes: int):
    gpu = load_source_gpu(name)
    assert gpu.cores * lanes * 2 * gpu.clock_ghz / 1e3 == pytest.approx(gpu.fp32_tflops, rel=0.005)


@pytest.mark.parametrize("name", source_gpu_names())
def test_a_block_can_ask_for_all_of_an_sm_but_one_kib(name):
    gpu = load_source_gpu(name)
    assert gpu.core_memory_bytes - gpu.block_memory_bytes == 1024


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(ProfileError, match="unknown source GPU 'v100': there are a100, h100"):
        load_source_gpu("v100")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores = 132", "", "cores is missing"),
        ("cores = 132", "cores = 132\nsms = 1", "unknown key 'sms'"),
        ("cores = 132", "cores = 1.5", "cores must be a positive whole number, and it is 1.5"),
        ("clock_ghz = 1.98", "clock_ghz = -1", "clock_ghz must be a positive number"),
        ("clock_ghz = 1.98", "clock_ghz = true", "clock_ghz must be a positive number"),
        ('name = "h100"', "name = 3", "name must be a text"),
        ('name = "h100"', "name = ", "h.toml: "),
    ],
)
def test_a_file_that_is_not_right_says_which_key(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "h.toml"
    path.write_text((SOURCES / "h100.toml").read_text().replace(old, new))
    with pytest.raises(ProfileError, match=message):
        read_source_gpu(path)
