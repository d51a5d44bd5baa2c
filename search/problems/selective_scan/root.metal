// One thread a channel walks through time, its 16 states in registers; everything is measured against this.
//@ pass scan
//@ inputs x, dt, A, B, C, D
//@ outputs y, last_state
//@ grid dim; batch; 1
//@ threadgroup 64; 1; 1
//@ template T = T; N = state
//@ header
inline float softplus(float v) {
    // log(1 + e) without what 1 + e rounds away: for a small e a series is closer.
    float e = exp(-abs(v));
    return max(v, 0.0f) + (e < 0.01f ? e * (1.0f - e * (0.5f - 0.33333333f * e)) : log(1.0f + e));
}
//@ source
uint channel = thread_position_in_grid.x, sequence = thread_position_in_grid.y;
uint tokens = x_shape[1], dim = x_shape[2];
float h[N];
for (uint s = 0; s < N; ++s) {
    h[s] = 0.0f;
}
for (uint t = 0; t < tokens; ++t) {
    uint row = sequence * tokens + t;
    float step = softplus(float(dt[row * dim + channel]));
    float value = float(x[row * dim + channel]);
    float taken = step * value, sum = D[channel] * value;
    for (uint s = 0; s < N; ++s) {
        h[s] = exp(step * A[channel * N + s]) * h[s] + taken * float(B[row * N + s]);
        sum += h[s] * float(C[row * N + s]);
    }
    y[row * dim + channel] = T(sum);
}
for (uint s = 0; s < N; ++s) {
    last_state[(sequence * dim + channel) * N + s] = h[s];
}
