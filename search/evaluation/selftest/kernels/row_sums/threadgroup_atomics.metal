//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 96 * rows
//@ threadgroup 96
//@ source
threadgroup atomic_uint total;
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
if (t == 0) {
    atomic_store_explicit(&total, as_type<uint>(0.0f), memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
float sum = 0;
for (uint c = t; c < n; c += 96) {
    sum += x[row * n + c];
}
uint before = atomic_load_explicit(&total, memory_order_relaxed);
while (!atomic_compare_exchange_weak_explicit(
    &total, &before, as_type<uint>(as_type<float>(before) + sum), memory_order_relaxed, memory_order_relaxed)) {
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t == 95) {
    y[row] = as_type<float>(atomic_load_explicit(&total, memory_order_relaxed));
}
