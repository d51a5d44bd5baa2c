"""What the Kernel tab says about how a pass is launched."""

from __future__ import annotations

from ksearch_tui.widgets.kernel_tab import program_lines
from search.kernels.program import Pass, Program

COUNT = Pass("count", ("x",), ("y",), "y[0] = 1;", ("n", "1", "1"), ("32", "1", "1"))


def launch_facts(step: Pass) -> list[str]:
    """Return the lines between the pass's name and its source."""
    return [line.text.plain for line in program_lines(Program((step,)))][1:-1]


def test_initial_values_and_atomic_outputs_are_among_the_launch_facts() -> None:
    plain = launch_facts(COUNT)
    with_both = Pass(**{**COUNT.__dict__, "init_value": 0.0, "atomic_outputs": True})
    assert launch_facts(with_both) == [*plain, "outputs begin as 0", "outputs are atomic"]
