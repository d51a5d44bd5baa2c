//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 32 * tiles
//@ threadgroup 32
//@ source
threadgroup half a[64];
uint lane = thread_index_in_simdgroup, begin = threadgroup_position_in_grid.x * 64;
a[lane] = x[begin + lane];
a[lane + 32] = x[begin + lane + 32];
uint last = simd_sum(1u) * 2 - 1;
y[begin + lane] = a[last - lane];
y[begin + lane + 32] = a[last - lane - 32];
