"""The catalogue as a proposer: what it proposes, follows, writes and mends on trees made by events."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from profiles.hardware import load_profile
from profiles.roofline import TERMS
from search.evaluation.record import PASSED, Evaluation, Failure, WorkloadTime
from search.events import Event
from search.kernels.families.attention import ATTENTION
from search.kernels.families.softmax import SOFTMAX
from search.kernels.program import Program
from search.problems.definition import Problem, load_problem
from search.proposers.base import Proposal, ProposerError, Redirection, Situation
from search.proposers.catalogue import AT_ONCE, CatalogueProposer
from search.proposers.catalogue_entries import ROOT, load_entries
from search.proposers.catalogue_judgement import judge
from search.tree import Tree, split_program
from translator.inventory import PATTERNS

ALL_HINTS = {pattern: f"flash.cu:7 {pattern}" for pattern in PATTERNS}


class Run:
    """A tree that grows by events, with the catalogue beside it."""

    def __init__(self, problem: str | Problem = "attention_prefill", hints: Mapping[str, str] = ALL_HINTS) -> None:
        self.tree = Tree()
        self.problem = load_problem(problem) if isinstance(problem, str) else problem
        self.situation = Situation(self.problem, load_profile("apple-m3-max"), self.tree, hints)
        self.catalogue = CatalogueProposer()
        self.names = (f"o{number}" for number in count(1))
        self.root = self.add("", asyncio.run(self.catalogue.root(self.situation)))

    def event(self, kind: str, **data: object) -> None:
        self.tree.apply(Event(len(self.tree.events) + 1, "2026-01-01T00:00:00Z", kind, data))

    def add(self, parent: str, proposal: Proposal, by: str = "catalogue") -> str:
        option = next(self.names)
        fields = {key: getattr(proposal, key) for key in ("title", "why", "action", "rating", "confidence")}
        fields |= {"difficulty": proposal.difficulty, "predicted": proposal.predicted}
        self.event("option_added", option=option, parent=parent, by=by, origin=0, **fields)
        return option

    def apply(self, parent: str, *actions: str) -> str:
        """Add a chain of options with these actions, without running them; return the last."""
        entries = load_entries(self.problem.family)
        for action in actions:
            parent = self.add(parent, judge(entries[action], action, "", None))
        return parent

    def own(self, parent: str, title: str) -> str:
        return self.add(parent, Proposal(title, "", "", 5.0, 0.5, 3, 0.0), by="person")

    def prove(self, option: str, program: Program | None = None, terms: Mapping[str, float] | None = None) -> None:
        """Let ``option`` pass with ``program``, by default the one the catalogue writes for it."""
        program = program or self.write(option)
        if not self.tree[option].approved_by:
            self.event("decided", option=option, decision="approve", by="person", policy_choice="")
        self.event("started", option=option, attempt=1)
        self.store(program)
        self.event("wrote", option=option, program=program.sha256, attempt=1, by="catalogue", note="")
        time = WorkloadTime("bench", 1.0, 1.0, 1.0, 0.1, terms=terms or {})
        found = Evaluation(program.sha256, PASSED, "simulator", "modelled", "apple-m3-max", times=(time,))
        self.event("evaluated", option=option, attempt=1, **found.to_fields())

    def store(self, program: Program) -> None:
        kernels, layout = split_program(program)
        for digest, text in kernels.items():
            self.event("kernel", sha256=digest, text=text)
        self.event("program", sha256=program.sha256, layout=layout)

    def edit(self, option: str) -> None:
        """Let a person change a line of the option's kernel."""
        program = self.write(option)
        changed = replace(program.passes[0], source=program.passes[0].source + "// mine\n")
        program = replace(program, passes=(changed,))
        self.store(program)
        self.event("edited", option=option, program=program.sha256, by="person", policy_choice="")

    def guide(self, option: str, guidance: str) -> None:
        self.event("redirected", option=option, guidance=guidance, by="person", policy_choice="")

    def propose(self, option: str) -> tuple[Proposal, ...]:
        return asyncio.run(self.catalogue.propose(self.situation, option))

    def actions(self, option: str) -> list[str]:
        return [proposal.action for proposal in self.propose(option)]

    def everything(self, option: str) -> set[str]:
        """Everything that is proposed under ``option`` when each proposal becomes a child and more is asked for."""
        found: set[str] = set()
        while proposals := self.propose(option):
            for proposal in proposals:
                self.add(option, proposal)
                found.add(proposal.action)
        return found

    def redirect(self, option: str, guidance: str) -> Redirection:
        return asyncio.run(self.catalogue.redirect(self.situation, option, guidance))

    def write(self, option: str) -> Program:
        return asyncio.run(self.catalogue.write(self.situation, option))

    def repair(self, option: str, program: Program, stage: str) -> Program | None:
        return asyncio.run(self.catalogue.repair(self.situation, option, program, Failure(stage, "does not fit")))


