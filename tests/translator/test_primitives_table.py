"""The table from CUDA to Metal: every row is sound, and a row that isn't is refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from translator.inventory import PATTERNS
from translator.primitives import KINDS, Primitive, TableError, load_primitives, read_primitives

ROW = """
[[primitive]]
id = "shfl"
category = "warp"
cuda = "__shfl_sync(m, v, s)"
match = { call = ["__shfl_sync"], arguments = [3, 3] }
metal = "simd_shuffle(v, s)"
example = "y[i] = simd_shuffle(v, ushort(0));"
kind = "direct"
trap = ""
"""


def test_ids_are_unique_and_names():
    ids = [primitive.id for primitive in load_primitives()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", id) for id in ids)


@pytest.mark.parametrize("primitive", load_primitives(), ids=lambda primitive: primitive.id)
def test_a_row_says_what_to_do_and_what_goes_wrong(primitive):
    assert primitive.kind in KINDS
    assert primitive.cuda
    assert primitive.trap or primitive.kind == "direct"
    assert bool(primitive.metal) or primitive.kind in ("drop", "unsupported")
    assert not primitive.metal or primitive.kind != "unsupported"
    assert primitive.pattern in {"", *PATTERNS}


def test_every_example_compiles_as_metal(compile_piece):
    # All in one kernel, a block each: compiled alone they would take a minute.
    rows = [primitive for primitive in load_primitives() if primitive.example]
    assert len(rows) > 100
    compile_piece("".join(f"{{  // {primitive.id}\n{primitive.example}\n}}\n" for primitive in rows))


def test_an_example_uses_the_words_of_its_metal_text():
    for primitive in load_primitives():
        words = set(re.findall(r"[a-z]\w{3,}", primitive.metal))
        if primitive.example and not primitive.prose:
            assert not words or any(word in primitive.example for word in words), primitive.id


def test_texts_are_plain_ascii_because_mlx_takes_no_other_source():
    assert all(primitive.metal.isascii() for primitive in load_primitives())


def test_no_word_is_claimed_twice_but_by_argument_count():
    owners: dict[tuple[str, str], list[Primitive]] = {}
    for primitive in load_primitives():
        for word in primitive.words:
            owners.setdefault((primitive.match, word), []).append(primitive)
    twice = {key: rows for key, rows in owners.items() if len(rows) > 1}
    assert all(rows[0].arguments != rows[-1].arguments for rows in twice.values()), twice.keys()


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str) -> tuple[Primitive, ...]:
        path = tmp_path / "table.toml"
        path.write_text(text)
        return read_primitives(path)

    return read


def test_a_row_is_read(read):
    (primitive,) = read(ROW)
    assert (primitive.match, primitive.words, primitive.arguments) == ("call", ("__shfl_sync",), (3, 3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "direct"', 'kind = "easy"', "kind 'easy' is none of direct, idiom, rewrite, drop, unsupported"),
        ('category = "warp"', 'category = "wrap"', "category 'wrap' is none of"),
        ('kind = "direct"', 'kind = "idiom"', "a row of kind idiom must say what to watch for in trap"),
        ('trap = ""', "", "trap is missing"),
        ('trap = ""', 'trap = ""\nnote = ""', "unknown key 'note'"),
        ('example = "y[i] = simd_shuffle(v, ushort(0));"', "", "a row of kind direct has an example, or says prose"),
        ('trap = ""', 'trap = ""\nprose = 1', "prose must be true or false"),
        ('trap = ""', "trap = 3", "trap must be a text"),
        ("call =", "calls =", "match must have one key of call, name"),
        ('["__shfl_sync"]', '"__shfl_sync"', "match.call must be a list of texts"),
        ("[3, 3]", "[3]", "match.arguments must be [least, most]"),
        ('call = ["__shfl_sync"], arguments = [3, 3]', "asm = ['(']", "match.asm '(': missing )"),
        ('call = ["__shfl_sync"], arguments = [3, 3]', 'launch = "moon"', "match.launch 'moon' is none of host"),
    ],
)
def test_a_row_that_is_not_right_is_named(read, old, new, message):
    with pytest.raises(TableError) as error:
        read(ROW.replace(old, new))
    assert "table.toml: primitive 'shfl': " in str(error.value)
    assert message in str(error.value)


def test_two_rows_of_one_id_are_refused(read):
    with pytest.raises(TableError, match="there is another row with this id"):
        read(ROW + ROW)


@pytest.mark.parametrize("text", ["", "primitive = 3", "x = "])
def test_a_file_without_rows_is_refused(read, text):
    with pytest.raises(TableError, match=r"table\.toml"):
        read(text)
