// The same convolution as in Mamba's own file: constants and types in a traits struct, the kernel chosen by a pointer
// that the host leaves null, and a base class that holds the sizes.
struct Sizes { int batch, dim, seqlen; };
struct ConvParams : Sizes { void* __restrict__ x_ptr; void* weight_ptr; const float* bias_ptr; void* out_ptr; };

template <int kThreads_, int kWidth_, typename input_t_, typename weight_t_>
struct Conv_traits {
    using input_t = input_t_;
    using weight_t = weight_t_;
    static constexpr int kThreads = kThreads_;
    static constexpr int kWidth = kWidth_;
    static constexpr int kItems = sizeof(input_t) == 4 ? 4 : 8;
    static constexpr int kTile = kThreads * kItems;
};

template <typename Traits, bool kHasBias>
__global__ void conv_traits_kernel(ConvParams params) {
    using input_t = typename Traits::input_t;
    using weight_t = typename Traits::weight_t;
    constexpr int kWidth = Traits::kWidth;
    const int row = blockIdx.y * params.dim + blockIdx.z;
    const input_t *x = reinterpret_cast<const input_t *>(params.x_ptr) + row * params.seqlen;
    input_t *out = reinterpret_cast<input_t *>(params.out_ptr) + row * params.seqlen;
    const weight_t *weight = reinterpret_cast<const weight_t *>(params.weight_ptr) + blockIdx.z * kWidth;
    float bias_val = 0.f;
    if constexpr (kHasBias) bias_val = params.bias_ptr[blockIdx.z];
    for (int i = 0; i < Traits::kItems; ++i) {
        const int t = blockIdx.x * Traits::kTile + i * Traits::kThreads + threadIdx.x;
        if (t >= params.seqlen) break;
        float s = bias_val;
        for (int w = 0; w < kWidth; ++w) {
            const int at = t - (kWidth - 1) + w;
            if (at >= 0) s += float(x[at]) * float(weight[w]);
        }
        out[t] = input_t(s);
    }
}

template <int kThreads, typename input_t, typename weight_t>
void conv_launch(ConvParams &params) {
    using Traits = Conv_traits<kThreads, 4, input_t, weight_t>;
    auto kernel = params.bias_ptr == nullptr
        ? &conv_traits_kernel<Traits, false>
        : &conv_traits_kernel<Traits, true>;
    dim3 grid((params.seqlen + Traits::kTile - 1) / Traits::kTile, params.batch, params.dim);
    kernel<<<grid, Traits::kThreads>>>(params);
}

void conv_no_bias(void* x, void* weight, void* out, int batch, int dim, int seqlen) {
    ConvParams params;
    params.batch = batch;
    params.dim = dim;
    params.seqlen = seqlen;
    params.x_ptr = x;
    params.weight_ptr = weight;
    params.bias_ptr = nullptr;
    params.out_ptr = out;
    conv_launch<64, __half, float>(params);
}
