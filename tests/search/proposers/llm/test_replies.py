"""What a reply may say, and what is told to a model whose reply can't be used: every sentence exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.proposers.base import Proposal
from search.proposers.llm.prompting import REPLIES
from search.proposers.llm.refinement import check_redirection, check_refinement
from search.proposers.llm.replies import (
    read_initialize,
    read_propose,
    read_redirect,
    read_refine,
)
from search.proposers.llm.reply_schema import schema_of
from search.proposers.llm.reply_text import MalformedReply

NOT_YOURS = (
    "can't be given: leave it out. Ids of new options, statuses, evaluations, tolerances and baselines are not the "
    "model's to say."
)


def option(**changes: Any) -> dict[str, Any]:
    said = {"title": "Half4", "why": "Fewer loads.", "rating": 7, "confidence": 0.5, "difficulty": 2, "predicted": 1.2}
    return {key: value for key, value in {**said, **changes}.items() if value is not ...}


def families(*names: str, **changes: Any) -> dict[str, Any]:
    said = {
        "kernel_class": "reduction",
        "bottlenecks": ["memory"],
        "families": [{"name": name, "options": [option(title=name)]} for name in names],
        "followed": "",
    }
    return {**said, **changes}


def redirection(**changes: Any) -> dict[str, Any]:
    return {"options": [], "avoid": [], "question": "", "choices": [], "followed": "done", **changes}


def refinement(**changes: Any) -> dict[str, Any]:
    return {"ratings": [], "inserts": [], "splits": [], "closes": [], "followed": "", **changes}


def rating(name: str, **changes: Any) -> dict[str, Any]:
    return {"option": name, "rating": 3, "confidence": 0.5, "why": "slow", **changes}


def complaint(read: Any, said: Any, **more: Any) -> str:
    with pytest.raises(MalformedReply) as refused:
        read(said if isinstance(said, str) else json.dumps(said), **more)
    return str(refused.value)


def test_options_become_proposals():
    reply = read_propose(json.dumps({"options": [option(rating=7.5)], "followed": ""}))
    assert reply.proposals() == (Proposal("Half4", "Fewer loads.", "", 7.5, 0.5, 2, 1.2),)


def test_the_first_options_say_which_family_they_are_of():
    reply = read_initialize(json.dumps(families("loads", "work", "math")))
    assert [p.title for p in reply.proposals()] == ["loads", "work", "math"]
    assert reply.proposals()[0].why == "loads: Fewer loads."


def test_keys_that_are_optional_for_us_may_be_left_out():
    assert read_propose('{"options": []}').followed == ""
    assert read_refine("{}").ratings == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rating": 12}, "options[1].rating is 12; it must be a number from 0 to 10."),
        ({"rating": -0.5}, "options[1].rating is -0.5; it must be a number from 0 to 10."),
        ({"rating": "8"}, 'options[1].rating is "8"; it must be a number from 0 to 10.'),
        ({"rating": True}, "options[1].rating is true; it must be a number from 0 to 10."),
        ({"confidence": 80}, "options[1].confidence is 80; it must be a number from 0 to 1."),
        ({"difficulty": 6}, "options[1].difficulty is 6; it must be a whole number from 1 to 5."),
        ({"difficulty": 2.5}, "options[1].difficulty is 2.5; it must be a whole number from 1 to 5."),
        ({"predicted": 0}, "options[1].predicted is 0; it must be a number above 0, at most 1000."),
        ({"predicted": "2x"}, 'options[1].predicted is "2x"; it must be a number above 0, at most 1000.'),
        ({"title": ""}, 'options[1].title is ""; it must be one line of 1 to 80 characters.'),
        ({"title": "a\nb"}, 'options[1].title is "a\\nb"; it must be one line of 1 to 80 characters.'),
        ({"title": "\x1b[2J"}, 'options[1].title is "\\u001b[2J"; it must be one line of 1 to 80 characters.'),
        ({"title": None}, "options[1].title is null; it must be one line of 1 to 80 characters."),
        ({"why": " "}, 'options[1].why is " "; it must be 1 to 1200 characters without control characters.'),
        ({"why": ...}, "options[1].why is missing."),
        ({"id": "o9"}, f"options[1].id {NOT_YOURS}"),
        ({"status": "passed"}, f"options[1].status {NOT_YOURS}"),
        ({"evaluations": [{"seconds": 1e-9}]}, f"options[1].evaluations {NOT_YOURS}"),
        ({"a b\x1b": 1}, f'options[1]."a b\\u001b" {NOT_YOURS}'),
    ],
)
def test_a_wrong_value_of_an_option_is_told_with_its_place(changes: dict[str, Any], told: str):
    assert complaint(read_propose, {"options": [option(), option(**changes)]}) == told


def test_all_that_is_wrong_is_told_at_once():
    said = {"options": [option(rating=11, why=...)], "tolerance": 1}
    assert complaint(read_propose, said) == (
        "options[0].why is missing. options[0].rating is 11; it must be a number from 0 to 10. tolerance " + NOT_YOURS
    )
    many = complaint(read_propose, {"options": [option(rating=11, confidence=2) for _ in range(5)]})
    assert many.count("it must be") == 6 and many.endswith("4 more values are wrong.")


def test_a_long_value_is_told_in_short():
    told = complaint(read_propose, {"options": [option(title="x" * 500)]})
    assert told == f'options[0].title is "{"x" * 56}...; it must be one line of 1 to 80 characters.'


@pytest.mark.parametrize(
    ("read", "said", "told"),
    [
        (read_propose, {"options": {}}, "options is {}; it must be a list."),
        (read_propose, {"options": ["faster"]}, 'options[0] is "faster"; it must be an object.'),
        (read_propose, {}, "options is missing."),
        (read_propose, {"options": [option()] * 7}, "options has 7 entries; it may have at most 6."),
        (read_initialize, families("a", "b"), "families has 2 entries; it must have at least 3."),
        (
            read_initialize,
            families("a", "b", "A"),
            "Two families have one name; put their options into one family.",
        ),
        (
            read_redirect,
            redirection(),
            "There is neither an option, nor one to avoid, nor a question; give one of these.",
        ),
        (
            read_redirect,
            redirection(question="Which?", choices=["a"]),
            "A question is given without choices; give at least two in choices.",
        ),
        (
            read_redirect,
            redirection(question="Which?", choices=["a", "b"], options=[option()]),
            "A question and options are given; give options, or a question with its choices.",
        ),
        (
            read_redirect,
            redirection(options=[option()], followed=""),
            "followed is empty; say in one or two sentences how you followed the person's guidance.",
        ),
        (
            read_refine,
            refinement(
                inserts=[{"under": "o1", "option": option()}] * 2,
                splits=[{"option": "o2", "into": [option(), option()]}],
            ),
            "Inserts and splits bring 4 new options; at most 3 are allowed.",
        ),
        (
            read_refine,
            refinement(ratings=[rating("o2")], closes=[{"option": "o2", "why": "no"}]),
            "The option o2 is changed twice; rate it, split it or close it, and once.",
        ),
        (
            read_refine,
            refinement(ratings=[rating("o2; rm -rf /")]),
            'ratings[0].option is "o2; rm -rf /"; it must be the id of an option that is shown, such as "o4".',
        ),
        (read_refine, refinement(ratings=[rating("o2", status="passed")]), f"ratings[0].status {NOT_YOURS}"),
    ],
)
def test_a_reply_that_breaks_the_rules_of_its_call_is_told_which(read: Any, said: Any, told: str):
    assert complaint(read, said) == told


def test_a_question_needs_no_word_about_guidance():
    reply = read_redirect(json.dumps(redirection(question="Which?", choices=["a", "b"], followed="")))
    assert (reply.question, reply.choices) == ("Which?", ("a", "b"))


def test_where_a_person_gave_guidance_a_reply_must_say_how_it_followed():
    said = {"options": [option()], "followed": ""}
    assert complaint(read_propose, said, guided=True).startswith("followed is empty")
    assert read_propose(json.dumps({**said, "followed": "as asked"}), guided=True).followed == "as asked"


# -- ids of options ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(grower):
    """o1 and o2 passed, o3 failed, o4 and o5 wait under o2, o6 under the pruned o7."""
    grower.option("o1")
    grower.passes("o1", 8.0)
    grower.option("o2", "o1")
    grower.passes("o2", 4.0)
    grower.option("o3", "o1")
    grower.fails("o3")
    grower.option("o4", "o2")
    grower.option("o5", "o2")
    grower.option("o7", "o1")
    grower.passes("o7", 9.0)
    grower.option("o6", "o7")
    grower.decide("o7", "prune")
    return grower.tree


def refused(check: Any, *arguments: Any) -> str:
    with pytest.raises(MalformedReply) as refusal:
        check(*arguments)
    return str(refusal.value)


def refine(**changes: Any):
    return read_refine(json.dumps(refinement(**changes)))


def test_a_refinement_of_open_options_is_accepted(tree):
    insert = [{"under": "o2", "option": option()}]
    check_refinement(refine(ratings=[rating("o4")], closes=[{"option": "o5", "why": "no"}], inserts=insert), tree)


@pytest.mark.parametrize("name", ["o1", "o3", "o6", "o7", "o99"])
def test_what_has_run_or_is_pruned_or_made_up_can_not_be_rated(name: str, tree):
    told = f"ratings[0].option is {name}; no open option has that id (there is o4, o5)."
    assert refused(check_refinement, refine(ratings=[rating(name)]), tree) == told


@pytest.mark.parametrize("name", ["o3", "o4", "o7", "o99"])
def test_an_option_is_inserted_only_under_one_that_passed(name: str, tree):
    told = f"inserts[0].under is {name}; no option that has passed has that id (there is o1, o2)."
    assert refused(check_refinement, refine(inserts=[{"under": name, "option": option()}]), tree) == told


def test_what_a_person_decided_on_can_be_rated_but_not_closed(tree, grower):
    grower.decide("o4", "approve")
    check_refinement(refine(ratings=[rating("o4")]), tree)
    told = "closes[0].option is o4; a person or the run has decided on it, so it can be rated only."
    assert refused(check_refinement, refine(closes=[{"option": "o4", "why": "no"}]), tree) == told


def test_a_redirection_rules_out_open_options_below_it_only(tree):
    def avoiding(name: str):
        return read_redirect(json.dumps(redirection(avoid=[name])))

    check_redirection(avoiding("o4"), tree, "o2")
    told = "avoid[0] is o1; no open option under o2 has that id (there is o4, o5)."
    assert refused(check_redirection, avoiding("o1"), tree, "o2") == told
    told = "avoid[0] is o5; there is no open option under o4."
    assert refused(check_redirection, avoiding("o5"), tree, "o4") == told


# -- schemas ----------------------------------------------------------------------------------------------------------


def objects(schema: Any):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize("call", REPLIES)
def test_schemas_are_what_strict_endpoints_take(call: str):
    schema = schema_of(REPLIES[call])
    assert schema["type"] == "object"
    for found in objects(schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
    words = set(json.dumps(schema).replace('"', " ").split())
    assert words.isdisjoint({"$ref", "$defs", "default", "minimum", "maxLength", "pattern", "search.kernels"})


def test_a_schema_says_what_a_value_must_be_in_the_words_of_the_message():
    rated = schema_of(REPLIES["propose"])["properties"]["options"]["items"]["properties"]["rating"]
    assert rated == {"type": "number", "description": "how promising: a number from 0 to 10"}


# -- anything at all --------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
WORDS = (
    "options title why rating confidence difficulty predicted followed families avoid ratings inserts splits closes "
    "option under into question choices kernel_class id"
)
KEYS = st.sampled_from(WORDS.split())
NEAR = st.recursive(
    JSON | st.fixed_dictionaries({"title": st.text(), "rating": st.floats(), "difficulty": st.integers()}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=10,
)


@pytest.mark.parametrize("read", [read_initialize, read_propose, read_redirect, read_refine])
@given(said=NEAR)
def test_no_json_raises_anything_but_the_one_error(read: Any, said: Any):
    try:
        read(json.dumps(said))
    except MalformedReply as refusal:
        told = str(refusal)
        assert told.isprintable() and told.endswith((".", "}."))
