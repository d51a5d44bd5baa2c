//@ pass gather
//@ inputs table, ids
//@ outputs y
//@ grid 1024
//@ threadgroup 64
//@ source
// Pairs of bfloats as whole words, in a loop that strides over the grid: more threads than work, or less.
uint pairs = uint(table_shape[1]) / 2, size = uint(ids_shape[0]) * pairs;
const device uint* from = (const device uint*)table;
device uint* to = (device uint*)y;
for (uint i = thread_position_in_grid.x; i < size; i += threads_per_grid.x) {
    to[i] = from[uint(ids[i / pairs]) * pairs + i % pairs];
}
