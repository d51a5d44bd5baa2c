//@ pass softmax_online
//@ inputs d_x
//@ outputs d_y
//@ grid rows * 64; 1; 1
//@ threadgroup 64; 1; 1
//@ template cols = cols; THREADS = 64
//@ header
struct MaxSum {
  float m;  // the largest value so far
  float s;  // sum of exp(x - m)
};

inline MaxSum merge(MaxSum a, MaxSum b) {
  bool a_larger = a.m > b.m;
  MaxSum large = a_larger ? a : b;
  MaxSum small = a_larger ? b : a;
  MaxSum r;
  r.m = large.m;
  r.s = large.s + (small.s > 0.0f ? small.s * exp(small.m - large.m) : 0.0f);
  return r;
}
//@ source
threadgroup MaxSum shared[THREADS];
d_x += (size_t)threadgroup_position_in_grid.x * cols;
d_y += (size_t)threadgroup_position_in_grid.x * cols;

MaxSum own = {-INFINITY, 0.0f};
for (int i = thread_position_in_threadgroup.x; i < cols; i += THREADS) {
  own = merge(own, MaxSum{d_x[i], 1.0f});
}
shared[thread_position_in_threadgroup.x] = own;
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int s = THREADS / 2; s >= 1; s /= 2) {
  if (thread_position_in_threadgroup.x < s) {
    shared[thread_position_in_threadgroup.x] = merge(shared[thread_position_in_threadgroup.x], shared[thread_position_in_threadgroup.x + s]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

MaxSum row = shared[0];
for (int i = thread_position_in_threadgroup.x; i < cols; i += THREADS) {
  d_y[i] = exp(d_x[i] - row.m) / row.s;
}
