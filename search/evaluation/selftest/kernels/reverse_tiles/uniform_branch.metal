//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

if (threadgroup_position_in_grid.x % 2 == 0) {
    a[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = a[63 - t];
} else {
    y[i ^ 32] = simd_shuffle_xor(x[i], 31);
}
