"""An exported module launches exactly what was proven, falls back to MLX, checks itself, and needs nothing but MLX."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from search.events import Event
from search.kernels.dtypes import DType
from search.kernels.program import Buffer, Pass, Program, bind
from search.problems.definition import Problem, Workload, load_problem
from search.tree import Tree
from sessions.export import export_module
from sessions.store import SessionError

PROJECT = Path(__file__).parents[2]

SOFTMAX = Program(
    (
        Pass(
            "row maximum",
            ("x",),
            ("m",),
            "uint r = thread_position_in_grid.x;\nm[r] = largest(x, r * N, N);\n",
            ("rows", "1", "1"),
            ("min(rows,32)", "1", "1"),
            header='// a \\ and a "quote"\ninline float largest(const device T* x, uint at, uint n);\n',
            template=(("T", "T"), ("N", "n")),
            init_value=float("-inf"),
            atomic_outputs=True,
        ),
        Pass(
            "scale",
            ("x", "m"),
            ("y",),
            "uint i = thread_position_in_grid.x;\ny[i] = exp(x[i] - m[i / N]);\n",
            ("32 * rows", "ceildiv(n, 4 * 2)", "1"),
            ("32", "1", "1"),
            template=(("N", "n"), ("BYTES", "sizeof_T * 2"), ("FAST", True), ("K", 3), ("A", "float32")),
        ),
    ),
    (Buffer("m", ("rows", "max(1, n // 1024)"), "float32"),),
)
ATTENTION = Program(
    (
        Pass(
            "naive",
            ("q", "k", "v", "scale"),
            ("o",),
            "o[thread_position_in_grid.x] = q[0] * scale;\n",
            ("32*L", "H", "B"),
            ("32", "1", "1"),
            template=(("T", "T"), ("D", "D"), ("CAUSAL", "causal")),
        ),
    )
)

ODD_PROBLEM = """
name = "two-sums"
title = "Sums and products"
bytes = "2 * k * 8"
flops = "k"
reference = "reference.py:reference"
baseline = "reference.py:baseline"
[axes.k]
[axes.lambda]
[axes.mx]
[axes.width]
value = 4
[[inputs]]
name = "k"
shape = ["k", "width"]
dtype = "T"
[[inputs]]
name = "min"
shape = ["mx * k"]
dtype = "int32"
[[outputs]]
name = "sum"
shape = ["k"]
dtype = "float32"
[[outputs]]
name = "product"
shape = ["k", "lambda"]
dtype = "float32"
[tolerance]
float32 = { atol = 1e-6, rtol = 1e-5 }
[dtypes]
T = "float32"
[[workloads]]
name = "small"
role = "check"
axes = { k = 3, lambda = 2, mx = 2 }
[[workloads]]
name = "large"
role = "bench"
axes = { k = 5, lambda = 1, mx = 1 }
"""
ODD_REFERENCE = '''
from functools import partial

import mlx.core as mx
import numpy as np

WEIGHT = 2.0
UNUSED = np.float64(1)
scaled = partial(mx.multiply, WEIGHT)


def reference(axes, k, min):
    return {"sum": k.sum(axis=-1), "product": np.ones((axes["k"], axes["lambda"]))}


@mx.compile
def weighted(x):
    return scaled(x)


def baseline(axes, k, min):
    """Not the same as the reference: what matters here is what is carried along."""
    return [weighted(k.sum(axis=-1)), mx.ones((axes["k"], axes["lambda"])) * axes["width"]]
'''
ODD_PROGRAM = Program(
    (
        Pass("1st/pass", ("k", "min"), ("sum",), "sum[0] = k[0];", ("k", "lambda", "mx"), ("min(k, width)", "1", "1")),
        Pass("1st/pass", ("k",), ("product",), "product[0] = k[0];", ("k", "-1 + 2", "1"), ("1", "1", "1")),
    )
)


@pytest.fixture
def odd_problem(tmp_path: Path) -> Problem:
    (tmp_path / "problem.toml").write_text(ODD_PROBLEM)
    (tmp_path / "reference.py").write_text(ODD_REFERENCE)
    return load_problem(tmp_path)


@pytest.fixture
def grow(building_blocks: Any) -> Any:
    """Make the tree of a run in which ``program`` passed as the child ``o2`` of a root."""

    def grown(problem: Problem, program: Program, title: str = "faster") -> Tree:
        option, passed, numbered = (building_blocks[name] for name in ("option", "passed", "numbered"))
        workload = problem.of_role("bench")[0].name
        root = Program((Pass("root", program.passes[0].inputs, ("y",), "y[0] = 0;", ("1", "1", "1"), ("1", "1", "1")),))
        events: list[Event] = numbered(
            [
                option("o1", "", "naive"),
                *passed("o1", root, {workload: 0.003}),
                option("o2", "o1", title),
                *passed("o2", program, {workload: 0.0015}),
                option("o3", "o2", "never tried"),
            ]
        )
        return Tree.fold(events)

    return grown


def load(source: str) -> types.ModuleType:
    module = types.ModuleType("exported")
    exec(compile(source, "exported.py", "exec"), module.__dict__)
    return module


def zeros(problem: Problem, workload: Workload) -> dict[str, Any]:
    """Return arguments for a workload: arrays, scalars, and the axes that no shape tells."""
    arrays = problem.arrays(workload)
    return {
        tensor.name: mx.zeros(arrays[tensor.name].shape, getattr(mx, arrays[tensor.name].dtype.name))
        if tensor.shape
        else workload.scalars[tensor.name]
        for tensor in problem.inputs
    }


class RecordedKernels:
    """Stands in for ``mx.fast.metal_kernel``: remembers how each kernel was made and launched, and returns zeros."""

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []

    def __call__(self, **made: Any) -> Any:
        def launch(**launched: Any) -> list[Any]:
            self.launches.append(made | launched)
            return [mx.zeros(s, d) for s, d in zip(launched["output_shapes"], launched["output_dtypes"], strict=True)]

        return launch


@pytest.mark.parametrize(("name", "program"), [("softmax", SOFTMAX), ("attention_prefill", ATTENTION)])
def test_the_module_launches_what_the_devices_launch_on_every_workload(
    name: str, program: Program, grow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load_problem(name)
    kernels = RecordedKernels()
    monkeypatch.setattr(mx.fast, "metal_kernel", kernels)
    module = load(export_module(grow(problem, program), problem))
    for workload in problem.workloads:
        kernels.launches.clear()
        untold = {"causal": workload.axes["causal"]} if "causal" in workload.axes else {}
        result = getattr(module, f"{name}_metal")(**zeros(problem, workload), **untold)
        arrays, axes = problem.arrays(workload), problem.bind_axes(workload)
        bound = bind(program, arrays, tuple(t.name for t in problem.outputs), axes, workload.dtypes)
        assert len(kernels.launches) == len(bound.passes)
        for launched, step in zip(kernels.launches, bound.passes, strict=True):
            assert launched["source"] == step.source
            assert launched.get("header", "") == step.header
            assert launched["input_names"] == [spec.name for spec in step.inputs]
            assert launched["output_names"] == [spec.name for spec in step.outputs]
            assert [given.shape for given in launched["inputs"]] == [spec.shape for spec in step.inputs]
            assert [given.dtype for given in launched["inputs"]] == [getattr(mx, s.dtype.name) for s in step.inputs]
            assert launched["output_shapes"] == [spec.shape for spec in step.outputs]
            assert launched["output_dtypes"] == [getattr(mx, spec.dtype.name) for spec in step.outputs]
            assert (launched["grid"], launched["threadgroup"]) == (step.grid, step.threadgroup)
            assert launched.get("init_value") == step.init_value
            assert launched.get("atomic_outputs", False) == step.atomic_outputs
            assert launched.get("template", []) == [
                (key, getattr(mx, value.name) if isinstance(value, DType) else value) for key, value in step.template
            ]
        assert result.shape == arrays[problem.outputs[0].name].shape


def test_mlx_records_the_launch_of_the_real_kernel(grow: Any, tmp_path: Path) -> None:
    """MLX traces the call as it would run on Metal, up to the compiler, on any machine."""
    problem = load_problem("attention_prefill")
    module = load(export_module(grow(problem, ATTENTION), problem))
    queries = mx.zeros((2, 3, 7, 64), mx.float16)

    def attend(q: Any) -> Any:
        return module.attention_prefill_metal(q, q, q, 0.125, causal=True)

    mx.export_function(str(tmp_path / "graph.mlxfn"), attend, queries)
    assert module.NAIVE_KERNEL is not None
    assert b"CustomKernel" in (tmp_path / "graph.mlxfn").read_bytes()


@pytest.mark.parametrize(("name", "program"), [("softmax", SOFTMAX), ("attention_prefill", ATTENTION)])
def test_the_file_passes_ruff_and_says_what_was_found(name: str, program: Program, grow: Any, tmp_path: Path) -> None:
    problem = load_problem(name)
    source = export_module(grow(problem, program), problem, session="a.ksearch.toml")
    path = tmp_path / "kernel.py"
    path.write_text(source)
    for rules in (["--isolated"], ["--config", str(PROJECT / "pyproject.toml")]):
        subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", *rules, str(path)], check=True)
    told = ast.get_docstring(ast.parse(source))
    assert told is not None
    assert problem.title in told
    assert "Options: naive > faster" in told
    assert "on 11 cases; the largest error is 0.25 of the tolerance" in told
    assert "Figures, modelled for apple-m3-max:" in told
    assert f"- {problem.of_role('bench')[0].name}: 1500.0 us, 50% of the roofline" in told
    assert "2.00x the first kernel of the run" in told
    assert "kept in a.ksearch.toml, begun at 2025-01-01T00:00:01.000Z, of 2 evaluations; option o2." in told
    assert program.sha256 in told


def test_the_module_runs_alone_and_falls_back_to_mlx(grow: Any, tmp_path: Path) -> None:
    problem = load_problem("softmax")
    (tmp_path / "kernel.py").write_text(export_module(grow(problem, SOFTMAX), problem))
    use = (
        "import sys, mlx.core as mx, kernel; mx.set_default_device(mx.cpu);"
        "print(kernel.softmax(mx.array([[0.0, 0.0], [0.0, 1.0986123]])).tolist());"
        "print(sorted(m for m in ('search', 'sessions', 'numpy', 'translator') if m in sys.modules))"
    )
    # -S leaves out site-packages, and with it the project's editable install; only MLX is put back.
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "mlx").symlink_to(Path(mx.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-c", use],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, modules = done.stdout.splitlines()
    assert ast.literal_eval(rows) == [pytest.approx([0.5, 0.5]), pytest.approx([0.25, 0.75])]
    assert modules == "[]"


def test_without_metal_the_self_check_does_not_claim_to_have_checked(grow: Any, tmp_path: Path) -> None:
    if mx.metal.is_available():
        pytest.skip("this machine has Metal")
    problem = load_problem("softmax")
    (tmp_path / "kernel.py").write_text(export_module(grow(problem, SOFTMAX), problem))
    done = subprocess.run([sys.executable, tmp_path / "kernel.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was checked" in done.stderr


def test_the_self_check_tells_a_right_kernel_from_wrong_ones(
    grow: Any, odd_problem: Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    module = load(export_module(grow(odd_problem, ODD_PROGRAM), odd_problem))
    right = module.two_sums_mlx
    assert module.self_check(right)
    assert capsys.readouterr().out == "large: the largest difference is 0% of what is allowed\n"

    def nearly(**given: Any) -> Any:
        total, product = right(**given)
        return total, product * 1.00001

    def off_in_one_place(**given: Any) -> Any:
        total, product = right(**given)
        return total, product + mx.array([[0.0]] * 4 + [[0.001]])

    def unwritten(**given: Any) -> Any:
        total, product = right(**given)
        return total * float("nan"), product

    def short(**given: Any) -> Any:
        total, product = right(**given)
        return total[:-1], product

    assert module.self_check(nearly)
    for wrong in (off_in_one_place, unwritten, short):
        assert not module.self_check(wrong)


def test_awkward_names_and_unknown_axes_still_make_a_module(
    grow: Any, odd_problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = RecordedKernels()
    monkeypatch.setattr(mx.fast, "metal_kernel", kernels)
    module = load(export_module(grow(odd_problem, ODD_PROGRAM), odd_problem))
    values, indices = mx.zeros((3, 4)), mx.zeros((6,), mx.int32)
    total, product = module.two_sums_metal(values, indices, lambda_=2, mx_=2)
    assert (total.shape, product.shape) == ((3,), (3, 2))
    assert [launch["grid"] for launch in kernels.launches] == [(3, 2, 2), (3, 1, 1)]
    assert kernels.launches[0]["threadgroup"] == (3, 1, 1)
    assert kernels.launches[0]["input_names"] == ["k", "min"]
    assert kernels.launches[0]["name"] != kernels.launches[1]["name"]
    total, product = module.two_sums(mx.ones((3, 4)), indices, lambda_=2, mx_=2)
    assert total.tolist() == [8.0, 8.0, 8.0]
    assert product.tolist() == [[4.0, 4.0]] * 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((mx.zeros((3, 5)), mx.zeros((6,), mx.int32)), r"k is .*float32 \(3, 5\); expected .*float32 \(3, 4\)"),
        ((mx.zeros((3,)), mx.zeros((6,), mx.int32)), r"k has shape \(3,\); expected \(k, width\)"),
        ((mx.zeros((3, 4)), mx.zeros((5,), mx.int32)), r"min_ is .*int32 \(5,\); expected .*int32 \(6,\)"),
        ((mx.zeros((3, 4)), mx.zeros((6,))), r"min_ is .*float32 \(6,\); expected .*int32"),
        (
            (mx.zeros((3, 4), mx.float16), mx.zeros((6,), mx.int32)),
            r"T is .*float16; the kernel was proven for .*float32",
        ),
    ],
)
def test_arguments_that_were_never_proven_are_refused(
    grow: Any, odd_problem: Problem, arguments: tuple[Any, ...], complaint: str
) -> None:
    module = load(export_module(grow(odd_problem, ODD_PROGRAM), odd_problem))
    with pytest.raises(ValueError, match=complaint):
        module.two_sums(*arguments, lambda_=2, mx_=2)


def test_text_from_a_model_stays_text(grow: Any) -> None:
    problem = load_problem("softmax")
    title = 'x"""\nimport os; os.abort()\n"""\\ \x1b[2J\u202e'
    hostile = Program(
        (
            Pass(
                'pass"""; import os',
                ("x",),
                ("y",),
                'y[0] = 1; // """ \\\n)import os\n',
                ("rows", "1", "1"),
                ("1", "1", "1"),
                header='\u202e\r\nends in a quote"',
            ),
        )
    )
    source = export_module(grow(problem, hostile, title), problem)
    statements = ast.parse(source).body
    imports = [ast.unparse(s) for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    assert imports == [
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "from typing import Any",
        "import mlx.core as mx",
    ]
    assert not any(isinstance(s, ast.Expr) for s in statements[1:])
    assert "\x1b" not in source and "\u202e" not in source and "\r" not in source
    texts = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert hostile.passes[0].source in texts and hostile.passes[0].header in texts


def test_only_what_was_proven_is_exported(grow: Any) -> None:
    problem = load_problem("softmax")
    tree = grow(problem, SOFTMAX)
    with pytest.raises(SessionError, match="option 'o3' is proposed: only a program that was proven"):
        export_module(tree, problem, "o3")
    with pytest.raises(SessionError, match="there is no option 'o9'"):
        export_module(tree, problem, "o9")
    with pytest.raises(SessionError, match="no option of this run has passed yet"):
        export_module(Tree(), problem)
    with pytest.raises(SessionError, match="option 'o2' can't be exported: buffer 'm': no axis named 'rows'"):
        export_module(tree, load_problem("attention_prefill"))


def test_another_option_than_the_best_can_be_asked_for(grow: Any) -> None:
    problem = load_problem("softmax")
    source = export_module(grow(problem, SOFTMAX), problem, "o1")
    assert "Options: naive\n" in source and "ROOT_KERNEL" in source


def test_a_baseline_that_needs_more_than_mlx_is_refused(grow: Any, odd_problem: Problem) -> None:
    path = odd_problem.folder / "reference.py"
    path.write_text(ODD_REFERENCE.replace("WEIGHT = 2.0", "WEIGHT = np.float64(2)"))
    with pytest.raises(SessionError, match=r"reference\.py: 'baseline' rests on 'numpy'.*with MLX alone"):
        export_module(grow(odd_problem, ODD_PROGRAM), odd_problem)


def test_a_problem_whose_file_is_broken_is_refused_in_words(grow: Any, odd_problem: Problem) -> None:
    path = odd_problem.folder / "reference.py"
    for text, complaint in (("def baseline(:", "invalid syntax"), ("x = 1", "there is no function 'baseline'")):
        path.write_text(text)
        with pytest.raises(SessionError, match=complaint):
            export_module(grow(odd_problem, ODD_PROGRAM), odd_problem)
    path.unlink()
    with pytest.raises(SessionError, match="No such file"):
        export_module(grow(odd_problem, ODD_PROGRAM), odd_problem)


def test_a_program_without_element_types_leaves_no_unused_name(grow: Any, odd_problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(export_module(grow(odd_problem, ODD_PROGRAM), odd_problem))
    subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", str(path)], check=True)
