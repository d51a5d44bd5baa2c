"""A run put together from its settings."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from profiles.hardware import ProfileError
from search.assembly import cuda_hints, open_run, proposer_names
from search.config import RunConfig
from search.engine import EngineError
from search.problems.definition import ProblemError, load_problem


async def test_a_run_has_its_problem_profile_and_proposer() -> None:
    engine = await open_run(RunConfig("softmax", profile="apple-m1"))
    assert engine.problem.name == "softmax"
    assert engine.profile.name == "apple-m1"
    assert engine.tree.events == []


async def test_it_goes_on_with_the_tree_that_it_is_given(grower: Any) -> None:
    grower.option("root")
    engine = await open_run(RunConfig("softmax"), tree=grower.tree)
    assert engine.tree is grower.tree


@pytest.mark.parametrize(
    ("config", "error", "told"),
    [
        (RunConfig("softmax", proposer="catalog"), EngineError, "unknown proposer 'catalog': there is catalogue"),
        (RunConfig("softmaxx"), ProblemError, "did you mean 'softmax'?"),
        (RunConfig("softmax", profile="apple-m3-maxx"), ProfileError, "did you mean 'apple-m3-max"),
    ],
)
async def test_what_is_not_there_is_said_with_what_is(config: RunConfig, error: type[Exception], told: str) -> None:
    with pytest.raises(error) as refused:
        await open_run(config)
    assert told in str(refused.value)


def test_the_proposers_are_listed() -> None:
    assert "catalogue" in proposer_names()


def test_hints_say_which_cuda_file_and_line_shows_them() -> None:
    hints = cuda_hints(load_problem("softmax"))
    assert "shuffle" in hints or "warp_reduce" in hints
    for place in hints.values():
        assert re.match(r"[\w.]+\.cu:\d+", place), place


@pytest.mark.parametrize("module", ["search.engine", "search.assembly"])
def test_importing_the_engine_is_light(module: str) -> None:
    heavy = ("mlx", "mlx.core", "textual", "rich", "tree_sitter", "openai")
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
