// Small matrices, column by column: float4x4 and its kin, and metal::array.
#pragma once

namespace metal {

template <class T, int Columns, int Rows> struct matrix {
    vec<T, Rows> columns[Columns];

    matrix() = default;
    constexpr explicit matrix(T diagonal) {
        for (int c = 0; c < Columns; ++c)
            for (int r = 0; r < Rows; ++r) columns[c][r] = c == r ? diagonal : T(0);
    }
    typedef vec<T, Rows> column;
    constexpr matrix(column a, column b) requires(Columns == 2) : columns{a, b} {}
    constexpr matrix(column a, column b, column c) requires(Columns == 3) : columns{a, b, c} {}
    constexpr matrix(column a, column b, column c, column d) requires(Columns == 4) : columns{a, b, c, d} {}
    template <class... S> requires(sizeof...(S) == Columns * Rows && (ksr::scalar<S> && ...))
    constexpr matrix(S... given) {
        const T values[] = {T(given)...};
        for (int i = 0; i < Columns * Rows; ++i) columns[i / Rows][i % Rows] = values[i];
    }
    template <class S> requires(!__is_same(S, T)) constexpr explicit matrix(const matrix<S, Columns, Rows>& from) {
        for (int c = 0; c < Columns; ++c) columns[c] = vec<T, Rows>(from.columns[c]);
    }
    constexpr vec<T, Rows>& operator[](int column) { return columns[column]; }
    constexpr const vec<T, Rows>& operator[](int column) const { return columns[column]; }
};

template <class T, int C, int R> constexpr matrix<T, C, R> operator+(matrix<T, C, R> a, const matrix<T, C, R>& b) {
    for (int c = 0; c < C; ++c) a[c] += b[c];
    return a;
}
template <class T, int C, int R> constexpr matrix<T, C, R> operator-(matrix<T, C, R> a, const matrix<T, C, R>& b) {
    for (int c = 0; c < C; ++c) a[c] -= b[c];
    return a;
}
template <class T, int C, int R, ksr::scalar S> constexpr matrix<T, C, R> operator*(matrix<T, C, R> m, S factor) {
    for (int c = 0; c < C; ++c) m[c] *= T(factor);
    return m;
}
template <class T, int C, int R, ksr::scalar S> constexpr matrix<T, C, R> operator*(S factor, matrix<T, C, R> m) { return m * factor; }
template <class T, int C, int R> constexpr vec<T, R> operator*(const matrix<T, C, R>& m, vec<T, C> v) {
    vec<T, R> sum = m[0] * v[0];
    for (int c = 1; c < C; ++c) sum += m[c] * v[c];
    return sum;
}
template <class T, int C, int R> constexpr vec<T, C> operator*(vec<T, R> v, const matrix<T, C, R>& m) {
    vec<T, C> r;
    for (int c = 0; c < C; ++c) r[c] = dot(v, m[c]);
    return r;
}
template <class T, int C, int K, int R> constexpr matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
    matrix<T, C, R> product;
    for (int c = 0; c < C; ++c) product[c] = a * b[c];
    return product;
}
template <class T, int C, int R> constexpr matrix<T, C, R> operator-(const matrix<T, C, R>& m) { return m * T(-1); }
template <class T, int C, int R> constexpr matrix<T, C, R>& operator+=(matrix<T, C, R>& a, const matrix<T, C, R>& b) { return a = a + b; }
template <class T, int C, int R> constexpr matrix<T, C, R>& operator-=(matrix<T, C, R>& a, const matrix<T, C, R>& b) { return a = a - b; }
template <class T, int C, int R, class B> constexpr matrix<T, C, R>& operator*=(matrix<T, C, R>& a, const B& b) { return a = a * b; }
template <class T, int C, int R> constexpr matrix<T, R, C> transpose(const matrix<T, C, R>& m) {
    matrix<T, R, C> t;
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) t[r][c] = m[c][r];
    return t;
}
template <class T> constexpr T determinant(const matrix<T, 2, 2>& m) { return m[0][0] * m[1][1] - m[1][0] * m[0][1]; }
template <class T> constexpr T determinant(const matrix<T, 3, 3>& m) { return dot(m[0], cross(m[1], m[2])); }
template <class T> constexpr T determinant(const matrix<T, 4, 4>& m) {
    T sum = T(0);
    for (int c = 0; c < 4; ++c) {  // along the first row
        matrix<T, 3, 3> minor;
        for (int i = 0; i < 3; ++i) minor[i] = vec<T, 3>(m[i + (i >= c)].y, m[i + (i >= c)].z, m[i + (i >= c)].w);
        sum += (c % 2 ? -m[c].x : m[c].x) * determinant(minor);
    }
    return sum;
}

template <class T, unsigned long N> struct array {
    T ksr_items[N];
    constexpr T& operator[](unsigned long i) { return ksr_items[i]; }
    constexpr const T& operator[](unsigned long i) const { return ksr_items[i]; }
    constexpr unsigned long size() const { return N; }
    constexpr T* begin() { return ksr_items; }
    constexpr T* end() { return ksr_items + N; }
    constexpr const T* begin() const { return ksr_items; }
    constexpr const T* end() const { return ksr_items + N; }
};

}  // namespace metal

#define KSR_MATRIX_NAMES(T)                                                                                            \
    typedef metal::matrix<T, 2, 2> T##2x2;                                                                             \
    typedef metal::matrix<T, 2, 3> T##2x3;                                                                             \
    typedef metal::matrix<T, 2, 4> T##2x4;                                                                             \
    typedef metal::matrix<T, 3, 2> T##3x2;                                                                             \
    typedef metal::matrix<T, 3, 3> T##3x3;                                                                             \
    typedef metal::matrix<T, 3, 4> T##3x4;                                                                             \
    typedef metal::matrix<T, 4, 2> T##4x2;                                                                             \
    typedef metal::matrix<T, 4, 3> T##4x3;                                                                             \
    typedef metal::matrix<T, 4, 4> T##4x4;
KSR_MATRIX_NAMES(float)
KSR_MATRIX_NAMES(half)
#undef KSR_MATRIX_NAMES
