//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
float sum = 0;
for (uint c = lane; c < n; c += 32) {
    sum += x[row * n + c];
}
for (ushort reach = 16; reach > 0; reach /= 2) {
    sum += simd_shuffle_down(sum, reach);
}
if (lane == 0) {
    y[row] = sum;
}
