// What kernels take from Metal's standard library besides functions: limits and type traits.
#pragma once

namespace metal {

template <class T> struct numeric_limits {
    static constexpr bool is_signed = T(-1) < T(0);
    static constexpr int digits = 8 * sizeof(T) - is_signed;
    static constexpr T max() { return is_signed ? T(~0ull >> (65 - 8 * sizeof(T))) : T(~0ull); }
    static constexpr T min() { return is_signed ? T(-max() - 1) : T(0); }
    static constexpr T lowest() { return min(); }
};
template <> struct numeric_limits<bool> {
    static constexpr bool max() { return true; }
    static constexpr bool min() { return false; }
    static constexpr bool lowest() { return false; }
};
#define KSR_LIMITS(T, most, least, step, bits, tiny)                                                                               \
    template <> struct numeric_limits<T> {                                                                             \
        static constexpr bool is_signed = true;                                                                        \
        static constexpr int digits = bits;                                                                            \
        static constexpr T max() { return T(most); }                                                                   \
        static constexpr T min() { return T(least); }                                                                  \
        static constexpr T lowest() { return T(-(most)); }                                                             \
        static constexpr T epsilon() { return T(step); }                                                               \
        static constexpr T denorm_min() { return T(tiny); }                                                            \
        static constexpr T infinity() { return T(__builtin_inff()); }                                                  \
        static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }                                               \
    };
KSR_LIMITS(float, 3.40282347e+38f, 1.17549435e-38f, 1.1920929e-07f, 24, 1.4e-45f)
KSR_LIMITS(half, 65504.0f, 6.103515625e-05f, 0.0009765625f, 11, 5.96046448e-08f)
KSR_LIMITS(bfloat, 3.38953139e+38f, 1.17549435e-38f, 0.0078125f, 8, 9.18354962e-41f)
#undef KSR_LIMITS

template <class T, T V> struct integral_constant {
    static constexpr T value = V;
    typedef T value_type;
    typedef integral_constant type;
    constexpr operator T() const { return V; }
    constexpr T operator()() const { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class A, class B> struct is_same : integral_constant<bool, __is_same(A, B)> {};
template <class A, class B> constexpr bool is_same_v = __is_same(A, B);
template <class T> struct is_integral : integral_constant<bool, ksr::is_integer<T>::value> {};
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> struct is_floating_point : integral_constant<bool, ksr::is_floating<T>::value> {};
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> struct is_arithmetic : integral_constant<bool, ksr::arithmetic<T>> {};
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> struct is_unsigned : integral_constant<bool, ksr::is_integer<T>::value && (T(-1) > T(0))> {};
template <class T> constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <bool B, class A, class C> struct conditional { typedef A type; };
template <class A, class C> struct conditional<false, A, C> { typedef C type; };
template <bool B, class A, class C> using conditional_t = typename conditional<B, A, C>::type;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> struct remove_cv { typedef T type; };
template <class T> struct remove_cv<const T> { typedef T type; };
template <class T> struct remove_cv<volatile T> { typedef T type; };
template <class T> struct remove_cv<const volatile T> { typedef T type; };
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct is_signed : integral_constant<bool, ksr::arithmetic<T> && !is_unsigned<T>::value> {};
template <class T> constexpr bool is_signed_v = is_signed<T>::value;
template <class T> struct is_scalar : integral_constant<bool, ksr::arithmetic<T> || __is_enum(T)> {};
template <class T> constexpr bool is_scalar_v = is_scalar<T>::value;
template <class T> struct is_vector : integral_constant<bool, ksr::vector<T>> {};
template <class T> constexpr bool is_vector_v = is_vector<T>::value;
template <class T> constexpr bool is_void_v = __is_same(typename remove_cv<T>::type, void);
template <class T> struct is_void : integral_constant<bool, is_void_v<T>> {};
template <class T> struct is_pointer : integral_constant<bool, false> {};
template <class T> struct is_pointer<T*> : integral_constant<bool, true> {};
template <class T> constexpr bool is_pointer_v = is_pointer<typename remove_cv<T>::type>::value;
template <class From, class To> constexpr bool is_convertible_v = requires(From (&from)(), void (&to)(To)) { to(from()); };
template <class From, class To> struct is_convertible : integral_constant<bool, is_convertible_v<From, To>> {};
template <class T> using decay_t = typename remove_cv<typename remove_reference<T>::type>::type;
template <class T> struct decay { typedef decay_t<T> type; };
template <uint Bytes, bool Signed> struct ksr_integer;
template <> struct ksr_integer<1, false> { typedef uchar type; };
template <> struct ksr_integer<2, false> { typedef ushort type; };
template <> struct ksr_integer<4, false> { typedef uint type; };
template <> struct ksr_integer<8, false> { typedef ulong type; };
template <> struct ksr_integer<1, true> { typedef char type; };
template <> struct ksr_integer<2, true> { typedef short type; };
template <> struct ksr_integer<4, true> { typedef int type; };
template <> struct ksr_integer<8, true> { typedef long type; };
template <class T> using make_unsigned_t = typename ksr_integer<sizeof(T), false>::type;
template <class T> struct make_unsigned { typedef make_unsigned_t<T> type; };
template <class T> using make_signed_t = typename ksr_integer<sizeof(T), true>::type;
template <class T> struct make_signed { typedef make_signed_t<T> type; };
template <class T> struct remove_addrspace { typedef T type; };  // there is one
template <class T> using remove_addrspace_t = T;
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T*> { typedef T type; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct remove_extent { typedef T type; };
template <class T, unsigned long N> struct remove_extent<T[N]> { typedef T type; };
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> constexpr bool is_enum_v = __is_enum(T);
template <class T> constexpr bool is_const_v = false;
template <class T> constexpr bool is_const_v<const T> = true;
template <class T> struct is_const : bool_constant<is_const_v<T>> {};
template <class T> constexpr bool is_reference_v = !__is_same(T, typename remove_reference<T>::type);
template <class T> struct is_reference : bool_constant<is_reference_v<T>> {};
template <class T> constexpr bool is_array_v = !__is_same(T, typename remove_extent<T>::type);
template <class T> struct is_array : bool_constant<is_array_v<T>> {};
template <class... B> struct _conjunction : bool_constant<(bool(B::value) && ...)> {};  // MLX writes these names
template <class... B> struct _disjunction : bool_constant<(bool(B::value) || ...)> {};
template <class T> T&& declval();
template <class T> using uniform = T;  // what all threads know to be the same
template <class T> constexpr T make_uniform(T value) { return value; }
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;

}  // namespace metal
