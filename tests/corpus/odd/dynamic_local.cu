// A local array that is indexed dynamically, a constant table, a function-local static const table.
__constant__ float weights[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
__global__ void bins(const int* key, const float* x, float* y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const int order[4] = {2, 0, 3, 1};
  float acc[4] = {};
  for (int j = 0; j < 8; ++j) {
    int k = key[r * 8 + j] & 3;
    acc[order[k]] += x[r * 8 + j] * weights[j % 5];
  }
  int best = 0;
  #pragma unroll
  for (int k = 1; k < 4; ++k) best = acc[k] > acc[best] ? k : best;
  float* chosen = &acc[best];
  *chosen *= 2.f;
  float total = 0.f;
  for (float v = 0; best < 4; ++best) { total += acc[best]; v += 1.f; }
  y[r] = total;
}
void go(const int* key, const float* x, float* y, int rows) { bins<<<(rows + 63) / 64, 64>>>(key, x, y, rows); }
