//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 96 * rows
//@ threadgroup 96
//@ source
threadgroup atomic_float total;
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
if (t == 0) {
    atomic_store_explicit(&total, 0.0f, memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
float sum = 0;
for (uint c = t; c < n; c += 96) {
    sum += x[row * n + c];
}
atomic_fetch_add_explicit(&total, sum, memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t == 95) {
    y[row] = atomic_load_explicit(&total, memory_order_relaxed);
}
