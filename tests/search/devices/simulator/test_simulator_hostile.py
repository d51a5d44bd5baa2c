"""Kernels that mean harm: each is stopped with a clear message, and by the walls behind the first one as well."""

from __future__ import annotations

import contextlib
import errno
import platform
import re
import struct
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from search.devices.base import DeviceUnavailable, KernelFault
from search.devices.simulator import device, toolchain
from search.devices.simulator.compilers import find_compiler

CORPUS = Path(__file__).parents[3] / "corpus" / "hostile"
X = {"x": np.zeros(64, dtype=np.float32)}
LAUNCH = {"inputs": X, "outputs": {"out": ((64,), "float32")}, "grid": 64, "threadgroup": 64}
INDEX = "uint i = thread_position_in_grid.x;\n"
ESCAPED = Path("/tmp/ksearch-escaped")
MACHINE = platform.machine()


def entries(name: str) -> list[dict[str, Any]]:
    """The kernels of one file, without those for another machine or system."""
    kernels = tomllib.loads((CORPUS / f"{name}.toml").read_text())["kernel"]
    return [
        kernel
        for kernel in kernels
        if kernel.get("machine", MACHINE) == MACHINE and kernel.get("system", sys.platform) == sys.platform
    ]


def named(kernels: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(kernel, id=kernel["name"]) for kernel in kernels]


def refused(bench: Any, kernel: dict[str, Any]) -> KernelFault:
    """Run one kernel as it stands in the file; the fault that ends it."""
    source = INDEX + kernel["source"]
    return bench.fault(source, header=kernel.get("header", ""), seconds=kernel.get("seconds", 20.0), **LAUNCH)


def children() -> set[str]:
    """The processes that this one has started and that have not ended (Linux; elsewhere none are seen)."""
    tasks = Path("/proc/self/task")
    return {pid for task in tasks.glob("*/children") for pid in task.read_text().split()}


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = children()
    ESCAPED.unlink(missing_ok=True)
    yield
    assert not ESCAPED.exists()
    assert children() <= before


@pytest.fixture
def no_screening(monkeypatch):
    monkeypatch.setattr(device, "screen", lambda step: None)


def test_the_suite_is_large_enough():
    assert sum(len(entries(name)) for name in ("text", "limits", "machine")) >= 25


@pytest.mark.parametrize("kernel", named(entries("text")))
def test_a_text_that_reaches_outside_is_refused_before_it_is_compiled(bench, kernel):
    fault = refused(bench, kernel)
    assert (fault.stage, fault.line, fault.in_header) == ("compile", kernel["line"], kernel.get("in_header", False))
    assert kernel["says"] in fault.message


@pytest.mark.usefixtures("no_screening")
@pytest.mark.parametrize("kernel", named([kernel for kernel in entries("text") if "behind" in kernel]))
def test_behind_the_screening_stands_another_wall(bench, kernel):
    if kernel["behind"].get("compiler") == "gcc" and find_compiler().clang:
        pytest.skip("clang obeys the directive itself before there is text to search: only the screening stands")
    fault = refused(bench, kernel)
    assert fault.stage == kernel["behind"]["stage"]
    assert kernel["behind"]["says"] in fault.message
    assert "root:" not in fault.message


@pytest.mark.parametrize("kernel", named(entries("limits")))
def test_a_kernel_meets_a_limit(bench, monkeypatch, kernel):
    monkeypatch.setattr(toolchain, "COMPILE_CPU_SECONDS", kernel.get("cpu_seconds", 10))
    began = time.monotonic()
    fault = refused(bench, kernel)
    assert fault.stage == kernel["stage"]
    says = kernel["says"]
    if find_compiler().clang and "clang_says" in kernel:
        says = f"{says}|{kernel['clang_says']}"  # a newer clang comes further
    assert re.search(says, fault.message)
    assert time.monotonic() - began < 30


@pytest.mark.skipif(
    sys.platform != "linux", reason="macOS answers a refused call with an error, and the kernel goes on"
)
@pytest.mark.usefixtures("no_screening")
@pytest.mark.parametrize("kernel", named([kernel for kernel in entries("machine") if MACHINE in kernel]))
def test_a_kernel_in_machine_language_can_make_no_system_call(bench, kernel):
    header = tomllib.loads((CORPUS / "machine.toml").read_text())[MACHINE]
    fault = bench.fault(f"{INDEX} out[i] = {kernel[MACHINE]};", header=header, **LAUNCH)
    assert fault.stage == "sandbox"
    assert kernel["says"] in fault.message


