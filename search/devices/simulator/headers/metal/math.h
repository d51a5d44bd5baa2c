// Mathematics. Functions have one overload a type, as Metal's do, so that what is ambiguous there is ambiguous here.
// The precise and fast forms are the same functions: a CPU's are precise.
#pragma once

#include "constants.h"

namespace ksr {

// Of three operands the type of the first that is a vector; mixed: some are scalars, which take that type.
template <class A, class B, class C> struct vector_among { typedef A type; };
template <scalar A, vector B, class C> struct vector_among<A, B, C> { typedef B type; };
template <scalar A, scalar B, class C> struct vector_among<A, B, C> { typedef C type; };
template <class T> struct unpacked_as { typedef T type; };
template <class T, int N> struct unpacked_as<metal::packed_vec<T, N>> { typedef metal::vec<T, N> type; };
template <class T> using unpacked = typename unpacked_as<T>::type;
template <class A, class B, class C> concept some_packed = packed<A> || packed<B> || packed<C>;
template <class A, class B, class C> concept mixed =
    !some_packed<A, B, C> && (scalar<A> || scalar<B> || scalar<C>) && (vector<A> || vector<B> || vector<C>) &&
    (scalar<A> || __is_same(A, typename vector_among<A, B, C>::type)) &&
    (scalar<B> || __is_same(B, typename vector_among<A, B, C>::type)) &&
    (scalar<C> || __is_same(C, typename vector_among<A, B, C>::type));

}  // namespace ksr

// A packed vector becomes a plain one, wherever functions take vectors.
#define KSR_PACKED_1(name)                                                                                             \
    template <class T, int N> KSR_INLINE auto name(packed_vec<T, N> v) { return name(vec<T, N>(v)); }
#define KSR_PACKED_2(name)                                                                                             \
    template <class T, int N, class B> KSR_INLINE auto name(packed_vec<T, N> a, B b) { return name(vec<T, N>(a), b); } \
    template <class A, class T, int N> requires(!ksr::packed<A>)                                                       \
    KSR_INLINE auto name(A a, packed_vec<T, N> b) {                                                                    \
        return name(a, vec<T, N>(b));                                                                                  \
    }

// The overloads of one function for half, bfloat and vectors, from that for float.
#define KSR_WIDEN_1(name)                                                                                              \
    KSR_INLINE half name(half x) { return half(name(float(x))); }                                                      \
    KSR_INLINE bfloat name(bfloat x) { return bfloat(name(float(x))); }                                                \
    template <class T, int N> KSR_INLINE vec<T, N> name(vec<T, N> v) {                                                 \
        return ksr::map<T>([](T x) { return name(x); }, v);                                                            \
    }                                                                                                                  \
    KSR_PACKED_1(name)
#define KSR_WIDEN_2(name)                                                                                              \
    KSR_INLINE half name(half x, half y) { return half(name(float(x), float(y))); }                                    \
    KSR_INLINE bfloat name(bfloat x, bfloat y) { return bfloat(name(float(x), float(y))); }                            \
    KSR_VECTOR_2(name)
#define KSR_VECTOR_2(name)                                                                                             \
    template <class T, int N> KSR_INLINE vec<T, N> name(vec<T, N> a, vec<T, N> b) {                                    \
        return ksr::map<T>([](T x, T y) { return name(x, y); }, a, b);                                                 \
    }                                                                                                                  \
    template <class T, int N, ksr::scalar S> KSR_INLINE vec<T, N> name(vec<T, N> a, S b) {                             \
        return name(a, vec<T, N>(b));                                                                                  \
    }                                                                                                                  \
    template <class T, int N, ksr::scalar S> KSR_INLINE vec<T, N> name(S a, vec<T, N> b) {                             \
        return name(vec<T, N>(a), b);                                                                                  \
    }                                                                                                                  \
    KSR_PACKED_2(name)
#define KSR_VECTOR_3(name)                                                                                             \
    template <class T, int N> KSR_INLINE vec<T, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {                       \
        return ksr::map<T>([](T x, T y, T z) { return name(x, y, z); }, a, b, c);                                      \
    }                                                                                                                  \
    template <class A, class B, class C> requires ksr::mixed<A, B, C>                                                  \
    KSR_INLINE auto name(A a, B b, C c) {                                                                              \
        typedef typename ksr::vector_among<A, B, C>::type V;                                                           \
        return name(V(a), V(b), V(c));                                                                                 \
    }                                                                                                                  \
    template <class A, class B, class C> requires ksr::some_packed<A, B, C>                                            \
    KSR_INLINE auto name(A a, B b, C c) {                                                                              \
        return name(ksr::unpacked<A>(a), ksr::unpacked<B>(b), ksr::unpacked<C>(c));                                    \
    }
