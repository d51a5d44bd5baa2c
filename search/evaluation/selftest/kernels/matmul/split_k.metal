//@ buffer parts [4, m, n] float32
//@ pass products
//@ inputs a, b
//@ outputs parts
//@ grid n, m, 4
//@ threadgroup 8, 8, 1
//@ source
uint col = thread_position_in_grid.x, row = thread_position_in_grid.y, part = thread_position_in_grid.z;
uint m = a_shape[0], k = a_shape[1], n = b_shape[1];
uint each = (k + 3) / 4, begin = part * each, end = min(begin + each, k);
float sum = 0;
for (uint i = begin; i < end; ++i) {
    sum += float(a[row * k + i]) * float(b[i * n + col]);
}
parts[(part * m + row) * n + col] = sum;
//@ pass total
//@ inputs parts
//@ outputs c
//@ grid m * n
//@ threadgroup 64
//@ source
uint i = thread_position_in_grid.x, size = parts_shape[1] * parts_shape[2];
float sum = 0;
for (uint part = 0; part < 4; ++part) {
    sum += parts[part * size + i];
}
c[i] = half(sum);
