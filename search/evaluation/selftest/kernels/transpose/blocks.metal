//@ pass transpose
//@ inputs x
//@ outputs y
//@ grid 32 * ceildiv(n, 8), ceildiv(m, 8), 1
//@ threadgroup 32
//@ source
uint m = x_shape[0], n = x_shape[1], lane = thread_index_in_simdgroup;
uint top = threadgroup_position_in_grid.y * 8, left = threadgroup_position_in_grid.x * 8;
if (top + 8 <= m && left + 8 <= n) {
    simdgroup_matrix<float, 8, 8> block;
    simdgroup_load(block, x + top * n + left, n);
    simdgroup_store(block, y + left * m + top, m, ulong2(0), true);
} else {
    for (uint i = lane; i < 64; i += 32) {
        uint row = top + i / 8, col = left + i % 8;
        if (row < m && col < n) {
            y[col * m + row] = x[row * n + col];
        }
    }
}
