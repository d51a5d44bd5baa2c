"""The proposer that comes with the program: offline, deterministic, with a catalogue of optimizations for each family.

For a problem of no family it has nothing to propose beyond the program that the problem gives (`given_root`).

An option is a transformation of its parent's plan (`search.kernels.families`). Which are proposed depends on what is
legal there, on what the problem's CUDA references show, on where the parent's time goes, and on what a person asked for
or ruled out.
"""

from __future__ import annotations

from collections.abc import Set

from search.evaluation.record import Failure
from search.kernels.families import FAMILIES
from search.kernels.families.base import Refused
from search.kernels.program import Program
from search.option import OPEN
from search.proposers.base import Proposal, Redirection, Situation
from search.proposers.catalogue_entries import ROOT, load_entries
from search.proposers.catalogue_judgement import asked_for, judge
from search.proposers.catalogue_language import Unsure, read_all, read_guidance
from search.proposers.catalogue_plans import Plans, phrases_of, plan_of, plans_of_the_tree
from search.proposers.given_root import GIVEN, given_option, given_program

AT_ONCE = 4
"""Most options that are proposed at a time."""

MOST_CHOICES = 6

MENDABLE = ("memory", "launch")
"""Stages whose failures a smaller kernel of the same kind can mend."""


class CatalogueProposer:
    """Proposes, writes and mends from the catalogue; see `search.proposers.base.Proposer`."""

    name = "catalogue"

    async def root(self, situation: Situation) -> Proposal:
        """Return the problem's own root program if it gives one, else the naive kernel of its family."""
        if situation.problem.root is not None or not situation.problem.family:
            return given_option(situation.problem)
        entry = Plans(situation).entries[ROOT]
        return judge(entry, entry.title, "", None)

    async def propose(self, situation: Situation, option: str) -> tuple[Proposal, ...]:
        """Return the best rated options that are new under ``option``, what guidance on the way asks for first.

        Raises `ProposerError` under a kernel that was edited by hand.
        """
        plans = await plans_of_the_tree(situation)
        plans.built(option)
        reading = read_all(situation.tree.guidance_for(option), plans.phrases)
        path = {plans.key_of(node) for node in situation.tree.path(option)}
        asked, _ = _asked(plans, option, tuple(key for key in reading.wanted if key not in path), set(reading.avoid))
        ordinary = _ordinary(plans, option, set(reading.avoid) | {proposal.action for proposal in asked})
        taken = {plans.key_of(child) for child in plans.known_children(option)}
        return tuple(p for p in (*asked, *ordinary) if p.action not in taken)[:AT_ONCE]

    async def redirect(self, situation: Situation, option: str, guidance: str) -> Redirection:
        """Return what ``guidance`` asks for in the order meant, and what it rules out; a question when unsure."""
        plans = await plans_of_the_tree(situation)
        plan = plans.built(option)
        reading = read_guidance(guidance, plans.phrases)
        while reading.unsure:
            unsure = reading.unsure[0]
            possible = [key for key in unsure.keys if plans.leads_to(plan, key)]
            if len(possible) != 1:
                return _which(plans, unsure)
            reading = read_guidance(unsure.sentence.format(plans.plain_title(possible[0])), plans.phrases)
        if not reading.wanted and not reading.avoid:
            return _what(plans, option, _not_understood(plans, guidance))
        if not reading.wanted:
            return Redirection(_ordinary(plans, option, set(reading.avoid))[:AT_ONCE], reading.avoid)
        proposals, refusals = _asked(plans, option, reading.wanted, set(reading.avoid))
        if not proposals:
            return _what(plans, option, " ".join(refusals))
        return Redirection(proposals, reading.avoid)

    async def write(self, situation: Situation, option: str) -> Program:
        """Return the program of the plan that ``option`` asks for."""
        if situation.tree[option].action == GIVEN:
            return given_program(situation.problem)
        plans = Plans(situation)
        return plans.family.write(plans.intended(option))

    async def repair(self, situation: Situation, option: str, program: Program, failure: Failure) -> Program | None:
        """Return the same kernel with smaller tiles or threadgroups when it did not fit, None for other failures."""
        if failure.stage not in MENDABLE or not situation.problem.family:
            return None
        plans = Plans(situation)
        failed = plan_of(plans.family, plans.intended(option), program.sha256)
        lighter = plans.family.lighter(failed) if failed is not None else None
        return plans.family.write(lighter) if lighter is not None else None


