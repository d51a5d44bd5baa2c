//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 16 * tiles
//@ threadgroup 16
//@ source
uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;
half4 v = ((const device half4*)x)[i];
((device half4*)y)[i - t + 15 - t] = v.wzyx;
