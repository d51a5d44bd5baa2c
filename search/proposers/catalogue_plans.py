"""Which plan each option of the tree stands for: the transformations on its path, applied in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from search.kernels.families import FAMILIES
from search.kernels.families.base import Family, Refused, Room
from search.option import Option
from search.proposers.base import ProposerError, Situation
from search.proposers.catalogue_entries import ROOT, Entry, load_entries
from search.proposers.catalogue_language import read_guidance

AT_A_TIME = 32
"""Options whose plans are worked out before others have their turn: some milliseconds when their kernels are new."""

Plan = Any
"""A plan of whichever family the problem belongs to."""


class Plans:
    """The plans of one situation's tree; they are worked out once for each option."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.family = family_of(situation)
        self.entries = load_entries(self.family.name)
        self.room = Room(
            tuple(situation.problem.bind_axes(work) for work in situation.problem.workloads if not work.hidden),
            situation.profile.threadgroup_memory_bytes,
        )
        self._built: dict[str, Plan] = {}

    def built(self, option: str) -> Plan:
        """Return the plan of the program that ``option`` has, or would get if it has none yet.

        Raises `ProposerError` when an option on the way was edited by hand, or stands for nothing the catalogue knows.
        """
        tree, above = self.situation.tree, option
        unknown = []
        while above and above not in self._built:
            unknown.append(tree[above])
            above = tree[above].parent
        for node in reversed(unknown):
            self._built[node.id] = self._as_written(node)
        return self._built[option]

    def intended(self, option: str) -> Plan:
        """Return the plan that ``option`` asks for, whatever its own program is."""
        node = self.situation.tree[option]
        key = self.key_of(node)
        if not node.parent:
            return self.family.start
        plan = self.built(node.parent)
        try:
            return self.family.apply(plan, key, self.room)
        except Refused as refusal:
            first = f"; add '{self.title(refusal.first, plan)}' before it" if refusal.first else ""
            raise ProposerError(f"'{node.title}' can't be applied here: {refusal.reason}{first}") from refusal

    def key_of(self, node: Option) -> str:
        """Return the entry that ``node`` stands for: its action, or for a person's own option what its title names."""
        if node.action in self.entries and (node.action == ROOT) == (not node.parent):
            return node.action
        if not node.action and node.parent and (key := _named(self.family.name, node.title)):
            return key
        raise ProposerError(
            f"the catalogue has nothing under the name '{node.title}': edit the option's kernel yourself, or use a "
            f"title that says one of: {', '.join(sorted(key.replace('_', ' ') for key in self.entries if key != ROOT))}"
        )

    def title(self, key: str, plan: Plan) -> str:
        """Return the title of the entry ``key`` as a step from ``plan``, with the numbers it leads to."""
        title = self.entries[key].title
        if "{" not in title:
            return title
        try:
            return title.format(plan=self.family.transformations[key](plan))
        except Refused:
            return self.plain_title(key)

    def plain_title(self, key: str) -> str:
        """Return the title of the entry ``key`` without numbers: a name that a person can give it too."""
        return plain_title(self.entries[key])

    def leads_to(self, plan: Plan, key: str) -> bool:
        """Whether the entry ``key`` can be reached from ``plan``."""
        try:
            self.family.way_to(plan, key, self.room)
        except Refused:
            return False
        return True

    def known_children(self, option: str) -> list[Option]:
        """Return the children of ``option`` that stand for an entry."""
        tree = self.situation.tree
        return [tree[child] for child in tree[option].children if self._is_known(tree[child])]

    def built_elsewhere(self, option: str) -> set[Plan]:
        """Return the plans of all options except the children of ``option``; hand-written kernels have none."""
        found = set()
        for node in self.situation.tree.options.values():
            if node.parent != option:
                with suppress(ProposerError):
                    found.add(self.built(node.id))
        return found

    def _is_known(self, node: Option) -> bool:
        try:
            self.key_of(node)
        except ProposerError:
            return False
        return True

    @property
    def phrases(self) -> Mapping[str, tuple[str, ...]]:
        """The words by which a person can mean each entry."""
        return phrases_of(self.family.name)

    def _as_written(self, node: Option) -> Plan:
        """Return the plan that wrote the program of ``node``: the one it asks for, or a lighter one after a repair."""
        try:
            plan = self.intended(node.id)
            found = plan_of(self.family, plan, node.program) if node.program else plan
        except ProposerError:
            if not node.edited:
                raise
            found = None
        if found is None:
            raise ProposerError(
                f"the kernel of '{node.title}' was edited by hand (or written by another version), and the catalogue "
                "can't transform text: edit the kernel of the new option yourself, or start from an option above"
            )
        return found


async def plans_of_the_tree(situation: Situation) -> Plans:
    """Return the plans of a tree with every option worked out, a few at a time, so that nobody waits for the rest.

    What happens to the tree in between counts: it is begun anew then.
    """
    tree = situation.tree
    while True:
        plans, seen = Plans(situation), len(tree.events)
        for number, option in enumerate(tuple(tree.options), start=1):
            with suppress(ProposerError):
                plans.built(option)
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)
                if len(tree.events) != seen:
                    break
        if len(tree.events) == seen:
            return plans


def family_of(situation: Situation) -> Family[Any]:
    """Return the family of kernels that the problem names; raise `ProposerError` when the catalogue has none for it."""
    problem = situation.problem
    if not problem.family:
        raise ProposerError(
            f"the catalogue has no entries for '{problem.name}': edit its kernel (e), or add options of your own (n)"
        )
    if problem.family not in FAMILIES:
        raise ProposerError(
            f"the catalogue writes kernels of the families {', '.join(sorted(FAMILIES))}; the problem '{problem.name}' "
            f"names '{problem.family}': choose another proposer, or edit each option's kernel yourself"
        )
    return FAMILIES[problem.family]


def plan_of(family: Family[Any], plan: Plan, program: str) -> Plan | None:
    """Return which of ``plan`` and its lighter forms writes the program with that hash, None if none does."""
    candidate: Plan | None = plan
    while candidate is not None and _written(family.name, candidate) != program:
        candidate = family.lighter(candidate)
    return candidate


@lru_cache(maxsize=4096)
def _named(family: str, title: str) -> str:
    """Return the one entry that ``title`` names, "" when it names none, or several."""
    reading = read_guidance(title, phrases_of(family))
    alone = len(reading.wanted) == 1 and not reading.avoid and not reading.unsure
    return reading.wanted[0] if alone else ""


@lru_cache(maxsize=1 << 15)
def _written(family: str, plan: Plan) -> str:
    return FAMILIES[family].write(plan).sha256


@cache
def phrases_of(family: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words by which a person can mean each entry of a family: its title and its keywords."""
    return {key: (plain_title(entry), *entry.keywords) for key, entry in load_entries(family).items() if key != ROOT}


def plain_title(entry: Entry) -> str:
    """Return the title of ``entry`` without the numbers of a plan."""
    return " ".join(word for word in entry.title.split() if "{" not in word)
