//@ pass histogram_kernel
//@ inputs d_data
//@ outputs d_bins
//@ grid ceildiv(n, 512) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template n = n
//@ init 0
//@ header
#define NUM_BINS 256
//@ source
threadgroup unsigned int local[NUM_BINS];
for (int b = thread_position_in_threadgroup.x; b < NUM_BINS; b += threads_per_threadgroup.x) local[b] = 0;
threadgroup_barrier(mem_flags::mem_threadgroup);

int stride = threads_per_grid.x;
for (int i = thread_position_in_grid.x; i < n; i += stride) {
  atomic_fetch_add_explicit((threadgroup atomic_uint*)&local[d_data[i]], 1u, memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);

for (int b = thread_position_in_threadgroup.x; b < NUM_BINS; b += threads_per_threadgroup.x) {
  if (local[b] != 0) atomic_fetch_add_explicit((device atomic_uint*)&d_bins[b], local[b], memory_order_relaxed);
}
