// Arithmetic that wraps: hashes in unsigned, shifts, products of ints made wide too late or in time.
__global__ void hashes(const int* x, unsigned* y, long long* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = (unsigned)x[i] * 2654435761u;
  h ^= h >> 13; h *= 0x85ebca6bu; h = (h << 7) | (h >> 25);
  unsigned char low = h; signed char s = h; short w = h;
  y[i] = h + low + s * 3 + w;
  unsigned big = 100000u * (unsigned)(i + 70000);
  long long in_time = (long long)(i + 70000) * 100000;
  z[i] = in_time + big + (long long)(h >> 1) * 3 - (-7 / 2) - (-7 % 3);
}
void go(const int* x, unsigned* y, long long* z, int n) { hashes<<<(n + 255) / 256, 256>>>(x, y, z, n); }
