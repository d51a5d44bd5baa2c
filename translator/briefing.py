"""The briefing: what someone who writes a Metal kernel is told of the GPU, the mathematics, CUDA's words and MLX.

Pure and deterministic. The texts stand in ``briefing_texts/``, the facts in the primitive table, the pattern table and
the profiles. Text from problems and CUDA files is quoted as data.
"""

from __future__ import annotations

import math
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

from profiles.hardware import HardwareProfile
from profiles.source_gpu import SourceGpu
from translator.inventory import Inventory
from translator.pattern_table import load_patterns
from translator.primitives import CATEGORIES, Primitive
from translator.problem_facts import ProblemFacts
from translator.quoting import fenced, plain

Level = Literal["mapping", "full"]

LEVELS: tuple[Level, ...] = ("mapping", "full")

TEXTS = Path(__file__).parent / "briefing_texts"

CHARACTERS_PER_TOKEN = 3.5
"""Fewer than any tokenizer in use makes of English and code, so that `tokens` errs on the safe side."""

MOST_PLACES = 3
"""Places that are named of one primitive; the rest are counted."""

WIDTH = 110
"""Columns of prose; code stands as it is."""

LINES_BEFORE, LINES_AFTER = 1, 3
MOST_EVIDENCE_LINES = 60

GROUPS_A_CORE = 4
"""Threadgroups that keep a core busy: one computes while others wait for memory."""

_MATRIX_UNITS = (
    "It has units that are faster, which mx.matmul and the tensor operations of Metal 4 reach, and simdgroup_matrix "
    "does not."
)
_GONE = {"drop": "nothing: leave it out", "unsupported": "no counterpart"}
_HALVES = ("float16", "bfloat16")
_MASK = re.compile(r"\b(?:causal|mask\w*)\b", re.IGNORECASE)
_ESTIMATES = {
    "dispatch_us": "the cost of a launch",
    "simdgroup_matrix_flops": "the matrix rate",
    "register_file_bytes": "the register file",
    "threadgroup_memory_per_core_bytes": "threadgroup memory of a core",
    "slc_mb": "the cache",
    "special": "rates of special functions",
}
"""Figures that a profile may only estimate, by its fields."""

_NOTHING = {
    "mapping": "The references use no primitive of CUDA's; or there are none.",
    "patterns": "None was found.",
    "evidence": "There is none.",
}


@dataclass(frozen=True)
class Sections:
    """What a briefing consists of; ``mapping``, ``patterns`` and ``evidence`` are "" where the references show none."""

    title: str
    description: str
    arrays: str
    gpu: str
    source: str
    hardware: str
    mathematics: str
    contract: str
    mapping: str
    patterns: str
    evidence: str


def briefing(
    problem: ProblemFacts,
    profile: HardwareProfile,
    source: SourceGpu,
    inventories: Sequence[Inventory],
    level: Level = "full",
) -> str:
    """Return the briefing for a problem, the GPU to write for, the GPU that its CUDA references were written for.

    ``mapping`` is only what becomes of the primitives that the references use; ``full`` adds hardware, mathematics,
    MLX's contract, and the references' patterns with the lines that show them.
    """
    texts = asdict(sections(problem, profile, source, inventories))
    told = {name: texts[name] or nothing for name, nothing in _NOTHING.items()}
    return _text(level).substitute(texts | told)


def sections(
    problem: ProblemFacts, profile: HardwareProfile, source: SourceGpu, inventories: Sequence[Inventory]
) -> Sections:
    """Return the sections of the briefing that `briefing` makes of the same."""
    shown = _patterns_shown(inventories)
    return Sections(
        title=plain(problem.title),
        description=_wrapped(plain(problem.description)),
        arrays="\n".join(_wrapped(row) for row in _arrays(problem)),
        gpu=profile.title,
        source=source.title,
        hardware=_reflowed(_hardware(problem, profile, source)),
        mathematics="\n".join(_wrapped(row) for row in _mathematics(problem, inventories, shown)),
        contract=_reflowed(_text("contract").template),
        mapping="\n".join(_wrapped(row) for row in _mapping(inventories)),
        patterns="\n\n".join(_patterns(shown)),
        evidence="\n\n".join(_evidence(inventories)),
    )