# -- proposing -------------------------------------------------------------------------------------------------------


def test_others_have_their_turn_while_a_large_tree_is_looked_at() -> None:
    run = Run()
    for number in range(500):
        run.own(run.root, f"idea {number}")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns == 5:
                run.apply(run.root, "row_per_simdgroup")
            await asyncio.sleep(0)

    async def propose() -> tuple[Proposal, ...]:
        beside = asyncio.create_task(others())
        proposals = await run.catalogue.propose(run.situation, run.root)
        beside.cancel()
        return proposals

    actions = [proposal.action for proposal in asyncio.run(propose())]
    assert turns > 10
    # What came into the tree meanwhile was seen.
    assert actions and "row_per_simdgroup" not in actions


@pytest.mark.parametrize(("problem", "family"), [("attention_prefill", ATTENTION), ("softmax", SOFTMAX)])
def test_the_root_is_the_naive_kernel(problem: str, family: object) -> None:
    run = Run(problem)
    assert run.tree[run.root].action == ROOT
    assert run.write(run.root) == family.write(family.start)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("family", "kernels"), [("attention", ATTENTION), ("softmax", SOFTMAX)])
def test_each_transformation_has_an_entry_and_each_entry_a_transformation(family: str, kernels: object) -> None:
    assert set(load_entries(family)) == {ROOT, *kernels.transformations}  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", ["attention", "softmax"])
def test_entries_speak_of_patterns_and_terms_that_exist(family: str) -> None:
    for entry in load_entries(family).values():
        assert set(entry.evidence) <= set(PATTERNS)
        assert set(entry.relieves) <= set(TERMS)
        assert 0 <= entry.rating <= 10
        assert 0 <= entry.confidence <= 1
        assert 1 <= entry.difficulty <= 5


def test_at_most_four_are_proposed_and_the_best_rated_come_first() -> None:
    run = Run()
    proposals = run.propose(run.apply(run.root, "row_per_simdgroup"))
    assert len(proposals) == AT_ONCE
    worth = [proposal.rating * (1 + proposal.confidence) for proposal in proposals]
    assert worth == sorted(worth, reverse=True)


def test_a_child_is_not_proposed_again_whatever_became_of_it() -> None:
    run = Run()
    child = run.apply(run.root, "row_per_simdgroup")
    assert "row_per_simdgroup" not in run.actions(run.root)
    run.event("decided", option=child, decision="prune", by="person", policy_choice="")
    assert "row_per_simdgroup" not in run.actions(run.root)


def test_a_kernel_that_another_branch_has_is_not_proposed_again() -> None:
    run = Run()
    run.apply(run.root, "online", "exp2")
    other = run.apply(run.root, "exp2")
    assert "online" not in run.actions(other)  # exp2 then online is the kernel of online then exp2


def test_only_what_the_cuda_references_show_is_proposed_and_cites_the_place() -> None:
    shown = Run(hints={"shuffle": "flash.cu:12 __shfl_xor_sync"})
    (proposal,) = [p for p in shown.propose(shown.root) if p.action == "row_per_simdgroup"]
    assert "flash.cu:12 __shfl_xor_sync" in proposal.why
    entry = load_entries("attention")["row_per_simdgroup"]
    assert proposal.confidence == pytest.approx(entry.confidence + 0.1)


def test_a_reference_without_shuffles_brings_no_simdgroup_entries() -> None:
    run = Run(hints={"online_softmax": "plain.cu:3", "vector_load": "plain.cu:9"})
    under = run.apply(run.root, "row_per_simdgroup")
    assert not {"shuffle_reductions", "simd_reductions"} & run.everything(under)
    assert run.everything(run.root) == {"online"}
    # Asked for by name it comes all the same.
    assert [p.action for p in run.redirect(run.root, "row per simdgroup").proposals] == ["row_per_simdgroup"]


