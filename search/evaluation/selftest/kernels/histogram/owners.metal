//@ pass histogram
//@ inputs ids
//@ outputs counts
//@ grid 32 * bins
//@ threadgroup 96
//@ source
uint bin = thread_position_in_grid.x / 32, lane = thread_index_in_simdgroup, n = ids_shape[0];
int count = 0;
for (uint i = lane; i < n; i += 32) {
    count += ids[i] == int(bin);
}
count = simd_sum(count);
if (simd_is_first()) {
    counts[bin] = count;
}
