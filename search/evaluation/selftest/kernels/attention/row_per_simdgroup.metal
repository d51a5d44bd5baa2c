//@ pass attention
//@ inputs q, k, v
//@ outputs o
//@ grid 32 * l, heads, 1
//@ threadgroup 32
//@ source
constexpr uint D = 32;
uint lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.x, head = threadgroup_position_in_grid.y;
uint l = q_shape[1], s = k_shape[1], kv_head = head * uint(k_shape[0]) / uint(q_shape[0]);
float query = float(q[(head * l + row) * D + lane]) * rsqrt(float(D));
float high = -INFINITY, sum = 0, result = 0;
for (uint at = 0; at + l <= row + s; ++at) {
    uint from = (kv_head * s + at) * D + lane;
    float score = simd_sum(query * float(k[from]));
    float top = max(high, score), shrink = exp(high - top), weight = exp(score - top);
    sum = sum * shrink + weight;
    result = result * shrink + weight * float(v[from]);
    high = top;
}
o[(head * l + row) * D + lane] = half(result / sum);
