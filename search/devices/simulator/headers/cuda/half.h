// half and bfloat16: the types, their pairs, and the intrinsics that stand for operators.
#pragma once

typedef half __half;

// As Metal's bfloat, but every number converts to it by itself.
struct __nv_bfloat16 : bfloat {
    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(bfloat from) : bfloat(from) {}
    template <ksr::arithmetic T> constexpr __nv_bfloat16(T value) : bfloat(value) {}
    constexpr __nv_bfloat16 operator-() const { return bfloat::operator-(); }
    constexpr __nv_bfloat16& operator+=(__nv_bfloat16 other) { return *this = bfloat(*this) + bfloat(other); }
    constexpr __nv_bfloat16& operator-=(__nv_bfloat16 other) { return *this = bfloat(*this) - bfloat(other); }
    constexpr __nv_bfloat16& operator*=(__nv_bfloat16 other) { return *this = bfloat(*this) * bfloat(other); }
    constexpr __nv_bfloat16& operator/=(__nv_bfloat16 other) { return *this = bfloat(*this) / bfloat(other); }
};
typedef __nv_bfloat16 nv_bfloat16;

namespace ksr {

template <class T> concept half_like = __is_same(T, half) || __is_same(T, __nv_bfloat16);

// Two numbers in four bytes; operators work on each.
template <half_like T> struct alignas(4) pair {
    T x, y;
};

}  // namespace ksr

typedef ksr::pair<half> half2;
typedef ksr::pair<half> __half2;
typedef ksr::pair<__nv_bfloat16> __nv_bfloat162;
typedef ksr::pair<__nv_bfloat16> nv_bfloat162;

#define KSR_BFLOAT16_OPERATOR(op)                                                                                      \
    KSR_INLINE constexpr __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return bfloat(a) op bfloat(b); }
KSR_BFLOAT16_OPERATOR(+)
KSR_BFLOAT16_OPERATOR(-)
KSR_BFLOAT16_OPERATOR(*)
KSR_BFLOAT16_OPERATOR(/)
#undef KSR_BFLOAT16_OPERATOR

#define KSR_PAIR_OPERATOR(op)                                                                                          \
    template <ksr::half_like T> KSR_INLINE ksr::pair<T> operator op(ksr::pair<T> a, ksr::pair<T> b) {                  \
        return {T(a.x op b.x), T(a.y op b.y)};                                                                         \
    }                                                                                                                  \
    template <ksr::half_like T> KSR_INLINE ksr::pair<T>& operator op##=(ksr::pair<T>& a, ksr::pair<T> b) {             \
        return a = a op b;                                                                                             \
    }
KSR_PAIR_OPERATOR(+)
KSR_PAIR_OPERATOR(-)
KSR_PAIR_OPERATOR(*)
KSR_PAIR_OPERATOR(/)
#undef KSR_PAIR_OPERATOR
template <ksr::half_like T> KSR_INLINE ksr::pair<T> operator-(ksr::pair<T> a) { return {T(-a.x), T(-a.y)}; }
template <ksr::half_like T> KSR_INLINE bool operator==(ksr::pair<T> a, ksr::pair<T> b) { return a.x == b.x && a.y == b.y; }
template <ksr::half_like T> KSR_INLINE bool operator!=(ksr::pair<T> a, ksr::pair<T> b) { return a.x != b.x && a.y != b.y; }

#define KSR_HALF_2(name, expression)                                                                                   \
    template <ksr::half_like T> KSR_INLINE T name(T a, T b) { return T(expression); }                                  \
    template <ksr::half_like T> KSR_INLINE ksr::pair<T> name##2(ksr::pair<T> a, ksr::pair<T> b) {                      \
        return {name(a.x, b.x), name(a.y, b.y)};                                                                       \
    }
