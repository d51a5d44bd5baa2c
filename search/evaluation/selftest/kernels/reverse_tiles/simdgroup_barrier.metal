//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 128
//@ source
threadgroup half a[2][64];
uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
// Simdgroups of the second half of the threadgroup have nothing to do.
if (group >= 2) {
    return;
}
uint tile = threadgroup_position_in_grid.x * 2 + group;
if (tile >= uint(x_shape[0]) / 64) {
    return;
}
a[group][lane] = x[tile * 64 + lane];
a[group][lane + 32] = x[tile * 64 + lane + 32];
simdgroup_barrier(mem_flags::mem_threadgroup);
y[tile * 64 + lane] = a[group][63 - lane];
y[tile * 64 + lane + 32] = a[group][31 - lane];
