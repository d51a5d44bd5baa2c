//@ buffer parts [ceildiv(rows, 32), n] float32
//@ pass blocks
//@ inputs x
//@ outputs parts
//@ grid 32 * ceildiv(n, 32), 4 * ceildiv(rows, 32), 1
//@ threadgroup 32, 4, 1
//@ source
threadgroup float sums[4][32];
uint rows = x_shape[0], n = x_shape[1];
uint tx = thread_position_in_threadgroup.x, ty = thread_position_in_threadgroup.y;
uint block = threadgroup_position_in_grid.y, col = thread_position_in_grid.x;
float sum = 0;
for (uint r = block * 32 + ty; r < min(block * 32 + 32, rows); r += 4) {
    sum += col < n ? float(x[r * n + col]) : 0.0f;
}
sums[ty][tx] = sum;
threadgroup_barrier(mem_flags::mem_threadgroup);
if (ty == 0 && col < n) {
    parts[block * n + col] = sums[0][tx] + sums[1][tx] + sums[2][tx] + sums[3][tx];
}
//@ pass total
//@ inputs parts
//@ outputs y
//@ grid n
//@ threadgroup 64
//@ source
uint col = thread_position_in_grid.x, blocks = parts_shape[0], n = parts_shape[1];
float sum = 0;
for (uint block = 0; block < blocks; ++block) {
    sum += parts[block * n + col];
}
y[col] = sum;
