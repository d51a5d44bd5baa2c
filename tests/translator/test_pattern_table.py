"""The patterns: their Metal is run, and computes what is claimed; a table that isn't right is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from translator.pattern_table import load_patterns, read_patterns
from translator.primitives import TableError

Inputs = dict[str, np.ndarray]

COUNT = 512
LANE = np.arange(COUNT) % 32


def rows_of_32(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, 32)


def spread(values: np.ndarray) -> np.ndarray:
    """One value for each simdgroup, in all of its lanes."""
    return np.repeat(values, 32)


def softmax_base_two(x: np.ndarray) -> np.ndarray:
    powers = np.exp2(x - x.max())
    return powers / powers.sum()


def recurrence(x: np.ndarray) -> np.ndarray:
    """h = x h + 1 along each simdgroup, from h = 0."""
    states = np.zeros((COUNT // 32, 32))
    h = np.zeros(COUNT // 32)
    for lane in range(32):
        h = rows_of_32(x)[:, lane] * h + 1
        states[:, lane] = h
    return states.ravel()


def product_of_tiles(x: np.ndarray) -> np.ndarray:
    whole = np.zeros(COUNT)
    whole[:64] = (x[:64].reshape(8, 8) @ x[64:128].reshape(8, 8)).ravel()
    return whole


def everywhere(value: float) -> np.ndarray:
    return np.full(COUNT, value)


def first_of_all(value: float) -> np.ndarray:
    whole = np.zeros(COUNT)
    whole[0] = value
    return whole


WANTED: dict[str, Callable[[Inputs], np.ndarray]] = {
    "shuffle": lambda a: a["x"][np.arange(COUNT) ^ 1],
    "warp_reduce": lambda a: spread(rows_of_32(a["x"]).sum(axis=1)),
    "block_reduce": lambda a: np.repeat(a["x"].reshape(-1, 128).sum(axis=1), 128),
    "shared_tile": lambda a: a["x"] * a["x"][:64].sum(),
    "small_tiles": lambda a: everywhere(a["x"].sum()),
    "padded_tile": lambda a: a["x"].reshape(32, 16).sum(axis=1)[LANE],
    "exp2": lambda a: np.exp(0.125 * a["x"]),
    "fast_math": lambda a: np.exp(a["x"]) / 3,
    "vector_load": lambda a: a["x"].reshape(-1, 4).sum(axis=1)[np.arange(COUNT) % 128],
    "unroll": lambda a: 6 * a["x"],
    "async_copy": lambda a: everywhere(a["x"].sum()),
    "double_buffer": lambda a: everywhere(a["x"].sum()),
    "half2": lambda a: np.repeat(a["h"].reshape(-1, 2).prod(axis=1), 2),
    "atomics": lambda a: first_of_all(a["x"].sum()),
    "grid_stride": lambda a: 2 * a["x"],
    "online_softmax": lambda a: softmax_base_two(a["x"]),
    "scan_ladder": lambda a: recurrence(a["x"]),
    "matrix_tiles": lambda a: product_of_tiles(a["x"]),
    "split_reduction": lambda a: everywhere((a["x"][256:] * np.exp2(a["x"][:256] - a["x"][:256].max())).sum()),
}


@pytest.mark.parametrize("pattern", load_patterns(), ids=lambda pattern: pattern.name)
def test_the_metal_of_a_pattern_computes_what_is_claimed(pattern, run_piece):
    generator = np.random.default_rng(7)
    inputs = {
        "x": generator.uniform(-0.9, 0.9, COUNT).astype(np.float32),
        "h": generator.uniform(-0.9, 0.9, COUNT).astype(np.float16),
    }
    got = run_piece(pattern.metal, group=128, **inputs)
    want = WANTED[pattern.name]({name: values.astype(np.float64) for name, values in inputs.items()})
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_texts_are_plain_ascii_and_short_enough_for_a_briefing():
    for pattern in load_patterns():
        assert (pattern.metal + pattern.trap + pattern.when).isascii()
        assert len(pattern.metal) < 800


ROW = '[[pattern]]\nname = "a"\nsays = "b"\nwhen = "c"\ncuda = "d"\nmetal = "e"\ntrap = "f"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW.replace('trap = "f"', ""), "pattern 'a': trap must be a text"),
        (ROW.replace('"f"', '" "'), "pattern 'a': trap must be a text"),
        (ROW + "more = 3\n", "pattern 'a': unknown key 'more'"),
        (ROW + ROW, "pattern 'a': there is another pattern of this name"),
        ("", r"there is no \[\[pattern\]\]"),
        ("x = ", "table.toml"),
    ],
)
def test_a_pattern_that_is_not_right_is_named(tmp_path: Path, text: str, message: str):
    path = tmp_path / "table.toml"
    path.write_text(text)
    with pytest.raises(TableError, match=message):
        read_patterns(path)
