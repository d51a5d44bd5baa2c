"""What the explorer says unasked: a toast for what a person waits for, what a model is asked, whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ksearch_tui.inert import one_line
from ksearch_tui.replies_under_way import GrowingReply
from ksearch_tui.wording import asked_to, count, times
from search.calls import LOST
from search.events import ENGINE, Event
from search.option import PROPOSED
from search.tree import Tree


@dataclass(frozen=True)
class Toast:
    """A few words that go away after ``seconds``."""

    title: str
    text: str
    seconds: float = 5.0
    severity: Literal["information", "warning", "error"] = "information"


def announcement(event: Event, tree: Tree, best_before: float) -> Toast | None:
    """Return what to say about ``event``, None where nobody waits for it; ``best_before``: the best speedup before."""
    if event.kind == "evaluated":
        best = tree.best()
        speedup = tree.speedup(best.id) if best else 0.0
        if best is None or not best.parent or speedup <= best_before:
            return None
        return Toast("New best", f"{one_line(best.title)}: {times(speedup)} naive", 4)
    if event.kind == "failed":
        text = f"{one_line(tree[event['option']].title)}: {one_line(event['reason'])}"
        return Toast("Failed", text, severity="warning")
    if event.kind == "replied" and event["outcome"] == LOST:
        asked = f"{event['role']} {one_line(event['model'])}"
        text = f"{asked} was being asked when the program was killed: ~{count(event['prompt_tokens'])} tokens count."
        return Toast("A question was lost", text, 10, "warning")
    if event.kind == "paused" and event["by"] == ENGINE:
        return Toast("The run waits", f"{one_line(event['reason'])}\nspace goes on.", 20, "error")
    return Toast("The run stopped", one_line(event["reason"]), 8) if event.kind == "stopped" else None


def asked_now(reply: GrowingReply, tree: Tree) -> str:
    """Return what a model is asked, and how far it is."""
    if reply.waiting:
        return reply.waiting
    asked, node = reply.question, tree.options.get(reply.question.option)
    said = f"~{count(reply.tokens)} tokens" if reply.pieces else "no word yet"
    return f"{asked.role}, {said}: {asked_to(asked.call, one_line(node.title) if node else '')}"


def hint(tree: Tree) -> str:
    """Return what a person can do while nothing is waited for, "" when there is nothing to say."""
    if tree.autopilot or tree.stopped:
        return ""
    if tree.paused:
        return "paused: space goes on"
    if {option.status for option in tree.frontier()} == {PROPOSED}:
        return "your turn: a approves an option, A lets the policy decide"
    return ""
