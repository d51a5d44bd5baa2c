//@ pass flash_attention
//@ inputs q, k, v, scale_log2
//@ outputs o
//@ grid ceildiv(seq, 16) * 128; batch_heads; 1
//@ threadgroup 128; 1; 1
//@ template seq = seq; HEAD_DIM = 64
//@ header
#define ROWS 16  // queries of a block
#define KEYS 32  // keys of a tile, one a lane
#define WARPS 4
//@ source
// Causal attention in one pass over the keys: a running maximum and sum for each query, kept by its warp.
constexpr int PER_WARP = ROWS / WARPS;
constexpr int PER_LANE = HEAD_DIM / 32;
threadgroup float smem[5152];
threadgroup float* q_tile = smem;                          // ROWS x HEAD_DIM
threadgroup float* k_tile = q_tile + ROWS * HEAD_DIM;      // KEYS x (HEAD_DIM + 1): a lane reads a row
threadgroup float* v_tile = k_tile + KEYS * (HEAD_DIM + 1);  // KEYS x HEAD_DIM

const int lane = thread_position_in_threadgroup.x & 31;
const int warp = thread_position_in_threadgroup.x >> 5;
const int first = threadgroup_position_in_grid.x * ROWS;
const size_t base = (size_t)threadgroup_position_in_grid.y * seq * HEAD_DIM;

for (int i = thread_position_in_threadgroup.x; i < ROWS * HEAD_DIM; i += threads_per_threadgroup.x) {
  int row = first + i / HEAD_DIM;
  q_tile[i] = row < seq ? q[base + (size_t)row * HEAD_DIM + i % HEAD_DIM] * scale_log2 : 0.f;
}

float m[PER_WARP], l[PER_WARP], acc[PER_WARP][PER_LANE];
#pragma unroll
for (int r = 0; r < PER_WARP; ++r) {
  m[r] = -INFINITY;
  l[r] = 0.f;
#pragma unroll
  for (int d = 0; d < PER_LANE; ++d) acc[r][d] = 0.f;
}

const int last = min(first + ROWS, seq);
for (int start = 0; start < last; start += KEYS) {
  threadgroup_barrier(mem_flags::mem_threadgroup);  // the tile before is used up
  for (int i = thread_position_in_threadgroup.x; i < KEYS * HEAD_DIM; i += threads_per_threadgroup.x) {
    int key = i / HEAD_DIM, d = i % HEAD_DIM;
    bool inside = start + key < seq;
    k_tile[key * (HEAD_DIM + 1) + d] = inside ? k[base + (size_t)(start + key) * HEAD_DIM + d] : 0.f;
    v_tile[key * HEAD_DIM + d] = inside ? v[base + (size_t)(start + key) * HEAD_DIM + d] : 0.f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

#pragma unroll
  for (int r = 0; r < PER_WARP; ++r) {
    const int row = warp * PER_WARP + r;
    float s = 0.f;
#pragma unroll 8
    for (int d = 0; d < HEAD_DIM; ++d) s += q_tile[row * HEAD_DIM + d] * k_tile[lane * (HEAD_DIM + 1) + d];
    if (start + lane > first + row) s = -INFINITY;

    float tile_max = s;
    for (int x = 16; x > 0; x >>= 1) tile_max = fmax(tile_max, simd_shuffle_xor(tile_max, x));
    const float m_new = fmax(m[r], tile_max);
    const float correction = exp2(m[r] - m_new);
    const float p = exp2(s - m_new);
    float p_sum = p;
    for (int x = 16; x > 0; x >>= 1) p_sum += simd_shuffle_xor(p_sum, x);
    l[r] = l[r] * correction + p_sum;
    m[r] = m_new;

#pragma unroll
    for (int d = 0; d < PER_LANE; ++d) acc[r][d] *= correction;
    for (int key = 0; key < KEYS; ++key) {
      const float weight = simd_shuffle(p, key);
#pragma unroll
      for (int d = 0; d < PER_LANE; ++d) acc[r][d] += weight * v_tile[key * HEAD_DIM + lane + 32 * d];
    }
  }
}

#pragma unroll
for (int r = 0; r < PER_WARP; ++r) {
  const int row = first + warp * PER_WARP + r;
  if (row < seq) {
#pragma unroll
    for (int d = 0; d < PER_LANE; ++d) o[base + (size_t)row * HEAD_DIM + lane + 32 * d] = acc[r][d] / l[r];
  }
}
