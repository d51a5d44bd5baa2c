//@ pass gather
//@ inputs table, ids
//@ outputs y
//@ grid 32 * ceildiv(quads, 32), 4 * ceildiv(n, 4), 1
//@ threadgroup 32, 4, 1
//@ source
uint quad = thread_position_in_grid.x, i = thread_position_in_grid.y;
uint n = ids_shape[0], quads = uint(table_shape[1]) / 4;
if (i < n && quad < quads) {
    const device bfloat4* from = (const device bfloat4*)table + uint(ids[i]) * quads;
    device bfloat4* to = (device bfloat4*)y + i * quads;
    to[quad] = from[quad];
}
