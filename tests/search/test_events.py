"""The form of events."""

from __future__ import annotations

import pytest

from search.events import FIELDS, KINDS, Event, fault

RATED = {"option": "o1", "rating": 5.0, "confidence": 0.5, "why": "", "by": "engine"}


def test_a_whole_event_has_no_fault() -> None:
    assert fault(Event(1, "", "rated", RATED)) == ""


def test_an_integer_is_a_number_too_but_not_a_flag() -> None:
    assert fault(Event(1, "", "rated", RATED | {"rating": 5})) == ""
    assert "'rating' is a bool, not a float" in fault(Event(1, "", "rated", RATED | {"rating": True}))
    assert "'on' is a int, not a bool" in fault(Event(1, "", "autopilot", {"on": 1, "by": "person"}))


def test_a_missing_field_and_an_unknown_kind_are_named() -> None:
    assert fault(Event(7, "", "rated", {"option": "o1"})) == "event 7 (rated) lacks 'rating'"
    assert fault(Event(7, "", "guessed", {})) == "unknown event kind 'guessed'"


def test_choices_are_texts() -> None:
    asked = {"option": "o1", "question": "which?", "choices": ["a", 2]}
    assert "'choices' holds something else than text" in fault(Event(1, "", "asked", asked))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_described_in_the_head_of_the_file(kind: str) -> None:
    import search.events

    described = [line.split()[0] for line in (search.events.__doc__ or "").splitlines() if line and line[0] != " "]
    assert kind in described
    assert FIELDS[kind]
