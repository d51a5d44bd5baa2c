//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

threadgroup half* end = a + 64;
a[t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = end[-1 - int(t)];
