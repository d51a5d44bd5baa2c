"""Events: the only way that the state of a run changes. The tree is a fold over them; a session file is a list of them.

Each event is flat: strings, numbers, booleans and lists of strings. `FIELDS` lists the kinds and what each must have;
what they mean:

=============== ====================================================================================================
kind            what happened
=============== ====================================================================================================
option_added    a new option under ``parent`` ("" for the root); ``by`` the proposer's name, or ``person``
decided         ``decision`` is approve, prune, pin or unpin; approving a pruned option brings it back, approving one
                that failed lets it try afresh
redirected      ``guidance`` that travels with the subtree of ``option``, from before the proposer is asked what follows
edited          a person gave ``option`` a ``program`` of their own; it waits to run, even if it had failed
undone          the decision with the seq ``target`` is taken back, and what it brought with it
kernel          a kernel source or header, stored once under its hash
program         a program as JSON, each source replaced by ``sha256:...``, stored once under its hash
started         attempt number ``attempt`` at ``option`` begins; attempts count from 1 over the option's whole life;
                ``improves`` says that it has passed already, and this one looks for a faster program
wrote           ``by`` wrote the ``program`` of this attempt; ``note`` says what it mends ("" for the first)
evaluated       the attempt is over, with the fields of `search.evaluation.record.Evaluation`
cancelled       the attempt was broken off without a result (pruned meanwhile, or the run stopped); the option waits
failed          no attempt is left, or the proposer can't write it
rated           what was learned moves ``rating`` and ``confidence``
sent            the first request of a question about ``option`` ("" for the whole run) to a model is on its way: who is
                asked what, and the estimated tokens and cost of its prompt
replied         a question is over: who was asked what, what it used, and what became of the reply: ``outcome`` is used,
                malformed, cancelled, lost (the program was killed meanwhile) or the kind of a fault, ``note`` says why
                it is not used; ``question`` is the seq of its ``sent`` (absent if no request was sent)
text            what a model answered, stored once under its hash
asked           the proposer is unsure what ``guidance`` means and offers ``choices``; nothing else changed
note            something to read; ``level`` is info, warning or error, ``option`` "" for the whole run; ``about`` is
                ``followed`` where a model says how it followed a person's guidance, and ``propose``, ``improve``,
                ``refine`` or ``redirect`` where that came to nothing at ``option``, so that it isn't asked for again
autopilot       the policy decides (``on``), or a person does
paused          no new evaluation begins; by ``engine`` with a ``reason``: nothing can be asked of the model for now
resumed         by ``person``: the pause ends; by ``engine``: a stopped run goes on, what was running waits again
stopped         the run ended; only ``resumed`` can follow
=============== ====================================================================================================

``by`` is ``person``, ``autopilot``, ``engine`` or the proposer's name; where a model proposed or wrote, ``llm:`` and
its name. ``policy_choice`` is the option that the policy would have taken instead of a person ("" if none). ``origin``
is the seq of the redirect that an event follows from (0 or absent if none): it is taken back together with that
redirect. Of ``replied``: ``served_as`` is what the endpoint calls the model that answered, ``cost_usd`` is 0 where
``priced`` is false, ``counted`` says that the endpoint counted the tokens (else they are estimates), ``attempts`` are
the requests that were sent, ``text_sha256`` is "" where nothing was answered, and ``by`` is ``person`` where a person
broke the question off (absent otherwise).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PERSON = "person"
AUTOPILOT = "autopilot"
ENGINE = "engine"
FOLLOWED = "followed"
PROPOSE, IMPROVE, REFINE, REDIRECT = "propose", "improve", "refine", "redirect"

FIELDS: Mapping[str, Mapping[str, type]] = {
    "option_added": {
        "option": str,
        "parent": str,
        "title": str,
        "why": str,
        "action": str,
        "rating": float,
        "confidence": float,
        "difficulty": int,
        "predicted": float,
        "by": str,
        "origin": int,
    },
    "decided": {"option": str, "decision": str, "by": str, "policy_choice": str},
    "redirected": {"option": str, "guidance": str, "by": str, "policy_choice": str},
    "edited": {"option": str, "program": str, "by": str, "policy_choice": str},
    "undone": {"target": int, "by": str},
    "kernel": {"sha256": str, "text": str},
    "program": {"sha256": str, "layout": str},
    "started": {"option": str, "attempt": int},
    "wrote": {"option": str, "program": str, "attempt": int, "by": str, "note": str},
    "evaluated": {
        "option": str,
        "attempt": int,
        "program": str,
        "outcome": str,
        "device": str,
        "time_kind": str,
        "on": str,
        "cases": int,
        "worst_error": float,
        "compile_seconds": float,
        "elapsed_seconds": float,
        "mlx_version": str,
    },
    "cancelled": {"option": str, "reason": str},
    "failed": {"option": str, "reason": str},
    "rated": {"option": str, "rating": float, "confidence": float, "why": str, "by": str},
    "sent": {
        "option": str,
        "call": str,
        "role": str,
        "model": str,
        "endpoint": str,
        "prompt_tokens": int,
        "cost_usd": float,
        "priced": bool,
        "prompt_sha256": str,
    },
    "replied": {
        "option": str,
        "call": str,
        "role": str,
        "model": str,
        "served_as": str,
        "endpoint": str,
        "prompt_tokens": int,
        "completion_tokens": int,
        "counted": bool,
        "cost_usd": float,
        "priced": bool,
        "seconds": float,
        "first_seconds": float,
        "attempts": int,
        "structured": str,
        "prompt_sha256": str,
        "text_sha256": str,
        "outcome": str,
        "note": str,
    },
    "text": {"sha256": str, "text": str},
    "asked": {"option": str, "question": str, "choices": list},
    "note": {"text": str, "level": str, "option": str},
    "autopilot": {"on": bool, "by": str},
    "paused": {"by": str},
    "resumed": {"by": str},
    "stopped": {"reason": str},
}
KINDS = frozenset(FIELDS)
_MAY: Mapping[str, type] = {
    "about": str,
    "by": str,
    "guidance": str,
    "improves": bool,
    "origin": int,
    "question": int,
    "reason": str,
    "why": str,
}
"""What an event may have besides, of whatever kind."""


@dataclass(frozen=True)
class Event:
    """One thing that happened: its place in the run (from 1), when (ISO 8601, UTC), what kind, and its flat fields."""

    seq: int
    at: str
    kind: str
    data: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        return self.data[field]


def fault(event: Event) -> str:
    """Return what is wrong with the form of ``event`` (kind, missing field, wrong type), "" if nothing."""
    fields = FIELDS.get(event.kind)
    if fields is None:
        return f"unknown event kind '{event.kind}'"
    data = event.data
    for name in fields:
        if name not in data:
            return f"event {event.seq} ({event.kind}) lacks '{name}'"
    for name, wanted in {**_MAY, **fields}.items():
        if name not in data:
            continue
        value = data[name]
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            return f"event {event.seq} ({event.kind}): '{name}' is a {type(value).__name__}, not a {wanted.__name__}"
        if isinstance(value, list) and not all(isinstance(entry, str) for entry in value):
            return f"event {event.seq} ({event.kind}): '{name}' holds something else than text"
    return ""


def is_followed(event: Event) -> bool:
    """Whether ``event`` is a note in which a model says how it followed a person's guidance."""
    return event.kind == "note" and event.data.get("about") == FOLLOWED
