//@ pass row_sums
//@ inputs x
//@ outputs y
//@ grid 128
//@ threadgroup 32
//@ source
for (uint row = thread_position_in_grid.x; row < uint(x_shape[0]); row += threads_per_grid.x) {
    uint n = x_shape[1];
    float sum = 0, rest = 0;
    for (uint c = 0; c < n; ++c) {
        // What each addition loses is added to the next (Kahan).
        float term = x[row * n + c] - rest, next = sum + term;
        rest = (next - sum) - term;
        sum = next;
    }
    y[row] = sum;
}
