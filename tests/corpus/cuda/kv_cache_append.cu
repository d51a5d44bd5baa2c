#include <cuda_fp16.h>
#include <cuda_runtime.h>

// The new token of each sequence goes to that sequence's next place; the rest of the cache stays as it is.
__global__ void kv_cache_append_kernel(const __half* __restrict__ key,        // [batch, kv_heads, head_dim]
                                       const __half* __restrict__ value,      // [batch, kv_heads, head_dim]
                                       __half* __restrict__ key_cache,        // [batch, kv_heads, max_len, head_dim]
                                       __half* __restrict__ value_cache,      // [batch, kv_heads, max_len, head_dim]
                                       const int* __restrict__ cache_position,  // [batch], each < max_len
                                       int kv_heads, int head_dim, int max_len) {
  const int b = blockIdx.x;
  const int position = cache_position[b];
  if (position < 0 || position >= max_len) return;

  for (int i = threadIdx.x; i < kv_heads * head_dim; i += blockDim.x) {
    const int head = i / head_dim;
    const int d = i % head_dim;
    const size_t to = (((size_t)b * kv_heads + head) * max_len + position) * head_dim + d;
    const size_t from = (size_t)b * kv_heads * head_dim + i;
    key_cache[to] = key[from];
    value_cache[to] = value[from];
  }
}

void kv_cache_append(const __half* key, const __half* value, __half* key_cache, __half* value_cache,
                     const int* cache_position, int batch, int kv_heads, int head_dim, int max_len,
                     cudaStream_t stream) {
  if (batch == 0) return;
  kv_cache_append_kernel<<<batch, 128, 0, stream>>>(key, value, key_cache, value_cache, cache_position, kv_heads,
                                                    head_dim, max_len);
}
