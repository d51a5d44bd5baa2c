"""The kinds of value that a reply has. What each must be stands once: for the check, its message and the schema."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from search.kernels.dtypes import DTYPES
from search.kernels.expressions import ExpressionError, parse
from translator.reach import plain_comments

MUST, WRONG = "must", "wrong"
"""The types of the errors that are raised here: what a value must be, and what is wrong with a text. Others are
pydantic's own, about keys and lists."""

TITLE, SAID, SOURCE = 80, 1200, 60_000

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_ID = re.compile(r"[A-Za-z0-9_.-]{1,40}\Z")


class Strict(BaseModel):
    """An object of a reply: no key but its own, no value that would have to be converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True)
class Must:
    """Says in words what a value must be; its meaning is told in the JSON schema alone."""

    be: str
    meaning: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "description": f"{self.meaning}: {self.be}" if self.meaning else self.be}

    def _check(self, value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise PydanticCustomError(MUST, "{be}", {"be": self.be}) from None


def _of_printable_lines(text: str) -> str:
    if not all(character.isprintable() or character in "\n\t" for character in text):
        raise ValueError
    return text


def _line(text: str) -> str:
    text = text.strip()
    if not text.isprintable() or not 1 <= len(text) <= TITLE:
        raise ValueError
    return text


def _said(text: str) -> str:
    text = _of_printable_lines(text.replace("\r\n", "\n").strip())
    if len(text) > SAID:
        raise ValueError
    return text


def _something(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _code(text: str) -> str:
    """Return Metal without blank lines around it; what is wrong with it is told with its line."""
    text = text.replace("\r\n", "\n").strip("\n").rstrip()
    if len(text) > SOURCE:
        raise _wrong(f"it has {len(text)} characters; at most {SOURCE} are allowed")
    for number, line in enumerate(plain_comments(text).split("\n"), start=1):
        if line.startswith("```"):
            raise _wrong(f"line {number} is a Markdown fence; give the Metal alone")
        if line.startswith("//@"):
            raise _wrong(f"line {number} begins with //@, which only the text form of a program has")
        for character in line:
            if not (character.isascii() and (character.isprintable() or character == "\t")):
                shown = json.dumps(character)
                raise _wrong(f"line {number} has the character {shown}; only comments may have more than plain ASCII")
    return text


def _body(text: str) -> str:
    if not text:
        raise _wrong("it is empty; the body of the kernel must stand there")
    return text


def _wrong(told: str) -> PydanticCustomError:
    return PydanticCustomError(WRONG, "{told}", {"told": told})


def _matching(pattern: re.Pattern[str]) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.match(text):
            raise ValueError
        return text

    return AfterValidator(check)


def _expression(value: int | str) -> str:
    """Return a size as the text of an expression over axes."""
    text = str(value).strip()
    try:
        if len(text) > 200:
            raise ValueError
        parse(text)
    except ExpressionError as error:
        raise ValueError from error
    return text


def _not_nan(value: float | str | None) -> float | str | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    return value


def _template_value(value: int | bool | str) -> int | bool | str:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return text if text in DTYPES else _expression(text)


Title = Annotated[str, AfterValidator(_line), Must(f"one line of 1 to {TITLE} characters")]
Why = Annotated[
    str, AfterValidator(_said), AfterValidator(_something), Must(f"1 to {SAID} characters without control characters")
]
Said = Annotated[str, AfterValidator(_said), Must(f"at most {SAID} characters without control characters")]
Followed = Annotated[
    str,
    AfterValidator(_said),
    Must(
        f"at most {SAID} characters without control characters",
        'how the person\'s guidance was followed, "" where there is none',
    ),
]
Rating = Annotated[float, Field(ge=0, le=10), Must("a number from 0 to 10", "how promising")]
Confidence = Annotated[float, Field(ge=0, le=1), Must("a number from 0 to 1", "how sure of the rating")]
Difficulty = Annotated[int, Field(ge=1, le=5), Must("a whole number from 1 to 5", "how hard to write")]
Predicted = Annotated[
    float,
    Field(gt=0, le=1000, allow_inf_nan=False),
    Must("a number above 0, at most 1000", "speedup over the parent; 1 is no change"),
]
OptionId = Annotated[str, _matching(_ID), Must('the id of an option that is shown, such as "o4"')]
Name = Annotated[str, _matching(_IDENTIFIER), Must("a name of letters, digits and _")]
Size = Annotated[int | str, AfterValidator(_expression), Must("a whole number or an expression over axes in a string")]
DTypeName = Annotated[str, _matching(_IDENTIFIER), Must('a dtype such as "float32", or a dtype variable')]
TemplateArgument = Annotated[
    int | bool | str,
    AfterValidator(_template_value),
    Must("a whole number, true, false, a dtype, a dtype variable, or an expression over axes in a string"),
]
Source = Annotated[
    str, AfterValidator(_code), AfterValidator(_body), Field(description="the body of the kernel, in ASCII")
]
Header = Annotated[
    str, AfterValidator(_code), Field(description='functions that the body calls, in ASCII; "" for none')
]
InitValue = Annotated[
    float | Literal["inf", "-inf"] | None,
    AfterValidator(_not_nan),
    Must('a number, "inf", "-inf", or null', "what every output begins with, null for nothing"),
]
