//@ buffer d_out_1 [n] int32
//@ buffer d_totals_1 [ceildiv(n, 128)] int32
//@ buffer d_totals [ceildiv(n, 128)] int32
//@ pass scan_blocks
//@ inputs d_in
//@ outputs d_out_1, d_totals_1
//@ grid ceildiv(n, 128) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template n = n
//@ header
constexpr constant int kThreads = 128;

inline int warp_inclusive_scan(int v, uint3 thread_in_group) {
  int lane = thread_in_group.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    int up = simd_shuffle_up(v, d);
    if (lane >= d) v += up;
  }
  return v;
}

inline int block_inclusive_scan(int v, threadgroup int* warp_totals, uint3 thread_in_group) {
  int lane = thread_in_group.x & 31;
  int warp = thread_in_group.x >> 5;
  v = warp_inclusive_scan(v, thread_in_group);
  if (lane == 31) warp_totals[warp] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (warp == 0) {
    int total = lane < kThreads / 32 ? warp_totals[lane] : 0;
    total = warp_inclusive_scan(total, thread_in_group);
    if (lane < kThreads / 32) warp_totals[lane] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return warp > 0 ? v + warp_totals[warp - 1] : v;
}
//@ source
// 1. Scan each block by itself, and note its total.
threadgroup int warp_totals[kThreads / 32];
int i = threadgroup_position_in_grid.x * kThreads + thread_position_in_threadgroup.x;
int v = block_inclusive_scan(i < n ? d_in[i] : 0, warp_totals, thread_position_in_threadgroup);
if (i < n) d_out_1[i] = v;
if (thread_position_in_threadgroup.x == kThreads - 1) d_totals_1[threadgroup_position_in_grid.x] = v;
//@ pass scan_totals
//@ inputs d_totals_1
//@ outputs d_totals
//@ grid 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template blocks = ceildiv(n, 128)
//@ header
constexpr constant int kThreads = 128;

inline int warp_inclusive_scan(int v, uint3 thread_in_group) {
  int lane = thread_in_group.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    int up = simd_shuffle_up(v, d);
    if (lane >= d) v += up;
  }
  return v;
}

inline int block_inclusive_scan(int v, threadgroup int* warp_totals, uint3 thread_in_group) {
  int lane = thread_in_group.x & 31;
  int warp = thread_in_group.x >> 5;
  v = warp_inclusive_scan(v, thread_in_group);
  if (lane == 31) warp_totals[warp] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (warp == 0) {
    int total = lane < kThreads / 32 ? warp_totals[lane] : 0;
    total = warp_inclusive_scan(total, thread_in_group);
    if (lane < kThreads / 32) warp_totals[lane] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return warp > 0 ? v + warp_totals[warp - 1] : v;
}
//@ source
// 2. Scan the totals: one block, at most kThreads of them.
threadgroup int warp_totals[kThreads / 32];
int v = block_inclusive_scan(thread_position_in_threadgroup.x < blocks ? d_totals_1[thread_position_in_threadgroup.x] : 0, warp_totals, thread_position_in_threadgroup);
if (thread_position_in_threadgroup.x < blocks) d_totals[thread_position_in_threadgroup.x] = v;
//@ pass add_offsets
//@ inputs d_out_1, d_totals
//@ outputs d_out
//@ grid ceildiv(n, 128) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template n = n
//@ header
constexpr constant int kThreads = 128;
//@ source
// 3. Add to each block what came before it.
int i = threadgroup_position_in_grid.x * kThreads + thread_position_in_threadgroup.x;
if (i < n) d_out[i] = d_out_1[i];
if (threadgroup_position_in_grid.x > 0 && i < n) d_out[i] = d_out_1[i] + d_totals[threadgroup_position_in_grid.x - 1];
