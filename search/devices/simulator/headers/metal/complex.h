// Complex numbers, as MLX has them before every kernel: a real converts to one by itself, and back to its real part.
#pragma once

template <class T> struct complex_t;
template <class T> constexpr bool is_complex_v = false;
template <class T> constexpr bool is_complex_v<complex_t<T>> = true;

template <class T> struct complex_t {
    typedef T value_type;
    T real, imag;

    constexpr complex_t() : real(0), imag(0) {}
    constexpr complex_t(T re, T im) : real(re), imag(im) {}
    template <ksr::scalar U> constexpr complex_t(U re) : real(T(re)), imag(0) {}
    template <class U> requires(!__is_same(U, T))
    constexpr complex_t(complex_t<U> from) : real(T(from.real)), imag(T(from.imag)) {}
    constexpr complex_t(metal::vec<T, 2> pair) : real(pair.x), imag(pair.y) {}
    constexpr operator metal::vec<T, 2>() const { return metal::vec<T, 2>(real, imag); }
    template <ksr::scalar U> constexpr operator U() const { return U(real); }
};
typedef complex_t<half> complex32_t;
typedef complex_t<float> complex64_t;

template <class T> constexpr complex_t<T> operator-(complex_t<T> a) { return {T(-a.real), T(-a.imag)}; }
template <class T> constexpr complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
    return {T(a.real + b.real), T(a.imag + b.imag)};
}
template <class T> constexpr complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
    return {T(a.real - b.real), T(a.imag - b.imag)};
}
template <class T> constexpr complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
    return {T(a.real * b.real - a.imag * b.imag), T(a.real * b.imag + a.imag * b.real)};
}
// In float, with the divisor scaled by its larger part: its square may overflow.
template <class T> constexpr complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
    float x = float(a.real), y = float(a.imag), u = float(b.real), v = float(b.imag);
    if (metal::fabs(u) >= metal::fabs(v)) {
        float ratio = v / u, scale = u + v * ratio;
        return {T((x + y * ratio) / scale), T((y - x * ratio) / scale)};
    }
    float ratio = u / v, scale = v + u * ratio;
    return {T((x * ratio + y) / scale), T((y * ratio - x) / scale)};
}
// With a real; a real on the right of * and / is ambiguous in MLX too.
template <class T, ksr::scalar U> constexpr complex_t<T> operator+(U a, complex_t<T> b) { return {T(T(a) + b.real), b.imag}; }
template <class T, ksr::scalar U> constexpr complex_t<T> operator+(complex_t<T> a, U b) { return {T(a.real + T(b)), a.imag}; }
template <class T, ksr::scalar U> constexpr complex_t<T> operator-(U a, complex_t<T> b) { return {T(T(a) - b.real), T(-b.imag)}; }
template <class T, ksr::scalar U> constexpr complex_t<T> operator-(complex_t<T> a, U b) { return {T(a.real - T(b)), a.imag}; }
template <class T, ksr::scalar U> constexpr complex_t<T> operator/(U a, complex_t<T> b) { return complex_t<T>(T(a)) / b; }
template <class T> constexpr complex_t<T>& operator+=(complex_t<T>& a, complex_t<T> b) { return a = a + b; }

// The remainder of each part, with the sign of the divisor.
template <class T> constexpr complex_t<T> operator%(complex_t<T> a, complex_t<T> b) {
    auto part = [](T x, T y) {
        T left = T(x - T(y * T(int64_t(x / y))));
        return left != T(0) && (left < T(0)) != (y < T(0)) ? T(left + y) : left;
    };
    return {part(a.real, b.real), part(a.imag, b.imag)};
}

// Ordered by the real part, and by the other where that is equal.
template <class T> constexpr bool operator==(complex_t<T> a, complex_t<T> b) { return a.real == b.real && a.imag == b.imag; }
template <class T> constexpr bool operator>(complex_t<T> a, complex_t<T> b) {
    return a.real > b.real || (a.real == b.real && a.imag > b.imag);
}
template <class T> constexpr bool operator>=(complex_t<T> a, complex_t<T> b) {
    return a.real > b.real || (a.real == b.real && a.imag >= b.imag);
}
template <class T> constexpr bool operator<(complex_t<T> a, complex_t<T> b) { return b > a; }
template <class T> constexpr bool operator<=(complex_t<T> a, complex_t<T> b) { return b >= a; }
