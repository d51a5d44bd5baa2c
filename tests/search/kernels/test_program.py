"""Programs bind to workloads, keep their identity, and travel as text."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, Buffer, Pass, Program, ProgramError, bind
from search.kernels.text import parse_program_text, program_from_text, program_to_text

SUM = Pass(
    name="partial",
    inputs=("x",),
    outputs=("part",),
    source="part[thread_position_in_grid.x] = x[thread_position_in_grid.x];",
    grid=("ceildiv(n, 32) * 32", "rows", "1"),
    threadgroup=("32", "1", "1"),
    header="inline float twice(float v) { return 2 * v; }",
    template=(("T", "T"), ("N", "n"), ("FAST", True), ("K", 4), ("U", "float16")),
)
FINISH = Pass("finish", ("part",), ("y",), "y[0] = part[0];", ("rows", "1", "1"), ("1", "1", "1"))
PROGRAM = Program((SUM, FINISH), (Buffer("part", ("rows", "ceildiv(n, 32)"), "float32"),))
FLOAT = DTYPES["float32"]
ARRAYS = {"x": ArraySpec("x", (2, 33), FLOAT), "y": ArraySpec("y", (2,), FLOAT)}


def bound_with(program: Program):
    return bind(program, ARRAYS, ("y",), {"rows": 2, "n": 33}, {"T": "bfloat16"})


def test_binding_replaces_every_expression() -> None:
    first, second = bound_with(PROGRAM).passes
    assert first.grid == (64, 2, 1)
    assert first.template == (
        ("T", DTYPES["bfloat16"]), ("N", 33), ("FAST", True), ("K", 4), ("U", DTYPES["float16"]),
    )  # fmt: skip
    assert first.outputs == (ArraySpec("part", (2, 2), FLOAT),)
    assert first.outputs[0].nbytes == 16
    assert second.inputs == first.outputs


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"inputs": ("z",)}, "reads 'z', which is no array"),
        ({"inputs": ("y",)}, "reads 'y' before any pass has written it"),
        ({"outputs": ("x",)}, "writes 'x', which is no output"),
        ({"grid": ("n - 33", "1", "1")}, "it must be at least 1"),
        ({"grid": ("m", "1", "1")}, "no axis named 'm'"),
        ({"threadgroup": ("n", "32", "1")}, "1056 threads in a threadgroup; Metal allows 1024"),
        ({"template": (("T", "float63"),)}, "no axis named 'float63'"),
    ],
)
def test_a_program_that_cannot_be_launched_is_refused_with_the_pass(change: dict, complaint: str) -> None:
    with pytest.raises(ProgramError, match=complaint):
        bound_with(replace(PROGRAM, passes=(replace(SUM, **change), FINISH)))


def test_a_device_gets_ascii_where_a_comment_has_more() -> None:
    source = "part[0] = x[0]; // 2 × faster → ok\n/* é */ part[1] = '\\'' > '×';"
    first, _ = bound_with(replace(PROGRAM, passes=(replace(SUM, source=source, header="// ≤\x1b"), FINISH))).passes
    assert first.source == "part[0] = x[0]; // 2 _ faster _ ok\n/* _ */ part[1] = '\\'' > '×';"
    assert first.header == "// _\x1b"


def test_an_output_that_no_pass_writes_is_refused() -> None:
    with pytest.raises(ProgramError, match="no pass writes the output 'y'"):
        bound_with(replace(PROGRAM, passes=(SUM,)))


@pytest.mark.parametrize("again", [replace(SUM, name="again"), replace(SUM, name="again", inputs=("part",))])
def test_an_array_that_two_passes_write_is_refused(again: Pass) -> None:
    # MLX would hand the second pass an array of its own; what the first one wrote would be gone.
    with pytest.raises(ProgramError, match="pass 'again' writes 'part' again"):
        bound_with(replace(PROGRAM, passes=(SUM, again, FINISH)))


def test_a_buffer_may_not_take_the_name_of_an_array() -> None:
    with pytest.raises(ProgramError, match="has the name of an array"):
        bound_with(replace(PROGRAM, buffers=(Buffer("x", ("1",), "float32"),)))


def test_the_hash_follows_source_and_launch() -> None:
    assert Program.from_json(PROGRAM.to_json()) == PROGRAM
    other_launch = replace(PROGRAM, passes=(replace(SUM, grid=("64", "rows", "1")), FINISH))
    assert len({PROGRAM.sha256, other_launch.sha256, replace(PROGRAM, buffers=()).sha256}) == 3


COUNTS = replace(FINISH, inputs=("x",), init_value=-0.5, atomic_outputs=True)


def test_the_hash_of_a_program_without_initial_values_or_atomics_is_what_it_was_before_they_were_known() -> None:
    # SHA-256 of the JSON as it was stored then, worked out with sha256sum.
    stored = (
        '{"buffers":[],"passes":[{"grid":["1","1","1"],"header":"","inputs":["x"],"name":"p","outputs":["y"],'
        '"source":"y[0] = x[0];","template":[],"threadgroup":["1","1","1"]}]}'
    )
    program = Program.from_json(stored)
    assert program.passes[0] == Pass("p", ("x",), ("y",), "y[0] = x[0];", ("1", "1", "1"), ("1", "1", "1"))
    assert program.to_json() == stored
    assert program.sha256 == "96573afab96c338c49d3971fa280e8ad7a231fb68bcf703a65512a90d6fe9473"


def test_initial_values_and_atomics_are_stored_hashed_and_bound() -> None:
    program = Program((COUNTS,))
    assert json.loads(program.to_json())["passes"][0]["init_value"] == -0.5
    assert Program.from_json(program.to_json()) == program
    plain = Program((replace(COUNTS, init_value=None),))
    assert len({program.sha256, plain.sha256, Program((replace(COUNTS, atomic_outputs=False),)).sha256}) == 3
    (step,) = bound_with(program).passes
    assert (step.init_value, step.atomic_outputs) == (-0.5, True)


def test_a_whole_initial_value_is_the_same_program_as_int_or_float() -> None:
    assert Program((replace(COUNTS, init_value=0),)).sha256 == Program((replace(COUNTS, init_value=0.0),)).sha256


@pytest.mark.parametrize(
    ("dtype", "init_value", "complaint"),
    [
        ("float16", 0.0, "'y' is float16, and atomic_outputs needs float32, int32, uint32"),
        ("int32", 0.5, "'y' is int32, and 0.5 is no whole number that float32 holds exactly"),
        ("int32", 16777217.0, "is no whole number that float32 holds exactly"),
        ("int32", float("-inf"), "-inf is no whole number"),
        ("float32", float("nan"), "can't be told from an output that nobody wrote"),
    ],
)
def test_an_initial_value_that_the_outputs_cannot_have_is_refused(dtype: str, init_value: float, complaint: str):
    arrays = {**ARRAYS, "y": ArraySpec("y", (2,), DTYPES[dtype])}
    program = Program((replace(COUNTS, init_value=init_value),))
    with pytest.raises(ProgramError, match=complaint):
        bind(program, arrays, ("y",), {"rows": 2, "n": 33}, {})


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"passes": [1], "buffers": []}', "null"])
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match="not a stored program"):
        Program.from_json(text)


@pytest.mark.parametrize("field", ["name", "inputs", "outputs", "source", "header", "grid", "threadgroup", "template"])
def test_a_stored_program_with_a_number_for_a_name_or_an_expression_is_refused(field: str) -> None:
    stored = json.loads(PROGRAM.to_json())
    whole = stored["passes"][0][field]
    numbers = {"inputs": [1], "outputs": [1], "grid": ["1", 1, "1"], "threadgroup": ["1", 1, "1"], "template": [[1, 2]]}
    stored["passes"][0][field] = numbers.get(field, 1)
    with pytest.raises(ProgramError, match="a name or an expression that is not text"):
        Program.from_json(json.dumps(stored))
    stored["passes"][0][field] = whole
    stored["buffers"] = [{"name": "m", "shape": [3], "dtype": "float32"}]
    with pytest.raises(ProgramError, match="a name or an expression that is not text"):
        Program.from_json(json.dumps(stored))


def test_a_program_survives_the_editor() -> None:
    assert program_from_text(program_to_text(PROGRAM)) == PROGRAM


@pytest.mark.parametrize(("value", "spelled"), [(0.0, "0"), (-0.5, "-0.5"), (float("-inf"), "-inf"), (1e30, "1e+30")])
def test_initial_values_and_atomics_survive_the_editor(value: float, spelled: str) -> None:
    program = Program((replace(COUNTS, init_value=value),))
    text = program_to_text(program)
    assert f"//@ init {spelled}\n//@ atomic_outputs\n" in text
    assert program_from_text(text) == program


LINES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r")) | st.sampled_from(
    ["//@", "//@ source", "//@//@ pass evil", " //@ grid 1"]
)


@given(st.lists(LINES, min_size=1).map("\n".join))
def test_any_source_survives_the_editor(source: str) -> None:
    if not source.strip():
        return
    program = Program((replace(FINISH, inputs=("x",), source=source),))
    assert program_from_text(program_to_text(program)) == program


def test_the_file_says_where_each_source_begins() -> None:
    parsed = parse_program_text(program_to_text(PROGRAM))
    lines = program_to_text(PROGRAM).split("\n")
    assert lines[parsed.source_offsets["finish"]] == FINISH.source
    assert lines[parsed.header_offsets["partial"]] == SUM.header


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no '//@ pass NAME' line"),
        ("y[0] = 1;", "line 1: expected a '//@' line"),
        ("//@ grid 1", "line 1: '//@ grid' stands before"),
        ("//@ pass a b", "line 1: 'a b' is no name"),
        ("//@ pass a\n//@ blocks 3", "line 2: unknown directive '//@ blocks'"),
        ("//@ pass a\n//@ outputs y\n//@ grid 1\n//@ source\ny[0]=1;", "'//@ threadgroup' is missing"),
        ("//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n//@ source\n", "'//@ source' is missing or empty"),
        ("//@ pass a\n//@ outputs y\n//@ grid 1;2;3;4\n//@ threadgroup 1\n//@ source\ny", "there are 4 sizes"),
        ("//@ buffer b float32", "line 1: write '//@ buffer"),
        ("//@ pass a\n//@ atomic_outputs y", "line 2: '//@ atomic_outputs' stands alone"),
        (
            "//@ pass a\n//@ outputs y\n//@ grid 1\n//@ threadgroup 1\n//@ init zero\n//@ source\ny",
            "'//@ init' needs a number such as 0 or -inf, not 'zero'",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ProgramError, match=complaint.replace("[", r"\[")):
        program_from_text(text)


def test_a_short_launch_written_with_commas_is_padded_with_ones() -> None:
    program = program_from_text(
        "//@ pass a\n//@ outputs y\n//@ grid min(4, 8), 2\n//@ threadgroup 32\n//@ source\ny[0]=1;"
    )
    assert program.passes[0].grid == ("min(4, 8)", "2", "1")
    assert program.passes[0].threadgroup == ("32", "1", "1")
