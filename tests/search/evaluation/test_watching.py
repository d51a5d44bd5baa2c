"""What the judge makes of a device that says why a kernel is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from profiles.hardware import load_profile
from search.devices.base import MODELLED, Checked, CheckReport, DeviceTime, RunResult
from search.devices.registry import open_device
from search.evaluation.judge import evaluate
from search.evaluation.watching import MOST_WORKLOADS, workloads_to_watch
from search.problems.definition import load_problem

RACE = CheckReport("race", "data race on partial[3]", "centre", line=5, other_line=8)
BOUNDS = CheckReport("bounds", "reads x[64]", "centre", line=4)
SUSPICION = CheckReport("divergence", "lane 8 takes the value of lane 16", "centre", line=8, certain=False)


class WatchingDevice:
    """Right when ``right``; a checked run finds ``reports``."""

    name = "python"

    def __init__(self, *reports: CheckReport, right: bool = True, right_in_any_order: bool = True) -> None:
        self.reports, self.right, self.right_in_any_order = reports, right, right_in_any_order
        self.watched = 0

    def describe(self) -> str:
        return "python → test (modelled)"

    def compile(self, bound: Any) -> None:
        pass

    def run(self, bound: Any, inputs: Mapping[str, Any], *, time_limit: float) -> RunResult:
        x = inputs["x"].astype(np.float64)
        y = (x - x.mean(axis=-1, keepdims=True)) * float(inputs["gain"])
        return RunResult({"y": (y if self.right else 2 * y + 1).astype(inputs["x"].dtype)})

    def check(self, bound: Any, inputs: Mapping[str, Any], *, time_limit: float, seed: int = 0) -> Checked:
        self.watched += 1
        outputs = dict(self.run(bound, inputs, time_limit=time_limit).outputs)
        if not self.right_in_any_order:
            outputs["y"] = outputs["y"][::-1]
        return Checked(self.reports, outputs, True)

    def time(self, bound: Any, inputs: Any, *, time_limit: float) -> DeviceTime:
        return DeviceTime(MODELLED, "apple-m3-max", 1e-3, 1e-3, 1e-3)

    def close(self) -> None:
        pass


@pytest.fixture
def judge(centre, program):
    def run(device: WatchingDevice):
        return evaluate(program(), centre, device, load_profile("apple-m3-max"))

    return run


def test_a_report_fails_the_program_at_its_stage_and_line(judge):
    device = WatchingDevice(RACE)
    failure = judge(device).failure
    assert (failure.stage, failure.line, failure.message) == ("race", 5, "data race on partial[3]")
    assert failure.workload != "" and device.watched == 1


def test_a_race_is_told_before_what_may_follow_from_it(judge):
    assert judge(WatchingDevice(BOUNDS, RACE)).failure.stage == "race"
    assert judge(WatchingDevice(BOUNDS)).failure.stage == "bounds"


def test_threads_that_miss_a_barrier_are_told_before_the_race_that_follows(judge):
    divergence = CheckReport("divergence", "40 threads wait, 24 returned", "centre", line=7)
    assert judge(WatchingDevice(RACE, divergence)).failure.stage == "divergence"


def test_an_answer_that_hangs_on_the_order_of_threads_is_refused(judge):
    failure = judge(WatchingDevice(right_in_any_order=False)).failure
    assert failure.stage == "nondeterministic"
    assert "right when threads run in the order of their numbers, and wrong in another order" in failure.message
    assert "y[0, 0] is " in failure.message


def test_that_watching_ran_out_of_time_says_nothing(judge):
    assert judge(WatchingDevice(CheckReport("timeout", "still running"))).passed


def test_a_suspicion_fails_nothing_but_explains_what_is_wrong(judge):
    assert judge(WatchingDevice(SUSPICION)).passed
    failure = judge(WatchingDevice(SUSPICION, right=False)).failure
    assert failure.stage == "correctness"
    assert failure.message.endswith("perhaps because lane 8 takes the value of lane 16")


@pytest.mark.parametrize("name", ["attention_prefill", "softmax"])
def test_what_is_watched_is_visible_and_little(name):
    watched = workloads_to_watch(load_problem(name))
    assert 0 < len(watched) <= MOST_WORKLOADS
    assert all(workload.role == "check" and not workload.hidden for workload in watched)


def test_a_kernel_without_its_barriers_fails_as_a_race_with_both_lines(centre, program, source):
    profile = load_profile("apple-m3-max")
    broken = program(source.replace("threadgroup_barrier(mem_flags::mem_threadgroup);", ""))
    device = open_device("simulator", profile)
    failure = evaluate(broken, centre, device, profile).failure
    device.close()
    assert failure.stage == "race"
    assert "data race on partial[" in failure.message
    assert "reads it in line 8" in failure.message and "writes it in line 5" in failure.message
    assert "Put threadgroup_barrier(mem_flags::mem_threadgroup) between line 5 and line 8" in failure.message
