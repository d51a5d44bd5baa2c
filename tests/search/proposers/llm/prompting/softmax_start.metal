//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid rows
//@ threadgroup min(rows, 256)
//@ template T = T, N = n
//@ source
size_t row = thread_position_in_grid.x;
const size_t start = row * N;
float peak = -INFINITY;
for (uint c = 0; c < uint(N); ++c) { peak = max(peak, float(x[start + c])); }
float sum = 0.0f;
for (uint c = 0; c < uint(N); ++c) { sum += exp(float(x[start + c]) - peak); }
for (uint c = 0; c < uint(N); ++c) { y[start + c] = T(exp(float(x[start + c]) - peak) / sum); }
