"""The command line: what there is to say, said without importing Textual or MLX."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ksearch_tui import __version__

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
examples:
  ksearch-tui                                 choose a problem and steer its search
  ksearch-tui explore attention_prefill       the same, straight to the explorer
  ksearch-tui run softmax --budget 8          search without a screen
  ksearch-tui new kernel.cu                   make a problem of a CUDA file
  ksearch-tui replay attention                watch a recorded run
  ksearch-tui simulate -m pytest tests        run your own MLX project's kernels without an Apple GPU
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted."""
    options = _parser().parse_args(arguments)
    module, _, function = options.command.partition(":")
    try:
        return int(getattr(import_module(module), function)(options))
    except KeyboardInterrupt:
        print("ksearch-tui: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): that is its choice, not an error.
        sys.stderr.close()
        return DONE
    except Exception as error:
        code, message = import_module("ksearch_tui.headless.errors").explain(error)
        if message is None:
            raise
        print(f"ksearch-tui: {message}", file=sys.stderr)
        return int(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksearch-tui",
        description="A person and a tree search write Metal kernels for MLX together, in the terminal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ksearch-tui {__version__}")
    parser.set_defaults(command="ksearch_tui.headless.screen:start")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    explore = _command(commands, "explore", "steer a search on the screen", "ksearch_tui.headless.screen:explore")
    _run_arguments(explore)
    explore.add_argument("--autopilot", action="store_true", help="let the policy decide until you take over")

    run = _command(commands, "run", "search without a screen, under autopilot", "ksearch_tui.headless.run:run")
    _run_arguments(run)
    _json(run)

    resume = _command(commands, "resume", "go on with a session", "ksearch_tui.headless.run:resume")
    resume.add_argument("file", type=Path, metavar="FILE", help="a *.ksearch.toml session file")
    resume.add_argument("--headless", action="store_true", help="go on without a screen, under autopilot")
    resume.add_argument("--budget", type=_count, metavar="N", help="evaluations in all, instead of the session's own")
    _limit_arguments(resume, "in all, instead of the session's own")
    _json(resume)

    replay = _command(commands, "replay", "play a session again", "ksearch_tui.headless.replay:replay")
    replay.add_argument("session", metavar="FILE|EXAMPLE", help="a session file, or a recorded example by name")
    replay.add_argument("--speed", type=_speed, default=None, metavar="X", help="times real time (default 1 on screen)")
    replay.add_argument("--headless", action="store_true", help="print the events instead (at once, unless --speed)")
    replay.add_argument(
        "--step", action="store_true", help="wait for a key before each event (on screen: start paused)"
    )
    _json(replay)

    check = _command(commands, "check", "judge one kernel against a problem", "ksearch_tui.headless.check:check")
    check.formatter_class = argparse.RawDescriptionHelpFormatter
    check.epilog = _CHECK_EPILOG
    check.add_argument("kernel", type=Path, metavar="KERNEL", help="a Metal file with //@ lines, see below")
    check.add_argument("--problem", required=True, metavar="PROBLEM", help="what it must compute")
    _device_arguments(check)
    _json(check)

    export = _command(
        commands, "export", "write a session's best kernel as a module", "ksearch_tui.headless.export:export"
    )
    export.add_argument("file", type=Path, metavar="FILE", help="a session file, or a recorded example by name")
    export.add_argument("-o", "--output", type=Path, metavar="OUT", help="the module to write (default: stdout)")
    export.add_argument("--option", default="", metavar="ID", help="another option than the best")

    report = _command(commands, "report", "write a session as one HTML page", "ksearch_tui.headless.report:report")
    report.add_argument("file", type=Path, metavar="FILE", help="a session file, or a recorded example by name")
    report.add_argument("-o", "--output", type=Path, metavar="OUT", help="the page to write (default: stdout)")

    compare = _command(
        commands, "compare", "set sessions side by side", "ksearch_tui.headless.compare:compare_sessions"
    )
    compare.add_argument("files", type=Path, nargs="+", metavar="FILE", help="session files of one problem")
    _json(compare)

    briefing = _command(
        commands,
        "briefing",
        "print what a writer of kernels is told of a problem",
        "ksearch_tui.headless.briefing:briefing",
    )
    briefing.add_argument("problem", metavar="PROBLEM", help="a problem's name (see `problems`) or its folder")
    briefing.add_argument("--profile", default="", help="hardware profile that the kernel is for (see `profiles`)")
    briefing.add_argument(
        "--context",
        choices=("mapping", "full"),
        default="full",
        help="mapping: only what becomes of CUDA's primitives; full (default): hardware, mathematics, patterns too",
    )

    translate = _command(
        commands, "translate", "write a CUDA file's kernels in Metal", "ksearch_tui.headless.translate:translate"
    )
    _cuda_arguments(translate, "KERNEL.cu", "a CUDA source")
    translate.add_argument(
        "--verify", action="store_true", help="run original and translation on the simulator and compare"
    )
    translate.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="AXIS=N,...",
        help="verify at this size (repeat for several; the program chooses axes that aren't named)",
    )
    translate.add_argument("--format", choices=("text", "json"), default="text", help="what to print (default text)")
    translate.add_argument("-o", "--output", type=Path, metavar="OUT", help="write here instead of to stdout")

    new = _command(commands, "new", "make a problem of a CUDA file", "ksearch_tui.headless.new:new")
    _cuda_arguments(new, "KERNEL.cu", "a CUDA source, or a folder whose problem.toml asked for answers")
    new.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="the folder to write (default: KERNEL)")
    new.add_argument("--force", action="store_true", help="overwrite a problem that is there")

    simulate = _command(
        commands,
        "simulate",
        "run a Python program with its Metal kernels on the simulator",
        "ksearch_tui.headless.simulate:simulate",
    )
    simulate.add_argument("--checked", action="store_true", help="look for races, bad indices and barriers (slower)")
    simulate.add_argument("--profile", default="", help="model each kernel's time on this hardware (see `profiles`)")
    simulate.add_argument("--seconds", type=_amount, default=60.0, metavar="S", help="for one launch (default 60)")
    simulate.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, such as pytest")
    simulate.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help="a file, and its arguments")

    _json(_command(commands, "problems", "list the problems", "ksearch_tui.headless.listings:problems"))
    _json(_command(commands, "profiles", "list the hardware profiles", "ksearch_tui.headless.listings:profiles"))
    doctor = _command(commands, "doctor", "say what works on this machine", "ksearch_tui.headless.doctor:doctor")
    doctor.add_argument(
        "--selftest", action="store_true", help="judge kernels with known faults, and right ones, on the simulator"
    )
    _json(doctor)
    return parser