#define KSR_WIDEN_3(name)                                                                                              \
    KSR_INLINE half name(half x, half y, half z) { return half(name(float(x), float(y), float(z))); }                  \
    KSR_INLINE bfloat name(bfloat x, bfloat y, bfloat z) { return bfloat(name(float(x), float(y), float(z))); }        \
    KSR_VECTOR_3(name)

// A function that the runtime evaluates, and the special functions (and FLOPs) that it costs a GPU.
#define KSR_SPECIAL(name, ...)                                                                                         \
    KSR_INLINE float name(float x) {                                                                                   \
        float r = ksr_here()->runtime->name(x);                                                                        \
        __VA_ARGS__;                                                                                                   \
        return r;                                                                                                      \
    }                                                                                                                  \
    KSR_WIDEN_1(name)

// A function that is an instruction or a few.
#define KSR_PLAIN_1(name, expression)                                                                                  \
    KSR_INLINE float name(float x) { return expression; }                                                              \
    KSR_WIDEN_1(name)

namespace metal {

KSR_SPECIAL(exp2, KSR_MARK(exp2, r))
KSR_SPECIAL(exp, KSR_MARK(exp, r))
KSR_SPECIAL(exp10, KSR_MARK(flop, r); KSR_MARK(exp, r))
KSR_SPECIAL(log2, KSR_MARK(log2, r))
KSR_SPECIAL(log, KSR_MARK(log, r))
KSR_SPECIAL(log10, KSR_MARK(flop, r); KSR_MARK(log, r))
KSR_SPECIAL(sin, KSR_MARK(sin, r))
KSR_SPECIAL(cos, KSR_MARK(cos, r))
KSR_SPECIAL(tan, KSR_MARK(sin, r); KSR_MARK(cos, r); KSR_MARK(divide, r))
KSR_SPECIAL(tanh, KSR_MARK(tanh, r))
// Rates of the rarer ones aren't known: they are taken for a tanh.
KSR_SPECIAL(asin, KSR_MARK(tanh, r))
KSR_SPECIAL(acos, KSR_MARK(tanh, r))
KSR_SPECIAL(atan, KSR_MARK(tanh, r))
KSR_SPECIAL(sinh, KSR_MARK(tanh, r))
KSR_SPECIAL(cosh, KSR_MARK(tanh, r))
KSR_SPECIAL(asinh, KSR_MARK(tanh, r))
KSR_SPECIAL(acosh, KSR_MARK(tanh, r))
KSR_SPECIAL(atanh, KSR_MARK(tanh, r))
#ifdef KSR_COUNTED
KSR_SPECIAL(rsqrt, KSR_MARK(rsqrt, r))
#else
KSR_PLAIN_1(rsqrt, 1.0f / __builtin_sqrtf(x))
#endif

KSR_PLAIN_1(sqrt, __builtin_sqrtf(x))
KSR_PLAIN_1(floor, __builtin_floorf(x))
KSR_PLAIN_1(ceil, __builtin_ceilf(x))
KSR_PLAIN_1(trunc, __builtin_truncf(x))
KSR_PLAIN_1(rint, __builtin_rintf(x))
KSR_PLAIN_1(round, __builtin_truncf(x + __builtin_copysignf(0.49999997f, x)))
KSR_PLAIN_1(fabs, __builtin_fabsf(x))
KSR_PLAIN_1(fract, __builtin_fminf(x - __builtin_floorf(x), 0.99999994f))
KSR_PLAIN_1(sinpi, sin(M_PI_F * x))
KSR_PLAIN_1(cospi, cos(M_PI_F * x))
KSR_PLAIN_1(tanpi, tan(M_PI_F * x))
KSR_PLAIN_1(sign, (x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == x ? x : 0.0f))
KSR_PLAIN_1(saturate, (x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f))

KSR_INLINE float pow(float x, float y) {
    float r = ksr_here()->runtime->pow(x, y);
    KSR_MARK(pow, r);
    return r;
}
KSR_WIDEN_2(pow)
KSR_INLINE float powr(float x, float y) { return x < 0.0f ? NAN : pow(x, y); }
KSR_WIDEN_2(powr)
KSR_INLINE float atan2(float y, float x) {
    float r = ksr_here()->runtime->atan2(y, x);
    KSR_MARK(tanh, r);
    return r;
}
KSR_WIDEN_2(atan2)
KSR_INLINE float fmod(float x, float y) {
    float r = ksr_here()->runtime->fmod(x, y);
    KSR_MARK(divide, r);
    KSR_MARK(flop, r);
    return r;
}
KSR_WIDEN_2(fmod)
KSR_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
KSR_WIDEN_2(copysign)
KSR_INLINE float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
KSR_WIDEN_2(step)
KSR_INLINE float fdim(float x, float y) { return x > y ? x - y : x != x || y != y ? NAN : 0.0f; }
KSR_WIDEN_2(fdim)
KSR_INLINE float divide(float x, float y) { return x / y; }
KSR_WIDEN_2(divide)

// A NaN gives way to a number.
KSR_INLINE float fmax(float x, float y) {
    float r = x > y || y != y ? x : y;
    KSR_MARK(flop, r);
    return r;
}
KSR_INLINE float fmin(float x, float y) {
    float r = x < y || y != y ? x : y;
    KSR_MARK(flop, r);
    return r;
}
KSR_WIDEN_2(fmax)
KSR_WIDEN_2(fmin)
KSR_INLINE float max(float x, float y) { return fmax(x, y); }
KSR_INLINE float min(float x, float y) { return fmin(x, y); }
KSR_INLINE half max(half x, half y) { return fmax(x, y); }
KSR_INLINE half min(half x, half y) { return fmin(x, y); }
KSR_INLINE bfloat max(bfloat x, bfloat y) { return fmax(x, y); }
KSR_INLINE bfloat min(bfloat x, bfloat y) { return fmin(x, y); }
#define KSR_INTEGER_EXTREMA(T)                                                                                         \
    KSR_INLINE constexpr T max(T x, T y) { return x < y ? y : x; }                                                     \
    KSR_INLINE constexpr T min(T x, T y) { return y < x ? y : x; }                                                     \
    KSR_INLINE constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }
