// Macros with side effects, several statements, shadowed names, and an argument that is evaluated twice.
#define SQUARE(v) ((v) * (v))
#define MAX2(a, b) ((a) > (b) ? (a) : (b))
#define SWAP(a, b) do { float t_ = (a); (a) = (b); (b) = t_; } while (0)
#define AT(m, r, c) m[(r) * ld + (c)]
__device__ float next(float& state) { state = state * 0.5f + 1.f; return state; }
__global__ void macros(const float* x, float* y, int rows, int ld) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = 0.f;
  for (int c = 0; c < ld; ++c) { float s_ = AT(x, r, c); s += SQUARE(s_ + 1.f); }
  float state = s;
  float m = MAX2(next(state), 2.f);   // next runs twice where it is the larger
  int i = 3;
  int k = SQUARE(i + 1);
  float a = m, b = state;
  if (r % 2) SWAP(a, b);
  else a += 1.f;
  for (int i = 0; i < 2; ++i) { int k = i; a += k; }
  y[r] = a - b + k + i;
}
void go(const float* x, float* y, int rows, int ld) { macros<<<(rows + 63) / 64, 64>>>(x, y, rows, ld); }