_CHECK_EPILOG = """\
the kernel file is Metal with launch facts in //@ lines (grid in threads):

  //@ pass double
  //@ inputs x
  //@ outputs y
  //@ grid rows * n
  //@ threadgroup 256
  //@ template T = T, N = n
  //@ source
  uint i = thread_position_in_grid.x;
  if (i < x_shape[0] * N) { y[i] = x[i]; }

before '//@ source' there may also be '//@ init 0' (what every output begins with), '//@ atomic_outputs' and
'//@ header' with helper functions
"""


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, target: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.set_defaults(command=target)
    return parser


def _cuda_arguments(parser: argparse.ArgumentParser, metavar: str, what: str) -> None:
    parser.add_argument("kernel_file", type=Path, metavar=metavar, help=what)
    parser.add_argument("--kernel", metavar="NAME", help="what the launch of this kernel needs, not the first one")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="what the source doesn't say, such as 'grid=ceildiv(n,256) block=256' or extent.x=n*d",
    )


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's name (see `problems`) or its folder")
    parser.add_argument("--budget", type=_count, default=40, metavar="N", help="evaluations to spend (default 40)")
    _limit_arguments(parser, "to spend (default: no limit)")
    parser.add_argument("--proposer", default="", help="catalogue, or llm (default: llm where there is an --endpoint)")
    _model_arguments(parser)
    parser.add_argument("--session", type=Path, metavar="FILE", help="where to keep the session")
    _device_arguments(parser)


def _limit_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--minutes", type=_amount, default=0.0, metavar="M", help=f"minutes {what}")
    parser.add_argument("--tokens", type=_count, default=0, metavar="N", help=f"tokens of models {what}")
    parser.add_argument("--usd", type=_amount, default=0.0, metavar="X", help=f"US dollars for models {what}")


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--endpoint", default="", help="where models are asked: a name, or your own profile (.toml)")
    parser.add_argument("--model", default="", metavar="NAME", help="the model that chooses and that writes")
    parser.add_argument("--selector", default="", metavar="NAME", help="the model that chooses what to try")
    parser.add_argument("--generator", default="", metavar="NAME", help="the model that writes kernels")
    parser.add_argument(
        "--context",
        choices=("none", "mapping", "full"),
        default="full",
        help="what models are told besides the problem: nothing, what becomes of CUDA's primitives, or all (default)",
    )


def _device_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="metal, simulator, or auto (metal where there is one)")
    parser.add_argument("--profile", default="", help="hardware profile that the kernel is for (see `profiles`)")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _amount(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1e9:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def _speed(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