KSR_INTEGER_EXTREMA(char)
KSR_INTEGER_EXTREMA(signed char)
KSR_INTEGER_EXTREMA(uchar)
KSR_INTEGER_EXTREMA(short)
KSR_INTEGER_EXTREMA(ushort)
KSR_INTEGER_EXTREMA(int)
KSR_INTEGER_EXTREMA(uint)
KSR_INTEGER_EXTREMA(long)
KSR_INTEGER_EXTREMA(ulong)
#undef KSR_INTEGER_EXTREMA
KSR_VECTOR_2(max)
KSR_VECTOR_2(min)
template <class T> constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }
template <class T> constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }
template <class T> constexpr T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> constexpr T fmax3(T a, T b, T c) { return max3(a, b, c); }
template <class T> constexpr T fmin3(T a, T b, T c) { return min3(a, b, c); }
template <class T> constexpr T fmedian3(T a, T b, T c) { return median3(a, b, c); }

KSR_INLINE float clamp(float x, float low, float high) { return fmin(fmax(x, low), high); }
KSR_INLINE half clamp(half x, half low, half high) { return fmin(fmax(x, low), high); }
KSR_INLINE bfloat clamp(bfloat x, bfloat low, bfloat high) { return fmin(fmax(x, low), high); }
KSR_VECTOR_3(clamp)
KSR_INLINE float mix(float x, float y, float a) { return x + (y - x) * a; }
KSR_WIDEN_3(mix)
KSR_INLINE float smoothstep(float low, float high, float x) {
    float t = saturate((x - low) / (high - low));
    return t * t * (3.0f - 2.0f * t);
}
KSR_WIDEN_3(smoothstep)

KSR_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
// A sum that is inexact in float is made odd there, so that rounding it again to half goes the right way.
KSR_INLINE half fma(half x, half y, half z) {
    double exact = double(float(x)) * double(float(y)) + double(float(z));
    float near = float(exact);
    if (double(near) != exact && near - near == 0.0f) {
        uint bits = __builtin_bit_cast(uint, near);
        if (__builtin_fabs(double(near)) > __builtin_fabs(exact)) --bits;
        near = __builtin_bit_cast(float, bits | 1);
    }
    return half(near);
}
KSR_INLINE bfloat fma(bfloat x, bfloat y, bfloat z) { return bfloat(__builtin_fmaf(x, y, z)); }
KSR_VECTOR_3(fma)
KSR_INLINE float mad(float x, float y, float z) { return fma(x, y, z); }