def tokens(text: str) -> int:
    """Return about how many tokens a model reads a text as; rather too many than too few."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@cache
def _text(name: str) -> Template:
    return Template((TEXTS / f"{name}.md").read_text(encoding="utf-8"))


@cache
def _rules() -> tuple[tuple[str, str], ...]:
    data = tomllib.loads((TEXTS / "mathematics.toml").read_text(encoding="utf-8"))
    return tuple((rule["when"], rule["text"]) for rule in data["rule"])


def _wrapped(text: str) -> str:
    """Return a paragraph or list item in lines of `WIDTH`."""
    indent = " " * (text.find("- ") + 2) if text.lstrip().startswith("- ") else ""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _reflowed(text: str) -> str:
    """Return list items, each over any number of lines, in lines of `WIDTH`."""
    items: list[str] = []
    for line in text.strip().split("\n"):
        if line.lstrip().startswith("- "):
            items.append(line)
        else:
            items[-1] = f"{items[-1]} {line.strip()}"
    return "\n".join(_wrapped(item) for item in items)


def _arrays(problem: ProblemFacts) -> Iterator[str]:
    for array in problem.arrays:
        kind = "output" if array.output else "input"
        shape = f"[{', '.join(array.shape)}]" if array.shape else "a number"
        meaning = f": {array.description}" if array.description else ""
        yield f"- {kind} {plain(array.name)}, {plain(shape)}, {plain(array.dtype)}{plain(meaning)}"
    yield f"- axes: {plain('; '.join(problem.axes))}"
    for dtype, atol, rtol in problem.tolerance:
        yield f"- tolerance in {plain(dtype)}: {atol:g} + {rtol:g} of the row's largest value"


def _hardware(problem: ProblemFacts, profile: HardwareProfile, source: SourceGpu) -> str:
    fp32 = profile.cores * profile.clock_ghz * profile.fp32_flops / 1e3
    balance = fp32 * 1e3 / profile.bandwidth_gbs
    half = profile.fp16_flops / profile.fp32_flops
    group, core = profile.threadgroup_memory_bytes, profile.threadgroup_memory_per_core_bytes
    guessed = [words for field, words in _ESTIMATES.items() if profile.confidence.get(field) == "low"]
    work = [_work(item.name, item.bytes, item.flops, balance) for item in problem.work if item.bytes]
    return (
        _text("hardware")
        .substitute(
            bandwidth=f"{profile.bandwidth_gbs:,.0f}",
            source=source.title,
            source_bandwidth=f"{source.bandwidth_gbs:,.0f}",
            bandwidth_ratio=f"{source.bandwidth_gbs / profile.bandwidth_gbs:.1f}",
            cache=f"{profile.slc_mb:g}",
            source_cache=f"{source.last_cache_mb:g}",
            fp32=f"{fp32:.1f}",
            source_fp32=f"{source.fp32_tflops:g}",
            half_rate="the same rate" if half == 1 else f"{half:g} times that rate",
            balance=f"{balance:.0f}",
            work="\n".join(work) or "- No workload is timed.",
            threadgroup_kib=group // 1024,
            source_static_kib=source.static_block_memory_bytes // 1024,
            source_block_kib=source.block_memory_bytes // 1024,
            core_kib=core // 1024,
            half_threadgroup_kib=group // 2048,
            resident=core // (group // 2),
            simd_width=profile.simd_width,
            registers=profile.max_registers,
            source_registers=source.max_registers,
            register_file_kib=profile.register_file_bytes // 1024,
            source_register_file_kib=source.register_file_bytes // 1024,
            full_registers=profile.register_file_bytes // 4 // profile.max_threads_per_core,
            max_threads=f"{profile.max_threads_per_core:,}",
            cores=profile.cores,
            filling=profile.cores * GROUPS_A_CORE,
            source_cores=source.cores,
            dispatch=f"{profile.dispatch_us:g}",
            matrix_rate=f"{profile.simdgroup_matrix_flops / profile.fp32_flops:.0%}",
            source_matrix=f"{source.matrix_fp16_tflops:g}",
            matrix_units=_MATRIX_UNITS if profile.matrix_fp16_flops > profile.fp16_flops else "",
            shuffle=f"{profile.simd_shuffle_cycles:.0f}",
            exp2=f"{profile.special['exp2']:g}",
            divide=f"{profile.special['divide']:g}",
            reduction=f"{profile.simd_reduction_cycles:.0f}",
            barrier=f"{profile.barrier_cycles:.0f}",
            estimates=f"- Estimated for this chip, not measured: {', '.join(guessed)}." if guessed else "",
        )
        .strip()
    )


def _work(name: str, moved: int, flops: int, balance: float) -> str:
    bound = "bytes" if flops / moved < balance else "arithmetic"
    return (
        f"  - {plain(name)}: {moved / 1e6:,.1f} MB at least, {flops / 1e9:,.2f} GFLOP, {flops / moved:,.1f} FLOPs a "
        f"byte: bound by {bound}"
    )


def _mathematics(problem: ProblemFacts, inventories: Sequence[Inventory], shown: Mapping[str, str]) -> Iterator[str]:
    used = {occurrence.text.split("::")[-1] for taken in inventories for occurrence in taken.occurrences}
    holds = {
        "always": True,
        "half": any(dtype in _HALVES for dtype, _, _ in problem.tolerance),
        "exponential": "exp2" in shown or any(re.match(r"_{0,2}exp", word) for word in used),
        "online": "online_softmax" in shown,
        "mask": bool(_MASK.search(" ".join((problem.description, *problem.axes)))),
    }
    yield from (f"- {text}" for when, text in _rules() if holds[when])


def _mapping(inventories: Sequence[Inventory]) -> Iterator[str]:
    places: dict[Primitive, list[str]] = {}
    for taken in inventories:
        file = plain(Path(taken.source.path).name)
        for occurrence in taken.occurrences:
            if occurrence.primitive.category != "host":
                places.setdefault(occurrence.primitive, []).append(f"{file}:{occurrence.line}")
    for primitive in sorted(places, key=lambda row: CATEGORIES.index(row.category)):
        becomes = (
            f"`{primitive.metal}`"
            if primitive.example and not primitive.prose
            else primitive.metal or _GONE[primitive.kind]
        )
        trap = f" {primitive.trap}" if primitive.trap else ""
        yield f"- {primitive.kind}: `{primitive.cuda}` → {becomes} ({_where(places[primitive])}).{trap}"


def _where(places: Sequence[str]) -> str:
    named = list(dict.fromkeys(places))
    more = len(named) - MOST_PLACES
    return ", ".join(named[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


def _patterns_shown(inventories: Sequence[Inventory]) -> dict[str, str]:
    """Return the patterns of the references in the table's order, each with the first place that shows it."""
    first: dict[str, str] = {}
    for taken in inventories:
        for name, span in taken.patterns.items():
            first.setdefault(name, f"{plain(Path(taken.source.path).name)}:{span.line}")
    return {pattern.name: first[pattern.name] for pattern in load_patterns() if pattern.name in first}


