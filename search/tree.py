"""The option tree of a run, as a fold over its events.

A person's decisions (approved, pruned, pinned) and what the engine found (running, passed, failed) are kept apart, and
the status of an option is derived from both: so a pruned option keeps what was measured, and undoing the prune is
enough to bring it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from search.evaluation.record import Evaluation
from search.events import PERSON, Event
from search.kernels.program import Program, ProgramError

PROPOSED, APPROVED, RUNNING, PASSED, FAILED, PRUNED = (
    "proposed",
    "approved",
    "running",
    "passed",
    "failed",
    "pruned",
)
UNDOABLE = frozenset({"decided", "redirected", "edited"})


class TreeError(ValueError):
    """An event that the tree's rules refuse; the tree is unchanged."""


@dataclass(frozen=True)
class Option:
    """A node: one optimization applied to its parent's program.

    ``rating`` 0..10, ``confidence`` 0..1, ``difficulty`` 1..5, ``predicted`` the speedup over the parent that the
    proposer expects. ``origin`` is the seq of the redirect that brought it (0 if none).
    """

    id: str
    parent: str
    title: str
    why: str
    action: str
    rating: float
    confidence: float
    difficulty: int
    predicted: float
    by: str
    origin: int
    added: int
    children: tuple[str, ...] = ()
    approved_by: str = ""
    pruned: bool = False
    pinned: bool = False
    guidance: tuple[str, ...] = ()
    attempts: int = 0
    running: bool = False
    failed: str = ""
    program: str = ""
    evaluations: tuple[Evaluation, ...] = ()
    ratings: tuple[tuple[float, float, str], ...] = ()

    @property
    def status(self) -> str:
        """One of proposed, approved, running, passed, failed, pruned."""
        if self.pruned:
            return PRUNED
        if self.running:
            return RUNNING
        if self.passing is not None:
            return PASSED
        if self.failed:
            return FAILED
        return APPROVED if self.approved_by else PROPOSED

    @property
    def passing(self) -> Evaluation | None:
        """The latest evaluation that passed, if any."""
        return next((e for e in reversed(self.evaluations) if e.passed), None)

    @property
    def settled(self) -> bool:
        """Whether the engine has finished with it (passed or failed), pruned or not."""
        return not self.running and (self.passing is not None or bool(self.failed))


