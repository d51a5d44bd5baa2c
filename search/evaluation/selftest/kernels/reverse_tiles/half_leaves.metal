//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

a[t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t % 2 == 1) {
    return;
}
y[i] = a[63 - t];
y[i + 1] = a[62 - t];
