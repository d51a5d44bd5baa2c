"""Sessions of one problem side by side: how fast the best kernel was within so many evaluations, tokens, dollars.

Speedups of all sessions are over the same program, the root of the first one, so that sessions whose models wrote
different first programs can be compared. Several sessions of the same setting are told by their medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from search.config import RunConfig
from search.evaluation.record import Evaluation
from search.tree import Tree
from sessions.blocks import SessionError

SPENT = ("evaluations", "tokens", "usd")
MOST_STEPS = 5

_CONTEXT_ORDER = {"none": 0, "mapping": 1, "full": 2}


@dataclass(frozen=True)
class Setting:
    """What sessions have in common: who proposed, and what was told to the models."""

    proposer: str
    endpoint: str = ""
    selector: str = ""
    generator: str = ""
    context: str = ""

    @property
    def label(self) -> str:
        """The setting in one line."""
        if not self.endpoint:
            return self.proposer
        models = self.selector if self.selector == self.generator else f"{self.selector} + {self.generator}"
        return f"{models} at {self.endpoint}, context {self.context}"


@dataclass(frozen=True)
class Point:
    """What a run had used when one evaluation was over, and the evaluation of its best program then, if any."""

    evaluations: int
    tokens: int
    usd: float
    best: Evaluation | None


@dataclass(frozen=True)
class Course:
    """One session as it went on. ``usd`` is None where a reply had no known price.

    ``estimated``: whether some of the tokens were counted by nobody.
    """

    name: str
    problem: str
    setting: Setting
    root: Evaluation | None
    points: tuple[Point, ...]
    tokens: int
    usd: float | None
    malformed: int
    seconds: float
    estimated: bool

    def best_within(self, spent: str, limit: float) -> Evaluation | None:
        """Return the evaluation of the best program when at most ``limit`` of ``spent`` was used."""
        found = None
        for point in self.points:
            if getattr(point, spent) <= limit:
                found = point.best
        return found


def course(name: str, config: RunConfig, tree: Tree) -> Course:
    """Return how the run of ``tree``, kept in the session ``name``, went on."""
    asked = {event["role"]: event["model"] for event in tree.events if event.kind == "replied"}
    setting = Setting(config.proposer)
    if config.endpoint:
        selector, generator = asked.get("selector", config.selector), asked.get("generator", config.generator)
        setting = Setting(config.proposer, config.endpoint_name, selector, generator, config.context)
    points, growing = [], Tree()
    for event in tree.events:
        growing.apply(event)
        if event.kind == "evaluated":
            best, used = growing.best(), growing.account
            points.append(Point(growing.evaluations, used.tokens, used.usd, best.passing if best else None))
    used = tree.account
    last = datetime.fromisoformat(tree.events[-1].at) if tree.events else datetime.min
    return Course(
        name,
        config.problem,
        setting,
        tree[tree.root].passing if tree.root else None,
        tuple(points),
        used.tokens,
        None if used.unpriced else used.usd,
        used.malformed,
        tree.seconds(last),
        used.estimated > 0,
    )


@dataclass(frozen=True)
class Row:
    """The medians of all sessions of one setting; ``after`` has the best speedup by what was used and by how much."""

    setting: Setting
    sessions: tuple[str, ...]
    after: Mapping[str, Mapping[float, float]]
    best: float
    evaluations: float
    tokens: float
    usd: float | None
    malformed: float
    minutes: float
    estimated: bool


@dataclass(frozen=True)
class Comparison:
    """Settings side by side; ``base`` names the session whose root all speedups are over, ``times`` what times are."""

    problem: str
    base: str
    times: str
    steps: Mapping[str, tuple[float, ...]]
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "problem": self.problem,
            "base": self.base,
            "times": self.times,
            "settings": [
                {
                    **vars(row.setting),
                    "sessions": list(row.sessions),
                    "best_speedup": round(row.best, 4),
                    "best_speedup_after": {
                        spent: {f"{step:g}": round(speedup, 4) for step, speedup in found.items()}
                        for spent, found in row.after.items()
                    },
                    "evaluations": row.evaluations,
                    "tokens": row.tokens,
                    "estimated": row.estimated,
                    "usd": row.usd,
                    "malformed": row.malformed,
                    "minutes": round(row.minutes, 2),
                }
                for row in self.rows
            ],
        }


def compare(courses: Sequence[Course]) -> Comparison:
    """Return the comparison of ``courses``; raise `SessionError` when they can't be compared."""
    first = next((each for each in courses if each.root is not None), None)
    if first is None or first.root is None:
        raise SessionError("no session has a program that passed, so there is nothing to compare")
    for each in courses:
        if each.problem != first.problem:
            raise SessionError(f"'{each.name}' is of the problem {each.problem}, '{first.name}' of {first.problem}")
        if each.root is not None and not each.root.speedup_over(first.root):
            raise SessionError(
                f"the times of '{each.name}' ({each.root.kind}, {each.root.on}) and of '{first.name}' "
                f"({first.root.kind}, {first.root.on}) can't be compared"
            )
    ends = [each.points[-1] for each in courses if each.points]
    steps = {spent: _steps(max(getattr(end, spent) for end in ends)) for spent in SPENT}
    settings = sorted({each.setting for each in courses}, key=_order)
    rows = tuple(_row([each for each in courses if each.setting == one], first.root, steps) for one in settings)
    return Comparison(first.problem, first.name, f"{first.root.kind}, {first.root.on}", steps, rows)


def _row(courses: Sequence[Course], base: Evaluation, steps: Mapping[str, tuple[float, ...]]) -> Row:
    def middle(spent: str, limit: float) -> float:
        return median(_speedup(each.best_within(spent, limit), base) for each in courses)

    known = [each.usd for each in courses if each.usd is not None]
    return Row(
        courses[0].setting,
        tuple(each.name for each in courses),
        {spent: {step: middle(spent, step) for step in limits} for spent, limits in steps.items()},
        middle("evaluations", float("inf")),
        median(each.points[-1].evaluations if each.points else 0 for each in courses),
        median(each.tokens for each in courses),
        median(known) if len(known) == len(courses) else None,
        median(each.malformed for each in courses),
        median(each.seconds for each in courses) / 60,
        any(each.estimated for each in courses),
    )


def _speedup(evaluation: Evaluation | None, base: Evaluation) -> float:
    return evaluation.speedup_over(base) if evaluation is not None else 0.0


def _steps(most: float) -> tuple[float, ...]:
    """Return the last numbers of the series 1, 2, 5, 10 ... up to the first that is ``most`` or more.

    The series begins at 1, for less than that (dollars) at 0.0001; it is empty where nothing was used.
    """
    if most <= 0:
        return ()
    steps: list[float] = []
    decade = 1.0 if most >= 1 else 1e-4
    while not steps or steps[-1] < most:
        steps += [float(f"{factor * decade:.1g}") for factor in (1, 2, 5)]
        decade *= 10
    enough = next(place for place, step in enumerate(steps) if step >= most)
    return tuple(steps[max(0, enough + 1 - MOST_STEPS) : enough + 1])


def _order(setting: Setting) -> tuple[str, str, str, str, int]:
    context = _CONTEXT_ORDER.get(setting.context, -1)
    return setting.proposer, setting.endpoint, setting.selector, setting.generator, context
