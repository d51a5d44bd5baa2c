//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid 128 * rows
//@ threadgroup 128
//@ template T = T
//@ source
constexpr uint threads = 128;
threadgroup float partial[threads];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
const device T* in = x + row * n;
device T* out = y + row * n;

float high = -INFINITY;
for (uint c = t; c < n; c += threads) {
    high = max(high, float(in[c]));
}
partial[t] = high;
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint reach = threads / 2; reach > 0; reach /= 2) {
    if (t < reach) {
        partial[t] = max(partial[t], partial[t + reach]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
high = partial[0];
threadgroup_barrier(mem_flags::mem_threadgroup);

float sum = 0;
for (uint c = t; c < n; c += threads) {
    sum += exp(float(in[c]) - high);
}
partial[t] = sum;
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint reach = threads / 2; reach > 0; reach /= 2) {
    if (t < reach) {
        partial[t] += partial[t + reach];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
float scale = 1 / partial[0];
for (uint c = t; c < n; c += threads) {
    out[c] = T(exp(float(in[c]) - high) * scale);
}
