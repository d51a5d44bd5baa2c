//@ pass rms_norm
//@ inputs x, weight, eps
//@ outputs y
//@ grid 256 * rows
//@ threadgroup 256
//@ source
threadgroup float parts[8];
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, n = x_shape[1];
uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;

float sum = 0;
for (uint c = t; c < n; c += 256) {
    float v = float(x[row * n + c]);
    sum += v * v;
}
sum = simd_sum(sum);
if (lane == 0) {
    parts[group] = sum;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (group == 0) {
    float v = simd_sum(lane < 8 ? parts[lane] : 0.0f);
    if (lane == 0) {
        parts[0] = v;
    }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
float scale = rsqrt(parts[0] / n + eps);
for (uint c = t; c < n; c += 256) {
    y[row * n + c] = half(float(x[row * n + c]) * scale * float(weight[c]));
}
