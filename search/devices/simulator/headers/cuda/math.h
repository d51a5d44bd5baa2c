// Mathematics: C's names, their f forms, CUDA's overloads of both, and the fast forms (which are precise here).
#pragma once

// A function of one argument that the runtime evaluates for float (as metal::name) and for double.
#define KSR_CUDA_SPECIAL(name)                                                                                         \
    KSR_INLINE float name##f(float x) { return metal::name(x); }                                                       \
    KSR_INLINE float name(float x) { return metal::name(x); }                                                          \
    KSR_INLINE double name(double x) { return ksr_here()->runtime->of_double.name(x); }                                \
    template <ksr::integer T> KSR_INLINE double name(T x) { return name(double(x)); }
KSR_CUDA_SPECIAL(exp)
KSR_CUDA_SPECIAL(exp2)
KSR_CUDA_SPECIAL(exp10)
KSR_CUDA_SPECIAL(log)
KSR_CUDA_SPECIAL(log2)
KSR_CUDA_SPECIAL(log10)
KSR_CUDA_SPECIAL(sin)
KSR_CUDA_SPECIAL(cos)
KSR_CUDA_SPECIAL(tan)
KSR_CUDA_SPECIAL(asin)
KSR_CUDA_SPECIAL(acos)
KSR_CUDA_SPECIAL(atan)
KSR_CUDA_SPECIAL(sinh)
KSR_CUDA_SPECIAL(cosh)
KSR_CUDA_SPECIAL(tanh)
KSR_CUDA_SPECIAL(asinh)
KSR_CUDA_SPECIAL(acosh)
KSR_CUDA_SPECIAL(atanh)
#undef KSR_CUDA_SPECIAL

