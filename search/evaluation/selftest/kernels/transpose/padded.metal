//@ pass transpose
//@ inputs x
//@ outputs y
//@ grid 32 * ceildiv(n, 32), 8 * ceildiv(m, 32), 1
//@ threadgroup 32, 8, 1
//@ source
threadgroup float tile[32][33];
uint m = x_shape[0], n = x_shape[1];
uint tx = thread_position_in_threadgroup.x, ty = thread_position_in_threadgroup.y;
uint left = threadgroup_position_in_grid.x * 32, top = threadgroup_position_in_grid.y * 32;

for (uint r = ty; r < 32; r += 8) {
    if (top + r < m && left + tx < n) {
        tile[r][tx] = x[(top + r) * n + left + tx];
    }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint r = ty; r < 32; r += 8) {
    if (left + r < n && top + tx < m) {
        y[(left + r) * m + top + tx] = tile[tx][r];
    }
}
