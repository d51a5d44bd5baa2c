"""``ksearch-tui translate``: a CUDA file as a Metal program for MLX, and the proof that both compute the same."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ksearch_tui.headless.cuda_narration import narrate_reading, say
from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.headless.progress import StatusLine
from ksearch_tui.headless.settings import DEFAULT_PROFILE
from ksearch_tui.inert import inert
from profiles.hardware import load_profile
from search.devices.base import KernelFault
from search.evaluation.proof import Both, Trial, prove
from search.evaluation.trial_sizes import NoSizes, trial_sizes
from search.from_cuda.reading import Reading, read_answers, read_cuda
from search.kernels.text import program_to_text
from search.kernels.translated import program_of
from translator.device_text import device_text
from translator.launch_plan import LaunchPlan

TRIALS = 4
"""Launch sizes at which an original and its translation are compared, unless a person names some."""


def translate(options: argparse.Namespace) -> int:
    """Print the Metal program; exit 1 when something can't be translated, is open, or differs from the original."""
    done = read_cuda(options.kernel_file, options.kernel, read_answers(options.answer))
    narrate_reading(done)
    trials: list[Trial] = []
    if options.verify and done.complete:
        sizes = _sizes(done.plan, options.size)
        trials = _verify(done, sizes)
    if options.format == "json":
        text = json.dumps(_fields(done, trials), indent=2) + "\n"
    else:
        text = program_to_text(program_of(done.translation)) if done.translation and done.complete else ""
    if options.output and text:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    if not done.complete:
        return 1
    return 0 if not options.verify or _proven(trials) else 1


def _sizes(plan: LaunchPlan, wanted: Sequence[str]) -> list[dict[str, int]]:
    try:
        if wanted:
            return [trial_sizes(plan, 1, fixed=_size(plan, text))[0] for text in wanted]
        return trial_sizes(plan, TRIALS)
    except NoSizes as error:
        advice = "; name one with --size" if plan.axes else ""
        raise CommandError(f"{error}{advice}", USAGE) from error


def _size(plan: LaunchPlan, text: str) -> dict[str, int]:
    """Read ``n=1000,d=64``."""
    size = {}
    for part in text.split(","):
        axis, _, value = (piece.strip() for piece in part.partition("="))
        if axis not in plan.axes or not value.isdigit():
            known = ", ".join(plan.axes) or "none"
            raise CommandError(f"--size '{part}': write AXIS=NUMBER; the axes are {known}", USAGE)
        size[axis] = int(value)
    return size


def _verify(done: Reading, sizes: Sequence[Mapping[str, int]]) -> list[Trial]:
    assert done.translation is not None
    both = Both(done.plan, device_text(done.source), done.translation)
    trials = []
    with StatusLine(sys.stderr) as status:
        status.show(f"running both at {len(sizes)} sizes")
        try:
            for trial in prove(both, load_profile(DEFAULT_PROFILE), sizes):
                trials.append(trial)
                status.show(f"{len(trials)} of {len(sizes)} sizes done")
        except KernelFault as fault:
            where = f":{fault.line}" if fault.line else ""
            raise CommandError(
                f"{done.source.path}{where}: {fault.pass_name or 'a kernel'} can't be run: {fault}"
            ) from fault
    for trial in trials:
        for line in trial_lines(done.source.path, trial):
            say(line)
    for name, value in flat_everywhere(trials):
        say(f"– every element of '{name}' came out as {value:g} at every size: that says little of how it is computed")
    return trials


def flat_everywhere(trials: Sequence[Trial]) -> list[tuple[str, float]]:
    """Return the results that were one and the same number in all that was compared, with that number."""
    found = [trial for trial in trials if trial.proves]
    return [each for each in found[0].flat if all(each in trial.flat for trial in found)] if found else []


def _proven(trials: Sequence[Trial]) -> bool:
    return all(trial.proves or trial.skipped for trial in trials) and any(trial.proves for trial in trials)


def trial_lines(path: str, trial: Trial) -> list[str]:
    """Return what one size showed, in lines for a person."""
    at = ", ".join(f"{axis}={value}" for axis, value in trial.axes.items()) or "the launch as it stands"
    if trial.skipped:
        return [f"– {at}: not run: {trial.skipped}"]
    lines = []
    for report in trial.original:
        doubt = "" if report.certain else "perhaps "
        lines.append(f"! {at}: {path}:{report.line or '?'}: {doubt}in the original: {report.message}")
    for report in trial.translated:
        if report.certain:
            lines.append(f"✗ {at}: in the translation, line {report.line or '?'}: {report.message}")
    if trial.difference:
        lines.append(f"✗ {at}: the results differ: {trial.difference}")
    elif trial.proves:
        lines.append(f"✓ {at}: the same, {trial.compared:,} elements compared")
    return lines


def _fields(done: Reading, trials: Sequence[Trial]) -> dict[str, Any]:
    """Return everything, as JSON has it."""
    translation = done.translation
    return {
        "file": done.source.path,
        "coverage": done.inventory.coverage,
        "primitives": [
            {
                "line": occurrence.line,
                "column": occurrence.column,
                "start": occurrence.start,
                "end": occurrence.end,
                "id": occurrence.primitive.id,
                "kind": occurrence.primitive.kind,
                "metal": occurrence.primitive.metal,
                "trap": occurrence.primitive.trap,
            }
            for occurrence in done.inventory.occurrences
        ],
        "diagnostics": [asdict(entry) for entry in done.source.diagnostics],
        "launches": asdict(done.plan),
        "translation": asdict(translation) if translation else None,
        "program": inert(program_to_text(program_of(translation))) if translation and done.complete else "",
        "verified": [
            {
                "axes": dict(trial.axes),
                "proves": trial.proves,
                "skipped": trial.skipped,
                "difference": trial.difference,
                "compared": trial.compared,
                "original": [asdict(report) for report in trial.original],
                "translated": [asdict(report) for report in trial.translated],
            }
            for trial in trials
        ],
    }
