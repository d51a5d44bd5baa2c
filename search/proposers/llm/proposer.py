"""The proposer that asks a language model: one model chooses what to try, one writes the kernels.

It starts from the program that the problem gives or its family's naive one, so that the first thing measured is proven;
only where there is neither does the model write the first program too. What a person asked for on the way to an option
is in every question about it, and the model must say how it followed that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from search.calls import USED, Calls
from search.evaluation.record import Failure
from search.events import FOLLOWED
from search.kernels.families import FAMILIES
from search.kernels.program import Program
from search.proposers.base import (
    Judgement,
    NothingForNow,
    Proposal,
    ProposerError,
    ProposerUnavailable,
    Redirection,
    Refinement,
    Situation,
)
from search.proposers.catalogue import CatalogueProposer
from search.proposers.catalogue_entries import ROOT
from search.proposers.given_root import GIVEN
from search.proposers.llm.asking import Ask, Role
from search.proposers.llm.conversation import Conversation
from search.proposers.llm.program_replies import WrittenProgram, read_program
from search.proposers.llm.prompt_parts import Context, Setting
from search.proposers.llm.prompting import (
    ask_improve,
    ask_initialize,
    ask_propose,
    ask_redirect,
    ask_refine,
    ask_repair,
    ask_write,
)
from search.proposers.llm.refinement import (
    check_redirection,
    check_refinement,
    still_ruled_out,
    still_to_do,
)
from search.proposers.llm.replies import (
    RedirectReply,
    RefineReply,
    check_followed,
    read_initialize,
    read_propose,
    read_redirect,
    read_refine,
)
from search.proposers.llm.tree_view import guidance_view
from search.tree import Tree

FIRST = Proposal(
    "the first kernel",
    "Plain and correct: every speedup is over this one.",
    action="",
    rating=5.0,
    confidence=0.5,
    difficulty=2,
    predicted=0.0,
)
"""The root where neither the problem nor a family gives a program."""

_PROVEN = frozenset({ROOT, GIVEN})


class LlmProposer:
    """Proposes, writes, mends, improves and refines by asking models; see `search.proposers.base`.

    ``context`` is how much of the translation layer the models are told.
    """

    def __init__(self, conversation: Conversation, context: Context) -> None:
        self._conversation, self._context = conversation, context
        self._catalogue = CatalogueProposer()
        self._setting: Setting | None = None

    @property
    def name(self) -> str:
        """Who proposes: ``llm:`` and the model that chooses."""
        return f"llm:{self._conversation.model(Role.SELECTOR)}"

    def writer(self, situation: Situation, option: str) -> str:
        """Return who writes the program of ``option``: ``llm:`` and the model that writes, or the catalogue."""
        node = situation.tree[option]
        if node.action in _PROVEN and not node.evaluations:
            return self._catalogue.name
        return f"llm:{self._conversation.model(Role.GENERATOR)}"

    async def ready(self) -> None:
        """Raise `ProposerUnavailable` unless the endpoint is there and has models to ask."""
        await self._conversation.ready()

    async def close(self) -> None:
        """Let go of the connections; the next question makes new ones."""
        await self._conversation.close()

    # -- the model that chooses ---------------------------------------------------------------------------------------

    async def root(self, situation: Situation) -> Proposal:
        """Return the problem's own program or its family's naive one as an option; a new one where there is neither."""
        proven = situation.problem.root is not None or situation.problem.family in FAMILIES
        return await self._catalogue.root(situation) if proven else FIRST

    async def propose(self, situation: Situation, option: str) -> tuple[Proposal, ...]:
        """Return options under ``option``; the first time, in families, with the kernel's class and its bottlenecks."""
        setting, calls = await self._of(situation)
        guided = _is_guided(situation.tree, option)
        begun = calls.take_recorded("initialize", option)
        if begun or (option == situation.tree.root and not _initialized(situation.tree)):
            try:
                first = await self._conversation.ask(
                    calls, ask_initialize(setting), lambda text: read_initialize(text, guided), begun
                )
            except NothingForNow:
                raise
            except ProposerError as error:
                # Without first options there is nothing that the run could do instead.
                raise ProposerUnavailable(str(error)) from error
            bottlenecks = "; ".join(first.bottlenecks)
            calls.note(f"kernel class: {first.kernel_class}. Bottlenecks: {bottlenecks}", option)
            _say_how(calls, option, first.followed)
            return first.proposals()
        recorded = calls.take_recorded("propose", option)
        reply = await self._conversation.ask(
            calls, ask_propose(setting, option), lambda text: read_propose(text, guided), recorded
        )
        _say_how(calls, option, reply.followed)
        return reply.proposals()

    async def redirect(self, situation: Situation, option: str, guidance: str) -> Redirection:
        """Return options under ``option`` that follow ``guidance`` and what it rules out, or a question."""
        setting, calls = await self._of(situation)
        recorded = calls.take_recorded("redirect", option)

        def read(text: str) -> RedirectReply:
            reply = read_redirect(text)
            if text == recorded:
                reply = still_ruled_out(reply, situation.tree)
            check_redirection(reply, situation.tree, option)
            return reply

        reply = await self._conversation.ask(calls, ask_redirect(setting, option, guidance), read, recorded)
        _say_how(calls, option, reply.followed)
        return Redirection(reply.proposals(), (), reply.question, reply.choices, reply.avoid)

    async def refine(self, situation: Situation, option: str) -> Refinement:
        """Return what the result of ``option`` changes in the tree."""
        setting, calls = await self._of(situation)
        recorded = calls.take_recorded("refine", option)

        def read(text: str) -> RefineReply:
            reply = read_refine(text)
            if text == recorded:
                reply = still_to_do(reply, situation.tree)
            check_followed(reply.followed, _is_guided(situation.tree, option))
            check_refinement(reply, situation.tree)
            return reply

        reply = await self._conversation.ask(calls, ask_refine(setting, option), read, recorded)
        _say_how(calls, option, reply.followed)
        return Refinement(
            tuple(Judgement(each.option, each.rating, each.confidence, each.why) for each in reply.ratings),
            tuple((each.under, each.option.proposal()) for each in reply.inserts),
            tuple((each.option, tuple(part.proposal() for part in each.into)) for each in reply.splits),
            tuple((each.option, each.why) for each in reply.closes),
        )

    # -- the model that writes ----------------------------------------------------------------------------------------

    async def write(self, situation: Situation, option: str) -> Program:
        """Return the program of ``option``, built on its parent's; of the root, the proven one if there is one."""
        if situation.tree[option].action in _PROVEN:
            return await self._catalogue.write(situation, option)
        return await self._written(situation, option, lambda setting: ask_write(setting, option))

    async def repair(self, situation: Situation, option: str, program: Program, failure: Failure) -> Program | None:
        """Return ``program`` mended after ``failure``."""
        return await self._written(situation, option, lambda setting: ask_repair(setting, option, program, failure))

    async def improve(self, situation: Situation, option: str) -> Program | None:
        """Return another program for ``option``, which has passed."""
        return await self._written(situation, option, lambda setting: ask_improve(setting, option))

    async def _written(self, situation: Situation, option: str, asking: Callable[[Setting], Ask]) -> Program:
        setting, calls = await self._of(situation)
        guided = _is_guided(situation.tree, option)

        def read(text: str) -> WrittenProgram:
            return read_program(text, guided)

        ask = asking(setting)
        recorded = calls.take_recorded(ask.call, option)
        written = await self._conversation.ask(calls, ask, read, recorded)
        if written.comment:
            calls.note(f"the writer says: {written.comment}", option)
        _say_how(calls, option, written.followed)
        return written.program

    async def _of(self, situation: Situation) -> tuple[Setting, Calls]:
        """Return what the prompts of ``situation`` are about, and the way to ask."""
        if situation.calls is None:
            raise ProposerError("a model is asked only within a run, which keeps to its budget")
        if self._setting is None or self._setting.situation is not situation:
            self._setting = Setting(situation, self._context)
            # Reading the problem's CUDA references takes a while, and nobody should wait for it.
            await asyncio.to_thread(lambda setting: setting.texts, self._setting)
        return self._setting, situation.calls


def _is_guided(tree: Tree, option: str) -> bool:
    return bool(guidance_view(tree, option))


def _initialized(tree: Tree) -> bool:
    return any(
        event.kind == "replied" and (event["call"], event["outcome"]) == ("initialize", USED) for event in tree.events
    )


def _say_how(calls: Calls, option: str, followed: str) -> None:
    if followed:
        calls.note(followed, option, about=FOLLOWED)
