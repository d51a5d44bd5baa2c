//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid 128 * ceildiv(rows, 4)
//@ threadgroup 128
//@ template T = T
//@ source
uint row = threadgroup_position_in_grid.x * 4 + simdgroup_index_in_threadgroup;
uint lane = thread_index_in_simdgroup, n = x_shape[1];
if (row >= uint(x_shape[0])) {
    return;
}
float high = -INFINITY, sum = 0;
for (uint c = lane; c < n; c += 32) {
    float v = float(x[row * n + c]);
    float top = max(high, v);
    sum = sum * exp(high - top) + exp(v - top);
    high = top;
}
float top = simd_max(high);
sum = simd_sum(sum * exp(high - top));
for (uint c = lane; c < n; c += 32) {
    y[row * n + c] = T(exp(float(x[row * n + c]) - top) / sum);
}
