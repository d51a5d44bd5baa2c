"""The top line: problem, device and profile, proposer, evaluations of the budget, and the best so far."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from ksearch_tui.inert import one_line
from ksearch_tui.widgets.look import Look
from ksearch_tui.wording import device_label, times
from search.tree import Tree

_DOT = " · "
_QUIET = "$foreground 60%"


class RunHeader(Static):
    """One line that says what run this is and how far it is; narrow terminals get the essential parts."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._look: Look | None = None

    def show(self, look: Look) -> None:
        """Show the run of ``look``."""
        self._look = look
        self.update(header_line(look, max(20, self.size.width)), layout=False)

    def on_resize(self) -> None:
        """Fit the line to another width."""
        if self._look is not None:
            self.show(self._look)


def header_line(look: Look, width: int) -> Content:
    """Return the parts that fit in ``width``, those that matter most first to stay."""
    config, tree = look.config, look.tree
    state, state_style = _state(tree)
    best = look.best
    speedup = tree.speedup(best.id) if best else 0.0
    fraction = best.passing.roofline_fraction if best and best.passing else 0.0
    long_best = f"best {times(speedup)} naive" + (f", {fraction:.0%} of roofline" if fraction else "")
    # (text, style, how much it matters); the shorter form of a part is tried when the line is too long.
    parts: list[tuple[str, str, int]] = [
        ("ksearch-tui", "bold $text-primary", 0),
        (one_line(config.problem_name), "bold", 9),
        (device_label(config), "", 7),
        (config.proposer, _QUIET, 2),
        (f"{state} {tree.evaluations}/{config.budget}", state_style, 8),
    ]
    if speedup:
        parts.append((long_best, "$text-success", 6))
    while len(parts) > 1 and len(_DOT.join(text for text, _, _ in parts)) > width:
        least = min(parts, key=lambda part: part[2])
        if least[0] == long_best:
            parts[parts.index(least)] = (f"best {times(speedup)}", "$text-success", 10)
            continue
        parts.remove(least)
    shown: list[str | tuple[str, str]] = []
    for text, style, _ in parts:
        shown += [(_DOT, _QUIET)] if shown else []
        shown.append((text, style))
    return Content.assemble(*shown)


def _state(tree: Tree) -> tuple[str, str]:
    if tree.stopped:
        return "■ stopped", "bold $text-error"
    if tree.paused:
        return "‖ paused", "bold $text-warning"
    return ("● auto", "bold $text-success") if tree.autopilot else ("●", "$text-success")
