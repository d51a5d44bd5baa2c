//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid 32, rows
//@ threadgroup 32, 1
//@ template T = T, N = n
//@ source
const size_t start = size_t(threadgroup_position_in_grid.y) * N;
const uint lane = thread_index_in_simdgroup;
float peak = -INFINITY;
for (uint c = lane; c < uint(N); c += 32) { peak = max(peak, float(x[start + c])); }
peak = simd_max(peak);
float sum = 0.0f;
for (uint c = lane; c < uint(N); c += 32) { sum += exp(float(x[start + c]) - peak); }
sum = simd_sum(sum);
for (uint c = lane; c < uint(N); c += 32) { y[start + c] = T(exp(float(x[start + c]) - peak) / sum); }
