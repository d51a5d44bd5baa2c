//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
// Lane 0 takes the fewest elements, lane 31 the most.
uint begin = lane * lane * n / 1024, end = (lane + 1) * (lane + 1) * n / 1024;
float sum = 0;
while (begin < end) {
    sum += x[row * n + begin++];
}
sum = simd_sum(sum);
if (lane == 31) {
    y[row] = sum;
}
