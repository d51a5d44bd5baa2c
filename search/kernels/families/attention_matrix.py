"""The Metal text of a prefill attention kernel whose two products are 8x8 simdgroup matrix products.

A simdgroup computes eight query rows. Its queries and its output stay in registers as D/8 matrices; the scores of a
tile of keys are TILE/8 more, which are weighed where they lie and multiplied with the values. All matrices are float,
since Metal promises products of one element type only, and the sums must be float.

Each lane holds two neighbouring elements of a matrix. Which, Metal does not say; MLX's own kernels rely on the layout
of Apple GPUs, and so do these: that is what lets a lane mask, weigh and rescale scores in registers.
"""

from __future__ import annotations

from search.kernels.families.attention_plan import MATRIX, PAD_BYTES, AttentionPlan
from search.kernels.families.attention_softmax import exponential, fold_scale, when_grown
from search.kernels.families.attention_tiles import declare_tiles, filled, over_tiles, stride
from search.kernels.families.writer import MetalWriter

_EACH_BLOCK = "for (uint b = 0; b < D / 8; ++b)"
_EACH_KEYS = "for (uint c = 0; c < TILE / 8; ++c)"
_EACH_OWN = "for (uint i = 0; i < 2; ++i)"


def write_matrix_products(plan: AttentionPlan, metal: MetalWriter) -> None:
    """Write the whole body."""
    metal.note("A simdgroup computes eight query rows: both products are of 8x8 matrices that its lanes hold together.")
    metal(f"constexpr uint ROWS = {MATRIX};", f"constexpr uint SIMDGROUPS = {plan.simdgroups};")
    metal(f"constexpr uint TILE = {plan.tile};  // keys that the threadgroup shares at a time")
    metal(f"constexpr uint PAD = {PAD_BYTES} / sizeof(T);  // keeps the rows of a matrix on banks of their own")
    declare_tiles(plan, metal)
    _place(plan, metal)
    _read_queries(metal)
    metal("", "float peak = -INFINITY;", "float sum = 0.0f;  // of this lane's keys", "")
    metal.note("One pass over the keys: what was summed so far is rescaled to the maximum so far.")
    over_tiles(plan, metal, "kv", lambda: _use_tile(plan, metal))
    _store(metal)


def _place(plan: AttentionPlan, metal: MetalWriter) -> None:
    metal("", "const uint L = q_shape[2];", "const uint lane = thread_index_in_simdgroup;")
    metal.note("A lane's first element of a matrix; the second is its right neighbour.")
    metal(
        "const uint row = (lane / 4 & 4) + lane / 2 % 4;",
        "const uint column = (lane / 4 & 2) * 2 + lane % 2 * 2;",
        "const uint group_row = threadgroup_position_in_grid.x * SIMDGROUPS * ROWS;",
        "const uint first_row = group_row + simdgroup_index_in_threadgroup * ROWS;",
        "const uint own_row = min(first_row + row, L - 1);  // a row past the end repeats the last",
        "const size_t base = size_t(threadgroup_position_in_grid.y) * L * D;",
        "const uint end = CAUSAL ? min(L, group_row + SIMDGROUPS * ROWS) : L;  // keys that any row here sees",
        "const uint reach = CAUSAL ? first_row + ROWS : L;  // keys that any row of the simdgroup sees",
        "const uint seen = CAUSAL ? own_row + 1 : L;  // keys that the lane's row sees",
    )
    fold_scale(plan, metal)


def _read_queries(metal: MetalWriter) -> None:
    metal("", "simdgroup_float8x8 query[D / 8], acc[D / 8];")
    with metal.block(_EACH_BLOCK):
        metal("const vec<T, 2> own = *(const device vec<T, 2>*)(q + base + own_row * D + b * 8 + column);")
        metal(f"{_EACH_OWN} query[b].thread_elements()[i] = fold * float(own[i]);")
        metal("acc[b] = simdgroup_float8x8(0.0f);")


def _use_tile(plan: AttentionPlan, metal: MetalWriter) -> None:
    with metal.block("if (start < reach)"):
        metal("simdgroup_float8x8 score[TILE / 8];", f"{_EACH_KEYS} score[c] = simdgroup_float8x8(0.0f);")
        with metal.block(_EACH_BLOCK), metal.block(_EACH_KEYS):
            between = stride(plan, "k")
            metal(f"const uint at = (c * 8 + column) * {between} + b * 8 + row;")
            metal("simdgroup_float8x8 key;  // a key is a column")
            metal(f"{_EACH_OWN} key.thread_elements()[i] = float({filled(plan, 'k')}[at + i * {between}]);")
            metal("simdgroup_multiply_accumulate(score[c], query[b], key, score[c]);")
        _weigh(plan, metal)
        with metal.block(_EACH_KEYS), metal.block(_EACH_BLOCK):
            metal(f"const uint at = (c * 8 + row) * {stride(plan, 'v')} + b * 8 + column;")
            metal(f"const vec<T, 2> own = *(const threadgroup vec<T, 2>*)({filled(plan, 'v')} + at);")
            metal("simdgroup_float8x8 value;", f"{_EACH_OWN} value.thread_elements()[i] = float(own[i]);")
            metal("simdgroup_multiply_accumulate(acc[b], score[c], value, acc[b]);")


def _weigh(plan: AttentionPlan, metal: MetalWriter) -> None:
    """Turn scores into weights; the four lanes of a row share its maximum, and add their sums at the end."""
    metal("float grown = peak;")
    with metal.block(_EACH_KEYS), metal.block(_EACH_OWN):
        metal("if (start + c * 8 + column + i >= seen) score[c].thread_elements()[i] = -INFINITY;")
        metal("grown = max(grown, score[c].thread_elements()[i]);")
    metal("grown = max(grown, simd_shuffle_xor(grown, ushort(1)));")
    metal("grown = max(grown, simd_shuffle_xor(grown, ushort(8)));")
    with when_grown(plan, metal, "peak"):
        metal(f"const float shrink = {exponential(plan)}(peak - grown);", "sum *= shrink;")
        metal(f"{_EACH_BLOCK} {_EACH_OWN} acc[b].thread_elements()[i] *= shrink;", "peak = grown;")
    with metal.block(_EACH_KEYS), metal.block(_EACH_OWN):
        metal(f"const float weight = {exponential(plan)}(score[c].thread_elements()[i] - peak);")
        metal("score[c].thread_elements()[i] = weight;", "sum += weight;")


def _store(metal: MetalWriter) -> None:
    metal("", "sum += simd_shuffle_xor(sum, ushort(1));", "sum += simd_shuffle_xor(sum, ushort(8));")
    metal("const float inverse = 1.0f / sum;")
    with metal.block("if (first_row + row < L)"), metal.block(_EACH_BLOCK):
        metal("vec<T, 2> own;", f"{_EACH_OWN} own[i] = T(acc[b].thread_elements()[i] * inverse);")
        metal("*(device vec<T, 2>*)(o + base + own_row * D + b * 8 + column) = own;")
