"""Plans and the text they write: what goes where, what fits, and rules that hold for every composition."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from search.kernels.expressions import evaluate
from search.kernels.families import FAMILIES
from search.kernels.families.attention import ATTENTION
from search.kernels.families.attention_plan import AttentionPlan
from search.kernels.families.base import Family, Present, Refused, Room
from search.kernels.families.softmax import SOFTMAX
from search.kernels.program import bind
from search.problems.definition import load_problem
from translator.metal_lint import lint

LIMIT = 32 * 1024
PROBLEMS = {"attention": "attention_prefill", "softmax": "softmax"}
WORST = Room(({"D": 128, "sizeof_T": 4},), LIMIT)
HALF_64 = Room(({"D": 64, "sizeof_T": 2},), LIMIT)


def random_plans(family: Family[Any], how_many: int, seed: int) -> Iterator[tuple[list[str], Any]]:
    """Yield legal paths through the family, drawn at random, each with the plan it leads to."""
    draw = random.Random(seed)
    for _ in range(how_many):
        plan, path = family.start, []
        for key in draw.choices(sorted(family.transformations), k=draw.randint(4, 24)):
            try:
                plan = family.apply(plan, key, WORST)
                path.append(key)
            except Refused:
                continue
        yield path, plan


def applied(family: Family[Any], *keys: str, room: Room = WORST) -> Any:
    plan = family.start
    for key in keys:
        plan = family.apply(plan, key, room)
    return plan


ALL_PLANS = [
    pytest.param(family, plan, id=f"{family.name}: {' '.join(path) or 'naive'}")
    for family in FAMILIES.values()
    for path, plan in random_plans(family, 60, seed=11)
]


# -- legality --------------------------------------------------------------------------------------------------------


def test_tiles_of_16_keys_fit_at_float32_and_128_dimensions_and_32_just_do() -> None:
    # K and V: 2 * keys * 128 dimensions * 4 bytes.
    tiled = applied(ATTENTION, "row_per_simdgroup", "kv_tiles")
    assert ATTENTION.threadgroup_bytes(tiled, {"D": 128, "sizeof_T": 4}) == 16 * 1024
    larger = ATTENTION.apply(tiled, "larger_tile", WORST)
    assert ATTENTION.threadgroup_bytes(larger, {"D": 128, "sizeof_T": 4}) == LIMIT


@pytest.mark.parametrize(
    ("path", "too_much"),
    [
        # Two tiles of 32 keys twice: 64 KiB.
        (["row_per_simdgroup", "kv_tiles", "larger_tile"], "double_buffer"),
        # K transposed with 33 columns and V: 128 * (33 + 32) * 4 = 32.5 KiB.
        (["row_per_simdgroup", "kv_tiles", "larger_tile"], "transposed_k"),
        # 128 * (17 + 16) * 4 twice: 33 KiB.
        (["row_per_simdgroup", "kv_tiles", "transposed_k"], "double_buffer"),
    ],
)
def test_what_does_not_fit_32_kib_is_refused_and_smaller_tiles_make_room(path: list[str], too_much: str) -> None:
    plan = applied(ATTENTION, *path)
    with pytest.raises(Refused, match=r"KiB of threadgroup memory; a threadgroup has 32 KiB") as refusal:
        ATTENTION.apply(plan, too_much, WORST)
    assert refusal.value.first == "smaller_tile"
    assert ATTENTION.apply(plan, too_much, HALF_64)


def test_a_transposed_tile_counts_its_extra_column() -> None:
    plan = applied(ATTENTION, "row_per_simdgroup", "kv_tiles", "transposed_k", "more_rows")
    # K 64 * 17 halves, V 64 * 16 halves.
    assert ATTENTION.threadgroup_bytes(plan, {"D": 64, "sizeof_T": 2}) == 64 * 17 * 2 + 64 * 16 * 2


def test_rows_that_are_read_as_matrices_are_padded_by_16_bytes() -> None:
    plan = applied(ATTENTION, "row_per_simdgroup", "online", "matrix_products")
    # 16 keys and 16 values of 128 floats and 4 more.
    assert ATTENTION.threadgroup_bytes(plan, {"D": 128, "sizeof_T": 4}) == 2 * 16 * (128 + 4) * 4
    assert ATTENTION.threadgroup_bytes(plan, {"D": 64, "sizeof_T": 2}) == 2 * 16 * (64 + 8) * 2


@pytest.mark.parametrize("key", ["transposed_k", "simd_reductions", "more_rows", "unroll", "kv_tiles"])
def test_what_matrix_products_leave_no_room_for_is_refused(key: str) -> None:
    with pytest.raises(Refused):
        ATTENTION.apply(applied(ATTENTION, "row_per_simdgroup", "online", "matrix_products"), key, HALF_64)


def test_a_tile_of_matrices_has_at_least_eight_keys() -> None:
    plan = applied(ATTENTION, "row_per_simdgroup", "online", "matrix_products", "smaller_tile")
    assert plan.tile == 8
    with pytest.raises(Present):
        ATTENTION.apply(plan, "smaller_tile", HALF_64)
    lighter = ATTENTION.lighter(plan)
    assert lighter is not None and (lighter.tile, lighter.simdgroups) == (8, 2)


@pytest.mark.parametrize(
    ("family", "path", "key", "first"),
    [
        (ATTENTION, [], "kv_tiles", "row_per_simdgroup"),
        (ATTENTION, ["row_per_simdgroup"], "double_buffer", "kv_tiles"),
        (ATTENTION, ["row_per_simdgroup"], "transposed_k", "kv_tiles"),
        (ATTENTION, [], "lazy_rescale", "online"),
        (ATTENTION, ["row_per_simdgroup"], "matrix_products", "online"),
        (SOFTMAX, [], "keep_in_registers", "row_per_simdgroup"),
        (SOFTMAX, ["row_per_simdgroup"], "rows_per_simdgroup", "shuffle_reductions"),
        (SOFTMAX, ["row_per_simdgroup"], "wider_threadgroup", "row_per_threadgroup"),
    ],
)
def test_a_refusal_names_what_comes_first(family: Family[Any], path: list[str], key: str, first: str) -> None:
    with pytest.raises(Refused) as refusal:
        family.apply(applied(family, *path), key, WORST)
    assert refusal.value.first == first


def test_a_way_leads_through_everything_that_must_come_first() -> None:
    assert ATTENTION.way_to(ATTENTION.start, "double_buffer", WORST) == (
        "row_per_simdgroup",
        "kv_tiles",
        "double_buffer",
    )
    large = applied(ATTENTION, "row_per_simdgroup", "kv_tiles", "larger_tile")
    assert ATTENTION.way_to(large, "transposed_k", WORST) == ("smaller_tile", "transposed_k")


def test_a_way_ends_where_a_step_brings_what_was_wanted_with_it() -> None:
    assert SOFTMAX.way_to(SOFTMAX.start, "simd_reductions", WORST) == ("row_per_simdgroup",)


def test_there_is_no_way_to_what_the_kernel_has_or_can_not_have() -> None:
    with pytest.raises(Present):
        SOFTMAX.way_to(applied(SOFTMAX, "online"), "online", WORST)
    with pytest.raises(Refused, match="32 lanes"):
        SOFTMAX.way_to(
            applied(SOFTMAX, "row_per_simdgroup", "shuffle_reductions", "rows_per_simdgroup"), "simd_reductions", WORST
        )


def test_a_room_too_small_for_any_tile_ends_the_search_for_a_way() -> None:
    with pytest.raises(Refused, match="threadgroup memory"):
        ATTENTION.way_to(applied(ATTENTION, "row_per_simdgroup"), "kv_tiles", Room(({"D": 128, "sizeof_T": 4},), 1024))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_transformation_changes_the_kernel_that_is_written(family: Family[Any]) -> None:
    for key in family.transformations:
        plan = family.start
        for step in family.way_to(plan, key, WORST):
            before, plan = plan, family.apply(plan, step, WORST)
            assert family.write(plan).passes != family.write(before).passes, f"{step} on the way to {key}"


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_independent_transformations_lead_to_the_same_kernel_in_any_order(family: Family[Any]) -> None:
    keys = ["row_per_simdgroup", "online", "exp2", "fast_exp"]
    draw = random.Random(5)
    plans = {applied(family, *draw.sample(keys, len(keys))) for _ in range(12)}
    assert len(plans) == 1


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_lighter_plan_needs_no_more_and_in_the_end_there_is_none(family: Family[Any]) -> None:
    for _, plan in random_plans(family, 20, seed=2):
        steps = 0
        while (lighter := family.lighter(plan)) is not None:
            assert lighter.threads <= plan.threads
            for axes in (*WORST.workloads, *HALF_64.workloads):
                assert family.threadgroup_bytes(lighter, axes) <= family.threadgroup_bytes(plan, axes)
            plan, steps = lighter, steps + 1
        assert steps < 12


# -- the text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "plan"), ALL_PLANS)
def test_the_text_is_clean_metal(family: Family[Any], plan: Any) -> None:
    (step,) = family.write(plan).passes
    assert lint(step.source, step.header) == []
    assert step.source.count("{") == step.source.count("}")
    assert max(len(line) for line in step.source.splitlines()) <= 120
    if "barrier" in step.source:
        assert "return" not in step.source


@pytest.mark.parametrize(("family", "plan"), ALL_PLANS)
def test_the_threadgroup_memory_is_what_the_text_declares(family: Family[Any], plan: Any) -> None:
    source = family.write(plan).passes[0].source
    for axes in ({"D": 64, "sizeof_T": 2}, {"D": 128, "sizeof_T": 4}):
        names = {"D": axes["D"], "PAD": 16 // axes["sizeof_T"]}
        for name, value in re.findall(r"constexpr uint (\w+) = (\d+);", source):
            names[name] = int(value)
        size_of = {"T": axes["sizeof_T"], "float": 4, "float4": 16, "vec<T, 4>": 4 * axes["sizeof_T"]}
        declared = sum(
            size_of[kind] * evaluate(extent.replace("/", "//"), names)
            for kind, extent in re.findall(r"^threadgroup ([\w<>, ]+?) \w+\[(.+)\];", source, re.MULTILINE)
        )
        assert declared == family.threadgroup_bytes(plan, axes)


@pytest.mark.parametrize(("family", "plan"), ALL_PLANS)
def test_the_grid_is_whole_threadgroups_and_covers_every_row(family: Family[Any], plan: Any) -> None:
    problem = load_problem(PROBLEMS[family.name])
    for workload in problem.workloads:
        axes = problem.bind_axes(workload)
        bound = bind(
            family.write(plan), problem.arrays(workload), (problem.outputs[0].name,), axes, workload.dtypes
        ).passes[0]
        rows = axes["rows"] if family.name == "softmax" else axes["L"]
        assert bound.grid[0] % bound.threadgroup[0] == 0
        assert bound.threadgroup[0] % 32 == 0
        groups = bound.grid[0] // bound.threadgroup[0]
        assert (groups - 1) * plan.rows_per_threadgroup < rows <= groups * plan.rows_per_threadgroup


def test_the_names_that_a_person_reads_follow_the_plan() -> None:
    plan = AttentionPlan(mapping="simdgroup", reduction="shuffle", rows=4, online=True, exp2=True, tile=16)
    source = ATTENTION.write(plan).passes[0].source
    assert "constexpr uint ROWS = 4;" in source
    assert "simd_shuffle_xor" in source
    assert "simd_sum" not in source
    assert "threadgroup T k_tile[TILE * D];" in source
    assert "exp2(" in source
