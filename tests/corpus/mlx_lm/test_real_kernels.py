"""Every Metal kernel of mlx-lm, from MLX's own text, beside the same computation in MLX operations.

`docs/real-kernels.md` is what these tests found; ``KSEARCH_WRITE_DOCS=1 pytest -n0 tests/corpus`` writes it anew.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx import nn

from search.devices.base import CheckReport

DOCUMENT = Path(__file__).parents[3] / "docs" / "real-kernels.md"
F32, F16, BF16 = "float32", "float16", "bfloat16"
ALL = (F32, F16, BF16)
MOST = {F32: 2e-5, F16: 2e-3, BF16: 1.6e-2}
"""Largest difference, as a part of the largest value: some rounding errors of each type."""

Shape = tuple[int, ...]
Pairs = list[tuple[mx.array, mx.array]]


@dataclass(frozen=True)
class Draw:
    """Random inputs of one case, and the type that they are rounded to."""

    random: np.random.Generator
    dtype: mx.Dtype

    def __call__(self, *shape: int, scale: float = 1.0, dtype: mx.Dtype | None = None) -> mx.array:
        return mx.array(self.random.normal(0, scale, shape).astype(np.float32)).astype(dtype or self.dtype)

    def single(self, *shape: int, scale: float = 1.0) -> mx.array:
        """Draw float32, whatever the case's type."""
        return self(*shape, scale=scale, dtype=mx.float32)

    def rounded(self, array: mx.array) -> mx.array:
        """Round to the case's type."""
        return array.astype(self.dtype)


def single(*arrays: mx.array) -> list[mx.array]:
    return [array.astype(mx.float32) for array in arrays]


def normed(x: mx.array, eps: float) -> mx.array:
    """Return the RMS norm of rows in float32."""
    (x,) = single(x)
    return x * mx.rsqrt(mx.mean(x * x, axis=-1, keepdims=True) + eps)


