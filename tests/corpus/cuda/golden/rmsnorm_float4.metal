//@ pass rmsnorm_kernel
//@ inputs input, weight, eps
//@ outputs output
//@ grid tokens * 256; 1; 1
//@ threadgroup 256; 1; 1
//@ template hidden = hidden
//@ source
threadgroup float warp_sums[8];
threadgroup float inverse_rms;

const int vectors = hidden / 4;
const device float4* in4 = reinterpret_cast<const device float4*>(input + (size_t)threadgroup_position_in_grid.x * hidden);
const device float4* w4 = reinterpret_cast<const device float4*>(weight);
device float4* out4 = reinterpret_cast<device float4*>(output + (size_t)threadgroup_position_in_grid.x * hidden);

float sum = 0.f;
for (int i = thread_position_in_threadgroup.x; i < vectors; i += threads_per_threadgroup.x) {
  float4 v = in4[i];
  sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}
#pragma unroll
for (int offset = 16; offset > 0; offset >>= 1) sum += simd_shuffle_xor(sum, offset);
if ((thread_position_in_threadgroup.x & 31) == 0) warp_sums[thread_position_in_threadgroup.x >> 5] = sum;
threadgroup_barrier(mem_flags::mem_threadgroup);

if (thread_position_in_threadgroup.x == 0) {
  float total = 0.f;
  for (int w = 0; w < threads_per_threadgroup.x / 32; ++w) total += warp_sums[w];
  inverse_rms = rsqrt(total / hidden + eps);
}
threadgroup_barrier(mem_flags::mem_threadgroup);

const float scale = inverse_rms;
for (int i = thread_position_in_threadgroup.x; i < vectors; i += threads_per_threadgroup.x) {
  float4 v = in4[i];
  float4 w = w4[i];
  out4[i] = float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
}
