//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half a[8][9];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

a[t / 8][t % 8] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = a[7 - t / 8][7 - t % 8];
