//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
float sums[4] = {0, 0, 0, 0};
for (uint c = lane; c < n; c += 32) {
    sums[c / 32 % 4] += x[row * n + c];
}
float sum = simd_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
if (lane == 0) {
    y[row] = sum;
}
