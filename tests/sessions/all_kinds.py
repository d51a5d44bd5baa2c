"""A run that has every kind of event, with its texts in places that a test can choose."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from search.config import RunConfig
from search.events import Event
from search.kernels.program import Pass, Program
from sessions.store import Session
from tests.sessions.conftest import numbered, option, passed, stored

CONFIG = RunConfig("softmax", "simulator", "apple-m3-max", "llm", 20, "mine", "m1", "m2", "full", 30.0, 10_000, 2.0)

Happening = tuple[str, dict[str, Any]]
Say = Callable[[str], str]


def in_session(
    happenings: list[Happening], config: RunConfig = CONFIG, created: str = "2025-01-01T00:00:00+00:00"
) -> Session:
    """Return happenings as a session that was read from a file."""
    return Session(config, numbered(happenings), "", {"at": created, "program": "ksearch-tui 0.1.0"})


def program(source: str) -> Program:
    """Return a program of one pass with a header, a template and an initial value."""
    launch = {"grid": ("rows", "1", "1"), "threadgroup": ("32", "1", "1"), "template": (("N", "n"),)}
    return Program((Pass("rows", ("x",), ("y",), source, header="inline int f();", init_value=0.0, **launch),))


def failing(name: str, program: Program, attempt: int, message: str) -> Happening:
    """Return an evaluation that found a race."""
    return "evaluated", {
        "option": name,
        "attempt": attempt,
        "program": program.sha256,
        "outcome": "failed",
        "device": "simulator",
        "time_kind": "modelled",
        "on": "apple-m3-max",
        "cases": 3,
        "worst_error": 0.0,
        "compile_seconds": 0.5,
        "elapsed_seconds": 2.0,
        "mlx_version": "0.32.4",
        "failure_stage": "race",
        "failure_message": message,
        "failure_pass": "rows",
        "failure_workload": "tall",
        "failure_in_header": False,
        "failure_line": 2,
    }


def replied(role: str, model: str, outcome: str = "used", text: str = "", note: str = "", **more: Any) -> Happening:
    """Return a reply of 100 + 20 tokens for $0.01 after two seconds."""
    digest = hashlib.sha256(text.encode()).hexdigest() if text else ""
    fields: dict[str, Any] = dict.fromkeys(("option", "served_as", "structured", "prompt_sha256"), "")
    fields |= {"call": "write", "role": role, "model": model, "endpoint": "mine", "text_sha256": digest}
    fields |= {"prompt_tokens": 100, "completion_tokens": 20, "counted": True, "cost_usd": 0.01, "priced": True}
    fields |= {"seconds": 2.0, "first_seconds": 0.5, "attempts": 1, "outcome": outcome, "note": note}
    return "replied", fields | more


def proposed(name: str, parent: str, title: str, why: str, **more: Any) -> Happening:
    """Return an option by the model m1 that predicts 1.5 times its parent."""
    kind, fields = option(name, parent, title)
    return kind, {**fields, "why": why, "by": "llm:m1", **more}


def decided(name: str, decision: str, by: str, choice: str = "", **more: Any) -> Happening:
    """Return a decision about an option."""
    return "decided", {"option": name, "decision": decision, "by": by, "policy_choice": choice, **more}


def all_kinds(say: Say = str) -> list[Happening]:
    """Return the run; ``say`` makes the text that stands at each place from what a test would expect there.

    o1 is the root (4 ms), o2 failed once and passed (2 ms), o3 was edited by a person and given up, o4 is a person's
    and was broken off. A prune of o2 was taken back.
    """
    naive, fast, edited, broken = (program(say(f"// {name} kernel")) for name in ("naive", "fast", "edited", "broken"))
    root = [proposed("o1", "", say("root title"), say("root why")), *passed("o1", naive, {"tall": 0.004})]
    answer = say("an answer")
    asked = {"option": "o1", "call": "propose", "role": "selector", "model": say("selector model"), "endpoint": "mine"}
    happenings: list[Happening] = [
        ("autopilot", {"on": True, "by": "person"}),
        *root,
        ("sent", {**asked, "prompt_tokens": 90, "cost_usd": 0.005, "priced": True, "prompt_sha256": ""}),
        ("text", {"sha256": hashlib.sha256(answer.encode()).hexdigest(), "text": answer}),
        replied("selector", say("selector model"), text=answer, call="propose", option="o1", question=len(root) + 2),
        proposed("o2", "o1", say("second title"), say("second why")),
        proposed("o3", "o1", say("third title"), say("third why")),
        proposed("o4", "o1", say("fourth title"), "", by="person", predicted=0.0),
        decided("o2", "prune", "person", "o3"),
    ]
    happenings += [
        ("undone", {"target": len(happenings), "by": "person"}),
        ("redirected", {"option": "o1", "guidance": say("guidance"), "by": "person", "policy_choice": "o3"}),
        decided("o2", "approve", "autopilot", "o2", why=say("policy why")),
        ("started", {"option": "o2", "attempt": 1}),
        *stored(broken),
        ("wrote", {"option": "o2", "program": broken.sha256, "attempt": 1, "by": "llm:m2", "note": ""}),
        failing("o2", broken, 1, say("race message")),
        ("started", {"option": "o2", "attempt": 2}),
        *stored(fast),
        ("wrote", {"option": "o2", "program": fast.sha256, "attempt": 2, "by": "llm:m2", "note": say("mends")}),
        (passed("o2", fast, {"tall": 0.002})[-1][0], {**passed("o2", fast, {"tall": 0.002})[-1][1], "attempt": 2}),
        ("rated", {"option": "o2", "rating": 8.5, "confidence": 0.9, "why": say("rated why"), "by": "engine"}),
        decided("o2", "pin", "person", "o3"),
        ("asked", {"option": "o3", "question": say("question"), "choices": [say("one"), say("two")]}),
        ("asked", {"option": "", "question": say("question of the run"), "choices": []}),
        ("note", {"text": say("note"), "level": "warning", "option": "o2"}),
        ("note", {"text": say("followed"), "level": "info", "option": "o2", "about": "followed"}),
        ("note", {"text": say("note of the run"), "level": "error", "option": ""}),
        *stored(edited),
        ("edited", {"option": "o3", "program": edited.sha256, "by": "person", "policy_choice": ""}),
        ("started", {"option": "o3", "attempt": 1}),
        failing("o3", edited, 1, say("edited message")),
        ("failed", {"option": "o3", "reason": say("failed reason")}),
        decided("o4", "approve", "person"),
        ("started", {"option": "o4", "attempt": 1}),
        ("cancelled", {"option": "o4", "reason": say("cancelled reason")}),
        replied("generator", "m2", "malformed", note=say("malformed note"), option="o2"),
        replied("generator", "m2", "rate_limited", note=say("limit note"), counted=False, priced=False, cost_usd=0.0),
        ("paused", {"by": "engine", "reason": say("pause reason")}),
        ("resumed", {"by": "person"}),
        ("stopped", {"reason": say("stop reason")}),
    ]
    return happenings


def kinds(events: list[Event]) -> set[str]:
    """Return the kinds of ``events``."""
    return {event.kind for event in events}


def a_root_that_failed() -> list[Happening]:
    """Return what happens in a run whose first program fails for good."""
    broken = program("a")
    return [
        proposed("o1", "", "root", ""),
        decided("o1", "approve", "engine"),
        ("started", {"option": "o1", "attempt": 1}),
        *stored(broken),
        ("wrote", {"option": "o1", "program": broken.sha256, "attempt": 1, "by": "catalogue", "note": ""}),
        failing("o1", broken, 1, "a race"),
        ("failed", {"option": "o1", "reason": "no other way"}),
    ]
