"""The softmax family: one pass over the device, from plans in `softmax_plan`, written by `softmax_metal`."""

from __future__ import annotations

from search.kernels.families.base import Family
from search.kernels.families.softmax_metal import VECTOR_HEADER, write_body
from search.kernels.families.softmax_plan import TRANSFORMATIONS, SoftmaxPlan, lighter, threadgroup_bytes
from search.kernels.program import Pass, Program


def write(plan: SoftmaxPlan) -> Program:
    """Return the program of ``plan`` for the problem ``softmax``."""
    threads = str(plan.threads)
    return Program(
        (
            Pass(
                name="softmax",
                inputs=("x",),
                outputs=("y",),
                header=VECTOR_HEADER if plan.vector > 1 else "",
                source=write_body(plan),
                grid=(f"ceildiv(rows, {plan.rows_per_threadgroup}) * {threads}", "1", "1"),
                threadgroup=(threads, "1", "1"),
                template=(("T", "T"),),
            ),
        )
    )


SOFTMAX: Family[SoftmaxPlan] = Family(
    name="softmax",
    start=SoftmaxPlan(),
    transformations=TRANSFORMATIONS,
    threadgroup_bytes=threadgroup_bytes,
    write=write,
    lighter=lighter,
)
