"""The rules of the tree: what must hold before an event about an option may happen, in words for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from search.evaluation.record import Evaluation
from search.events import PERSON, Event
from search.option import APPROVED, PASSED, Option

if TYPE_CHECKING:
    from search.tree import Tree


MOST_AT_ONCE = 1_000_000.0
"""The largest speedup that may be predicted, and the largest slowdown: so that no figure made of them overflows."""

SHORTEST, LONGEST = 1e-15, 1e9
"""Seconds. A time outside of these is no kernel's."""

DEEPEST, WIDEST = 400, 2000
"""How many options may stand one under the other, and directly under one: what draws a tree goes down it, and each new
option is put beside all those that are there."""


class TreeError(ValueError):
    """An event that the tree's rules refuse, in words for a person; the tree is unchanged."""


def called(option: Option) -> str:
    """Return how messages name an option."""
    return f"'{option.title}' ({option.id})"


def check_rating(event: Event) -> None:
    """Check that a rating is 0 to 10 and a confidence 0 to 1."""
    if not (0 <= event["rating"] <= 10 and 0 <= event["confidence"] <= 1):
        raise TreeError(
            f"option '{event['option']}': rating {event['rating']}, confidence {event['confidence']}; "
            "a rating is 0 to 10, a confidence 0 to 1"
        )


def check_new(event: Event) -> None:
    """Check what an ``option_added`` event says about its option; where it stands is the tree's to check."""
    name = event["option"]
    if not event["title"].strip():
        raise TreeError(f"option '{name}' has no title")
    if not 1 <= event["difficulty"] <= 5:
        raise TreeError(f"option '{name}': difficulty is {event['difficulty']}; it must be 1 to 5")
    predicted = event["predicted"]
    if predicted != 0 and not 1 / MOST_AT_ONCE <= predicted <= MOST_AT_ONCE:
        raise TreeError(
            f"option '{name}': predicted speedup is {predicted}; "
            f"it must be 0 (none), or between {1 / MOST_AT_ONCE:g} and {MOST_AT_ONCE:g}"
        )
    check_rating(event)


def check_evaluation(option: Option, evaluation: Evaluation) -> None:
    """Check that ``evaluation`` is of the option's program, and that its times can be compared and named."""
    if evaluation.program != option.program:
        raise TreeError(f"{called(option)}: the evaluation is of another program, {evaluation.program[:12]}")
    if evaluation.passed == (evaluation.failure is not None):
        raise TreeError(f"{called(option)}: an evaluation has a failure exactly when it did not pass")
    for time in evaluation.times:
        for seconds in (time.seconds, time.low, time.high):
            if not (isinstance(seconds, int | float) and SHORTEST <= seconds <= LONGEST):
                raise TreeError(
                    f"{called(option)}: the time of workload '{time.workload}' is {seconds}, "
                    f"not between {SHORTEST:g} and {LONGEST:g} s"
                )
        for seconds in (time.roofline_seconds, time.baseline_seconds):
            if not (isinstance(seconds, int | float) and 0 <= seconds <= LONGEST):
                raise TreeError(
                    f"{called(option)}: workload '{time.workload}' is compared with a time of {seconds}, "
                    f"not between 0 and {LONGEST:g} s"
                )
        if not (isinstance(time.workload, str) and isinstance(time.bound_by, str)):
            raise TreeError(f"{called(option)}: a workload, or what bounds it, is named by something else than text")


def check_place(tree: Tree, event: Event) -> None:
    """Check that the new option of ``event`` can stand under its parent, which is there."""
    name, parent = event["option"], event["parent"]
    if len(tree.path(parent)) >= DEEPEST:
        raise TreeError(f"option '{name}' stands under {DEEPEST} others: no tree may be deeper")
    if len(tree[parent].children) >= WIDEST:
        raise TreeError(f"{called(tree[parent])} has {WIDEST} options under it: there is no place for '{name}'")


def _refuse_under_pruned(tree: Tree, option: Option) -> None:
    if option.parent and tree.is_pruned(option.parent):
        above = next(node for node in tree.path(option.parent) if node.pruned)
        raise TreeError(f"{called(option)} stands under {called(above)}, which is pruned: approve that one first")


