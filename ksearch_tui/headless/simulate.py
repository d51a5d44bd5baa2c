"""``ksearch-tui simulate``: run a Python program whose Metal kernels need an Apple GPU on the simulator."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.headless.summary import format_seconds
from ksearch_tui.inert import one_line
from profiles.hardware import load_profile
from search.devices.simulator.device import SimulatorDevice
from search.devices.simulator.stand_in import KernelRecord, Ledger, metal_simulated

_PROFILE = "apple-m3-max"  # for a device that is asked for no time


def simulate(options: argparse.Namespace) -> int:
    """Run the program as Python would, then say on stderr what its kernels did; exit as it does, or 1 for a finding."""
    if not options.program:
        raise CommandError("name the program to run: a file, or -m and a module", USAGE)
    device = SimulatorDevice(load_profile(options.profile or _PROFILE))
    timed = bool(options.profile)
    try:
        with metal_simulated(device, checked=options.checked, timed=timed, time_limit=options.seconds) as ledger:
            code = _run(options.program, module=options.module)
    finally:
        device.close()
    lines, found = summary(ledger, checked=options.checked)
    print("\n".join([*(times(ledger, options.profile) if timed else ()), *lines]), file=sys.stderr)
    return code or int(found)


def _run(program: list[str], *, module: bool) -> int:
    name, *_ = program
    if not module and not Path(name).is_file():
        raise CommandError(f"there is no file {name}", USAGE)
    sys.argv = list(program)
    sys.path.insert(0, str(Path.cwd() if module else Path(name).resolve().parent))
    try:
        if module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def times(ledger: Ledger, profile: str) -> Iterator[str]:
    """Yield the modelled time of each kernel, the longest in all first."""
    records = sorted(ledger.kernels.items(), key=lambda entry: -entry[1].modelled)
    yield f"{f'modelled for {profile}':<40}{'launches':>9}{'one':>10}{'all':>10}   bound by"
    for name, record in records:
        if record.modelled:
            one, all_of_them = format_seconds(record.modelled / record.launches), format_seconds(record.modelled)
            bound_by = max(record.bounds, key=lambda term: record.bounds[term])
            yield f"{one_line(name)[:39]:<40}{record.launches:>9}{one:>10}{all_of_them:>10}   {bound_by}"


def summary(ledger: Ledger, *, checked: bool) -> tuple[list[str], bool]:
    """Return what to say of the kernels that ran, and whether anything was found wrong with one."""
    launches = sum(record.launches for record in ledger.kernels.values())
    seconds = sum(record.seconds for record in ledger.kernels.values())
    mode = "checked" if checked else "not checked for races and bad indices: see --checked"
    lines = [f"{len(ledger.kernels)} Metal kernels, {launches} launches, {seconds:.1f} s on the simulator ({mode})"]
    findings = [line for name, record in ledger.kernels.items() for line in _findings(name, record)]
    return [*lines, *(findings or ["nothing was found wrong with them"])], bool(findings)


def _findings(name: str, record: KernelRecord) -> Iterator[str]:
    for report in record.reports.values():
        where = f", line {report.line} of its {'header' if report.in_header else 'source'}" if report.line else ""
        sure = "" if report.certain else " (harmless if the result is not used)"
        yield f"✗ {one_line(name)}{where}: {report.stage}: {one_line(report.message)}{sure}"
    for array in sorted(record.overruns):
        yield f"✗ {one_line(name)}: writes outside of '{one_line(array)}': --checked says where"
    for fault in dict.fromkeys(record.faults):
        yield f"✗ {one_line(fault)}"
    if record.partly_checked:
        yield f"! {one_line(name)}: {record.partly_checked} launches took too long to be checked whole"
