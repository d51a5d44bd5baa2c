from __future__ import annotations

import math

import pytest

from profiles.models import load_endpoint
from search.proposers.llm.usage import Read, estimated_tokens, spent_on, was_cut
from search.spending import Spent

LOCAL = load_endpoint("ollama")


def test_an_estimate_is_three_and_a_half_characters_a_token():
    assert [estimated_tokens(text) for text in ("", "x", "x" * 35, "x" * 36)] == [0, 1, 10, 11]


def test_reasoning_that_is_only_in_the_total_is_counted_as_written():
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 500}
    assert spent_on(LOCAL, "m", usage, "", "") == Spent(100, 400, 0.0, True)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None}, {"prompt_tokens": -5}, {"prompt_tokens": "7"}, {"completion_tokens": True}],
)
def test_a_count_that_is_none_is_estimated(usage: dict | None):
    assert spent_on(LOCAL, "m", usage, "x" * 35, "x" * 70) == Spent(10, 20, 0.0, False)


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1.0, "3", True, None])
def test_a_charge_that_is_no_sum_of_money_is_not_believed(cost: object):
    billed = load_endpoint("gemini")
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "cost": cost}
    assert spent_on(billed, "gemini-3.8-flash", usage, "", "").cost_usd == pytest.approx(0.75)


def test_costs_add_up_and_one_that_is_not_known_makes_the_sum_unknown():
    assert Spent(1, 2, 0.5) + Spent(10, 20, 0.25, False) == Spent(11, 22, 0.75, False)
    assert (Spent(cost_usd=None) + Spent(cost_usd=1.0)).cost_usd is None


@pytest.mark.parametrize(
    ("read", "before", "cuts", "cut"),
    [
        (Read(40_000, 4096), None, True, True),  # 9.8 characters a token
        (Read(20_000, 4096), None, True, False),  # 4.9
        (Read(40_000, 4096), None, False, False),  # not an endpoint that is known to cut
        (Read(30_000, 2050), Read(20_000, 2050), False, True),
        (Read(20_000, 2050), Read(30_000, 2050), False, True),
        (Read(20_100, 2050), Read(20_000, 2050), False, False),  # hardly longer: may well be as many tokens
        (Read(30_000, 2050), Read(20_000, 2051), False, False),
        (Read(7000, 2050), Read(6000, 2050), False, False),  # 6000 can be 2050 tokens
    ],
)
def test_a_cut_prompt_shows_in_a_count_that_is_too_small_or_stays(
    read: Read, before: Read | None, cuts: bool, cut: bool
):
    assert was_cut(read, before, cuts_prompts=cuts) is cut
