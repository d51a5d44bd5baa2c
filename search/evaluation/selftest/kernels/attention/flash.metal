//@ pass attention
//@ inputs q, k, v
//@ outputs o
//@ grid 128 * ceildiv(l, 4), heads, 1
//@ threadgroup 128
//@ source
constexpr uint D = 32, rows = 4;
threadgroup half keys[32][D + 1], values[32][D];
uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
uint heads = q_shape[0], l = q_shape[1], kv_heads = k_shape[0], s = k_shape[1];
uint head = threadgroup_position_in_grid.y, kv_head = head / (heads / kv_heads);
uint first = threadgroup_position_in_grid.x * rows, row = first + group;
uint before = s - l;
bool there = row < l;

float query = there ? float(q[(head * l + row) * D + lane]) * rsqrt(float(D)) : 0.0f;
float high = -INFINITY, sum = 0, result = 0;
uint end = min(s, first + rows + before);
for (uint at = 0; at < end; at += 32) {
    for (uint r = group; r < 32; r += rows) {
        uint from = (kv_head * s + at + r) * D + lane;
        keys[r][lane] = at + r < s ? k[from] : half(0);
        values[r][lane] = at + r < s ? v[from] : half(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float score = 0;
    for (uint d = 0; d < D; ++d) {
        score += simd_broadcast(query, d) * float(keys[lane][d]);
    }
    score = at + lane <= row + before ? score : -INFINITY;
    float top = max(high, simd_max(score));
    float weight = exp(score - top), shrink = exp(high - top);
    sum = sum * shrink + simd_sum(weight);
    result *= shrink;
    for (uint r = 0; r < 32; ++r) {
        result += simd_broadcast(weight, r) * float(values[r][lane]);
    }
    high = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (there) {
    o[(head * l + row) * D + lane] = half(result / sum);
}
