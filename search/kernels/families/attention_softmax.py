"""The softmax of an attention kernel: the pieces of Metal text that every layout writes in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from search.kernels.families.attention_plan import AttentionPlan
from search.kernels.families.writer import MetalWriter


def exponential(plan: AttentionPlan) -> str:
    """Return the name of the function that takes a score to its weight."""
    return ("fast::" if plan.fast else "") + ("exp2" if plan.exp2 else "exp")


def fold_scale(plan: AttentionPlan, metal: MetalWriter) -> None:
    """Declare ``fold``, the factor that makes scores ready for `exponential`."""
    if plan.exp2:
        metal("const float fold = scale * 1.44269504f;  // log2 e in the scale: every exponential is a plain exp2")
    else:
        metal("const float fold = scale;")


@contextmanager
def when_grown(plan: AttentionPlan, metal: MetalWriter, peak: str) -> Iterator[None]:
    """Write what brings sums to the new maximum ``grown``, only where that is above ``peak`` if the plan says so."""
    with ExitStack() as nest:
        if plan.lazy_rescale:
            nest.enter_context(metal.block(f"if (grown > {peak})"))
        yield
