"""Tells every access of a kernel the line that it stands in: the checked build's pass over the assembly text.

The checked build is compiled with ``-fsanitize=thread``, which puts a call before each access. In the assembly text
each such call, and each that tells of an index past an array, gets one argument more, the line that the compiler's
``.loc`` lines say it comes from. Where that is a line of the headers (an operation that was expanded in place), it is
the kernel's line that led there. Calls for the runtime's own bookkeeping go.
"""

from __future__ import annotations

import re

KERNEL_FILE = "kernel.cc"

_FILE = re.compile(r'\s*\.file\s+(?P<number>\d+)\s+(?:"[^"]*"\s+)?"(?P<path>[^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)")
_CALL = re.compile(r"\s*(?:callq?|bl)\s+\*?_?(?P<name>__tsan_(?:\w*?)(?:read|write)(?P<bytes>\d+|_range))\b")
_INDEX = re.compile(r"\s*(?:callq?|jmpq?|bl?)\s+\*?_?__ubsan_handle_out_of_bounds\b")
_COPY = re.compile(r"\s*(?:callq?|jmpq?|bl?)\s+\*?_?__tsan_mem(?:cpy|move|set)\b")
_TOLD = re.compile(r"\s*(?:\.set\s+ksr_line,|ksr_line\s*=)\s*(?P<line>\d+)")
_FRAME = re.compile(r"\s*(?P<how>callq?|bl|jmpq?|b)\s+\*?_?__tsan_func_(?:entry|exit)\b")
_RUNTIME_FILES = ("abi.h", "lanes.h", "cuda/threads.h", "cuda/warp.h", "cuda/launch.h")


def tell_lines(text: str) -> tuple[str, int]:
    """Return ``text`` with a line for each access, and the size of the narrowest access as a power of two (0 to 2)."""
    arm = re.search(r"^\s*(adrp|bl)\s", text, re.MULTILINE) is not None
    paths: dict[str, str] = {}
    line, in_runtime, narrowest = 0, False, 4
    lines: list[str] = []
    for row in text.split("\n"):
        if place := _FILE.match(row):
            paths[place["number"]] = place["path"]
        elif loc := _LOC.match(row):
            path = paths.get(loc["file"], "")
            in_runtime = path.endswith(_RUNTIME_FILES)
            if path.endswith(KERNEL_FILE):
                line = int(loc["line"])
        elif told := _TOLD.match(row):
            line, in_runtime = int(told["line"]), False
            continue
        elif frame := _FRAME.match(row):
            if frame["how"] in ("jmp", "jmpq", "b"):
                lines.append("\tret")
            continue
        elif call := _CALL.match(row):
            if in_runtime:
                continue
            ranged = call["bytes"] == "_range"
            if not ranged:
                narrowest = min(narrowest, int(call["bytes"]))
            lines.append(_argument(line, 3 if ranged else 2, arm=arm))
        elif _INDEX.match(row):
            lines.append(_argument(line, 3, arm=arm))
        elif _COPY.match(row):
            lines.append(_argument(line, 4, arm=arm))
        lines.append(row)
    return "\n".join(lines), narrowest.bit_length() - 1


def _argument(line: int, number: int, *, arm: bool) -> str:
    """Return the instruction that makes ``line`` the function's argument ``number``, counted from 1."""
    if arm:
        return f"\tmov\tw{number - 1}, #{line & 0xFFFF}"
    return f"\tmovl\t${line}, %{('edi', 'esi', 'edx', 'ecx')[number - 1]}"
