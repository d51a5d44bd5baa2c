// simdgroup_matrix: an 8x8 matrix that the 32 lanes of a simdgroup hold together, two elements each.
#pragma once

namespace ksr {

// Where lane's first element stands; the second is its right neighbour (the layout of Apple GPUs, which MLX relies on).
constexpr uint matrix_row(uint lane) { return (lane / 4 & 4) + lane / 2 % 4; }
constexpr uint matrix_column(uint lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

}  // namespace ksr

namespace metal {

template <class T, int Columns, int Rows> struct simdgroup_matrix {
    static_assert(Columns == 8 && Rows == 8, "a simdgroup_matrix is 8x8");
    static_assert(ksr::is_floating<T>::value, "a simdgroup_matrix holds float, half or bfloat");
    typedef vec<T, 2> storage_type;
    storage_type ksr_own;

    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T diagonal) {
        uint lane = ksr_here()->lane, row = ksr::matrix_row(lane), column = ksr::matrix_column(lane);
        ksr_own = storage_type(row == column ? diagonal : T(0), row == column + 1 ? diagonal : T(0));
    }
    storage_type& thread_elements() { return ksr_own; }
    const storage_type& thread_elements() const { return ksr_own; }
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int Columns, int Rows> simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
    simdgroup_matrix<T, Columns, Rows> m;
    m.ksr_own = vec<T, 2>(value);
    return m;
}

template <class T, class P>
KSR_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const P* from, ulong stride = 8, ulong2 origin = 0,
                               bool transpose = false, [[maybe_unused]] KSR_IN_LINE) {
    KSR_STANDS_IN(ksr_line);
    uint lane = ksr_here()->lane, row = ksr::matrix_row(lane), column = ksr::matrix_column(lane);
    from += origin.y * stride + origin.x;
    for (uint i = 0; i < 2; ++i)
        m.ksr_own[int(i)] = T(transpose ? from[(column + i) * stride + row] : from[row * stride + column + i]);
}

template <class T, class P>
KSR_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, P* to, ulong stride = 8, ulong2 origin = 0,
                                bool transpose = false, [[maybe_unused]] KSR_IN_LINE) {
    KSR_STANDS_IN(ksr_line);
    uint lane = ksr_here()->lane, row = ksr::matrix_row(lane), column = ksr::matrix_column(lane);
    to += origin.y * stride + origin.x;
    for (uint i = 0; i < 2; ++i)
        (transpose ? to[(column + i) * stride + row] : to[row * stride + column + i]) = P(m.ksr_own[int(i)]);
}

}  // namespace metal

namespace ksr {

// What a lane brings to a product; what it takes home lies in the same place.
template <class A, class B> struct product_input {
    metal::vec<A, 2> a;
    metal::vec<B, 2> b;
};

template <class A, class B> KSR_UNCOUNTED void multiply_matrices(ksr_simdgroup* group, ksr_u32) {
    KSR_COUNT(matrix_flops, 2 * 8 * 8 * 8);
    typedef product_input<A, B> input;
    float a[8][8], b[8][8];
    for (uint lane = 0; lane < kLanes; ++lane) {
        const input& own = values<input>(group)[lane];
        uint row = matrix_row(lane), column = matrix_column(lane);
        for (uint i = 0; i < 2; ++i) {
            a[row][column + i] = float(own.a[int(i)]);
            b[row][column + i] = float(own.b[int(i)]);
        }
    }
    for (uint lane = 0; lane < kLanes; ++lane) {
        uint row = matrix_row(lane), column = matrix_column(lane);
        float2 out = 0.0f;
        for (uint k = 0; k < 8; ++k)
            for (uint i = 0; i < 2; ++i) out[int(i)] += a[row][k] * b[k][column + i];
        // The result lies where the lane's values lay: same slot size, and every value has been read.
        *reinterpret_cast<float2*>(group->result + lane * sizeof(input)) = out;
    }
}

}  // namespace ksr

namespace metal {

// d = a b + c, summed in float.
template <class D, class A, class B, class C>
KSR_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                              const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c,
                                              KSR_AT) {
    ksr::product_input<A, B> own = {a.ksr_own, b.ksr_own};
    own = ksr_collective(own, 0, ksr::multiply_matrices<A, B>, ksr::site(ksr_at, ksr::matrix_product));
    float2 product;
    __builtin_memcpy(&product, &own, sizeof product);
    for (int i = 0; i < 2; ++i) d.ksr_own[i] = D(float(c.ksr_own[i]) + product[i]);
}
template <class D, class A, class B>
KSR_INLINE void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                   const simdgroup_matrix<B, 8, 8>& b, KSR_AT) {
    simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)), ksr_at);
}
template <class T>
KSR_INLINE simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8>& a, const simdgroup_matrix<T, 8, 8>& b) {
    simdgroup_matrix<T, 8, 8> d;
    simdgroup_multiply(d, a, b);
    return d;
}

}  // namespace metal
