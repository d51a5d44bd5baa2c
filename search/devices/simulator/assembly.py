"""Counts the arithmetic of a compiled kernel exactly: how much of it each basic block holds, how often each block ran.

The counted build is compiled with ``-fsanitize-coverage=trace-pc``, which puts a call into every basic block. In the
assembly text each such call becomes the increment of a counter of its own, and the floating-point instructions of its
block are that counter's weight. What the compiler optimized away is not counted, what it duplicated counts where it
runs. Operations that the CPU would do in a library are marked by the headers.
"""

from __future__ import annotations

import re
from collections import Counter

KINDS = ("flop", "exp2", "exp", "log2", "log", "recip", "divide", "rsqrt", "sqrt", "sin", "cos", "tanh", "pow")
"""What is counted by block: FLOPs, and evaluations of each special function."""

KIND_SLOTS = 16
"""Weights that the runner reads for each block (``kKinds`` in runtime/job.h)."""

_TRACE = re.compile(r"\s*(?P<how>callq?|bl|b|jmpq?)\s+\*?_{2,3}sanitizer_cov_trace_pc\b")
_MARK = re.compile(r"\s*\.?Lksr_([a-z0-9]+)_\d+:")
_FUNCTION = re.compile(r"(_?[A-Za-z_][\w.$]*):")
_BLOCK = re.compile(r"\.?L(?:BB)?\d[\w$]*:")
_JUMP = re.compile(r"\s*(?:j[a-z]+|b(?:\.\w+)?|cbn?z|tbn?z|br|retq?)(?:\s|$)")
# Simdgroup operations and atomics are counted as such, not by the arithmetic that they take here.
_UNCOUNTED = re.compile(r"_+ZN3ksr(?:6reduce|4scan|6change|17multiply_matrices)")
_X86 = re.compile(r"\s*v?(?P<name>add|sub|mul|div|sqrt|fn?m(?:add|sub)\d{3})(?P<form>[sp])(?P<kind>[hsd])\s+(?P<to>.*)")
_ARM = re.compile(r"\s*(?P<name>fadd|fsub|fmul|fnmul|fdiv|fsqrt|fn?madd|fn?msub|fmla|fmls)\s+(?P<to>\S+?),")
_FUSED = re.compile(r"n?m(?:add|sub|la|ls)")
_ARM_LANES = re.compile(r"v\d+\.(\d+)[hsd]")


def instrument(text: str) -> str:
    """Return assembly ``text`` with a counter for each basic block, and the tables that the runner reads."""
    arm = re.search(r"^\s*(adrp|bl)\s", text, re.MULTILINE) is not None
    apple = ".section\t__TEXT" in text
    blocks: list[Counter[str]] = []
    latest: Counter[str] = Counter()  # weight of the block whose call came last
    before: Counter[str] = Counter()  # weight of this block as long as its call has not come
    called = counted = False
    lines: list[str] = []
    for line in text.split("\n"):
        function = _FUNCTION.match(line) if not _BLOCK.match(line) and not _MARK.match(line) else None
        if trace := _TRACE.match(line):
            latest, before, called = before, Counter(), True
            blocks.append(latest)
            lines += _increment(len(blocks) - 1, arm=arm, apple=apple)
            if trace["how"] in ("jmp", "jmpq", "b"):
                lines.append("\tret")
            continue
        lines.append(line)
        if counted:
            _weigh(line, latest if called else before)
        if function or _BLOCK.match(line) or _JUMP.match(line):
            latest.update(before)  # a block without a call of its own is part of the one that leads into it
            before, called = Counter(), False
        if function and not function[1].startswith(("L", "l")):
            latest, counted = Counter(), not _UNCOUNTED.match(function[1])
    return "\n".join([*lines, *_tables(blocks, apple=apple)]) + "\n"


def _weigh(line: str, weight: Counter[str]) -> None:
    if mark := _MARK.match(line):
        weight[mark[1]] += 1
        return
    if x86 := _X86.match(line):
        name = x86["name"].removeprefix("f")
        lanes = 1 if x86["form"] == "s" else _x86_lanes(x86["to"], x86["kind"])
    elif arm := _ARM.match(line):
        name = arm["name"].removeprefix("f")
        vector = _ARM_LANES.match(arm["to"])
        lanes = int(vector[1]) if vector else 1
    else:
        return
    if name == "sqrt":
        weight["sqrt"] += lanes
        return
    weight["flop"] += 2 * lanes if _FUSED.match(name) else lanes
    if name == "div":
        weight["divide"] += lanes


def _x86_lanes(operands: str, kind: str) -> int:
    width = 64 if "%zmm" in operands else 32 if "%ymm" in operands else 16
    return width // {"h": 2, "s": 4, "d": 8}[kind]


def _increment(index: int, *, arm: bool, apple: bool) -> list[str]:
    if not arm:
        return [f"\tincq\t{'L' if apple else '.L'}ksr_counts+{8 * index}(%rip)"]
    page, low = (
        (f"Lksr_counts@PAGE+{8 * index}", f"Lksr_counts@PAGEOFF+{8 * index}")
        if apple
        else (f".Lksr_counts+{8 * index}", f":lo12:.Lksr_counts+{8 * index}")
    )
    # The two registers that a call may always change.
    return [
        f"\tadrp\tx16, {page}",
        f"\tadd\tx16, x16, {low}",
        "\tldr\tx17, [x16]",
        "\tadd\tx17, x17, #1",
        "\tstr\tx17, [x16]",
    ]


def _tables(blocks: list[Counter[str]], *, apple: bool) -> list[str]:
    prefix = "_" if apple else ""
    local = "L" if apple else ".L"
    kinds = (*KINDS, *[""] * (KIND_SLOTS - len(KINDS)))
    weights = ["\t.long\t" + ", ".join(str(block[kind]) for kind in kinds) for block in blocks or [Counter[str]()]]
    return [
        "\t.section\t__DATA,__data" if apple else "\t.data",
        *(f"\t.globl\t{prefix}{name}" for name in ("ksr_block_counts", "ksr_block_weights", "ksr_blocks")),
        "\t.balign\t8",
        f"{prefix}ksr_block_counts:",
        f"{local}ksr_counts:",
        f"\t.zero\t{8 * max(1, len(blocks))}",
        f"{prefix}ksr_block_weights:",
        *weights,
        f"{prefix}ksr_blocks:",
        f"\t.long\t{len(blocks)}",
    ]
