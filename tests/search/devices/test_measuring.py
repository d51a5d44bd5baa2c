from __future__ import annotations

import pytest

from search.devices import measuring
from search.devices.measuring import Interval, measure_in_turn, median_interval


def test_the_interval_of_ten_samples_runs_from_the_second_to_the_ninth():
    # P(Binomial(10, 1/2) <= 1) = 11/1024 = 1.1 % a side; with the third it would be 56/1024 = 5.5 %.
    assert median_interval([10, 1, 9, 2, 8, 3, 7, 4, 6, 5]) == Interval(5.5, 2, 9)


def test_the_interval_of_six_samples_is_their_range_and_of_nine_is_not():
    # 1/64 = 1.6 % a side for six; for nine 1/512 + 9/512 = 2.0 %.
    assert median_interval([1, 2, 3, 4, 5, 6]) == Interval(3.5, 1, 6)
    assert median_interval(range(1, 10)) == Interval(5, 2, 8)


def test_fewer_samples_than_an_interval_needs_give_their_range():
    assert median_interval([3, 1]) == Interval(2, 1, 3)
    assert median_interval([4]) == Interval(4, 4, 4)


def test_one_outlier_moves_neither_the_median_nor_the_interval():
    assert median_interval([1.0] * 23 + [1000.0]) == Interval(1, 1, 1)


class Machine:
    """A clock, and jobs that take a known time on it."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, []

    def job(self, name: str, seconds: float, launch: float = 0.0):
        def batch(count: int) -> float:
            taken = count * seconds + launch
            self.now += taken
            self.log.append((name, count))
            return taken

        return batch

    def clock(self) -> float:
        return self.now


def test_jobs_take_turns_there_and_back():
    machine = Machine()
    jobs = [machine.job("a", 0.02), machine.job("b", 0.05)]
    a, b = measure_in_turn(jobs, time_limit=60, clock=machine.clock)
    assert [name for name, _ in machine.log[-4 * measuring.ROUNDS :]] == ["a", "b", "b", "a"] * measuring.ROUNDS
    assert (a.median, b.median) == pytest.approx((0.02, 0.05))


def test_short_jobs_are_batched_until_launch_noise_is_small():
    machine = Machine()
    (taken,) = measure_in_turn([machine.job("a", 1e-5, launch=1e-4)], time_limit=60, clock=machine.clock)
    count = machine.log[-1][1]
    assert count * 1e-5 + 1e-4 >= measuring.BATCH_SECONDS
    assert taken.median == pytest.approx(1e-5, rel=0.02)


def test_a_slow_job_is_measured_in_the_fewest_rounds():
    machine = Machine()
    measure_in_turn([machine.job("a", 20)], time_limit=30, clock=machine.clock)
    assert len(machine.log) <= 2 + 2 * measuring.FEWEST_ROUNDS


def test_a_steady_drift_favours_neither():
    machine = Machine()

    def drifting(count: int) -> float:
        taken = count * 0.02 * (1 + machine.now / 10)
        machine.now += taken
        return taken

    first, second = measure_in_turn([drifting, drifting], time_limit=60, clock=machine.clock)
    assert first.median == pytest.approx(second.median, rel=0.02)
