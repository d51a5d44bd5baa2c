//@ pass scatter
//@ inputs ids, x
//@ outputs out
//@ grid 256 * ceildiv(n * d, 256)
//@ threadgroup 256
//@ init 0
//@ atomic_outputs
//@ source
uint i = thread_position_in_grid.x, n = x_shape[0], d = x_shape[1];
if (i >= n * d) {
    return;
}
uint row = i / d, col = i % d;
atomic_fetch_add_explicit(&out[uint(ids[row]) * d + col], x[i], memory_order_relaxed);
