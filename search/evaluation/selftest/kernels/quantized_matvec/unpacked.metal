//@ pass matvec
//@ inputs w, scales, biases, x
//@ outputs y
//@ grid 32 * rows
//@ threadgroup 32
//@ source
uint row = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, groups = scales_shape[1];
const device ushort* halves = (const device ushort*)(w + row * 4 * groups);
float total = 0;
// A group is eight ushorts of four weights each: lanes 0..7 take one group, lanes 8..15 the next.
for (uint at = lane; at < 8 * groups; at += 32) {
    ushort packed = halves[at];
    float4 quants = float4(packed & 0x000f, packed & 0x00f0, packed & 0x0f00, packed & 0xf000);
    float4 v = float4(*(const device half4*)(x + 4 * at));
    // The masks leave each weight where it was, 16 times too large for each place.
    float product = dot(v / float4(1, 16, 256, 4096), quants);
    uint group = row * groups + at / 8;
    total += float(scales[group]) * product + float(biases[group]) * (v.x + v.y + v.z + v.w);
}
total += simd_shuffle_down(total, 16);
total += simd_shuffle_down(total, 8);
total += simd_shuffle_down(total, 4);
total += simd_shuffle_down(total, 2);
total += simd_shuffle_down(total, 1);
if (lane == 0) {
    y[row] = total;
}
