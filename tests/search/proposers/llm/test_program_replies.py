"""Programs in replies: as JSON or as one block of Metal, and what is told of those that can't be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.program import Buffer, Pass, Program
from search.kernels.text import program_from_text, program_to_text
from search.proposers.llm.program_replies import WrittenProgram, read_program
from search.proposers.llm.reply_text import MalformedReply

METAL = """//@ buffer partial [rows, 4] float32
//@ pass sums
//@ inputs x
//@ outputs partial
//@ grid 32; rows; 1
//@ threadgroup 32; 1; 1
//@ template T = T; N = n; WIDE = true; STEP = 4
//@ init -inf
//@ header
inline float twice(float v) { return 2 * v; }
//@ source
partial[0] = twice(float(x[0]));
//@ pass last
//@ inputs partial
//@ outputs y
//@ grid rows; 1; 1
//@ threadgroup 64; 1; 1
//@ init 0
//@ atomic_outputs
//@ source
y[0] = partial[0];"""


def step(**changes: Any) -> dict[str, Any]:
    said = {
        "name": "main",
        "inputs": ["x"],
        "outputs": ["y"],
        "grid": ["rows", 32],
        "threadgroup": [32],
        "template": [],
        "header": "",
        "source": "y[0] = x[0];",
        "init_value": None,
        "atomic_outputs": False,
    }
    return {key: value for key, value in {**said, **changes}.items() if value is not ...}


def said(*steps: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"passes": list(steps) or [step()], "buffers": [], "comment": "c", "followed": "", **changes})


def complaint(text: str, **more: Any) -> str:
    with pytest.raises(MalformedReply) as refused:
        read_program(text, **more)
    return str(refused.value)


def test_a_program_as_json_is_the_program_that_it_says():
    written = read_program(said(step(template=[{"name": "N", "value": "n"}, {"name": "T", "value": "T"}])))
    expected = Pass(
        "main", ("x",), ("y",), "y[0] = x[0];", ("rows", "32", "1"), ("32", "1", "1"), "", (("N", "n"), ("T", "T"))
    )
    assert written == WrittenProgram(Program((expected,)), "c", "")


def test_a_comment_may_have_signs_beyond_ascii():
    source = "y[0] = x[0]; // 2 × faster → done"
    assert read_program(said(step(source=source))).program.passes[0].source == source


def test_both_forms_of_one_program_have_one_hash():
    first = step(
        name="sums",
        outputs=["partial"],
        grid=[32, "rows", 1],
        threadgroup=[32, 1, 1],
        template=[
            {"name": "T", "value": "T"},
            {"name": "N", "value": "n"},
            {"name": "WIDE", "value": True},
            {"name": "STEP", "value": "4"},
        ],
        header="inline float twice(float v) { return 2 * v; }\n",
        source="\npartial[0] = twice(float(x[0]));\r\n",
        init_value="-inf",
    )
    last = step(
        name="last",
        inputs=["partial"],
        grid=["rows"],
        threadgroup=["64"],
        source="y[0] = partial[0];",
        init_value=0,
        atomic_outputs=True,
    )
    as_json = said(first, last, buffers=[{"name": "partial", "shape": ["rows", 4], "dtype": "float32"}])
    as_metal = f"Comment: c\n\n```metal\n{METAL}\n```"
    assert read_program(as_json) == read_program(as_metal)
    assert read_program(as_json).program.sha256 == program_from_text(METAL).sha256
    assert read_program(as_json).program.buffers == (Buffer("partial", ("rows", "4"), "float32"),)
    assert program_to_text(read_program(as_json).program) == f"{METAL}\n"


@pytest.mark.parametrize("language", ["metal", "cpp", "c++", "", "Metal"])
def test_a_block_of_metal_is_taken_whatever_it_is_called(language: str):
    written = read_program(
        f"Comment: one\nline more\n**Followed:** as asked\n```{language}\n{METAL}\n```\n", guided=True
    )
    assert (written.comment, written.followed) == ("one line more", "as asked")
    assert written.program == program_from_text(METAL)


def test_prose_without_a_label_is_the_comment():
    written = read_program(f"<think>hm</think>Here is a\x1b[2J faster one.\n```metal\n{METAL}\n```")
    assert written.comment == "Here is a [2J faster one."


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"source": ""}, "passes[0].source: it is empty; the body of the kernel must stand there."),
        ({"source": "\n \n"}, "passes[0].source: it is empty; the body of the kernel must stand there."),
        ({"source": ...}, "passes[0].source is missing."),
        (
            {"source": "```metal\ny[0] = 1;\n```"},
            "passes[0].source: line 1 is a Markdown fence; give the Metal alone.",
        ),
        (
            {"source": "y[0] = 1;\n//@ pass two"},
            "passes[0].source: line 2 begins with //@, which only the text form of a program has.",
        ),
        (
            {"source": "y[0] = 1;\ny[0] = 2 × x[0];"},
            'passes[0].source: line 2 has the character "\\u00d7"; only comments may have more than plain ASCII.',
        ),
        (
            {"header": "// \x1b[2J"},
            'passes[0].header: line 1 has the character "\\u001b"; only comments may have more than plain ASCII.',
        ),
        (
            {"name": "my kernel"},
            'passes[0].name is "my kernel"; it must be a name of letters, digits and _.',
        ),
        ({"outputs": []}, "passes[0].outputs has 0 entries; it must have at least 1."),
        (
            {"grid": ["rows * "]},
            'passes[0].grid[0] is "rows * "; it must be a whole number or an expression over axes in a string.',
        ),
        (
            {"grid": ["__import__('os')"]},
            "passes[0].grid[0] is \"__import__('os')\"; it must be a whole number or an expression over axes in a "
            "string.",
        ),
        (
            {"grid": [32.5]},
            "passes[0].grid[0] is 32.5; it must be a whole number or an expression over axes in a string.",
        ),
        ({"grid": [1, 2, 3, 4]}, "passes[0].grid has 4 entries; it may have at most 3."),
        ({"grid": "rows"}, 'passes[0].grid is "rows"; it must be a list.'),
        (
            {"template": [{"name": "N", "value": 1.5}]},
            "passes[0].template[0].value is 1.5; it must be a whole number, true, false, a dtype, a dtype variable, or "
            "an expression over axes in a string.",
        ),
        (
            {"init_value": "zero"},
            'passes[0].init_value is "zero"; it must be a number, "inf", "-inf", or null.',
        ),
        ({"atomic_outputs": "no"}, 'passes[0].atomic_outputs is "no"; it must be true or false.'),
        (
            {"seconds": 1e-6},
            "passes[0].seconds can't be given: leave it out. Ids of new options, statuses, evaluations, tolerances and "
            "baselines are not the model's to say.",
        ),
    ],
)
def test_a_wrong_pass_is_told_with_its_place(changes: dict[str, Any], told: str):
    assert complaint(said(step(**changes))) == told


def test_a_kernel_of_too_many_characters_is_refused():
    told = "passes[0].source: it has 60001 characters; at most 60000 are allowed."
    assert complaint(said(step(source="x" * 60_001))) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (said(step(), step()), "Two passes are called main; give each its own name."),
        (said(passes=[]), "passes has 0 entries; it must have at least 1."),
        (
            said(tolerance=1),
            "tolerance can't be given: leave it out. Ids of new options, statuses, evaluations, tolerances and "
            "baselines are not the model's to say.",
        ),
        (
            f"```metal\n{METAL}\n```\nor\n```metal\n{METAL}\n```",
            "The reply has 2 programs; give one, whole, in one ```metal block.",
        ),
        (
            f"```metal\n{METAL}\n```\n```json\n{{}}\n```",
            "The reply has a JSON block and a ```metal block; give one, with everything in it.",
        ),
        (f"```metal\n{METAL}", "The ```metal block has no end: the reply was cut off, or the closing ``` is missing."),
        (
            "```metal\nkernel void f() {}\n```",
            "The ```metal block does not read: line 1: expected a '//@' line such as '//@ source' before the kernel.",
        ),
        (
            "```metal\n//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n```",
            "The ```metal block does not read: pass 'a' (line 1): '//@ source' is missing or empty.",
        ),
        (
            "```metal\n//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n//@ tolerance 1\n//@ source\nx\n```",
            "The ```metal block does not read: line 5: unknown directive '//@ tolerance'.",
        ),
        (
            "```metal\n//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n//@ source\né\n```",
            'passes[0].source: line 1 has the character "\\u00e9"; only comments may have more than plain ASCII.',
        ),
        (
            "```metal\n//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n//@ init nan\n//@ source\nx\n```",
            'passes[0].init_value is NaN; it must be a number, "inf", "-inf", or null.',
        ),
        ("y[0] = x[0];", "There is no JSON object in the reply; it must be one JSON object, { ... }."),
    ],
)
def test_a_wrong_reply_is_told_exactly(text: str, told: str):
    assert complaint(text) == told


def test_where_a_person_gave_guidance_the_reply_must_say_how_it_followed():
    wanted = "followed is empty; say in one or two sentences how you followed the person's guidance."
    assert complaint(said(), guided=True) == wanted
    assert complaint(f"```metal\n{METAL}\n```", guided=True) == wanted


LINES = st.sampled_from([*METAL.split("\n"), "```", "```metal", "```json", "{", "}", "//@ init nan", "//@", "Comment:"])


@given(st.lists(LINES | st.text(max_size=12), max_size=30).map("\n".join))
def test_no_text_raises_anything_but_the_one_error(text: str):
    try:
        written = read_program(text)
    except MalformedReply as refusal:
        assert str(refusal)
    else:
        assert program_from_text(program_to_text(written.program)) == written.program


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=4))


@given(st.dictionaries(st.sampled_from(sorted(step())), VALUES, max_size=4))
def test_no_pass_raises_anything_but_the_one_error(changes: dict[str, Any]):
    try:
        written = read_program(said(step(**changes)))
    except MalformedReply as refusal:
        assert str(refusal)
    else:
        assert program_from_text(program_to_text(written.program)).sha256 == written.program.sha256
