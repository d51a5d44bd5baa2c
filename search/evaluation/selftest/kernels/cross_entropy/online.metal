//@ pass cross_entropy
//@ inputs logits, labels
//@ outputs loss
//@ grid 128 * rows
//@ threadgroup 128
//@ source
threadgroup float highs[4], sums[4];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = logits_shape[1];
uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
float high = -INFINITY, sum = 0;
for (uint c = t; c < n; c += 128) {
    float v = float(logits[row * n + c]), top = max(high, v);
    sum = sum * exp(high - top) + exp(v - top);
    high = top;
}
float top = simd_max(high);
// A simdgroup that saw no element has no scale of its own: its sum is 0.
sum = simd_sum(high == -INFINITY ? 0.0f : sum * exp(high - top));
if (lane == 0) {
    highs[group] = top;
    sums[group] = sum;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t == 0) {
    float all = max(max(highs[0], highs[1]), max(highs[2], highs[3])), total = 0;
    for (uint g = 0; g < 4; ++g) {
        total += sums[g] * exp(highs[g] - all);
    }
    loss[row] = all + log(total) - float(logits[row * n + uint(labels[row])]);
}
