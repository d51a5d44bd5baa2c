//@ pass prefix_sum
//@ inputs x
//@ outputs y
//@ grid 64 * rows
//@ threadgroup 64
//@ source
threadgroup float sums[2][64];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
float carried = 0;
uint from = 0;
for (uint at = 0; at < n; at += 64) {
    sums[from][t] = at + t < n ? x[row * n + at + t] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint reach = 1; reach < 64; reach *= 2) {
        sums[1 - from][t] = sums[from][t] + (t >= reach ? sums[from][t - reach] : 0.0f);
        from = 1 - from;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (at + t < n) {
        y[row * n + at + t] = carried + sums[from][t];
    }
    carried += sums[from][63];
    from = 1 - from;
}
