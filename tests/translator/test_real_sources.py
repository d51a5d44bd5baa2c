"""Sources of packages that people build (`make corpus`): read without a crash and all but without errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from translator.cuda_source import CudaSource, parse_cuda
from translator.inventory import take_inventory
from translator.launches import read_launches
from translator.mistakes import CudaInputError

CORPUS = Path(__file__).parent.parent.parent / "build" / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())

pytestmark = pytest.mark.skipif(not FILES, reason="the sources aren't fetched: run 'make corpus'")


def error_bytes(source: CudaSource) -> int:
    """Return how many bytes are in ERROR nodes, each counted once."""
    total = end = 0
    for node in source.nodes_of("ERROR"):
        if node.start_byte >= end:
            end = node.end_byte
            total += node.end_byte - node.start_byte
    return total


def test_less_than_half_a_percent_of_the_bytes_is_not_understood():
    sources = [parse_cuda(path.read_text(encoding="utf-8"), path.name) for path in FILES]
    assert sum(map(error_bytes, sources)) < 0.005 * sum(len(source.text) for source in sources)
    assert sum(len(source.kernels) for source in sources) >= 7


def test_the_inventory_covers_every_source_with_a_kernel(record_property):
    for path in FILES:
        source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
        if source.kernels:
            inventory = take_inventory(source)
            record_property(path.name, f"coverage {inventory.coverage:.0%} of {len(inventory.occurrences)}")
            assert 0.5 < inventory.coverage <= 1


def test_every_launch_says_how_many_threads_a_block_has():
    """They stand in structs of traits, whose arguments come through templates and switches over conditions."""
    blocks = {}
    for path in FILES:
        source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
        for kernel in {function.name for function in source.kernels}:
            blocks[kernel] = {step.block for step in read_launches(source, kernel).steps}
    assert len(blocks) >= 7
    assert {tuple(found) for found in blocks.values()} <= {(("64", "1", "1"),), (("128", "1", "1"),)}


def test_a_plan_of_each_source_asks_for_what_it_cannot_tell():
    for path in FILES:
        source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
        if not source.kernels:
            with pytest.raises(CudaInputError, match=path.name):
                read_launches(source)
        elif plan := read_launches(source):
            assert plan.questions
            assert all(question.span.line > 0 and question.message for question in plan.questions)
