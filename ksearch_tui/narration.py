"""A run told one line an event, for the Activity tab and anyone else who reads along."""

from __future__ import annotations

from collections.abc import Callable

from ksearch_tui.inert import one_line
from ksearch_tui.wording import failure_sentence, plural, times, who
from search.evaluation.record import Evaluation
from search.events import PERSON, Event
from search.tree import Tree

_DECISIONS = {"approve": "approved", "prune": "pruned", "pin": "pinned", "unpin": "unpinned"}


def narrate(event: Event, tree: Tree) -> str:
    """Return what happened in one plain line ("" for events that only store text); ``tree`` gives the titles."""
    tell = _TELLERS.get(event.kind)
    return one_line(tell(event, tree)) if tell else ""


def clock_time(event: Event) -> str:
    """Return the event's time of day, ``hh:mm:ss`` UTC, as it was recorded."""
    return event.at[11:19]


def _title(tree: Tree, option: str) -> str:
    node = tree.options.get(option)
    return f"'{one_line(node.title)}'" if node else f"option {option}"


def _against_policy(event: Event, tree: Tree) -> str:
    choice = event.data.get("policy_choice", "")
    if event["by"] != PERSON or not choice or choice == event["option"]:
        return ""
    return f" (the policy would have taken {_title(tree, choice)})"


def _option_added(event: Event, tree: Tree) -> str:
    under = f" under {_title(tree, event['parent'])}" if event["parent"] else ""
    predicted = f", predicted {times(event['predicted'])}" if event["predicted"] else ""
    verb = "added" if event["by"] == PERSON else "proposed"
    return f"{who(event['by'])} {verb} '{event['title']}'{under}: rating {event['rating']:.1f}{predicted}"


def _decided(event: Event, tree: Tree) -> str:
    verb = _DECISIONS[event["decision"]]
    return f"{who(event['by'])} {verb} {_title(tree, event['option'])}{_against_policy(event, tree)}"


def _redirected(event: Event, tree: Tree) -> str:
    return f"{who(event['by'])} redirected {_title(tree, event['option'])}: “{event['guidance']}”"


def _edited(event: Event, tree: Tree) -> str:
    return f"{who(event['by'])} edited the program of {_title(tree, event['option'])}"


def _undone(event: Event, tree: Tree) -> str:
    target = next((past for past in tree.events if past.seq == event["target"]), None)
    told = narrate(target, tree) if target else f"event {event['target']}"
    return f"{who(event['by'])} took back: {told}"


def _started(event: Event, tree: Tree) -> str:
    return f"{_title(tree, event['option'])} started{_attempt(event)}"


def _wrote(event: Event, tree: Tree) -> str:
    note = f": {event['note']}" if event.data.get("note") else ""
    return f"{who(event['by'])} wrote {_title(tree, event['option'])}{_attempt(event)}{note}"


def _attempt(event: Event) -> str:
    return f", attempt {event['attempt']}" if event["attempt"] > 1 else ""


def _evaluated(event: Event, tree: Tree) -> str:
    evaluation = Evaluation.from_fields(event.data)
    title = _title(tree, event["option"])
    if evaluation.failure:
        return f"{title} failed at {failure_sentence(evaluation.failure)}"
    root = tree.options[tree.root].passing if tree.root else None
    speedup = evaluation.speedup_over(root) if root else 0.0
    gain = f", {times(speedup)} naive" if speedup else ""
    roofline = f"{evaluation.roofline_fraction:.0%} of roofline"
    return f"{title} passed {plural(evaluation.cases, 'case')}{gain}, {roofline} ({evaluation.kind}, {evaluation.on})"


def _cancelled(event: Event, tree: Tree) -> str:
    return f"{_title(tree, event['option'])} was broken off; it waits"


def _failed(event: Event, tree: Tree) -> str:
    return f"{_title(tree, event['option'])} is given up: {event['reason']}"


def _rated(event: Event, tree: Tree) -> str:
    rating = f"{event['rating']:.1f}, confidence {event['confidence']:.2f}"
    return f"{_title(tree, event['option'])} is now rated {rating}: {event['why']}"


def _asked(event: Event, tree: Tree) -> str:
    choices = " / ".join(event["choices"])
    return f"question about {_title(tree, event['option'])}: {event['question']} ({choices})"


def _note(event: Event, tree: Tree) -> str:
    about = f"{_title(tree, event['option'])}: " if event.data.get("option") else ""
    prefix = "" if event["level"] == "info" else f"{event['level']}: "
    return f"{prefix}{about}{event['text']}"


_TELLERS: dict[str, Callable[[Event, Tree], str]] = {
    "option_added": _option_added,
    "decided": _decided,
    "redirected": _redirected,
    "edited": _edited,
    "undone": _undone,
    "started": _started,
    "wrote": _wrote,
    "evaluated": _evaluated,
    "cancelled": _cancelled,
    "failed": _failed,
    "rated": _rated,
    "asked": _asked,
    "note": _note,
    "autopilot": lambda event, tree: f"{who(event['by'])} switched autopilot {'on' if event['on'] else 'off'}",
    "paused": lambda event, tree: f"{who(event['by'])} paused the run",
    "resumed": lambda event, tree: f"{who(event['by'])} resumed the run",
    "stopped": lambda event, tree: f"the run stopped: {event['reason']}",
}
