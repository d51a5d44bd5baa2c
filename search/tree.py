"""The option tree of a run, as a fold over its events: what can be asked of it, and taking decisions back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from search.events import ENGINE, PERSON, Event, fault
from search.kernels.program import Program, ProgramError
from search.option import (
    APPROVED,
    CHANGES,
    FAILED,
    OPEN,
    PASSED,
    PROPOSED,
    PRUNED,
    RUNNING,
    Option,
    added,
)
from search.rules import RULES, TreeError, check_evaluation, check_new, check_place
from search.spending import Account, Clock

__all__ = [
    "APPROVED",
    "FAILED",
    "OPEN",
    "PASSED",
    "PROPOSED",
    "PRUNED",
    "RUNNING",
    "Option",
    "Tree",
    "TreeError",
    "split_program",
]


@dataclass
class Tree:
    """The state of a run. Change it only through `apply`.

    ``evaluations`` counts them all, ``improved`` is that count when the best option was last beaten, ``failures``
    counts the options that failed in a row. ``texts`` are what models answered, by SHA-256, ``account`` what that used;
    ``questions`` are the ``sent`` events without a reply yet, by seq.
    """

    options: dict[str, Option] = field(default_factory=dict)
    root: str = ""
    kernels: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    evaluations: int = 0
    improved: int = 0
    failures: int = 0
    autopilot: bool = False
    paused: bool = False
    stopped: str = ""
    account: Account = field(default_factory=Account)
    questions: dict[int, Event] = field(default_factory=dict)
    _clock: Clock = field(default_factory=Clock)
    _best: str = ""
    _by_option: dict[str, list[Event]] = field(default_factory=dict)
    _brought: dict[int, list[Event]] = field(default_factory=dict)
    _decisions: dict[int, Event] = field(default_factory=dict)

    @staticmethod
    def fold(events: Iterable[Event]) -> Tree:
        """Return the tree that ``events`` make; raise `TreeError` at the first that breaks a rule."""
        tree = Tree()
        for event in events:
            tree.apply(event)
        return tree

    def apply(self, event: Event) -> None:
        """Apply one event; raise `TreeError` and change nothing when it breaks a rule."""
        if event.seq != len(self.events) + 1:
            raise TreeError(f"event {event.seq} does not follow event {len(self.events)}")
        if wrong := fault(event):
            raise TreeError(wrong)
        if self.stopped and not (event.kind == "resumed" and event["by"] == ENGINE):
            raise TreeError(f"the run has stopped ({self.stopped})")
        going = not (self.paused or self.stopped or (event.kind == "resumed" and event["by"] == ENGINE))
        if event.kind == "option_added":
            self._add(event)
        elif event.kind in RULES:
            self._change(event)
        else:
            _OF_THE_RUN[event.kind](self, event)
        if event.data.get("by") == PERSON and event.kind in _UNDOABLE:
            self._decisions[event.seq] = event
        self.events.append(event)
        self._clock = self._clock.after(event, counts=going)

    # -- looking ----------------------------------------------------------------------------------------------------

    def __getitem__(self, option: str) -> Option:
        return self.options[option]

    def path(self, option: str) -> list[Option]:
        """Return the options from the root down to ``option``, both included."""
        found = []
        while option:
            node = self.options[option]
            found.append(node)
            option = node.parent
        return found[::-1]

    def subtree(self, option: str) -> Iterator[Option]:
        """Yield ``option`` and everything under it, parents before children."""
        waiting = [option]
        while waiting:
            node = self.options[waiting.pop()]
            yield node
            waiting.extend(reversed(node.children))

    def open_under(self, option: str) -> list[Option]:
        """Return the children of ``option`` that were not run and not pruned."""
        children = (self.options[child] for child in self.options[option].children)
        return [child for child in children if child.status in OPEN]

    def guidance_for(self, option: str) -> tuple[str, ...]:
        """Return what a person typed when redirecting on the way from the root to ``option``, oldest ancestor first."""
        return tuple(text for node in self.path(option) for text in node.guidance)

    def is_pruned(self, option: str) -> bool:
        """Whether ``option`` or an ancestor of it is pruned."""
        while option:
            node = self.options[option]
            if node.pruned:
                return True
            option = node.parent
        return False

    def passed(self) -> list[Option]:
        """Return the options that passed and stand under no pruned one, in the order in which they were added.

        One that passed and is being improved is among them.
        """
        found, waiting = [], [self.root] if self.root else []
        while waiting:
            node = self.options[waiting.pop()]
            if node.passing is not None and not node.pruned:
                found.append(node)
                waiting.extend(node.children)
        return sorted(found, key=lambda option: option.added)

    def frontier(self) -> list[Option]:
        """Return the options that can be tried now: proposed or approved, parent passed, no pruned ancestor."""
        if self.root and self.options[self.root].status in OPEN:
            return [self.options[self.root]]
        found = [child for node in self.passed() for child in self.open_under(node.id)]
        return sorted(found, key=lambda option: option.added)

    def best(self) -> Option | None:
        """Return the fastest option by speedup over the root (pruned ones too: what was measured stays true)."""
        return self.options[self._best] if self._best else None

    def speedup(self, option: str) -> float:
        """Return the speedup of ``option`` over the root's program, 0 when either has no time."""
        own, base = self.options[option].passing, self.options[self.root].passing if self.root else None
        return own.speedup_over(base) if own and base else 0.0

    def speedup_over_parent(self, option: str) -> float:
        """Return the speedup of ``option`` over its parent's program, 0 when either has no time."""
        node = self.options[option]
        parent = self.options.get(node.parent)
        return node.passing.speedup_over(parent.passing) if parent and node.passing and parent.passing else 0.0

    def seconds(self, now: datetime) -> float:
        """Return how long the run was going at ``now``, without pauses and the time between two runs."""
        return self._clock.seconds if self.paused or self.stopped else self._clock.until(now)

    def free_id(self) -> str:
        """Return an id that no option of this run has or had."""
        number = len(self._by_option) + 1
        while f"o{number}" in self._by_option:
            number += 1
        return f"o{number}"

    def program(self, sha256: str) -> Program:
        """Return a stored program by its hash; raise `TreeError` when it is not there or does not match its hash."""
        if sha256 not in self.layouts:
            raise TreeError(f"no program {sha256[:12]} in this run")
        try:
            layout = json.loads(self.layouts[sha256])
            for step in layout["passes"]:
                for part in ("source", "header"):
                    step[part] = self.kernels[step[part].removeprefix("sha256:")]
            program = Program.from_json(json.dumps(layout))
        except (KeyError, TypeError, ValueError, AttributeError, ProgramError) as error:
            raise TreeError(f"program {sha256[:12]} is damaged: {error}") from error
        if program.sha256 != sha256:
            raise TreeError(f"program {sha256[:12]} does not match its hash")
        return program

    # -- taking back ------------------------------------------------------------------------------------------------

    def undoable(self) -> list[int]:
        """Return the seqs of a person's decisions that can still be taken back, oldest first.

        An approval or edit that the engine has acted on, a redirect or an option of one's own that something was built
        on, and a decision that a later one has overruled, can't be.
        """
        return [event.seq for event in self._decisions.values() if self._can_undo(event)]

    def last_undoable(self) -> Event | None:
        """Return the person's latest decision that can still be taken back, if any."""
        return next((event for event in reversed(self._decisions.values()) if self._can_undo(event)), None)

    def _can_undo(self, event: Event) -> bool:
        option = self.options.get(event["option"])
        if option is None:
            return False
        match event.kind:
            case "option_added":
                return bool(option.parent) and not option.attempts and not option.children
            case "redirected":
                brought = [
                    self.options.get(e["option"]) for e in self._brought.get(event.seq, ()) if e.kind == "option_added"
                ]
                return not any(o and (o.attempts or o.children) for o in brought)
            case "edited":
                return option.started < event.seq
        match event["decision"]:
            case "approve":
                return option.started < event.seq and not option.pruned
            case "prune":
                return option.pruned
        return option.pinned is (event["decision"] == "pin")

    def _is_undone(self, event: Event) -> bool:
        return event.seq in self.undone or event.data.get("origin", 0) in self.undone

    def _undo(self, event: Event) -> None:
        """Take a decision back: refold the options that it or what it brought has touched, without those events."""
        target = event["target"]
        past = self._decisions.get(target)
        if past is None or not self._can_undo(past):
            raise TreeError(f"event {target} can't be taken back")
        self.undone.add(target)
        del self._decisions[target]
        for name in {e["option"] for e in (past, *self._brought.get(target, ()))}:
            self._refold(name)

    def _refold(self, name: str) -> None:
        before = self.options.get(name)
        if before is None:
            return
        birth, *later = self._by_option[name]
        if self._is_undone(birth):
            del self.options[name]
            above = self.options[before.parent]
            self._put(replace(above, children=tuple(child for child in above.children if child != name)))
            return
        option = added(birth)
        for event in later:
            if not self._is_undone(event):
                option = CHANGES[event.kind](option, event)
        self._put(replace(option, children=before.children))

    # -- changing, from `apply` only ---------------------------------------------------------------------------------

    def _put(self, option: Option) -> None:
        self.options[option.id] = option

    def _remember(self, name: str, event: Event) -> None:
        self._by_option.setdefault(name, []).append(event)
        if event.data.get("origin"):
            self._brought.setdefault(event["origin"], []).append(event)

    def _add(self, event: Event) -> None:
        name, parent = event["option"], event["parent"]
        if not name or name in self._by_option:
            raise TreeError(f"there is or was an option '{name}' already")
        if not parent and self.root:
            raise TreeError("there is a root already")
        if parent and parent not in self.options:
            raise TreeError(f"option '{name}' has the unknown parent '{parent}'")
        if parent:
            check_place(self, event)
        check_new(event)
        self._put(added(event))
        self._remember(name, event)
        if parent:
            above = self.options[parent]
            self._put(replace(above, children=(*above.children, name)))
        else:
            self.root = name

    def _change(self, event: Event) -> None:
        option = self.options.get(event["option"])
        if option is None:
            raise TreeError(f"there is no option '{event['option']}' (event {event.seq}, {event.kind})")
        RULES[event.kind](self, option, event)
        try:
            changed = CHANGES[event.kind](option, event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TreeError(f"event {event.seq} ({event.kind}) is damaged: {error}") from error
        if event.kind == "evaluated":
            check_evaluation(option, changed.evaluations[-1])
        ahead = self.speedup(self._best) if self._best else 0.0
        self._put(changed)
        self._remember(option.id, event)
        if event.kind == "evaluated":
            self._count(changed, ahead)
        elif event.kind == "failed":
            self.failures += 1

    def _count(self, option: Option, ahead: float) -> None:
        """Count an evaluation of ``option``; ``ahead`` is the best speedup before it."""
        self.evaluations += 1
        if not option.evaluations[-1].passed:
            return
        self.failures = 0
        if not self._best or self.speedup(option.id) > ahead:
            self._best, self.improved = option.id, self.evaluations


def split_program(program: Program) -> tuple[dict[str, str], str]:
    """Return the kernel texts of ``program`` by SHA-256, and its layout with each text replaced by ``sha256:...``."""
    layout = json.loads(program.to_json())
    kernels = {}
    for step in layout["passes"]:
        for part in ("source", "header"):
            digest = hashlib.sha256(step[part].encode()).hexdigest()
            kernels[digest] = step[part]
            step[part] = f"sha256:{digest}"
    return kernels, json.dumps(layout, sort_keys=True, separators=(",", ":"))


_MOST = 1e15
"""No token count, price or wait is more."""
_UNDOABLE = frozenset({"option_added", "decided", "redirected", "edited"})

# -- events about the run as a whole ----------------------------------------------------------------------------------


def _kernel(tree: Tree, event: Event) -> None:
    if hashlib.sha256(event["text"].encode()).hexdigest() != event["sha256"]:
        raise TreeError(f"kernel {event['sha256'][:12]} does not match its hash")
    tree.kernels[event["sha256"]] = event["text"]


def _program(tree: Tree, event: Event) -> None:
    tree.layouts[event["sha256"]] = event["layout"]


def _text(tree: Tree, event: Event) -> None:
    if hashlib.sha256(event["text"].encode()).hexdigest() != event["sha256"]:
        raise TreeError(f"text {event['sha256'][:12]} does not match its hash")
    tree.texts[event["sha256"]] = event["text"]


def _sent(tree: Tree, event: Event) -> None:
    _said(tree, event)
    _check_figures(event, "prompt_tokens", "cost_usd")
    tree.questions[event.seq] = event


def _replied(tree: Tree, event: Event) -> None:
    _said(tree, event)
    if event["text_sha256"] and event["text_sha256"] not in tree.texts:
        raise TreeError(f"no text {event['text_sha256'][:12]} in this run")
    _check_figures(event, "prompt_tokens", "completion_tokens", "cost_usd", "seconds", "first_seconds")
    question = event.data.get("question", 0)
    if question and question not in tree.questions:
        raise TreeError(f"event {event.seq} (replied) ends no question: none with the seq {question} is open")
    tree.questions.pop(question, None)
    tree.account = tree.account.after(event)


def _check_figures(event: Event, *figures: str) -> None:
    if not all(0 <= event[figure] <= _MOST for figure in figures):
        raise TreeError(
            f"event {event.seq} ({event.kind}) has a figure below 0 or beyond {_MOST:g}, or one that is no number"
        )


def _said(tree: Tree, event: Event) -> None:
    if event["option"] and event["option"] not in tree.options:
        raise TreeError(f"there is no option '{event['option']}' (event {event.seq}, {event.kind})")


def _autopilot(tree: Tree, event: Event) -> None:
    tree.autopilot = event["on"]


def _paused(tree: Tree, event: Event) -> None:
    tree.paused = True


def _resumed(tree: Tree, event: Event) -> None:
    tree.paused = False
    if event["by"] == ENGINE:
        tree.stopped = ""
        for option in [option for option in tree.options.values() if option.running]:
            tree._put(CHANGES["resumed"](option, event))
            tree._remember(option.id, event)


def _stopped(tree: Tree, event: Event) -> None:
    if not event["reason"]:
        raise TreeError("a run stops for a reason")
    tree.stopped = event["reason"]


_OF_THE_RUN: Mapping[str, Callable[[Tree, Event], None]] = {
    "undone": Tree._undo,
    "kernel": _kernel,
    "program": _program,
    "text": _text,
    "sent": _sent,
    "replied": _replied,
    "asked": _said,
    "note": _said,
    "autopilot": _autopilot,
    "paused": _paused,
    "resumed": _resumed,
    "stopped": _stopped,
}