def _patterns(shown: Mapping[str, str]) -> Iterator[str]:
    for pattern in load_patterns():
        if pattern.name in shown:
            head = _wrapped(f"**{pattern.name}** ({shown[pattern.name]}): {pattern.says}. {pattern.when}")
            yield f"{head}\n```metal\n{pattern.metal}\n```\n{_wrapped(pattern.trap)}"


def _evidence(inventories: Sequence[Inventory]) -> Iterator[str]:
    """Yield, for each reference, the lines around its patterns, numbered, as one block."""
    left = MOST_EVIDENCE_LINES
    for taken in inventories:
        lines = re.split(r"\r\n|\n|\r", taken.source.text)
        chosen: dict[int, None] = {}
        for span in taken.patterns.values():
            for number in range(max(1, span.line - LINES_BEFORE), min(len(lines), span.line + LINES_AFTER) + 1):
                chosen.setdefault(number)
        numbers = sorted(list(chosen)[:left])
        left -= len(numbers)
        if not numbers:
            continue
        quoted: list[str] = []
        for before, number in zip([0, *numbers], numbers, strict=False):
            if quoted and number != before + 1:
                quoted.append("     ...")
            quoted.append(f"{number:4} {lines[number - 1]}")
        yield f"{plain(Path(taken.source.path).name)}:\n" + fenced("\n".join(quoted), "cuda")