def test_entries_without_evidence_need_none() -> None:
    run = Run(hints={})
    under = run.apply(run.root, "row_per_simdgroup", "online", "kv_tiles")
    assert run.everything(under) == {
        "matrix_products",
        "more_rows",
        "more_simdgroups",
        "larger_tile",
        "lazy_rescale",
    }


def test_where_the_time_goes_moves_ratings_and_predictions() -> None:
    ratings = {}
    for bound, other in (("simd", "cache"), ("cache", "simd")):
        run = Run()
        option = run.apply(run.root, "row_per_simdgroup")
        run.prove(run.root)
        run.prove(option, terms={bound: 9.0, other: 1.0})
        run.everything(option)
        children = [run.tree[child] for child in run.tree[option].children]
        ratings[bound] = {child.action: (child.rating, child.predicted) for child in children}
    assert ratings["cache"]["kv_tiles"] > ratings["simd"]["kv_tiles"]
    assert ratings["simd"]["shuffle_reductions"] > ratings["cache"]["shuffle_reductions"]


def test_judging_by_shares_is_what_a_person_works_out() -> None:
    entry = load_entries("attention")["kv_tiles"]  # relieves cache, l1 and memory
    time = WorkloadTime("bench", 1.0, 1.0, 1.0, 0.1, terms={"cache": 0.1, "memory": 0.1, "simd": 0.8})
    judged = judge(entry, "tiles", "", Evaluation("p", PASSED, "simulator", "modelled", "m3", times=(time,)))
    assert judged.rating == pytest.approx(entry.rating + 3 * (0.2 - 0.4), abs=0.051)
    assert judged.predicted == pytest.approx(1 + (entry.predicted - 1) * 0.5, abs=0.0051)
    assert "20% of its modelled time on cache, l1 and memory" in judged.why


def test_no_more_is_predicted_than_the_hardware_leaves() -> None:
    entry = load_entries("attention")["more_rows"]
    for seconds, least, predicted in ((1.0, 0.8, 1.25), (1.0, 0.1, entry.predicted), (1.0, 1.0, 1.0)):
        time = WorkloadTime("bench", seconds, seconds, seconds, least, terms={"cache": 1.0})
        judged = judge(entry, "rows", "", Evaluation("p", PASSED, "simulator", "modelled", "m3", times=(time,)))
        assert judged.predicted == pytest.approx(predicted)
        assert judged.rating == pytest.approx(min(entry.rating + 1.8, 5 + 5 * math.log2(1 / least)), abs=0.051)


def test_the_same_tree_brings_the_same_proposals() -> None:
    first, second = Run(), Run()
    for run in (first, second):
        run.apply(run.root, "row_per_simdgroup", "online")
    assert first.propose("o3") == second.propose("o3")


def test_a_problem_of_no_known_family_is_refused_in_words() -> None:
    run = Run()
    situation = replace(run.situation, problem=replace(run.problem, family="fft", name="mine"))
    with pytest.raises(ProposerError, match=r"attention, softmax.*'mine' names 'fft'"):
        asyncio.run(run.catalogue.root(situation))


def test_a_problem_without_a_family_starts_from_its_own_root_program(tmp_path: Path) -> None:
    mine = replace(load_problem("softmax"), family="", name="mine", folder=tmp_path)
    with pytest.raises(ProposerError, match=r"'mine' has no program to start from: write .*root\.metal"):
        Run(mine)
    root = tmp_path / "root.metal"
    root.write_text(
        "//@ pass copy\n//@ inputs x\n//@ outputs y\n//@ grid n\n//@ threadgroup 32\n//@ source\ny[0] = x[0];\n"
    )
    run = Run(replace(mine, root=root))
    assert [(step.name, step.source) for step in run.write(run.root).passes] == [("copy", "y[0] = x[0];")]
    with pytest.raises(ProposerError, match=r"no entries for 'mine': edit its kernel \(e\)"):
        run.propose(run.root)


# -- guidance --------------------------------------------------------------------------------------------------------


def test_redirecting_brings_what_is_wanted_in_order_and_says_what_to_avoid() -> None:
    run = Run()
    answer = run.redirect(
        run.apply(run.root, "row_per_simdgroup", "kv_tiles"), "double buffering first, then exp2, no unrolling"
    )
    assert [p.action for p in answer.proposals] == ["double_buffer", "exp2"]
    assert answer.avoid == ("unroll",)
    assert answer.proposals[0].rating > answer.proposals[1].rating
    # Asking does not make it faster: the prediction stays honest.
    assert answer.proposals[0].predicted <= 1.0


