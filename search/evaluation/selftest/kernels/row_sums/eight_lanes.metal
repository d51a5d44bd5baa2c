//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 256 * rows
//@ threadgroup 256
//@ source
threadgroup float parts[8];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, n = x_shape[1];
float sum = 0;
for (uint c = t; c < n; c += 256) {
    sum += x[row * n + c];
}
sum = simd_sum(sum);
if (simd_is_first()) {
    parts[t / 32] = sum;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t >= 32) {
    return;
}
sum = simd_sum(lane < 8 ? parts[lane] : 0.0f);
if (lane == 7) {
    y[row] = sum;
}
