//@ pass matmul
//@ inputs a, b
//@ outputs c
//@ grid 16 * ceildiv(n, 16), 16 * ceildiv(m, 16), 1
//@ threadgroup 16, 16, 1
//@ source
threadgroup half left[16][16], right[16][16];
uint row = thread_position_in_grid.y, col = thread_position_in_grid.x;
uint ty = thread_position_in_threadgroup.y, tx = thread_position_in_threadgroup.x;
uint m = a_shape[0], k = a_shape[1], n = b_shape[1];

float sum = 0;
for (uint at = 0; at < k; at += 16) {
    left[ty][tx] = row < m && at + tx < k ? a[row * k + at + tx] : half(0);
    right[ty][tx] = at + ty < k && col < n ? b[(at + ty) * n + col] : half(0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 16; ++i) {
        sum += float(left[ty][i]) * float(right[i][tx]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (row < m && col < n) {
    c[row * n + col] = half(sum);
}
