"""The small charts: heights and widths that a person worked out."""

from __future__ import annotations

import asyncio

from ksearch_tui.widgets.progress_so_far import ProgressSoFar, bar_chart, best_so_far, spark
from ksearch_tui.wording import confidence_bar, duration, times


def test_best_so_far_never_falls():
    assert best_so_far((1.0, 0.0, 2.0, 1.5)) == [1.0, 1.0, 2.0, 2.0]


def test_a_spark_is_as_high_as_its_share_of_the_largest():
    assert spark([1.0, 2.0, 4.0, 8.0], 10) == "▁▂▄█"


def test_a_long_run_is_squeezed_to_the_largest_of_each_stretch():
    assert spark([1.0, 1.0, 8.0, 4.0], 2) == "▁█"
    assert spark([], 5) == spark([1.0], 0) == ""


def test_a_chart_of_two_lines_counts_sixteenths_of_its_height():
    assert bar_chart([0.0, 1.0, 2.0, 4.0], 10, 2) == ["   █", " ▄██"]


def test_progress_reads_each_evaluation_once_and_starts_over_when_events_are_gone(run):
    async def go() -> tuple[float, ...]:
        engine = await run.open_engine(run.config)
        engine.set_autopilot(True)
        await engine.run()
        progress = ProgressSoFar()
        first = progress.update(engine.tree)
        assert progress.update(engine.tree) == first
        return first

    found = asyncio.run(go())
    assert found[0] == 1.0
    assert max(found) == 1.6 * 1.5
    assert found.count(0.0) == 1


def test_figures_read_as_a_person_writes_them():
    assert (times(0.0), times(2.046), times(123.4)) == ("—", "2.05×", "123×")
    assert (confidence_bar(0.0), confidence_bar(0.7), confidence_bar(1.0)) == ("▯▯▯▯", "▮▮▮▯", "▮▮▮▮")
    assert duration(3 * 3600 + 25 * 60 + 9.9) == "03:25:09"
