"""A run put together from its settings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiles.hardware import ProfileError
from search.assembly import cuda_hints, open_run, proposer_names, ready_proposer
from search.config import RunConfig
from search.engine import EngineError
from search.problems.definition import ProblemError, load_problem
from search.proposers.base import Connected
from tests.model_server.server import ModelServer


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
        (RunConfig("softmax", proposer="llm"), EngineError, "the proposer llm needs an endpoint: there is gemini"),
        (RunConfig("softmax", proposer="llm", endpoint="olama"), ProfileError, "did you mean 'ollama'?"),
        (RunConfig("softmax", proposer="llm", endpoint="ollama", context="all"), EngineError, "there is none, mapping"),
        (
            RunConfig("softmax", proposer="llm", endpoint="openai", generator="gpt-9", usd=5.0),
            EngineError,
            "no price is known for gpt-9 at OpenAI, so the limit of $5 can't be kept",
        ),
        (RunConfig("softmaxx"), ProblemError, "did you mean 'softmax'?"),
        (RunConfig("softmax", profile="apple-m3-maxx"), ProfileError, "did you mean 'apple-m3-max"),
    ],
)
async def test_what_is_not_there_is_said_with_what_is(config: RunConfig, error: type[Exception], told: str) -> None:
    with pytest.raises(error) as refused:
        await open_run(config)
    assert told in str(refused.value)


async def test_a_model_is_asked_for_only_when_its_key_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EngineError, match=r"OPENAI_API_KEY is not set.*--proposer catalogue"):
        await open_run(RunConfig("softmax", proposer="llm", endpoint="openai"))


async def test_the_models_of_an_endpoint_are_those_that_it_lists(model_server: ModelServer, tmp_path: Path) -> None:
    model_server.models = ("first", "second")
    profile = model_server.write_profile(tmp_path / "mine.toml")
    config = RunConfig("softmax", proposer="llm", endpoint=str(profile), generator="second")
    proposer = await ready_proposer(config)
    assert isinstance(proposer, Connected)
    assert proposer.name == "llm:first"
    assert model_server.asked == []
    await proposer.close()


def test_the_proposers_are_listed() -> None:
    assert proposer_names() == ["catalogue", "llm"]


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
