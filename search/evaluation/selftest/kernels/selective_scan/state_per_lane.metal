//@ pass scan
//@ inputs x, dt, decay, b, c
//@ outputs y
//@ grid 64 * ceildiv(channels, 4), batch, 1
//@ threadgroup 64
//@ header
inline float log_of_one_plus(float v) {
    // The quotient makes good what 1 + v has lost.
    float sum = 1.0f + v;
    return sum == 1.0f ? v : v * (log(sum) / (sum - 1.0f));
}
inline float softplus(float v) {
    return max(v, 0.0f) + log_of_one_plus(exp(-abs(v)));
}
//@ source
uint state = thread_index_in_simdgroup % 16, channel = thread_position_in_grid.x / 16;
uint batch = thread_position_in_grid.y, l = x_shape[1], channels = x_shape[2];
bool there = channel < channels;
uint from = min(channel, channels - 1);
float a = -softplus(decay[from * 16 + state]), held = 0;
for (uint t = 0; t < l; ++t) {
    uint row = batch * l + t;
    float step = softplus(dt[row * channels + from]);
    held = exp(step * a) * held + step * b[row * 16 + state] * x[row * channels + from];
    float sum = held * c[row * 16 + state];
    for (ushort reach = 8; reach > 0; reach /= 2) {
        sum += simd_shuffle_xor(sum, reach);
    }
    if (there && state == 0) {
        y[row * channels + channel] = sum;
    }
}
