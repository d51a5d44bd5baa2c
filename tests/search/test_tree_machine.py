"""The tree against a plain model of it: random runs of decisions, attempts, results and undos.

The model keeps every event and works its answers out from scratch, skipping what was taken back.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from search.evaluation.record import FAILED, PASSED, Evaluation, Failure, WorkloadTime
from search.events import Event
from search.kernels.program import Pass, Program
from search.tree import Tree, TreeError, split_program

WITHOUT_HISTORY = [
    f.name for f in fields(Tree) if f.name not in ("events", "undone", "_by_option", "_brought", "_decisions")
]


def visible(tree: Tree) -> dict[str, Any]:
    """Everything that the tree says, apart from how it came about."""
    return {name: getattr(tree, name) for name in WITHOUT_HISTORY} | {
        "frontier": tree.frontier(),
        "best": tree.best(),
    }


class Model:
    """One option, refolded from its events in the plainest way."""

    def __init__(self) -> None:
        self.approved = self.pruned = self.pinned = self.running = False
        self.failed = self.program = ""
        self.guidance: list[str] = []
        self.results: list[bool] = []
        self.fastest: tuple[float, str] | None = None
        self.fresh = 0
        self.rating = 0.0
        self.started = 0

    def rests(self) -> None:
        self.running = False
        if self.fastest:
            self.program = self.fastest[1]

    def passed(self) -> bool:
        return any(self.results)

    def status(self) -> str:
        if self.pruned:
            return "pruned"
        if self.running:
            return "running"
        if self.passed():
            return "passed"
        if self.failed:
            return "failed"
        return "approved" if self.approved else "proposed"


class TreeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.undone: set[int] = set()
        self.add("", 0)

    # -- making events ----------------------------------------------------------------------------------------------

    def happens(self, kind: str, **data: Any) -> int:
        self.tree.apply(Event(len(self.tree.events) + 1, "2026-01-01T00:00:00.000Z", kind, data))
        return len(self.tree.events)

    def add(self, parent: str, origin: int, by: str = "script") -> None:
        name = self.tree.free_id()
        self.happens(
            "option_added",
            option=name,
            parent=parent,
            title=f"option {name}",
            why="",
            action="",
            rating=5.0,
            confidence=0.5,
            difficulty=2,
            predicted=2.0,
            by=by,
            origin=origin,
        )

    def some(self, data: st.DataObject, allowed: list[str]) -> str:
        return data.draw(st.sampled_from(allowed))

    def names(self, *statuses: str) -> list[str]:
        return [option.id for option in self.tree.options.values() if not statuses or option.status in statuses]

    def store(self, text: str) -> str:
        program = Program((Pass("p", ("x",), ("y",), text, ("1", "1", "1"), ("1", "1", "1")),))
        kernels, layout = split_program(program)
        for digest, kernel in kernels.items():
            if digest not in self.tree.kernels:
                self.happens("kernel", sha256=digest, text=kernel)
        if program.sha256 not in self.tree.layouts:
            self.happens("program", sha256=program.sha256, layout=layout)
        return program.sha256

    # -- what can happen --------------------------------------------------------------------------------------------

    @rule(data=st.data(), by=st.sampled_from(["script", "person"]))
    def an_option_is_added(self, data: st.DataObject, by: str) -> None:
        self.add(self.some(data, self.names()), 0, by)

    @rule(
        data=st.data(),
        decision=st.sampled_from(["approve", "prune", "pin", "unpin"]),
        by=st.sampled_from(["person", "person", "autopilot"]),
    )
    def something_is_decided(self, data: st.DataObject, decision: str, by: str) -> None:
        option = self.some(data, self.names())
        self.attempt_refusable("decided", option=option, decision=decision, by=by, policy_choice="")

    @rule(data=st.data(), count=st.integers(0, 2))
    def a_branch_is_redirected(self, data: st.DataObject, count: int) -> None:
        option = self.some(data, self.names())
        origin = len(self.tree.events) + 1
        if self.attempt_refusable(
            "redirected", option=option, guidance=f"guidance {origin}", by="person", policy_choice=""
        ):
            for _ in range(count):
                self.add(option, origin)
            for child in self.tree.open_under(option):
                if child.origin != origin and data.draw(st.booleans()):
                    self.happens(
                        "decided", option=child.id, decision="prune", by="engine", policy_choice="", origin=origin
                    )

    @rule(data=st.data(), text=st.sampled_from(["mine", "yours"]))
    def an_option_is_edited(self, data: st.DataObject, text: str) -> None:
        program = self.store(text)
        option = self.some(data, self.names())
        self.attempt_refusable("edited", option=option, program=program, by="person", policy_choice="")

    @precondition(lambda self: any(o.status == "approved" for o in self.tree.frontier()))
    @rule(data=st.data(), ending=st.sampled_from(["pass", "pass", "fail", "give up", "cancel", "crash", "go on"]))
    def an_option_is_tried(self, data: st.DataObject, ending: str) -> None:
        option = self.some(data, [o.id for o in self.tree.frontier() if o.status == "approved"])
        if self.names("running") or any(o.running for o in self.tree.options.values()):
            return
        attempt = self.tree[option].attempts + 1
        self.happens("started", option=option, attempt=attempt)
        program = self.store(f"{option} {attempt}")
        self.happens("wrote", option=option, program=program, attempt=attempt, by="script", note="")
        if ending == "crash":
            self.happens("resumed", by="engine")
        elif ending == "cancel":
            self.happens("cancelled", option=option, reason="pruned")
        elif ending == "pass":
            seconds = data.draw(st.sampled_from([0.5, 1.0, 2.0]))
            self.judge(option, seconds)
        elif ending != "go on":
            self.judge(option, 0.0)
            if ending == "give up":
                self.happens("failed", option=option, reason="spent")

    @precondition(lambda self: not any(o.running for o in self.tree.options.values()))
    @rule(data=st.data(), ending=st.sampled_from(["judged", "cancel", "crash", "go on"]))
    def an_option_gets_another_program(self, data: st.DataObject, ending: str) -> None:
        option = self.some(data, self.names())
        attempt = self.tree[option].attempts + 1
        if not self.attempt_refusable("started", option=option, attempt=attempt, improves=True):
            return
        assert self.tree[option].passing and option != self.tree.root
        program = self.store(f"{option} {attempt}")
        self.happens("wrote", option=option, program=program, attempt=attempt, by="script", note="")
        if ending == "crash":
            self.happens("resumed", by="engine")
        elif ending == "cancel":
            self.happens("cancelled", option=option, reason="pruned")
        elif ending == "judged":
            self.judge(option, data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])))

    @precondition(lambda self: any(o.running for o in self.tree.options.values()))
    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0]))
    def what_runs_ends(self, seconds: float) -> None:
        self.judge(next(o.id for o in self.tree.options.values() if o.running), seconds)

    def judge(self, option: str, seconds: float) -> None:
        program, attempt = self.tree[option].program, self.tree[option].attempts
        if seconds:
            times = (WorkloadTime("w", seconds, seconds, seconds, 0.1),)
            found = Evaluation(program, PASSED, "simulator", "modelled", "toy", None, times)
        else:
            found = Evaluation(program, FAILED, "simulator", "modelled", "toy", Failure("compile", "no"))
        self.happens("evaluated", option=option, attempt=attempt, **found.to_fields())

    @rule(data=st.data(), rating=st.floats(0, 10))
    def an_option_is_rated(self, data: st.DataObject, rating: float) -> None:
        option = self.some(data, self.names())
        self.happens("rated", option=option, rating=rating, confidence=0.7, why="learned", by="engine")

    @precondition(lambda self: bool(self.tree.undoable()))
    @rule(data=st.data())
    def a_decision_is_taken_back(self, data: st.DataObject) -> None:
        undoable = self.tree.undoable()
        last = self.tree.last_undoable()
        assert last is not None and last.seq == undoable[-1]
        target = data.draw(st.sampled_from([undoable[-1], *undoable]))
        self.happens("undone", target=target, by="person")
        self.undone.add(target)
        assert target not in self.tree.undoable()

    @rule(data=st.data(), decision=st.sampled_from(["approve", "prune", "pin", "unpin"]))
    def a_decision_is_taken_back_at_once(self, data: st.DataObject, decision: str) -> None:
        option, before = self.some(data, self.names()), visible(Tree.fold(self.tree.events))
        if self.attempt_refusable("decided", option=option, decision=decision, by="person", policy_choice=""):
            target = len(self.tree.events)
            self.happens("undone", target=target, by="person")
            self.undone.add(target)
            assert visible(self.tree) == before

    @rule(
        data=st.data(),
        kind=st.sampled_from(["started", "cancelled", "failed", "evaluated", "wrote", "undone", "rated", "edited"]),
    )
    def something_that_makes_no_sense_is_refused(self, data: st.DataObject, kind: str) -> None:
        before = Tree.fold(self.tree.events)
        wrong: dict[str, Any] = {
            "started": {"option": self.some(data, self.names()), "attempt": 99},
            "cancelled": {"option": "nobody", "reason": "x"},
            "failed": {"option": self.some(data, self.names()), "reason": ""},
            "evaluated": {"option": self.some(data, self.names()), "attempt": 99, "program": "x", "outcome": "passed"},
            "wrote": {"option": self.some(data, self.names()), "program": "x", "attempt": 1, "by": "s", "note": ""},
            "undone": {"target": len(self.tree.events), "by": "person"},
            "rated": {"option": self.tree.root, "rating": 11.0, "confidence": 0.5, "why": "", "by": "engine"},
            "edited": {"option": self.tree.root, "program": "unknown", "by": "person", "policy_choice": ""},
        }[kind]
        if kind == "undone" and len(self.tree.events) in self.tree.undoable():
            return
        try:
            self.happens(kind, **wrong)
        except TreeError:
            assert self.tree == before
        else:
            raise AssertionError(f"{kind} {wrong} was let through")

    def attempt_refusable(self, kind: str, **data: Any) -> bool:
        before = Tree.fold(self.tree.events)
        try:
            self.happens(kind, **data)
        except TreeError as refused:
            assert str(refused)
            assert self.tree == before
            return False
        return True

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def folding_the_events_gives_the_live_tree(self) -> None:
        assert Tree.fold(self.tree.events) == self.tree

    @invariant()
    def every_option_is_what_the_plain_model_says(self) -> None:
        model = self.model()
        assert set(model) == set(self.tree.options)
        for name, plain in model.items():
            option = self.tree[name]
            assert option.status == plain.status()
            assert bool(option.approved_by) == plain.approved
            assert (option.pinned, option.running, option.program) == (plain.pinned, plain.running, plain.program)
            assert list(option.guidance) == plain.guidance
            assert [evaluation.passed for evaluation in option.evaluations] == plain.results
            assert option.tried == len(plain.results) - plain.fresh
            assert option.rating == plain.rating
            assert option.children == tuple(n for n in model if n in self.tree.options and self.tree[n].parent == name)

    @invariant()
    def the_frontier_is_open_under_passed_and_nothing_pruned(self) -> None:
        model = self.model()
        expected = []
        for name in model:
            above = [option.id for option in self.tree.path(name)][:-1]
            if (
                model[name].status() in ("proposed", "approved")
                and all(not model[a].pruned for a in above)
                and (not above or model[above[-1]].passed())
            ):
                expected.append(name)
        assert [option.id for option in self.tree.frontier()] == expected

    @invariant()
    def the_best_is_the_fastest_that_was_measured(self) -> None:
        timed = [option for option in self.tree.options.values() if option.passing]
        best = self.tree.best()
        assert (best is None) == (not timed)
        if best is not None:
            fastest = min(option.passing.times[0].seconds for option in timed if option.passing)
            assert best.passing is not None and best.passing.times[0].seconds == fastest

    @invariant()
    def counters_count(self) -> None:
        judged = [event for event in self.tree.events if event.kind == "evaluated"]
        assert self.tree.evaluations == len(judged)
        assert 0 <= self.tree.improved <= self.tree.evaluations

    def model(self) -> dict[str, Model]:
        model: dict[str, Model] = {}
        for event in self.tree.events:
            if event.seq in self.undone or event.data.get("origin", 0) in self.undone:
                continue
            if event.kind == "resumed":
                for option in model.values():
                    if option.running:
                        option.rests()
                continue
            if event.kind == "option_added":
                model[event["option"]] = Model()
                model[event["option"]].rating = event["rating"]
            elif event.data.get("option") in model:
                self.changes(model[event["option"]], event)
        return model

    @staticmethod
    def changes(option: Model, event: Event) -> None:
        match event.kind, event.data.get("decision"):
            case "decided", "approve":
                if option.failed and not option.pruned:
                    option.failed = option.program = ""
                    option.fresh = len(option.results)
                if not option.failed and not option.passed():
                    option.approved = True
                option.pruned = False
            case "decided", "prune":
                option.pruned = True
            case "decided", decision:
                option.pinned = decision == "pin"
            case "redirected", _:
                option.guidance.append(event["guidance"])
            case "edited", _:
                option.program, option.approved, option.failed = event["program"], True, ""
                option.fresh = len(option.results)
            case "started", _:
                option.running = True
            case "wrote", _:
                option.program = event["program"]
            case "evaluated", _:
                option.results.append(event["outcome"] == "passed")
                if option.results[-1] and (not option.fastest or event["seconds"][0] < option.fastest[0]):
                    option.fastest = event["seconds"][0], event["program"]
                option.rests()
            case "cancelled", _:
                option.rests()
            case "failed", _:
                option.failed, option.running = event["reason"], False
            case "rated", _:
                option.rating = event["rating"]


TreeMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestTree = TreeMachine.TestCase


def test_a_text_that_was_changed_in_the_file_is_found() -> None:
    digest = hashlib.sha256(b"one").hexdigest()
    tree = Tree()
    try:
        tree.apply(Event(1, "", "kernel", {"sha256": digest, "text": "two"}))
    except TreeError as refused:
        assert "does not match its hash" in str(refused)
    assert tree == Tree()
