//@ pass topk_gating
//@ inputs logits
//@ outputs topk_weights, topk_ids
//@ grid ceildiv(tokens, 4) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template tokens = tokens; experts = experts
//@ header
#define EXPERTS_PER_LANE 2
//@ source
// A warp for each token: softmax over the experts, the best two, their weights scaled to a sum of one.
const int lane = thread_position_in_threadgroup.x % 32;
const int token = thread_position_in_grid.x / 32;
if (token >= tokens) return;

float p[EXPERTS_PER_LANE];
float largest = -FLT_MAX;
#pragma unroll
for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
  const int e = lane + 32 * i;
  p[i] = e < experts ? logits[token * experts + e] : -FLT_MAX;
  largest = fmax(largest, p[i]);
}
for (int m = 16; m > 0; m >>= 1) largest = fmax(largest, simd_shuffle_xor(largest, m));

float sum = 0.f;
#pragma unroll
for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
  p[i] = lane + 32 * i < experts ? exp(p[i] - largest) : -1.f;
  if (p[i] > 0.f) sum += p[i];
}
for (int m = 16; m > 0; m >>= 1) sum += simd_shuffle_xor(sum, m);

float chosen[2];
int ids[2];
for (int k = 0; k < 2; ++k) {
  float best = p[0];
  int best_id = lane;
#pragma unroll
  for (int i = 1; i < EXPERTS_PER_LANE; ++i) {
    if (p[i] > best) {
      best = p[i];
      best_id = lane + 32 * i;
    }
  }
  for (int m = 16; m > 0; m >>= 1) {
    const float other = simd_shuffle_xor(best, m);
    const int other_id = simd_shuffle_xor(best_id, m);
    if (other > best || (other == best && other_id < best_id)) {
      best = other;
      best_id = other_id;
    }
  }
  chosen[k] = best / sum;
  ids[k] = best_id;
#pragma unroll
  for (int i = 0; i < EXPERTS_PER_LANE; ++i) {
    if (lane + 32 * i == best_id) p[i] = -1.f;
  }
}

if (lane < 2) {
  topk_weights[token * 2 + lane] = chosen[lane] / (chosen[0] + chosen[1]);
  topk_ids[token * 2 + lane] = ids[lane];
}
