"""``ksearch-tui doctor``: what works on this machine, and what to do about what doesn't."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ksearch_tui import __version__
from ksearch_tui.paths import sessions_folder
from search.devices.base import DeviceUnavailable, KernelFault

GOOD, MISSING, BROKEN = "good", "missing", "broken"
_SIGNS = {GOOD: "✓", MISSING: "–", BROKEN: "✗"}

_DOUBLE = """\
//@ pass double
//@ inputs x
//@ outputs y
//@ grid 64
//@ threadgroup 32
//@ source
uint i = thread_position_in_grid.x;
y[i] = simd_shuffle_xor(x[i], 1) * 2.0f;
"""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``state`` is good, missing (the program works without it) or broken."""

    what: str
    state: str
    detail: str


def doctor(options: argparse.Namespace) -> int:
    """Print the findings; exit 1 when something that the program needs is broken."""
    if options.selftest:
        from ksearch_tui.headless.selftest import selftest

        return selftest(options)
    findings = [found for look in _LOOKS for found in look()]
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{_SIGNS[finding.state]} {finding.what:<18}{finding.detail}")
    return 1 if any(finding.state == BROKEN for finding in findings) else 0


def _python() -> Iterator[Finding]:
    yield Finding("ksearch-tui", GOOD, f"{__version__}, Python {platform.python_version()} on {platform.platform()}")


def _packages() -> Iterator[Finding]:
    for name in ("textual", "numpy", "openai", "tomli-w", "tree-sitter", "tree-sitter-cuda"):
        try:
            yield Finding(name, GOOD, version(name))
        except PackageNotFoundError:
            yield Finding(name, BROKEN, "not installed; install ksearch-tui again")


def _mlx() -> Iterator[Finding]:
    try:
        import mlx.core as mx
    except ImportError as error:
        on_linux = sys.platform != "darwin"
        hint = "pip install 'ksearch-tui[cpu]' (or [cuda] for an NVIDIA GPU)" if on_linux else "pip install mlx"
        yield Finding("mlx", BROKEN, f"no back end ({error}); {hint}")
        return
    yield Finding("mlx", GOOD, f"{version('mlx')}, {mx.default_device()}")
    from search.devices.metal import MetalDevice

    try:
        yield Finding("metal", GOOD, MetalDevice().describe())
    except DeviceUnavailable as error:
        yield Finding("metal", MISSING, str(error))


def _simulator() -> Iterator[Finding]:
    import numpy as np

    from profiles.hardware import load_profile
    from search.devices.registry import open_device
    from search.kernels.dtypes import DTYPES
    from search.kernels.program import ArraySpec, bind
    from search.kernels.text import program_from_text

    values = np.arange(64, dtype=np.float32)
    arrays = {name: ArraySpec(name, (64,), DTYPES["float32"]) for name in ("x", "y")}
    bound = bind(program_from_text(_DOUBLE), arrays, ("y",), {}, {})
    try:
        device = open_device("simulator", load_profile("apple-m3-max"))
    except DeviceUnavailable as error:
        yield Finding("simulator", BROKEN, str(error))
        return
    try:
        device.compile(bound)
        got = device.run(bound, {"x": values}, time_limit=30).outputs["y"]
    except (DeviceUnavailable, KernelFault) as error:
        yield Finding("simulator", BROKEN, str(error))
        return
    finally:
        device.close()
    right = np.array_equal(got, 2 * values.reshape(32, 2)[:, ::-1].ravel())
    detail = "compiled and ran a kernel with a simd shuffle" if right else f"a kernel gave wrong values: {got[:4]} ..."
    yield Finding("simulator", GOOD if right else BROKEN, detail)


def _cuda_parser() -> Iterator[Finding]:
    from translator.cuda_source import parse_cuda

    kernels = parse_cuda("__global__ void k(float* x) { x[threadIdx.x] = 0.0f; }", "k.cu").kernels
    yield Finding("CUDA parser", GOOD if len(kernels) == 1 else BROKEN, f"read {len(kernels)} of 1 kernel")


def _folders() -> Iterator[Finding]:
    folder = sessions_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            yield Finding("sessions", GOOD, str(folder))
    except OSError as error:
        yield Finding("sessions", BROKEN, f"can't write in {folder} ({error.strerror}); name a file with --session")


def _terminal() -> Iterator[Finding]:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield Finding("terminal", MISSING, "not a terminal: explore and replay need one; run and --headless don't")
        return
    size = shutil.get_terminal_size()
    enough = size.columns >= 60 and size.lines >= 16
    detail = f"{size.columns}x{size.lines}, TERM={os.environ.get('TERM', '')}"
    yield Finding("terminal", GOOD if enough else MISSING, detail if enough else f"{detail}: 80x24 or more is needed")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    found = bool(editor) and shutil.which(editor.split()[0]) is not None
    yield Finding("editor", GOOD if found else MISSING, editor if found else "set $EDITOR to edit kernels from the app")


def _examples() -> Iterator[Finding]:
    from sessions.examples import example_names, example_path
    from sessions.store import SessionError, read_session

    for name in example_names():
        try:
            yield Finding("example", GOOD, f"{name}: {len(read_session(Path(example_path(name))).events)} events")
        except SessionError as error:
            yield Finding("example", BROKEN, f"{name}: {error}")


_LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python, _packages, _mlx, _simulator, _cuda_parser, _folders, _terminal, _examples,
)  # fmt: skip
