"""What the files with a pattern of parallel programming compute: maps, reductions, scans, scatters, stencils."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.corpus.cuda.reference import Array, Arrays, Axes, flat, floats, reference, softmax


@reference
def vector_add(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_c=floats(arrays["d_a"]) + floats(arrays["d_b"]))


@reference
def saxpy_grid_stride(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_y=axes["alpha"] * floats(arrays["d_x"]) + floats(arrays["d_y"]))


@reference
def broadcast_add(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    matrix = floats(arrays["a"], axes["cols"], axes["rows"]).T
    return flat(out=matrix + floats(arrays["row_bias"])[:, None] + floats(arrays["col_bias"])[None, :])


@reference
def transpose_naive(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(out=arrays["in"].reshape(axes["height"], axes["width"]).T)


@reference
def transpose_tiled(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_out=arrays["d_in"].reshape(axes["rows"], axes["cols"]).T)


@reference
def batched_transpose(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    matrices = arrays["in"].reshape(axes["batch"], axes["rows"], axes["cols"])
    return flat(out=np.swapaxes(matrices, 1, 2))


@reference
def reduce_tree(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_out=floats(arrays["d_in"]).sum())


@reference
def dot_shuffle(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_result=floats(arrays["d_x"]) @ floats(arrays["d_y"]))


@reference
def softmax_block(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(probs=softmax(floats(arrays["logits"], axes["rows"], axes["cols"])))


@reference
def softmax_warp(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(y=softmax(floats(arrays["x"], axes["rows"], axes["cols"])))


@reference
def softmax_online(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_y=softmax(floats(arrays["d_x"], axes["rows"], axes["cols"])))


@reference
def histogram_shared(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_bins=np.bincount(arrays["d_data"], minlength=256))


@reference
def scan_block(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(out=floats(arrays["in"], axes["rows"], axes["cols"]).cumsum(axis=1))


@reference
def scan_three_pass(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_out=arrays["d_in"].cumsum(dtype=np.int32))


@reference
def matmul_tiled(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(d_C=floats(arrays["d_A"], axes["M"], axes["K"]) @ floats(arrays["d_B"], axes["K"], axes["N"]))


@reference
def matmul_half(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    product = floats(arrays["a"], axes["m"], axes["k"]) @ floats(arrays["b"], axes["n"], axes["k"]).T
    return flat(c=product + floats(arrays["bias"]))


@reference
def stream_compact(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    kept = arrays["d_x"][arrays["d_x"] > 0]
    return flat(d_out=np.pad(floats(kept), (0, axes["n"] - kept.size)), d_total=np.array(kept.size))


@reference
def row_votes(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    above = arrays["x"].reshape(axes["rows"], axes["cols"]) > 1.5
    some = above.any(axis=1)
    first = np.where(some, above.argmax(axis=1), -1)
    return flat(any_above=some.astype(int), all_above=above.all(axis=1).astype(int), first_above=first)


@reference
def match_aggregate(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(bins=np.bincount(arrays["keys"] % axes["num_bins"], minlength=axes["num_bins"]))


@reference
def constant_fir(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    half = [0.2666, 0.2134, 0.1096, 0.0361, 0.0076]
    taps = np.array(half[:0:-1] + half)
    return flat(out=np.convolve(np.pad(floats(arrays["in"]), 4, mode="edge"), taps, mode="valid"))


@reference
def constant_polynomial(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    coefficients = floats(arrays["c_coefficients"])
    return flat(d_y=np.polynomial.polynomial.polyval(floats(arrays["d_x"]), coefficients))


@reference
def argmin_dynamic_shared(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["rows"], axes["cols"])
    return flat(min_value=x.min(axis=1), min_index=x.argmin(axis=1))


@reference
def half2_axpy(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(y=axes["alpha"] * floats(arrays["x"]) + floats(arrays["y"]))


@reference
def conv2d_halo(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    image = np.pad(floats(arrays["d_image"], axes["height"], axes["width"]), 1)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    return flat(d_out=(windows * floats(arrays["d_weight"], 3, 3)).sum(axis=(2, 3)))


@reference
def max_pool2d(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["channels"], axes["height"], axes["width"])
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return flat(y=windows[:, ::2, ::2].max(axis=(3, 4)))


@reference
def argmax_rows(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(out=arrays["x"].reshape(axes["rows"], axes["cols"]).argmax(axis=1))


@reference
def segmented_sum(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    values, offsets = floats(arrays["values"]), arrays["offsets"]
    sums = [values[begin:end].sum() for begin, end in pairwise(offsets)]
    return flat(sums=np.array(sums))


@reference
def spmv_csr(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    products = floats(arrays["d_values"]) * floats(arrays["d_x"])[arrays["d_col_idx"]]
    return flat(d_y=np.array([products[begin:end].sum() for begin, end in pairwise(arrays["d_row_ptr"])]))


@reference
def scatter_max(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    out = np.full((axes["targets"], axes["dim"]), -1e30)
    np.maximum.at(out, arrays["index"], floats(arrays["src"], axes["n"], axes["dim"]))
    return flat(out=out)


@reference
def early_return(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(out=np.diff(floats(arrays["in"]), prepend=0.0))


@reference
def row_sum_width16(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["rows"], axes["cols"])
    return flat(sum_out=x.sum(axis=1), max_out=x.max(axis=1))


@reference
def philox_normal(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    word = np.uint64(0xFFFFFFFF)
    count = -(-axes["n"] // 4)
    zero = np.zeros(count, dtype=np.uint64)
    c = [np.arange(count, dtype=np.uint64), zero, zero, zero]
    for turn in range(10):
        key = np.uint64((axes["seed"] + turn * 0x9E3779B9) & 0xFFFFFFFF), np.uint64((turn * 0xBB67AE85) & 0xFFFFFFFF)
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high = first >> np.uint64(32), second >> np.uint64(32)
        c = [high[1] ^ c[1] ^ key[0], second & word, high[0] ^ c[3] ^ key[1], first & word]
    top = [floats(x >> np.uint64(8)) / 2**24 for x in c]
    normals = []
    for u, turn_share in ((top[0], top[1]), (top[2], top[3])):
        radius = np.sqrt(-2.0 * np.log(u + 2.0**-24))
        normals += [radius * np.cos(2 * np.pi * turn_share), radius * np.sin(2 * np.pi * turn_share)]
    return flat(out=np.stack(normals, axis=1).ravel()[: axes["n"]])


@reference
def printf_debug(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    return flat(x=floats(arrays["x"]).clip(-1.0, 1.0))


@reference
def softmax_template_bools(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    mask = floats(arrays["mask"], axes["nrows_y"], axes["ncols"])[np.arange(axes["nrows_x"]) % axes["nrows_y"]]
    return flat(dst=softmax(floats(arrays["x"], axes["nrows_x"], axes["ncols"]) * axes["scale"] + mask))


@reference
def moments_welford_ops(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["X"], axes["rows"], axes["N"])
    return flat(mean=x.mean(axis=1), rstd=1.0 / np.sqrt(x.var(axis=1) + axes["eps"]))


@reference
def nms_bitmask(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    n = axes["n_boxes"]
    boxes = floats(arrays["boxes"], n, 4)
    low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0.0), axis=2)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    later = np.triu(common / (area[:, None] + area[None, :] - common) > axes["iou"], 1)
    words = np.pad(later, ((0, 0), (0, -n % 64))).reshape(n, -1, 64).astype(np.uint64)
    return flat(mask=(words << np.arange(64, dtype=np.uint64)).sum(axis=2, dtype=np.uint64))


@reference
def reduce_functors(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    x = floats(arrays["x"], axes["rows"], axes["cols"])
    return flat(sums=x.sum(axis=1), maxima=x.max(axis=1), lse=np.log(np.exp(x).sum(axis=1)))


@reference
def map_functors(arrays: Arrays, axes: Axes) -> dict[str, Array]:
    hidden = axes["scale"] * floats(arrays["x"]) + axes["shift"]
    hidden = np.where(hidden > 0, hidden, axes["slope"] * hidden)
    return flat(hidden=hidden, y=0.5 * hidden**2 + 1)
