"""What the model that chooses may say: options, ratings and reasons. What it may not say is refused whole, and told.

Each ``read_...`` takes the text of a reply and raises `MalformedReply` with one paragraph for the model.
"""

from __future__ import annotations

from typing import Annotated, Self, TypeVar

from pydantic import Field, model_validator

from search.proposers.base import Proposal
from search.proposers.llm.reply_faults import checked
from search.proposers.llm.reply_fields import (
    Confidence,
    Difficulty,
    Followed,
    OptionId,
    Predicted,
    Rating,
    Said,
    Strict,
    Title,
    Why,
)
from search.proposers.llm.reply_text import MalformedReply, answer_in, object_in

LEAST_FAMILIES = 3
MOST_OPTIONS = 6
MOST_NEW = 3
"""Most options that one refinement may bring."""


class OptionReply(Strict):
    """An option as a model proposes it; fields as in `search.proposers.base.Proposal`."""

    title: Title
    why: Why
    rating: Rating
    confidence: Confidence
    difficulty: Difficulty
    predicted: Predicted

    def proposal(self, family: str = "") -> Proposal:
        """Return it as a proposal; its reason begins with the ``family`` of options that it belongs to, if any."""
        why = f"{family}: {self.why}" if family else self.why
        return Proposal(self.title, why, "", self.rating, self.confidence, self.difficulty, self.predicted)


class FamilyReply(Strict):
    """Options of one kind, such as all that make loads wider."""

    name: Title
    options: Annotated[tuple[OptionReply, ...], Field(min_length=1, max_length=4)]


class InitializeReply(Strict):
    """What kind of kernel it is, what will bound it, and the first options in families."""

    kernel_class: Title
    bottlenecks: Annotated[tuple[Title, ...], Field(min_length=1, max_length=6)]
    families: Annotated[tuple[FamilyReply, ...], Field(min_length=LEAST_FAMILIES, max_length=6)]
    followed: Followed = ""

    @model_validator(mode="after")
    def _families_differ(self) -> Self:
        names = [family.name.casefold() for family in self.families]
        if len(set(names)) < len(names):
            raise ValueError("two families have one name; put their options into one family")
        return self

    def proposals(self) -> tuple[Proposal, ...]:
        """Return the options of all families."""
        return tuple(option.proposal(family.name) for family in self.families for option in family.options)


class ProposeReply(Strict):
    """Options under a node; none when there is nothing left to propose there."""

    options: Annotated[tuple[OptionReply, ...], Field(max_length=MOST_OPTIONS)]
    followed: Followed = ""

    def proposals(self) -> tuple[Proposal, ...]:
        """Return the options."""
        return tuple(option.proposal() for option in self.options)


class RedirectReply(Strict):
    """What follows from guidance: options in its order, or a question; ``avoid`` names open options it rules out."""

    options: Annotated[tuple[OptionReply, ...], Field(max_length=MOST_OPTIONS)]
    avoid: Annotated[tuple[OptionId, ...], Field(max_length=24)] = ()
    question: Said = ""
    choices: Annotated[tuple[Title, ...], Field(max_length=6)] = ()
    followed: Followed = ""

    @model_validator(mode="after")
    def _options_or_question(self) -> Self:
        if self.question and (self.options or self.avoid):
            raise ValueError("a question and options are given; give options, or a question with its choices")
        if self.question and len(self.choices) < 2:
            raise ValueError("a question is given without choices; give at least two in choices")
        if not (self.question or self.options or self.avoid):
            raise ValueError("there is neither an option, nor one to avoid, nor a question; give one of these")
        return self

    def proposals(self) -> tuple[Proposal, ...]:
        """Return the options."""
        return tuple(option.proposal() for option in self.options)


class RatingReply(Strict):
    """A new judgement of an open option."""

    option: OptionId
    rating: Rating
    confidence: Confidence
    why: Why


class InsertReply(Strict):
    """A new option under one that has passed."""

    under: OptionId
    option: OptionReply


class SplitReply(Strict):
    """An open option that is closed, as others take its place."""

    option: OptionId
    into: Annotated[tuple[OptionReply, ...], Field(min_length=2, max_length=MOST_NEW)]


class CloseReply(Strict):
    """An open option that isn't worth trying any more, and why."""

    option: OptionId
    why: Why


class RefineReply(Strict):
    """What a result changes in the tree; its ids are still to be checked, by `search.proposers.llm.refinement`."""

    ratings: Annotated[tuple[RatingReply, ...], Field(max_length=16)] = ()
    inserts: Annotated[tuple[InsertReply, ...], Field(max_length=MOST_NEW)] = ()
    splits: Annotated[tuple[SplitReply, ...], Field(max_length=1)] = ()
    closes: Annotated[tuple[CloseReply, ...], Field(max_length=16)] = ()
    followed: Followed = ""

    @model_validator(mode="after")
    def _few_and_once(self) -> Self:
        new = len(self.inserts) + sum(len(split.into) for split in self.splits)
        if new > MOST_NEW:
            raise ValueError(f"inserts and splits bring {new} new options; at most {MOST_NEW} are allowed")
        touched = [rating.option for rating in self.ratings]
        touched += [split.option for split in self.splits] + [close.option for close in self.closes]
        if twice := next((option for option in touched if touched.count(option) > 1), None):
            raise ValueError(f"the option {twice} is changed twice; rate it, split it or close it, and once")
        return self


def read_initialize(text: str, guided: bool = False) -> InitializeReply:
    """Return a reply to ``initialize``; ``guided``: it must say how it followed the person's guidance."""
    return _read(InitializeReply, text, guided)


def read_propose(text: str, guided: bool = False) -> ProposeReply:
    """Return a reply to ``propose``; ``guided``: it must say how it followed the person's guidance."""
    return _read(ProposeReply, text, guided)


def read_redirect(text: str) -> RedirectReply:
    """Return a reply to ``redirect``; it says how it followed the guidance unless it asks a question."""
    reply = _read(RedirectReply, text, guided=False)
    if not reply.question:
        check_followed(reply.followed, guided=True)
    return reply


def read_refine(text: str) -> RefineReply:
    """Return a reply to ``refine``."""
    return _read(RefineReply, text, guided=False)


def check_followed(followed: str, guided: bool) -> None:
    """Raise `MalformedReply` when nothing is said of guidance that there is."""
    if guided and not followed:
        raise MalformedReply("followed is empty; say in one or two sentences how you followed the person's guidance.")


_Reply = TypeVar("_Reply", InitializeReply, ProposeReply, RedirectReply, RefineReply)


def _read(kind: type[_Reply], text: str, guided: bool) -> _Reply:
    reply = checked(kind, object_in(answer_in(text)))
    check_followed(reply.followed, guided)
    return reply
