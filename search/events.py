"""Events: the only way that the state of a run changes. The tree is a fold over them; a session file is a list of them.

Each event is flat: strings, numbers, booleans and lists of these. The kinds and their fields:

=============== ====================================================================================================
kind            fields
=============== ====================================================================================================
option_added    option, parent ("" at the root), title, why, action, rating, confidence, difficulty, predicted, by,
                origin (seq of the redirect that brought it, 0 if none)
decided         option, decision (approve, prune, pin, unpin), by, policy_choice
redirected      option, guidance, by, policy_choice
edited          option, program, by, policy_choice
undone          target (seq of the decision that is taken back), by
kernel          sha256, text: a kernel source or header, stored once
program         sha256, layout: the program as JSON, each source replaced by ``sha256:...``
started         option, attempt
wrote           option, program, attempt, by, note
evaluated       option, attempt, and the fields of `search.evaluation.record.Evaluation`
failed          option, reason
rated           option, rating, confidence, why, by
asked           option, question, choices: the proposer is unsure what a redirect means
note            text, level (info, warning, error), option ("" for the run)
autopilot       on, by
paused          by
resumed         by
stopped         reason
=============== ====================================================================================================

``by`` is ``person``, ``autopilot``, ``engine`` or the proposer's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PERSON = "person"
AUTOPILOT = "autopilot"
ENGINE = "engine"

KINDS = frozenset(
    {
        "option_added",
        "decided",
        "redirected",
        "edited",
        "undone",
        "kernel",
        "program",
        "started",
        "wrote",
        "evaluated",
        "failed",
        "rated",
        "asked",
        "note",
        "autopilot",
        "paused",
        "resumed",
        "stopped",
    }
)


@dataclass(frozen=True)
class Event:
    """One thing that happened: its place in the run (from 1), when (ISO 8601, UTC), what kind, and its flat fields."""

    seq: int
    at: str
    kind: str
    data: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        return self.data[field]
