//@ pass attention
//@ inputs q, k, v, scale
//@ outputs o
//@ grid L, H, B
//@ threadgroup min(L, 64), 1, 1
//@ template T = T, L = L, H = H, D = D, CAUSAL = causal
//@ source
const uint row = thread_position_in_grid.x;
const size_t head = (size_t(thread_position_in_grid.z) * H + thread_position_in_grid.y) * L;
const size_t at = (head + row) * D;
const uint keys = CAUSAL ? row + 1 : L;
float acc[D];
for (uint d = 0; d < D; ++d) { acc[d] = 0.0f; }
float peak = -INFINITY, sum = 0.0f;
for (uint j = 0; j < keys; ++j) {
  const size_t key = (head + j) * D;
  float score = 0.0f;
  for (uint d = 0; d < D; ++d) { score += float(q[at + d]) * float(k[key + d]); }
  score *= scale;
  const float grown = max(peak, score);
  const float shrink = exp(peak - grown), weight = exp(score - grown);
  for (uint d = 0; d < D; ++d) { acc[d] = acc[d] * shrink + weight * float(v[key + d]); }
  sum = sum * shrink + weight;
  peak = grown;
}
for (uint d = 0; d < D; ++d) { o[at + d] = T(acc[d] / sum); }
