//@ pass prefix_sum
//@ inputs x
//@ outputs y
//@ grid 128 * rows
//@ threadgroup 128
//@ source
threadgroup float totals[4];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
float carried = 0;
for (uint at = 0; at < n; at += 128) {
    uint c = at + t;
    float here = simd_prefix_inclusive_sum(c < n ? x[row * n + c] : 0.0f);
    if (lane == 31) {
        totals[group] = here;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float before = carried;
    for (uint g = 0; g < group; ++g) {
        before += totals[g];
    }
    if (c < n) {
        y[row * n + c] = before + here;
    }
    carried += totals[0] + totals[1] + totals[2] + totals[3];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