# -- what can be proposed under an option -----------------------------------------------------------------------------


def _ordinary(plans: Plans, option: str, without: Set[str]) -> tuple[Proposal, ...]:
    """Return what the catalogue proposes by itself under ``option``, best first.

    Left out are the entries in ``without`` and what would only write a kernel again that the tree has elsewhere.
    """
    situation, plan = plans.situation, plans.built(option)
    elsewhere = plans.built_elsewhere(option)
    found = []
    for entry in plans.entries.values():
        place = entry.place_in(situation.hints)
        if entry.key == ROOT or entry.key in without or entry.on_request or (entry.evidence and not place):
            continue
        try:
            changed = plans.family.apply(plan, entry.key, plans.room)
        except Refused:
            continue
        if changed not in elsewhere:
            found.append(judge(entry, plans.title(entry.key, plan), place, situation.tree[option].passing))
    return tuple(sorted(found, key=lambda p: (-p.rating * (1 + p.confidence), p.difficulty, p.action)))


def _asked(
    plans: Plans, option: str, wanted: tuple[str, ...], avoid: Set[str]
) -> tuple[tuple[Proposal, ...], list[str]]:
    """Return the steps that lead to what is ``wanted`` under ``option``, in that order, and why others don't go there.

    Where something else must come first, that is the step, and says so.
    """
    situation, plan = plans.situation, plans.built(option)
    tried = {plans.key_of(child): child for child in plans.known_children(option)}
    steps: dict[str, Proposal] = {}
    refusals = []
    for key in wanted:
        title = plans.title(key, plan)
        try:
            step = plans.family.way_to(plan, key, plans.room)[0]
        except Refused as refusal:
            refusals.append(f"'{title}' does not go here: {refusal.reason}.")
            continue
        if step in avoid:
            refusals.append(f"'{title}' needs '{plans.title(step, plan)}' first, which is ruled out.")
        elif step in tried and tried[step].status not in (*OPEN, "pruned"):
            refusals.append(f"'{tried[step].title}' is here already ({tried[step].status}): redirect that option.")
        elif step not in steps:
            entry = plans.entries[step]
            why = "You asked for it." if step == key else f"The first step towards '{title}', which you asked for."
            judged = judge(
                entry, plans.title(step, plan), entry.place_in(situation.hints), situation.tree[option].passing
            )
            steps[step] = asked_for(judged, why, len(steps))
    return tuple(steps.values()), refusals


# -- questions --------------------------------------------------------------------------------------------------------


def _which(plans: Plans, unsure: Unsure) -> Redirection:
    """Ask which of several entries is meant; each choice is the sentence again, with that entry put in."""
    choices = tuple(unsure.sentence.format(plans.plain_title(key)) for key in unsure.keys)
    return Redirection(question=f"'{unsure.words}' could mean several things. Which?", choices=choices)


def _what(plans: Plans, option: str, reason: str) -> Redirection:
    """Say why nothing came of a sentence, and ask what to do instead."""
    choices = tuple(plans.plain_title(proposal.action) for proposal in _ordinary(plans, option, set()))
    return Redirection(question=f"{reason} What should be tried?", choices=choices[:MOST_CHOICES])


def _not_understood(plans: Plans, guidance: str) -> str:
    """Say that a sentence names nothing the family has, and what it names of another family."""
    for other in FAMILIES:
        if other != plans.family.name and (keys := read_guidance(guidance, phrases_of(other)).wanted):
            title = load_entries(other)[keys[0]].title
            return f"'{title}' is for {other} kernels, and this is {plans.family.name}."
    return "No optimization of the catalogue is named in that."
