"""The tree's rules one by one, and what decisions and taking them back do."""

from __future__ import annotations

import time
from typing import Any

import pytest

from search.events import Event
from search.tree import Tree, TreeError


@pytest.fixture
def rooted(grower: Any) -> Any:
    """A root that passed in one second, with the open options a and b under it."""
    grower.option("root", action="", predicted=0.0)
    grower.passes("root", 1.0)
    grower.option("a", "root")
    grower.option("b", "root")
    return grower


def undo(grower: Any, event: Event) -> None:
    grower.happens("undone", target=event.seq, by="person")


def frontier(grower: Any) -> list[str]:
    return [option.id for option in grower.tree.frontier()]


class TestAdding:
    @pytest.mark.parametrize(
        ("changes", "complaint"),
        [
            ({"rating": 10.5}, "rating 10.5"),
            ({"rating": float("nan")}, "rating nan"),
            ({"confidence": -0.1}, "confidence -0.1"),
            ({"difficulty": 6}, "difficulty is 6"),
            ({"predicted": -1.0}, "predicted speedup is -1.0"),
            ({"predicted": float("inf")}, "predicted speedup is inf"),
            ({"predicted": 1e308}, "predicted speedup is 1e\\+308"),
            ({"predicted": 5e-324}, "predicted speedup is 5e-324"),
        ],
    )
    def test_figures_outside_their_range_are_refused(
        self, rooted: Any, changes: dict[str, float], complaint: str
    ) -> None:
        with pytest.raises(TreeError, match=complaint):
            rooted.option("c", "root", **changes)
        assert "c" not in rooted.tree.options

    def test_an_id_is_never_used_twice_even_after_it_was_taken_back(self, rooted: Any) -> None:
        added = rooted.tree.events[-1].seq
        rooted.option("mine", "root", by="person")
        rooted.happens("undone", target=added + 1, by="person")
        assert "mine" not in rooted.tree.options
        with pytest.raises(TreeError, match="is or was"):
            rooted.option("mine", "root")

    def test_free_ids_go_on_after_an_option_was_taken_back(self, grower: Any) -> None:
        grower.option(grower.tree.free_id())
        grower.option(grower.tree.free_id(), "o1", by="person")
        grower.happens("undone", target=2, by="person")
        assert grower.tree.free_id() == "o3"

    def test_there_is_one_root_and_no_orphan(self, rooted: Any) -> None:
        with pytest.raises(TreeError, match="root already"):
            rooted.option("second", "")
        with pytest.raises(TreeError, match="unknown parent 'nobody'"):
            rooted.option("c", "nobody")

    def test_a_proposer_can_not_bring_a_result_along(self, rooted: Any) -> None:
        """An option_added event with forged fields makes a plain open option."""
        forged = {"evaluations": ["x"], "status": "passed", "program": "p"}
        event = rooted.tree.events[-1]
        rooted.tree.apply(Event(event.seq + 1, event.at, "option_added", {**event.data, **forged, "option": "c"}))
        assert rooted.tree["c"].status == "proposed"
        assert rooted.tree["c"].program == ""


