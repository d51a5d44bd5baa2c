"""A run told one line an event, for the Activity tab and anyone else who reads along."""

from __future__ import annotations

from collections.abc import Callable

from ksearch_tui.inert import one_line
from ksearch_tui.wording import DECISION_VERBS, asked_to, dollars, failure_sentence, plural, times, who
from search.calls import USED
from search.evaluation.record import Evaluation
from search.events import AUTOPILOT, ENGINE, PERSON, Event, is_followed
from search.tree import Tree


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
    verb = DECISION_VERBS[event["decision"]]
    by_proposer = event["by"] not in (PERSON, AUTOPILOT, ENGINE)
    why = f": {event['why']}" if by_proposer and event.data.get("why") else ""
    return f"{who(event['by'])} {verb} {_title(tree, event['option'])}{_against_policy(event, tree)}{why}"


def _redirected(event: Event, tree: Tree) -> str:
    return f"{who(event['by'])} redirected {_title(tree, event['option'])}: “{event['guidance']}”"


def _edited(event: Event, tree: Tree) -> str:
    return f"{who(event['by'])} edited the program of {_title(tree, event['option'])}"


def _undone(event: Event, tree: Tree) -> str:
    target = next((past for past in tree.events if past.seq == event["target"]), None)
    told = narrate(target, tree) if target else f"event {event['target']}"
    return f"{who(event['by'])} took back: {told}"


def _started(event: Event, tree: Tree) -> str:
    aim = " at a faster program" if event.data.get("improves") else ""
    return f"{_title(tree, event['option'])} started{_attempt(event)}{aim}"


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


def _replied(event: Event, tree: Tree) -> str:
    node = tree.options.get(event["option"])
    asked = f"{event['role']} {event['model']} was asked to {asked_to(event['call'], node.title if node else '')}"
    about = "" if event["counted"] else "about "
    used = f"{about}{event['prompt_tokens']} + {event['completion_tokens']} tokens"
    known = f", {about}{dollars(event['cost_usd'])}" if event["cost_usd"] else ""
    cost = known if event["priced"] else ", no price known"
    told = f"{asked}: {used}, {event['seconds']:.1f} s{cost}"
    return told if event["outcome"] == USED else f"{told}; {event['outcome'].replace('_', ' ')}: {event['note']}"


def _note(event: Event, tree: Tree) -> str:
    about = f"{_title(tree, event['option'])}: " if event.data.get("option") else ""
    prefix = "" if event["level"] == "info" else f"{event['level']}: "
    followed = "how the guidance was followed: " if is_followed(event) else ""
    return f"{prefix}{about}{followed}{event['text']}"


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
    "replied": _replied,
    "asked": _asked,
    "note": _note,
    "autopilot": lambda event, tree: f"{who(event['by'])} switched autopilot {'on' if event['on'] else 'off'}",
    "paused": lambda event, tree: (
        f"{who(event['by'])} paused the run{': ' if event.data.get('reason') else ''}{event.data.get('reason', '')}"
    ),
    "resumed": lambda event, tree: f"{who(event['by'])} resumed the run",
    "stopped": lambda event, tree: f"the run stopped: {event['reason']}",
}
