// What MLX writes before every kernel: its limits, its indexing into arrays by shape and strides, a few functions.
#pragma once

#define MLX_MTL_PRAGMA_UNROLL _Pragma("GCC unroll 64")
#define MTL_CONST const

constexpr int MAX_REDUCE_SPECIALIZED_DIMS = 4;
constexpr int REDUCE_N_READS = 4;
constexpr int REDUCE_N_WRITES = 4;
constexpr int SOFTMAX_N_READS = 4;
constexpr int RMS_N_READS = 4;
constexpr int RMS_LOOPED_LIMIT = 4096;

template <class T> struct WorkPerThread {
    static_assert(sizeof(T) <= 8, "Type too large");
    static constexpr int n = 8 / sizeof(T);
};

template <class T> struct Limits {
    static const T max;
    static const T min;
    static const T finite_max;
    static const T finite_min;
};
template <class T> constexpr T ksr_infinity_or_max() {
    if constexpr (ksr::is_floating<T>::value) return metal::numeric_limits<T>::infinity();
    else return metal::numeric_limits<T>::max();
}
template <class T> inline constexpr T Limits<T>::max = ksr_infinity_or_max<T>();
template <class T> inline constexpr T Limits<T>::min =
    ksr::is_floating<T>::value ? T(-ksr_infinity_or_max<T>()) : metal::numeric_limits<T>::min();
template <class T> struct Limits<complex_t<T>> {
    static constexpr complex_t<T> max = complex_t<T>(Limits<T>::max, Limits<T>::max);
    static constexpr complex_t<T> min = complex_t<T>(Limits<T>::min, Limits<T>::min);
};
template <class T> inline constexpr T Limits<T>::finite_max = metal::numeric_limits<T>::max();
template <class T> inline constexpr T Limits<T>::finite_min = metal::numeric_limits<T>::lowest();

// The offset of an element, counted in row-major order over `shape`, in an array with `strides`.
template <class I = int64_t> KSR_INLINE I elem_to_loc(I elem, const int* shape, const int64_t* strides, int ndim) {
    I loc = 0;
    for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
        loc += (elem % shape[i]) * I(strides[i]);
        elem /= shape[i];
    }
    return loc;
}
// The same where x and y are positions in the last two dimensions and z counts the rest.
template <class I = int64_t> KSR_INLINE I elem_to_loc(uint3 elem, const int* shape, const int64_t* strides, int ndim) {
    I loc = elem.x * I(strides[ndim - 1]) + elem.y * I(strides[ndim - 2]);
    for (int d = ndim - 3; d >= 0; --d) {
        loc += (elem.z % shape[d]) * I(strides[d]);
        elem.z /= shape[d];
    }
    return loc;
}
template <class I = int64_t> KSR_INLINE I elem_to_loc_1(uint elem, const int64_t& stride) { return elem * I(stride); }
template <class I = int64_t> KSR_INLINE I elem_to_loc_2(uint2 elem, const int64_t* strides) {
    return elem.x * I(strides[1]) + elem.y * I(strides[0]);
}
template <class I = int64_t> KSR_INLINE I elem_to_loc_3(uint3 elem, const int64_t* strides) {
    return elem.x * I(strides[2]) + elem.y * I(strides[1]) + elem.z * I(strides[0]);
}
// The offsets in two and three arrays of one shape.
template <class I = int64_t>
KSR_INLINE metal::vec<I, 2> elem_to_loc_2_nd(uint3 elem, const int* shape, const int64_t* a, const int64_t* b, int ndim) {
    return metal::vec<I, 2>(elem_to_loc<I>(elem, shape, a, ndim), elem_to_loc<I>(elem, shape, b, ndim));
}
template <class I = int64_t>
KSR_INLINE metal::vec<I, 3> elem_to_loc_3_nd(uint3 elem, const int* shape, const int64_t* a, const int64_t* b, const int64_t* c,
                                             int ndim) {
    return metal::vec<I, 3>(elem_to_loc<I>(elem, shape, a, ndim), elem_to_loc<I>(elem, shape, b, ndim),
                            elem_to_loc<I>(elem, shape, c, ndim));
}

// The offset of an element that goes forward, by one or more, in an array with `dim` dimensions.
template <int Dim, class I = size_t, bool General = true> struct LoopedElemToLoc {
    int dim;
    I offset{0};
    long index{0};

    LoopedElemToLoc(int dims) : dim(dims) {}
    void next(const int* shape, const int64_t* strides) { next(1, shape, strides); }
    void next(int n, const int* shape, const int64_t* strides) {
        index += n;
        offset = 0;
        long rest = index;
        for (int i = dim - 1; i > 0; rest /= shape[i--]) offset += I(rest % shape[i]) * I(strides[i]);
        if (dim > 0) offset += I(rest) * I(strides[0]);
    }
    I location() { return offset; }
};

template <bool Condition, class T, class U> struct ConditionalType { using type = metal::conditional_t<Condition, T, U>; };

// A float that is not zero is true, a denormal one too.
template <class U, class T> inline U cast_to(T value) { return static_cast<U>(value); }
template <> inline bool cast_to<bool, complex64_t>(complex64_t value) { return value.real != 0.0f || value.imag != 0.0f; }

template <class T, class U> constexpr T ceildiv(T n, U m) { return (n + m - 1) / m; }

KSR_INLINE float log1p(float x) {
    float y = 1.0f + x;
    if (y == INFINITY) return y;
    return y == 1.0f ? x : x * (metal::log(y) / (y - 1.0f));
}
KSR_INLINE bfloat log1p(bfloat x) { return bfloat(log1p(float(x))); }
KSR_INLINE complex64_t log1p(complex64_t z) {
    float size = metal::sqrt(z.real * z.real + z.imag * z.imag), angle = metal::atan2(z.imag, z.real + 1.0f);
    if (size >= 0.5f) return {metal::log(metal::sqrt((z.real + 1.0f) * (z.real + 1.0f) + z.imag * z.imag)), angle};
    float above = z.real * (2.0f + z.real) + z.imag * z.imag;  // of the squared size of z + 1, over 1
    return {above == 0.0f ? z.real : 0.5f * log1p(above), angle};
}
KSR_INLINE float hypot(float x, float y) {
    if (metal::isinf(x) || metal::isinf(y)) return INFINITY;
    float a = metal::fmax(metal::fabs(x), metal::fabs(y)), b = metal::fmin(metal::fabs(x), metal::fabs(y));
    return a == 0.0f || x != x || y != y ? x + y : a * metal::sqrt(1.0f + (b / a) * (b / a));
}
