"""``ksearch-tui check``: judge one kernel file against a problem."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.headless.progress import StatusLine
from ksearch_tui.headless.settings import device_and_profile
from ksearch_tui.headless.summary import verdict_lines
from search.evaluation.client import EvaluatorProcess
from search.evaluation.record import Evaluation
from search.kernels.program import Program, ProgramError
from search.kernels.text import ParsedProgram, parse_program_text
from search.problems.definition import built_in_names, load_problem


def check(options: argparse.Namespace) -> int:
    """Print the verdict; exit 1 when the kernel fails."""
    problem = load_problem(options.problem)
    device, profile = device_and_profile(options.device, options.profile)
    parsed = _read(options.kernel)
    at = options.problem if options.problem in built_in_names() else str(problem.folder)
    evaluation = asyncio.run(_evaluate(parsed.program, at, device, profile))
    evaluation = in_file_lines(evaluation, parsed)
    if options.json:
        print(json.dumps(evaluation.to_fields(), indent=2))
    else:
        print("\n".join(verdict_lines(evaluation)))
    return 0 if evaluation.passed else 1


def _read(path: Path) -> ParsedProgram:
    try:
        return parse_program_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}", USAGE) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not a text file in UTF-8", USAGE) from None
    except ProgramError as error:
        raise CommandError(f"{path}: {error}", USAGE) from error


async def _evaluate(program: Program, problem: str, device: str, profile: str) -> Evaluation:
    evaluator = EvaluatorProcess(problem, device, profile)
    try:
        with StatusLine(sys.stderr) as status:
            return await evaluator.evaluate(program, status.show)
    finally:
        await evaluator.close()


def in_file_lines(evaluation: Evaluation, parsed: ParsedProgram) -> Evaluation:
    """Return ``evaluation`` with the failure's line counted in the kernel file instead of the pass's source."""
    failure = evaluation.failure
    if failure is None or failure.line is None or failure.pass_name not in parsed.source_offsets:
        return evaluation
    offsets = parsed.header_offsets if failure.in_header else parsed.source_offsets
    return replace(evaluation, failure=replace(failure, line=failure.line + offsets[failure.pass_name]))
