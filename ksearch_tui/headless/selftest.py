"""``ksearch-tui doctor --selftest``: kernels with known faults and known right ones, judged on this machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from ksearch_tui.headless.progress import StatusLine
from profiles.hardware import load_profile
from search.devices.registry import SIMULATOR, open_device
from search.evaluation.selftest.planted import CATEGORIES, load_kernels
from search.evaluation.selftest.trials import Verdict, judge_all, trials_of

_PROFILE = "apple-m3-max"  # the judge's verdict does not depend on it: nothing is timed


def selftest(options: argparse.Namespace) -> int:
    """Print how many faults were caught and how many right kernels refused; exit 1 when a verdict is wrong."""
    trials = trials_of(load_kernels())
    profile = load_profile(_PROFILE)
    device = open_device(SIMULATOR, profile)
    verdicts: list[Verdict] = []
    try:
        with StatusLine(sys.stderr) as status:
            status.show(f"judging {len(trials)} kernels")
            for verdict in judge_all(trials, device, profile, workers=os.cpu_count() or 1):
                verdicts.append(verdict)
                status.show(f"{len(verdicts)}/{len(trials)} {verdict.trial.name}")
    finally:
        device.close()
    place = {trial.name: number for number, trial in enumerate(trials)}
    verdicts.sort(key=lambda verdict: place[verdict.trial.name])
    print(json.dumps(_as_json(verdicts), indent=2) if options.json else "\n".join(_lines(verdicts)))
    return 1 if any(verdict.complaint for verdict in verdicts) else 0


def _lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    planted, right = _split(verdicts)
    refused = [verdict for verdict in right if verdict.failure]
    kernels = len({verdict.trial.kernel.name for verdict in planted})
    yield f"planted faults   {_caught(planted)} caught, in {kernels} kernels"
    for category in CATEGORIES:
        of_category = [v for v in planted if v.trial.fault and v.trial.fault.category == category]
        yield f"  {category:<17}{_caught(of_category)}"
    stages = Counter(verdict.failure.stage for verdict in planted if verdict.failure)
    yield f"  caught by        {', '.join(f'{stage} {count}' for stage, count in stages.most_common())}"
    yield f"right kernels    {len(refused)} of {len(right)} falsely refused"
    for verdict in verdicts:
        if verdict.complaint:
            yield f"✗ {verdict.trial.name}: {verdict.complaint}"


def _as_json(verdicts: Sequence[Verdict]) -> dict[str, object]:
    planted, right = _split(verdicts)
    return {
        "planted": len(planted),
        "caught": sum(verdict.caught for verdict in planted),
        "right": len(right),
        "falsely_refused": sum(verdict.failure is not None for verdict in right),
        "verdicts": [
            {
                "name": verdict.trial.name,
                "category": verdict.trial.fault.category if verdict.trial.fault else "",
                "stage": verdict.failure.stage if verdict.failure else "",
                "message": verdict.failure.message if verdict.failure else "",
                "complaint": verdict.complaint,
            }
            for verdict in verdicts
        ],
    }


def _split(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    return [v for v in verdicts if v.trial.fault], [v for v in verdicts if not v.trial.fault]


def _caught(planted: Sequence[Verdict]) -> str:
    return f"{sum(verdict.caught for verdict in planted)} of {len(planted)}"
