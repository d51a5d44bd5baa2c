"""A megabyte of CUDA, parsed and inventoried, in under two seconds. Writes inventory_speed.toml.

The first input repeats the built-in CUDA references, each copy with function names of its own, until it is long enough.
The second one repeats the corpus of the tests, whose kernels have less in common.
"""

from __future__ import annotations

import itertools
import re
import statistics
import sys
import time
from pathlib import Path

from machine import record

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from translator.cuda_source import parse_cuda  # noqa: E402
from translator.inventory import take_inventory  # noqa: E402

MEGABYTE = 1_000_000
ROUNDS = 7
LIMIT_SECONDS = 2.0

_FUNCTION = re.compile(r"\b(warp_\w+|block_\w+|merge|fetch_values|softmax_\w+|attention_\w+|launch_\w+)(?=\s*[(<])")


def megabyte_of_references() -> str:
    """Return the references one after the other, again and again."""
    references = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("search/problems/*/cuda/*.cu"))]
    copies: list[str] = []
    while sum(map(len, copies)) < MEGABYTE:
        number = len(copies)
        copies.append(_FUNCTION.sub(rf"\1_{number}", references[number % len(references)]))
    return "\n".join(copies)


def megabyte_of_corpus() -> str:
    """Return the corpus again and again, up to the kernel with which it is long enough."""
    kernels = itertools.cycle(sorted(ROOT.glob("tests/corpus/cuda/*.cu")))
    copies: list[str] = []
    while sum(map(len, copies)) < MEGABYTE:
        copies.append(next(kernels).read_text(encoding="utf-8"))
    return "\n".join(copies)


def measure(text: str) -> dict[str, float]:
    """Return how long a text takes, and what is found in it."""
    seconds, parsing = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        source = parse_cuda(text, "megabyte.cu")
        parsing.append(time.perf_counter() - began)
        taken = take_inventory(source)
        seconds.append(time.perf_counter() - began)
    return {
        "characters": len(text),
        "kernels": len(source.kernels),
        "occurrences": len(taken.occurrences),
        "diagnostics": len(source.diagnostics),
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "median_parsing_seconds": statistics.median(parsing),
    }


def main() -> None:
    references, corpus = measure(megabyte_of_references()), measure(megabyte_of_corpus())
    record(__file__, references | {f"corpus_{name}": figure for name, figure in corpus.items()})
    if max(references["median_seconds"], corpus["median_seconds"]) >= LIMIT_SECONDS:
        raise SystemExit(f"slower than {LIMIT_SECONDS} s")


if __name__ == "__main__":
    main()
