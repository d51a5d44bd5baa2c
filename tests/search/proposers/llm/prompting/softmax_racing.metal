//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid 64, rows
//@ threadgroup 64, 1
//@ template T = T, N = n
//@ source
threadgroup float partial[2];
const size_t start = size_t(threadgroup_position_in_grid.y) * N;
const uint t = thread_position_in_threadgroup.x;
float peak = -INFINITY;
for (uint c = t; c < uint(N); c += 64) { peak = max(peak, float(x[start + c])); }
peak = simd_max(peak);
if (thread_index_in_simdgroup == 0) { partial[simdgroup_index_in_threadgroup] = peak; }
peak = max(partial[0], partial[1]);
threadgroup_barrier(mem_flags::mem_threadgroup);
float sum = 0.0f;
for (uint c = t; c < uint(N); c += 64) { sum += exp(float(x[start + c]) - peak); }
sum = simd_sum(sum);
if (thread_index_in_simdgroup == 0) { partial[simdgroup_index_in_threadgroup] = sum; }
threadgroup_barrier(mem_flags::mem_threadgroup);
sum = partial[0] + partial[1];
for (uint c = t; c < uint(N); c += 64) { y[start + c] = T(exp(float(x[start + c]) - peak) / sum); }