def _may_decide(tree: Tree, option: Option, event: Event) -> None:
    decision = event["decision"]
    if decision == "approve":
        if not option.pruned and option.running:
            raise TreeError(f"{called(option)} is running already")
        if not option.pruned and option.passing:
            raise TreeError(f"{called(option)} has passed already")
        if option.failed and event["by"] != PERSON:
            raise TreeError(f"{called(option)} has failed: only a person can let it try again")
        if not (option.pruned or option.failed) and option.approved_by:
            raise TreeError(f"{called(option)} is approved already")
        _refuse_under_pruned(tree, option)
    elif decision == "prune":
        if not option.parent:
            raise TreeError("the root can't be pruned: everything is built on it")
        if option.pruned:
            raise TreeError(f"{called(option)} is pruned already")
    elif decision in ("pin", "unpin"):
        if option.pinned == (decision == "pin"):
            raise TreeError(f"{called(option)} is {'' if option.pinned else 'not '}pinned already")
    else:
        raise TreeError(f"unknown decision '{decision}'")


def may_redirect(tree: Tree, option: Option, guidance: str) -> None:
    """Check that ``option`` can be given ``guidance``."""
    if not guidance.strip():
        raise TreeError("there is no guidance to redirect with")
    if option.pruned or option.failed:
        raise TreeError(f"{called(option)} is {option.status}: nothing grows there; redirect the option above it")
    _refuse_under_pruned(tree, option)


def may_edit(tree: Tree, option: Option) -> None:
    """Check that ``option`` can be given a program by a person."""
    if option.running:
        raise TreeError(f"{called(option)} is running: prune it or wait")
    if option.passing:
        raise TreeError(f"{called(option)} has passed: what was measured stays; add an option under it instead")
    if option.pruned:
        raise TreeError(f"{called(option)} is pruned: approve it first")
    _refuse_under_pruned(tree, option)


def may_grow(tree: Tree, option: Option) -> None:
    """Check that options can be proposed under ``option``."""
    if tree.is_pruned(option.id):
        raise TreeError(f"{called(option)} is pruned, or stands under one that is: approve that one first")
    if not option.passing:
        raise TreeError(f"{called(option)} is {option.status}: there is nothing to build on before it has passed")


def _redirected(tree: Tree, option: Option, event: Event) -> None:
    may_redirect(tree, option, event["guidance"])


def _edited(tree: Tree, option: Option, event: Event) -> None:
    may_edit(tree, option)
    _needs_program(tree, event)


def _may_start(tree: Tree, option: Option, event: Event) -> None:
    if event.data.get("improves"):
        if option.status != PASSED or not option.parent:
            status = option.status if option.parent else "the root"
            raise TreeError(f"{called(option)} can't be improved: it is {status}")
    elif option.status != APPROVED:
        raise TreeError(f"{called(option)} can't start: it is {option.status}")
    if option.parent and tree[option.parent].passing is None:
        raise TreeError(f"{called(option)} can't start: the option above it has not passed")
    if event["attempt"] != option.attempts + 1:
        raise TreeError(f"{called(option)}: attempt {event['attempt']} does not follow attempt {option.attempts}")
    _refuse_under_pruned(tree, option)


def _needs_program(tree: Tree, event: Event) -> None:
    if event["program"] not in tree.layouts:
        raise TreeError(f"no program {event['program'][:12]} in this run")


def _may_write(tree: Tree, option: Option, event: Event) -> None:
    _needs_running(tree, option, event)
    _needs_program(tree, event)


def _needs_running(tree: Tree, option: Option, event: Event) -> None:
    if not option.running:
        raise TreeError(f"{called(option)} is not running (event {event.seq}, {event.kind})")
    if event.data.get("attempt", option.attempts) != option.attempts:
        raise TreeError(f"{called(option)} is at attempt {option.attempts}, not {event['attempt']}")


def _may_fail(tree: Tree, option: Option, event: Event) -> None:
    if option.settled:
        raise TreeError(f"{called(option)} has {'passed' if option.passing else 'failed'} already")
    if not event["reason"]:
        raise TreeError(f"{called(option)} failed without a reason")


def _may_rate(tree: Tree, option: Option, event: Event) -> None:
    check_rating(event)


RULES: Mapping[str, Callable[[Tree, Option, Event], None]] = {
    "decided": _may_decide,
    "redirected": _redirected,
    "edited": _edited,
    "started": _may_start,
    "wrote": _may_write,
    "evaluated": _needs_running,
    "cancelled": _needs_running,
    "failed": _may_fail,
    "rated": _may_rate,
}
