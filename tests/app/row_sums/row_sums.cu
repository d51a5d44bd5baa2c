// One warp a row.
__global__ void row_sums(const float* x, float* y, int rows, int n) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < n; i += 32) sum += x[row * n + i];
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
    }
    if (threadIdx.x % 32 == 0) y[row] = sum;
}