KSR_INLINE float nextafter(float x, float y) {
    if (x != x || y != y) return x + y;
    if (x == y) return y;
    if (x == 0.0f) return copysign(__builtin_bit_cast(float, 1u), y);
    uint bits = __builtin_bit_cast(uint, x);
    return __builtin_bit_cast(float, (x < y) == (x > 0.0f) ? bits + 1 : bits - 1);
}
template <int N> KSR_INLINE vec<float, N> nextafter(vec<float, N> x, vec<float, N> y) {
    return ksr::map<float>([](float a, float b) { return nextafter(a, b); }, x, y);
}
KSR_INLINE float ldexp(float x, int k) { return ksr_here()->runtime->ldexp(x, k); }
KSR_INLINE half ldexp(half x, int k) { return half(ldexp(float(x), k)); }
template <class T, int N> KSR_INLINE vec<T, N> ldexp(vec<T, N> x, vec<int, N> k) {
    return ksr::map<T>([](T a, int b) { return ldexp(a, b); }, x, k);
}
KSR_INLINE float frexp(float x, int& exponent) { return ksr_here()->runtime->frexp(x, &exponent); }
KSR_INLINE half frexp(half x, int& exponent) { return half(frexp(float(x), exponent)); }
KSR_INLINE float modf(float x, float& whole) {
    whole = trunc(x);
    return copysign(x - whole, x);
}
KSR_INLINE float sincos(float x, float& cosine) {
    cosine = cos(x);
    return sin(x);
}
// Those with two results: the second goes to a reference of the same shape.
#define KSR_SECOND_RESULT(name, Second)                                                                                \
    template <class T, int N> KSR_INLINE vec<T, N> name(vec<T, N> x, vec<Second, N>& second) {                         \
        vec<T, N> r;                                                                                                   \
        for (int i = 0; i < N; ++i) r[i] = name(x[i], second[i]);                                                      \
        return r;                                                                                                      \
    }
#define KSR_SECOND_OF_ITS_TYPE(name)                                                                                   \
    KSR_INLINE half name(half x, half& second) {                                                                       \
        float wide, r = name(float(x), wide);                                                                          \
        second = half(wide);                                                                                           \
        return half(r);                                                                                                \
    }                                                                                                                  \
    KSR_SECOND_RESULT(name, T)
KSR_SECOND_RESULT(frexp, int)
KSR_SECOND_OF_ITS_TYPE(modf)
KSR_SECOND_OF_ITS_TYPE(sincos)
#undef KSR_SECOND_OF_ITS_TYPE
#undef KSR_SECOND_RESULT
KSR_INLINE int ilogb(float x) {
    int exponent;
    frexp(x, exponent);
    return exponent - 1;
}
template <int N> KSR_INLINE vec<int, N> ilogb(vec<float, N> v) {
    return ksr::map<int>([](float x) { return ilogb(x); }, v);
}

#define KSR_TEST(name, expression)                                                                                     \
    KSR_INLINE bool name(float x) { return expression; }                                                               \
    KSR_INLINE bool name(half h) { float x = h; return expression; }                                                   \
    KSR_INLINE bool name(bfloat h) { float x = h; return expression; }                                                 \
    template <class T, int N> KSR_INLINE vec<bool, N> name(vec<T, N> v) {                                              \
        return ksr::map<bool>([](T x) { return name(x); }, v);                                                         \
    }
KSR_TEST(isnan, x != x)
KSR_TEST(isinf, __builtin_fabsf(x) == INFINITY)
KSR_TEST(isfinite, __builtin_fabsf(x) < INFINITY)
KSR_TEST(isnormal, __builtin_fabsf(x) < INFINITY && __builtin_fabsf(x) >= FLT_MIN)
KSR_TEST(signbit, (__builtin_bit_cast(uint, x) >> 31) != 0)
#undef KSR_TEST
KSR_INLINE bool isunordered(float x, float y) { return x != x || y != y; }
KSR_INLINE bool isordered(float x, float y) { return !isunordered(x, y); }
template <class T, int N> KSR_INLINE vec<bool, N> isunordered(vec<T, N> x, vec<T, N> y) { return x != x || y != y; }
template <class T, int N> KSR_INLINE vec<bool, N> isordered(vec<T, N> x, vec<T, N> y) { return !isunordered(x, y); }

// b where the condition holds, else a.
template <ksr::scalar T> constexpr T select(T a, T b, bool condition) { return condition ? b : a; }
template <class T, class C, int N> constexpr vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<C, N> condition) {
    return ksr::map<T>([](T x, T y, C c) { return c ? y : x; }, a, b, condition);
}
template <class A, class B, class C>
    requires(ksr::vector<A> || ksr::vector<B>) && (ksr::scalar<A> || ksr::scalar<B> || ksr::scalar<C>)