class TestPruning:
    def test_pruning_a_subtree_keeps_its_measurements(self, rooted: Any) -> None:
        rooted.passes("a", 0.5)
        rooted.option("a1", "a")
        rooted.passes("a1", 0.25)
        prune = rooted.decide("a", "prune")
        assert rooted.tree["a"].status == "pruned"
        assert rooted.tree.speedup("a1") == pytest.approx(4.0)
        assert rooted.tree.best().id == "a1"
        undo(rooted, prune)
        assert [rooted.tree[name].status for name in ("a", "a1")] == ["passed", "passed"]

    def test_what_stands_under_a_pruned_option_is_not_on_the_frontier(self, rooted: Any) -> None:
        rooted.passes("a", 0.5)
        rooted.option("a1", "a")
        assert frontier(rooted) == ["b", "a1"]
        rooted.decide("a", "prune")
        assert frontier(rooted) == ["b"]

    def test_what_stands_under_an_option_that_is_improved_stays_on_the_frontier(self, rooted: Any) -> None:
        rooted.passes("a", 0.5)
        rooted.option("a1", "a")
        rooted.happens("started", option="a", attempt=2, improves=True)
        assert rooted.tree["a"].status == "running"
        assert frontier(rooted) == ["b", "a1"]

    def test_an_option_under_a_pruned_one_can_not_be_approved_or_edited_or_redirected(self, rooted: Any) -> None:
        rooted.passes("a", 0.5)
        rooted.option("a1", "a")
        rooted.decide("a", "prune")
        told = r"'a1' \(a1\) stands under 'a' \(a\), which is pruned"
        with pytest.raises(TreeError, match=told):
            rooted.decide("a1", "approve")
        with pytest.raises(TreeError, match=told):
            rooted.happens("redirected", option="a1", guidance="g", by="person", policy_choice="")

    def test_approving_a_pruned_option_brings_it_back(self, rooted: Any) -> None:
        rooted.decide("b", "prune")
        rooted.decide("b", "approve")
        assert rooted.tree["b"].status == "approved"

    def test_approving_a_pruned_option_that_has_passed_or_failed_does_not_run_it_again(self, rooted: Any) -> None:
        rooted.passes("a", 0.5)
        rooted.fails("b")
        for name, status in (("a", "passed"), ("b", "failed")):
            rooted.decide(name, "prune")
            rooted.decide(name, "approve")
            assert rooted.tree[name].status == status
        assert frontier(rooted) == []

    def test_the_root_can_not_be_pruned(self, rooted: Any) -> None:
        with pytest.raises(TreeError, match="everything is built on it"):
            rooted.decide("root", "prune")

    def test_a_running_option_that_is_pruned_waits_again_when_that_is_taken_back(self, rooted: Any) -> None:
        rooted.start("a")
        prune = rooted.decide("a", "prune")
        rooted.happens("cancelled", option="a", reason="pruned")
        assert rooted.tree["a"].status == "pruned"
        undo(rooted, prune)
        assert rooted.tree["a"].status == "approved"
        assert frontier(rooted) == ["a", "b"]


