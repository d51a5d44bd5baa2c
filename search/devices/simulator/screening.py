"""The first wall: kernels whose text reaches for more than a kernel has are not compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from search.devices.base import KernelFault
from search.kernels.program import BoundPass
from translator.reach import blank_text, line_of, reaching_out

_OWN_NAMES = re.compile(r"\b(?:ksr\b|ksr_|KSR_|__tsan|__sanitizer)\w*|\b(?:main|_start|_init|_fini)\b(?=\s*\()")
_NAME = re.compile(r"[A-Za-z]\w*")
_DIRECTIVES = re.compile(rb"(?<![\w.$])\.(?:incbin|include|macro|altmacro|irpc?|rept|end|if\w*)\b", re.IGNORECASE)


def screen(step: BoundPass) -> None:
    """Raise `KernelFault` (stage ``compile``) when a text or a name of ``step`` reaches outside the kernel.

    A program is data that anyone may have written: that goes for the names of its arrays and template parameters too.
    """
    names = [spec.name for spec in (*step.inputs, *step.outputs)] + [name for name, _ in step.template]
    for name in names:
        if not _NAME.fullmatch(name) or _OWN_NAMES.match(name):
            words = f"{name[:60]!r} can't be the name of an array or a template parameter: choose a plain name"
            raise KernelFault("compile", words, pass_name=step.name)
    for text, in_header in ((step.header, True), (step.source, False)):
        for line, words in chain(reaching_out(text), own_names(text)):
            raise KernelFault("compile", words, pass_name=step.name, line=line, in_header=in_header)


def own_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names in ``text`` that are the simulator's: the line from 1, and what is wrong."""
    for match in _OWN_NAMES.finditer(blank_text(text)):
        yield line_of(text, match.start()), f"the name '{match.group()}' is reserved for the simulator: choose another"


def smuggled_directive(assembly: bytes) -> str:
    """Return the directive in ``assembly`` that no compiler writes for a kernel ('' when there is none).

    It would have the assembler read a file, or leave out or repeat parts of the text.
    """
    found = _DIRECTIVES.search(assembly)
    return found.group().decode() if found else ""
