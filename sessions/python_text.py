"""Foreign text as Python source: expressions, names and strings that can't be anything but what they are."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Iterable, Mapping

from search.kernels.expressions import parse

_TOKEN = re.compile(r"\d+|[A-Za-z_]\w*|//|[-+*%(),]")
_RAW = re.compile(r"[\t\n -~]*")


def expression(text: str | int, names: Mapping[str, str]) -> str:
    """Return a launch expression as Python, each axis by its name in ``names``; raise `ExpressionError` if it is none.

    The grammar of `search.kernels.expressions` is a part of Python's, with the same precedence and meaning (given a
    function ``ceildiv``), so the tokens of an expression that parses are Python once the axes are renamed.
    """
    text = str(text)
    parse(text)
    tokens = _TOKEN.findall(text)
    written, after_operand = "", False
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token.isdigit():
            written += str(int(token))
        elif token[0].isalpha() or token[0] == "_":
            written += token if following == "(" else names[token]
        elif token == ",":
            written += ", "
        elif token in "()" or not after_operand:
            written += token
        else:
            written += f" {token} "
        after_operand = token == ")" or token[0].isalnum() or token[0] == "_"
    return written


def identifier(name: str, taken: set[str]) -> str:
    """Return ``name``, changed as little as needed to be a Python name that is not in ``taken``, and take it."""
    found = re.sub(r"[^0-9A-Za-z_]", "_", name) or "_"
    if found[0].isdigit():
        found = f"_{found}"
    while found in taken or keyword.iskeyword(found):
        found += "_"
    taken.add(found)
    return found


def string(text: str) -> str:
    """Return a string literal for ``text``, over several lines where that shows it as it is."""
    if "\n" in text and '"""' not in text and text[-1] not in '"\\' and _RAW.fullmatch(text):
        return ("r" if "\\" in text else "") + f'"""{text}"""'
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else ascii(text)


def number(value: float) -> str:
    """Return ``value`` as Python, which has no literal for infinities."""
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def tuple_of(entries: Iterable[str]) -> str:
    """Return entries that are Python already as a tuple."""
    written = list(entries)
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"


def docstring(lines: Iterable[str], indent: str = "") -> str:
    """Return a docstring of ``lines``, in which nothing ends it early or acts on a terminal."""
    shown = (one_line(line).replace("\\", "\\\\").replace('"""', "'''") for line in lines)
    text = "\n".join(f"{indent}{line}".rstrip() for line in shown).lstrip()
    return f'{indent}"""{text}\n{indent}"""'


def one_line(text: str) -> str:
    """Return ``text`` on one line, every character that is not for reading replaced by a space."""
    return "".join(character if character.isprintable() else " " for character in text).rstrip()
