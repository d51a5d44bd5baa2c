//@ pass neighbours
//@ inputs x
//@ outputs y
//@ grid 32 * ceildiv(n, 32), rows, 1
//@ threadgroup 32
//@ source
uint c = thread_position_in_grid.x, n = x_shape[1], row = thread_position_in_grid.y * n, lane = thread_index_in_simdgroup;
float here = c < n ? x[row + c] : 0.0f;
float left = simd_shuffle_up(here, 1), right = simd_shuffle_down(here, 1);
if (lane == 0) {
    left = c > 0 ? x[row + c - 1] : 0.0f;
}
if (lane == 31) {
    right = c + 1 < n ? x[row + c + 1] : 0.0f;
}
if (c < n) {
    y[row + c] = left + here + right;
}
