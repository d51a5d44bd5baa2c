"""A report as one HTML page that stands alone: no script, nothing from outside, safe with whatever text is in it.

Every text is made inert and escaped where the template puts it out, so none can be forgotten. The page's policy
(Content-Security-Policy) allows its own style sheet, named by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from ksearch_tui import __version__
from ksearch_tui.headless.summary import format_seconds
from ksearch_tui.inert import inert, one_line
from ksearch_tui.report.charts import SERIES, curve, proposers, scatter
from ksearch_tui.source_tokens import METAL, source_tokens
from ksearch_tui.wording import (
    DECISION_VERBS,
    STATUS_SIGNS,
    asked_to,
    confidence_bar,
    count,
    device_label,
    dollars,
    duration,
    failure_sentence,
    launch_lines,
    plural,
    times,
    verdict,
    who,
)
from search.devices.base import MODELLED
from search.evaluation.record import Evaluation, WorkloadTime
from search.events import PERSON
from sessions.report import Node, Remark, Report

_FOLDER = Path(__file__).parent
_MODEL = "llm:"
_FIRST_WORDS = 300
_MOST_LEVELS = 12
# Of a term that takes less than this share of the longest there is nothing to see.
_SMALLEST_TERM = 0.01


def render(report: Report) -> str:
    """Return the page of ``report``; the same report gives the same page."""
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    titles = {node.option.id: node.option.title for node in report.nodes}
    page = _environment().get_template("page.html.jinja")
    return page.render(
        report=report,
        style=Markup(style),
        style_hash=f"sha256-{digest}",
        version=__version__,
        curve=curve(report.attempts),
        scatter=scatter(report.comparisons, titles),
        predictors=proposers(report.comparisons),
        series=SERIES,
        kernel=list(_kernel(report)),
        statuses=Counter(node.option.status for node in report.nodes),
        kinds=list(dict.fromkeys(_kind(attempt.evaluation) for attempt in report.attempts if attempt.evaluation.times)),
        deciders=_deciders(report),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_inert,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "times": times,
        "share": lambda fraction: f"{fraction:.0%}",
        "seconds": format_seconds,
        "duration": duration,
        "count": count,
        "dollars": dollars,
        "moment": _moment,
        "clock": _clock,
        "who": _who,
        "model": _model,
        "first_words": _first_words,
        "one_line": one_line,
        "failure": failure_sentence,
        "confidence_bar": confidence_bar,
        "guides": _guides,
        "bounds": _bounds,
        "terms": _terms,
        "kind": _kind,
        "level": _level,
        "paragraphs": _paragraphs,
        "verdict": verdict,
    }
    environment.globals |= {
        "plural": plural,
        "asked_to": asked_to,
        "device_label": device_label,
        "STATUS_SIGNS": STATUS_SIGNS,
        "VERBS": DECISION_VERBS,
        "PERSON": PERSON,
        "MODELLED": MODELLED,
    }
    return environment


def _inert(value: Any) -> Any:
    """Make every text that a template puts out inert; what is `Markup` was made of inert text here."""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@dataclass(frozen=True)
class _Part:
    """A pass of the kernel: its name, how it is launched, and its texts in colour ("" for no header)."""

    name: str
    launch: tuple[str, ...]
    header: Markup
    source: Markup


def _kernel(report: Report) -> Iterator[_Part]:
    for step in report.kernel.passes if report.kernel else ():
        header = _coloured(step.header) if step.header else Markup()
        yield _Part(step.name, tuple(launch_lines(step)), header, _coloured(step.source))


def _coloured(source: str) -> Markup:
    """Return Metal as numbered lines with a class for each kind of token; pygments escapes the text."""
    page = io.StringIO()
    HtmlFormatter(cssclass="metal", linenos="inline").format(source_tokens(inert(source), METAL), page)
    return Markup(page.getvalue())


def _deciders(report: Report) -> dict[str, int]:
    """Return how many decisions each took, and under ``against`` how often a person overruled the policy."""
    decisions = [decision for node in report.nodes for decision in node.decisions]
    return {**Counter(decision.by for decision in decisions), "against": sum(bool(d.instead) for d in decisions)}


def _moment(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _clock(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone(UTC):%H:%M:%S}"


def _who(by: str) -> str:
    """Return the author of an event for a reader who was not there."""
    return "a person" if by == PERSON else who(_model(by))


def _model(by: str) -> str:
    return by.removeprefix(_MODEL)


def _first_words(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _FIRST_WORDS else f"{line[: _FIRST_WORDS - 1]}…"


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text: what stands between blank lines."""
    return [paragraph for part in re.split(r"\n\s*\n", text) if (paragraph := one_line(part))]


def _kind(evaluation: Evaluation) -> str:
    """Return what the times of an evaluation are, such as ``modelled for apple-m3-max``."""
    return f"{evaluation.kind} {'for' if evaluation.kind == MODELLED else 'on'} {evaluation.on}"


def _level(remark: Remark) -> str:
    """Return the level of a remark that is more than information, else ""."""
    return remark.level if remark.level in ("warning", "error") else ""


def _guides(node: Node) -> list[str]:
    """Return the lines that lead to an option, one class a level: ``through``, ``none``, and ``branch`` or ``end``."""
    levels = ["through" if level in node.open_levels else "none" for level in range(1, node.depth)]
    return [*levels, "end" if node.last else "branch"][-_MOST_LEVELS:] if node.depth else []


def _bounds(evaluation: Evaluation) -> str:
    """Return what bounds the times, such as ``memory``, or ``memory (2 workloads), arithmetic (1)``, or ""."""
    bounds = Counter(time.bound_by for time in evaluation.times if time.bound_by)
    if len(bounds) < 2:
        return "".join(bounds)
    (first, most), *others = bounds.most_common()
    return ", ".join([f"{first} ({plural(most, 'workload')})", *(f"{term} ({number})" for term, number in others)])


def _terms(time: WorkloadTime) -> list[tuple[str, float, float]]:
    """Return the terms of a modelled time, the longest first: name, seconds, and the share of the longest."""
    longest = max(time.terms.values(), default=0.0)
    found = sorted(time.terms.items(), key=lambda term: -term[1])
    return [(name, seconds, seconds / longest) for name, seconds in found if seconds > longest * _SMALLEST_TERM]
