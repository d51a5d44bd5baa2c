"""The sessions that come with the package replay right after it is installed."""

from __future__ import annotations

import pytest

from search.tree import Tree
from sessions.examples import example_names, example_path
from sessions.store import SessionError, read_session


@pytest.mark.parametrize("name", example_names())
def test_an_example_is_whole_and_found_something_faster(name: str) -> None:
    session = read_session(example_path(name))
    tree = Tree.fold(session.events)
    best = tree.best()
    assert session.repair == ""
    assert best is not None and best.id != tree.root and tree.speedup(best.id) > 1
    assert tree.stopped


def test_an_unknown_example_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(SessionError, match="there is no example session 'nothing-like-it'"):
        example_path("nothing-like-it")
