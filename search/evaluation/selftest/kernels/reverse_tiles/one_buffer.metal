//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

half v = x[i];
for (uint bit = 1; bit < 64; bit *= 2) {
    a[t] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = a[t ^ bit];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
y[i] = v;
