"""What is wrong with a text that was given as CUDA, in one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from translator.cuda_source import CudaSource

MOST_CHARACTERS = 4_000_000
"""The longest source that is read: twenty times the longest that people write by hand."""

_CUDA_WORDS = re.compile(r"\b__(?:global|device|shared|constant)__\b|<<<|\bthreadIdx\b|\bblockIdx\b")
_OTHER_LANGUAGES = (
    ("Python", re.compile(r"(?m)^\s*(?:def \w+\(.*\).*:|import \w+|from [\w.]+ import |@triton\.jit)")),
    ("Metal", re.compile(r"\[\[\s*(?:buffer|thread_position_in_grid|threadgroup_position_in_grid)\b|#include <metal_")),
    ("OpenCL", re.compile(r"\b__kernel\b|\bget_global_id\b")),
    ("a patch", re.compile(r"(?m)^(?:diff --git|@@ -\d+)")),
    ("HTML", re.compile(r"(?i)<!doctype html|<html\b")),
)


class CudaInputError(ValueError):
    """A CUDA input that nothing can be done with; the message says what is wrong and what to do."""


def decode_cuda(content: bytes, path: str) -> str:
    """Return a file's content as text; raise `CudaInputError` for one that is empty, too long or no text."""
    if not content.strip(b" \t\r\n\xef\xbb\xbf\0"):
        raise CudaInputError(f"{path}: the file is empty; give one with a CUDA kernel in it")
    if len(content) > MOST_CHARACTERS:
        raise CudaInputError(
            f"{path}: the file has {len(content) / 1e6:.1f} MB, and at most {MOST_CHARACTERS / 1e6:.0f} MB are read; "
            "copy the kernel and what it calls into a file of its own"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _sound(content.decode("utf-16", "replace"), path)
    if b"\0" in content[:65536] or content.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
        raise CudaInputError(f"{path}: this is a binary file; give the source (.cu) that it was built from")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _sound(content.decode("latin-1"), path)


def _sound(text: str, path: str) -> str:
    odd = sum(not (character.isprintable() or character in "\t\r\n\f") for character in text[:65536])
    if odd > len(text[:65536]) // 20:
        raise CudaInputError(f"{path}: this is a binary file; give the source (.cu) that it was built from")
    return text


def require_kernels(source: CudaSource, kernel: str | None = None) -> None:
    """Raise `CudaInputError` for a source without kernels, or without the one that is wanted."""
    names = list(dict.fromkeys(function.name for function in source.kernels))
    if kernel is not None and names and kernel not in names:
        close = get_close_matches(kernel, names, 3, 0.5)
        said = f"did you mean {_listed(close, 'or')}?" if close else f"it has {_listed(names[:8], 'and')}"
        raise CudaInputError(f"{source.path}: there is no kernel '{kernel}' in it; {said}")
    if names:
        return
    where = f"{source.path}:{source.diagnostics[0].span.line}" if source.diagnostics else source.path
    if not source.text.strip():
        raise CudaInputError(f"{source.path}: the file is empty; give one with a CUDA kernel in it")
    if "__global__" in source.text:
        raise CudaInputError(
            f"{where}: a kernel begins here but can't be read to its end; is the file whole? "
            "Check that every brace and '#if' is closed"
        )
    if source.device_functions:
        raise CudaInputError(
            f"{source.path}: there are device functions but no kernel in it; give a file with a __global__ function"
        )
    for language, looks in _OTHER_LANGUAGES:
        if looks.search(source.text):
            raise CudaInputError(f"{source.path}: this is {language}, not CUDA; give a file with a __global__ function")
    if included := re.search(r'(?m)^\s*#\s*include\s*"([^"\n]*\.cuh?)"', source.text):
        raise CudaInputError(
            f"{source.path}: there is no kernel in it, but it includes '{included[1]}'; give that file"
        )
    if _CUDA_WORDS.search(source.text):
        raise CudaInputError(f"{source.path}: there is no kernel in it; give a file with a __global__ function")
    raise CudaInputError(f"{source.path}: this isn't CUDA; give a file with a __global__ function")


def _listed(names: Iterable[str], word: str) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"
