//@ pass difference
//@ inputs in
//@ outputs out
//@ grid ceildiv(n, 128) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template n = n
//@ source
threadgroup float s[128];
int t = thread_position_in_threadgroup.x;
int i = threadgroup_position_in_grid.x * threads_per_threadgroup.x + t;
const bool active = i < n;

if (active) s[t] = in[i];
threadgroup_barrier(mem_flags::mem_threadgroup);

float before = 0.0f;
if (active) {
  if (t > 0) {
    before = s[t - 1];
  } else if (i > 0) {
    before = in[i - 1];
  }
}
if (active) out[i] = s[t] - before;
