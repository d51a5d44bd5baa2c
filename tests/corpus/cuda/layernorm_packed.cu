// LayerNorm in bfloat16, a warp a row, with 128-bit loads and stores through a struct template.
#include <assert.h>
#include <stdint.h>
#include <cuda_runtime.h>
#include <cuda_bf16.h>

#define WARP_SIZE 32U
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

typedef __nv_bfloat16 floatX;

template<class ElementType>
struct alignas(16) Packed128 {
    Packed128() = default;
    __device__ explicit Packed128(int4 bits) {
        static_assert(sizeof(bits) == sizeof(payload), "the sizes differ");
        memcpy(&payload, &bits, sizeof(bits));
    }
    __device__ static Packed128 constant(ElementType value) {
        Packed128 result;
        for (int k = 0; k < size; ++k) {
            result.payload[k] = value;
        }
        return result;
    }
    __device__ static Packed128 zeros() { return constant(0.f); }
    __device__ ElementType& operator[](int index) { return payload[index]; }
    __device__ const ElementType& operator[](int index) const { return payload[index]; }
    __device__ int4 get_bits() const {
        int4 bits;
        static_assert(sizeof(bits) == sizeof(payload), "the sizes differ");
        memcpy(&bits, &payload, sizeof(bits));
        return bits;
    }
    static constexpr const size_t size = sizeof(int4) / sizeof(ElementType);
    ElementType payload[size];
};

template<class ElementType>
__device__ Packed128<ElementType> load128(const ElementType* address) {
    return Packed128<ElementType>{*reinterpret_cast<const int4*>(address)};
}
template<class ElementType>
__device__ Packed128<ElementType> load128cs(const ElementType* address) {
    return Packed128<ElementType>{__ldcs(reinterpret_cast<const int4*>(address))};
}
template<class ElementType>
__device__ void store128(ElementType* target, Packed128<ElementType> value) {
    *reinterpret_cast<int4*>(target) = value.get_bits();
}
template<class ElementType>
__device__ void store128cs(ElementType* target, Packed128<ElementType> value) {
    __stcs(reinterpret_cast<int4*>(target), value.get_bits());
}

typedef Packed128<float> f128;
typedef Packed128<floatX> x128;

__device__ inline float warpReduceSum(float val) {
    for (int offset = 16; offset > 0; offset /= 2) {
        val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
    }
    return val;
}

__global__ void layernorm_packed_kernel(floatX* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd,
                                    const floatX*  __restrict__ inp, const floatX*  __restrict__ weight,
                                    const floatX* __restrict__ bias, int N, int C) {
    int idx = blockIdx.x * blockDim.y + threadIdx.y;
    if (idx >= N) { return; }

    inp += idx * C;
    out += idx * C;

    const float eps = 1e-5f;
    float sum = 0.0f;
    for (int c = threadIdx.x * x128::size; c < C; c += WARP_SIZE * x128::size) {
        const x128 in_data = load128cs(inp + c);
        for (int k = 0; k < x128::size; ++k) {
            sum += (float)in_data[k];
        }
    }
    sum = warpReduceSum(sum);
    float m = sum / C;
    float v = 0.f;
    for (int c = threadIdx.x * x128::size; c < C; c += WARP_SIZE * x128::size) {
        const x128 in_data = load128cs(inp + c);
        for (int k = 0; k < x128::size; ++k) {
            v += ((float)in_data[k] - m) * ((float)in_data[k] - m);
        }
    }
    v = warpReduceSum(v) / C;
    float s = rsqrtf(v + eps);

    for (int c = threadIdx.x * x128::size; c < C; c += WARP_SIZE * x128::size) {
        const x128 in_data = load128cs(inp + c);
        const x128 w = load128(weight + c);
        const x128 b = load128(bias + c);
        x128 out_data;
        for (int k = 0; k < x128::size; ++k) {
            float n = s * ((float)in_data[k] - m);
            float o = n * (float)w[k] + (float)b[k];
            out_data[k] = (floatX)o;
        }
        store128cs(out + c, out_data);
    }
    if (threadIdx.x == 0 && mean != nullptr) {
        __stcs(mean + idx, m);
    }
    if (threadIdx.x == 0 && rstd != nullptr) {
        __stcs(rstd + idx, s);
    }
}

void layernorm_forward(floatX* out,           // [B, T, C]
                       float* mean,           // [B, T]
                       float* rstd,           // [B, T]
                       floatX* inp,           // [B, T, C]
                       const floatX* weight,  // [C]
                       const floatX* bias,    // [C]
                       int B, int T, int C, cudaStream_t stream) {
    const int block_size = 256;
    int block_y = block_size / WARP_SIZE;
    const int N = B * T;
    assert(C % 8 == 0);
    const int grid_size = CEIL_DIV(N, block_y);
    layernorm_packed_kernel<<<grid_size, dim3(WARP_SIZE, block_y), 0, stream>>>(out, mean, rstd, inp, weight, bias, N, C);
}
