"""Metal and CUDA source as tokens with their kinds.

Pygments' C++ and CUDA lexers do the work; Metal's own words, which neither knows, are data here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygments import lex
from pygments.lexers import get_lexer_by_name
from pygments.token import Keyword, Name, Text, _TokenType, is_token_subtype

METAL, CUDA = "metal", "cuda"

_ADDRESS_SPACES = frozenset({"device", "constant", "threadgroup", "thread", "kernel", "vertex", "fragment"})
_METAL_TYPE = re.compile(r"(bool|u?char|u?short|u?int|u?long|half|float|bfloat)([234](x[234])?|8|16)?(_t)?\Z")
_METAL_BUILT_IN = re.compile(
    r"(simd_\w+|simdgroup_\w+|threadgroup_barrier|mem_flags|quad_\w+|metal|fast|precise|as_type|"
    r"threads?_\w+|threadgroups?_\w+|dispatch_\w+|grid_\w+|atomic_\w+|\w+_(shape|strides|ndim))\Z"
)
# Telling words apart in more than this takes longer than a person waits; the text is then one token.
_MOST_CHARACTERS = 300_000
_LEXERS = {
    language: get_lexer_by_name(known_as, stripnl=False, ensurenl=False)
    for language, known_as in ((METAL, "cpp"), (CUDA, "cuda"))
}


def source_tokens(text: str, language: str) -> Iterator[tuple[_TokenType, str]]:
    """Yield the kind and text of each token of ``text``, all of it in order; ``language`` is ``metal`` or ``cuda``."""
    if len(text) > _MOST_CHARACTERS:
        yield Text, text
        return
    for kind, word in lex(text, _LEXERS[language]):
        yield _metal_kind(kind, word) if language == METAL else kind, word


def _metal_kind(kind: _TokenType, word: str) -> _TokenType:
    """Return what Metal makes of a word that C++ takes for a name or keyword."""
    if is_token_subtype(kind, Name) or is_token_subtype(kind, Keyword):
        if word in _ADDRESS_SPACES:
            return Keyword
        if _METAL_TYPE.match(word):
            return Keyword.Type
        if _METAL_BUILT_IN.match(word):
            return Name.Builtin
    return kind