@dataclass
class Tree:
    """The state of a run. Change it only through `apply`."""

    options: dict[str, Option] = field(default_factory=dict)
    root: str = ""
    kernels: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    evaluations: int = 0
    autopilot: bool = False
    paused: bool = False
    stopped: str = ""

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
        if event.kind == "undone":
            self._undo(event)
        else:
            self._apply_one(event)
        self.events.append(event)

    def _apply_one(self, event: Event) -> None:
        handler = _HANDLERS.get(event.kind)
        if handler is None:
            raise TreeError(f"unknown event kind '{event.kind}'")
        try:
            handler(self, event)
        except KeyError as error:
            raise TreeError(f"event {event.seq} ({event.kind}) lacks {error}") from error

    def _undo(self, event: Event) -> None:
        target = event["target"]
        if target not in self.undoable():
            raise TreeError(f"event {target} can't be undone")
        rebuilt = Tree(undone=self.undone | {target})
        for past in self.events:
            if past.kind != "undone" and not rebuilt._is_undone(past):
                rebuilt._apply_one(past)
        rebuilt.events = self.events
        self.__dict__.update(rebuilt.__dict__)

    def _is_undone(self, event: Event) -> bool:
        if event.seq in self.undone:
            return True
        return event.kind == "option_added" and event["origin"] in self.undone

    def undoable(self) -> list[int]:
        """Return the seqs of a person's decisions that can still be taken back, oldest first.

        An approval or edit that the engine has acted on, and a redirect whose options have run, can't be.
        """
        return [event.seq for event in self.events if self._can_undo(event)]

    def _can_undo(self, event: Event) -> bool:
        if self._is_undone(event) or event.data.get("by") != PERSON:
            return False
        if event.kind == "option_added":
            option = self.options.get(event["option"])
            return option is not None and not option.attempts and not option.children and bool(option.parent)
        if event.kind not in UNDOABLE:
            return False
        option = self.options[event["option"]]
        acted_on = any(e.kind == "started" and e["option"] == option.id for e in self.events[event.seq :])
        if event.kind == "edited" or (event.kind == "decided" and event["decision"] == "approve"):
            return not acted_on
        if event.kind == "redirected":
            brought = [o for o in self.options.values() if o.origin == event.seq]
            return not any(o.attempts or o.children for o in brought)
        return True

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

    def guidance_for(self, option: str) -> tuple[str, ...]:
        """Return what a person typed when redirecting on the way from the root to ``option``, oldest ancestor first."""
        return tuple(text for node in self.path(option) for text in node.guidance)

    def is_pruned(self, option: str) -> bool:
        """Whether ``option`` or an ancestor of it is pruned."""
        return any(node.pruned for node in self.path(option))

    def frontier(self) -> list[Option]:
        """Return the options that can be tried now: proposed or approved, parent passed, no pruned ancestor."""
        found = []
        for option in self.options.values():
            if option.status not in (PROPOSED, APPROVED):
                continue
            parent = self.options.get(option.parent)
            if parent is not None and (parent.passing is None or self.is_pruned(option.parent)):
                continue
            found.append(option)
        return found

    def best(self) -> Option | None:
        """Return the fastest option by speedup over the root (pruned ones too: what was measured stays true)."""
        scored = [(self.speedup(option.id), option) for option in self.options.values() if option.passing]
        return max(scored, key=lambda pair: (pair[0], -pair[1].added))[1] if scored else None

    def speedup(self, option: str) -> float:
        """Return the speedup of ``option`` over the root's program, 0 when either has no time."""
        own, base = self.options[option].passing, self.options[self.root].passing if self.root else None
        return own.speedup_over(base) if own and base else 0.0

    def speedup_over_parent(self, option: str) -> float:
        """Return the speedup of ``option`` over its parent's program, 0 when either has no time."""
        node = self.options[option]
        parent = self.options.get(node.parent)
        return node.passing.speedup_over(parent.passing) if parent and node.passing and parent.passing else 0.0

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
        except (KeyError, TypeError, ValueError, ProgramError) as error:
            raise TreeError(f"program {sha256[:12]} is damaged: {error}") from error
        if program.sha256 != sha256:
            raise TreeError(f"program {sha256[:12]} does not match its hash")
        return program

    # -- changing, from `apply` only ---------------------------------------------------------------------------------

    def _need(self, event: Event) -> Option:
        option = self.options.get(event["option"])
        if option is None:
            raise TreeError(f"event {event.seq} ({event.kind}): there is no option '{event['option']}'")
        return option

    def _put(self, option: Option) -> None:
        self.options[option.id] = option


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


def _option_added(tree: Tree, event: Event) -> None:
    name, parent = event["option"], event["parent"]
    if name in tree.options:
        raise TreeError(f"option '{name}' is already there")
    if not parent and tree.root:
        raise TreeError("there is already a root")
    if parent and parent not in tree.options:
        raise TreeError(f"option '{name}' has the unknown parent '{parent}'")
    if not (0 <= event["rating"] <= 10 and 0 <= event["confidence"] <= 1 and 1 <= event["difficulty"] <= 5):
        raise TreeError(f"option '{name}': rating 0..10, confidence 0..1 and difficulty 1..5 are allowed")
    tree._put(
        Option(
            name,
            parent,
            event["title"],
            event["why"],
            event["action"],
            float(event["rating"]),
            float(event["confidence"]),
            event["difficulty"],
            float(event["predicted"]),
            event["by"],
            event["origin"],
            event.seq,
            ratings=((float(event["rating"]), float(event["confidence"]), "proposed"),),
        )
    )
    if parent:
        above = tree.options[parent]
        tree._put(replace(above, children=(*above.children, name)))
    else:
        tree.root = name


