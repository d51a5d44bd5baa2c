"""Every recorded example that comes with the package plays to its end on the screen, and shows its best kernel."""

from __future__ import annotations

import pytest

from ksearch_tui.app import KsearchApp
from ksearch_tui.start_at import AtReplay
from ksearch_tui.widgets.kernel_tab import KernelTab
from search.tree import Tree
from sessions.examples import example_names, example_path
from sessions.store import read_session


@pytest.mark.parametrize("name", example_names())
async def test_an_example_plays_to_its_end_and_shows_its_best_kernel(name: str, until) -> None:
    session = read_session(example_path(name))
    tree = Tree.fold(session.events)
    best = tree.best()
    assert best is not None
    app = KsearchApp(AtReplay(session.events, session.config, name, paused=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("end")
        await until(pilot, lambda: len(pilot.app.screen.run_state.events) == len(session.events))
        await pilot.press("b", "2")
        await pilot.pause()
        assert pilot.app.screen.options.chosen == best.id
        shown = [line.text.plain for line in pilot.app.screen.query_one(KernelTab).lines]
        assert set(tree.program(best.program).passes[0].source.splitlines()) <= set(shown)
