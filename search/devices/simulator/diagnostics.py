"""What the compiler printed, as a fault in the kernel's own words and lines."""

from __future__ import annotations

import re

from search.devices.base import KernelFault
from search.devices.simulator.toolchain import PRIVATE_BYTES
from search.devices.simulator.unit import Unit

_MESSAGE = re.compile(
    r"(?P<file>[^\n:]*?):(?P<line>\d+):(?:\d+:)? (?:fatal )?(?P<kind>error|note|warning): (?P<text>.*)"
)
_REACHED = re.compile(r"(?P<file>[^\n:]*?kernel\.cc):(?P<line>\d+):(?:\d+:)?\s+(?:required from|in 'constexpr')")
_INLINED = re.compile(r"inlined from .* at (?P<file>[^\n:]*?kernel\.cc):(?P<line>\d+)")
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?(?P<name>[^'\"\n]+)")
_WORDS = (
    (re.compile(r"\b(?:metal|ksr)::"), ""),
    (re.compile(r"\bksr_tg_"), ""),
    (re.compile(r"\b_Float16\b"), "half"),
    (re.compile(r"\bvec<(\w+), ([234])>"), r"\1\2"),
    (re.compile(r" \[-W[\w=+-]*\]"), ""),
    (re.compile(r".*\bconver.*\bksr_called\b.*"), "too many arguments"),
    (
        re.compile(r"^redefinition of (.*\*.*)"),
        r"redefinition of \1: functions that differ in address space alone are not told apart: make them one template",
    ),
    (re.compile(r"^use of undeclared identifier ('\w+')"), r"\1 was not declared"),
    (  # as clang says it, of functions and of all else
        re.compile(r"^redefinition of ('\w+')$"),
        r"redefinition of \1 (functions that differ in address space alone are not told apart: make them one template)",
    ),
    # What the simulator added to a function's parameters.
    (re.compile(r"(, )?\b(uint ksr_line|(ksr_called|ksr_u64) ksr_at)\b(?=\))"), ""),
    (re.compile(r"(, )?\b(ksr_called|ksr_u64)\b(?=\))"), ""),
)


def compile_fault(printed: str, unit: Unit, pass_name: str) -> KernelFault:
    """Return the first error of ``printed`` as a `KernelFault`, at the kernel's line where one is known."""
    if match := _UNDEFINED.search(printed):
        return KernelFault(
            "compile", f"'{match['name']}' is declared but defined nowhere in the kernel", pass_name=pass_name
        )
    lines = printed.splitlines()
    for index, text in enumerate(lines):
        message = _MESSAGE.match(text)
        if message is None or message["kind"] != "error":
            continue
        place = _place(message, lines, index, unit)
        line, in_header = place if place else (None, False)
        if "frame-larger-than" in message["text"]:
            words = f"one thread needs more than {PRIVATE_BYTES >> 10} KiB of private memory: make its arrays smaller"
        else:
            words = _readable(message["text"])
        return KernelFault("compile", words, pass_name=pass_name, line=line, in_header=in_header)
    first = next((text for text in lines if "error" in text), "the compiler failed and did not say why")
    return KernelFault("compile", _readable(first.rpartition("error: ")[2]), pass_name=pass_name)


def _place(message: re.Match[str], lines: list[str], index: int, unit: Unit) -> tuple[int, bool] | None:
    """Return the kernel's line of an error: its own, or that of the use which led into a header of Metal's."""
    if message["file"].endswith("kernel.cc"):
        if found := unit.locate(int(message["line"])):
            return found
        if int(message["line"]) >= unit.source_begins + unit.source_lines:
            return unit.source_lines, False  # found at the end, such as a brace that never closes
    for text in reversed(lines[:index]):
        if (reached := _REACHED.match(text) or _INLINED.search(text)) and (found := unit.locate(int(reached["line"]))):
            return found
    for text in lines[index + 1 :]:
        note = _MESSAGE.match(text)
        if note is None:
            continue
        if note["kind"] == "error":
            break
        if note["file"].endswith("kernel.cc") and (found := unit.locate(int(note["line"]))):
            return found
    return None


def _readable(text: str) -> str:
    for pattern, replacement in _WORDS:
        text = pattern.sub(replacement, text)
    return text.strip()
