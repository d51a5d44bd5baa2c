"""Integer expressions over axis names: parsed here, never evaluated as Python.

Launch sizes, buffer shapes, byte and FLOP counts in TOML files are such expressions. The grammar is integers,
axis names, ``+ - * // %``, parentheses, and ``min``, ``max``, ``ceildiv`` of two or more arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NoReturn

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*%(),]))")
_MAX_DEPTH = 64

Evaluator = Callable[[Mapping[str, int]], int]


class ExpressionError(ValueError):
    """An expression that does not parse, or names an axis that has no value."""


def evaluate(text: str | int, axes: Mapping[str, int]) -> int:
    """Return the value of ``text`` with ``axes`` bound; raise `ExpressionError` if that can't be done."""
    if isinstance(text, int):
        return text
    evaluator, _ = parse(text)
    return evaluator(axes)


def names(text: str | int) -> frozenset[str]:
    """Return the axis names that ``text`` refers to."""
    return frozenset() if isinstance(text, int) else parse(text)[1]


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Evaluator, frozenset[str]]:
    """Parse ``text`` once into an evaluator and the set of names that it needs."""
    parser = _Parser(text)
    evaluator = parser.sum(0)
    if parser.position != len(parser.tokens):
        parser.fail(f"unexpected '{parser.tokens[parser.position]}'")
    return evaluator, frozenset(parser.seen)


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


_CALLS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceildiv": _ceildiv}


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.position = text, self._tokenize(text), 0
        self.seen: set[str] = set()

    def fail(self, reason: str) -> NoReturn:
        raise ExpressionError(f"{reason} in expression '{self.text}'")

    def _tokenize(self, text: str) -> list[str]:
        tokens, at, end = [], 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise ExpressionError(f"unexpected '{text[at:].strip()[0]}' in expression '{text}'")
            tokens.append(match.group().strip())
            at = match.end()
        if not tokens:
            raise ExpressionError("empty expression")
        return tokens

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            found = f"'{token}'" if token else "the end"
            self.fail(f"expected '{wanted or 'a value'}' before {found}")
        self.position += 1
        return token

    def sum(self, depth: int) -> Evaluator:
        if depth > _MAX_DEPTH:
            self.fail("too deeply nested")
        left = self.product(depth)
        while self.peek() in ("+", "-"):
            left = self._binary(self.take(), left, self.product(depth))
        return left

    def product(self, depth: int) -> Evaluator:
        left = self.atom(depth)
        while self.peek() in ("*", "//", "%"):
            left = self._binary(self.take(), left, self.atom(depth))
        return left

    def atom(self, depth: int) -> Evaluator:
        token = self.take()
        if token == "(":
            inner = self.sum(depth + 1)
            self.take(")")
            return inner
        if token == "-":
            if depth > _MAX_DEPTH:
                self.fail("too deeply nested")
            operand = self.atom(depth + 1)
            return lambda axes: -operand(axes)
        if token.isdigit():
            value = int(token)
            return lambda axes: value
        if not (token[0].isalpha() or token[0] == "_"):
            self.fail(f"unexpected '{token}'")
        if self.peek() == "(":
            return self._call(token, depth)
        return self._name(token)

    def _name(self, name: str) -> Evaluator:
        self.seen.add(name)
        text = self.text

        def look_up(axes: Mapping[str, int]) -> int:
            if name not in axes:
                raise ExpressionError(f"no axis named '{name}' (in '{text}'); there are {', '.join(sorted(axes))}")
            return axes[name]

        return look_up

    def _call(self, name: str, depth: int) -> Evaluator:
        if name not in _CALLS:
            self.fail(f"unknown function '{name}' (known: {', '.join(_CALLS)})")
        self.take("(")
        arguments = [self.sum(depth + 1)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum(depth + 1))
        self.take(")")
        if len(arguments) < 2 or (name == "ceildiv" and len(arguments) != 2):
            self.fail(f"'{name}' takes {'two' if name == 'ceildiv' else 'two or more'} arguments")
        function, text = _CALLS[name], self.text

        def call(axes: Mapping[str, int]) -> int:
            try:
                return function(*(argument(axes) for argument in arguments))
            except ZeroDivisionError:
                raise ExpressionError(f"division by zero in '{text}'") from None

        return call

    def _binary(self, operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
        text = self.text
        if operator == "+":
            return lambda axes: left(axes) + right(axes)
        if operator == "-":
            return lambda axes: left(axes) - right(axes)
        if operator == "*":
            return lambda axes: left(axes) * right(axes)

        def divide(axes: Mapping[str, int]) -> int:
            divisor = right(axes)
            if divisor == 0:
                raise ExpressionError(f"division by zero in '{text}'")
            return left(axes) // divisor if operator == "//" else left(axes) % divisor

        return divide
