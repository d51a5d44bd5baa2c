"""What a run still owes, read from its events: one that was broken off anywhere goes on exactly there. Pure.

A result is followed by what is learned from it, by looking for a faster program where it fell short, and by thinking
the tree over. A reply of a model is followed by what it brings. Whatever of that is not on record is owed, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from search.calibration import Calibration
from search.calls import CANCELLED, LOST, USED
from search.evaluation import record
from search.events import AUTOPILOT, ENGINE, IMPROVE, PERSON, PROPOSE, REDIRECT, REFINE, Event
from search.learning import Lesson, lessons
from search.option import PASSED
from search.tree import Tree

IN_VAIN = 1
"""After so many programs in a row that were no faster, an option is not improved any further."""

INITIALIZE = "initialize"
_OF_A_RESUME = frozenset({"resumed", "autopilot"})
_BY_A_PROPOSER = frozenset({"option_added", "rated", "decided"})
_ON_THE_WAY_TO_A_RESULT = frozenset({"kernel", "program", "started", "wrote", "cancelled", "stopped", "paused"})


def follow_up(tree: Tree) -> tuple[str, str] | None:
    """Return the option of the latest result and whether to `IMPROVE` it or to `REFINE` the tree; None for neither.

    Neither is owed any more once another attempt has begun, once a person broke it off, or once it came to nothing.
    """
    since: list[Event] = []
    for event in reversed(tree.events):
        if event.kind == "started" and not event.data.get("improves"):
            return None
        if _settles(tree, event):
            option = event["option"]
            node = tree[option]
            if not node.parent or not node.settled or tree.is_pruned(option):
                return None
            done = {kind for kind in (IMPROVE, REFINE) if any(_ends(kind, option, later) for later in since)}
            if not done and falls_short(tree, option):
                return option, IMPROVE
            return (option, REFINE) if REFINE not in done else None
        since.append(event)
    return None


def falls_short(tree: Tree, option: str) -> bool:
    """Whether a faster program is worth looking for: less was found than predicted, and not tried in vain yet."""
    node = tree[option]
    short = tree.speedup_over_parent(option) < node.predicted
    return node.status == PASSED and short and node.foretold and node.vain < IN_VAIN


def _settles(tree: Tree, event: Event) -> bool:
    """Whether ``event`` settled its option: it failed for good, or its first program passed."""
    if event.kind != "evaluated" or event["outcome"] != record.PASSED:
        return event.kind == "failed"
    first = next(each for each in tree[event["option"]].evaluations if each.passed)
    return bool(event["program"] == first.program)


def _ends(kind: str, option: str, event: Event) -> bool:
    """Whether after ``event`` there is no more to ask of this kind about ``option``."""
    if event.kind == "note":
        return event["option"] == option and event.data.get("about") == kind
    if event.kind != "replied" or (event["option"], event["call"]) != (option, kind):
        return False
    broken_off = event["outcome"] == CANCELLED and event.data.get("by") == PERSON
    return broken_off or (kind == REFINE and event["outcome"] == USED)


def lessons_owed(tree: Tree) -> list[Lesson]:
    """Return what was not learned any more from the last result, as the run was killed there."""
    rated = 0
    for seq, event in reversed(list(enumerate(tree.events))):
        if event.kind in ("evaluated", "failed"):
            return _lessons_of(tree.events[:seq], event)[rated:]
        if event.kind == "rated" and event["by"] == ENGINE:
            rated += 1
        elif not _is_of_a_resume(event):
            break
    return []


def _lessons_of(before: list[Event], result: Event) -> list[Lesson]:
    """Return what ``result`` taught at its time: all, or only about itself where it is of another program."""
    tree, option = Tree.fold(before), result["option"]
    calibration, speedup, again = Calibration.of(tree), tree.speedup(option), tree[option].passing is not None
    tree.apply(result)
    if not tree[option].settled:
        return []
    if again:
        return lessons(tree, option, Calibration.of(tree))[:1] if tree.speedup(option) > speedup else []
    return lessons(tree, option, calibration)


def half_done(tree: Tree) -> Event | None:
    """Return the last reply of a model if what it brings may not all be on record, as the run was killed there."""
    since: list[Event] = []
    for event in reversed(tree.events):
        if event.kind == "replied" and event["outcome"] != LOST:
            # An old session asks before it records the redirect, which then has no question.
            usable = event["outcome"] == USED and (event["call"] != REDIRECT or "question" in event.data)
            return event if usable and all(_is_of_it(event["call"], later) for later in since) else None
        since.append(event)
    return None


def redirect_owed(tree: Tree) -> Event | None:
    """Return the person's redirect that a model was asked about last, if what follows from it is not on record.

    It is not owed any more once it was taken back, or once the question came to nothing.
    """
    sent = next((e for e in reversed(tree.events) if e.kind == "sent" and e["call"] == REDIRECT), None)
    if sent is None:
        return None
    before, since = tree.events[: sent.seq], tree.events[sent.seq :]
    taken_back = {e["target"] for e in before if e.kind == "undone"}
    said = (e for e in reversed(before) if e.kind == "redirected" and e["option"] == sent["option"])
    redirect = next((e for e in said if e.seq not in taken_back), None)
    if redirect is None or not holds(tree, redirect):
        return None
    if any(e.kind == "note" and e.data.get("about") == REDIRECT and e["option"] == sent["option"] for e in since):
        return None
    reply = next((e for e in since if e.kind == "replied" and e.data.get("question") == sent.seq), None)
    if reply is None or (reply["outcome"] != USED and reply.data.get("by") != PERSON):
        return redirect
    return redirect if reply == half_done(tree) else None


def holds(tree: Tree, redirect: Event) -> bool:
    """Whether something can still follow from ``redirect``: it was not taken back, and its option can grow."""
    node = tree.options.get(redirect["option"])
    return node is not None and redirect.seq not in tree.undone and not (node.failed or tree.is_pruned(node.id))


def asked_in_vain(tree: Tree, option: str, guidance: str) -> int:
    """Return the seq of the last redirect of ``option`` if it says ``guidance``, holds, and got no answer; else 0."""
    unanswered = False
    for event in reversed(tree.events):
        if event.data.get("option") != option or event.seq in tree.undone:
            continue
        if event.kind == "note" and event.data.get("about") == REDIRECT:
            unanswered = True
        elif event.kind == "replied" and (event["call"], event["outcome"]) == (REDIRECT, USED):
            return 0
        elif event.kind == "redirected":
            return event.seq if unanswered and event["guidance"] == guidance else 0
    return 0


def changes_the_tree(reply: Event) -> bool:
    """Whether ``reply`` is about the tree, not a program."""
    return reply["call"] in (INITIALIZE, PROPOSE, REFINE)


def _is_of_it(call: str, event: Event) -> bool:
    """Whether ``event`` may come between a reply to ``call`` and the end of what that brings."""
    if event.kind in ("note", "text") or _is_of_a_resume(event):
        return True
    if call == REDIRECT:
        return bool(event.data.get("origin", 0))
    if call in (INITIALIZE, PROPOSE, REFINE):
        return event.kind in _BY_A_PROPOSER and event["by"] not in (PERSON, AUTOPILOT, ENGINE)
    return event.kind in _ON_THE_WAY_TO_A_RESULT


def _is_of_a_resume(event: Event) -> bool:
    return event.kind in _OF_A_RESUME or (event.kind == "replied" and event["outcome"] == LOST)


@dataclass
class Places:
    """Where options were asked for: ``exhausted`` are those where nothing came, ``put_off`` those where a person broke
    the question off. ``grown_at`` is how many evaluations there were when it was last asked; ``complaint`` is the
    proposer's last word since anything new came."""

    exhausted: set[str] = field(default_factory=set)
    put_off: set[str] = field(default_factory=set)
    grown_at: int = 0
    complaint: str = ""


def places(tree: Tree) -> Places:
    """Return where a model was asked for options."""
    found, evaluations, at = Places(), 0, ""
    for event in tree.events:
        match event.kind:
            case "evaluated":
                evaluations += 1
            case "replied" if event["outcome"] != LOST:
                at = event["option"] if event["call"] in (INITIALIZE, PROPOSE) else ""
                if at:
                    found.grown_at = evaluations
                    _answered(found, event)
            case "option_added" if event["parent"] == at and event["by"] != PERSON:
                found.exhausted.discard(at)
                found.complaint = ""
            case "note" if event.data.get("about") == PROPOSE:
                found.exhausted.add(event["option"])
                found.complaint = event["text"]
            case "redirected":
                found.exhausted -= set(_below(tree, event["option"], found.exhausted))
    return found


def _answered(found: Places, replied: Event) -> None:
    if replied["outcome"] == USED:
        found.put_off.discard(replied["option"])
        found.exhausted.add(replied["option"])
    elif replied["outcome"] == CANCELLED and replied.data.get("by") == PERSON:
        found.put_off.add(replied["option"])


def _below(tree: Tree, option: str, options: set[str]) -> Iterator[str]:
    return (name for name in options if name in tree.options and any(node.id == option for node in tree.path(name)))
