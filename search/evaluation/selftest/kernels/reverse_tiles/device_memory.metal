//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

y[i] = x[i];
threadgroup_barrier(mem_flags::mem_device);
half v = y[i ^ 63];
threadgroup_barrier(mem_flags::mem_device);
y[i] = v;
