//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
threadgroup float tile[8][8], sums[8][8];
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
simdgroup_matrix<float, 8, 8> total(0.0f), ones = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
for (uint at = 0; at < n; at += 64) {
    for (uint i = lane; i < 64; i += 32) {
        tile[i / 8][i % 8] = at + i < n ? x[row * n + at + i] : 0.0f;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<float, 8, 8> part;
    simdgroup_load(part, &tile[0][0], 8);
    simdgroup_multiply_accumulate(total, ones, part, total);
    simdgroup_barrier(mem_flags::mem_threadgroup);
}
simdgroup_store(total, &sums[0][0], 8);
simdgroup_barrier(mem_flags::mem_threadgroup);
float sum = simd_sum(lane < 8 ? sums[0][lane] : 0.0f);
if (lane == 0) {
    y[row] = sum;
}