constexpr auto select(A a, B b, C condition) {
    typedef typename ksr::vector_among<A, B, C>::type V;
    return select(V(a), V(b), vec<bool, ksr::components<V>::value>(condition));
}
template <int N> constexpr bool all(vec<bool, N> v) {
    bool r = true;
    for (int i = 0; i < N; ++i) r = r && v[i];
    return r;
}
template <int N> constexpr bool any(vec<bool, N> v) {
    bool r = false;
    for (int i = 0; i < N; ++i) r = r || v[i];
    return r;
}
constexpr bool all(bool v) { return v; }
constexpr bool any(bool v) { return v; }

template <class T, int N> constexpr T dot(vec<T, N> a, vec<T, N> b) {
    T r = a[0] * b[0];
    for (int i = 1; i < N; ++i) r = T(r + a[i] * b[i]);
    return r;
}
template <class T, int N> KSR_INLINE T length_squared(vec<T, N> a) { return dot(a, a); }
template <class T, int N> KSR_INLINE T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> KSR_INLINE T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> KSR_INLINE vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <class T> constexpr vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
    return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int N> KSR_INLINE T distance_squared(vec<T, N> a, vec<T, N> b) { return length_squared(a - b); }
template <class T, int N> constexpr vec<T, N> faceforward(vec<T, N> n, vec<T, N> incident, vec<T, N> reference) {
    return dot(incident, reference) < T(0) ? n : -n;
}
template <class T, int N> constexpr vec<T, N> reflect(vec<T, N> incident, vec<T, N> normal) {
    return incident - normal * T(T(2) * dot(incident, normal));
}
template <class T, int N> KSR_INLINE vec<T, N> refract(vec<T, N> incident, vec<T, N> normal, T eta) {
    T along = dot(normal, incident), k = T(T(1) - eta * eta * (T(1) - along * along));
    return k < T(0) ? vec<T, N>(T(0)) : incident * eta - normal * T(eta * along + sqrt(k));
}

KSR_PACKED_2(dot)
KSR_PACKED_1(length_squared)
KSR_PACKED_1(length)
KSR_PACKED_2(distance_squared)
KSR_PACKED_2(distance)
KSR_PACKED_1(normalize)
KSR_PACKED_2(cross)
KSR_PACKED_2(reflect)

#define KSR_BOTH(name) using metal::name;
#define KSR_EVERY_FORM                                                                                                 \
    KSR_BOTH(exp2) KSR_BOTH(exp) KSR_BOTH(exp10) KSR_BOTH(log2) KSR_BOTH(log) KSR_BOTH(log10) KSR_BOTH(sin)            \
    KSR_BOTH(cos) KSR_BOTH(tan) KSR_BOTH(asin) KSR_BOTH(acos) KSR_BOTH(atan) KSR_BOTH(sinh) KSR_BOTH(cosh)             \
    KSR_BOTH(tanh) KSR_BOTH(asinh) KSR_BOTH(acosh) KSR_BOTH(atanh) KSR_BOTH(rsqrt) KSR_BOTH(sqrt) KSR_BOTH(floor)      \
    KSR_BOTH(ceil) KSR_BOTH(trunc) KSR_BOTH(rint) KSR_BOTH(round) KSR_BOTH(fabs) KSR_BOTH(fract) KSR_BOTH(sinpi)       \
    KSR_BOTH(cospi) KSR_BOTH(sign) KSR_BOTH(saturate) KSR_BOTH(pow) KSR_BOTH(powr) KSR_BOTH(atan2) KSR_BOTH(fmod)      \
    KSR_BOTH(copysign) KSR_BOTH(step) KSR_BOTH(fdim) KSR_BOTH(divide) KSR_BOTH(fmax) KSR_BOTH(fmin) KSR_BOTH(max)      \
    KSR_BOTH(min) KSR_BOTH(clamp) KSR_BOTH(mix) KSR_BOTH(smoothstep) KSR_BOTH(fma) KSR_BOTH(ldexp) KSR_BOTH(frexp)     \
    KSR_BOTH(modf) KSR_BOTH(sincos) KSR_BOTH(ilogb) KSR_BOTH(dot) KSR_BOTH(length) KSR_BOTH(normalize)                 \
    KSR_BOTH(distance) KSR_BOTH(cross) KSR_BOTH(isnan) KSR_BOTH(isinf) KSR_BOTH(isfinite) KSR_BOTH(tanpi)             \
    KSR_BOTH(fmax3) KSR_BOTH(fmin3) KSR_BOTH(fmedian3) KSR_BOTH(max3) KSR_BOTH(min3) KSR_BOTH(median3)                 \
    KSR_BOTH(length_squared) KSR_BOTH(distance_squared)

namespace precise { KSR_EVERY_FORM }
namespace fast { KSR_EVERY_FORM }

#undef KSR_EVERY_FORM
#undef KSR_BOTH

}  // namespace metal
