"""How the tree grows: where a run asks its proposer for options, and how those become options without doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from search import owed, policy
from search.events import ENGINE, PERSON, PROPOSE, REDIRECT, Event
from search.option import OPEN, PROPOSED, Option
from search.proposers.base import BrokenOff, NothingForNow, Proposal, Proposer, ProposerError, Redirection, Situation
from search.tree import Tree, TreeError

Emit = Callable[..., Any]

NOTHING = "no options proposed: "
"""How a note begins when the proposer can't."""


class Growth:
    """Asks for options and adds them to the tree; knows where nothing came.

    ``emit`` records what a person's act brings, ``emit_from_work`` what the run's own work does (and raises when that
    has been broken off).
    """

    def __init__(self, situation: Situation, proposer: Proposer, emit: Emit, emit_from_work: Emit) -> None:
        self._places = owed.places(situation.tree)
        self._situation, self._proposer = situation, proposer
        self._tree = situation.tree
        self._emit, self._emit_from_work = emit, emit_from_work

    @property
    def planted(self) -> bool:
        """Whether there is a root, and it may run."""
        return bool(self._tree.root) and self._tree[self._tree.root].status != PROPOSED

    async def plant(self) -> None:
        """Add the root and let it run: everything is measured against it; raise `ProposerError` if there is none."""
        if not self._tree.root:
            proposal = await self._proposer.root(self._situation)
            self._emit_from_work("option_added", **fields(self._tree.free_id(), "", proposal, self._proposer.name))
        root = self._tree.root
        self._emit_from_work("decided", option=root, decision="approve", by=ENGINE, policy_choice="")

    def place(self) -> str:
        """Return the option under which to ask for more before anything else runs, "" if there is enough to do.

        Where a person broke the question off it is asked again only when there is nothing else to do.
        """
        found = self._places
        if place := policy.to_grow(self._tree, found.exhausted | found.put_off, found.grown_at):
            return place
        return "" if self._tree.frontier() else policy.to_grow(self._tree, found.exhausted, found.grown_at)

    async def grow(self, option: str) -> None:
        """Ask for options under ``option`` and add what is new."""
        proposals = await self._asked_for(option)
        if proposals is not None:
            self.add(option, proposals)

    async def catch_up(self, option: str) -> None:
        """Add what is missing of the options that a reply brings, as an earlier run was killed in the middle of it."""
        proposals = await self._asked_for(option)
        if proposals and add(self._tree, self._emit_from_work, option, proposals, self._proposer.name):
            self._places.exhausted.discard(option)

    async def _asked_for(self, option: str) -> tuple[Proposal, ...] | None:
        """Return what is proposed under ``option``, None after a note when the proposer can't."""
        found = self._places
        found.grown_at = self._tree.evaluations
        try:
            return await self._proposer.propose(self._situation, option)
        except NothingForNow as error:
            if isinstance(error, BrokenOff):
                found.put_off.add(option)
            raise
        except ProposerError as error:
            found.exhausted.add(option)
            found.complaint = f"{NOTHING}{error}"
            self._emit_from_work("note", text=found.complaint, level="warning", option=option, about=PROPOSE)
            return None

    def add(self, option: str, proposals: tuple[Proposal, ...]) -> int:
        """Add what is new of ``proposals`` under ``option``; returns how many that is."""
        found = self._places
        new = add(self._tree, self._emit, option, proposals, self._proposer.name)
        found.put_off.discard(option)
        if new:
            found.exhausted.discard(option)
            found.complaint = ""
        else:
            found.exhausted.add(option)
        return new

    def nothing_left(self) -> str:
        """Say why there is nothing to try, when there is nothing."""
        root = self._tree[self._tree.root]
        if root.failed:
            return f"there is nothing to build on, '{root.title}' failed: {root.failed}"
        complaint = self._places.complaint.removeprefix(NOTHING)
        last = f"; the proposer's last word was: {complaint}" if complaint else ""
        return f"nothing is left to try{last}"

    def redirect(self, option: str, guidance: str, policy_choice: str) -> Event:
        """Record what a person says, before anyone is asked what follows, and return the event.

        The same words are recorded once where they got no answer and are said again.
        """
        if before := owed.asked_in_vain(self._tree, option, guidance):
            return self._tree.events[before - 1]
        event: Event = self._emit(
            "redirected", option=option, guidance=guidance, by=PERSON, policy_choice=policy_choice
        )
        return event

    def follow(self, redirect: Event, answer: Redirection) -> None:
        """Record what follows from a redirect, to be taken back together with it; or the question about it."""
        self._follow(redirect, answer, self._emit)

    def keep(self, redirect: Event, why: str) -> str:
        """Record that nothing follows from a redirect for now, as the proposer can't say; returns that in words."""
        return self._keep(redirect, why, self._emit)

    async def catch_up_redirect(self, redirect: Event) -> None:
        """Ask what follows from a redirect, as an earlier run was broken off meanwhile; it may be recorded in part."""
        try:
            answer = await self._proposer.redirect(self._situation, redirect["option"], redirect["guidance"])
        except NothingForNow:
            raise
        except ProposerError as error:
            self._keep(redirect, str(error), self._emit_from_work)
        else:
            if owed.holds(self._tree, redirect):
                self._follow(redirect, answer, self._emit_from_work)

    def _follow(self, redirect: Event, answer: Redirection, emit: Emit) -> None:
        option, origin = redirect["option"], redirect.seq
        if answer.question:
            choices = list(answer.choices)
            emit("asked", option=option, guidance=redirect["guidance"], question=answer.question, choices=choices)
            return
        if add(self._tree, emit, option, answer.proposals, self._proposer.name, origin):
            self._places.complaint = ""
        self._places.put_off.discard(option)
        for node in list(self._tree.subtree(option)):
            ruled_out = node.action in answer.avoid or node.id in answer.closes
            if ruled_out and node.status in OPEN and node.id != option:
                emit("decided", option=node.id, decision="prune", by=ENGINE, policy_choice="", origin=origin)
        self._look_again_under(option)

    def _keep(self, redirect: Event, why: str, emit: Emit) -> str:
        option = redirect["option"]
        if not owed.holds(self._tree, redirect):
            return why
        under = f"'{self._tree[option].title}' and all under it"
        text = f"{why.rstrip('.')}. What you said is kept as guidance for {under}."
        emit("note", text=text, level="warning", option=option, about=REDIRECT)
        self._look_again_under(option)
        return text

    def _look_again_under(self, option: str) -> None:
        """Let options be asked for again: new guidance may bring something where nothing came before."""
        for node in self._tree.subtree(option):
            self._places.exhausted.discard(node.id)


