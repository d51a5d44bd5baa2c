"""The prompts of two problems, whole: ``../prompts/*.md`` is what a model reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from search.evaluation.record import Failure
from search.proposers.llm.asking import Ask
from search.proposers.llm.prompt_parts import CONTEXTS
from search.proposers.llm.prompting import (
    ask_again,
    ask_improve,
    ask_initialize,
    ask_propose,
    ask_redirect,
    ask_refine,
    ask_repair,
    ask_write,
    prompt_tokens,
    shorter,
)
from search.proposers.llm.request import Shape, prompt_text
from translator.briefing import tokens

PROMPTS = Path(__file__).parents[1] / "prompts"
PROBLEMS = ["softmax", "attention_prefill"]

ASKS: dict[str, Callable] = {
    "initialize": lambda s, at: ask_initialize(at),
    "propose": lambda s, at: ask_propose(at, "o2"),
    "redirect": lambda s, at: ask_redirect(at, "o2", "no more than 16 KiB of threadgroup memory"),
    "refine": lambda s, at: ask_refine(at, "o2"),
    "write": lambda s, at: ask_write(at, "o4"),
    "repair": lambda s, at: ask_repair(at, "o4", s.failed, s.failure),
    "improve": lambda s, at: ask_improve(at, "o2"),
}


def asked(story, call: str, context: str = "full") -> Ask:
    return ASKS[call](story, story.setting(context))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("call", ASKS)
def test_a_prompt_is_as_it_was_reviewed(problem: str, call: str, story):
    ask = asked(story(problem), call, "full" if call == "write" else "none")
    text = f"{ask.system}\n\n---\n\n{ask.user}\n"
    file = PROMPTS / f"{problem}_{call}.md"
    assert text == file.read_text(encoding="utf-8"), f"read it again, then write it to {file.name}:\n{text}"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_briefing_goes_into_a_prompt_as_far_as_the_context_says(problem: str, story):
    told = story(problem)
    names = {
        context: [part.name for part in asked(told, "write", context).parts if part.name not in ("problem", "contract")]
        for context in CONTEXTS
    }
    rest = ["tree", "program", "timing", "option", "guidance", "task"]
    assert names["none"] == rest
    assert names["mapping"] == ["mapping", *rest]
    assert names["full"] == ["hardware", "mathematics", "mapping", "patterns", "evidence", *rest]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("call", ASKS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_no_prompt_knows_a_hidden_workload(problem: str, call: str, context: str, story):
    told = story(problem)
    ask = asked(told, call, context)
    for workload in told.problem.workloads:
        sizes = ", ".join(f"{axis} = {value}" for axis, value in workload.axes.items())
        assert (workload.name in ask.user and sizes in ask.user) is not workload.hidden


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("call", ASKS)
def test_a_prompt_keeps_to_a_size_that_models_can_take(problem: str, call: str, story):
    told = story(problem)
    assert prompt_tokens(asked(told, call, "full")) < 9000
    assert prompt_tokens(asked(told, call, "none")) < 4000


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_prompt_that_is_too_long_loses_the_tree_first_and_keeps_what_the_task_needs(problem: str, story):
    ask = asked(story(problem), "write")
    order = []
    while shortened := shorter(ask):
        assert prompt_tokens(shortened.ask) <= prompt_tokens(ask)
        ask = shortened.ask
        order.append(shortened.told)
    assert order == [
        "tree shortened",
        "evidence left out",
        "patterns left out",
        "mapping left out",
        "mathematics left out",
        "hardware left out",
    ]
    kept = [part.name for part in ask.parts if part.text]
    assert kept == ["problem", "contract", "tree", "program", "timing", "option", "guidance", "task"]
    assert "(shortened to fit)" in ask.user
    assert ask.user == "\n\n".join(part.text for part in ask.parts if part.text)


def test_a_prompt_can_be_shortened_to_a_limit_at_once(story):
    ask = asked(story("attention_prefill"), "write")
    limit = 5000
    shortened = shorter(ask, limit)
    assert shortened is not None
    assert prompt_tokens(shortened.ask) <= limit < prompt_tokens(ask)
    assert shortened.told.startswith("tree shortened, evidence left out")


def test_a_malformed_reply_goes_back_with_what_was_wrong_and_is_the_first_to_be_left_out(story):
    fault = "options[1].rating is 12; it must be a number from 0 to 10."
    again = ask_again(asked(story("softmax"), "propose"), '{"options": [`` ` ```]}', fault)
    assert fault in again.user and '````text\n{"options": [`` ` ```]}\n````' in again.user
    assert again.user.endswith("````")
    short = shorter(again)
    assert short is not None and short.told == "malformed reply shortened"
    assert fault in short.ask.user and "`` `" not in short.ask.user


def test_a_reply_that_was_empty_is_not_quoted(story):
    again = ask_again(asked(story("softmax"), "propose"), "", "The reply was empty: there is no answer in it.")
    assert again.user.endswith("Your reply:\n\n(It is left out here.)")


def test_why_earlier_programs_failed_is_told_with_the_option(story):
    told = story("softmax")
    again = ask_write(told.setting(), "o3").user
    assert "earlier programs for it failed:\n- race, line 8: data race on partial[0]" in again
    other = Failure("compile", "no", "softmax", 1)
    assert "earlier programs for it failed:\n- race" in ask_repair(told.setting(), "o3", told.failed, other).user
    assert "earlier programs" not in ask_repair(told.setting(), "o3", told.failed, told.failure).user


def test_guidance_asks_for_an_answer_and_nothing_does_without_it(story):
    told = story("softmax")
    guided = asked(told, "write").user
    assert "stay with one simdgroup, and use wider loads" in guided and '"Followed:"' in guided
    elsewhere = ask_write(told.setting(), "o6").user
    assert "stay with one simdgroup" not in elsewhere and '"Followed:"' not in elsewhere


def test_the_first_question_can_be_asked_before_there_is_a_program(story):
    told = story("softmax")
    setting = told.setting()
    empty = replace(setting, situation=replace(setting.situation, tree=type(told.tree)()))
    ask = ask_initialize(empty)
    assert ask.option == ""
    assert {part.name for part in ask.parts}.isdisjoint({"program", "timing", "tree", "guidance"})


def test_a_race_is_shown_with_the_lines_of_both_accesses(story):
    told = story("softmax")
    text = next(part.text for part in asked(told, "repair").parts if part.name == "failure")
    marked = re.findall(r"^>> +(\d+) (.*)$", text, re.MULTILINE)
    assert marked == [
        ("7", "if (thread_index_in_simdgroup == 0) { partial[simdgroup_index_in_threadgroup] = peak; }"),
        ("8", "peak = max(partial[0], partial[1]);"),
    ]
    assert "one over a full threadgroup (rows = 3, n = 1025, T = float16)" in text


def test_an_error_of_the_compiler_is_shown_with_its_line(story):
    told = story("attention_prefill")
    text = next(part.text for part in asked(told, "repair").parts if part.name == "failure")
    assert re.findall(r"^>> +(\d+) (.*)$", text, re.MULTILINE) == [
        ("19", "for (uint d = 0; d < DD; ++d) { o[at + d] = T(acc[d] / sum); }")
    ]


def test_where_only_words_ask_for_a_form_a_program_is_asked_for_as_metal_and_not_as_json_too(story):
    told = story("softmax")
    fenced = Shape("fenced", usage=True, token_limit="max_tokens", reply_tokens=4096)
    write, propose = asked(told, "write"), asked(told, "propose")
    assert write.plain_form in prompt_text(write, fenced)
    assert "additionalProperties" not in prompt_text(write, fenced)
    assert "additionalProperties" in prompt_text(write, replace(fenced, structured="object"))
    assert "additionalProperties" in prompt_text(propose, fenced)


def test_what_is_estimated_is_what_is_sent(story):
    ask = asked(story("softmax"), "write")
    assert prompt_tokens(ask) == tokens(ask.system) + tokens(ask.user)
