"""The words, signs and figures that the screen, the log and the dialogs share."""

from __future__ import annotations

from collections.abc import Iterator

from search.config import RunConfig
from search.devices.base import MEASURED, MODELLED
from search.evaluation.record import Failure
from search.events import AUTOPILOT, ENGINE, PERSON
from search.kernels.program import Pass
from search.kernels.text import spell_number
from search.track_record import TrackRecord
from search.tree import APPROVED, FAILED, PASSED, PROPOSED, PRUNED, RUNNING

STATUS_SIGNS = {PROPOSED: "?", APPROVED: "●", RUNNING: "◐", PASSED: "✓", FAILED: "✗", PRUNED: "–"}
STATUS_STYLES = {
    PROPOSED: "$text-accent",
    APPROVED: "$text-warning",
    RUNNING: "bold $text-warning",
    PASSED: "$text-success",
    FAILED: "$text-error",
    PRUNED: "$foreground 50%",
}
DECISION_VERBS = {"approve": "approved", "prune": "pruned", "pin": "pinned", "unpin": "unpinned"}
_WHO = {PERSON: "you", AUTOPILOT: "autopilot", ENGINE: "the engine"}
_CALLS = {
    "initialize": "begin the tree at",
    "propose": "propose options under",
    "redirect": "follow the guidance at",
    "write": "write",
    "repair": "mend",
    "improve": "find a faster",
    "refine": "think again after",
}
_CONFIDENCE_CELLS = 4


def who(by: str) -> str:
    """Return how a person reads the author of an event."""
    return _WHO.get(by, by)


def asked_to(call: str, title: str) -> str:
    """Return what a model is asked to do, about the option with this title ("" for the run as a whole)."""
    return " ".join((_CALLS.get(call, call), f"'{title}'" if title else "the run"))


def confidence_bar(confidence: float) -> str:
    """Return a confidence of 0..1 as four cells."""
    filled = round(confidence * _CONFIDENCE_CELLS)
    return "▮" * filled + "▯" * (_CONFIDENCE_CELLS - filled)


def times(speedup: float) -> str:
    """Return a speedup such as ``2.05×``; an em dash where there is none."""
    if speedup <= 0:
        return "—"
    return f"{speedup:.2f}×" if speedup < 100 else f"{speedup:.0f}×"


def duration(seconds: float) -> str:
    """Return whole seconds as ``hh:mm:ss``."""
    whole = max(0, int(seconds))
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def device_label(config: RunConfig) -> str:
    """Return the device and what its times are, such as ``simulator → apple-m3-max (modelled)``."""
    kind = MODELLED if config.device == "simulator" else MEASURED
    return f"{config.device} → {config.profile} ({kind})"


def failure_sentence(failure: Failure) -> str:
    """Return a failure with the place where it happened."""
    places = (
        f"pass '{failure.pass_name}'" if failure.pass_name else "",
        f"line {failure.line}" if failure.line is not None else "",
        f"workload '{failure.workload}'" if failure.workload else "",
    )
    where = ", ".join(place for place in places if place)
    return f"{failure.stage}{f' ({where})' if where else ''}: {failure.message}"


def launch_lines(step: Pass) -> Iterator[str]:
    """Yield what a pass reads and writes and how it is launched."""
    yield f"{', '.join(step.inputs)} → {', '.join(step.outputs)}"
    yield f"grid {' × '.join(step.grid)} threads · threadgroup {' × '.join(step.threadgroup)}"
    if step.template:
        yield "template " + ", ".join(f"{name} = {value}" for name, value in step.template)
    if step.init_value is not None:
        yield f"outputs begin as {spell_number(step.init_value)}"
    if step.atomic_outputs:
        yield "outputs are atomic"


def verdict(record: TrackRecord) -> str:
    """Return bias and typical error in words, such as ``found 0.71× of predicted, off by 1.52×``."""
    return f"found {record.bias:.2f}× of predicted, off by {record.typical_error:.2f}×"


def plural(count: int, word: str) -> str:
    """Return ``count`` with ``word`` in its number."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def count(number: int) -> str:
    """Return a count as people say it: ``940``, ``18.2k``, ``1.25M``."""
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * scale:
            return f"{number / scale:.3g}{unit}"
    return str(number)


def dollars(usd: float) -> str:
    """Return an amount of US dollars with enough figures to tell it from nothing."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.2g}" if usd >= 1e-4 else "<$0.0001"
