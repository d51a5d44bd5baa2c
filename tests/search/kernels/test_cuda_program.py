"""A launch plan bound to numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from search.kernels.cuda_program import ArrayValue, IntegerValue, RealValue, bind_launches
from search.kernels.program import ProgramError
from translator.launch_plan import (
    ArrayArgument,
    ArrayPlan,
    LaunchPlan,
    LaunchStep,
    Role,
    ScalarArgument,
    ScalarPlan,
    SizeArgument,
)
from translator.span import Span

STEP = LaunchStep(
    kernel="scale",
    template=("128",),
    grid=("ceildiv(n, 128)", "2", "1"),
    block=("128", "1", "1"),
    shared="4 * 128",
    arguments=(
        ArrayArgument("x", "n"),
        ArrayArgument("y"),
        SizeArgument("n"),
        ScalarArgument("eps"),
        ScalarArgument("a"),
    ),
    span=Span(0, 1, 1, 1),
)
PLAN = LaunchPlan(
    axes=("n",),
    scalars=(ScalarPlan("eps", "float32", "1e-5f"), ScalarPlan("a", "float32")),
    arrays=(
        ArrayPlan("x", "float32", "2 * n", Role.INPUT),
        ArrayPlan("y", "float64", "n", Role.INOUT),
        ArrayPlan("z", "int32", "1", Role.OUTPUT, zeroed=True),
        ArrayPlan("s", "float16", "n", Role.SCRATCH),
    ),
    steps=(STEP,),
)


def test_sizes_scalars_and_arguments_become_numbers():
    program = bind_launches(PLAN, "text", {"n": 300}, {"a": 0.25})
    (launch,) = program.launches
    assert (launch.grid, launch.block, launch.shared, launch.template) == ((3, 2, 1), (128, 1, 1), 512, ("128",))
    assert launch.arguments == (
        ArrayValue("x", 300),
        ArrayValue("y", 0),
        IntegerValue(300),
        RealValue(1e-5),
        RealValue(0.25),
    )
    assert [(array.spec.name, array.spec.shape, array.spec.nbytes) for array in program.arrays] == [
        ("x", (600,), 2400),
        ("y", (300,), 2400),
        ("z", (1,), 4),
        ("s", (300,), 600),
    ]
    assert [spec.name for spec in program.given] == ["x", "y"]
    assert program.results == ("y", "z")


SIZES, SCALARS = {"n": 300}, {"a": 1.0}


def changed(**step):
    """The plan with a step that is changed."""
    return replace(PLAN, steps=(replace(STEP, **step),))


UNSIZED = ArrayPlan("w", "float32", "", Role.INPUT)
UNKNOWN = ArrayPlan("w", "complex64", "1", Role.INPUT)


@pytest.mark.parametrize(
    ("plan", "axes", "scalars", "says"),
    [
        (PLAN, SIZES, {}, "scalar 'a': the source leaves it open"),
        (PLAN, {}, SCALARS, "no axis named 'n'"),
        (
            replace(PLAN, requires=(("multiple", "n", "8"),)),
            SIZES,
            SCALARS,
            "'n' is 300, which must be a multiple of 8",
        ),
        (replace(PLAN, requires=(("most", "n", "256"),)), SIZES, SCALARS, "'n' is 300, which must not exceed 256"),
        (changed(block=("32", "64", "1")), SIZES, SCALARS, "2048 threads in a block; CUDA allows 1024"),
        (changed(block=("1", "1", "65")), SIZES, SCALARS, "the block: '65' is 65; CUDA launches 1 to 64"),
        (changed(grid=("n - 300", "1", "1")), SIZES, SCALARS, "the grid: 'n - 300' is 0"),
        (changed(shared="n * 1024"), SIZES, SCALARS, "307200 bytes of dynamic shared memory; a block has 232448"),
        (replace(PLAN, arrays=(*PLAN.arrays, UNSIZED)), SIZES, SCALARS, "'w': nothing says how many elements it has"),
        (replace(PLAN, arrays=(*PLAN.arrays, UNKNOWN)), SIZES, SCALARS, "'w': unknown dtype 'complex64'"),
        (replace(PLAN, arrays=PLAN.arrays[1:]), SIZES, SCALARS, "there is no array 'x'"),
        (replace(PLAN, scalars=PLAN.scalars[:1]), SIZES, SCALARS, "there is no scalar 'a'"),
    ],
)
def test_what_cuda_would_not_launch_is_refused_with_the_reason(plan, axes, scalars, says):
    with pytest.raises(ProgramError) as caught:
        bind_launches(plan, "text", axes, scalars)
    assert says in str(caught.value)
