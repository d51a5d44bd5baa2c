//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
threadgroup half4 room[64];
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

room[t] = half4(x[i], 0, 0, 0);
threadgroup_barrier(mem_flags::mem_threadgroup);
half v = room[63 - t].x;
threadgroup_barrier(mem_flags::mem_threadgroup);
threadgroup int* places = (threadgroup int*)room;
places[t] = int(63 - t);
threadgroup_barrier(mem_flags::mem_threadgroup);
y[i - t + 63 - places[t]] = 0;
threadgroup_barrier(mem_flags::mem_device);
y[i] = v;
