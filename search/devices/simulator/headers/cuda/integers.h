// Integer intrinsics, conversions with a rounding, and the reading of bits as another type.
#pragma once

KSR_INLINE constexpr int __popc(unsigned int x) { return __builtin_popcount(x); }
KSR_INLINE constexpr int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KSR_INLINE constexpr int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
KSR_INLINE constexpr int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)(x)) : 64; }
KSR_INLINE constexpr int __ffs(int x) { return __builtin_ffs(x); }
KSR_INLINE constexpr int __ffsll(long long x) { return __builtin_ffsll(x); }
KSR_INLINE constexpr unsigned int __brev(unsigned int x) { return metal::reverse_bits(x); }
KSR_INLINE constexpr unsigned long long __brevll(unsigned long long x) { return metal::reverse_bits(x); }
KSR_INLINE constexpr int __mulhi(int x, int y) { return int((long long)(x) * y >> 32); }
KSR_INLINE constexpr unsigned int __umulhi(unsigned int x, unsigned int y) { return unsigned((unsigned long long)(x) * y >> 32); }
KSR_INLINE constexpr long long __mul64hi(long long x, long long y) { return (long long)(__int128(x) * y >> 64); }
KSR_INLINE constexpr unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)(x) * y >> 64);
}
// The lower 24 bits of each count.
KSR_INLINE constexpr int __mul24(int x, int y) { return int(unsigned((x << 8) >> 8) * unsigned((y << 8) >> 8)); }
KSR_INLINE constexpr unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xFFFFFF) * (y & 0xFFFFFF); }
KSR_INLINE constexpr unsigned int __sad(int x, int y, unsigned int z) {
    return z + (x < y ? unsigned(y) - unsigned(x) : unsigned(x) - unsigned(y));
}
KSR_INLINE constexpr unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return z + (x < y ? y - x : x - y); }
KSR_INLINE constexpr int __hadd(int x, int y) { return int(((long long)(x) + y) >> 1); }
KSR_INLINE constexpr int __rhadd(int x, int y) { return int(((long long)(x) + y + 1) >> 1); }

KSR_INLINE constexpr unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return unsigned((((unsigned long long)(high) << 32 | low) << (shift & 31)) >> 32);
}
KSR_INLINE constexpr unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return unsigned(((unsigned long long)(high) << 32 | low) >> (shift & 31));
}
KSR_INLINE constexpr unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
KSR_INLINE constexpr unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
// Four bytes of the eight of x and y; a selector's fourth bit spreads the byte's sign instead.
KSR_INLINE constexpr unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    unsigned long long bytes = (unsigned long long)(y) << 32 | x;
    unsigned int result = 0;
    for (unsigned int i = 0; i < 4; ++i) {
        unsigned int chosen = selector >> 4 * i & 15, byte = unsigned(bytes >> 8 * (chosen & 7)) & 255;
        if (chosen & 8) byte = byte >> 7 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}

template <class T, class A, class B> KSR_INLINE constexpr T ksr_dot4(unsigned int x, unsigned int y, T sum) {
    for (unsigned int i = 0; i < 4; ++i) sum += T(A(x >> 8 * i & 255)) * T(B(y >> 8 * i & 255));
    return sum;
}
KSR_INLINE constexpr int __dp4a(int x, int y, int sum) {
    return int(ksr_dot4<unsigned int, signed char, signed char>(unsigned(x), unsigned(y), unsigned(sum)));
}
KSR_INLINE constexpr unsigned int __dp4a(unsigned int x, unsigned int y, unsigned int sum) {
    return ksr_dot4<unsigned int, unsigned char, unsigned char>(x, y, sum);
}
KSR_INLINE constexpr int __dp4a(char4 x, char4 y, int sum) {
    return __dp4a(__builtin_bit_cast(int, x), __builtin_bit_cast(int, y), sum);
}

KSR_INLINE constexpr int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
KSR_INLINE constexpr unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
KSR_INLINE constexpr float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
KSR_INLINE constexpr float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
KSR_INLINE constexpr long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
KSR_INLINE constexpr double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
KSR_INLINE constexpr int __double2hiint(double x) { return int(__builtin_bit_cast(unsigned long long, x) >> 32); }
KSR_INLINE constexpr int __double2loint(double x) { return int(__builtin_bit_cast(unsigned long long, x)); }
KSR_INLINE constexpr double __hiloint2double(int high, int low) {
    return __builtin_bit_cast(double, (unsigned long long)(unsigned(high)) << 32 | unsigned(low));
}

namespace ksr {

// A NaN becomes 0, and what lies outside the integer's range its nearest end.
template <class T> KSR_INLINE T saturated(double x) {
    constexpr T least = metal::numeric_limits<T>::min(), most = metal::numeric_limits<T>::max();
    if (x != x) return 0;
    if (x <= double(least)) return least;
    return x >= double(most) ? most : T(x);
}

}  // namespace ksr

#define KSR_TO_INTEGER(kind, short_name, T)                                                                            \
    KSR_INLINE T __##kind##2##short_name##_rn(kind x) { return ksr::saturated<T>(__builtin_rint(double(x))); }         \
    KSR_INLINE T __##kind##2##short_name##_rz(kind x) { return ksr::saturated<T>(__builtin_trunc(double(x))); }        \
    KSR_INLINE T __##kind##2##short_name##_rd(kind x) { return ksr::saturated<T>(__builtin_floor(double(x))); }        \
    KSR_INLINE T __##kind##2##short_name##_ru(kind x) { return ksr::saturated<T>(__builtin_ceil(double(x))); }
KSR_TO_INTEGER(float, int, int)
KSR_TO_INTEGER(float, uint, unsigned int)
KSR_TO_INTEGER(float, ll, long long)
KSR_TO_INTEGER(float, ull, unsigned long long)
KSR_TO_INTEGER(double, int, int)
KSR_TO_INTEGER(double, uint, unsigned int)
KSR_TO_INTEGER(double, ll, long long)
KSR_TO_INTEGER(double, ull, unsigned long long)
#undef KSR_TO_INTEGER
KSR_INLINE float __int2float_rn(int x) { return float(x); }
KSR_INLINE float __uint2float_rn(unsigned int x) { return float(x); }
KSR_INLINE float __ll2float_rn(long long x) { return float(x); }
KSR_INLINE float __ull2float_rn(unsigned long long x) { return float(x); }
KSR_INLINE double __int2double_rn(int x) { return x; }
KSR_INLINE double __uint2double_rn(unsigned int x) { return x; }
KSR_INLINE double __ll2double_rn(long long x) { return double(x); }
KSR_INLINE float __double2float_rn(double x) { return float(x); }
