//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32; rows; 1
//@ threadgroup 32; 1; 1
//@ template T = T; N = n
//@ source
uint row = threadgroup_position_in_grid.y;
uint lane = thread_index_in_simdgroup;
float sum = 0.0f;
for (uint c = lane; c < uint(N); c += 32) { sum += float(x[size_t(row) * N + c]); }
sum = simd_sum(sum);
if (lane == 0) { y[row] = T(sum); }
