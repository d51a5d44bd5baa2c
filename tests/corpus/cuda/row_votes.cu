#include <cuda_runtime.h>

__global__ void row_votes(const float* x, int* any_above, int* all_above, int* first_above, int rows, int cols,
                          float threshold) {
  int lane = threadIdx.x;
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;

  bool any = false, all = true;
  int first = -1;
  for (int start = 0; start < cols; start += 32) {
    int c = start + lane;
    bool above = c < cols && x[row * cols + c] > threshold;
    any = any || __any_sync(0xffffffff, above);
    all = all && __all_sync(0xffffffff, above || c >= cols);
    unsigned mask = __ballot_sync(0xffffffff, above);
    if (first < 0 && mask != 0) first = start + __ffs(mask) - 1;
  }
  if (lane == 0) {
    any_above[row] = any;
    all_above[row] = all;
    first_above[row] = first;
  }
}

void launch_row_votes(const float* x, int* any_above, int* all_above, int* first_above, int rows, int cols) {
  row_votes<<<(rows + 7) / 8, dim3(32, 8)>>>(x, any_above, all_above, first_above, rows, cols, 1.5f);
}
