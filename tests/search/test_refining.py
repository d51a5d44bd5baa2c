"""A proposer's change of the tree keeps to the rules, or nothing of it is done."""

from __future__ import annotations

from typing import Any

import pytest

from search.proposers.base import Judgement, Refinement
from search.refining import refine
from search.tree import TreeError


@pytest.fixture
def tree(grower: Any) -> Any:
    """A root that passed over: one that passed, one that failed, two that wait, a pruned one with one under it."""
    grower.option("root")
    grower.passes("root", 1.0)
    for name in ("good", "bad", "wish", "plan", "cut"):
        grower.option(name, "root")
    grower.passes("good", 0.5)
    grower.fails("bad")
    grower.decide("plan", "approve")
    grower.option("own", "root", by="person")
    grower.decide("cut", "prune")
    return grower


def test_all_of_it_is_done_in_the_proposer_s_name(tree: Any, scripts: Any) -> None:
    change = Refinement(
        ratings=(Judgement("plan", 8.0, 0.9, "it should help"),),
        inserts=(("good", scripts.proposal("more")),),
        splits=(("wish", (scripts.proposal("half"), scripts.proposal("other half"))),),
    )
    assert refine(tree.tree, tree.happens, change, "script") == 3
    found = {option.title: option for option in tree.tree.options.values()}
    assert (found["plan"].rating, found["plan"].confidence) == (8.0, 0.9)
    assert (found["more"].parent, found["half"].parent, found["other half"].parent) == ("good", "root", "root")
    assert found["wish"].status == "pruned"
    assert tree.tree.events[-1].data["why"] == "split into half, other half"


REFUSED = [
    (Refinement(ratings=(Judgement("nowhere", 5, 0.5, ""),)), "there is no option 'nowhere'"),
    (Refinement(ratings=(Judgement("good", 5, 0.5, ""),)), "'good' .* is passed"),
    (Refinement(ratings=(Judgement("bad", 5, 0.5, ""),)), "'bad' .* is failed"),
    (Refinement(ratings=(Judgement("wish", 11, 0.5, ""),)), "rating 11"),
    (Refinement(ratings=(Judgement("wish", float("nan"), 0.5, ""),)), "rating nan"),
    (Refinement(closes=(("root", "slow"),)), "'root' .* is passed"),
    (Refinement(closes=(("plan", "no"),)), "'plan' .* was approved or pinned"),
    (Refinement(closes=(("own", "mine is better"),)), "'own' .* or is a person's own"),
    (Refinement(closes=(("cut", "again"),)), "'cut' .* is pruned"),
    (Refinement(closes=(("wish", "a"), ("wish", "b"))), "option 'wish' is changed twice"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_nothing_is_done_when_a_part_breaks_a_rule(tree: Any, scripts: Any, change: Refinement, reason: str) -> None:
    before = len(tree.tree.events)
    legal = Refinement(change.ratings, (("good", scripts.proposal("legal")),), change.splits, change.closes)
    with pytest.raises(TreeError, match=reason):
        refine(tree.tree, tree.happens, legal, "script")
    assert len(tree.tree.events) == before


@pytest.mark.parametrize(
    ("under", "changes", "reason"),
    [
        ("wish", {}, "nothing to build on before it has passed"),
        ("cut", {}, "pruned"),
        ("good", {"difficulty": 6}, "difficulty is 6"),
        ("good", {"predicted": -1.0}, "predicted speedup is -1"),
    ],
)
def test_an_insert_must_be_an_option_that_could_be_proposed_there(
    tree: Any, scripts: Any, under: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TreeError, match=reason):
        refine(tree.tree, tree.happens, Refinement(inserts=((under, scripts.proposal("new", **changes)),)), "script")


def test_four_options_at_a_time_are_too_many(tree: Any, scripts: Any) -> None:
    many = tuple(("good", scripts.proposal(str(number))) for number in range(4))
    with pytest.raises(TreeError, match="4 new options; at most 3"):
        refine(tree.tree, tree.happens, Refinement(inserts=many), "script")
