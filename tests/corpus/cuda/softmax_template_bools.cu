#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <assert.h>
#define WARP_SIZE 32
template <typename T> static __device__ __forceinline__ float t2f32(T val) { return (float)val; }
template <> __device__ float __forceinline__ t2f32<half>(half val) { return __half2float(val); }
static __device__ __forceinline__ float warp_reduce_sum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffff, x, offset, 32);
    return x;
}
static __device__ __forceinline__ float warp_reduce_max(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset, 32));
    return x;
}
template <bool use_shared, int ncols_template, int block_size_template, typename T>
static __global__ void soft_max_rows(const float* x, const T* mask, float* dst, const int ncols_par, const int nrows_y, const float scale, const float max_bias) {
    const int ncols = ncols_template == 0 ? ncols_par : ncols_template;
    const int tid = threadIdx.x;
    const int rowx = blockIdx.x;
    const int rowy = rowx % nrows_y;
    x += int64_t(rowx) * ncols;
    mask += int64_t(rowy) * ncols * (mask != nullptr);
    dst += int64_t(rowx) * ncols;
    const int block_size = block_size_template == 0 ? blockDim.x : block_size_template;
    const int warp_id = threadIdx.x / WARP_SIZE;
    const int lane_id = threadIdx.x % WARP_SIZE;
    const float slope = 1.0f;
    extern __shared__ float data_soft_max_rows[];
    float* buf_iw = data_soft_max_rows;  // shared memory buffer for inter-warp communication
    // shared memory buffer to cache values between iterations:
    float* vals = use_shared ? buf_iw + WARP_SIZE : dst;
    float max_val = -INFINITY;
#pragma unroll
    for (int col0 = 0; col0 < ncols; col0 += block_size) {
        const int col = col0 + tid;
        if (ncols_template == 0 && col >= ncols) { break; }
        const float val = x[col] * scale + (mask ? slope * t2f32(mask[col]) : 0.0f);
        vals[col] = val;
        max_val = max(max_val, val);
    }
    max_val = warp_reduce_max(max_val);
    if (block_size > WARP_SIZE) {
        if (warp_id == 0) { buf_iw[lane_id] = -INFINITY; }
        __syncthreads();
        if (lane_id == 0) { buf_iw[warp_id] = max_val; }
        __syncthreads();
        max_val = buf_iw[lane_id];
        max_val = warp_reduce_max(max_val);
    }
    float tmp = 0.0f;
#pragma unroll
    for (int col0 = 0; col0 < ncols; col0 += block_size) {
        const int col = col0 + tid;
        if (ncols_template == 0 && col >= ncols) { break; }
        const float val = expf(vals[col] - max_val);
        tmp += val;
        vals[col] = val;
    }
    tmp = warp_reduce_sum(tmp);
    if (block_size > WARP_SIZE) {
        __syncthreads();
        if (warp_id == 0) { buf_iw[lane_id] = 0.0f; }
        __syncthreads();
        if (lane_id == 0) { buf_iw[warp_id] = tmp; }
        __syncthreads();
        tmp = buf_iw[lane_id];
        tmp = warp_reduce_sum(tmp);
    }
    const float inv_sum = 1.0f / tmp;
#pragma unroll
    for (int col0 = 0; col0 < ncols; col0 += block_size) {
        const int col = col0 + tid;
        if (ncols_template == 0 && col >= ncols) { return; }
        dst[col] = vals[col] * inv_sum;
    }
}
void soft_max(const float* x,    // [nrows_x, ncols]
              const half* mask,  // [nrows_y, ncols]
              float* dst,        // [nrows_x, ncols]
              int ncols, int nrows_x, int nrows_y, float scale) {
    assert(nrows_x % nrows_y == 0);
    int nth = 128;
    const size_t shmem = (ncols + 32 + 31) / 32 * 32 * sizeof(float);
    soft_max_rows<true, 0, 0><<<nrows_x, nth, shmem>>>(x, mask, dst, ncols, nrows_y, scale, 0.f);
}
