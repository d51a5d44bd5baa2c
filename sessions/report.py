"""What a report of a session says, as facts: gathered from its events, in the order to read them. Pure.

How they are worded and drawn is the page's to say (`ksearch_tui.report`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from search.calibration import Calibration, Comparison
from search.calls import MALFORMED, USED
from search.config import RunConfig
from search.evaluation.record import Evaluation, WorkloadTime
from search.events import Event
from search.kernels.program import Program
from search.option import Option
from search.problems.definition import Problem
from search.spending import Account, Budget
from search.track_record import TrackRecord, track_records
from search.tree import Tree, TreeError
from sessions.blocks import SessionError
from sessions.report_nodes import Node, Remark, nodes_of, run_remarks, title_of
from sessions.store import Session

__all__ = ["Attempt", "ModelUse", "Node", "Remark", "Report", "Timing", "UnusedReply", "gather"]


@dataclass(frozen=True)
class Timing:
    """One workload of the best program; a speedup is 0 where there is nothing to compare with.

    ``sizes`` are the workload's axes and element types in words, empty where the problem is not at hand.
    """

    time: WorkloadTime
    over_naive: float
    over_baseline: float
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class Attempt:
    """One evaluation: ``number`` counts those of the run from 1, ``attempt`` those at its option.

    ``over_naive`` is 0 for one that failed, or whose time can't be compared with the first program's.
    """

    number: int
    attempt: int
    option: str
    title: str
    writer: str
    at: str
    evaluation: Evaluation
    over_naive: float


@dataclass(frozen=True)
class ModelUse:
    """What one model was asked in one role. ``usd`` is None where a reply had no known price.

    ``counted`` says that the endpoint counted all tokens; else some are estimated. ``seconds`` are of waiting.
    """

    role: str
    model: str
    endpoint: str
    questions: int
    malformed: int
    other_faults: int
    prompt_tokens: int
    completion_tokens: int
    counted: bool
    usd: float | None
    seconds: float


@dataclass(frozen=True)
class UnusedReply:
    """A question to a model that came to nothing: ``outcome`` and ``note`` as in the ``replied`` event."""

    at: str
    role: str
    model: str
    call: str
    title: str
    outcome: str
    note: str


@dataclass(frozen=True)
class Report:
    """All that a page about a session says.

    ``name`` is the session's file, ``program`` what wrote it. ``seconds`` leave out pauses. ``torn`` says that the
    file's last event was cut short and is left out. ``nodes`` are all options, parents before children; ``path`` those
    from the root to the best. ``kernel`` is the best program; where it can't be read, ``damage`` says why.
    """

    name: str
    program: str
    config: RunConfig
    title: str
    description: str
    begun: str
    ended: str
    seconds: float
    torn: bool
    stopped: str
    paused: bool
    budget: Budget
    evaluations: int
    account: Account
    nodes: tuple[Node, ...]
    path: tuple[Node, ...]
    timings: tuple[Timing, ...]
    kernel: Program | None
    damage: str
    attempts: tuple[Attempt, ...]
    models: tuple[ModelUse, ...]
    unused: tuple[UnusedReply, ...]
    comparisons: tuple[Comparison, ...]
    records: tuple[TrackRecord, ...]
    remarks: tuple[Remark, ...]

    @property
    def best(self) -> Node | None:
        """The fastest option."""
        return self.path[-1] if self.path else None

    @property
    def root(self) -> Node | None:
        """The option that all speedups are over."""
        return self.nodes[0] if self.nodes else None

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """The attempts that failed, in order."""
        return tuple(attempt for attempt in self.attempts if not attempt.evaluation.passed)

    @property
    def given_up(self) -> tuple[Option, ...]:
        """The options that failed for good, in the order of the tree."""
        return tuple(node.option for node in self.nodes if node.option.failed)


def gather(name: str, session: Session, problem: Problem | None = None) -> Report:
    """Return the facts of the session kept in the file ``name``; ``problem`` is its problem where that is at hand.

    Raises `SessionError` when the events don't fit together.
    """
    try:
        tree = Tree.fold(session.events)
    except TreeError as error:
        raise SessionError(f"'{name}' can't be reported: {error}") from error
    best = tree.best()
    found = best.passing if best else None
    kernel, damage = _kernel(tree, found)
    calibration = Calibration.of(tree)
    nodes = nodes_of(tree)
    path = {option.id for option in tree.path(best.id)} if best else set()
    naive = tree[tree.root].passing if tree.root else None
    created = str(session.created.get("at", ""))
    ended = tree.events[-1].at if tree.events else created
    return Report(
        name=name,
        program=str(session.created.get("program", "")),
        config=session.config,
        title=problem.title if problem else "",
        description=problem.description if problem else "",
        begun=tree.events[0].at if tree.events else created,
        ended=ended,
        seconds=tree.seconds(datetime.fromisoformat(ended)) if tree.events else 0.0,
        torn=bool(session.repair),
        stopped=tree.stopped,
        paused=tree.paused,
        budget=Budget.of(session.config),
        evaluations=tree.evaluations,
        account=tree.account,
        nodes=nodes,
        path=tuple(node for node in nodes if node.option.id in path),
        timings=tuple(_timings(found, naive, problem)) if found else (),
        kernel=kernel,
        damage=damage,
        attempts=tuple(_attempts(tree, naive)),
        models=_models(tree.events),
        unused=tuple(_unused(tree)),
        comparisons=calibration.comparisons,
        records=tuple(track_records(calibration)),
        remarks=run_remarks(tree),
    )


def _kernel(tree: Tree, found: Evaluation | None) -> tuple[Program | None, str]:
    try:
        return (tree.program(found.program) if found else None), ""
    except TreeError as error:
        return None, str(error)


def _timings(found: Evaluation, naive: Evaluation | None, problem: Problem | None) -> Iterator[Timing]:
    comparable = naive is not None and (naive.kind, naive.on) == (found.kind, found.on)
    before = {time.workload: time.seconds for time in naive.times} if naive and comparable else {}
    for time in found.times:
        yield Timing(
            time,
            before.get(time.workload, 0.0) / time.seconds,
            time.baseline_seconds / time.seconds,
            _sizes(time.workload, problem),
        )


def _sizes(workload: str, problem: Problem | None) -> tuple[str, ...]:
    known = next((one for one in problem.workloads if one.name == workload), None) if problem else None
    if known is None or problem is None:
        return ()
    axes: Mapping[str, int | None] = {**problem.axes, **known.axes}
    return (*(f"{axis} {value}" for axis, value in axes.items()), *dict.fromkeys(known.dtypes.values()))


def _attempts(tree: Tree, naive: Evaluation | None) -> Iterator[Attempt]:
    writers: dict[str, str] = {}
    number = 0
    for event in tree.events:
        if event.kind in ("wrote", "edited"):
            writers[event["option"]] = event["by"]
        elif event.kind == "evaluated":
            number += 1
            evaluation, option = Evaluation.from_fields(event.data), event["option"]
            over_naive = evaluation.speedup_over(naive) if naive and evaluation.passed else 0.0
            writer = writers.get(option, "")
            title = title_of(tree, option)
            yield Attempt(number, event["attempt"], option, title, writer, event.at, evaluation, over_naive)


def _models(events: Sequence[Event]) -> tuple[ModelUse, ...]:
    """Return one entry for each role, model and endpoint, in the order in which they were first asked."""
    asked: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event.kind == "replied":
            asked[event["role"], event["model"], event["endpoint"]].append(event)
    return tuple(
        ModelUse(
            role,
            model,
            endpoint,
            len(replies),
            sum(reply["outcome"] == MALFORMED for reply in replies),
            sum(reply["outcome"] not in (USED, MALFORMED) for reply in replies),
            sum(reply["prompt_tokens"] for reply in replies),
            sum(reply["completion_tokens"] for reply in replies),
            all(reply["counted"] for reply in replies),
            sum(reply["cost_usd"] for reply in replies) if all(reply["priced"] for reply in replies) else None,
            sum(reply["seconds"] for reply in replies),
        )
        for (role, model, endpoint), replies in asked.items()
    )


def _unused(tree: Tree) -> Iterator[UnusedReply]:
    for event in tree.events:
        if event.kind == "replied" and event["outcome"] != USED:
            title = title_of(tree, event["option"]) if event["option"] else ""
            yield UnusedReply(
                event.at, event["role"], event["model"], event["call"], title, event["outcome"], event["note"]
            )
