"""A person steers: every decision, and exactly the events that follow from it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from search.engine import EngineError
from search.proposers.base import ProposerError, Redirection
from search.tree import Tree


@pytest.fixture
async def stage(scripts: Any) -> Any:
    """A run by hand that waits: the root has passed, a and b are proposed under it."""
    stage = scripts.Stage()
    stage.proposer.menu = {"naive": scripts.menu("a", "b")}
    await stage.start()
    yield stage
    await stage.finish()
    assert Tree.fold(stage.events) == stage.tree
    assert stage.evaluator.closed == 1


async def test_a_new_run_evaluates_the_root_and_proposes_under_it_and_waits(stage: Any) -> None:
    assert stage.kinds() == [
        "option_added naive",
        "decided naive",
        "started naive",
        "wrote naive",
        "evaluated naive",
        "option_added a",
        "option_added b",
    ]
    assert stage.events[1]["by"] == "engine"
    assert stage.engine.would_take() == stage.id("a")


async def test_events_are_numbered_and_stamped_by_the_clock(stage: Any) -> None:
    assert [event.seq for event in stage.events] == list(range(1, len(stage.events) + 1))
    assert stage.events[0].at == "2026-01-02T03:04:05.500Z"
    assert stage.events[1].at == "2026-01-02T03:04:06.000Z"


async def test_an_approved_option_is_written_evaluated_and_learned_from(stage: Any) -> None:
    stage.evaluator.seconds["b"] = 0.5
    before = len(stage.kinds())
    stage.engine.approve(stage.id("b"))
    await stage.settle()
    assert stage.kinds()[before:] == [
        "decided b",
        "started b",
        "wrote b",
        "evaluated b",
        "rated b",
        "rated a",
    ]
    assert stage.last("decided").data == {
        "option": stage.id("b"),
        "decision": "approve",
        "by": "person",
        "policy_choice": stage.id("a"),
    }
    assert stage.tree.best().title == "b"
    assert stage.proposer.asked == ["naive", "b"]


async def test_options_are_proposed_under_what_has_passed_and_old_ones_stay(stage: Any, scripts: Any) -> None:
    stage.proposer.menu["a"] = scripts.menu("b", "c")
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert [option.title for option in stage.tree.frontier()] == ["b", "b", "c"]


async def test_several_approvals_run_in_the_order_in_which_they_were_given(stage: Any) -> None:
    stage.engine.approve(stage.id("b"))
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert stage.evaluator.called == ["naive", "b", "a"]


async def test_what_is_written_is_stored_once(stage: Any) -> None:
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    texts = [event["sha256"] for event in stage.events if event.kind == "kernel"]
    assert len(texts) == len(set(texts)) == 3  # naive, a, and the empty header that both have


async def test_pruning_what_runs_breaks_it_off(stage: Any) -> None:
    stage.evaluator.hold("a")
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    stage.engine.prune(stage.id("a"))
    assert stage.status("a") == "pruned"
    await stage.settle()
    assert stage.evaluator.broken_off == ["a"]
    assert stage.kinds()[-4:] == ["started a", "wrote a", "decided a", "cancelled a"]
    assert stage.tree.evaluations == 1


async def test_pruning_above_what_runs_breaks_it_off_and_undo_lets_it_run_again(stage: Any, scripts: Any) -> None:
    stage.proposer.menu["a"] = scripts.menu("a1")
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    held = stage.evaluator.hold("a1")
    stage.engine.approve(stage.id("a1"))
    await stage.settle()
    stage.engine.prune(stage.id("a"))
    await stage.settle()
    assert stage.evaluator.broken_off == ["a1"]
    assert stage.engine.undo() == "the pruning of 'a'"
    held.set()
    await stage.settle()
    assert stage.status("a1") == "passed"
    assert stage.tree[stage.id("a1")].attempts == 2
    assert stage.proposer.written.count("a1") == 1  # what was written the first time is evaluated now


async def test_pruning_another_branch_does_not_disturb_what_runs(stage: Any) -> None:
    held = stage.evaluator.hold("a")
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    stage.engine.prune(stage.id("b"))
    held.set()
    await stage.settle()
    assert stage.status("a") == "passed"


async def test_undo_goes_back_decision_by_decision(stage: Any) -> None:
    stage.engine.pause()
    before = dict(stage.tree.options)
    stage.engine.pin(stage.id("a"))
    stage.engine.approve(stage.id("b"))
    stage.engine.prune(stage.id("a"))
    assert stage.engine.undo() == "the pruning of 'a'"
    assert stage.engine.undo() == "the approval of 'b'"
    assert stage.engine.undo() == "the pin on 'a'"
    assert stage.tree.options == before
    with pytest.raises(EngineError, match="nothing to take back"):
        stage.engine.undo()


async def test_undo_takes_back_an_approval_only_before_it_was_acted_on(stage: Any) -> None:
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    with pytest.raises(EngineError, match="has run already"):
        stage.engine.undo()


async def test_a_pinned_option_goes_first(stage: Any) -> None:
    stage.engine.pause()
    stage.engine.approve(stage.id("a"))
    stage.engine.approve(stage.id("b"))
    stage.engine.pin(stage.id("b"))
    stage.engine.resume()
    await stage.settle()
    assert stage.evaluator.called == ["naive", "b", "a"]


async def test_a_pause_lets_what_runs_end_and_begins_nothing_more(stage: Any) -> None:
    held = stage.evaluator.hold("a")
    stage.engine.approve(stage.id("a"))
    stage.engine.approve(stage.id("b"))
    await stage.settle()
    stage.engine.pause()
    held.set()
    await stage.settle()
    assert (stage.status("a"), stage.status("b")) == ("passed", "approved")
    stage.engine.resume()
    await stage.settle()
    assert stage.status("b") == "passed"


async def test_pausing_twice_and_resuming_without_a_pause_are_refused(stage: Any) -> None:
    with pytest.raises(EngineError, match="not paused"):
        stage.engine.resume()
    stage.engine.pause()
    with pytest.raises(EngineError, match="paused already"):
        stage.engine.pause()


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (lambda stage: stage.engine.approve("nobody"), "there is no option 'nobody'"),
        (lambda stage: stage.engine.approve(stage.tree.root), "'naive' (o1) has passed already"),
        (lambda stage: stage.engine.prune(stage.tree.root), "the root can't be pruned"),
        (lambda stage: stage.engine.unpin(stage.id("a")), "'a' (o2) is not pinned"),
        (lambda stage: stage.engine.add("nobody", "mine"), "there is no option 'nobody'"),
        (lambda stage: stage.engine.add(stage.tree.root, " \n"), "has no title"),
        (lambda stage: stage.engine.undo(), "nothing to take back"),
    ],
)
async def test_a_refused_action_says_why_and_changes_nothing(stage: Any, action: Any, complaint: str) -> None:
    before = len(stage.events)
    with pytest.raises(EngineError) as refused:
        action(stage)
    assert complaint in str(refused.value)
    assert len(stage.events) == before


class TestRedirecting:
    async def test_guidance_brings_options_moves_one_up_and_rules_others_out(self, stage: Any, scripts: Any) -> None:
        stage.proposer.answers["c and b first, no a"] = Redirection(
            (scripts.proposal("c", rating=9.0), scripts.proposal("b", rating=8.0)), avoid=("a",)
        )
        before, count = dict(stage.tree.options), len(stage.events)
        answer = await stage.engine.redirect(stage.tree.root, " c and b first, no a ")
        assert [proposal.title for proposal in answer.proposals] == ["c", "b"]
        told = [(event.kind, event.data.get("option")) for event in stage.events[count:]]
        root, a, b, c = (stage.id(title) for title in ("naive", "a", "b", "c"))
        assert told == [("redirected", root), ("option_added", c), ("rated", b), ("decided", a)]
        origin = count + 1
        assert all(event["origin"] == origin for event in stage.events[count + 1 :])
        assert stage.events[count]["policy_choice"] == a
        assert stage.tree[b].rating == 8.0
        assert stage.status("a") == "pruned"
        assert stage.tree.guidance_for(c) == ("c and b first, no a",)
        assert stage.engine.would_take() == c
        assert stage.engine.undo() == "the redirection of 'naive'"
        assert stage.tree.options == before

    async def test_when_unsure_the_proposer_asks_and_nothing_else_happens(self, stage: Any) -> None:
        stage.proposer.answers["faster"] = Redirection(question="Which?", choices=("tile", "exp2"))
        before = dict(stage.tree.options)
        answer = await stage.engine.redirect(stage.id("a"), "faster")
        assert answer.question == "Which?"
        assert stage.tree.options == before
        assert stage.events[-2].data == {"target": stage.events[-3].seq, "by": "engine"}
        assert stage.events[-1].kind == "asked"
        assert stage.events[-1]["choices"] == ["tile", "exp2"]
        assert stage.events[-1]["guidance"] == "faster"

    async def test_new_guidance_makes_it_ask_again_where_nothing_came_before(self, stage: Any, scripts: Any) -> None:
        for title in ("a", "b"):
            stage.engine.prune(stage.id(title))
        await stage.settle()
        assert stage.proposer.asked == ["naive", "naive"]
        stage.proposer.menu["naive"] = scripts.menu("c")
        await stage.engine.redirect(stage.tree.root, "something else")
        await stage.settle()
        assert stage.proposer.asked == ["naive", "naive", "naive"]
        assert stage.status("c") == "proposed"

    async def test_a_pruned_option_that_is_asked_for_is_proposed_anew(self, stage: Any, scripts: Any) -> None:
        stage.engine.prune(stage.id("a"))
        stage.proposer.answers["a"] = Redirection((scripts.proposal("a"),))
        await stage.engine.redirect(stage.tree.root, "a")
        assert stage.status("a") == "proposed"

    async def test_what_has_failed_is_not_proposed_again(self, stage: Any, scripts: Any) -> None:
        stage.proposer.raises["write a"] = ProposerError("no")
        stage.engine.approve(stage.id("a"))
        await stage.settle()
        stage.proposer.answers["a"] = Redirection((scripts.proposal("a", rating=10.0),))
        await stage.engine.redirect(stage.tree.root, "a")
        assert [option.title for option in stage.tree.frontier()] == ["b"]

    async def test_empty_guidance_is_refused_in_words(self, stage: Any) -> None:
        before = len(stage.events)
        with pytest.raises(EngineError, match="no guidance"):
            await stage.engine.redirect(stage.tree.root, "   ")
        assert len(stage.events) == before

    async def test_what_a_person_said_is_on_record_before_anyone_is_asked(self, stage: Any) -> None:
        known: list[tuple[str, ...]] = []

        async def asked(situation: Any, option: str, guidance: str) -> Redirection:
            known.append(situation.tree.guidance_for(stage.id("a")))
            assert stage.events[-1].kind == "redirected"
            return Redirection()

        stage.proposer.redirect = asked
        await stage.engine.redirect(stage.tree.root, "wide loads")
        assert known == [("wide loads",)]

    async def test_where_the_proposer_can_not_answer_the_words_hold_once_and_that_is_said(self, stage: Any) -> None:
        stage.proposer.raises["redirect x"] = ProposerError("The model does not answer.")
        told = "The model does not answer. What you said is kept as guidance for 'naive' and all under it."
        for _ in range(2):
            with pytest.raises(EngineError) as refused:
                await stage.engine.redirect(stage.tree.root, "x")
            assert str(refused.value) == told
            assert stage.last("note").data == {
                "text": told, "level": "warning", "option": stage.tree.root, "about": "redirect"
            }  # fmt: skip
        assert stage.tree.guidance_for(stage.id("b")) == ("x",)
        del stage.proposer.raises["redirect x"]
        await stage.engine.redirect(stage.tree.root, "x")
        assert [event["guidance"] for event in stage.events if event.kind == "redirected"] == ["x"]
        # It has an answer now: the same words again are a new wish.
        await stage.engine.redirect(stage.tree.root, "y")
        await stage.engine.redirect(stage.tree.root, "x")
        assert stage.tree.guidance_for(stage.id("b")) == ("x", "y", "x")
        stage.engine.undo()
        assert stage.tree.guidance_for(stage.id("b")) == ("x", "y")

    async def test_what_got_no_answer_still_makes_it_ask_again_where_nothing_came(self, stage: Any) -> None:
        for title in ("a", "b"):
            stage.engine.prune(stage.id(title))
        await stage.settle()
        stage.proposer.raises["redirect x"] = ProposerError("no")
        with pytest.raises(EngineError):
            await stage.engine.redirect(stage.tree.root, "x")
        await stage.settle()
        assert stage.proposer.asked == ["naive", "naive", "naive"]

    async def test_whoever_does_not_wait_for_the_answer_takes_the_words_back(self, stage: Any) -> None:
        before = dict(stage.tree.options)
        self.never_answers(stage)
        asking = asyncio.create_task(stage.engine.redirect(stage.tree.root, "x"))
        await stage.settle()
        assert stage.tree.guidance_for(stage.id("a")) == ("x",)
        asking.cancel()
        await stage.settle()
        assert asking.cancelled()
        assert stage.tree.options == before
        assert stage.last("undone")["by"] == "person"

    async def test_words_that_a_stop_found_unanswered_stay(self, stage: Any) -> None:
        self.never_answers(stage)
        asking = asyncio.create_task(stage.engine.redirect(stage.tree.root, "x"))
        await stage.settle()
        stage.engine.stop("quit")
        asking.cancel()
        await stage.settle()
        assert Tree.fold(stage.events).guidance_for(stage.id("a")) == ("x",)

    @staticmethod
    def never_answers(stage: Any) -> None:
        async def waits(*_: object) -> Redirection:
            await asyncio.Event().wait()
            return Redirection()

        stage.proposer.redirect = waits

    async def test_a_branch_that_was_pruned_while_the_proposer_thought_is_left_alone(
        self, stage: Any, scripts: Any
    ) -> None:
        async def slow(*_: object) -> Redirection:
            stage.engine.prune(stage.id("a"))
            return Redirection((scripts.proposal("c"),))

        stage.proposer.redirect = slow
        with pytest.raises(EngineError, match="is pruned"):
            await stage.engine.redirect(stage.id("a"), "x")
        assert stage.events[-1].kind == "decided"


class TestProposing:
    async def test_a_person_can_ask_for_more(self, stage: Any, scripts: Any) -> None:
        stage.proposer.menu["naive"] = scripts.menu("a", "c", "d")
        assert await stage.engine.propose(stage.tree.root) == 2
        assert [option.title for option in stage.tree.frontier()] == ["a", "b", "c", "d"]
        assert await stage.engine.propose(stage.tree.root) == 0

    async def test_more_is_asked_for_only_under_what_has_passed(self, stage: Any) -> None:
        with pytest.raises(EngineError, match="nothing to build on before it has passed"):
            await stage.engine.propose(stage.id("a"))

    async def test_a_proposal_that_breaks_the_rules_is_refused_whole_and_noted(self, stage: Any, scripts: Any) -> None:
        stage.proposer.menu["naive"] = [
            scripts.proposal("c", rating=11.0),
            scripts.proposal("d", confidence=float("nan")),
            scripts.proposal("e"),
        ]
        assert await stage.engine.propose(stage.tree.root) == 1
        notes = [event["text"] for event in stage.events if event.kind == "note"]
        assert len(notes) == 2 and all("a proposal was refused" in note for note in notes)

    async def test_free_text_proposals_are_the_same_when_their_titles_are(self, stage: Any, scripts: Any) -> None:
        stage.proposer.menu["naive"] = [
            scripts.proposal("Use fewer  barriers", action=""),
            scripts.proposal("use fewer barriers", action=""),
            scripts.proposal("Use more registers", action=""),
        ]
        assert await stage.engine.propose(stage.tree.root) == 2

    async def test_when_nothing_is_left_a_person_is_told_once_and_the_run_waits(self, stage: Any) -> None:
        stage.engine.prune(stage.id("a"))
        stage.engine.prune(stage.id("b"))
        await stage.settle()
        assert stage.events[-1]["text"] == "nothing is left to try"
        stage.engine.pin(stage.id("a"))
        await stage.settle()
        assert stage.kinds("note") == ["note"]
        assert not stage.tree.stopped


class TestEditing:
    async def test_a_persons_program_runs_as_it_is(self, stage: Any, scripts: Any) -> None:
        stage.engine.edit(stage.id("a"), scripts.program("my own"))
        await stage.settle()
        assert stage.evaluator.called[-1] == "my own"
        assert "a" not in stage.proposer.written
        assert stage.status("a") == "passed"
        assert stage.last("edited")["policy_choice"] == stage.id("a")
        assert stage.engine.calibration.comparisons == ()

    async def test_editing_a_failed_option_queues_it_again_with_all_its_repairs(self, stage: Any, scripts: Any) -> None:
        stage.evaluator.failing = {"a": "bad", "a mended": "bad", "a mended mended": "bad", "mine": "worse"}
        stage.engine.approve(stage.id("a"))
        await stage.settle()
        assert stage.status("a") == "failed"
        stage.engine.edit(stage.id("a"), scripts.program("mine"))
        await stage.settle()
        assert stage.evaluator.called[-2:] == ["mine", "mine mended"]
        assert stage.status("a") == "passed"
        assert stage.tree[stage.id("a")].attempts == 5

    async def test_the_program_that_failed_is_not_taken_unchanged(self, stage: Any, scripts: Any) -> None:
        stage.proposer.mends["a"] = [None]
        stage.evaluator.failing = {"a": "bad"}
        stage.engine.approve(stage.id("a"))
        await stage.settle()
        before = len(stage.events)
        with pytest.raises(EngineError, match="is unchanged, and it has failed"):
            stage.engine.edit(stage.id("a"), scripts.program("a"))
        assert len(stage.events) == before

    async def test_a_refused_edit_stores_nothing(self, stage: Any, scripts: Any) -> None:
        before = len(stage.events)
        with pytest.raises(EngineError, match="what was measured stays"):
            stage.engine.edit(stage.tree.root, scripts.program("mine"))
        assert len(stage.events) == before

    async def test_the_draft_to_edit_is_what_the_proposer_would_write(self, stage: Any, scripts: Any) -> None:
        before = len(stage.events)
        assert await stage.engine.draft(stage.id("a")) == scripts.program("a")
        assert await stage.engine.draft(stage.tree.root) == scripts.program("naive")
        stage.proposer.raises["write b"] = ProposerError("no idea")
        assert await stage.engine.draft(stage.id("b")) == scripts.program("naive")
        assert len(stage.events) == before

    async def test_there_is_no_draft_under_what_has_no_program(self, stage: Any) -> None:
        stage.proposer.raises["write c"] = ProposerError("no idea")
        under = stage.engine.add(stage.id("a"), "c")
        with pytest.raises(EngineError, match="neither has the option above it"):
            await stage.engine.draft(under)


class TestAdding:
    async def test_an_option_of_ones_own_waits_to_be_approved(self, stage: Any) -> None:
        option = stage.engine.add(stage.tree.root, "  my  idea ", "a hunch")
        node = stage.tree[option]
        assert (node.title, node.why, node.by, node.status) == ("my idea", "a hunch", "person", "proposed")
        await stage.settle()
        assert stage.status("my idea") == "proposed"
        stage.engine.approve(option)
        await stage.settle()
        assert stage.status("my idea") == "passed"

    async def test_it_can_be_taken_back_and_its_id_is_not_used_again(self, stage: Any) -> None:
        first = stage.engine.add(stage.tree.root, "mine")
        assert stage.engine.undo() == "the option 'mine'"
        assert first not in stage.tree.options
        assert stage.engine.add(stage.tree.root, "mine") != first

    async def test_a_failed_option_that_a_person_approves_again_is_written_afresh(self, stage: Any) -> None:
        stage.proposer.raises["write a"] = ProposerError("the model is away")
        stage.engine.approve(stage.id("a"))
        await stage.settle()
        assert stage.last("failed")["reason"] == "the model is away"
        del stage.proposer.raises["write a"]
        stage.engine.approve(stage.id("a"))
        await stage.settle()
        assert stage.status("a") == "passed"


async def test_progress_is_told_but_not_recorded(stage: Any) -> None:
    told: list[tuple[str, str]] = []
    end = stage.engine.on_progress(lambda option, what: told.append((stage.tree[option].title, what)))
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert told == [("a", "writing"), ("a", "compiling"), ("a", "asking for options")]
    end()
    stage.engine.approve(stage.id("b"))
    await stage.settle()
    assert len(told) == 3


async def test_a_listener_that_decides_while_it_is_told_does_not_mix_up_the_order(stage: Any) -> None:
    seen: list[int] = []

    def prunes_what_starts(event: Any) -> None:
        if event.kind == "started":
            stage.engine.prune(event["option"])

    stage.engine.subscribe(prunes_what_starts)
    stage.engine.subscribe(lambda event: seen.append(event.seq))
    stage.engine.approve(stage.id("a"))
    await stage.settle()
    assert seen == sorted(seen) and len(seen) == 4
    assert stage.kinds()[-4:] == ["decided a", "started a", "decided a", "cancelled a"]
    assert stage.engine.failure is None


async def test_after_the_end_decisions_are_refused_in_words(stage: Any) -> None:
    stage.engine.stop("quit")
    for action in (stage.engine.undo, stage.engine.pause, lambda: stage.engine.approve(stage.id("a"))):
        with pytest.raises(EngineError, match=r"the run has stopped \(quit\): resume it"):
            action()
    stage.engine.stop("again")
    assert stage.kinds("stopped") == ["stopped"]
