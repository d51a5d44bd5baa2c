//@ pass histogram
//@ inputs ids
//@ outputs counts
//@ grid 64 * ceildiv(n, 256)
//@ threadgroup 64
//@ template BINS = bins
//@ init 0
//@ atomic_outputs
//@ source
threadgroup atomic_int local[BINS];
uint t = thread_index_in_threadgroup, n = ids_shape[0];
for (uint b = t; b < BINS; b += 64) {
    atomic_store_explicit(&local[b], 0, memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
uint begin = threadgroup_position_in_grid.x * 256;
for (uint i = begin + t; i < min(begin + 256, n); i += 64) {
    atomic_fetch_add_explicit(&local[ids[i]], 1, memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint b = t; b < BINS; b += 64) {
    int found = atomic_load_explicit(&local[b], memory_order_relaxed);
    if (found > 0) {
        atomic_fetch_add_explicit(&counts[b], found, memory_order_relaxed);
    }
}
