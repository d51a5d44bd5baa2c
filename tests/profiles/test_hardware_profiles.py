"""Hardware profiles: every file loads, the figures keep the order that the chips have, mistakes are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiles.detect import local_profile
from profiles.hardware import CONFIDENCE_LEVELS, HARDWARE, ProfileError, load_profile, profile_names

CHIPS = [
    *(f"apple-{chip}{tier}" for chip in ("m1", "m2", "m3", "m5") for tier in ("", "-pro", "-max", "-ultra")),
    *("apple-m4", "apple-m4-pro", "apple-m4-max", "apple-m6"),
]


def test_there_is_a_profile_for_every_chip():
    assert set(CHIPS) <= set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_loads_and_says_how_sure_it_is_of_every_figure(name):
    profile = load_profile(name)
    figures = {key for key in vars(profile) if key not in ("name", "title", "family", "confidence", "notes")}
    assert figures <= set(profile.confidence)
    assert set(profile.confidence.values()) <= set(CONFIDENCE_LEVELS)
    assert profile.notes


@pytest.mark.parametrize("generation", ["m1", "m2", "m3", "m5"])
def test_larger_chips_of_a_generation_have_more_bandwidth_and_cores(generation):
    tiers = [load_profile(f"apple-{generation}{tier}") for tier in ("", "-pro", "-max", "-ultra")]
    assert [p.bandwidth_gbs for p in tiers] == sorted(p.bandwidth_gbs for p in tiers)
    assert [p.cores for p in tiers] == sorted(p.cores for p in tiers)


@pytest.mark.parametrize("name", profile_names())
def test_the_on_chip_cache_is_faster_than_dram(name):
    profile = load_profile(name)
    assert profile.cache_bandwidth_gbs > profile.bandwidth_gbs


@pytest.mark.parametrize(
    ("name", "tflops"), [("apple-m1", 2.62), ("apple-m2-max", 13.6), ("apple-m3-max", 14.13), ("apple-m5", 4.04)]
)
def test_peak_rate_is_the_published_one(name, tflops):
    profile = load_profile(name)
    assert profile.fp32_flops * profile.cores * profile.clock_ghz / 1e3 == pytest.approx(tflops, rel=0.01)


def test_figures_that_nobody_measured_on_a_family_are_marked_low():
    m1, m3 = load_profile("apple-m1"), load_profile("apple-m3-max")
    assert m1.confidence["special"] == "high"
    assert m3.confidence["special"] == "low"
    assert m1.confidence["barrier_cycles"] == m3.confidence["barrier_cycles"] == "low"


def test_an_unknown_name_brings_the_nearest_one():
    with pytest.raises(ProfileError, match="did you mean 'apple-m3-max'"):
        load_profile("aple-m3-max")


@pytest.fixture
def own_profile(tmp_path: Path):
    """Write a profile of one's own, based on the M1, with lines changed, added or (None) left out."""
    text = (HARDWARE / "apple-m1.toml").read_text().replace('name = "apple-m1"', 'name = "mine"')

    def write(**changes: str | None) -> str:
        changed = text
        for key, value in changes.items():
            line = "" if value is None else f"{key} = {value}\n"
            changed, count = re.subn(rf"(?m)^{key} = .*\n", line, changed, count=1)
            if not count:
                changed = line + changed
        (tmp_path / "mine.toml").write_text(changed)
        return str(tmp_path / "mine.toml")

    return write


def test_a_profile_of_ones_own_takes_what_its_family_shares_and_may_override_it(own_profile):
    profile = load_profile(own_profile(dispatch_us="2.5"))
    assert profile.dispatch_us == 2.5
    assert profile.simd_shuffle_cycles == load_profile("apple-m1").simd_shuffle_cycles


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cores": None}, "cores missing"),
        ({"cores": "7.5"}, "cores must be a positive whole number, and it is 7.5"),
        ({"cores": "true"}, "cores must be a positive whole number, and it is True"),
        ({"clock_ghz": "-1.0"}, "clock_ghz must be a positive number, and it is -1.0"),
        ({"clock_ghz": "nan"}, "clock_ghz must be a positive number, and it is nan"),
        ({"bandwith_gbs": "1.0"}, "unknown key 'bandwith_gbs'; did you mean 'bandwidth_gbs'"),
        ({"dram_efficiency": "1.2"}, "dram_efficiency is a share of bandwidth_gbs, at most 1"),
        ({"cache_latency_ns": "900.0"}, "l1_latency_ns, cache_latency_ns, memory_latency_ns must not fall"),
        ({"l1_bytes_per_cycle": "48"}, "l1_bytes_per_cycle and cache_line_bytes must be powers of two"),
        ({"l1_bytes_per_cycle": "256"}, "16 <= l1 <= line"),
        ({"dynamic_caching": "1"}, "dynamic_caching must be true or false, and it is 1"),
        ({"special": "{ exp2 = 0 }"}, "special must give each function a positive rate"),
        ({"title": "7"}, "title must be a text"),
    ],
)
def test_a_mistake_is_named_with_its_file(own_profile, changes, message):
    path = own_profile(**changes)
    with pytest.raises(ProfileError) as error:
        load_profile(path)
    assert str(error.value).startswith(path)
    assert message in str(error.value)


def test_a_confidence_that_is_no_level_is_refused(own_profile):
    path = Path(own_profile())
    path.write_text(path.read_text().replace('cores = "high"', 'cores = "sure"'))
    with pytest.raises(ProfileError, match="confidence of cores must be high, medium or low, and it is 'sure'"):
        load_profile(str(path))


def test_a_file_under_another_name_than_its_own_is_refused(own_profile, tmp_path):
    Path(own_profile()).rename(tmp_path / "yours.toml")
    with pytest.raises(ProfileError, match="name must be 'yours', like the file"):
        load_profile(str(tmp_path / "yours.toml"))


def test_broken_toml_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\ncores = \n')
    with pytest.raises(ProfileError, match="line 2"):
        load_profile(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    ("device", "cores", "name"),
    [
        ("Apple M3 Max", None, "apple-m3-max"),
        ("Apple M3 Max", 40, "apple-m3-max"),
        ("Apple M3 Max", 30, "apple-m3-max-30"),
        ("Apple M1", 7, "apple-m1"),
        ("Apple M2 Ultra", 60, "apple-m2-ultra"),
        ("Apple M99 Pro", None, ""),
        ("AMD Radeon Pro 5500M", None, ""),
        ("", None, ""),
    ],
)
def test_a_metal_device_name_finds_its_profile(device, cores, name):
    assert local_profile(device, cores) == name
