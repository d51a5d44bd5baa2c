//@ pass rope
//@ inputs x, offset
//@ outputs y
//@ grid d // 2, heads, tokens
//@ threadgroup 16, 4, 1
//@ source
uint i = thread_position_in_grid.x, head = thread_position_in_grid.y, token = thread_position_in_grid.z;
uint heads = x_shape[1], d = x_shape[2];
uint at = (token * heads + head) * d + i;
float angle = float(offset + int(token)) * pow(10000.0f, -2.0f * float(i) / float(d));
float cos_angle = cos(angle), sin_angle = sin(angle);
float first = float(x[at]), second = float(x[at + d / 2]);
y[at] = half(first * cos_angle - second * sin_angle);
y[at + d / 2] = half(first * sin_angle + second * cos_angle);
