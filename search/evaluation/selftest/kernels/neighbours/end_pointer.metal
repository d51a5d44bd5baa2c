//@ pass neighbours
//@ inputs x
//@ outputs y
//@ grid rows
//@ threadgroup 8
//@ source
uint n = x_shape[1], row = thread_position_in_grid.x;
const device float* begin = x + row * n;
const device float* end = begin + n;
device float* to = y + row * n;
for (const device float* p = begin; p != end; ++p) {
    float sum = 0;
    for (const device float* q = p == begin ? p : p - 1; q != end && q <= p + 1; ++q) {
        sum += *q;
    }
    *to++ = sum;
}