def _decided(tree: Tree, event: Event) -> None:
    option, decision = tree._need(event), event["decision"]
    if decision == "approve":
        if option.running or option.settled:
            raise TreeError(f"option '{option.id}' has already run")
        tree._put(replace(option, approved_by=event["by"], pruned=False))
    elif decision == "prune":
        if not option.parent:
            raise TreeError("the root can't be pruned")
        tree._put(replace(option, pruned=True))
    elif decision in ("pin", "unpin"):
        tree._put(replace(option, pinned=decision == "pin"))
    else:
        raise TreeError(f"unknown decision '{decision}'")


def _redirected(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    tree._put(replace(option, guidance=(*option.guidance, event["guidance"])))


def _edited(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    if event["program"] not in tree.layouts:
        raise TreeError(f"no program {event['program'][:12]} in this run")
    if option.running or option.passing:
        raise TreeError(f"option '{option.id}' has already run; add an option under it instead")
    tree._put(replace(option, program=event["program"], failed="", approved_by=event["by"]))


def _kernel(tree: Tree, event: Event) -> None:
    if hashlib.sha256(event["text"].encode()).hexdigest() != event["sha256"]:
        raise TreeError(f"kernel {event['sha256'][:12]} does not match its hash")
    tree.kernels[event["sha256"]] = event["text"]


def _program(tree: Tree, event: Event) -> None:
    tree.layouts[event["sha256"]] = event["layout"]


def _started(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    tree._put(replace(option, running=True, failed="", attempts=max(option.attempts, event["attempt"])))


def _wrote(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    if event["program"] not in tree.layouts:
        raise TreeError(f"no program {event['program'][:12]} in this run")
    tree._put(replace(option, program=event["program"]))


def _evaluated(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    try:
        evaluation = Evaluation.from_fields(event.data)
    except (KeyError, TypeError, ValueError) as error:
        raise TreeError(f"event {event.seq}: not an evaluation ({error})") from error
    tree._put(
        replace(
            option,
            evaluations=(*option.evaluations, evaluation),
            running=option.running and not evaluation.passed,
        )
    )
    tree.evaluations += 1


def _failed(tree: Tree, event: Event) -> None:
    tree._put(replace(tree._need(event), failed=event["reason"] or "failed", running=False))


def _rated(tree: Tree, event: Event) -> None:
    option = tree._need(event)
    rating, confidence = float(event["rating"]), float(event["confidence"])
    if not (0 <= rating <= 10 and 0 <= confidence <= 1):
        raise TreeError(f"option '{option.id}': rating 0..10 and confidence 0..1 are allowed")
    tree._put(
        replace(
            option,
            rating=rating,
            confidence=confidence,
            ratings=(*option.ratings, (rating, confidence, event["why"])),
        )
    )


def _said(tree: Tree, event: Event) -> None:
    if event.data.get("option"):
        tree._need(event)


def _autopilot(tree: Tree, event: Event) -> None:
    tree.autopilot = bool(event["on"])


def _paused(tree: Tree, event: Event) -> None:
    tree.paused = True


def _resumed(tree: Tree, event: Event) -> None:
    """The run goes on: an option that was running when it stopped waits again."""
    tree.paused, tree.stopped = False, ""
    for option in list(tree.options.values()):
        if option.running:
            tree._put(replace(option, running=False))


def _stopped(tree: Tree, event: Event) -> None:
    tree.stopped = event["reason"]


_HANDLERS: dict[str, Callable[[Tree, Event], None]] = {
    "option_added": _option_added,
    "decided": _decided,
    "redirected": _redirected,
    "edited": _edited,
    "kernel": _kernel,
    "program": _program,
    "started": _started,
    "wrote": _wrote,
    "evaluated": _evaluated,
    "failed": _failed,
    "rated": _rated,
    "asked": _said,
    "note": _said,
    "autopilot": _autopilot,
    "paused": _paused,
    "resumed": _resumed,
    "stopped": _stopped,
}