// The same for functions that Metal does without.
#define KSR_CUDA_MORE(name)                                                                                            \
    KSR_INLINE float name##f(float x) {                                                                                \
        float r = ksr_here()->runtime->name(x);                                                                        \
        KSR_MARK(tanh, r);                                                                                             \
        return r;                                                                                                      \
    }                                                                                                                  \
    KSR_INLINE float name(float x) { return name##f(x); }                                                              \
    KSR_INLINE double name(double x) { return ksr_here()->runtime->of_double.name(x); }
KSR_CUDA_MORE(erf)
KSR_CUDA_MORE(erfc)
KSR_CUDA_MORE(expm1)
KSR_CUDA_MORE(log1p)
KSR_CUDA_MORE(cbrt)
KSR_CUDA_MORE(lgamma)
KSR_CUDA_MORE(tgamma)
#undef KSR_CUDA_MORE

// An instruction or a few, of float and of double alike.
#define KSR_CUDA_PLAIN(name)                                                                                           \
    KSR_INLINE float name##f(float x) { return __builtin_##name##f(x); }                                               \
    KSR_INLINE float name(float x) { return __builtin_##name##f(x); }                                                  \
    KSR_INLINE double name(double x) { return __builtin_##name(x); }                                                   \
    template <ksr::integer T> KSR_INLINE double name(T x) { return name(double(x)); }
KSR_CUDA_PLAIN(sqrt)
KSR_CUDA_PLAIN(floor)
KSR_CUDA_PLAIN(ceil)
KSR_CUDA_PLAIN(trunc)
KSR_CUDA_PLAIN(rint)
#undef KSR_CUDA_PLAIN
KSR_INLINE float fabsf(float x) { return __builtin_fabsf(x); }
KSR_INLINE float fabs(float x) { return __builtin_fabsf(x); }
KSR_INLINE double fabs(double x) { return __builtin_fabs(x); }
KSR_INLINE float nearbyintf(float x) { return rintf(x); }
KSR_INLINE float nearbyint(float x) { return rintf(x); }
KSR_INLINE double nearbyint(double x) { return rint(x); }
KSR_INLINE float roundf(float x) { return metal::round(x); }
KSR_INLINE float round(float x) { return metal::round(x); }
KSR_INLINE double round(double x) { return trunc(x + __builtin_copysign(0.49999999999999994, x)); }
KSR_INLINE int lrintf(float x) { return int(rintf(x)); }
KSR_INLINE int lroundf(float x) { return int(roundf(x)); }
KSR_INLINE long long llrintf(float x) { return (long long)(rintf(x)); }

KSR_INLINE float rsqrtf(float x) { return metal::rsqrt(x); }
KSR_INLINE float rsqrt(float x) { return metal::rsqrt(x); }
KSR_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
KSR_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
KSR_INLINE float normcdff(float x) { return 0.5f * erfcf(-0.707106781186547524f * x); }
KSR_INLINE double normcdf(double x) { return 0.5 * erfc(-0.70710678118654752440 * x); }
KSR_INLINE float sinpif(float x) { return metal::sinpi(x); }
KSR_INLINE float cospif(float x) { return metal::cospi(x); }

KSR_INLINE float powf(float x, float y) { return metal::pow(x, y); }
KSR_INLINE float pow(float x, float y) { return metal::pow(x, y); }
KSR_INLINE float pow(float x, int y) { return metal::pow(x, float(y)); }
KSR_INLINE double pow(double x, double y) { return ksr_here()->runtime->of_double.pow(x, y); }
KSR_INLINE double pow(double x, int y) { return pow(x, double(y)); }
KSR_INLINE float atan2f(float y, float x) { return metal::atan2(y, x); }
KSR_INLINE float atan2(float y, float x) { return metal::atan2(y, x); }
KSR_INLINE double atan2(double y, double x) { return ksr_here()->runtime->of_double.atan2(y, x); }
KSR_INLINE float fmodf(float x, float y) { return metal::fmod(x, y); }
KSR_INLINE float fmod(float x, float y) { return metal::fmod(x, y); }
KSR_INLINE double fmod(double x, double y) { return ksr_here()->runtime->of_double.fmod(x, y); }
KSR_INLINE float ldexpf(float x, int k) { return metal::ldexp(x, k); }
KSR_INLINE float scalbnf(float x, int k) { return metal::ldexp(x, k); }
KSR_INLINE float frexpf(float x, int* k) { return metal::frexp(x, *k); }
KSR_INLINE float modff(float x, float* whole) { return metal::modf(x, *whole); }
KSR_INLINE float copysignf(float x, float y) { return __builtin_copysignf(x, y); }
KSR_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
KSR_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }
KSR_INLINE float fdimf(float x, float y) { return metal::fdim(x, y); }
KSR_INLINE float hypotf(float x, float y) { return float(__builtin_sqrt(double(x) * x + double(y) * y)); }
KSR_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
KSR_INLINE float norm3df(float x, float y, float z) { return float(__builtin_sqrt(double(x) * x + double(y) * y + double(z) * z)); }
KSR_INLINE void sincosf(float x, float* sine, float* cosine) {
    *sine = metal::sin(x);
    *cosine = metal::cos(x);
}
KSR_INLINE void sincos(double x, double* sine, double* cosine) {
    *sine = sin(x);
    *cosine = cos(x);
}
KSR_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KSR_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KSR_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
KSR_INLINE float fmaxf(float x, float y) { return metal::fmax(x, y); }
KSR_INLINE float fminf(float x, float y) { return metal::fmin(x, y); }
KSR_INLINE float fmax(float x, float y) { return metal::fmax(x, y); }
KSR_INLINE float fmin(float x, float y) { return metal::fmin(x, y); }
KSR_INLINE double fmax(double x, double y) { return x > y || y != y ? x : y; }
KSR_INLINE double fmin(double x, double y) { return x < y || y != y ? x : y; }
KSR_INLINE float __saturatef(float x) { return metal::saturate(x); }

template <class T> concept ksr_real = __is_same(T, float) || __is_same(T, double);
template <ksr_real T> KSR_INLINE bool isnan(T x) { return x != x; }
template <ksr_real T> KSR_INLINE bool isinf(T x) { return fabs(x) == T(INFINITY); }
template <ksr_real T> KSR_INLINE bool isfinite(T x) { return fabs(x) < T(INFINITY); }
KSR_INLINE bool signbit(float x) { return __builtin_bit_cast(uint, x) >> 31; }

KSR_INLINE float __expf(float x) { return metal::exp(x); }
KSR_INLINE float __exp10f(float x) { return metal::exp10(x); }
KSR_INLINE float __logf(float x) { return metal::log(x); }
KSR_INLINE float __log2f(float x) { return metal::log2(x); }
KSR_INLINE float __log10f(float x) { return metal::log10(x); }
KSR_INLINE float __sinf(float x) { return metal::sin(x); }
KSR_INLINE float __cosf(float x) { return metal::cos(x); }
KSR_INLINE float __tanf(float x) { return metal::tan(x); }
KSR_INLINE float __tanhf(float x) { return metal::tanh(x); }
KSR_INLINE float __powf(float x, float y) { return metal::pow(x, y); }
KSR_INLINE void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
KSR_INLINE float __fdividef(float x, float y) { return x / y; }
KSR_INLINE float fdividef(float x, float y) { return x / y; }
KSR_INLINE float __frsqrt_rn(float x) { return metal::rsqrt(x); }
KSR_INLINE float __frcp_rn(float x) { return 1.0f / x; }
KSR_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
KSR_INLINE float __fadd_rn(float x, float y) { return x + y; }
KSR_INLINE float __fsub_rn(float x, float y) { return x - y; }
KSR_INLINE float __fmul_rn(float x, float y) { return x * y; }
KSR_INLINE float __fdiv_rn(float x, float y) { return x / y; }
KSR_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KSR_INLINE double __dadd_rn(double x, double y) { return x + y; }
KSR_INLINE double __dmul_rn(double x, double y) { return x * y; }
KSR_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

KSR_INLINE constexpr int abs(int x) { return x < 0 ? -x : x; }
KSR_INLINE constexpr long abs(long x) { return x < 0 ? -x : x; }
KSR_INLINE constexpr long long abs(long long x) { return x < 0 ? -x : x; }
KSR_INLINE constexpr long long llabs(long long x) { return x < 0 ? -x : x; }
KSR_INLINE float abs(float x) { return __builtin_fabsf(x); }
KSR_INLINE double abs(double x) { return __builtin_fabs(x); }

// Of integers of two types, one type comes out as C++ has it; of a float and a double, a double.
template <class A, class B> using ksr_common = decltype(true ? A() : B());
template <ksr::integer A, ksr::integer B> KSR_INLINE constexpr ksr_common<A, B> max(A a, B b) {
    typedef ksr_common<A, B> T;
    return T(a) < T(b) ? T(b) : T(a);
}
template <ksr::integer A, ksr::integer B> KSR_INLINE constexpr ksr_common<A, B> min(A a, B b) {
    typedef ksr_common<A, B> T;
    return T(b) < T(a) ? T(b) : T(a);
}
KSR_INLINE float max(float a, float b) { return metal::fmax(a, b); }
KSR_INLINE float min(float a, float b) { return metal::fmin(a, b); }
KSR_INLINE double max(double a, double b) { return fmax(a, b); }
KSR_INLINE double min(double a, double b) { return fmin(a, b); }
KSR_INLINE double max(float a, double b) { return fmax(double(a), b); }
KSR_INLINE double min(float a, double b) { return fmin(double(a), b); }
KSR_INLINE double max(double a, float b) { return fmax(a, double(b)); }
KSR_INLINE double min(double a, float b) { return fmin(a, double(b)); }
