//@ pass layer_norm
//@ inputs x, weight, bias
//@ outputs y
//@ grid 64 * ceildiv(rows, 2)
//@ threadgroup 64
//@ header
inline float butterfly(float v) {
    for (ushort reach = 16; reach > 0; reach /= 2) {
        v += simd_shuffle_xor(v, reach);
    }
    return v;
}
//@ source
uint row = thread_position_in_grid.x / 32, lane = thread_index_in_simdgroup, n = x_shape[1];
if (row >= uint(x_shape[0])) {
    return;
}
const device float* in = x + row * n;
float sum = 0;
for (uint c = lane; c < n; c += 32) {
    sum += in[c];
}
float mean = butterfly(sum) / n;
float squares = 0;
for (uint c = lane; c < n; c += 32) {
    float off = in[c] - mean;
    squares += off * off;
}
float scale = rsqrt(butterfly(squares) / n + 1e-5f);
for (uint c = lane; c < n; c += 32) {
    y[row * n + c] = (in[c] - mean) * scale * weight[c] + bias[c];
}
