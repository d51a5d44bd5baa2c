"""The policy, with scores worked out by hand in doublings of speed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import policy
from search.calibration import Calibration, Comparison

NOTHING_KNOWN = Calibration()


@pytest.fixture
def rooted(grower: Any) -> Any:
    """A root that passed in one second."""
    grower.option("root", action="", predicted=0.0)
    grower.passes("root", 1.0)
    return grower


def taken(grower: Any, calibration: Calibration = NOTHING_KNOWN, **how: bool) -> str:
    choice = policy.choose(grower.tree, calibration, **how)
    return choice.option if choice else ""


def test_the_score_adds_standing_gain_promise_and_exploring(rooted: Any) -> None:
    rooted.option("a", "root")
    rooted.passes("a", 0.5)
    rooted.option("b", "root", rating=8.0, confidence=0.5, predicted=4.0)
    # Standing: the root is at 1x, the best at 2x: -1. Belief: 0.5 + 0.5 * 0.3 = 0.65. Gain: 2 * 0.65 = 1.3.
    # Promise: 0.15. Exploring: 0.1 * 0.5 = 0.05. Together 0.5.
    assert policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["b"]).score == pytest.approx(0.5)


def test_a_predicted_loss_counts_in_full(rooted: Any) -> None:
    rooted.option("a", "root", rating=5.0, confidence=1.0, predicted=0.5)
    assert policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["a"]).score == pytest.approx(-1.0)


def test_the_same_rating_counts_for_more_when_it_is_surer(rooted: Any) -> None:
    rooted.option("guess", "root", rating=9.0, confidence=0.2)
    rooted.option("known", "root", rating=9.0, confidence=0.9)
    # guess: belief 0.58, so 0.58 + 0.08 + 0.08 = 0.74; known: belief 0.86, so 0.86 + 0.36 + 0.01 = 1.23.
    assert policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["guess"]).score == pytest.approx(0.74)
    assert policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["known"]).score == pytest.approx(1.23)
    assert taken(rooted) == "known"


def test_a_low_rating_is_held_against_an_option_only_as_far_as_it_is_sure(rooted: Any) -> None:
    rooted.option("surely bad", "root", rating=1.0, confidence=0.9)
    rooted.option("maybe bad", "root", rating=1.0, confidence=0.1)
    assert taken(rooted) == "maybe bad"


def test_a_proposer_that_overpromises_counts_for_less(rooted: Any) -> None:
    rooted.option("boast", "root", by="boaster", predicted=4.0)
    rooted.option("plain", "root", by="honest", predicted=2.0)
    assert taken(rooted) == "boast"
    # Six times promised 4x and found 1x: ln(1/4) * 6 / 9, so 4x is expected to give 4 ** (1/3) = 1.59x.
    known = Calibration(tuple(Comparison(f"o{i}", "boaster", "", 4.0, 1.0) for i in range(6)))
    assert taken(rooted, known) == "plain"


def test_a_branch_that_is_ahead_is_preferred_at_equal_promise(rooted: Any) -> None:
    rooted.option("slow", "root")
    rooted.option("fast", "root")
    rooted.passes("slow", 0.9)
    rooted.passes("fast", 0.3)
    rooted.option("under slow", "slow")
    rooted.option("under fast", "fast")
    assert taken(rooted) == "under fast"


def test_equal_scores_go_to_the_easier_and_then_to_the_older(rooted: Any) -> None:
    rooted.option("first", "root", difficulty=3)
    rooted.option("second", "root", difficulty=2)
    rooted.option("third", "root", difficulty=2)
    assert taken(rooted) == "second"


def test_the_order_is_pinned_then_begun_then_a_persons_in_order_of_approval_then_the_score(rooted: Any) -> None:
    for name, rating in (("best", 9.0), ("mine", 2.0), ("mine too", 3.0), ("begun", 1.0), ("pinned", 0.0)):
        rooted.option(name, "root", rating=rating, confidence=1.0)
    rooted.decide("mine too", "approve")
    rooted.decide("mine", "approve")
    rooted.start("begun")
    rooted.happens("cancelled", option="begun", reason="stop")
    rooted.decide("pinned", "pin")
    order = []
    for _ in range(5):
        order.append(taken(rooted))
        rooted.decide(order[-1], "prune")
    assert order == ["pinned", "begun", "mine too", "mine", "best"]


def test_when_a_person_decides_only_what_is_approved_runs_even_if_another_is_pinned(rooted: Any) -> None:
    rooted.option("pinned", "root")
    rooted.option("approved", "root", rating=1.0)
    rooted.decide("pinned", "pin")
    assert taken(rooted, approved_only=True) == ""
    rooted.decide("approved", "approve")
    assert taken(rooted, approved_only=True) == "approved"
    assert taken(rooted) == "pinned"


def test_what_the_policy_would_take_by_itself_leaves_out_what_is_decided(rooted: Any) -> None:
    rooted.option("good", "root", rating=9.0, confidence=0.9)
    rooted.option("poor", "root", rating=2.0, confidence=0.9)
    assert policy.own_choice(rooted.tree, NOTHING_KNOWN).option == "good"
    rooted.decide("good", "approve")
    assert policy.own_choice(rooted.tree, NOTHING_KNOWN).option == "poor"
    rooted.decide("poor", "prune")
    assert policy.own_choice(rooted.tree, NOTHING_KNOWN) is None


def test_the_hardest_wait_until_nothing_easier_is_left(rooted: Any) -> None:
    rooted.option("hard", "root", rating=10.0, confidence=1.0, predicted=8.0, difficulty=5)
    rooted.option("easy", "root", rating=1.0, difficulty=4)
    assert taken(rooted) == "easy"
    rooted.decide("easy", "prune")
    assert taken(rooted) == "hard"


def test_each_failure_in_a_row_lowers_what_counts_as_easy_and_a_pass_raises_it_again(rooted: Any) -> None:
    rooted.option("four", "root", rating=10.0, confidence=1.0, difficulty=4)
    rooted.option("three", "root", rating=1.0, confidence=1.0, difficulty=3)
    rooted.option("two", "root", rating=1.0, confidence=1.0, difficulty=2)
    for name in ("bad", "worse", "worst", "fine"):
        rooted.option(name, "root", rating=0.0, confidence=1.0, predicted=0.1, difficulty=1)
    assert taken(rooted) == "four"
    rooted.fails("bad")
    assert taken(rooted) == "two"  # three and two are easy enough, score alike, and the easier goes first
    rooted.fails("worse")
    rooted.fails("worst")
    rooted.decide("two", "prune")
    assert taken(rooted) == "fine"  # never less than 2 is asked, so three is too hard here
    rooted.passes("fine", 5.0)
    assert taken(rooted) == "four"


def test_an_option_that_failed_is_never_taken_again(rooted: Any) -> None:
    rooted.option("again", "root", rating=10.0, confidence=1.0)
    rooted.fails("again")
    assert taken(rooted) == ""


def test_five_evaluations_without_improvement_make_it_explore_widely(rooted: Any) -> None:
    rooted.option("unsure", "root", rating=5.0, confidence=0.0)
    for turn in range(5):
        assert not policy.stagnating(rooted.tree)
        assert policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["unsure"]).score == pytest.approx(0.5 + 0.1)
        rooted.option(f"useless {turn}", "root")
        rooted.passes(f"useless {turn}", 2.0)
    assert policy.stagnating(rooted.tree)
    found = policy.score(rooted.tree, NOTHING_KNOWN, rooted.tree["unsure"])
    assert found.score == pytest.approx(0.5 + 0.4)
    assert "nothing has improved" in found.why


def test_every_choice_says_why(rooted: Any) -> None:
    rooted.option("a", "root", rating=7.0)
    choice = policy.choose(rooted.tree, NOTHING_KNOWN)
    assert "predicted 2.00×" in choice.why and "rating 7.0 at confidence 0.50" in choice.why
    rooted.decide("a", "approve")
    assert policy.choose(rooted.tree, NOTHING_KNOWN).why == "approved by a person"


class TestWhereToAskForMore:
    """`policy.to_grow`."""

    def grows(self, grower: Any, exhausted: set[str] | None = None, grown_at: int = 0) -> str:
        return policy.to_grow(grower.tree, exhausted or set(), grown_at)

    def autopilot(self, grower: Any) -> None:
        grower.happens("autopilot", on=True, by="person")

    def test_a_person_gets_options_under_each_option_that_passed_once(self, rooted: Any) -> None:
        assert self.grows(rooted) == "root"
        for name in ("a", "b", "c"):
            rooted.option(name, "root")
        assert self.grows(rooted) == ""
        rooted.passes("a", 0.5)
        rooted.passes("b", 0.7)
        assert self.grows(rooted) == "b"  # the one that has just passed
        assert self.grows(rooted, {"b"}) == "a"
        assert self.grows(rooted, {"a", "b"}) == ""  # c can still be decided

    def test_when_nothing_is_left_to_decide_the_fastest_is_asked_again(self, rooted: Any) -> None:
        rooted.option("a", "root")
        rooted.passes("a", 0.5)
        rooted.option("b", "a")
        rooted.decide("b", "prune")
        assert self.grows(rooted) == "a"
        assert self.grows(rooted, {"a"}) == "root"
        assert self.grows(rooted, {"a", "root"}) == ""

    def test_a_pinned_option_is_where_to_look_first(self, rooted: Any) -> None:
        rooted.option("fast", "root")
        rooted.option("loved", "root")
        rooted.passes("fast", 0.2)
        rooted.passes("loved", 0.9)
        self.autopilot(rooted)
        assert self.grows(rooted, {"fast"}) == "loved"
        rooted.decide("root", "pin")
        assert self.grows(rooted, {"fast"}) == "root"

    def test_autopilot_asks_under_the_best_and_otherwise_only_when_few_wait(self, rooted: Any) -> None:
        self.autopilot(rooted)
        for name in ("a", "b", "c", "d", "e"):
            rooted.option(name, "root")
        rooted.passes("a", 0.5)
        assert self.grows(rooted) == "a"
        rooted.option("a1", "a")
        rooted.passes("b", 0.8)
        assert self.grows(rooted) == ""  # c, d, e and a1 wait
        rooted.decide("c", "prune")
        rooted.decide("d", "prune")
        assert self.grows(rooted) == "b"  # e and a1 are fewer than three

    def test_a_run_that_stagnates_looks_elsewhere_once_in_five_evaluations(self, rooted: Any) -> None:
        self.autopilot(rooted)
        for name in "abcdefghi":
            rooted.option(name, "root")
        for name in "abcde":
            assert self.grows(rooted, {"root"}, grown_at=1) == ""
            rooted.passes(name, 2.0)
        assert self.grows(rooted, {"root"}, grown_at=1) == "a"
        assert self.grows(rooted, {"root"}, grown_at=rooted.tree.evaluations) == ""

    def test_nothing_grows_in_a_pruned_branch(self, rooted: Any) -> None:
        rooted.option("a", "root")
        rooted.passes("a", 0.5)
        rooted.option("b", "a")
        rooted.passes("b", 0.4)
        rooted.decide("a", "prune")
        assert self.grows(rooted, {"root"}) == ""


@given(
    rating=st.floats(0, 10),
    better=st.floats(0, 10),
    confidence=st.floats(0, 1),
    predicted=st.floats(0.1, 20),
)
def test_a_higher_rating_never_lowers_the_score(
    rating: float, better: float, confidence: float, predicted: float
) -> None:
    from dataclasses import replace

    from search.tree import Option, Tree

    tree = Tree()
    option = Option("o", "", "t", "", "", min(rating, better), confidence, 2, predicted, "s", 0, 1)
    low = policy.score(tree, NOTHING_KNOWN, option).score
    high = policy.score(tree, NOTHING_KNOWN, replace(option, rating=max(rating, better))).score
    assert high >= low - 1e-12
