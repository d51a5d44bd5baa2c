"""Metal's own rules, read off the text of a kernel: what Apple's compiler or MLX refuses.

What reaches outside the kernel (`translator.reach`) is among its findings.

A kernel's ``source`` is the body of a function whose signature MLX writes; its ``header`` stands before that function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from translator.metal_attributes import ATTRIBUTES
from translator.reach import MOST_CHARACTERS, blank_text, line_of, reaching_out

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One broken rule: its line (from 1) in the source, or the header when ``in_header``, and what to do about it."""

    line: int
    in_header: bool
    severity: str
    message: str


_TYPE = r"(?:u?(?:int|short|char|long)[234]?|(?:float|half)[234]?|size_t|auto|bool)"

# Each rule: what it looks like in code (comments and strings blanked), and what to do.
_RULES: tuple[tuple[str, str], ...] = (
    (r"\bdouble\b", "Metal has no double: use float"),
    (r"\bgoto\b", "Metal has no goto: use a loop or a condition"),
    (r"\b(?:new|delete)\b", "there is no heap on the GPU: declare a thread or threadgroup array of fixed size"),
    (r"\b(?:throw|try|catch|typeid|dynamic_cast|virtual|thread_local)\b", "Metal has no '{0}': write it without"),
    (r"\bstd\b(?=\s*(?:::|;))", "Metal has no std: the same functions stand in metal::, which MLX already uses"),
    (
        r"\[\[(?!\s*(?:maybe_unused|likely|unlikely|fallthrough)\b)",
        "no attribute is accepted here: MLX adds the kernel's own, by the names in the source",
    ),
    (
        r"\b(?:kernel|vertex|fragment)\s+void\b",
        "give only the body of the kernel: MLX writes the signature from the names of inputs and outputs",
    ),
    (
        rf"\b{_TYPE}\s+(?:const\s+)?(?:{'|'.join(ATTRIBUTES)})\b(?!\s*\[\[)",
        "MLX already declares that name as a parameter: drop the declaration and use the name as it is",
    ),
    (
        r"(?m)^[ \t]*#[ \t]*include\b(?=[ \t]*<(?:metal_|simd/))",
        "drop the #include: MLX includes Metal's standard library, and nothing else can be reached",
    ),
)
_WARNINGS: tuple[tuple[str, str], ...] = (
    (
        r"\bmem_none\b",
        "mem_none orders no memory: use mem_threadgroup or mem_device if other threads read what was written",
    ),
)


def lint(source: str, header: str = "") -> list[Finding]:
    """Return what is wrong with a kernel's ``source`` and ``header``, in the order of the lines, header first."""
    findings = []
    for text, in_header in ((header, True), (source, False)):
        found = {(line, severity, message) for line, severity, message in _findings(text)}
        findings += [Finding(line, in_header, severity, message) for line, severity, message in sorted(found)]
    if not blank_text(source).strip():
        findings.append(Finding(1, False, ERROR, "the source is empty: write the body of the kernel"))
    return findings


def _findings(text: str) -> Iterator[tuple[int, str, str]]:
    for line, message in reaching_out(text):
        yield line, ERROR, message
    if len(text) > MOST_CHARACTERS:
        return
    code = blank_text(text)
    for severity, rules in ((ERROR, _RULES), (WARNING, _WARNINGS)):
        for pattern, message in rules:
            for match in re.finditer(pattern, code):
                yield line_of(code, match.start()), severity, message.format(match.group())
