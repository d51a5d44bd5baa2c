"""What the files that use CUB's reductions and scans compute."""

from __future__ import annotations

import numpy as np

from tests.corpus.cuda.reference import Array, Arrays, Axes, flat, floats, reference, rms_normalised, softmax


@reference
def rms_norm_cub(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(floats(arrays["input"]) + floats(arrays["residual"]), axes["num_tokens"], axes["hidden_size"])
    return flat(out=rms_normalised(x, axes["epsilon"]) * floats(arrays["weight"]))


@reference
def moe_topk_softmax_cub(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    p = softmax(floats(arrays["gating_output"], axes["num_tokens"], axes["num_experts"]))
    ids = np.argsort(-p, axis=1, kind="stable")[:, : axes["topk"]]
    return flat(topk_weights=np.take_along_axis(p, ids, axis=1), topk_indices=ids)


@reference
def moe_align_cub(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    size = axes["block_size"]
    blocks = -(-np.bincount(arrays["topk_ids"], minlength=axes["num_experts"]) // size)
    experts = np.repeat(np.arange(axes["num_experts"]), blocks)
    unused = np.full(max(0, axes["max_blocks"] - len(experts)), -1)
    return flat(
        cumsum=np.concatenate([[0], blocks.cumsum()]) * size,
        total_tokens_post_pad=blocks.sum() * size,
        expert_ids=np.concatenate([experts, unused])[: axes["max_blocks"]],
    )


@reference
def ssm_scan_cub(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    a, b = (floats(arrays[name], axes["rows"], axes["seqlen"]) for name in ("delta_a", "delta_b"))
    states, h = np.empty_like(b), np.zeros(axes["rows"])
    for t in range(axes["seqlen"]):
        h = np.exp(-np.abs(a[:, t])) * h + b[:, t]
        states[:, t] = h
    return flat(states=states)
