"""The registry of actions, and a person's own keys over it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.binding import Binding

from ksearch_tui.keys import actions, bindings, user_keymap
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.replay import ReplayScreen


@pytest.mark.parametrize(
    ("screen", "places"), [(ExplorerScreen, ("explorer", "browse")), (ReplayScreen, ("replay", "browse"))]
)
def test_every_action_of_a_screen_can_be_done_and_no_key_but_esc_means_two(screen, places):
    keys = [key for action in actions(*places, "app") for key in action.keys.split(",")]
    twice = [key for key in keys if keys.count(key) > 1]
    # Esc breaks off what a model is asked, which is only there meanwhile, and goes back otherwise.
    assert twice == (["escape"] * 2 if screen is ExplorerScreen else [])
    for action in actions(*places):
        assert callable(getattr(screen, f"action_{action.call.split('(')[0]}"))


def test_a_number_at_the_end_of_a_name_is_the_actions_argument():
    [binding] = [b for b in bindings("browse") if isinstance(b, Binding) and b.id == "show_tab_3"]
    assert (binding.key, binding.action) == ("3", "show_tab(3)")


def test_without_a_file_there_are_no_own_keys(tmp_path):
    assert user_keymap(tmp_path / "keys.toml") == ({}, [])


def test_lines_that_cannot_be_used_are_said_and_the_others_taken(tmp_path: Path):
    path = tmp_path / "keys.toml"
    path.write_text('approve = "y,ctrl+a"\naprove = "z"\nprune = 3\nundo = ""\nfly = "f"\n', encoding="utf-8")
    keymap, problems = user_keymap(path)
    assert keymap == {"approve": "y,ctrl+a"}
    assert problems == [
        f"{path}: there is no action 'aprove': did you mean 'approve'?",
        f'{path}: \'prune\' needs keys as text, such as "a" or "ctrl+a,f5"',
        f'{path}: \'undo\' needs keys as text, such as "a" or "ctrl+a,f5"',
        f"{path}: there is no action 'fly': the help screen lists the names",
    ]


def test_a_file_that_is_no_toml_is_said_with_its_line(tmp_path: Path):
    path = tmp_path / "keys.toml"
    path.write_text("approve = y\n", encoding="utf-8")
    keymap, [problem] = user_keymap(path)
    assert keymap == {}
    assert "line 1" in problem
