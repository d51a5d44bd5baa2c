// Integer functions.
#pragma once

namespace metal {

// abs is also the floating one's name.
KSR_INLINE float abs(float x) { return __builtin_fabsf(x); }
KSR_INLINE half abs(half x) { return fabs(x); }
KSR_INLINE bfloat abs(bfloat x) { return fabs(x); }
KSR_INLINE constexpr char abs(char x) { return char(x < 0 ? -x : x); }
KSR_INLINE constexpr short abs(short x) { return short(x < 0 ? -x : x); }
KSR_INLINE constexpr int abs(int x) { return x < 0 ? -x : x; }
KSR_INLINE constexpr long abs(long x) { return x < 0 ? -x : x; }
KSR_INLINE constexpr uint abs(uint x) { return x; }
KSR_INLINE constexpr ulong abs(ulong x) { return x; }
template <class T, int N> KSR_INLINE vec<T, N> abs(vec<T, N> v) {
    return ksr::map<T>([](T x) { return abs(x); }, v);
}

template <ksr::integer T> constexpr T absdiff(T x, T y) { return x > y ? T(x - y) : T(y - x); }

template <ksr::integer T> constexpr T popcount(T x) {
    if constexpr (sizeof(T) == 8) return T(__builtin_popcountll(ulong(x)));
    return T(__builtin_popcount(uint(x) & uint(~0ull >> (64 - 8 * sizeof(T)))));
}
template <ksr::integer T> constexpr T clz(T x) {
    if (!x) return T(8 * sizeof(T));
    if constexpr (sizeof(T) == 8) return T(__builtin_clzll(ulong(x)));
    return T(__builtin_clz(uint(x) & uint(~0ull >> (64 - 8 * sizeof(T)))) - (32 - 8 * int(sizeof(T))));
}
template <ksr::integer T> constexpr T ctz(T x) {
    if (!x) return T(8 * sizeof(T));
    return T(__builtin_ctzll(ulong(x)));
}
template <ksr::integer T> constexpr T reverse_bits(T x) {
    ulong r = 0;
    for (uint i = 0; i < 8 * sizeof(T); ++i) r |= (ulong(x) >> i & 1) << (8 * sizeof(T) - 1 - i);
    return T(r);
}
template <ksr::integer T> constexpr T rotate(T x, T by) {
    ulong mask = ~0ul >> (64 - 8 * sizeof(T)), bits = 8 * sizeof(T), n = ulong(by) % bits, u = ulong(x) & mask;
    return n ? T((u << n | u >> (bits - n)) & mask) : x;
}
KSR_INLINE constexpr int mulhi(int x, int y) { return int(long(x) * y >> 32); }
KSR_INLINE constexpr uint mulhi(uint x, uint y) { return uint(ulong(x) * y >> 32); }
KSR_INLINE constexpr long mulhi(long x, long y) { return long(__int128(x) * y >> 64); }
KSR_INLINE constexpr ulong mulhi(ulong x, ulong y) { return ulong((unsigned __int128)(x) * y >> 64); }
template <ksr::integer T> requires(sizeof(T) < 4) constexpr T mulhi(T x, T y) { return T(int(x) * int(y) >> (8 * sizeof(T))); }
template <ksr::integer T> constexpr T madhi(T x, T y, T z) { return T(mulhi(x, y) + z); }
template <ksr::integer T> constexpr T mul24(T x, T y) { return T(x * y); }
template <ksr::integer T> constexpr T mad24(T x, T y, T z) { return T(x * y + z); }
template <ksr::integer T> constexpr T hadd(T x, T y) { return T((x & y) + ((x ^ y) >> 1)); }
template <ksr::integer T> constexpr T rhadd(T x, T y) { return T((x | y) - ((x ^ y) >> 1)); }
template <ksr::integer T> constexpr T addsat(T x, T y) {
    T r;
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T most = is_signed ? T(~0ull >> (65 - 8 * sizeof(T))) : T(~0ull);
    if (!__builtin_add_overflow(x, y, &r)) return r;
    return is_signed && x < 0 ? T(-most - 1) : most;
}
template <ksr::integer T> constexpr T subsat(T x, T y) {
    T r;
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T most = is_signed ? T(~0ull >> (65 - 8 * sizeof(T))) : T(~0ull);
    if (!__builtin_sub_overflow(x, y, &r)) return r;
    return !is_signed ? T(0) : x < 0 ? T(-most - 1) : most;
}
template <ksr::integer T> constexpr T madsat(T x, T y, T z) {
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T most = is_signed ? T(~0ull >> (65 - 8 * sizeof(T))) : T(~0ull);
    constexpr T least = is_signed ? T(-most - 1) : T(0);
    __int128 exact = __int128(x) * y + z;
    return exact > most ? most : exact < least ? least : T(exact);
}
template <ksr::integer T> constexpr T extract_bits(T x, uint offset, uint bits) {
    if (!bits) return 0;
    uint left = 8 * sizeof(T) - offset - bits, right = 8 * sizeof(T) - bits;
    return T(T(x << left) >> right);
}
template <ksr::integer T> constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
    ulong mask = (bits >= 64 ? ~0ul : (1ul << bits) - 1) << offset;
    return T((ulong(base) & ~mask) | (ulong(insert) << offset & mask));
}

// Each of them of vectors too, component by component.
#define KSR_INTEGERS_1(name)                                                                                           \
    template <ksr::integer T, int N> constexpr vec<T, N> name(vec<T, N> v) {                                           \
        return ksr::map<T>([](T x) { return name(x); }, v);                                                            \
    }
#define KSR_INTEGERS_2(name)                                                                                           \
    template <ksr::integer T, int N> constexpr vec<T, N> name(vec<T, N> a, vec<T, N> b) {                              \
        return ksr::map<T>([](T x, T y) { return name(x, y); }, a, b);                                                 \
    }
#define KSR_INTEGERS_3(name)                                                                                           \
    template <ksr::integer T, int N> constexpr vec<T, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {                 \
        return ksr::map<T>([](T x, T y, T z) { return name(x, y, z); }, a, b, c);                                      \
    }
KSR_INTEGERS_1(popcount)
KSR_INTEGERS_1(clz)
KSR_INTEGERS_1(ctz)
KSR_INTEGERS_1(reverse_bits)
KSR_INTEGERS_2(absdiff)
KSR_INTEGERS_2(rotate)
KSR_INTEGERS_2(mulhi)
KSR_INTEGERS_2(mul24)
KSR_INTEGERS_2(hadd)
KSR_INTEGERS_2(rhadd)
KSR_INTEGERS_2(addsat)
KSR_INTEGERS_2(subsat)
KSR_INTEGERS_3(mad24)
KSR_INTEGERS_3(madhi)
KSR_INTEGERS_3(madsat)
#undef KSR_INTEGERS_1
#undef KSR_INTEGERS_2
#undef KSR_INTEGERS_3
template <ksr::integer T, int N> constexpr vec<T, N> extract_bits(vec<T, N> v, uint offset, uint bits) {
    return ksr::map<T>([=](T x) { return extract_bits(x, offset, bits); }, v);
}
template <ksr::integer T, int N> constexpr vec<T, N> insert_bits(vec<T, N> base, vec<T, N> insert, uint offset, uint bits) {
    return ksr::map<T>([=](T x, T y) { return insert_bits(x, y, offset, bits); }, base, insert);
}

}  // namespace metal