@pytest.mark.skipif(
    sys.platform != "linux", reason="macOS answers a refused call with an error, and the kernel goes on"
)
@pytest.mark.usefixtures("no_screening")
def test_every_thread_of_the_runner_is_locked_in(bench):
    header = tomllib.loads((CORPUS / "machine.toml").read_text())[MACHINE]
    number = {"x86_64": 39, "aarch64": 172}[MACHINE]  # getpid
    source = f"volatile int n = 0; while (i < 63 * 64 && n < 100000000) n = n + 1; out[0] = call({number}, 0, 0, 0);"
    fault = bench.fault(INDEX + source, header=header, **{**LAUNCH, "grid": 64 * 64})
    assert (fault.stage, "'getpid'" in fault.message) == ("sandbox", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("//" + "x" * 5_000_000, "characters; at most 262,144 are read"),
        ("out[i] = " + "(" * 10_000 + "1" + ")" * 10_000 + ";", "brackets nest more than 100 deep"),
        ("out[i] = " + "- " * 20_000 + "1;", "more than this compiler can do|to compile"),
        ("#error no\n" * 5_000, "no"),
        ("/* " * 80_000, "never closed"),
    ],
    ids=["five megabytes", "deep brackets", "deep signs", "many errors", "many openings of a comment"],
)
def test_a_text_that_is_meant_to_choke_its_reader_is_refused_quickly(bench, monkeypatch, text, says):
    monkeypatch.setattr(toolchain, "COMPILE_CPU_SECONDS", 1)
    began = time.monotonic()
    fault = bench.fault(INDEX + text, **LAUNCH)
    assert fault.stage == "compile"
    assert re.search(says, fault.message)
    assert len(fault.message) < 1000
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("name", ['T = 1; asm("nop"); int U', "ksr_at", "a b", "", "T\n"])
def test_names_are_data_too(bench, name):
    bound = bench.bind("out[thread_position_in_grid.x] = 1;", template={name: 1}, **LAUNCH)
    with pytest.raises(KernelFault, match="can't be the name") as caught:
        bench.device.compile(bound)
    assert caught.value.stage == "compile"
    bound = bench.bind("", inputs={}, outputs={name: ((64,), "float32")}, grid=64, threadgroup=64)
    with pytest.raises(KernelFault, match="can't be the name"):
        bench.device.compile(bound)


def test_a_kernel_that_is_refused_leaves_the_next_one_a_clean_machine(bench):
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.glob("*")))
    bench.fault(INDEX + "*(volatile int*)(ulong)(x[0] + 8) = 1;", **LAUNCH)
    out = bench.run(INDEX + "out[i] = x[i] + 1;", **LAUNCH)["out"]
    np.testing.assert_array_equal(out, np.ones(64))
    assert len(list(descriptors.glob("*"))) == before


RUNNING, DONE, FAULTED = 1, 2, 3
NO_SANDBOX, THREAD_ELSEWHERE = 12, 14
FORGER = """#!{python} -IS
import os, sys
sys.stdin.read()
os.pwrite(int(sys.argv[1]), {report!r}, 0)
"""
SAID = [(FAULTED, 0, kind) for kind in range(16) if kind not in (NO_SANDBOX, THREAD_ELSEWHERE)]
SAID += [(RUNNING, 0, 1), (DONE, 0, 1), (FAULTED, 9, 1), (FAULTED, 2**63, 1), (77, 1, 1)]


@pytest.fixture
def forge(monkeypatch, tmp_path):
    """Replace the runner by a program that only writes a report."""
    forger = tmp_path / "forger"
    monkeypatch.setattr(device, "built_runner", lambda: forger)

    def write(report: bytes) -> None:
        forger.write_text(FORGER.format(python=sys.executable, report=report))
        forger.chmod(0o755)

    return write


@pytest.mark.parametrize(("state", "step", "kind"), SAID)
def test_a_report_that_says_anything_is_at_most_a_fault(bench, forge, state, step, kind):
    rng = np.random.default_rng(kind)
    details = rng.choice([-(2**62), -1, 0, 1, 2, 300, 2**62], 8)
    forge(struct.pack("<3Q8q", state, step, kind, *details) + rng.bytes(9000))
    bound = bench.bind(INDEX + "out[i] = x[i];", **LAUNCH)
    with contextlib.suppress(KernelFault):  # any other exception fails the test
        bench.device.run(bound, X, time_limit=20)


def test_counts_of_nothing_are_a_fault(bench, forge):
    forge(struct.pack("<3Q8q", DONE, 0, 0, *[0] * 8) + bytes(9000))
    bound = bench.bind(INDEX + "out[i] = x[i];", **LAUNCH)
    with pytest.raises(KernelFault, match="wrote over the record of its own run"):
        bench.device.count(bound, X, time_limit=20)


@pytest.mark.parametrize(
    ("kind", "words"), [(NO_SANDBOX, "Function not implemented"), (THREAD_ELSEWHERE, "away from the thread's stack")]
)
def test_a_system_that_lacks_what_a_kernel_needs_runs_none(bench, forge, kind, words):
    forge(struct.pack("<3Q8q", FAULTED, 0, kind, errno.ENOSYS, *[0] * 7))
    with pytest.raises(DeviceUnavailable, match=words):
        bench.device.run(bench.bind(INDEX + "out[i] = x[i];", **LAUNCH), X, time_limit=20)
