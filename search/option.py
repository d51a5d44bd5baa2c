"""An option of the tree, and how each kind of event changes it.

A person's decisions (approved, pruned, pinned) and what the engine found (running, passed, failed) are kept apart, and
the status is derived from both: so a pruned option keeps what was measured, and undoing the prune brings it back.
The changes here are pure and ask no questions; whether an event is allowed is the tree's to say (`search.tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from search.evaluation.record import Evaluation, Failure
from search.events import PERSON, Event

PROPOSED, APPROVED, RUNNING, PASSED, FAILED, PRUNED = (
    "proposed",
    "approved",
    "running",
    "passed",
    "failed",
    "pruned",
)
OPEN = frozenset({PROPOSED, APPROVED})


@dataclass(frozen=True)
class Option:
    """A node: one optimization applied to its parent's program.

    ``rating`` 0..10, ``confidence`` 0..1, ``difficulty`` 1..5, ``predicted`` the speedup over the parent that the
    proposer expects (0 if it says none). ``origin`` is the seq of the redirect that brought it (0 if none), ``added``
    that of its event, ``approved`` that of the approval or edit that lets it run (0 if none), ``started`` that of its
    last attempt. ``attempts`` counts started attempts over its whole life; ``program`` is the fastest that passed, else
    the latest, and ``writer`` who wrote the latest; ``edited`` says that its program goes back to one by a person;
    ``fresh_from`` is how many evaluations it had when a person last edited it or let it try again.
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
    approved: int = 0
    approved_by: str = ""
    pruned: bool = False
    pinned: bool = False
    guidance: tuple[str, ...] = ()
    attempts: int = 0
    started: int = 0
    running: bool = False
    failed: str = ""
    program: str = ""
    writer: str = ""
    edited: bool = False
    evaluations: tuple[Evaluation, ...] = ()
    fresh_from: int = 0
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
        """The evaluation that passed, the fastest if several did."""
        fastest: Evaluation | None = None
        for evaluation in self.evaluations:
            if evaluation.passed and (fastest is None or evaluation.speedup_over(fastest) > 1):
                fastest = evaluation
        return fastest

    @property
    def settled(self) -> bool:
        """Whether the engine has finished with it (passed or failed), pruned or not."""
        return not self.running and (bool(self.failed) or self.passing is not None)

    @property
    def foretold(self) -> bool:
        """Whether its result can be held against its proposer's prediction: there is one, and no person wrote it."""
        return self.predicted > 0 and self.by != PERSON and not self.edited

    @property
    def tried(self) -> int:
        """How many evaluations its present line of programs has had: all, or those since a person began afresh."""
        return len(self.evaluations) - self.fresh_from

    @property
    def failure(self) -> Failure | None:
        """Why the latest evaluation of its present line of programs failed, if it did and none passed."""
        return self.evaluations[-1].failure if self.tried and self.passing is None else None

    @property
    def unproven(self) -> bool:
        """Whether it has a program that was not evaluated yet, and none that passed."""
        waiting = bool(self.program) and (not self.tried or self.evaluations[-1].program != self.program)
        return waiting and self.passing is None

    @property
    def vain(self) -> int:
        """How many evaluations it has had since its fastest program."""
        fastest = self.passing
        return len(self.evaluations) - 1 - self.evaluations.index(fastest) if fastest else 0


def added(event: Event) -> Option:
    """Return the option that an ``option_added`` event makes."""
    rating, confidence = float(event["rating"]), float(event["confidence"])
    return Option(
        event["option"],
        event["parent"],
        event["title"],
        event["why"],
        event["action"],
        rating,
        confidence,
        event["difficulty"],
        float(event["predicted"]),
        event["by"],
        event["origin"],
        event.seq,
        ratings=((rating, confidence, "proposed"),),
    )


def _decided(option: Option, event: Event) -> Option:
    match event["decision"]:
        case "approve" if option.passing or (option.pruned and option.failed):
            return replace(option, pruned=False)
        case "approve":
            option = _afresh(option) if option.failed else option
            return replace(option, approved=event.seq, approved_by=event["by"], pruned=False)
        case "prune":
            return replace(option, pruned=True)
        case decision:
            return replace(option, pinned=decision == "pin")


def _redirected(option: Option, event: Event) -> Option:
    return replace(option, guidance=(*option.guidance, event["guidance"]))


def _edited(option: Option, event: Event) -> Option:
    by = event["by"]
    option = replace(_afresh(option), program=event["program"], writer=by, edited=True)
    return replace(option, approved=event.seq, approved_by=by)


def _afresh(option: Option) -> Option:
    """Let a new line of programs begin: earlier failures stay on record but no longer count against it."""
    return replace(option, program="", edited=False, failed="", fresh_from=len(option.evaluations))


def _started(option: Option, event: Event) -> Option:
    return replace(option, running=True, attempts=event["attempt"], started=event.seq)


def _wrote(option: Option, event: Event) -> Option:
    return replace(option, program=event["program"], writer=event["by"])


def _evaluated(option: Option, event: Event) -> Option:
    return _at_rest(replace(option, evaluations=(*option.evaluations, Evaluation.from_fields(event.data))))


def _failed(option: Option, event: Event) -> Option:
    return replace(option, failed=event["reason"], running=False)


def _waits(option: Option, event: Event) -> Option:
    return _at_rest(option)


def _at_rest(option: Option) -> Option:
    """Let what was begun end; of an option that passed, the fastest program stays."""
    fastest = option.passing
    return replace(option, running=False, program=fastest.program if fastest else option.program)


def _rated(option: Option, event: Event) -> Option:
    rating, confidence = float(event["rating"]), float(event["confidence"])
    return replace(
        option, rating=rating, confidence=confidence, ratings=(*option.ratings, (rating, confidence, event["why"]))
    )


CHANGES: Mapping[str, Callable[[Option, Event], Option]] = {
    "decided": _decided,
    "redirected": _redirected,
    "edited": _edited,
    "started": _started,
    "wrote": _wrote,
    "evaluated": _evaluated,
    "cancelled": _waits,
    "resumed": _waits,
    "failed": _failed,
    "rated": _rated,
}
