//@ pass head_norm_kernel
//@ inputs qk, weight, eps
//@ outputs qk_out
//@ grid ceildiv(tokens * heads, 4) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template total_heads = tokens * heads; T = float16; BLOCK = 128; HEAD_DIM = 64
//@ header
template <typename T> struct Convert;

template <>
struct Convert<float> {
  static float load(float v) { return v; }
  static float store(float v) { return v; }
};

template <>
struct Convert<half> {
  static float load(half v) { return float(v); }
  static half store(float v) { return half(v); }
};
//@ source
// Each head of each token is normalised by itself: a warp a head, several warps a block.
static_assert(HEAD_DIM % 32 == 0, "a warp covers a head");
constexpr int kPerLane = HEAD_DIM / 32;
constexpr int kWarps = BLOCK / 32;
const int head = threadgroup_position_in_grid.x * kWarps + thread_position_in_threadgroup.x / 32;
const int lane = thread_position_in_threadgroup.x % 32;
if (head >= total_heads) return;

auto row = qk + static_cast<int64_t>(head) * HEAD_DIM;
device T* row_out = qk_out + static_cast<int64_t>(head) * HEAD_DIM;
float v[kPerLane];
float square = 0.f;
#pragma unroll
for (int i = 0; i < kPerLane; ++i) {
  v[i] = Convert<T>::load(row[lane + 32 * i]);
  square += v[i] * v[i];
}
#pragma unroll
for (int m = 16; m > 0; m >>= 1) square += simd_shuffle_xor(square, m);
const float scale = rsqrt(square / HEAD_DIM + eps);
#pragma unroll
for (int i = 0; i < kPerLane; ++i) {
  row_out[lane + 32 * i] = Convert<T>::store(v[i] * scale * Convert<T>::load(weight[lane + 32 * i]));
}
