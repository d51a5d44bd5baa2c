//@ pass conv
//@ inputs x, weight, bias
//@ outputs y
//@ grid 32 * ceildiv(channels, 32), 8 * ceildiv(l, 8), batch
//@ threadgroup 32, 8, 1
//@ source
threadgroup float tile[11][32];
uint l = x_shape[1], channels = x_shape[2];
uint tx = thread_position_in_threadgroup.x, ty = thread_position_in_threadgroup.y;
uint channel = thread_position_in_grid.x, time = thread_position_in_grid.y, batch = thread_position_in_grid.z;
const device half* in = x + batch * l * channels;
bool there = channel < channels;

tile[ty + 3][tx] = there && time < l ? float(in[time * channels + channel]) : 0.0f;
if (ty < 3) {
    // The three rows before this block's first.
    tile[ty][tx] = there && time >= 3 && time - 3 < l ? float(in[(time - 3) * channels + channel]) : 0.0f;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (there && time < l) {
    float sum = bias[channel];
    for (uint j = 0; j < 4; ++j) {
        sum += weight[channel * 4 + j] * tile[ty + j][tx];
    }
    y[(batch * l + time) * channels + channel] = half(sum / (1 + exp(-sum)));
}
