//@ pass top_k_gate
//@ inputs logits
//@ outputs weights, ids
//@ grid 64 * tokens
//@ threadgroup 64
//@ template K = k
//@ source
threadgroup float values[64];
threadgroup float best[K];
uint token = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup, experts = logits_shape[1];
float mine = t < experts ? float(logits[token * experts + t]) : 0.0f;
values[t] = mine;
threadgroup_barrier(mem_flags::mem_threadgroup);
// How many come before mine: each expert has a rank of its own, so the writes below meet nowhere.
uint rank = 0;
for (uint e = 0; e < experts; ++e) {
    rank += values[e] > mine || (values[e] == mine && e < t);
}
bool chosen = t < experts && rank < K;
if (chosen) {
    best[rank] = mine;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (!chosen) {
    return;
}
float total = 0;
for (uint r = 0; r < K; ++r) {
    total += exp(best[r] - best[0]);
}
weights[token * K + rank] = exp(mine - best[0]) / total;
ids[token * K + rank] = int(t);
