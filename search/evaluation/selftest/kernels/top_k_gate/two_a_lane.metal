//@ pass top_k_gate
//@ inputs logits
//@ outputs weights, ids
//@ grid 128 * ceildiv(tokens, 4)
//@ threadgroup 128
//@ template K = k
//@ source
uint token = thread_position_in_grid.x / 32, lane = thread_index_in_simdgroup, experts = logits_shape[1];
if (token >= uint(logits_shape[0])) {
    return;
}
float mine[2];
for (uint i = 0; i < 2; ++i) {
    uint expert = lane + 32 * i;
    mine[i] = expert < experts ? float(logits[token * experts + expert]) : -INFINITY;
}
float first = 0, weight = 0;
int chosen = 0;
for (uint rank = 0; rank < K; ++rank) {
    uint i = mine[0] >= mine[1] ? 0 : 1;
    float top = simd_max(mine[i]);
    uint expert = simd_min(mine[i] == top ? lane + 32 * i : 64);
    if (expert % 32 == lane) {
        mine[expert / 32] = -INFINITY;
    }
    first = rank == 0 ? top : first;
    if (rank == lane) {
        weight = exp(top - first);
        chosen = int(expert);
    }
}
float total = simd_sum(weight);
if (lane < K) {
    weights[token * K + lane] = weight / total;
    ids[token * K + lane] = chosen;
}
