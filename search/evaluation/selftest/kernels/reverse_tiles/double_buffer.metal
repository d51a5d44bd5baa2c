//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[2][64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

half v = x[i];
for (uint bit = 1, turn = 0; bit < 64; bit *= 2, turn ^= 1) {
    a[turn][t] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = a[turn][t ^ bit];
}
y[i] = v;
