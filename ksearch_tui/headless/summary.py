"""What a run found, as data for ``--json`` and as lines for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ksearch_tui.inert import one_line
from ksearch_tui.wording import plural
from search.calibration import Calibration
from search.config import RunConfig
from search.evaluation.record import Evaluation
from search.track_record import track_records
from search.tree import Tree


def run_summary(config: RunConfig, tree: Tree, session: Path | None) -> dict[str, Any]:
    """Return the outcome of a run: counts, the best option with its path and times, and where the session is."""
    best = tree.best()
    statuses = [option.status for option in tree.options.values()]
    return {
        "problem": config.problem,
        "device": config.device,
        "profile": config.profile,
        "proposer": config.proposer,
        "evaluations": tree.evaluations,
        "budget": config.budget,
        "models": _models(config, tree) if tree.account.replies else None,
        "calibration": [
            {
                "who": record.who,
                "does": record.does,
                "results": len(record.ratios),
                "bias": round(record.bias, 4),
                "typical_error": round(record.typical_error, 4),
            }
            for record in track_records(Calibration.of(tree))
        ],
        "options": {status: statuses.count(status) for status in sorted(set(statuses))},
        "stopped": tree.stopped,
        "best": best_option(tree, best.id) if best else None,
        "session": str(session) if session else "",
    }


def best_option(tree: Tree, option: str) -> dict[str, Any]:
    """Return one passed option: its path, speedups, and time per workload with what the time is."""
    node = tree[option]
    evaluation = node.passing
    if evaluation is None:
        return {"option": option, "title": node.title, "status": node.status}
    return {
        "option": option,
        "title": node.title,
        "path": [step.title for step in tree.path(option)],
        "program": node.program,
        "time_kind": evaluation.kind,
        "time_on": evaluation.on,
        "speedup_over_root": round(tree.speedup(option), 4),
        "roofline_fraction": round(evaluation.roofline_fraction, 4),
        "speedup_over_mlx": round(evaluation.speedup_over_baseline(), 4) or None,
        "workloads": [
            {
                "name": time.workload,
                "seconds": time.seconds,
                "low": time.low,
                "high": time.high,
                "roofline_seconds": time.roofline_seconds,
                "bound_by": time.bound_by,
            }
            for time in evaluation.times
        ],
    }


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """Return the summary for a person, one line each."""
    best = summary["best"]
    spent = f"{summary['evaluations']} of {summary['budget']} evaluations"
    models = _models_lines(summary["models"])
    if best is None:
        return [f"{summary['problem']}: no kernel passed in {spent}", *models]
    label = f"{best['time_kind']}, {best['time_on']}"
    lines = [
        f"{summary['problem']}: best kernel {best['speedup_over_root']:.2f}× the naive one, "
        f"{best['roofline_fraction']:.0%} of roofline ({label})",
        f"  by      {' → '.join(best['path'])}",
    ]
    if best["speedup_over_mlx"]:
        lines.append(f"  MLX     {best['speedup_over_mlx']:.2f}× MLX's own call")
    lines += [
        f"  {w['name']:<28}{format_seconds(w['seconds']):>10}  bound by {w['bound_by']}" for w in best["workloads"]
    ]
    lines += [f"  spent   {spent}; {_counts(summary['options'])}", *models]
    lines += [_record_line(record) for record in summary["calibration"]]
    if summary["session"]:
        lines.append(f"  session {summary['session']}")
    return lines


def _models(config: RunConfig, tree: Tree) -> dict[str, Any]:
    """Return what models were asked and what that used; ``usd`` is None where a reply had no price.

    ``estimated`` counts the questions whose tokens nobody counted.
    """
    used = tree.account
    return {
        "endpoint": config.endpoint_name,
        "asked": sorted({event["model"] for event in tree.events if event.kind == "replied"}),
        "context": config.context,
        "questions": used.replies,
        "malformed": used.malformed,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "estimated": used.estimated,
        "usd": None if used.unpriced else round(used.usd, 6),
    }


def _models_lines(models: dict[str, Any] | None) -> list[str]:
    if models is None:
        return []
    about = "about " if models["estimated"] else ""
    usd = "price not known" if models["usd"] is None else f"{about}${models['usd']:.4f}"
    return [
        f"  models  {' and '.join(models['asked'])} at {models['endpoint']}, context {models['context']}: "
        f"{plural(models['questions'], 'question')} ({models['malformed']} replies malformed), "
        f"{about}{models['prompt_tokens']} + {models['completion_tokens']} tokens, {usd}"
    ]


def _record_line(record: dict[str, Any]) -> str:
    return (
        f"  trust   {one_line(record['who'])} {record['does']}: found {record['bias']:.2f}× of what was predicted, "
        f"off by {record['typical_error']:.2f}× ({plural(record['results'], 'result')})"
    )


def verdict_lines(evaluation: Evaluation) -> list[str]:
    """Return one evaluation for a person, one line each."""
    if evaluation.failure:
        failure = evaluation.failure
        where = ", ".join(
            part
            for part in (
                f"pass '{failure.pass_name}'" if failure.pass_name else "",
                f"line {failure.line}" if failure.line else "",
                f"workload '{failure.workload}'" if failure.workload else "",
            )
            if part
        )
        return [f"failed at {failure.stage}{f' ({where})' if where else ''}: {failure.message}"]
    lines = [f"passed {evaluation.cases} cases; worst error {evaluation.worst_error:.2f} of the tolerance"]
    lines += [
        f"  {time.workload:<28}{format_seconds(time.seconds):>10}  "
        f"{time.roofline_seconds / time.seconds:.0%} of roofline"
        f"{f', bound by {time.bound_by}' if time.bound_by else ''} ({evaluation.kind}, {evaluation.on})"
        for time in evaluation.times
    ]
    return lines


def format_seconds(seconds: float) -> str:
    """Return seconds in the unit that reads best, three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _counts(options: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in options.items())
