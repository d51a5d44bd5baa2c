//@ pass matmul
//@ inputs a, b
//@ outputs c
//@ grid 128 * ceildiv(n, 32), ceildiv(m, 32), 1
//@ threadgroup 128
//@ source
threadgroup half left[32][16], right[16][32];
threadgroup float result[32][32];
uint t = thread_index_in_threadgroup, group = simdgroup_index_in_threadgroup;
uint top = threadgroup_position_in_grid.y * 32, side = threadgroup_position_in_grid.x * 32;
uint down = group / 2 * 16, across = group % 2 * 16;
uint m = a_shape[0], k = a_shape[1], n = b_shape[1];

simdgroup_matrix<float, 8, 8> sums[2][2];
for (uint i = 0; i < 2; ++i) {
    for (uint j = 0; j < 2; ++j) {
        sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    }
}
for (uint at = 0; at < k; at += 16) {
    for (uint i = t; i < 32 * 16; i += 128) {
        uint r = i / 16, s = i % 16;
        left[r][s] = top + r < m && at + s < k ? a[(top + r) * k + at + s] : half(0);
    }
    for (uint i = t; i < 16 * 32; i += 128) {
        uint r = i / 32, s = i % 32;
        right[r][s] = at + r < k && side + s < n ? b[(at + r) * n + side + s] : half(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 0; step < 16; step += 8) {
        simdgroup_matrix<half, 8, 8> l[2], r[2];
        for (uint i = 0; i < 2; ++i) {
            simdgroup_load(l[i], &left[down + 8 * i][step], 16);
            simdgroup_load(r[i], &right[step][across + 8 * i], 32);
        }
        for (uint i = 0; i < 2; ++i) {
            for (uint j = 0; j < 2; ++j) {
                simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
for (uint i = 0; i < 2; ++i) {
    for (uint j = 0; j < 2; ++j) {
        simdgroup_store(sums[i][j], &result[down + 8 * i][across + 8 * j], 32);
    }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint i = t; i < 32 * 32; i += 128) {
    uint r = top + i / 32, s = side + i % 32;
    if (r < m && s < n) {
        c[r * n + s] = half(result[i / 32][i % 32]);
    }
}
