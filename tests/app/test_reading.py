"""What is shown of a model's reply: folded rows, JSON laid out, and how predictions came out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ksearch_tui.reading import as_it_comes, as_it_is, laid_out
from ksearch_tui.widgets.folded import Folded, fold
from ksearch_tui.widgets.record_table import plot, record_table
from ksearch_tui.wording import count, dollars, verdict
from search.track_record import PROPOSES, WRITES, TrackRecord

LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Mn", "Me", "Mc"], exclude_characters="\n")


def test_a_line_is_parted_between_words_where_that_wastes_little():
    assert fold("one two three four", 10) == ["one two ", "three four"]
    assert fold("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
    assert fold("", 10) == [""]


@given(st.text(LETTERS, max_size=400), st.integers(2, 30))
def test_rows_fit_and_together_are_the_line(text, width):
    rows = fold(text, width)
    assert "".join(rows) == text
    assert all(cell_len(row) <= width for row in rows)


@given(st.lists(st.text(LETTERS | st.just("\n"), max_size=60), max_size=12), st.integers(2, 30))
def test_text_that_comes_in_pieces_is_folded_as_if_it_came_at_once(pieces, width):
    folded = Folded(width, as_it_is)
    for piece in pieces:
        before = list(folded.rows)
        first = folded.add(piece)
        assert folded.rows[:first] == before[:first]
    whole = as_it_is("".join(pieces))[0]
    assert folded.rows == [row for line in whole.split("\n") for row in fold(line, width)]


def test_a_long_line_is_folded_in_time_that_grows_with_its_length_only():
    assert len(fold("x" * 1_000_000, 50)) == 20_000


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_escapes_are_read_wherever_the_pieces_are_cut(size):
    text = r'{"source": "a\n\tb \"c\" \\n d\u001b"}'
    folded = Folded(80, as_it_comes)
    for start in range(0, len(text), size):
        folded.add(text[start : start + size])
    assert folded.rows[0] == '{"source": "a'
    assert folded.rows[1].strip() == r'b "c" \n d\u001b"}'


def test_json_is_laid_out_with_a_kernel_as_lines():
    reply = {"passes": [{"name": "main", "grid": [32], "source": "a;\n  b;"}], "comment": "", "done": True}
    assert laid_out(json.dumps(reply)).split("\n") == [
        "",
        "  passes:",
        "    1:",
        "      name: main",
        "      grid: [32]",
        "      source:",
        "        a;",
        "          b;",
        "  comment: ",
        "  done: true",
    ]


def test_what_is_no_json_stays_as_it_is_and_inert():
    assert laid_out('{"a": \x1b[31m') == '{"a": ␛[31m'
    deep = "[" * 100_000
    assert laid_out(deep) == deep
    assert laid_out('{"\\u001b[2J": "\\u202e"}') == "\n  ␛[2J: �"


def test_a_record_says_bias_and_typical_error_as_factors():
    record = TrackRecord(PROPOSES, "small", (0.5, 0.5, 2.0, 0.5))
    assert verdict(record) == "found 0.71× of predicted, off by 2.00×"


def test_the_table_fits_a_narrow_tab_and_has_a_plot_in_a_wide_one():
    records = [TrackRecord(PROPOSES, "m" * 60, (0.5,)), TrackRecord(WRITES, "[/b]", (1.0, 1.0))]
    narrow = record_table(records, 78).plain.split("\n")
    assert len(narrow) == 2
    assert all(cell_len(line) <= 78 for line in narrow)
    assert narrow[1].startswith("[/b] writes ")
    assert narrow[1].endswith("found 1.00× of predicted, off by 1.00× (n=2)")
    assert "│" in record_table(records, 140).plain


def test_the_plot_has_one_in_the_middle_and_what_lies_outside_at_the_edge():
    assert plot((1.0, 1.0, 4.0, 100.0, 0.01, 0.5)) == "▄···▄···█·······█"
    assert plot((2.0,)) == "········│···█····"


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0"), (999, "999"), (1000, "1k"), (18_240, "18.2k"), (999_600, "1M"), (1_250_000, "1.25M")]
)
def test_counts_are_said_shortly(number, said):
    assert count(number) == said


@pytest.mark.parametrize(
    ("usd", "said"), [(0, "$0.00"), (0.00001, "<$0.0001"), (0.0042, "$0.0042"), (0.1234, "$0.12"), (12.5, "$12.50")]
)
def test_small_amounts_are_told_from_nothing(usd, said):
    assert dollars(usd) == said
