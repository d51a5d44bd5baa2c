"""A server for all tests of this folder, and the two models that it knows: one babbles, one recites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from search.kernels.families import FAMILIES
from search.kernels.text import program_to_text
from search.proposers import llm
from tests.search.proposers.llm.asked import ANSWER
from tests.search.proposers.llm.mlx_lm_server.serving import MlxLmServer
from tests.search.proposers.llm.mlx_lm_server.tiny_model import ALWAYS, write_model
from tests.search.proposers.llm.playing import NO_CHANGE, first, option

TITLE = "Row per simdgroup – ½ of the rows at once"


def recited() -> dict[str, str]:
    """What the model that recites says, by words of the question."""
    softmax = FAMILIES["softmax"]
    faster = softmax.write(softmax.transformations["row_per_simdgroup"](softmax.start))
    plain = {"predicted": 0.1}  # nothing falls short of that, so nothing is to be improved
    titles = (TITLE, "Row per threadgroup", "One division per row")
    families = [
        {"name": f"family {number}", "options": [option(title, rating=9 - number, **plain)]}
        for number, title in enumerate(titles)
    ]
    return {
        "Begin the search.": fenced(first(families=families)),
        "Write the program of this option": f"Comment: By rows.\n```metal\n{program_to_text(faster)}```",
        "has a result now": fenced(NO_CHANGE),
        ALWAYS: fenced(ANSWER),
    }


def fenced(table: dict[str, object]) -> str:
    """``table`` as one fenced block of JSON."""
    return f"```json\n{json.dumps(table, ensure_ascii=False, indent=1)}\n```"


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folders of the model that babbles and of the one that recites."""
    prompts = Path(llm.__file__).parent / "prompts"
    corpus = [path.read_text(encoding="utf-8") for path in sorted(prompts.glob("*.md"))]
    folder = tmp_path_factory.mktemp("models")
    return write_model(folder / "babbling", corpus), write_model(folder / "reciting", corpus, recited())


@pytest.fixture(scope="session")
def mlx_lm_server(model_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlxLmServer]:
    """Return a running server whose default model babbles."""
    with MlxLmServer(model_folders[0], tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def reciting(model_folders: tuple[Path, Path]) -> str:
    """Return the name of the model that recites, which is its folder."""
    return str(model_folders[1])
