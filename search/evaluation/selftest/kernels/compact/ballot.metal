//@ pass compact
//@ inputs marks
//@ outputs places
//@ grid 128
//@ threadgroup 128
//@ init -1
//@ source
threadgroup uint counts[4];
uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
uint n = marks_shape[0], found = 0;
for (uint at = 0; at < n; at += 128) {
    uint i = at + t;
    bool marked = i < n && marks[i] != 0;
    uint mask = uint(static_cast<simd_vote::vote_t>(simd_ballot(marked)));
    if (lane == 0) {
        counts[group] = popcount(mask);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint before = found + popcount(mask & ((1u << lane) - 1));
    for (uint g = 0; g < group; ++g) {
        before += counts[g];
    }
    if (marked) {
        places[before] = int(i);
    }
    found += counts[0] + counts[1] + counts[2] + counts[3];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
