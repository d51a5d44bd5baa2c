"""An option that passed can get another program: the fastest stays, whatever becomes of the others."""

from __future__ import annotations

from typing import Any

import pytest

from search.tree import Tree, TreeError


@pytest.fixture
def tree(grower: Any) -> Any:
    grower.option("root")
    grower.passes("root", 1.0)
    grower.option("a", "root")
    grower.passes("a", 0.5)
    return grower


def tries(tree: Any, scripts: Any, name: str, seconds: float = 1.0, failing: str = "") -> None:
    """Another attempt at ``a``, with a program of this name."""
    attempt = tree.tree["a"].attempts + 1
    tree.happens("started", option="a", attempt=attempt, improves=True)
    digest = tree.store(scripts.program(name))
    tree.happens("wrote", option="a", program=digest, attempt=attempt, by="script", note="")
    judged = scripts.judged(scripts.program(name), seconds, failing)
    tree.happens("evaluated", option="a", attempt=attempt, **judged.to_fields())


def test_a_faster_program_takes_its_place(tree: Any, scripts: Any) -> None:
    tries(tree, scripts, "faster", 0.25)
    assert scripts.source(tree.tree.program(tree.tree["a"].program)) == "faster"
    assert tree.tree.speedup("a") == pytest.approx(4)
    assert (tree.tree.evaluations, tree.tree.improved) == (3, 3)
    assert tree.tree["a"].vain == 0


@pytest.mark.parametrize(("seconds", "failing"), [(0.75, ""), (0.1, "a race")])
def test_a_slower_or_a_wrong_one_does_not(tree: Any, scripts: Any, seconds: float, failing: str) -> None:
    tries(tree, scripts, "worse", seconds, failing)
    node = tree.tree["a"]
    assert node.status == "passed" and node.failure is None and not node.unproven
    assert scripts.source(tree.tree.program(node.program)) == "a 1"
    assert tree.tree.speedup("a") == pytest.approx(2)
    assert (tree.tree.evaluations, tree.tree.improved, node.vain) == (3, 2, 1)


def test_an_attempt_that_is_broken_off_leaves_the_proven_program(tree: Any, scripts: Any) -> None:
    tree.happens("started", option="a", attempt=2, improves=True)
    digest = tree.store(scripts.program("half done"))
    tree.happens("wrote", option="a", program=digest, attempt=2, by="script", note="")
    assert tree.tree["a"].status == "running"
    tree.happens("stopped", reason="power failure")
    tree.happens("resumed", by="engine")
    assert tree.tree["a"].status == "passed"
    assert scripts.source(tree.tree.program(tree.tree["a"].program)) == "a 1"
    assert Tree.fold(tree.tree.events) == tree.tree


def test_only_what_passed_can_be_improved_and_never_the_root(tree: Any) -> None:
    tree.option("b", "root")
    for option, reason in (("b", "can't be improved: it is proposed"), ("root", "can't be improved: it is the root")):
        with pytest.raises(TreeError, match=reason):
            tree.happens("started", option=option, attempt=tree.tree[option].attempts + 1, improves=True)


def test_what_passed_can_not_start_again_by_itself(tree: Any) -> None:
    with pytest.raises(TreeError, match="can't start: it is passed"):
        tree.happens("started", option="a", attempt=2)
