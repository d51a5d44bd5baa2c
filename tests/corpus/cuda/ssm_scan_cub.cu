#include <cub/cub.cuh>

#define THREADS 64
#define ITEMS 4

// h_t = a_t h_(t-1) + b_t along each row, in chunks: pairs (a, b) compose, and a chunk begins where the last one ended.
struct SSMScanOp {
  __device__ __forceinline__ float2 operator()(const float2& ab0, const float2& ab1) const {
    return make_float2(ab1.x * ab0.x, ab1.x * ab0.y + ab1.y);
  }
};

struct SSMScanPrefixCallbackOp {
  float2 running_prefix;
  // Only the first lane's return value counts.
  __device__ float2 operator()(float2 block_aggregate) {
    float2 old_prefix = running_prefix;
    running_prefix = SSMScanOp()(running_prefix, block_aggregate);
    return old_prefix;
  }
};

__global__ void ssm_scan_kernel(const float* __restrict__ delta_a,  // [rows, seqlen]
                                const float* __restrict__ delta_b,  // [rows, seqlen]
                                float* __restrict__ states,         // [rows, seqlen]
                                int seqlen) {
  using BlockScan = cub::BlockScan<float2, THREADS, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename BlockScan::TempStorage smem_scan;
  __shared__ float2 smem_running_prefix;

  const int row = blockIdx.x * seqlen;
  for (int chunk = 0; chunk < seqlen; chunk += THREADS * ITEMS) {
    float2 thread_data[ITEMS];
    for (int i = 0; i < ITEMS; ++i) {
      const int t = chunk + threadIdx.x * ITEMS + i;
      thread_data[i] = t < seqlen ? make_float2(expf(-fabsf(delta_a[row + t])), delta_b[row + t]) : make_float2(1.f, 0.f);
    }

    SSMScanPrefixCallbackOp prefix_op;
    prefix_op.running_prefix = make_float2(1.f, 0.f);
    if (chunk > 0 && threadIdx.x % 32 == 0) prefix_op.running_prefix = smem_running_prefix;
    BlockScan(smem_scan).InclusiveScan(thread_data, thread_data, SSMScanOp(), prefix_op);
    if (threadIdx.x == 0) smem_running_prefix = prefix_op.running_prefix;

    for (int i = 0; i < ITEMS; ++i) {
      const int t = chunk + threadIdx.x * ITEMS + i;
      if (t < seqlen) states[row + t] = thread_data[i].y;
    }
    __syncthreads();
  }
}

void ssm_scan(const float* delta_a, const float* delta_b, float* states, int rows, int seqlen, cudaStream_t stream) {
  ssm_scan_kernel<<<rows, THREADS, 0, stream>>>(delta_a, delta_b, states, seqlen);
}
