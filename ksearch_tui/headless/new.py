"""``ksearch-tui new``: a problem folder from a CUDA file, with the original as its reference."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ksearch_tui.headless.cuda_narration import narrate_reading, say
from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.headless.progress import StatusLine
from ksearch_tui.headless.settings import DEFAULT_PROFILE
from profiles.hardware import load_profile
from search.from_cuda.folder import (
    PROBLEM,
    ROOT,
    CantStart,
    Written,
    read_unfinished,
    require_free,
    write_problem,
    write_unfinished,
)
from search.from_cuda.reading import Reading, read_answers, read_cuda
from search.problems.definition import Problem, load_problem


def new(options: argparse.Namespace) -> int:
    """Write the folder and print its path; exit 1 when something is open, for which a folder of -o then asks."""
    path, kernel, answers = options.kernel_file, options.kernel, read_answers(options.answer)
    folder, force = options.output or Path(path.stem), options.force
    if path.is_dir() or path.name == PROBLEM:
        try:
            unfinished = read_unfinished(path)
        except CantStart as error:
            raise CommandError(str(error), USAGE) from error
        folder, force = path if path.is_dir() else path.parent, True
        path, kernel = unfinished.source, kernel or unfinished.kernel
        answers = {**unfinished.answers, **answers}
    reading = read_cuda(path, kernel, answers)
    try:
        require_free(folder, force=force)
    except CantStart as error:
        raise CommandError(str(error), USAGE) from error
    narrate_reading(reading)
    try:
        if reading.questions:
            return _ask(reading, folder, keep=options.output is not None or force)
        with StatusLine(sys.stderr) as status:
            written = write_problem(reading, folder, load_profile(DEFAULT_PROFILE), status.show)
    except CantStart as error:
        raise CommandError(str(error)) from error
    for find in written.finds:
        say(f"{reading.path}: {find}")
    print(folder)
    if written.asks:
        say(f"fill in the line under '# ASK' in {folder / PROBLEM}")
        return 1
    _tell(written, load_problem(folder))
    return 0


def _ask(reading: Reading, folder: Path, *, keep: bool) -> int:
    """Write a folder that asks what is open, where one was named."""
    if keep:
        write_unfinished(reading, folder)
        say(
            f"wrote {folder / PROBLEM} with a line for each open question; answer there, then: ksearch-tui new {folder}"
        )
    return 1


def _tell(written: Written, problem: Problem) -> None:
    checks = problem.of_role("check")
    say(f"{written.folder}: {len(checks)} check workloads ({sum(w.hidden for w in checks)} hidden), 1 to time")
    if written.has_root:
        say(f"search with: ksearch-tui explore {written.folder}")
    else:
        say(f"write {written.folder / ROOT} by hand, and name it in {written.folder / PROBLEM}")
