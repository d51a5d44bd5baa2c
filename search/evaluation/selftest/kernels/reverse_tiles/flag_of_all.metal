//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[64];
threadgroup uint last;
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

a[t] = x[i];
last = 63;
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = a[last - t];
