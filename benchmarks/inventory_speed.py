"""A megabyte of CUDA, parsed and inventoried, in under two seconds. Writes inventory_speed.toml.

The input repeats the built-in CUDA references, each copy with function names of its own, until it is long enough.
"""

from __future__ import annotations

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


def megabyte_of_cuda() -> str:
    """Return the references one after the other, again and again."""
    references = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("search/problems/*/cuda/*.cu"))]
    copies: list[str] = []
    while sum(map(len, copies)) < MEGABYTE:
        number = len(copies)
        copies.append(_FUNCTION.sub(rf"\1_{number}", references[number % len(references)]))
    return "\n".join(copies)


def main() -> None:
    text = megabyte_of_cuda()
    seconds, parsing = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        source = parse_cuda(text, "megabyte.cu")
        parsing.append(time.perf_counter() - began)
        taken = take_inventory(source)
        seconds.append(time.perf_counter() - began)
    figures = {
        "characters": len(text),
        "kernels": len(source.kernels),
        "occurrences": len(taken.occurrences),
        "diagnostics": len(source.diagnostics),
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "median_parsing_seconds": statistics.median(parsing),
    }
    record(__file__, figures)
    if figures["median_seconds"] >= LIMIT_SECONDS:
        raise SystemExit(f"slower than {LIMIT_SECONDS} s")


if __name__ == "__main__":
    main()