KSR_HALF_2(__hadd, a + b)
KSR_HALF_2(__hsub, a - b)
KSR_HALF_2(__hmul, a * b)
KSR_HALF_2(__hdiv, a / b)
KSR_HALF_2(__hadd_rn, a + b)
KSR_HALF_2(__hsub_rn, a - b)
KSR_HALF_2(__hmul_rn, a * b)
KSR_HALF_2(__hmax, metal::fmax(float(a), float(b)))
KSR_HALF_2(__hmin, metal::fmin(float(a), float(b)))
#undef KSR_HALF_2
template <ksr::half_like T> KSR_INLINE ksr::pair<T> __h2div(ksr::pair<T> a, ksr::pair<T> b) { return a / b; }
template <ksr::half_like T> KSR_INLINE T __hneg(T a) { return T(-a); }
template <ksr::half_like T> KSR_INLINE ksr::pair<T> __hneg2(ksr::pair<T> a) { return -a; }
template <ksr::half_like T> KSR_INLINE T __habs(T a) { return T(__builtin_fabsf(float(a))); }
template <ksr::half_like T> KSR_INLINE ksr::pair<T> __habs2(ksr::pair<T> a) { return {__habs(a.x), __habs(a.y)}; }
KSR_INLINE half __hfma(half a, half b, half c) { return metal::fma(a, b, c); }
KSR_INLINE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return metal::fma(bfloat(a), bfloat(b), bfloat(c)); }
template <ksr::half_like T> KSR_INLINE ksr::pair<T> __hfma2(ksr::pair<T> a, ksr::pair<T> b, ksr::pair<T> c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <ksr::half_like T> KSR_INLINE T __hfma_relu(T a, T b, T c) { return __hmax(__hfma(a, b, c), T(0.0f)); }

#define KSR_HALF_COMPARISON(name, op)                                                                                  \
    template <ksr::half_like T> KSR_INLINE bool name(T a, T b) { return a op b; }                                      \
    template <ksr::half_like T> KSR_INLINE ksr::pair<T> name##2(ksr::pair<T> a, ksr::pair<T> b) {                      \
        return {T(float(a.x op b.x)), T(float(a.y op b.y))};                                                           \
    }                                                                                                                  \
    template <ksr::half_like T> KSR_INLINE bool ksr_both##name(ksr::pair<T> a, ksr::pair<T> b) {                       \
        return a.x op b.x && a.y op b.y;                                                                               \
    }
KSR_HALF_COMPARISON(__heq, ==)
KSR_HALF_COMPARISON(__hne, !=)
KSR_HALF_COMPARISON(__hgt, >)
KSR_HALF_COMPARISON(__hge, >=)
KSR_HALF_COMPARISON(__hlt, <)
KSR_HALF_COMPARISON(__hle, <=)
#undef KSR_HALF_COMPARISON
template <ksr::half_like T> KSR_INLINE bool __hbeq2(ksr::pair<T> a, ksr::pair<T> b) { return ksr_both__heq(a, b); }
template <ksr::half_like T> KSR_INLINE bool __hbgt2(ksr::pair<T> a, ksr::pair<T> b) { return ksr_both__hgt(a, b); }
template <ksr::half_like T> KSR_INLINE bool __hblt2(ksr::pair<T> a, ksr::pair<T> b) { return ksr_both__hlt(a, b); }
template <ksr::half_like T> KSR_INLINE bool __hisnan(T a) { return a != a; }
template <ksr::half_like T> KSR_INLINE int __hisinf(T a) { return float(a) == INFINITY ? 1 : float(a) == -INFINITY ? -1 : 0; }
template <ksr::half_like T> KSR_INLINE bool isnan(T a) { return a != a; }
template <ksr::half_like T> KSR_INLINE bool isinf(T a) { return __builtin_fabsf(float(a)) == INFINITY; }

#define KSR_HALF_FUNCTION(name, f)                                                                                     \
    template <ksr::half_like T> KSR_INLINE T h##name(T a) { return T(f(float(a))); }                                   \
    template <ksr::half_like T> KSR_INLINE ksr::pair<T> h2##name(ksr::pair<T> a) { return {h##name(a.x), h##name(a.y)}; }
KSR_HALF_FUNCTION(exp, metal::exp)
KSR_HALF_FUNCTION(exp2, metal::exp2)
KSR_HALF_FUNCTION(exp10, metal::exp10)
KSR_HALF_FUNCTION(log, metal::log)
KSR_HALF_FUNCTION(log2, metal::log2)
KSR_HALF_FUNCTION(log10, metal::log10)
KSR_HALF_FUNCTION(sin, metal::sin)
KSR_HALF_FUNCTION(cos, metal::cos)
KSR_HALF_FUNCTION(tanh, metal::tanh)
KSR_HALF_FUNCTION(sqrt, metal::sqrt)
KSR_HALF_FUNCTION(rsqrt, metal::rsqrt)
KSR_HALF_FUNCTION(rcp, 1.0f /)
KSR_HALF_FUNCTION(floor, metal::floor)
KSR_HALF_FUNCTION(ceil, metal::ceil)
KSR_HALF_FUNCTION(trunc, metal::trunc)
KSR_HALF_FUNCTION(rint, metal::rint)
#undef KSR_HALF_FUNCTION

