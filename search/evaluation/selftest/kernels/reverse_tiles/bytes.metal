//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

threadgroup uchar low[64], high[64];
ushort bits = as_type<ushort>(x[i]);
low[t] = uchar(bits);
high[t] = uchar(bits >> 8);
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i] = as_type<half>(ushort(low[63 - t] | high[63 - t] << 8));
