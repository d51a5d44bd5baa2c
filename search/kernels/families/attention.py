"""The attention family: one pass over the device, from plans in `attention_plan`, written by `attention_metal`."""

from __future__ import annotations

from search.kernels.families.attention_metal import write_body
from search.kernels.families.attention_plan import TRANSFORMATIONS, AttentionPlan, lighter, threadgroup_bytes
from search.kernels.families.base import Family
from search.kernels.program import Pass, Program


def write(plan: AttentionPlan) -> Program:
    """Return the program of ``plan`` for the problem ``attention_prefill``."""
    threads = str(plan.threads)
    return Program(
        (
            Pass(
                name="attention",
                inputs=("q", "k", "v", "scale"),
                outputs=("o",),
                source=write_body(plan),
                grid=(f"ceildiv(L, {plan.rows_per_threadgroup}) * {threads}", "B * H", "1"),
                threadgroup=(threads, "1", "1"),
                template=(("T", "T"), ("D", "D"), ("CAUSAL", "causal")),
            ),
        )
    )


ATTENTION: Family[AttentionPlan] = Family(
    name="attention",
    start=AttentionPlan(),
    transformations=TRANSFORMATIONS,
    threadgroup_bytes=threadgroup_bytes,
    write=write,
    lighter=lighter,
    shrink="smaller_tile",
)
