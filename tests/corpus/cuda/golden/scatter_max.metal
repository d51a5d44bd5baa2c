//@ pass scatter_max_kernel
//@ inputs src, index
//@ outputs out
//@ grid ceildiv(n * dim, 128) * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template n = n; dim = dim
//@ init -1e+30
//@ header
// Metal's compare-exchange may fail without a reason; CUDA's does not, and gives back what was there.
template <typename T, typename Atomic>
inline T compare_exchange(Atomic at, T expected, T desired) {
    T found = expected;
    while (!atomic_compare_exchange_weak_explicit(at, &found, desired, memory_order_relaxed, memory_order_relaxed)) {
        if (found != expected) break;
    }
    return found;
}

// There is no atomicMax for float: compare and swap its bits until the larger one stands (0 for 0 only reads).
inline float atomic_max_float(device float* address, float value) {
  device int* bits = reinterpret_cast<device int*>(address);
  int old = compare_exchange<int>((device atomic_int*)bits, 0, 0);
  while (as_type<float>(old) < value) {
    int assumed = old;
    old = compare_exchange<int>((device atomic_int*)bits, assumed, as_type<int>(value));
    if (old == assumed) break;
  }
  return as_type<float>(old);
}
//@ source
int i = thread_position_in_grid.x;
if (i >= n * dim) return;
atomic_max_float(&out[index[i / dim] * dim + i % dim], src[i]);
