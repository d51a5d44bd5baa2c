//@ pass conv
//@ inputs x, weight, bias
//@ outputs y
//@ grid channels, batch, 1
//@ threadgroup 20
//@ source
uint channel = thread_position_in_grid.x, batch = thread_position_in_grid.y;
uint l = x_shape[1], channels = x_shape[2];
float4 taps = *(const device float4*)(weight + 4 * channel), seen = 0;
uint at = batch * l * channels + channel;
for (uint time = 0; time < l; ++time, at += channels) {
    seen = float4(seen.yzw, float(x[at]));
    float sum = dot(seen, taps) + bias[channel];
    y[at] = half(sum / (1 + exp(-sum)));
}
