"""JSON out of replies as models write them, and what is told of JSON that does not read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.proposers.llm.reply_text import MalformedReply, answer_in, blocks_in, object_in


def read(text: str):
    return object_in(answer_in(text))


def complaint(text: str) -> str:
    with pytest.raises(MalformedReply) as refused:
        read(text)
    return str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"options": [1]}',
        '\ufeff\n  {"options": [1]}  \n',
        '```json\n{"options": [1]}\n```',
        '```JSON\r\n{"options": [1]}\r\n```\r\n',
        '```\n{"options": [1]}\n```',
        '~~~json\n{"options": [1]}\n~~~',
        'Sure! Here is the reply:\n\n```json\n{"options": [1]}\n```\n\nLet me know if {this} helps.',
        'Sure, in {braces}: {"options": [1]} and that is all.',
        '```json\n{"options": [1]}',
        '<think>A draft: {"options": [2]}\n```json\n{}\n```</think>\n{"options": [1]}',
        'First I thought {"options": [2]}.\n</think>\n\n{"options": [1]}',
        '<think></think><reasoning>more</reasoning>{"options": [1]}',
        'The kernel so far:\n```metal\nfloat x = 1;\n```\nand so:\n```json\n{"options": [1]}\n```',
        '```json\n{"options": [1]}\n```\nOnce more:\n```json\n{"options": [1]}\n```',
        '{\n  "options": [\n    1\n  ]\n}\n```',
    ],
)
def test_one_object_is_found_whatever_stands_around_it(text: str):
    assert read(text) == {"options": [1]}


def test_fences_and_tags_within_a_string_are_its_content():
    said = {"why": "use <think>\n```json\n{}\n```\n</think> here"}
    assert read(json.dumps(said)) == said
    assert read(f"```json\n{json.dumps(said, indent=1)}\n```") == said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "The reply is empty: there is no answer in it."),
        ("<think>done</think>  ", "The reply is empty: there is no answer in it."),
        ("<think>let me see", "The reply ends within its reasoning: there is no answer after it."),
        ("I can't help with that.", "There is no JSON object in the reply; it must be one JSON object, { ... }."),
        ('[{"title": "a"}]', "The reply is a JSON list; it must be one JSON object, { ... }."),
        ("```json\n[1]\n```", "The reply is a JSON list; it must be one JSON object, { ... }."),
        (
            '```json\n{"options": []}\n```\nor\n```json\n{"options": [1]}\n```',
            "The reply has 2 JSON blocks; give one, with everything in it.",
        ),
        (
            '{"options": [1,\n 2,\n]}',
            "The JSON does not read at line 3, column 1: a comma stands before ']'; leave it out.",
        ),
        (
            '{"options": [], }',
            "The JSON does not read at line 1, column 17: a comma stands before '}'; leave it out.",
        ),
        (
            "{'options': []}",
            'The JSON does not read at line 1, column 2: text must stand in straight double quotes, not in "\'".',
        ),
        (
            "{options: []}",
            "The JSON does not read at line 1, column 2: a key in double quotes should stand where there is "
            '"options: []}".',
        ),
        (
            '{"why": “wide”}',
            'The JSON does not read at line 1, column 9: text must stand in straight double quotes, not in "\\u201c".',
        ),
        (
            '{"a": 1 "b": 2}',
            "The JSON does not read at line 1, column 9: a comma or a closing bracket should stand where there is "
            '"\\"b\\": 2}".',
        ),
        (
            '{"a": True}',
            "The JSON does not read at line 1, column 7: write true for True.",
        ),
        ('{"a": None}', "The JSON does not read at line 1, column 7: write null for None."),
        (
            '{"a": 1, // one\n "b": 2}',
            "The JSON does not read at line 1, column 10: JSON has no comments; leave it out.",
        ),
        (
            '{"why": "one\ntwo"}',
            "The JSON does not read at line 1, column 13: a string has a line break or another control character in "
            "it; write \\n for a line break.",
        ),
        (
            '{"source": "a \\% b"}',
            "The JSON does not read at line 1, column 15: a backslash begins no escape of JSON there; write \\\\ for "
            "a backslash.",
        ),
        (
            '{"options": [{"title": "Half4", "why": "Fewer lo',
            "The JSON does not read at line 1, column 40: the reply ends in the middle of the object, after "
            '"le\\": \\"Half4\\", \\"why\\": \\"Fewer lo".',
        ),
        (
            '```json\n{"options": [{"title": "Half4"},\n```',
            "The JSON does not read at line 1, column 33: the reply ends in the middle of the object, after "
            '"options\\": [{\\"title\\": \\"Half4\\"},".',
        ),
        ('{"a": 1, "a": 2}', 'The key "a" stands twice in one JSON object; give it once.'),
        ('{"a": {"b": 1, "b": 1}}', 'The key "b" stands twice in one JSON object; give it once.'),
        ('{"a": NaN}', "The reply has the value NaN: NaN and Infinity are no numbers of JSON."),
        ('{"a": -Infinity}', "The reply has the value -Infinity: NaN and Infinity are no numbers of JSON."),
        ('{"a": 1e400}', 'The number "1e400" of the reply is too large.'),
        ('{"a": 1}}', 'After the end of the JSON object stands "}": nothing may follow its last brace.'),
        (
            '{"a": 1}\n{"b": 2}',
            'After the end of the JSON object stands "{\\"b\\": 2}": nothing may follow its last brace.',
        ),
        ('{"a": "\\ud83d"}', "A string of the reply has a \\u escape that is half of a character."),
    ],
)
def test_json_that_does_not_read_is_told_exactly(text: str, told: str):
    assert complaint(text) == told


@pytest.mark.parametrize(
    ("before", "repeated", "after"),
    [
        ("a", "\n", ""),
        ("a", " ", "b"),
        ("```", "a", "`"),
        ("", "`", "a`"),
        ("a\n", "{ ", ""),
        ("", "<think>", ""),
        ('{"a": "', "\\\\", ""),
    ],
)
def test_a_long_reply_is_refused_in_time_that_grows_with_its_length(before: str, repeated: str, after: str):
    # Anything that goes over the text again for each of its characters would take hours here.
    assert complaint(before + repeated * (390_000 // len(repeated)) + after)


@pytest.mark.parametrize(
    ("repeated", "count", "told"),
    [
        ("x", 400_001, "The reply has 400001 characters; at most 400000 are read."),
        ('{"a": ', 5000, "The JSON of the reply is nested too deep."),
    ],
)
def test_what_is_too_much_is_told_exactly(repeated: str, count: int, told: str):
    assert complaint(repeated * count) == told


def test_a_number_of_too_many_digits_is_refused():
    assert complaint('{"a": ' + "9" * 5000 + "}") == "A number of the reply has 5000 digits."


def test_blocks_are_told_from_what_stands_around_them():
    blocks, outside = blocks_in("a\n````md\n```\nx\n```\n````\nb\n~~~ metal\ny")
    assert [(block.language, block.text, block.closed) for block in blocks] == [
        ("md", "```\nx\n```", True),
        ("metal", "y", False),
    ]
    assert outside == "a\nb"


PIECES = st.text(max_size=3) | st.sampled_from(
    ["{", "}", "[", "]", '"', "'", ",", ":", "\\", "\n", "```", "```json\n", "\n```\n", "<think>", "</think>", "1", "a"]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_text_raises_anything_but_the_one_error(text: str):
    try:
        found = read(text)
    except MalformedReply as refusal:
        assert str(refusal).isprintable()
    else:
        assert isinstance(found, dict)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.booleans(), max_size=5))
def test_every_object_comes_back_from_a_block(said: dict):
    if all(abs(value) < 10**30 for value in said.values() if isinstance(value, int)):
        assert read(f"So:\n```json\n{json.dumps(said)}\n```\nDone.") == said