def qk_norm(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, heads, kv_heads, dim = shape
    qkvg = draw(tokens, 2 * (heads + kv_heads) * dim)
    got = lm.module("kernels.qk_norm").qk_norm(
        qkvg, n_heads=heads, n_kv_heads=kv_heads, head_dim=dim, eps=1e-5, query_scale=0.35
    )
    return list(zip(got, _normed_heads(qkvg, heads, kv_heads, dim, draw), strict=True))


def _normed_heads(qkvg: mx.array, heads: int, kv_heads: int, dim: int, draw: Draw) -> tuple[mx.array, mx.array]:
    rows = qkvg[..., : (heads + kv_heads) * dim].reshape(*qkvg.shape[:-1], heads + kv_heads, dim)
    y = draw.rounded(normed(rows, 1e-5))
    return draw.rounded(y[..., :heads, :].astype(mx.float32) * 0.35), y[..., heads:, :]


def qk_norm_rope(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    batch, length, heads, kv_heads, dim = shape
    qkvg = draw(batch, length, 2 * (heads + kv_heads) * dim)
    offset = mx.array([3, 11][:batch]) if batch > 1 else 7
    got = lm.module("kernels.qk_norm_rope").qk_norm_rope(
        qkvg,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=dim,
        eps=1e-5,
        query_scale=0.35,
        rope_base=10000.0,
        offset=offset,
    )
    wanted = [
        mx.fast.rope(
            y.swapaxes(1, 2).astype(mx.float32), dim, traditional=True, base=10000.0, scale=1.0, offset=offset
        ).swapaxes(1, 2)
        for y in _normed_heads(qkvg, heads, kv_heads, dim, draw)
    ]
    return list(zip(got, wanted, strict=True))


def expert_routing(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, experts, top = shape
    logits, bias = draw(tokens, experts), draw.single(experts, scale=0.1)
    got = lm.module("kernels.expert_routing").expert_routing(
        logits, bias, top_k=top, multiplier=1.5, score_eps=1e-9, route_scale=2.5
    )
    scores = mx.sigmoid(logits.astype(mx.float32) * 1.5)
    chosen = mx.argsort(-(scores + bias), axis=-1)[..., :top]
    weights = mx.take_along_axis(scores, chosen, axis=-1)
    return [(got[0], chosen), (got[1], 2.5 * weights / (mx.sum(weights, axis=-1, keepdims=True) + 1e-9))]


def expert_combine(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, experts, dim = shape
    x, weights, scale = draw(tokens, experts, dim), draw.single(tokens, experts), draw(dim)
    got = lm.module("kernels.post_expert_norm_combine").post_expert_norm_combine(
        x, weights, norm_weight=scale, eps=1e-5
    )
    rows = normed(x.astype(mx.float32) * scale.astype(mx.float32), 1e-5)
    total = mx.zeros((tokens, dim))
    for k in range(experts):
        total = draw.rounded(total + rows[:, k] * draw.rounded(weights[:, k, None])).astype(mx.float32)
    return [(got, total)]


def norm_gate(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    batch, heads, length, dim = shape
    # Both come transposed, as attention leaves them: the kernel goes by their strides.
    x = draw(batch, length, heads, dim).swapaxes(1, 2)
    gate = draw(length, batch, heads * dim).swapaxes(0, 1)
    got = lm.module("kernels.rms_norm_sigmoid_gate").rms_norm_sigmoid_gate(x, gate, eps=1e-5)
    rows = normed(x, 1e-5).swapaxes(1, 2).reshape(batch, length, heads * dim)
    return [(got, rows * mx.sigmoid(gate.astype(mx.float32)))]


def norm_add_norm(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, dim, scaled = shape
    inputs = _norm_add_inputs(tokens, dim, scaled, draw)
    norm = _norm_module(dim, draw)
    got = lm.module("kernels.norm_add_norm").norm_add_norm(**inputs, next_norm=norm)
    stream = _norm_add(inputs, draw)
    return list(zip(got, (stream, normed(stream, norm.eps) * norm.weight), strict=True))


def norm_add(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, dim, scaled = shape
    inputs = _norm_add_inputs(tokens, dim, scaled, draw)
    got, nothing = lm.module("kernels.norm_add_norm").norm_add_norm(**inputs, next_norm=None)
    assert nothing is None
    return [(got, _norm_add(inputs, draw))]


def pre_norm(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, dim = shape
    stream, norm = draw.single(tokens, dim), _norm_module(dim, draw)
    got = lm.module("kernels.norm_add_norm").pre_norm(stream, norm, dtype=draw.dtype)
    return [(got, normed(stream, norm.eps) * norm.weight)]


def _norm_module(dim: int, draw: Draw) -> nn.RMSNorm:
    norm = nn.RMSNorm(dim, eps=1e-6)
    norm.weight = draw(dim)
    return norm


def _norm_add_inputs(tokens: int, dim: int, scaled: int, draw: Draw) -> dict[str, Any]:
    return {
        "branch": draw(tokens, dim),
        "stream": draw.single(tokens, dim),
        "alpha": draw.single(dim),
        "beta": draw.single(dim),
        "post_weight": draw.single(dim) if scaled else None,
        "post_eps": 1e-5,
    }


def _norm_add(given: dict[str, Any], draw: Draw) -> mx.array:
    branch = given["branch"].astype(mx.float32)
    if given["post_weight"] is not None:
        branch = draw.rounded(draw.rounded(given["post_weight"]).astype(mx.float32) * branch)
    rows = draw.rounded(normed(branch, given["post_eps"])).astype(mx.float32)
    return given["alpha"] * given["stream"] + given["beta"] * rows


def bitlinear(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    tokens, inside, outside, inverted = shape
    layer = lm.module("models.bitlinear_layers").BitLinear(inside, outside, False, bool(inverted))
    layer.weight_scale = mx.array([0.75], draw.dtype)
    x = draw(tokens, inside)
    # Each byte packs four weights of 0, 1, 2, which stand for -1, 0, 1; the fourths of the rows lie in its bit pairs.
    trits = draw.random.integers(0, 3, (4, outside // 4, inside)).astype(np.uint8)
    packed = mx.array(trits[0] | trits[1] << 2 | trits[2] << 4 | trits[3] << 6)
    weights = mx.array(trits.reshape(outside, inside).astype(np.float32) - 1)
    scale = 1 / 0.75 if inverted else 0.75
    return [(layer.execute_matmul_kernel(x, packed), scale * (x.astype(mx.float32) @ weights.T))]


def sinkhorn(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    count, size, iterations = shape
    module = lm.module("models.deepseek_v41")
    comb, eps = mx.softmax(draw(count, size, size), axis=-1), mx.array([1e-4])
    got = module._sinkhorn(comb, iters=iterations, eps=eps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_sinkhorn_kernel", None)
        return [(got, module._sinkhorn(comb, iters=iterations, eps=eps))]


def attention_residuals(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    blocks, tokens, dim = shape
    module = lm.module("models.kimi_k3")
    raw, partial, weight = draw(blocks, tokens, dim), draw(tokens, dim), draw.single(dim, scale=0.1)
    inverse = mx.rsqrt(mx.mean(mx.square(raw.astype(mx.float32)), axis=-1) + 1e-5)
    got = module._attn_res_mix(SimpleNamespace(raw=raw, inv_rms=inverse), partial, weight, 1e-5)
    return [(got, module._attn_res_combine(*single(raw, inverse, partial, weight), 1e-5))]


def gated_delta(*, vector: bool = False, masked: bool = False, how: str = "gated_delta_kernel") -> Any:
    def run(lm: Any, shape: Shape, draw: Draw) -> Pairs:
        batch, time, keys, values, key_dim, value_dim = shape
        module = lm.module("models.gated_delta")
        q, k = (0.1 * draw(batch, time, keys, key_dim) for _ in range(2))
        v, state = draw(batch, time, values, value_dim), draw.single(batch, values, value_dim, key_dim)
        g = mx.sigmoid(draw.single(batch, time, values, key_dim) if vector else draw.single(batch, time, values))
        beta = mx.sigmoid(draw(batch, time, values))
        mask = mx.array(np.arange(batch * time).reshape(batch, time) % 3 != 1) if masked else None
        got = getattr(module, how)(q, k, v, g, beta, state, mask)
        y, after = module.gated_delta_ops(*single(q, k, v, g, beta, state), mask)
        if mask is not None:
            y = mx.where(mask[:, :, None, None], y, 0)  # what the kernel leaves where the mask says no
        return list(zip(got, (y, after), strict=True))

    return run


def wkv7(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    batch, time, heads, dim = shape
    module = lm.module("models.rwkv7")
    r, k, v, a, b = (draw(batch, time, heads, dim, scale=0.3) for _ in range(5))
    w, state = mx.sigmoid(draw(batch, time, heads, dim)), draw(batch, heads, dim, dim)
    got = module.wkv7_kernel(r, w, k, v, a, b, state)
    r, w, k, v, a, b, after = single(r, w, k, v, a, b, state)
    rows = []
    for t in range(time):
        y, after = module._wkv7_step_ops(r[:, t], w[:, t], k[:, t], v[:, t], a[:, t], b[:, t], after)
        rows.append(y.squeeze(-1))
    return [(got[0], mx.stack(rows, axis=1)), (got[1], after)]


def ssm(lm: Any, shape: Shape, draw: Draw) -> Pairs:
    batch, heads, dim, groups, state_dim = shape
    module = lm.module("models.ssm")
    given = (
        draw(batch, 1, heads, dim),
        mx.log(1 + mx.abs(draw.single(heads))),
        draw(batch, 1, groups, state_dim),
        draw(batch, 1, groups, state_dim),
        draw(heads),
        draw(batch, 1, heads),
        draw(heads),
        draw.single(batch, heads, dim, state_dim),
    )
    got = module.ssm_update_kernel(*given, (0.001, 100.0))
    return list(zip(got, module.ssm_attn(*single(*given), (0.001, 100.0)), strict=True))


def divergence(which: str, *, backward: bool) -> Any:
    def run(lm: Any, shape: Shape, draw: Draw) -> Pairs:
        module = lm.module("tuner.losses")
        loss = getattr(module, f"{which}_div_loss")
        q, p, cotangent = draw(*shape, scale=2.0), draw(*shape, scale=2.0), draw(shape[0])

        def evaluate(q: mx.array, p: mx.array, cotangent: mx.array) -> mx.array:
            if not backward:
                return loss(q, p)
            return mx.vjp(lambda q: loss(q, p), [q], [cotangent])[1][0]

        got = evaluate(q, p, cotangent)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "can_run_metal", lambda: False)
            return [(got, evaluate(*single(q, p, cotangent)))]

    return run


@dataclass(frozen=True)
class Case:
    """How one kernel is called: shapes whose axes ``axes`` names, and the types that it claims."""

    axes: str
    shapes: tuple[Shape, ...]
    run: Callable[[Any, Shape, Draw], Pairs]
    dtypes: tuple[str, ...] = ALL
    race: str = ""
    """A line after which a barrier is missing: without it the kernel's results depend on the order of simdgroups."""
    same_value: bool = False
    """Whether threads write the same value to one place: a race too, and a harmless one."""


_DELTA = "batch, time, key heads, value heads, key dim, value dim"
_DELTA_SHAPES = ((2, 5, 1, 2, 32, 10), (1, 3, 2, 2, 96, 4))
_PACKED_SHAPES = ((2, 3, 1, 2, 128, 8), (1, 4, 1, 3, 128, 24))
_LOSS_SHAPES = ((3, 100), (2, 4096), (2, 5003))
# Simdgroups that come here first write their sums over the maxima that the others have yet to read.
_LOSS_RACE = "max_p = shared[simd_lane_id * 2 + 1];"

CASES: dict[str, Case] = {
    "expert_routing": Case("tokens, experts, chosen", ((9, 40, 4), (3, 128, 8), (1, 7, 7)), expert_routing),
    "norm_add_norm": Case("tokens, dim, scaled", ((3, 96, 1), (2, 1000, 0), (2, 2049, 1)), norm_add_norm),
    "norm_add": Case("tokens, dim, scaled", ((3, 96, 0), (2, 1000, 1)), norm_add),
    "norm_add_norm_pre_norm": Case("tokens, dim", ((3, 96), (2, 1000)), pre_norm),
    "post_expert_norm_combine": Case("tokens, experts, dim", ((3, 2, 96), (2, 4, 1000)), expert_combine),
    "qk_norm": Case("tokens, heads, kv heads, dim", ((5, 3, 1, 64), (3, 4, 2, 80)), qk_norm),
    "qk_norm_rope": Case("batch, time, heads, kv heads, dim", ((1, 5, 3, 1, 64), (2, 3, 4, 2, 80)), qk_norm_rope),
    "rms_norm_sigmoid_gate": Case("batch, heads, time, dim", ((2, 3, 5, 64), (1, 2, 3, 80)), norm_gate),
    "bitlinear_matmul": Case("tokens, inputs, outputs, inverted", ((3, 256, 12, 0), (2, 300, 20, 1)), bitlinear),
    "deepseek_v41_sinkhorn": Case("matrices, size, iterations", ((300, 4, 3), (7, 2, 1)), sinkhorn, (F32,)),
    "gated_delta_step": Case(_DELTA, _DELTA_SHAPES, gated_delta()),
    "gated_delta_step_mask": Case(_DELTA, _DELTA_SHAPES, gated_delta(masked=True), same_value=True),
    "gated_delta_step_vec": Case(_DELTA, _DELTA_SHAPES, gated_delta(vector=True)),
    "gated_delta_step_vec_mask": Case(_DELTA, _DELTA_SHAPES, gated_delta(vector=True, masked=True), same_value=True),
    "gated_delta_step_xtree": Case(_DELTA, _PACKED_SHAPES, gated_delta(how="gated_delta_kernel_xtree")),
    "gated_delta_step_packed_btree": Case(_DELTA, _PACKED_SHAPES, gated_delta()),
    "attnres_mix": Case("blocks, tokens, dim", ((3, 5, 300), (1, 2, 1024)), attention_residuals),
    "wkv7_kernel": Case("batch, time, heads, dim", ((2, 4, 2, 64), (1, 3, 1, 32)), wkv7),
    "ssm_kernel": Case("batch, heads, dim, groups, state", ((2, 4, 20, 2, 64), (1, 2, 8, 1, 32)), ssm),
    "kl_forward": Case("rows, vocabulary", _LOSS_SHAPES, divergence("kl", backward=False), race=_LOSS_RACE),
    "kl_backward": Case("rows, vocabulary", _LOSS_SHAPES, divergence("kl", backward=True), race=_LOSS_RACE),
    "js_forward": Case("rows, vocabulary", _LOSS_SHAPES, divergence("js", backward=False), race=_LOSS_RACE),
    "js_backward": Case("rows, vocabulary", _LOSS_SHAPES, divergence("js", backward=True), race=_LOSS_RACE),
}


def worst_error(pairs: Pairs) -> float:
    """Return the largest difference of any output, as a part of that output's largest value."""
    worst = 0.0
    for got, want in pairs:
        assert got.shape == want.shape
        a, b = (np.array(array.astype(mx.float32), np.float64) for array in (got, want))
        assert np.isfinite(a).all()
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    return worst


@dataclass(frozen=True)
class Row:
    """What was found about one kernel, as a row of the document."""

    name: str
    file: str
    inputs: str
    errors: dict[str, float]
    verdict: str

    def __str__(self) -> str:
        errors = ", ".join(f"{dtype} {_rounded_up(error)}" for dtype, error in self.errors.items())
        return f"| `{self.name}` | {self.file} | {self.inputs} | {errors} | {self.verdict} |"


def _rounded_up(error: float) -> str:
    """Return the next larger number of one digit."""
    power = 10.0 ** math.floor(math.log10(error)) if error else 1.0
    return f"{math.ceil(error / power - 1e-6) * power:.0e}"


def row_of(name: str, mlx_lm: Any) -> Row:
    """Run every case of a kernel; return what came of it."""
    case, kernel = CASES[name], mlx_lm.kernels[name]
    inputs = f"{case.axes}: " + ", ".join("x".join(map(str, shape)) for shape in case.shapes)
    errors = {dtype: _worst(case, mlx_lm, dtype) for dtype in case.dtypes}
    verdict = "agrees; threads write the same value to one place" if case.same_value else "agrees"
    if case.race:
        assert any(error > MOST[dtype] for dtype, error in errors.items()), "the race does not show any more"
        verdict = f"agrees when simdgroups keep pace; **races**: a threadgroup barrier is missing after `{case.race}`"
        barrier = f"{case.race} threadgroup_barrier(mem_flags::mem_threadgroup);"
        repaired = _errors_with(case, mlx_lm, kernel.file, "repair", lambda text: _once(text, case.race, barrier))
        _hold(repaired)
        errors = _errors_with(case, mlx_lm, kernel.file, "in_turns", True)
    _hold(errors)
    return Row(name, kernel.file, inputs, errors, verdict)


def _errors_with(case: Case, mlx_lm: Any, file: str, attribute: str, value: Any) -> dict[str, float]:
    """Return the errors by dtype when every kernel of ``file`` has ``attribute`` set: a case may run several."""
    with pytest.MonkeyPatch.context() as patch:
        for kernel in (kernel for kernel in mlx_lm.kernels.values() if kernel.file == file):
            patch.setattr(kernel, attribute, value)
        return {dtype: _worst(case, mlx_lm, dtype) for dtype in case.dtypes}


def _hold(errors: dict[str, float]) -> None:
    for dtype, error in errors.items():
        assert error <= MOST[dtype], (dtype, error)


def _worst(case: Case, mlx_lm: Any, dtype: str) -> float:
    draws = [(shape, Draw(np.random.default_rng(7), getattr(mx, dtype))) for shape in case.shapes]
    return max(worst_error(case.run(mlx_lm, shape, draw)) for shape, draw in draws)


def _once(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, Row]]:
    """Rows that tests of this module found; they become the document when it is to be written."""
    found: dict[str, Row] = {}
    yield found
    if os.environ.get("KSEARCH_WRITE_DOCS"):
        assert set(found) == set(CASES), "run all of them in one process"
        DOCUMENT.write_text(document(found), encoding="utf-8")


def document(rows: dict[str, Row]) -> str:
    races = sum(1 for case in CASES.values() if case.race)
    return HEAD.format(version=version("mlx-lm"), kernels=len(rows), races=races, limits=_limits()) + "".join(
        f"{rows[name]}\n" for name in CASES if name in rows
    )


def _limits() -> str:
    return ", ".join(f"{limit:g} in {dtype}" for dtype, limit in MOST.items())


HEAD = """\
# Real kernels

The measure of the simulator's Metal: each of the {kernels} Metal kernels in the mlx-lm {version} wheel. MLX is asked
for the text that it would compile (`verbose=True` under `mx.export_function`), that text runs unmodified, and its
outputs stand beside the same computation in MLX operations: mlx-lm's own path without Metal where it has one.

All agree, {races} of them only while simdgroups keep pace, as a GPU mostly has them do: a barrier is missing there, and
a simdgroup that is ahead overwrites threadgroup memory that others have yet to read. A plain run lets a simdgroup go on
to the next barrier, so it gives a wrong result for these; it agrees too once the barrier is in.

The checked mode reports these races, threads that write the same value to one place, and nothing about the others.

The error is the largest difference as a part of the output's largest value, rounded up; allowed are
{limits}.
Written by `KSEARCH_WRITE_DOCS=1 pytest -n0 tests/corpus`; the tests fail when it is out of date.

| kernel | file | inputs | worst error | verdict |
|---|---|---|---|---|
"""


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_agrees_with_mlx_operations(name, mlx_lm, rows):
    row = rows[name] = row_of(name, mlx_lm)
    if os.environ.get("KSEARCH_WRITE_DOCS"):
        return
    written = next((line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if f"| `{name}` |" in line), "")
    # Another processor rounds a little differently: the errors themselves are held to be of that size.
    errors = dict(pair.split(" ") for pair in written.split(" | ")[3].split(", "))
    assert all(row.errors[dtype] <= max(4 * float(error), MOST[dtype] / 4) for dtype, error in errors.items())
    assert str(replace(row, errors={dtype: float(error) for dtype, error in errors.items()})) == written


@pytest.mark.parametrize("name", CASES)
def test_the_checked_mode_reports_the_races_and_nothing_else(name, mlx_lm, monkeypatch):
    case, kernel = CASES[name], mlx_lm.kernels[name]
    reports: list[CheckReport] = []
    monkeypatch.setattr(kernel, "reports", reports)
    case.run(mlx_lm, case.shapes[1], Draw(np.random.default_rng(7), mx.float32))
    assert {report.stage for report in reports} == ({"race"} if case.race or case.same_value else set())
    assert all(("same value" in report.message) == case.same_value for report in reports)


def test_every_kernel_of_the_package_has_its_case(mlx_lm):
    assert set(mlx_lm.kernels) == set(CASES)


def test_the_document_has_a_row_for_each_kernel_and_no_other():
    if os.environ.get("KSEARCH_WRITE_DOCS"):
        pytest.skip("the document is being written")
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.startswith(document({}).partition("each of the 0")[0])
    assert f"mlx-lm {version('mlx-lm')} wheel" in text
    assert [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")] == list(CASES)


def test_the_packed_gated_delta_is_the_explicit_tree_bit_for_bit(mlx_lm):
    # What the text of the packed kernel promises.
    results = []
    for how in ("gated_delta_kernel", "gated_delta_kernel_xtree"):
        draw = Draw(np.random.default_rng(3), mx.bfloat16)
        results.append([got for got, _ in gated_delta(how=how)(mlx_lm, _PACKED_SHAPES[0], draw)])
    for packed, tree in zip(*results, strict=True):
        assert mx.array_equal(packed, tree).item()
