//@ pass reverse_tiles
//@ inputs x
//@ outputs y
//@ grid 64 * tiles
//@ threadgroup 48
//@ source
uint i = thread_position_in_grid.x;
y[i] = x[i ^ 63];
