//@ pass matvec
//@ inputs w, scales, biases, x
//@ outputs y
//@ grid 128 * ceildiv(rows, 4)
//@ threadgroup 128
//@ source
uint row = threadgroup_position_in_grid.x * 4 + simdgroup_index_in_threadgroup;
uint lane = thread_index_in_simdgroup, words = w_shape[1], groups = scales_shape[1];
if (row >= uint(w_shape[0])) {
    return;
}
float total = 0;
for (uint at = lane; at < words; at += 32) {
    uint word = w[row * words + at];
    float product = 0, sum = 0;
    for (uint i = 0; i < 8; ++i) {
        float v = float(x[8 * at + i]);
        product += v * float(word >> (4 * i) & 15);
        sum += v;
    }
    uint group = row * groups + at / 4;
    total += float(scales[group]) * product + float(biases[group]) * sum;
}
total = simd_sum(total);
if (lane == 0) {
    y[row] = total;
}