def test_what_must_come_first_is_proposed_first_and_says_why() -> None:
    run = Run()
    answer = run.redirect(run.root, "try double buffering")
    (proposal,) = answer.proposals
    assert proposal.action == "row_per_simdgroup"
    assert "first step towards 'Double-buffered tiles'" in proposal.why
    next_step = run.redirect(run.apply(run.root, "row_per_simdgroup"), "try double buffering")
    assert [p.action for p in next_step.proposals] == ["kv_tiles"]


def test_room_that_is_missing_is_made_first() -> None:
    run = Run()
    # 16 keys of K and V in float32 at D = 128, twice, are 32 KiB; an extra column would be more.
    option = run.apply(run.root, "row_per_simdgroup", "kv_tiles", "double_buffer")
    (proposal,) = run.redirect(option, "transpose K").proposals
    assert proposal.action == "smaller_tile"
    assert "transposed_k" not in run.everything(option)


def test_guidance_travels_with_the_subtree() -> None:
    run = Run()
    run.guide(run.root, "try double buffering, no exp2")
    option = run.apply(run.root, "row_per_simdgroup")
    assert run.actions(option)[0] == "kv_tiles"
    option = run.apply(option, "kv_tiles")
    assert run.actions(option)[0] == "double_buffer"
    option = run.apply(option, "double_buffer")
    assert "double_buffer" not in run.actions(option)
    assert "exp2" not in run.everything(option)


def test_the_latest_guidance_has_the_last_word() -> None:
    run = Run()
    run.guide(run.root, "no exp2")
    assert "exp2" not in run.actions(run.root)
    option = run.apply(run.root, "online")
    run.guide(option, "now try exp2")
    assert run.actions(option)[0] == "exp2"


def test_ruling_something_out_brings_the_rest() -> None:
    run = Run()
    answer = run.redirect(run.root, "no online softmax")
    assert answer.avoid == ("online",)
    assert "row_per_simdgroup" in [p.action for p in answer.proposals]
    assert "online" not in [p.action for p in answer.proposals]


def test_an_unclear_word_is_asked_about_and_each_choice_settles_it() -> None:
    run = Run("softmax")
    option = run.apply(run.root, "row_per_threadgroup")
    answer = run.redirect(option, "no exp2, other reductions")
    assert answer.question
    assert not answer.proposals
    assert len(answer.choices) == 2
    settled = [run.redirect(option, choice) for choice in answer.choices]
    assert [[p.action for p in s.proposals] for s in settled] == [["simd_reductions"], ["shuffle_reductions"]]
    assert all(s.avoid == ("exp2",) for s in settled)


def test_a_word_that_only_one_possible_thing_fits_is_not_asked_about() -> None:
    run = Run()
    option = run.apply(run.root, "row_per_simdgroup")  # reduces by simd_sum already
    assert [p.action for p in run.redirect(option, "other reductions").proposals] == ["shuffle_reductions"]


@pytest.mark.parametrize(
    ("guidance", "says"),
    [
        ("make it go brrr", "No optimization of the catalogue is named"),
        ("row per threadgroup", "'Row per threadgroup' is for softmax kernels"),
        ("rows in registers, [/b] {0} {{", "'Row kept in registers' is for softmax kernels"),
    ],
)
def test_a_sentence_that_says_nothing_here_is_asked_about(guidance: str, says: str) -> None:
    run = Run()
    answer = run.redirect(run.root, guidance)
    assert says in answer.question
    assert "Row per simdgroup" in answer.choices


def test_what_the_kernel_has_already_is_said_to_be_there() -> None:
    run = Run()
    answer = run.redirect(run.apply(run.root, "online"), "online softmax")
    assert "one pass over the keys already" in answer.question


def test_what_was_tried_under_the_option_is_pointed_to() -> None:
    run = Run()
    run.prove(run.root)
    run.prove(run.apply(run.root, "online"))
    assert "'online' is here already (passed)" in run.redirect(run.root, "online softmax").question


# -- writing ---------------------------------------------------------------------------------------------------------


