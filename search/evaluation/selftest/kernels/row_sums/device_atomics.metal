//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 64 * ceildiv(n, 64), rows, 1
//@ threadgroup 64
//@ init 0
//@ atomic_outputs
//@ source
uint c = thread_position_in_grid.x, row = thread_position_in_grid.y, n = x_shape[1];
float sum = simd_sum(c < n ? x[row * n + c] : 0.0f);
if (simd_is_first()) {
    atomic_fetch_add_explicit(&y[row], sum, memory_order_relaxed);
}
