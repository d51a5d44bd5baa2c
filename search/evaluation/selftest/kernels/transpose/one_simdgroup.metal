//@ pass transpose
//@ inputs x
//@ outputs y
//@ grid 32 * ceildiv(n, 32), ceildiv(m, 32), 1
//@ threadgroup 32
//@ source
threadgroup float tile[32][32];
uint m = x_shape[0], n = x_shape[1], lane = thread_index_in_simdgroup;
uint left = threadgroup_position_in_grid.x * 32, top = threadgroup_position_in_grid.y * 32;

for (uint r = 0; r < min(32u, m - top); ++r) {
    if (left + lane < n) {
        tile[r][(lane + r) % 32] = x[(top + r) * n + left + lane];
    }
}
simdgroup_barrier(mem_flags::mem_threadgroup);
if (top + lane >= m) {
    return;
}
for (uint r = 0; r < min(32u, n - left); ++r) {
    y[(left + r) * m + top + lane] = tile[lane][(r + lane) % 32];
}
