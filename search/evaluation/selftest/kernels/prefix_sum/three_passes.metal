//@ buffer totals [rows, ceildiv(n, 64)] float32
//@ buffer before [rows, ceildiv(n, 64)] float32
//@ pass blocks
//@ inputs x
//@ outputs totals
//@ grid 32 * ceildiv(n, 64), rows, 1
//@ threadgroup 32
//@ source
uint block = threadgroup_position_in_grid.x, row = threadgroup_position_in_grid.y, lane = thread_index_in_simdgroup;
uint n = x_shape[1], c = block * 64 + lane, blocks = (n + 63) / 64;
float sum = c < n ? x[row * n + c] : 0.0f;
sum += c + 32 < n ? x[row * n + c + 32] : 0.0f;
sum = simd_sum(sum);
if (lane == 0) {
    totals[row * blocks + block] = sum;
}
//@ pass scan
//@ inputs totals
//@ outputs before
//@ grid rows
//@ threadgroup 1
//@ source
uint row = thread_position_in_grid.x, blocks = totals_shape[1];
float sum = 0;
for (uint block = 0; block < blocks; ++block) {
    before[row * blocks + block] = sum;
    sum += totals[row * blocks + block];
}
//@ pass add
//@ inputs x, before
//@ outputs y
//@ grid 32 * ceildiv(n, 64), rows, 1
//@ threadgroup 32
//@ source
uint block = threadgroup_position_in_grid.x, row = threadgroup_position_in_grid.y, lane = thread_index_in_simdgroup;
uint n = x_shape[1], c = block * 64 + 2 * lane;
float first = c < n ? x[row * n + c] : 0.0f, second = c + 1 < n ? x[row * n + c + 1] : 0.0f;
float sum = before[row * before_shape[1] + block] + simd_prefix_exclusive_sum(first + second);
if (c < n) {
    y[row * n + c] = sum + first;
}
if (c + 1 < n) {
    y[row * n + c + 1] = sum + first + second;
}
