// Mamba's way to pass parameters: a struct of void pointers and strides that a function of the host fills.
struct ConvParams { int batch, dim, seqlen; uint32_t x_batch_stride, x_c_stride; void* __restrict__ x_ptr; void* weight_ptr; void* bias_ptr; void* out_ptr; bool silu; };
template <typename input_t, typename weight_t, int kWidth>
__global__ void conv_kernel(ConvParams params) {
    const int batch_id = blockIdx.x, channel_id = blockIdx.y;
    input_t *x = reinterpret_cast<input_t *>(params.x_ptr) + batch_id * params.x_batch_stride + channel_id * params.x_c_stride;
    weight_t *weight = reinterpret_cast<weight_t *>(params.weight_ptr) + channel_id * kWidth;
    input_t *out = reinterpret_cast<input_t *>(params.out_ptr) + batch_id * params.x_batch_stride + channel_id * params.x_c_stride;
    float bias_val = params.bias_ptr == nullptr ? 0.f : float(reinterpret_cast<weight_t *>(params.bias_ptr)[channel_id]);
    for (int t = threadIdx.x; t < params.seqlen; t += blockDim.x) {
        float s = bias_val;
        for (int w = 0; w < kWidth; ++w) { int at = t - (kWidth - 1) + w; if (at >= 0) s += float(x[at]) * float(weight[w]); }
        if (params.silu) s = s / (1 + expf(-s));
        out[t] = input_t(s);
    }
}
void set_params(ConvParams &params, int batch, int dim, int seqlen, void* x, void* weight, void* out, void* bias, bool silu) {
    memset(&params, 0, sizeof(params));
    params.batch = batch; params.dim = dim; params.seqlen = seqlen; params.silu = silu;
    params.x_ptr = x; params.weight_ptr = weight; params.bias_ptr = bias; params.out_ptr = out;
    params.x_batch_stride = dim * seqlen; params.x_c_stride = seqlen;
}
void conv_fwd(void* x, void* weight, void* bias, void* out, int batch, int dim, int seqlen) {
    ConvParams params;
    set_params(params, batch, dim, seqlen, x, weight, out, bias, true);
    conv_kernel<__half, float, 4><<<dim3(batch, dim), 128>>>(params);
}
