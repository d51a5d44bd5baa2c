//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * ceildiv(rows, 4)
//@ threadgroup 32
//@ source
uint lane = thread_index_in_simdgroup, row = thread_position_in_grid.x / 8, rows = x_shape[0], n = x_shape[1];
uint from = row < rows ? row : 0;
float sum = 0;
for (uint c = lane % 8; c < n; c += 8) {
    sum += x[from * n + c];
}
sum += simd_shuffle_xor(sum, 4);
sum = quad_sum(sum);
if (row < rows && lane % 8 == 0) {
    y[row] = sum;
}
