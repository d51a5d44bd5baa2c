//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
threadgroup float a[32];
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
float sum = 0;
for (uint c = lane; c < n; c += 32) {
    sum += x[row * n + c];
}
a[lane] = sum;
simdgroup_barrier(mem_flags::mem_threadgroup);
for (uint reach = 16; reach > 0; reach /= 2) {
    if (lane < reach) {
        a[lane] += a[lane + reach];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}
if (lane == 0) {
    y[row] = a[0];
}
