//@ pass attention
//@ inputs q, k, v, scale
//@ outputs o
//@ grid 32, L, B * H
//@ threadgroup 32, 1, 1
//@ template T = T, L = L, D = D, CAUSAL = causal
//@ source
const uint lane = thread_index_in_simdgroup;
const uint row = threadgroup_position_in_grid.y;
const size_t head = size_t(threadgroup_position_in_grid.z) * L;
const size_t at = (head + row) * D;
const uint keys = CAUSAL ? row + 1 : L;
float query[D / 32], acc[D / 32];
for (uint r = 0; r < D / 32; ++r) { query[r] = float(q[at + r * 32 + lane]) * scale; acc[r] = 0.0f; }
float peak = -INFINITY, sum = 0.0f;
for (uint j = 0; j < keys; ++j) {
  const size_t key = (head + j) * D;
  float part = 0.0f;
  for (uint r = 0; r < D / 32; ++r) { part += query[r] * float(k[key + r * 32 + lane]); }
  const float score = simd_sum(part);
  const float grown = max(peak, score);
  const float shrink = exp(peak - grown), weight = exp(score - grown);
  for (uint r = 0; r < D / 32; ++r) { acc[r] = acc[r] * shrink + weight * float(v[key + r * 32 + lane]); }
  sum = sum * shrink + weight;
  peak = grown;
}
for (uint r = 0; r < D / 32; ++r) { o[at + r * 32 + lane] = T(acc[r] / sum); }