#define KSR_HALF_CONVERSIONS(T, name, pair_name, pair)                                                                 \
    KSR_INLINE T __float2##name(float x) { return T(x); }                                                              \
    KSR_INLINE T __float2##name##_rn(float x) { return T(x); }                                                         \
    KSR_INLINE T __double2##name(double x) { return T(x); }                                                            \
    KSR_INLINE T __int2##name##_rn(int x) { return T(float(x)); }                                                      \
    KSR_INLINE T __uint2##name##_rn(unsigned int x) { return T(float(x)); }                                            \
    KSR_INLINE T __ushort2##name##_rn(unsigned short x) { return T(float(x)); }                                        \
    KSR_INLINE T __short2##name##_rn(short x) { return T(float(x)); }                                                  \
    KSR_INLINE float __##name##2float(T x) { return float(x); }                                                        \
    KSR_INLINE int __##name##2int_rn(T x) { return __float2int_rn(float(x)); }                                         \
    KSR_INLINE int __##name##2int_rz(T x) { return __float2int_rz(float(x)); }                                         \
    KSR_INLINE unsigned int __##name##2uint_rn(T x) { return __float2uint_rn(float(x)); }                              \
    KSR_INLINE unsigned short __##name##_as_ushort(T x) { return __builtin_bit_cast(unsigned short, x); }              \
    KSR_INLINE short __##name##_as_short(T x) { return __builtin_bit_cast(short, x); }                                 \
    KSR_INLINE T __ushort_as_##name(unsigned short x) { return __builtin_bit_cast(T, x); }                             \
    KSR_INLINE T __short_as_##name(short x) { return __builtin_bit_cast(T, x); }                                       \
    KSR_INLINE pair __float2##pair_name##_rn(float x) { return {T(x), T(x)}; }                                         \
    KSR_INLINE pair __floats2##pair_name##_rn(float x, float y) { return {T(x), T(y)}; }                               \
    KSR_INLINE pair __float22##pair_name##_rn(float2 v) { return {T(v.x), T(v.y)}; }                                   \
    KSR_INLINE float2 __##pair_name##2float2(pair v) { return {float(v.x), float(v.y)}; }                              \
    KSR_INLINE pair __halves2##pair_name(T x, T y) { return {x, y}; }                                                  \
    KSR_INLINE pair __##name##2##pair_name(T x) { return {x, x}; }                                                     \
    KSR_INLINE pair make_##pair_name(T x, T y) { return {x, y}; }                                                      \
    KSR_INLINE T __low2##name(pair v) { return v.x; }                                                                  \
    KSR_INLINE T __high2##name(pair v) { return v.y; }                                                                 \
    KSR_INLINE pair __low2##pair_name(pair v) { return {v.x, v.x}; }                                                   \
    KSR_INLINE pair __high2##pair_name(pair v) { return {v.y, v.y}; }                                                  \
    KSR_INLINE pair __lows2##pair_name(pair a, pair b) { return {a.x, b.x}; }                                          \
    KSR_INLINE pair __highs2##pair_name(pair a, pair b) { return {a.y, b.y}; }                                         \
    KSR_INLINE float __low2float(pair v) { return float(v.x); }                                                        \
    KSR_INLINE float __high2float(pair v) { return float(v.y); }                                                       \
    KSR_INLINE pair __lowhigh2highlow(pair v) { return {v.y, v.x}; }
KSR_HALF_CONVERSIONS(half, half, half2, half2)
KSR_HALF_CONVERSIONS(__nv_bfloat16, bfloat16, bfloat162, __nv_bfloat162)
#undef KSR_HALF_CONVERSIONS
template <ksr::half_like T> KSR_INLINE float __half2float(T x) { return float(x); }
