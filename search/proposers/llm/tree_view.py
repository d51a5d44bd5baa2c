"""The tree as a model is shown it: what was tried on the way to an option and beside it, and what came of it.

Pure, deterministic, and of bounded size. When it would be too long, entries go in this order until it fits: open
options that are rated lowest; failures that are oldest; siblings that are slowest; steps in the middle of the path. The
root, the option itself and the best always stay, and what went is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from search.option import FAILED, OPEN, PASSED, Option
from search.problems.definition import Problem
from search.proposers.llm.evaluation_text import failure_line, times_line
from search.tree import Tree
from translator.quoting import plain

Level = Literal["full", "short", "minimal"]

LEVELS: tuple[Level, ...] = ("full", "short", "minimal")

EDITED = "the person edited its program: what they wrote is to be kept, but for what an option or a fault is about"

WHY, TITLE, BY = 160, 100, 48
"""Where reasons, titles and names of proposers are cut."""


@dataclass(frozen=True)
class Bounds:
    """Most entries of each kind at one level, and most characters of all of it."""

    path: int
    siblings: int
    failed: int
    waiting: int
    characters: int


BOUNDS = {
    "full": Bounds(path=12, siblings=8, failed=8, waiting=24, characters=7000),
    "short": Bounds(path=4, siblings=3, failed=3, waiting=8, characters=2800),
    "minimal": Bounds(path=2, siblings=0, failed=0, waiting=0, characters=2400),
}


@dataclass
class _Section:
    """Entries under a heading, the least important ``first_to_go`` first; ``least`` always stay."""

    heading: str
    entries: list[tuple[str, str]]
    first_to_go: list[str]
    most: int
    least: int = 0
    left_out: int = field(default=0, init=False)

    def shorten(self) -> bool:
        """Leave out the least important entry; return False when none may go."""
        if len(self.entries) <= self.least:
            return False
        going = self.first_to_go.pop(0)
        self.entries = [entry for entry in self.entries if entry[0] != going]
        self.left_out += 1
        return True

    def text(self) -> str:
        lines = [line for _, line in self.entries]
        if self.left_out:
            lines.append(f"  (and {self.left_out} more)")
        return "\n".join([f"{self.heading}:", *lines]) if lines else ""


def tree_view(tree: Tree, problem: Problem, option: str, level: Level = "full") -> str:
    """Return the tree around ``option`` ("" for the root) as lines of text; hidden workloads are in none of them."""
    if not tree.root:
        return "The tree is empty."
    option = option or tree.root
    bounds = BOUNDS[level]
    show = _Shown(tree, problem, option)
    path = tree.path(option)
    best = tree.best()
    on_path = {node.id for node in path}
    parent = path[-1].parent
    beside = [tree[name] for name in tree[parent].children if name != option] if parent else []
    siblings = sorted(
        (node for node in beside if node.status == PASSED), key=lambda node: (-tree.speedup(node.id), node.added)
    )
    failed = sorted(
        (node for node in tree.options.values() if node.status == FAILED and node.id not in on_path),
        key=lambda node: (node.parent not in on_path, -node.started),
    )
    waiting = sorted(
        (n for n in tree.options.values() if n.status in OPEN and n.id != option and not tree.is_pruned(n.id)),
        key=lambda node: (-node.rating, node.added),
    )
    middle = [node.id for node in path[1:-1]]
    sections = [
        _Section("path, each step built on the one above", _lines(path, show.step), middle, bounds.path, least=2),
        _section("best so far", [best] if best and best.id not in on_path else [], show.step, 1, least=1),
        _section("beside it", siblings, show.step, bounds.siblings),
        _section("failed", failed, show.failed, bounds.failed),
        _section("open options, best rated first", waiting, show.waiting, bounds.waiting),
    ]
    return _fitted(sections, bounds.characters)


def guidance_view(tree: Tree, option: str, more: str = "") -> list[str]:
    """Return what a person asked for on the path to ``option``, oldest first, then ``more`` that they ask now.

    Where they wrote a program themselves, they ask that what they wrote is kept.
    """
    path = tree.path(option or tree.root)
    asked = [
        f"at {node.id} ({plain(node.title)}): {text}"
        for node in path
        for text in [*_but_once(node, more if node is path[-1] else ""), *([EDITED] if node.edited else [])]
    ]
    return [*asked, f"now: {more}"] if more else asked


def _but_once(node: Option, now: str) -> Sequence[str]:
    """Return the guidance of ``node`` without what is said ``now``, which is on record already."""
    if now not in node.guidance:
        return node.guidance
    at = len(node.guidance) - 1 - node.guidance[::-1].index(now)
    return node.guidance[:at] + node.guidance[at + 1 :]


@dataclass(frozen=True)
class _Shown:
    """How an option looks in each of the sections."""

    tree: Tree
    problem: Problem
    option: str

    def step(self, node: Option) -> str:
        """Two lines: what it is and what it gave; its times."""
        here = " <- this option" if node.id == self.option else ""
        best = self.tree.best()
        mark = " (the best so far)" if best and best.id == node.id else ""
        head = f"  {node.id} {_title(node)}: {self._outcome(node)}{mark}{here}"
        evaluation = node.passing
        return f"{head}\n      {times_line(evaluation, self.problem)}" if evaluation else head

    def failed(self, node: Option) -> str:
        """One line: what it is, and why it failed."""
        return f"  {node.id} under {node.parent or 'nothing'}, {_title(node)}: {_why_failed(node)}"

    def waiting(self, node: Option) -> str:
        """One line: what it is, and how it is judged."""
        judged = f"rating {node.rating:.1f}, confidence {node.confidence:.2f}, difficulty {node.difficulty}"
        predicted = f", predicted {node.predicted:.2f}x" if node.predicted > 0 else ""
        approved = ", approved" if node.approved_by else ""
        return f"  {node.id} under {node.parent}, {_title(node)}: {judged}{predicted}{approved}"

    def _outcome(self, node: Option) -> str:
        if node.status == FAILED:
            return f"failed: {_why_failed(node)}"
        if node.status != PASSED:
            tried = len(node.evaluations)
            return f"{node.status}, {tried} tried" if tried else node.status
        if not node.parent:
            return "the start"
        found = self.tree.speedup_over_parent(node.id)
        predicted = f" (predicted {node.predicted:.2f}x)" if node.foretold else ""
        return f"{found:.2f}x its parent{predicted}, {self.tree.speedup(node.id):.2f}x the start"


def _why_failed(node: Option) -> str:
    failure = node.evaluations[-1].failure if node.evaluations else None
    return _cut(failure_line(failure) if failure else plain(node.failed))


def _title(node: Option) -> str:
    edited = ", edited by the person" if node.edited else ""
    return f"{_cut(plain(node.title), TITLE)} [by {_cut(plain(node.by), BY)}{edited}]"


def _cut(text: str, most: int = WHY) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _lines(nodes: Iterable[Option], show: Callable[[Option], str]) -> list[tuple[str, str]]:
    return [(node.id, show(node)) for node in nodes]


def _section(
    heading: str, nodes: Sequence[Option], show: Callable[[Option], str], most: int, least: int = 0
) -> _Section:
    """Return a section whose last entry is the first to go."""
    return _Section(heading, _lines(nodes, show), [node.id for node in reversed(nodes)], most, least)


def _fitted(sections: Sequence[_Section], characters: int) -> str:
    for section in sections:
        while len(section.entries) > section.most and section.shorten():
            pass
    path, _, siblings, failed, waiting = sections
    for section in (waiting, failed, siblings, path):
        while len(_joined(sections)) > characters and section.shorten():
            pass
    return _joined(sections)


def _joined(sections: Iterable[_Section]) -> str:
    return "\n".join(text for section in sections if (text := section.text()))
