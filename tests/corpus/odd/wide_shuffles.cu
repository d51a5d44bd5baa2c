// Shuffles of 64-bit integers, of pairs, of lanes beyond the width, and votes within a branch.
struct Pair { float value; int index; };
__device__ Pair better(Pair a, Pair b) { return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a; }
__device__ Pair shfl_xor(Pair p, int mask) {
  Pair o;
  o.value = __shfl_xor_sync(0xffffffff, p.value, mask);
  o.index = __shfl_xor_sync(0xffffffff, p.index, mask);
  return o;
}
__global__ void tops(const float* x, float* best, long long* sums, unsigned* votes, int rows) {
  int row = blockIdx.x, lane = threadIdx.x;
  Pair p{x[row * 32 + lane], lane};
  for (int m = 16; m > 0; m >>= 1) p = better(p, shfl_xor(p, m));
  long long wide = ((long long)lane << 33) + row;
  for (int m = 1; m < 32; m *= 2) wide += __shfl_xor_sync(~0u, wide, m);
  unsigned long long far = __shfl_sync(0xffffffff, (unsigned long long)lane * 10000000000ull, 35);   // lane 3
  unsigned some = 0;
  if (lane < 20) some = __ballot_sync(0x000fffff, x[row * 32 + lane] > 0.f);
  int up = __shfl_up_sync(0xffffffff, lane, 40);         // beyond: own value
  int down = __shfl_down_sync(0xffffffff, lane, 4, 8);   // beyond the segment: own value
  if (lane == 0) { best[row] = p.value + 1000.f * p.index; sums[row] = wide + (long long)far; votes[row] = some; }
  if (lane == 6) best[rows + row] = up * 100 + down;
}
void go(const float* x, float* best, long long* sums, unsigned* votes, int rows) { tops<<<rows, 32>>>(x, best, sums, votes, rows); }