class TestRunning:
    def test_nothing_starts_that_nobody_approved(self, rooted: Any) -> None:
        with pytest.raises(TreeError, match="it is proposed"):
            rooted.happens("started", option="a", attempt=1)

    def test_nothing_starts_before_what_it_is_built_on_has_passed(self, rooted: Any) -> None:
        rooted.option("a1", "a")
        rooted.decide("a1", "approve")
        with pytest.raises(TreeError, match="the option above it has not passed"):
            rooted.happens("started", option="a1", attempt=1)

    def test_an_evaluation_counts_only_for_the_program_that_was_written(self, rooted: Any, scripts: Any) -> None:
        rooted.start("a")
        other = scripts.judged(scripts.program("another"))
        with pytest.raises(TreeError, match="of another program"):
            rooted.happens("evaluated", option="a", attempt=1, **other.to_fields())

    @pytest.mark.parametrize(
        ("field", "value", "complaint"),
        [
            ("roofline_seconds", -1.0, "compared with a time of -1.0"),
            ("roofline_seconds", float("nan"), "compared with a time of nan"),
            ("baseline_seconds", "fast", "compared with a time of fast"),
            ("workloads", 3, "named by something else than text"),
            ("bound_by", 2.5, "named by something else than text"),
        ],
    )
    def test_what_can_t_be_compared_or_named_is_refused(
        self, rooted: Any, scripts: Any, field: str, value: object, complaint: str
    ) -> None:
        rooted.start("a")
        fields = scripts.judged(scripts.program("a 1"), 1.0).to_fields()
        fields[field] = [value] * len(fields["seconds"])
        with pytest.raises(TreeError, match=complaint):
            rooted.happens("evaluated", option="a", attempt=1, **fields)
        assert rooted.tree["a"].status == "running"

    def test_a_time_that_no_kernel_has_is_refused(self, rooted: Any, scripts: Any) -> None:
        rooted.start("a")
        for seconds in (0.0, -1.0, 5e-324, 1e308, float("nan"), float("inf")):
            with pytest.raises(TreeError, match=r"not between 1e-15 and 1e\+09 s"):
                rooted.happens(
                    "evaluated", option="a", attempt=1, **scripts.judged(scripts.program("a 1"), seconds).to_fields()
                )
        assert rooted.tree["a"].status == "running"

    def test_a_result_without_a_start_is_refused(self, rooted: Any, scripts: Any) -> None:
        rooted.decide("a", "approve")
        with pytest.raises(TreeError, match="not running"):
            rooted.happens("evaluated", option="a", attempt=0, **scripts.judged(scripts.program("a 1")).to_fields())

    def test_attempts_count_on_without_a_gap(self, rooted: Any) -> None:
        rooted.decide("a", "approve")
        for attempt in (0, 2):
            with pytest.raises(TreeError, match=f"attempt {attempt} does not follow attempt 0"):
                rooted.happens("started", option="a", attempt=attempt)

    def test_what_passed_can_not_be_approved_again_nor_edited(self, rooted: Any, scripts: Any) -> None:
        rooted.passes("a", 0.5)
        with pytest.raises(TreeError, match="has passed already"):
            rooted.decide("a", "approve")
        mine = rooted.store(scripts.program("mine"))
        with pytest.raises(TreeError, match="what was measured stays"):
            rooted.happens("edited", option="a", program=mine, by="person", policy_choice="")

    def test_only_a_person_lets_a_failed_option_try_again_and_then_it_starts_afresh(self, rooted: Any) -> None:
        rooted.fails("a")
        with pytest.raises(TreeError, match="only a person"):
            rooted.decide("a", "approve", "autopilot")
        again = rooted.decide("a", "approve")
        option = rooted.tree["a"]
        assert (option.status, option.tried, option.program, option.failure) == ("approved", 0, "", None)
        assert len(option.evaluations) == 1
        undo(rooted, again)
        assert rooted.tree["a"].status == "failed"
        assert rooted.tree["a"].program != ""

    def test_editing_a_failed_option_queues_it_again(self, rooted: Any, scripts: Any) -> None:
        rooted.fails("a")
        mine = rooted.store(scripts.program("mine"))
        edit = rooted.happens("edited", option="a", program=mine, by="person", policy_choice="")
        assert rooted.tree["a"].status == "approved"
        assert rooted.tree["a"].unproven
        assert frontier(rooted) == ["a", "b"]
        undo(rooted, edit)
        assert rooted.tree["a"].status == "failed"

    def test_what_was_running_when_the_program_ended_waits_again(self, rooted: Any) -> None:
        rooted.start("a")
        rooted.happens("resumed", by="engine")
        assert rooted.tree["a"].status == "approved"

    def test_ending_a_pause_does_not_disturb_what_runs(self, rooted: Any) -> None:
        rooted.start("a")
        rooted.happens("paused", by="person")
        rooted.happens("resumed", by="person")
        assert rooted.tree["a"].status == "running"
        assert not rooted.tree.paused

    def test_after_the_end_nothing_follows_but_going_on(self, rooted: Any) -> None:
        rooted.happens("stopped", reason="budget")
        with pytest.raises(TreeError, match=r"the run has stopped \(budget\)"):
            rooted.decide("a", "approve")
        with pytest.raises(TreeError, match="has stopped"):
            rooted.happens("resumed", by="person")
        rooted.happens("resumed", by="engine")
        rooted.decide("a", "approve")

    def test_the_best_is_the_first_of_equals_and_knows_when_it_came(self, rooted: Any) -> None:
        rooted.passes("b", 0.5)
        rooted.passes("a", 0.5)
        assert rooted.tree.best().id == "b"
        assert (rooted.tree.evaluations, rooted.tree.improved) == (3, 2)

    def test_failures_in_a_row_are_counted_until_something_passes(self, rooted: Any) -> None:
        rooted.option("c", "root")
        rooted.fails("a")
        rooted.fails("b")
        assert rooted.tree.failures == 2
        rooted.passes("c", 0.5)
        assert rooted.tree.failures == 0


