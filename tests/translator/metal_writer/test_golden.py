"""Ten translations as a person read them: what the writer makes of these files changes only on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from search.kernels.text import program_to_text
from search.kernels.translated import program_of
from translator.cuda_source import parse_cuda
from translator.launches import read_launches
from translator.metal_writer import write_metal

CORPUS = Path(__file__).parents[2] / "corpus" / "cuda"
GOLDEN = sorted((CORPUS / "golden").glob("*.metal"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_translation_is_the_one_that_was_read(golden: Path) -> None:
    source = parse_cuda((CORPUS / f"{golden.stem}.cu").read_text(encoding="utf-8"), f"{golden.stem}.cu")
    translation = write_metal(source, read_launches(source))
    assert program_to_text(program_of(translation)) == golden.read_text(encoding="utf-8")


def test_there_are_ten() -> None:
    assert len(GOLDEN) == 10
