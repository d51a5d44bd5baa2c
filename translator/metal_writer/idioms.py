"""What CUDA has and Metal has not, as small functions for the header; each is there only when a kernel needs it."""

from __future__ import annotations

from translator.metal_writer.cub_idioms import CUB_IDIOMS

IDIOMS = {
    "compare_exchange": """\
// Metal's compare-exchange may fail without a reason; CUDA's does not, and gives back what was there.
template <typename T, typename Atomic>
inline T compare_exchange(Atomic at, T expected, T desired) {
    T found = expected;
    while (!atomic_compare_exchange_weak_explicit(at, &found, desired, memory_order_relaxed, memory_order_relaxed)) {
        if (found != expected) break;
    }
    return found;
}""",
    "atomic_add_float": """\
// Adds to a float in threadgroup memory, where Metal has no atomic floats.
template <typename Atomic>
inline float atomic_add_float(Atomic bits, float value) {
    uint found = atomic_load_explicit(bits, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(bits, &found, as_type<uint>(as_type<float>(found) + value),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(found);
}""",
    "atomic_increment": """\
// Counts up to a limit and starts again at 0, as CUDA's atomicInc.
template <typename Atomic>
inline uint atomic_increment(Atomic at, uint limit) {
    uint found = atomic_load_explicit(at, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(at, &found, found >= limit ? 0u : found + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return found;
}""",
    "atomic_decrement": """\
// Counts down to 0 and starts again at a limit, as CUDA's atomicDec.
template <typename Atomic>
inline uint atomic_decrement(Atomic at, uint limit) {
    uint found = atomic_load_explicit(at, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(at, &found, found == 0 || found > limit ? limit : found - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return found;
}""",
    "threadgroup_count": """\
// In how many threads of the threadgroup a condition holds; a barrier as well, as CUDA's __syncthreads_count.
inline int threadgroup_count(bool holds, threadgroup int* slots, uint simdgroup, uint lane, uint simdgroups) {
    int count = simd_sum(int(holds));
    if (lane == 0) slots[simdgroup] = count;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int total = 0;
    for (uint i = 0; i < simdgroups; ++i) total += slots[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return total;
}""",
    "match_any": """\
// The lanes among the active ones that have the same value as this one.
template <typename T>
inline uint match_any(T value) {
    uint same = 0;
    for (uint rest = uint((simd_vote::vote_t)simd_active_threads_mask()); rest != 0; rest &= rest - 1) {
        uint lane = ctz(rest);
        if (simd_shuffle(value, ushort(lane)) == value) same |= 1u << lane;
    }
    return same;
}""",
    "error_function": """\
// erf by formula 7.1.26 of Abramowitz and Stegun; its error is below 1.5e-7.
inline float error_function(float x) {
    float t = 1.0f / (1.0f + 0.3275911f * fabs(x));
    float series = 1.421413741f + t * (-1.453152027f + t * 1.061405429f);
    series = t * (0.254829592f + t * (-0.284496736f + t * series));
    return copysign(1.0f - series * exp(-x * x), x);
}""",
    "log_one_plus": """\
// log(1 + x), accurate for small x too.
inline float log_one_plus(float x) {
    float y = 1.0f + x;
    return y == 1.0f ? x : isinf(y) ? y : log(y) * (x / (y - 1.0f));
}""",
    "exp_minus_one": """\
// exp(x) - 1, accurate for small x too.
inline float exp_minus_one(float x) {
    float y = exp(x);
    if (y == 1.0f) return x;
    if (y - 1.0f == -1.0f || isinf(y)) return y - 1.0f;
    return (y - 1.0f) * (x / log(y));
}""",
    "saturating_int": """\
// Float to int as CUDA does it: what doesn't fit becomes the nearest int, NaN becomes 0.
inline int saturating_int(float x) {
    return isnan(x) ? 0 : x >= 2147483648.0f ? INT_MAX : x <= -2147483648.0f ? INT_MIN : int(x);
}""",
    "saturating_uint": """\
// Float to uint as CUDA does it: what doesn't fit becomes the nearest uint, NaN becomes 0.
inline uint saturating_uint(float x) {
    return !(x > 0.0f) ? 0u : x >= 4294967296.0f ? UINT_MAX : uint(x);
}""",
    "multiply_24": """\
// The lower 24 bits of each count, as in CUDA; Metal's mul24 is only defined for factors that have no more.
inline int multiply_24(int x, int y) {
    return ((x << 8) >> 8) * ((y << 8) >> 8);
}""",
    "multiply_24_unsigned": """\
// The lower 24 bits of each count, as in CUDA; Metal's mul24 is only defined for factors that have no more.
inline uint multiply_24_unsigned(uint x, uint y) {
    return (x & 0xffffff) * (y & 0xffffff);
}""",
    "byte_permute": """\
// Four of the eight bytes of x and y, as CUDA's __byte_perm: a selector's fourth bit spreads the sign of the byte.
inline uint byte_permute(uint x, uint y, uint selector) {
    uint result = 0;
    for (uint i = 0; i < 4; ++i) {
        uint chosen = selector >> (4 * i) & 15;
        uint byte = ((chosen & 4) ? y : x) >> (8 * (chosen & 3)) & 255;
        if (chosen & 8) byte = byte >> 7 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}""",
    "funnel_shift_left": """\
// The upper word of high and low together, shifted left.
inline uint funnel_shift_left(uint low, uint high, uint shift) {
    shift &= 31;
    return shift ? high << shift | low >> (32 - shift) : high;
}""",
    "funnel_shift_right": """\
// The lower word of high and low together, shifted right.
inline uint funnel_shift_right(uint low, uint high, uint shift) {
    shift &= 31;
    return shift ? low >> shift | high << (32 - shift) : low;
}""",
    "copy_bytes": """\
// Copies the bytes of one variable into another, as memcpy.
inline void copy_bytes(thread uchar* to, const thread uchar* from, ulong count) {
    for (ulong i = 0; i < count; ++i) to[i] = from[i];
}""",
    "dot_bytes": """\
// Four products of signed bytes, added to c.
inline int dot_bytes(int a, int b, int c) {
    char4 x = as_type<char4>(a), y = as_type<char4>(b);
    return c + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}""",
    **CUB_IDIOMS,
}
