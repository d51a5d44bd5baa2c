//@ buffer parts [rows, ceildiv(n, 32)] float32
//@ buffer tickets [rows] uint32
//@ pass row_sums
//@ inputs x
//@ outputs y, parts, tickets
//@ grid 32 * ceildiv(n, 32), rows, 1
//@ threadgroup 32
//@ init 0
//@ source
uint block = threadgroup_position_in_grid.x, blocks = threadgroups_per_grid.x, row = threadgroup_position_in_grid.y;
uint c = thread_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
float sum = simd_sum(c < n ? x[row * n + c] : 0.0f);
uint ticket = 0;
if (lane == 0) {
    parts[row * blocks + block] = sum;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    ticket = atomic_fetch_add_explicit((device atomic_uint*)tickets + row, 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
}
if (simd_broadcast(ticket, 0) + 1 < blocks) {
    return;
}
sum = 0;
for (uint b = lane; b < blocks; b += 32) {
    sum += parts[row * blocks + b];
}
sum = simd_sum(sum);
if (lane == 0) {
    y[row] = sum;
}
