//@ pass neighbours
//@ inputs x
//@ outputs y
//@ grid n, rows, 1
//@ threadgroup 32
//@ source
uint c = thread_position_in_grid.x, n = x_shape[1], row = thread_position_in_grid.y * n;
float left = x[row + max(c, 1u) - 1], right = x[row + min(c + 1, n - 1)];
y[row + c] = x[row + c] + left * float(c > 0) + right * float(c + 1 < n);
