"""A kernel file with initial values and atomics, from its text to its results on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, bind
from search.kernels.text import program_from_text

HISTOGRAM = """//@ buffer counts [bins] uint32
//@ pass count
//@ inputs x
//@ outputs counts
//@ grid ceildiv(n, 32) * 32
//@ threadgroup 32
//@ init {init}
//@ atomic_outputs
//@ source
uint i = thread_position_in_grid.x;
if (i < uint(x_shape[0])) atomic_fetch_add_explicit(&counts[x[i]], 1u, memory_order_relaxed);
//@ pass double
//@ inputs counts
//@ outputs y
//@ grid bins
//@ threadgroup bins
//@ source
y[thread_position_in_grid.x] = 2 * counts[thread_position_in_grid.x];
"""


@pytest.mark.parametrize(("init", "doubled"), [("0", [4, 0, 2, 6]), ("10", [24, 20, 22, 26])])
def test_a_histogram_counts_into_outputs_that_begin_with_the_initial_value(init: str, doubled: list[int]) -> None:
    x = np.array([0, 3, 3, 2, 0, 3], np.int32)  # two zeros, no one, one two, three threes
    arrays = {"x": ArraySpec("x", (6,), DTYPES["int32"]), "y": ArraySpec("y", (4,), DTYPES["uint32"])}
    program = program_from_text(HISTOGRAM.format(init=init))
    bound = bind(program, arrays, ("y",), {"n": 6, "bins": 4}, {})
    device = SimulatorDevice(load_profile("apple-m3-max"), workers=1)
    assert device.run(bound, {"x": x}, time_limit=20).outputs["y"].tolist() == doubled
