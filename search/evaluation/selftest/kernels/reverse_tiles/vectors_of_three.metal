//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup float3 a[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

a[t].x = float(x[i]);
a[t].yz = float2(1, 2);
threadgroup_barrier(mem_flags::mem_threadgroup);
float3 v = a[63 - t];
y[i] = half(v.x * v.y * (v.z - 1));
