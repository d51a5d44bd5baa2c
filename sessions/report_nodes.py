"""The options of a run as a report lists them, each with what was decided and said about it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from search.events import PERSON, Event, is_followed
from search.option import Option
from search.tree import Tree

REDIRECTED, EDITED = "redirected", "edited"
_DECIDING = frozenset({"decided", REDIRECTED, EDITED})
_OF_THE_RUN = frozenset({"autopilot", "paused", "resumed", "stopped"})


@dataclass(frozen=True)
class Decision:
    """A decision that was not taken back: ``kind`` is approve, prune, pin, unpin, `REDIRECTED` or `EDITED`.

    ``why`` is the reason, or the guidance of a redirect. ``instead`` is the title of what the policy would have taken
    where a person took something else.
    """

    kind: str
    by: str
    at: str
    why: str
    instead: str


@dataclass(frozen=True)
class Remark:
    """Something that was said or that happened: ``kind`` is the event's, or ``followed``.

    ``by`` is "" where nobody is named, ``level`` that of a note; ``about`` is the title of an option, "" if none.
    """

    at: str
    kind: str
    by: str
    text: str
    level: str = ""
    about: str = ""


@dataclass(frozen=True)
class Node:
    """An option in its place: ``depth`` from 0 at the root, ``last`` among those under its parent.

    ``open_levels`` are the depths above it where more follows under the same parent. Speedups are 0 where there is no
    time to compare. ``best`` marks the fastest option, ``leads`` those on the way to it.
    """

    option: Option
    depth: int
    last: bool
    open_levels: frozenset[int]
    over_parent: float
    over_naive: float
    best: bool
    leads: bool
    decisions: tuple[Decision, ...]
    remarks: tuple[Remark, ...]


def nodes_of(tree: Tree) -> tuple[Node, ...]:
    """Return all options of ``tree``, parents before children."""
    about: dict[str, list[Event]] = defaultdict(list)
    for event in tree.events:
        if event.data.get("option"):
            about[event["option"]].append(event)
    best = tree.best()
    leads = {option.id for option in tree.path(best.id)} if best else set()
    return tuple(
        Node(
            option,
            depth,
            last,
            open_levels,
            tree.speedup_over_parent(option.id),
            tree.speedup(option.id),
            best is not None and option.id == best.id,
            option.id in leads,
            tuple(_decisions(tree, about[option.id])),
            tuple(_remarks(about[option.id])),
        )
        for option, depth, last, open_levels in _placed(tree)
    )


def title_of(tree: Tree, option: str) -> str:
    """Return the title of ``option``; its id where it was taken back."""
    return tree.options[option].title if option in tree.options else option


def run_remarks(tree: Tree) -> tuple[Remark, ...]:
    """Return what was said and what happened about the run as a whole, in order."""
    return tuple(_run_remarks(tree))


def _placed(tree: Tree) -> Iterator[tuple[Option, int, bool, frozenset[int]]]:
    waiting = [(tree.root, 0, True, frozenset[int]())] if tree.root else []
    while waiting:
        name, depth, last, open_levels = waiting.pop()
        option = tree[name]
        yield option, depth, last, open_levels
        below = open_levels if last else open_levels | {depth}
        children = [(child, depth + 1, child == option.children[-1], below) for child in option.children]
        waiting.extend(reversed(children))


def _decisions(tree: Tree, about: Sequence[Event]) -> Iterator[Decision]:
    for event in about:
        if event.kind not in _DECIDING or event.seq in tree.undone or event.data.get("origin", 0) in tree.undone:
            continue
        choice = event.data.get("policy_choice", "")
        overruled = event["by"] == PERSON and choice not in ("", event["option"])
        yield Decision(
            event["decision"] if event.kind == "decided" else event.kind,
            event["by"],
            event.at,
            event["guidance"] if event.kind == REDIRECTED else str(event.data.get("why", "")),
            title_of(tree, choice) if overruled else "",
        )


def _remarks(about: Sequence[Event]) -> Iterator[Remark]:
    for event in about:
        if event.kind == "note":
            yield Remark(event.at, "followed" if is_followed(event) else "note", "", event["text"], event["level"])
        elif event.kind == "asked":
            yield Remark(event.at, "asked", "", _question(event))


def _run_remarks(tree: Tree) -> Iterator[Remark]:
    for event in tree.events:
        if event.kind in _OF_THE_RUN:
            on = {"autopilot": "on" if event.data.get("on") else "off"}
            text = on.get(event.kind, str(event.data.get("reason", "")))
            yield Remark(event.at, event.kind, str(event.data.get("by", "")), text)
        elif event.kind == "undone":
            past = tree.events[event["target"] - 1]
            what = past["decision"] if past.kind == "decided" else past.kind
            about = past["title"] if past.kind == "option_added" else title_of(tree, past["option"])
            yield Remark(event.at, event.kind, event["by"], what, about=about)
        elif event.kind == "note" and not event["option"]:
            yield Remark(event.at, event.kind, "", event["text"], event["level"])
        elif event.kind == "asked" and not event["option"]:
            yield Remark(event.at, event.kind, "", _question(event))


def _question(event: Event) -> str:
    return f"{event['question']} ({' / '.join(event['choices'])})" if event["choices"] else str(event["question"])
