//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;

half v = quad_shuffle_xor(x[i], 3);
y[(i & ~63u) + (15 - t / 4) * 4 + t % 4] = v;
