"""What is wrong with a reply, in one paragraph that is sent back to the model as it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from search.proposers.llm.reply_fields import MUST, WRONG
from search.proposers.llm.reply_text import MalformedReply

_Model = TypeVar("_Model", bound=BaseModel)

MOST_TOLD = 6
LONGEST = 60

_KINDS = {
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "string_type": "a string",
    "bool_type": "true or false",
}


def checked(kind: type[_Model], data: Mapping[str, Any]) -> _Model:
    """Return ``data`` as a reply of this kind; raise `MalformedReply` with all that is wrong."""
    try:
        return kind.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise MalformedReply(told(error)) from None


def told(error: ValidationError) -> str:
    """Return what is wrong, as ``options[1].rating is 12; it must be a number from 0 to 10.`` and so on."""
    found = _of_their_own(error.errors(include_url=False))
    sentences = [_sentence(fault) for fault in found[:MOST_TOLD]]
    if len(found) > MOST_TOLD:
        sentences.append(f"{len(found) - MOST_TOLD} more values are wrong.")
    return " ".join(sentences)


def _of_their_own(faults: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out that a list is too short where pydantic only didn't count its wrong entries."""
    places = [fault["loc"] for fault in faults]
    return [
        fault
        for fault in faults
        if fault["type"] != "too_short"
        or not any(len(place) > len(fault["loc"]) and place[: len(fault["loc"])] == fault["loc"] for place in places)
    ]


def _sentence(fault: Mapping[str, Any]) -> str:
    path, kind, context = _path(fault["loc"]), fault["type"], fault.get("ctx", {})
    match kind:
        case "missing":
            return f"{path} is missing."
        case "extra_forbidden":
            return (
                f"{path} can't be given: leave it out. Ids of new options, statuses, evaluations, tolerances and "
                "baselines are not the model's to say."
            )
        case "too_short":
            return f"{path} has {_entries(context['actual_length'])}; it must have at least {context['min_length']}."
        case "too_long":
            return f"{path} has {_entries(context['actual_length'])}; it may have at most {context['max_length']}."
        case "value_error":
            return f"{path}: {context['error']}." if fault["loc"] else f"{str(context['error']).capitalize()}."
    if kind == MUST:
        return f"{path} is {shown(fault['input'])}; it must be {context['be']}."
    if kind == WRONG:
        return f"{path}: {context['told']}."
    if kind in _KINDS:
        return f"{path} is {shown(fault['input'])}; it must be {_KINDS[kind]}."
    return f"{path}: {fault['msg']}."


def shown(value: Any) -> str:
    """Return a value of a reply as short JSON in ASCII."""
    text = json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _entries(count: int | None) -> str:
    return "too many entries" if count is None else "1 entry" if count == 1 else f"{count} entries"


def _path(place: tuple[int | str, ...]) -> str:
    """Return the place of a value as ``options[1].rating``; a key that a model made up is shown as JSON."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            name = step if step.isascii() and step.isidentifier() and len(step) <= LONGEST else shown(step)
            path += f".{name}" if path else name
    return path or "The reply"
