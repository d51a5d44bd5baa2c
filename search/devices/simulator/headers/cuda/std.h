// What kernels take from C++'s library.
#pragma once

namespace std {

using metal::conditional;
using metal::conditional_t;
using metal::enable_if;
using metal::enable_if_t;
using metal::false_type;
using metal::integral_constant;
using metal::is_arithmetic;
using metal::is_arithmetic_v;
using metal::is_floating_point;
using metal::is_floating_point_v;
using metal::is_integral;
using metal::is_integral_v;
using metal::is_same;
using metal::is_same_v;
using metal::is_unsigned;
using metal::is_unsigned_v;
using metal::numeric_limits;
using metal::remove_cv;
using metal::remove_cv_t;
using metal::remove_reference;
using metal::remove_reference_t;
using metal::true_type;
typedef decltype(nullptr) nullptr_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;

template <class T> KSR_INLINE constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> KSR_INLINE constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> KSR_INLINE constexpr remove_reference_t<T>&& move(T&& value) { return static_cast<remove_reference_t<T>&&>(value); }
template <class T> KSR_INLINE constexpr T&& forward(remove_reference_t<T>& value) { return static_cast<T&&>(value); }
template <class T> KSR_INLINE constexpr void swap(T& a, T& b) {
    T was = a;
    a = b;
    b = was;
}
#define KSR_ALSO(name) using ::name;
KSR_ALSO(abs)
KSR_ALSO(acos)
KSR_ALSO(asin)
KSR_ALSO(atan)
KSR_ALSO(atan2)
KSR_ALSO(cbrt)
KSR_ALSO(ceil)
KSR_ALSO(copysign)
KSR_ALSO(cos)
KSR_ALSO(cosh)
KSR_ALSO(erf)
KSR_ALSO(erfc)
KSR_ALSO(exp)
KSR_ALSO(exp2)
KSR_ALSO(expm1)
KSR_ALSO(fabs)
KSR_ALSO(floor)
KSR_ALSO(fma)
KSR_ALSO(fmax)
KSR_ALSO(fmin)
KSR_ALSO(fmod)
KSR_ALSO(isfinite)
KSR_ALSO(isinf)
KSR_ALSO(isnan)
KSR_ALSO(log)
KSR_ALSO(log10)
KSR_ALSO(log1p)
KSR_ALSO(log2)
KSR_ALSO(nearbyint)
KSR_ALSO(pow)
KSR_ALSO(rint)
KSR_ALSO(round)
KSR_ALSO(signbit)
KSR_ALSO(sin)
KSR_ALSO(sinh)
KSR_ALSO(sqrt)
KSR_ALSO(tan)
KSR_ALSO(tanh)
KSR_ALSO(trunc)
#undef KSR_ALSO

}  // namespace std

template <> struct metal::numeric_limits<double> {
    static constexpr bool is_signed = true;
    static constexpr double max() { return DBL_MAX; }
    static constexpr double min() { return DBL_MIN; }
    static constexpr double lowest() { return -DBL_MAX; }
    static constexpr double epsilon() { return DBL_EPSILON; }
    static constexpr double infinity() { return __builtin_inf(); }
    static constexpr double quiet_NaN() { return __builtin_nan(""); }
};