def test_a_path_is_written_as_its_transformations_in_order() -> None:
    run = Run()
    one = run.apply(run.root, "row_per_simdgroup", "online", "exp2")
    other = run.apply(run.root, "exp2", "online", "row_per_simdgroup")
    assert run.write(one) == run.write(other)
    assert "exp2(" in run.write(one).passes[0].source


@pytest.mark.parametrize(
    ("title", "action"),
    [
        ("double buffring", "double_buffer"),
        ("Use [bold]float4[/bold] loads", "vector_loads"),
        ("try exp2 {here}", "exp2"),
    ],
)
def test_a_persons_own_option_is_written_from_its_title(title: str, action: str) -> None:
    run = Run()
    tiles = run.apply(run.root, "row_per_simdgroup", "kv_tiles")
    assert run.write(run.own(tiles, title)) == run.write(run.apply(tiles, action))


@pytest.mark.parametrize(
    "title",
    [
        "rewrite it in Rust",
        "no unrolling",
        "exp2 and tiles",
        "reductions",
        "naive",
        "'; DROP TABLE options; --",
        "\x1b[2J\u202e${jndi}",
        "{0.__class__}",
        "A" * 5000,
    ],
)
def test_a_title_that_names_no_single_entry_tells_the_person_to_edit(title: str) -> None:
    run = Run()
    with pytest.raises(ProposerError, match="edit the option's kernel yourself"):
        run.write(run.own(run.root, title))


def test_an_option_that_does_not_go_there_says_what_comes_first() -> None:
    run = Run()
    with pytest.raises(ProposerError, match=r"no tiles.*add 'K and V tiles in threadgroup memory' before it"):
        run.write(run.own(run.apply(run.root, "row_per_simdgroup"), "double buffering"))


def test_nothing_is_written_or_proposed_below_a_kernel_edited_by_hand() -> None:
    run = Run()
    option = run.apply(run.root, "row_per_simdgroup")
    run.edit(option)
    for attempt in (lambda: run.write(run.apply(option, "exp2")), lambda: run.propose(option)):
        with pytest.raises(ProposerError, match=r"edited by hand.*edit the kernel of the new option yourself"):
            attempt()
    assert run.write(option)  # the option itself can still be written anew
    assert "exp2" in run.actions(run.root)  # and elsewhere the tree goes on growing


def test_an_unknown_title_with_a_kernel_of_its_own_counts_as_edited() -> None:
    run = Run()
    option = run.own(run.root, "my own trick")
    program = run.write(run.root)
    mine = replace(program, passes=(replace(program.passes[0], source="// mine\n"),))
    run.store(mine)
    run.event("edited", option=option, program=mine.sha256, by="person", policy_choice="")
    with pytest.raises(ProposerError, match="edited by hand"):
        run.propose(option)


# -- mending ---------------------------------------------------------------------------------------------------------


def test_a_kernel_that_did_not_fit_is_mended_with_smaller_tiles_and_built_on() -> None:
    run = Run()
    run.prove(run.root)
    rows = run.apply(run.root, "row_per_simdgroup")
    run.prove(rows)
    tiles = run.apply(rows, "kv_tiles")
    first = run.write(tiles)
    mended = run.repair(tiles, first, "launch")
    assert mended is not None
    assert "constexpr uint TILE = 8;" in mended.passes[0].source
    again = run.repair(tiles, mended, "memory")
    assert again is not None
    assert "constexpr uint TILE = 4;" in again.passes[0].source
    run.prove(tiles, mended)
    assert "constexpr uint TILE = 8;" in run.write(run.apply(tiles, "exp2")).passes[0].source


def test_other_failures_and_kernels_of_others_are_not_mended() -> None:
    run = Run()
    tiles = run.apply(run.root, "row_per_simdgroup", "kv_tiles")
    assert run.repair(tiles, run.write(tiles), "compile") is None
    assert run.repair(tiles, run.write(run.root), "launch") is None


def test_mending_ends_when_nothing_can_be_smaller() -> None:
    run = Run()
    tiles = run.apply(run.root, "row_per_simdgroup", "kv_tiles")
    program: Program | None = run.write(tiles)
    seen = []
    while program is not None:
        seen.append(program.sha256)
        program = run.repair(tiles, program, "launch")
    # Tiles of 16, 8 and 4 keys, then 2 simdgroups and 1.
    assert len(seen) == len(set(seen)) == 5
