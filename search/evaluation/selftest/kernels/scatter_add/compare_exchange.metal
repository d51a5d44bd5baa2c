//@ pass scatter
//@ inputs ids, x
//@ outputs out
//@ grid d, n, 1
//@ threadgroup 8, 8, 1
//@ init 0
//@ atomic_outputs
//@ source
uint col = thread_position_in_grid.x, row = thread_position_in_grid.y, d = x_shape[1];
device atomic_float* to = &out[uint(ids[row]) * d + col];
float before = atomic_load_explicit(to, memory_order_relaxed);
while (!atomic_compare_exchange_weak_explicit(
    to, &before, before + x[row * d + col], memory_order_relaxed, memory_order_relaxed)) {
}
