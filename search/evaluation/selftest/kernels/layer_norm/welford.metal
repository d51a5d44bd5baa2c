//@ pass layer_norm
//@ inputs x, weight, bias
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, n = x_shape[1];
float count = 0, mean = 0, squares = 0;
for (uint c = lane; c < n; c += 32) {
    float v = x[row * n + c], off = v - mean;
    count += 1;
    mean += off / count;
    squares += off * (v - mean);
}
for (ushort reach = 1; reach < 32; reach *= 2) {
    float other_count = simd_shuffle_xor(count, reach);
    float other_mean = simd_shuffle_xor(mean, reach);
    float other_squares = simd_shuffle_xor(squares, reach);
    float both = count + other_count, off = other_mean - mean;
    if (both > 0) {
        squares += other_squares + off * off * count * other_count / both;
        mean += off * other_count / both;
        count = both;
    }
}
// Lanes got to the same numbers in another order: one of them speaks for all.
mean = simd_broadcast(mean, 0);
float scale = rsqrt(simd_broadcast(squares, 0) / n + 1e-5f);
for (uint c = lane; c < n; c += 32) {
    y[row * n + c] = (x[row * n + c] - mean) * scale * weight[c] + bias[c];
}
