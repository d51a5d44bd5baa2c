"""No text from a model or a file reaches the terminal as anything but text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ksearch_tui.inert import inert, one_line
from ksearch_tui.widgets.syntax import CUDA, METAL, coloured_lines


def test_control_characters_become_pictures():
    assert inert("\x1b[31mred\x07\x7f\r") == "␛[31mred␇␡␍"


def test_lines_are_kept_and_tabs_expanded():
    assert inert("a\tb\n\tc") == "a   b\n    c"


def test_marks_that_reorder_text_and_what_no_file_can_hold_are_replaced():
    assert inert("\u202ea\u2067b\ud800\x9b\uffff") == "�a�b���"


def test_one_line_joins_what_was_on_several():
    assert one_line(" a\n\n b\t\r c ") == "a b ␍ c"


@given(st.text(st.characters(codec=None)))
def test_nothing_active_is_left_of_any_text(text):
    shown = inert(text)
    shown.encode("utf-8")
    assert not [character for character in shown if unicodedata.category(character) == "Cc" and character != "\n"]


@given(st.text(max_size=200), st.sampled_from([METAL, CUDA]))
def test_colouring_changes_no_character(source, language):
    assert "\n".join(line.plain for line in coloured_lines(source, language)) == inert(source)


def test_metal_words_get_their_colours():
    [line] = coloured_lines("threadgroup half4 tile[32]; simd_sum(x);", METAL)
    coloured = {line.plain[span.start : span.end]: span.style for span in line.spans}
    assert coloured["threadgroup"] == "$text-accent"
    assert coloured["half4"] == "$text-primary"
    assert coloured["simd_sum"] == "$text-secondary"
    assert coloured["32"] == "$text-warning"
