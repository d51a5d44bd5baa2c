"""The types of numbers as they are written: literals, the values of macros, limits of a type."""

from __future__ import annotations

import re


def literal_type(text: str) -> str:
    """Return the type of a number as Metal reads it: a floating one without suffix is a float there."""
    text = text.lower()
    if text.startswith("0x"):
        body = text.rstrip("ul")
        suffix = text[len(body) :]
        if "l" not in suffix and int(body.replace("'", ""), 16) > 0x7FFFFFFF:
            return "uint"
    elif re.search(r"[.e]", text) or text.endswith("f"):
        return "float"
    ending = re.search(r"[ul]*\Z", text)
    found = ending.group() if ending else ""
    return ("u" if "u" in found else "") + ("long" if "l" in found else "int")


def macro_type(text: str) -> str:
    """Return the type of what a macro stands for, as its text looks."""
    text = text.split("//")[0].split("/*")[0].strip().strip("()").strip()
    if re.fullmatch(r"-?[\d.][\w.+-]*", text):
        return literal_type(text.lstrip("-"))
    return "int" if not re.search(r"\d\.|\.\d|f\b", text) else "float"


def limit_type(function: str) -> str | None:
    """Return the type of a limit such as ``std::numeric_limits<T>::max``, None for other functions."""
    match = re.fullmatch(r"(?:\w+::)?numeric_limits<([\w ]+)>::(?:max|min|lowest|infinity|epsilon|quiet_NaN)", function)
    return match[1] if match is not None else None
