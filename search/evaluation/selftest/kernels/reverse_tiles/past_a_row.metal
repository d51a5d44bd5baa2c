//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[2][32];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

a[0][t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = a[1][31 - int(t)];
