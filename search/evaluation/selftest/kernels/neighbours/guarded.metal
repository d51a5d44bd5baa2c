//@ pass neighbours
//@ inputs x
//@ outputs y
//@ grid n, rows, 1
//@ threadgroup 30, 4, 1
//@ source
uint c = thread_position_in_grid.x, n = x_shape[1], i = thread_position_in_grid.y * n + c;
float left = c > 0 ? x[i - 1] : 0.0f, right = c + 1 < n ? x[i + 1] : 0.0f;
y[i] = left + x[i] + right;
