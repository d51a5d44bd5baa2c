// One dynamic block of shared memory cut into regions of several types; helpers get pointers at offsets into it.
__device__ void accumulate(float* sums, const int* keys, int lane, float v) { atomicAdd(&sums[keys[lane] & 7], v); }
__device__ float first_of(const float* region, int by) { return *(region + by); }
__global__ void bucket_sums(const float* __restrict__ x, const int* __restrict__ key, float* __restrict__ y, int n) {
  extern __shared__ unsigned char raw[];
  float* sums = reinterpret_cast<float*>(raw);
  int* keys = reinterpret_cast<int*>(raw + 8 * sizeof(float));
  unsigned short* seen = reinterpret_cast<unsigned short*>(keys + blockDim.x);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 8) sums[threadIdx.x] = 0.f;
  keys[threadIdx.x] = i < n ? key[i] : 0;
  seen[threadIdx.x] = (unsigned short)(i < n);
  __syncthreads();
  if (seen[threadIdx.x]) accumulate(sums, keys, threadIdx.x, x[i]);
  __syncthreads();
  if (threadIdx.x < 8) y[blockIdx.x * 8 + threadIdx.x] = first_of(sums, threadIdx.x);
}
void launch(const float* x, const int* key, float* y, int n) {
  int threads = 128;
  size_t bytes = 8 * sizeof(float) + threads * (sizeof(int) + sizeof(unsigned short));
  bucket_sums<<<(n + threads - 1) / threads, threads, bytes>>>(x, key, y, n);
}