def add(tree: Tree, emit: Emit, parent: str, proposals: Iterable[Proposal], by: str, origin: int = 0) -> int:
    """Add ``proposals`` by ``by`` under ``parent``; returns how many are new.

    A change that is there already is not added again, whatever became of it. When a person asked for it (``origin`` is
    the seq of their redirect), an open one moves up to the new rating, and a pruned one that never ran is added anew.
    A proposal that breaks the tree's rules is refused whole, with a note.
    """
    new = 0
    for proposal in proposals:
        twin = _twin(tree, parent, proposal)
        if twin is not None and twin.status in OPEN:
            _move_up(emit, twin, proposal, by, origin)
        elif twin is None or (origin and twin.pruned and not twin.settled):
            try:
                emit("option_added", **fields(tree.free_id(), parent, proposal, by, origin))
                new += 1
            except TreeError as refused:
                emit("note", text=f"a proposal was refused: {refused}", level="warning", option=parent)
    return new


def fields(option: str, parent: str, proposal: Proposal, by: str, origin: int = 0) -> dict[str, Any]:
    """Return the fields of the ``option_added`` event for ``proposal``."""
    return {
        "option": option,
        "parent": parent,
        "title": " ".join(proposal.title.split()),
        "why": proposal.why.strip(),
        "action": proposal.action,
        "rating": float(proposal.rating),
        "confidence": float(proposal.confidence),
        "difficulty": proposal.difficulty,
        "predicted": float(proposal.predicted),
        "by": by,
        "origin": origin,
    }


def _twin(tree: Tree, parent: str, proposal: Proposal) -> Option | None:
    """Return the child of ``parent`` that is the same change, the latest if there are several."""
    for child in reversed(tree[parent].children):
        other = tree[child]
        if other.action == proposal.action and (
            proposal.action or other.title.casefold() == " ".join(proposal.title.split()).casefold()
        ):
            return other
    return None


def _move_up(emit: Emit, twin: Option, proposal: Proposal, by: str, origin: int) -> None:
    if origin and proposal.rating > twin.rating:
        emit(
            "rated",
            option=twin.id,
            rating=float(proposal.rating),
            confidence=float(max(twin.confidence, proposal.confidence)),
            why="asked for by a person",
            by=by,
            origin=origin,
        )
