"""The Option tab: why, predicted against found, rating and how it moved, who decided and when, guidance, failure.

What the option points at in the CUDA references stands there too, as those lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from textual import work
from textual.content import Content
from textual.worker import get_current_worker

from ksearch_tui.inert import inert, one_line
from ksearch_tui.narration import clock_time
from ksearch_tui.widgets.cited import cited_places, excerpt, read_texts
from ksearch_tui.widgets.look import Look
from ksearch_tui.widgets.page import Page, Paragraph
from ksearch_tui.wording import (
    DECISION_VERBS,
    STATUS_SIGNS,
    STATUS_STYLES,
    confidence_bar,
    device_label,
    failure_sentence,
    plural,
    times,
    who,
)
from search import policy
from search.events import PERSON, Event, is_followed
from search.problems.definition import Problem
from search.tree import PROPOSED, Option, Tree

_LABEL_WIDTH = 11
_QUIET = "$foreground 60%"
_BLANK = Paragraph(Content(""))
_DECIDING = frozenset({"decided", "redirected", "edited"})


class OptionTab(Page):
    """What there is to know about the option under the cursor."""

    _shown: tuple[Option | None, int, str, int] | None = None
    _look: Look | None = None
    _problem: Problem | None = None
    _texts: Mapping[Path, tuple[str, ...]] = MappingProxyType({})

    def show(self, look: Look) -> None:
        """Show the option of ``look``; the CUDA references are read when an option first points at one."""
        self._look = look
        if look.problem is not self._problem and look.problem and cited_places(look.option, look.problem.cuda):
            self._problem = look.problem
            self._read(look.problem)
        key = (look.option, look.seen, look.policy_next, len(self._texts))
        if key == self._shown:
            return
        before = self._shown[0] if self._shown else None
        self._shown = key
        self.write(describe_option(look, look.option, self._texts) if look.option else _welcome(look))
        if before is None or look.option is None or look.option.id != before.id:
            self.scroll_home(animate=False)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _read(self, problem: Problem) -> None:
        worker = get_current_worker()
        texts = read_texts(problem.cuda)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._has_read, texts)

    def _has_read(self, texts: Mapping[Path, tuple[str, ...]]) -> None:
        self._texts = texts
        if self._look is not None:
            self.show(self._look)


def _welcome(look: Look) -> list[Paragraph]:
    if look.problem is None:
        return [Paragraph(Content.assemble(("Opening the problem…", _QUIET)))]
    return [
        Paragraph(Content.assemble((inert(look.problem.title), "bold"))),
        _BLANK,
        Paragraph(Content(inert(look.problem.description))),
        _BLANK,
        Paragraph(Content.assemble(("The first option appears as soon as the proposer has made it.", _QUIET))),
    ]


def describe_option(look: Look, option: Option, texts: Mapping[Path, tuple[str, ...]]) -> list[Paragraph]:
    """Return everything that is known about ``option``, in the order to read it; ``texts`` are the CUDA references."""
    tree = look.tree
    facts = [_headline(option), *_path(option, tree)]
    if option.why:
        facts += [_BLANK, Paragraph(Content(inert(option.why.strip())))]
    facts += _evidence(option, look, texts)
    facts += [_BLANK, *_figures(option, look), *_ratings(option)]
    about = [event for event in tree.events if event.data.get("option") == option.id]
    facts += _decisions(option, look, about)
    facts += _guidance(option, tree, about)
    facts += _failure(option)
    facts += _notes(about)
    return facts


def _evidence(option: Option, look: Look, texts: Mapping[Path, tuple[str, ...]]) -> list[Paragraph]:
    """Return the places in the CUDA references that the option points at, each with its lines."""
    lines: list[Paragraph] = []
    for place in cited_places(option, look.problem.cuda if look.problem else ()):
        shown = excerpt(place, texts.get(place.path, ()))
        missing = "" if shown or place.path not in texts else "the file has no such line"
        lines += [_BLANK, _entry("evidence", (str(place), "bold"), (f"  {missing or 'v goes there'}", _QUIET))]
        for number, text in shown:
            style = "" if number == place.line else _QUIET
            lines.append(_entry("", (f"{number:>4} ", "$foreground 40%"), (inert(text), style)))
    return lines


def _headline(option: Option) -> Paragraph:
    status = option.status
    return Paragraph(
        Content.assemble(
            (one_line(option.title), "bold"),
            "  ",
            (f"{STATUS_SIGNS[status]} {status}", STATUS_STYLES[status]),
            ("  ^ pinned" if option.pinned else "", "$text-accent"),
        )
    )


def _path(option: Option, tree: Tree) -> list[Paragraph]:
    above = [one_line(node.title) for node in tree.path(option.id)[:-1]]
    return [Paragraph(Content.assemble(("on top of " + " → ".join(above), _QUIET)))] if above else []


def _entry(label: str, *parts: str | Content | tuple[str, str]) -> Paragraph:
    return Paragraph(Content.assemble(*parts), label, _LABEL_WIDTH)


def _figures(option: Option, look: Look) -> list[Paragraph]:
    lines = []
    doubt = f"confidence {option.ratings[0][1]:.2f}, difficulty {option.difficulty} of 5"
    if option.parent and option.predicted:
        lines.append(_entry("predicted", times(option.predicted), " over its parent ", (f"({doubt})", _QUIET)))
    found = option.passing
    if found is None:
        lines.append(_entry("found", (f"nothing yet; it will run on {device_label(look.config)}", _QUIET)))
        return lines
    parts = [f"{times(look.tree.speedup_over_parent(option.id))} over its parent"] if option.parent else []
    if option.parent and look.tree.speedup(option.id):
        parts.append(f"{times(look.tree.speedup(option.id))} naive")
    if found.roofline_fraction:
        parts.append(f"{found.roofline_fraction:.0%} of roofline")
    if found.speedup_over_baseline():
        parts.append(f"{times(found.speedup_over_baseline())} MLX's own")
    lines.append(_entry(found.kind, " · ".join(parts), " ", (f"({found.on})", _QUIET)))
    proof = f"{plural(found.cases, 'case')} against float64, worst error {found.worst_error:.2f} of the tolerance"
    lines.append(_entry("proven", proof))
    return lines


def _ratings(option: Option) -> list[Paragraph]:
    lines = [
        _entry(
            "rating", (f"{option.rating:.1f}", "bold"), f"  {confidence_bar(option.confidence)} {option.confidence:.2f}"
        )
    ]
    if len(option.ratings) > 1:
        lines += [
            _entry("", f"{rating:4.1f}  {confidence:.2f}  ", (one_line(why), _QUIET))
            for rating, confidence, why in option.ratings
        ]
    return lines


def _decisions(option: Option, look: Look, about: list[Event]) -> list[Paragraph]:
    tree = look.tree
    decisions = [event for event in about if event.kind in _DECIDING and event.seq not in tree.undone]
    lines = [_entry("" if number else "decided", *_decision(event, tree)) for number, event in enumerate(decisions)]
    if option.status == PROPOSED:
        first = "would take it next: " if look.policy_next == option.id else ""
        lines.append(_entry("policy", first, policy.score(tree, look.calibration, option).why))
    lines.append(_entry("proposed", f"by {who(option.by)}"))
    return lines


def _decision(event: Event, tree: Tree) -> list[str | tuple[str, str]]:
    verb = DECISION_VERBS[event["decision"]] if event.kind == "decided" else event.kind
    parts: list[str | tuple[str, str]] = [f"{verb} by {who(event['by'])} at {clock_time(event)}"]
    choice = event.data.get("policy_choice", "")
    if event["by"] == PERSON and choice in tree.options and choice != event["option"]:
        parts.append((f"; the policy would have taken '{one_line(tree[choice].title)}'", _QUIET))
    if event.data.get("why"):
        parts.append((f": {one_line(event['why'])}", _QUIET))
    return parts


def _guidance(option: Option, tree: Tree, about: list[Event]) -> list[Paragraph]:
    """Return what a person asked for on the way to the option, and how models say that they followed it here."""
    lines = []
    for node in tree.path(option.id):
        for text in node.guidance:
            source = "" if node.id == option.id else f" (given at '{one_line(node.title)}')"
            lines.append(_entry("guidance", f"“{one_line(text)}”", (source, _QUIET)))
    for event in about:
        if is_followed(event):
            lines.append(_entry("followed", one_line(event["text"]), (f" (said at {clock_time(event)})", _QUIET)))
    return lines


def _failure(option: Option) -> list[Paragraph]:
    lines: list[Paragraph] = []
    failure = option.evaluations[-1].failure if option.evaluations else None
    if failure is not None:
        lines += [_BLANK, Paragraph(Content.assemble((inert(failure_sentence(failure)), "$text-error")))]
    if option.failed:
        given_up = Content.assemble(("Given up: ", "bold $text-error"), inert(option.failed))
        lines += [_BLANK, Paragraph(given_up)]
    return lines


def _notes(about: list[Event]) -> list[Paragraph]:
    lines = []
    for event in about:
        if event.kind == "note" and not is_followed(event):
            lines.append(_entry("note", one_line(event["text"])))
        elif event.kind == "wrote" and event["note"]:
            lines.append(_entry("rewritten", one_line(event["note"])))
    return lines
