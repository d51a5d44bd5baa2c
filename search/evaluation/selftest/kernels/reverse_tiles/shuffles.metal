//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 64
//@ source
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;

half v = simd_shuffle_xor(x[i], 31);
y[i ^ 32] = v;