class TestTakingBack:
    def test_an_approval_can_be_taken_back_until_it_was_acted_on(self, rooted: Any) -> None:
        approval = rooted.decide("a", "approve")
        assert rooted.tree.undoable() == [approval.seq]
        rooted.happens("started", option="a", attempt=1)
        assert rooted.tree.undoable() == []
        with pytest.raises(TreeError, match="can't be taken back"):
            undo(rooted, approval)

    def test_a_redirect_takes_all_that_it_brought_back_with_it(self, rooted: Any) -> None:
        before = dict(rooted.tree.options)
        redirect = rooted.happens("redirected", option="root", guidance="no b", by="person", policy_choice="")
        rooted.option("c", "root", origin=redirect.seq)
        rooted.decide("b", "prune", "engine", origin=redirect.seq)
        rooted.happens(
            "rated",
            option="a",
            rating=9.0,
            confidence=0.9,
            why="asked for",
            by="script",
            origin=redirect.seq,
        )
        assert rooted.tree.guidance_for("c") == ("no b",)
        assert frontier(rooted) == ["a", "c"]
        undo(rooted, redirect)
        assert rooted.tree.options == before

    def test_a_redirect_stays_once_something_was_built_on_what_it_brought(self, rooted: Any) -> None:
        redirect = rooted.happens("redirected", option="root", guidance="more", by="person", policy_choice="")
        rooted.option("c", "root", origin=redirect.seq)
        assert rooted.tree.undoable() == [redirect.seq]
        rooted.start("c")
        assert rooted.tree.undoable() == []

    def test_the_engines_and_the_autopilots_decisions_are_not_a_persons_to_take_back(self, rooted: Any) -> None:
        for by in ("engine", "autopilot", "script"):
            event = rooted.decide("a", "approve", by)
            with pytest.raises(TreeError):
                undo(rooted, event)
            rooted.decide("a", "prune", by)

    def test_an_overruled_decision_has_nothing_to_take_back(self, rooted: Any) -> None:
        prune = rooted.decide("a", "prune")
        rooted.decide("a", "approve")
        rooted.happens("started", option="a", attempt=1)
        assert prune.seq not in rooted.tree.undoable()

    def test_nothing_is_taken_back_twice(self, rooted: Any) -> None:
        pin = rooted.decide("a", "pin")
        undo(rooted, pin)
        with pytest.raises(TreeError):
            undo(rooted, pin)

    def test_guidance_travels_with_the_subtree_from_the_top_down(self, rooted: Any) -> None:
        rooted.happens("redirected", option="a", guidance="lower", by="person", policy_choice="")
        rooted.happens("redirected", option="root", guidance="upper", by="person", policy_choice="")
        rooted.option("a1", "a")
        assert rooted.tree.guidance_for("a1") == ("upper", "lower")
        assert rooted.tree.guidance_for("b") == ("upper",)


class TestPrograms:
    def test_a_program_comes_back_whole_and_its_texts_are_held_once(self, rooted: Any, scripts: Any) -> None:
        digest = rooted.store(scripts.program("mine"))
        texts = len(rooted.tree.kernels)
        assert rooted.store(scripts.program("mine")) == digest
        assert len(rooted.tree.kernels) == texts
        assert rooted.tree.program(digest) == scripts.program("mine")

    def test_a_layout_that_was_changed_is_found_out(self, rooted: Any, scripts: Any) -> None:
        digest = rooted.store(scripts.program("mine"))
        layout = rooted.tree.layouts[digest]
        for changed, complaint in (
            (layout.replace('"32"', '"64"'), "does not match its hash"),
            (layout.replace("sha256:", "sha256:0"), "is damaged"),
            ("[]", "is damaged"),
            ("{", "is damaged"),
        ):
            rooted.tree.layouts[digest] = changed
            with pytest.raises(TreeError, match=complaint):
                rooted.tree.program(digest)

    def test_what_is_not_there_is_said_so(self, rooted: Any) -> None:
        with pytest.raises(TreeError, match="no program"):
            rooted.tree.program("0" * 64)


def test_a_run_of_two_thousand_options_can_be_used_while_one_looks_at_it(grower: Any) -> None:
    """Bounds far above what is needed (0.2 s, a few ms), so that only a quadratic cost breaks them."""
    grower.option("root", action="", predicted=0.0)
    grower.passes("root", 1.0)
    names = ["root"]
    for number in range(2000):
        parent = names[number // 3]
        names.append(grower.option(f"n{number}", parent))
        if number < 1500:
            grower.decide(names[-1], "pin")
            grower.passes(names[-1], 1.0 + number % 7)
    started = time.process_time()
    tree = Tree.fold(grower.tree.events)
    assert time.process_time() - started < 2.0
    started = time.process_time()
    for _ in range(10):
        tree.frontier(), tree.best(), tree.undoable(), tree.last_undoable()
    assert time.process_time() - started < 1.0
    assert len(tree.frontier()) == 500
