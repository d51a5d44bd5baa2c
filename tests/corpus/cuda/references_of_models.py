"""What the files with a layer of a network compute."""

from __future__ import annotations

import numpy as np

from tests.corpus.cuda.reference import (
    Array,
    Arrays,
    Axes,
    causal_attention,
    flat,
    floats,
    reference,
    rms_normalised,
    sigmoid,
    softmax,
)


@reference
def layernorm_welford(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["rows"], axes["hidden"])
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return flat(y=(x - mean) * rstd * floats(arrays["gamma"]) + floats(arrays["beta"]), mean=mean, rstd=rstd)


@reference
def rmsnorm_float4(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["input"], axes["tokens"], axes["hidden"])
    return flat(output=rms_normalised(x, axes["eps"]) * floats(arrays["weight"]))


@reference
def fused_add_rmsnorm(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    shape = axes["tokens"], axes["hidden"]
    residual = floats((floats(arrays["input"]) + floats(arrays["residual"])).astype(np.float16), *shape)
    return flat(input=rms_normalised(residual, 1e-6) * floats(arrays["weight"]), residual=residual)


@reference
def rope_inplace(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    dim = axes["head_dim"]
    q = floats(arrays["query"], axes["tokens"], axes["heads"], 2, dim // 2)
    rows = floats(arrays["cos_sin"], axes["max_position"], 2, dim // 2)[arrays["positions"]]
    cos, sin = rows[:, None, 0], rows[:, None, 1]
    x, y = q[:, :, 0], q[:, :, 1]
    return flat(query=np.stack([x * cos - y * sin, y * cos + x * sin], axis=2))


@reference
def rope_interleaved(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    dim = axes["dim"]
    pairs = floats(arrays["in"], axes["seq"], axes["heads"], dim // 2, 2)
    angle = np.arange(axes["seq"])[:, None] * 10000.0 ** (-2.0 * np.arange(dim // 2) / dim)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angle)[:, None]
    return flat(out=np.stack([turned.real, turned.imag], axis=-1))


@reference
def silu_and_mul(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    both = floats(arrays["input"], axes["tokens"], 2, axes["d"])
    return flat(out=both[:, 0] * sigmoid(both[:, 0]) * both[:, 1])


@reference
def gelu_half(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"])
    return flat(y=0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))))


@reference
def adamw(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    p, g, m, v = (floats(arrays[name]) for name in ("d_p", "d_g", "d_m", "d_v"))
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g**2
    second_step = 1.0 - 0.9**2, 1.0 - 0.99**2
    step = m / second_step[0] / (np.sqrt(np.maximum(v, 0.0) / second_step[1]) + 1e-3)
    return flat(d_p=p * (1.0 - 0.01 * 0.1) - 0.01 * step, d_m=m, d_v=v)


@reference
def embedding_gather(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(out=arrays["table"].reshape(axes["vocab"], axes["dim"])[arrays["ids"]])


@reference
def embedding_backward(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    table = np.zeros((axes["vocab"], axes["dim"]))
    np.add.at(table, arrays["d_ids"], floats(arrays["d_grad_out"], axes["tokens"], axes["dim"]))
    return flat(d_grad_table=table)


@reference
def attention_naive(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    shape = axes["batch"], axes["heads"], axes["seq"], axes["dim"]
    q, k, v = (floats(arrays[name], *shape) for name in "qkv")
    return flat(out=causal_attention(q, k, v, axes["scale"]))


@reference
def flash_attention(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    shape = axes["batch_heads"], axes["seq"], axes["head_dim"]
    q, k, v = (floats(arrays[name], *shape) for name in "qkv")
    return flat(o=causal_attention(q, k, v, axes["head_dim"] ** -0.5))


@reference
def decode_attention_splitk(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    heads, kv_heads, length, dim = axes["heads"], axes["kv_heads"], axes["length"], axes["head_dim"]
    q = floats(arrays["q"], heads, dim)
    k, v = (floats(arrays[name], kv_heads, length, dim).repeat(heads // kv_heads, axis=0) for name in "kv")
    scores = np.einsum("hd,htd->ht", q, k) / np.sqrt(dim)
    begins = range(0, length, 64)
    largest = np.stack([scores[:, t : t + 64].max(axis=1) for t in begins], axis=1)
    weights = np.exp(scores - largest.repeat(64, axis=1)[:, :length])
    return flat(
        out=np.einsum("ht,htd->hd", softmax(scores), v),
        part_out=np.stack([np.einsum("ht,htd->hd", weights[:, t : t + 64], v[:, t : t + 64]) for t in begins], axis=1),
        part_max=largest,
        part_sum=np.stack([weights[:, t : t + 64].sum(axis=1) for t in begins], axis=1),
    )


@reference
def paged_attention(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    seqs, heads, kv_heads, dim = axes["num_seqs"], axes["num_heads"], axes["num_kv_heads"], axes["head_dim"]
    q = floats(arrays["q"], seqs, kv_heads, heads // kv_heads, dim)
    tables = arrays["block_tables"].reshape(seqs, axes["max_blocks"])
    keys, values = (
        floats(arrays[name], axes["num_blocks"], 16, kv_heads, dim)[tables].reshape(seqs, -1, kv_heads, dim)
        for name in ("k_cache", "v_cache")
    )
    out = np.zeros(q.shape)
    for s, length in enumerate(arrays["context_lens"]):
        if length > 0:
            scores = np.einsum("hgd,thd->hgt", q[s], keys[s, :length]) / np.sqrt(dim)
            out[s] = np.einsum("hgt,thd->hgd", softmax(scores), values[s, :length])
    return flat(out=out)


@reference
def selective_scan(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    batch, dim, length, state = axes["batch"], axes["dim"], axes["len"], axes["state"]
    u, delta, z = (floats(arrays[name], batch, dim, length) for name in ("u", "delta", "z"))
    b, c = (floats(arrays[name], batch, state, length) for name in ("B", "C"))
    a = -np.exp(floats(arrays["A_log"], dim, state))
    step = np.logaddexp(0.0, delta + floats(arrays["delta_bias"], dim, 1))
    h = np.zeros((batch, dim, state))
    y = np.empty((batch, dim, length))
    for t in range(length):
        now = step[:, :, t, None]
        h = np.exp(now * a) * h + now * b[:, None, :, t] * u[:, :, t, None]
        y[:, :, t] = (h * c[:, None, :, t]).sum(axis=-1)
    y += floats(arrays["D_skip"], dim, 1) * u
    return flat(y=y * z * sigmoid(z), last_state=h)


@reference
def pair_scan(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    keep = sigmoid(floats(arrays["gate"], axes["rows"], axes["len"]))
    added = floats(arrays["input"], axes["rows"], axes["len"])
    hidden = np.empty_like(keep)
    h = np.zeros(axes["rows"])
    for t in range(axes["len"]):
        h = keep[:, t] * h + added[:, t]
        hidden[:, t] = h
    return flat(hidden=hidden)


@reference
def causal_conv1d(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["batch"], axes["dim"], axes["len"])
    weight = floats(arrays["weight"], axes["dim"], axes["width"])
    out = np.empty_like(x)
    for channel in range(axes["dim"]):
        for b in range(axes["batch"]):
            whole = np.convolve(x[b, channel], weight[channel, ::-1])
            out[b, channel] = whole[: axes["len"]] + floats(arrays["bias"])[channel]
    return flat(out=out * sigmoid(out))


@reference
def moe_topk_gating(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    p = softmax(floats(arrays["logits"], axes["tokens"], axes["experts"]))
    ids = np.argsort(-p, axis=1, kind="stable")[:, :2]
    weights = np.take_along_axis(p, ids, axis=1)
    return flat(topk_weights=weights / weights.sum(axis=1, keepdims=True), topk_ids=ids)


@reference
def moe_permute(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    counts = np.bincount(arrays["expert_ids"], minlength=axes["experts"])
    order = np.argsort(arrays["expert_ids"], kind="stable")
    return flat(
        counts=counts,
        offsets=np.concatenate([[0], counts.cumsum()]),
        source_row=order,
        permuted=arrays["hidden"].reshape(axes["tokens"], axes["dim"])[order],
    )


@reference
def cross_entropy(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    p = softmax(floats(arrays["logits"], axes["tokens"], axes["vocab"]))
    token = np.arange(axes["tokens"])
    loss = -np.log(p[token, arrays["labels"]])
    p[token, arrays["labels"]] -= 1.0
    return flat(loss=loss, grad=p / axes["tokens"])


@reference
def matvec_int8(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    product = floats(arrays["weight"], axes["rows"], axes["cols"]) @ floats(arrays["x"])
    return flat(y=product * floats(arrays["scale"]))


@reference
def matvec_int4(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    rows, cols = axes["rows"], axes["cols"]
    nibbles = (arrays["packed"][:, None] >> (4 * np.arange(8, dtype=np.uint32))) & 0xF
    scale = floats(arrays["scales"], rows, cols // 32, 1)
    zero = floats(arrays["zeros"], rows, cols // 32, 1)
    weight = (floats(nibbles, rows, cols // 32, 32) - zero) * scale
    return flat(y=weight.reshape(rows, cols) @ floats(arrays["x"]))


@reference
def bf16_residual_add(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    total = floats(arrays["x"], axes["rows"], axes["cols"]) + floats(arrays["residual"], axes["rows"], axes["cols"])
    return flat(out=total + floats(arrays["bias"]))


@reference
def head_norm_template(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    heads = floats(arrays["qk"], axes["tokens"] * axes["heads"], axes["head_dim"])
    return flat(qk=rms_normalised(heads, 1e-6) * floats(arrays["weight"]))


@reference
def codebook_distances(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["n"], 1, axes["dim"])
    codes = floats(arrays["codebook"], 1, axes["codes"], axes["dim"])
    return flat(distance=((x - codes) ** 2).sum(axis=2))


@reference
def hadamard(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    bits = np.arange(256)[:, None] & np.arange(256)[None, :]
    ones = sum((bits >> k) & 1 for k in range(8))
    return flat(y=floats(arrays["x"], axes["rows"], 256) @ np.where(ones % 2 == 0, 1.0, -1.0) / 16.0)


@reference
def groupnorm(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    batch, channels, spatial, groups = (axes[name] for name in ("batch", "channels", "spatial", "groups"))
    x = floats(arrays["x"], batch, groups, channels // groups * spatial)
    normal = (x - x.mean(axis=2, keepdims=True)) / np.sqrt(x.var(axis=2, keepdims=True) + 1e-5)
    normal = normal.reshape(batch, channels, spatial)
    return flat(y=normal * floats(arrays["gamma"], channels, 1) + floats(arrays["beta"], channels, 1))


@reference
def kv_cache_append(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    batch, heads, dim = axes["batch"], axes["kv_heads"], axes["head_dim"]
    caches = {}
    for name in ("key", "value"):
        cache = arrays[f"{name}_cache"].reshape(batch, heads, axes["max_len"], dim).copy()
        cache[np.arange(batch), :, arrays["cache_position"]] = arrays[name].reshape(batch, heads, dim)
        caches[f"{name}_cache"] = cache
    return flat(**caches)


@reference
def dropout_hash(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    def mixed(x: Array) -> Array:
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor) & np.uint64(0xFFFFFFFF)
        return np.asarray(x ^ (x >> np.uint64(16)))

    seed = mixed(np.array([axes["seed"]], dtype=np.uint64))
    place = np.arange(axes["n"], dtype=np.uint64)
    kept = mixed(place ^ seed) >> np.uint64(8) < 0.75 * 2**24
    return flat(y=np.where(kept, floats(arrays["x"]) / 0.75, 0.0), mask=kept.astype(int))


@reference
def layernorm_packed(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["inp"], axes["B"] * axes["T"], axes["C"])
    mean, rstd = x.mean(axis=1, keepdims=True), 1.0 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return flat(out=(x - mean) * rstd * floats(arrays["weight"]) + floats(arrays["bias"]), mean=mean, rstd=rstd)


@reference
def topk_gating_packed(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    tokens, k = axes["num_tokens"], axes["k"]
    probs = softmax(floats(arrays["gating"], tokens, 64))
    order = np.argsort(-probs, axis=1)[:, :k]
    rows = np.arange(k)[None, :] * tokens + np.arange(tokens)[:, None]
    return flat(weights=np.take_along_axis(probs, order, axis=1), indices=order, rows=rows)


@reference
def rmsnorm_vector_struct(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["input"], axes["num_tokens"], axes["hidden_size"])
    return flat(out=rms_normalised(x, axes["epsilon"]) * floats(arrays["weight"]))


@reference
def rope_in_function(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    tokens, half = axes["num_tokens"], axes["head_size"] // 2
    turns = floats(arrays["cos_sin_cache"], axes["max_position"], 2 * half)[arrays["positions"]]
    cos, sin = turns[:, None, :half], turns[:, None, half:]

    def rotated(name: str, heads: int) -> Array:
        x = floats(arrays[name], tokens, heads, 2 * half)
        first, second = x[..., :half], x[..., half:]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    return flat(query=rotated("query", axes["num_heads"]), key=rotated("key", axes["num_kv_heads"]))


@reference
def fused_classifier(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    rows, used = axes["B"] * axes["T"], axes["V"]
    logits = floats(arrays["logits"], rows, axes["P"])
    probs, places = softmax(logits[:, :used]), (np.arange(rows), arrays["targets"])
    losses = floats(arrays["losses"]) - np.log(probs[places])
    probs[places] -= 1.0
    logits[:, :used] = probs * axes["dloss"]
    return flat(logits=logits, losses=losses)


@reference
def paged_attention_template(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    seqs, heads, kv_heads = axes["num_seqs"], axes["num_heads"], axes["num_kv_heads"]
    q = floats(arrays["q"], seqs, heads, 64)
    keys, values = (floats(arrays[f"{name}_cache"], -1, kv_heads, 64) for name in "kv")
    tables = arrays["block_tables"].reshape(seqs, axes["max_blocks"])
    out = np.zeros_like(q)
    for seq, head in np.ndindex(seqs, heads):
        length = min(int(arrays["seq_lens"][seq]) + 1, axes["max_blocks"] * 16)
        rows = (tables[seq][:, None] * 16 + np.arange(16)).ravel()[:length]
        own = head // (heads // kv_heads)
        out[seq, head] = softmax(keys[rows, own] @ q[seq, head] * axes["scale"]) @ values[rows, own]
    return flat(out=out)


@reference
def gemv_int4_half2(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    n, k = axes["n"], axes["k"]
    digits = arrays["qweight"].reshape(n, k // 8, 1) >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    grouped = digits.astype(np.float16).reshape(n, k // axes["group"], axes["group"])
    scales, zeros = (arrays[name].reshape(n, -1, 1) for name in ("scales", "zeros"))
    weights = ((grouped - zeros) * scales).reshape(n, k // 8, 4, 2)
    x = floats(arrays["x"], k // 8, 4, 2)
    parts = np.zeros((n, k // 8, 2), dtype=np.float16)
    for i in range(4):  # a chain of fused multiplications and additions in half precision
        parts = (floats(weights[:, :, i]) * x[:, i] + floats(parts)).astype(np.float16)
    return flat(y=floats(parts).sum(axis=(1, 2)))


@reference
def selective_scan_chunked(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    batch, dim, states, length = axes["batch"], axes["dim"], axes["dstate"], axes["seqlen"]
    u, delta, z = (floats(arrays[name], batch, dim, length) for name in ("u", "delta", "z"))
    b, c = (floats(arrays[name], batch, 1, states, length) for name in "BC")
    decay, delta = -np.exp(floats(arrays["A_log"], dim, states)), np.log1p(np.exp(delta))
    state, y = np.zeros((batch, dim, states)), np.zeros_like(u)
    for t in range(length):
        step = delta[:, :, t, None]
        state = np.exp(step * decay) * state + step * u[:, :, t, None] * b[..., t]
        y[:, :, t] = (state * c[..., t]).sum(axis=2)
    return flat(out=(y + floats(arrays["D"], dim, 1) * u) * z * sigmoid(z))


@reference
def matmul_epilogue(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    product = floats(arrays["x"], axes["m"], axes["k"]) @ floats(arrays["w"], axes["k"], axes["n"])
    biased = product + floats(arrays["bias"])
    hidden = biased * sigmoid(biased)
    return flat(hidden=hidden, out=product.clip(0.0) + hidden)


@reference
def torch_strided_norm(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["input"], axes["num_tokens"], axes["hidden_size"])
    return flat(out=rms_normalised(x, axes["epsilon"]) * floats(arrays["weight"]))
