// Vectors of 2, 3 and 4 components, and their packed forms. Swizzles arrive as calls (see dialect.py).
#pragma once

namespace std {
// What a compiler makes of values in braces: it knows this class by its name, and fills it.
template <class T> class initializer_list {
    const T* at;
    unsigned long count;
    constexpr initializer_list(const T* from, unsigned long many) : at(from), count(many) {}

   public:
    constexpr initializer_list() : at(nullptr), count(0) {}
    constexpr const T* begin() const { return at; }
    constexpr unsigned long size() const { return count; }
};
}  // namespace std

namespace metal {
template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
}  // namespace metal

namespace ksr {

template <int... I> struct lanes {
    static constexpr bool differ() {
        constexpr int all[] = {I...};
        for (uint i = 0; i < sizeof...(I); ++i)
            for (uint j = 0; j < i; ++j)
                if (all[i] == all[j]) return false;
        return true;
    }
};

template <class T> struct components { static constexpr int value = 1; };
template <class T, int N> struct components<metal::vec<T, N>> { static constexpr int value = N; };
template <class T, int N> struct components<metal::packed_vec<T, N>> { static constexpr int value = N; };
void too_many_components() __attribute__((error("a vector is given more values than it has components")));

template <class T> concept scalar = arithmetic<T>;
template <class T> concept vector = components<T>::value > 1;
template <class T> constexpr bool packed = false;
template <class T, int N> constexpr bool packed<metal::packed_vec<T, N>> = true;

template <class T, int N> struct storage;
template <class T> struct alignas(2 * sizeof(T)) storage<T, 2> {
    union {
        struct { T x, y; };
        struct { T r, g; };
        T ksr_at[2];
    };
};
template <class T> struct alignas(4 * sizeof(T)) storage<T, 3> {
    union {
        struct { T x, y, z; };
        struct { T r, g, b; };
        T ksr_at[3];
    };
};
template <class T> struct alignas(4 * sizeof(T)) storage<T, 4> {
    union {
        struct { T x, y, z, w; };
        struct { T r, g, b, a; };
        T ksr_at[4];
    };
};

template <class T, int N> struct packed_storage;
template <class T> struct packed_storage<T, 2> {
    union {
        struct { T x, y; };
        T ksr_at[2];
    };
};
template <class T> struct packed_storage<T, 3> {
    union {
        struct { T x, y, z; };
        T ksr_at[3];
    };
};
template <class T> struct packed_storage<T, 4> {
    union {
        struct { T x, y, z, w; };
        T ksr_at[4];
    };
};

// Some components of a vector, to assign to.
template <class V, class T, int... I> struct swizzle {
    V& of;
    constexpr operator metal::vec<T, sizeof...(I)>() const { return metal::vec<T, sizeof...(I)>(of[I]...); }
    constexpr swizzle& operator=(metal::vec<T, sizeof...(I)> from) {
        int i = 0;
        ((of[I] = from[i++]), ...);
        return *this;
    }
#define KSR_SWIZZLE_OPERATOR(op)                                                                                       \
    template <class B> constexpr swizzle& operator op##=(B other) { return *this = metal::vec<T, sizeof...(I)>(*this) op other; }
    KSR_SWIZZLE_OPERATOR(+)
    KSR_SWIZZLE_OPERATOR(-)
    KSR_SWIZZLE_OPERATOR(*)
    KSR_SWIZZLE_OPERATOR(/)
    KSR_SWIZZLE_OPERATOR(%)
    KSR_SWIZZLE_OPERATOR(&)
    KSR_SWIZZLE_OPERATOR(|)
    KSR_SWIZZLE_OPERATOR(^)
    KSR_SWIZZLE_OPERATOR(<<)
    KSR_SWIZZLE_OPERATOR(>>)
#undef KSR_SWIZZLE_OPERATOR
    constexpr metal::vec<T, sizeof...(I)> operator++(int) { return ksr_step(T(1)); }
    constexpr metal::vec<T, sizeof...(I)> operator--(int) { return ksr_step(T(-1)); }

   private:
    constexpr metal::vec<T, sizeof...(I)> ksr_step(T by) {
        metal::vec<T, sizeof...(I)> before = *this;
        *this = before + by;
        return before;
    }
};

}  // namespace ksr

namespace metal {

template <class T, int N> struct vec : ksr::storage<T, N> {
    static_assert(N >= 2 && N <= 4, "a vector has 2, 3 or 4 components");
    using ksr::storage<T, N>::ksr_at;

    vec() = default;
#if defined(KSR_CHECKED) && defined(__clang__)  // which looks at the alignment of references, but of no trivial copy
    constexpr vec(const vec& from) : ksr::storage<T, N>(from) {}
    constexpr vec& operator=(const vec& from) & {
        ksr::storage<T, N>::operator=(from);
        return *this;
    }
#else
    vec(const vec&) = default;
    vec& operator=(const vec&) & = default;  // not to what a call returned: it would be lost
#endif
    template <ksr::scalar S> constexpr vec(S value) {
        for (int i = 0; i < N; ++i) ksr_at[i] = T(value);
    }
    // Values in braces, which may be fewer: the rest are zeros. One in parentheses is every component's.
    KSR_INLINE constexpr vec(std::initializer_list<T> values) {
        if (values.size() > N) ksr::too_many_components();
        for (uint i = 0; i < N; ++i) ksr_at[i] = i < values.size() ? values.begin()[i] : T(0);
    }
    template <class S> requires(!__is_same(S, T)) constexpr explicit vec(vec<S, N> from) {
        for (int i = 0; i < N; ++i) ksr_at[i] = T(from.ksr_at[i]);
    }
    constexpr vec(packed_vec<T, N> from);
    template <class A, class B, class... More>
        requires(ksr::components<A>::value + ksr::components<B>::value + (ksr::components<More>::value + ... + 0) == N)
    constexpr vec(const A& a, const B& b, const More&... more) {
        int i = 0;
        ksr_put(i, a);
        ksr_put(i, b);
        (ksr_put(i, more), ...);
    }

    constexpr T& operator[](int i) { return ksr_at[i]; }
    constexpr const T& operator[](int i) const { return ksr_at[i]; }

    template <int... I> constexpr vec<T, sizeof...(I)> ksr_get(ksr::lanes<I...>) const {
        static_assert(((I < N) && ...), "the vector has no such component");
        return vec<T, sizeof...(I)>(ksr_at[I]...);
    }
    template <int... I> constexpr ksr::swizzle<vec, T, I...> ksr_set(ksr::lanes<I...>) {
        static_assert(ksr::lanes<I...>::differ(), "a component that is assigned to may be named only once");
        static_assert(((I < N) && ...), "the vector has no such component");
        return {*this};
    }

    template <class B> constexpr vec& operator+=(B other) & { return *this = *this + other; }
    template <class B> constexpr vec& operator-=(B other) & { return *this = *this - other; }
    template <class B> constexpr vec& operator*=(B other) & { return *this = *this * other; }
    template <class B> constexpr vec& operator/=(B other) & { return *this = *this / other; }
    template <class B> constexpr vec& operator%=(B other) & { return *this = *this % other; }
    template <class B> constexpr vec& operator&=(B other) & { return *this = *this & other; }
    template <class B> constexpr vec& operator|=(B other) & { return *this = *this | other; }
    template <class B> constexpr vec& operator^=(B other) & { return *this = *this ^ other; }
    template <class B> constexpr vec& operator<<=(B other) & { return *this = *this << other; }
    template <class B> constexpr vec& operator>>=(B other) & { return *this = *this >> other; }
    constexpr vec& operator++() & { return *this = *this + T(1); }
    constexpr vec& operator--() & { return *this = *this - T(1); }
    constexpr vec operator++(int) & {
        vec before = *this;
        ++*this;
        return before;
    }
    constexpr vec operator--(int) & {
        vec before = *this;
        --*this;
        return before;
    }

   private:
    template <ksr::scalar S> constexpr void ksr_put(int& i, S value) { ksr_at[i++] = T(value); }
    template <class S, int M> constexpr void ksr_put(int& i, const vec<S, M>& from) {
        for (int j = 0; j < M; ++j) ksr_at[i++] = T(from.ksr_at[j]);
    }
    template <class S, int M> constexpr void ksr_put(int& i, const packed_vec<S, M>& from) {
        for (int j = 0; j < M; ++j) ksr_at[i++] = T(from.ksr_at[j]);
    }
};

// The same without padding and with a component's alignment.
template <class T, int N> struct packed_vec : ksr::packed_storage<T, N> {
    using ksr::packed_storage<T, N>::ksr_at;

    packed_vec() = default;
    constexpr packed_vec(vec<T, N> from) {
        for (int i = 0; i < N; ++i) ksr_at[i] = from.ksr_at[i];
    }
    template <class... A> requires(sizeof...(A) > 1)
    constexpr packed_vec(const A&... parts) : packed_vec(vec<T, N>(parts...)) {}

    constexpr T& operator[](int i) { return ksr_at[i]; }
    constexpr const T& operator[](int i) const { return ksr_at[i]; }
    template <int... I> constexpr vec<T, sizeof...(I)> ksr_get(ksr::lanes<I...>) const {
        static_assert(((I < N) && ...), "the vector has no such component");
        return vec<T, sizeof...(I)>(ksr_at[I]...);
    }
    template <int... I> constexpr ksr::swizzle<packed_vec, T, I...> ksr_set(ksr::lanes<I...>) {
        static_assert(ksr::lanes<I...>::differ(), "a component that is assigned to may be named only once");
        static_assert(((I < N) && ...), "the vector has no such component");
        return {*this};
    }
#define KSR_PACKED_ASSIGNMENT(op)                                                                                      \
    template <class B> constexpr packed_vec& operator op##=(B other) { return *this = vec<T, N>(*this) op other; }
    KSR_PACKED_ASSIGNMENT(+)
    KSR_PACKED_ASSIGNMENT(-)
    KSR_PACKED_ASSIGNMENT(*)
    KSR_PACKED_ASSIGNMENT(/)
    KSR_PACKED_ASSIGNMENT(%)
    KSR_PACKED_ASSIGNMENT(&)
    KSR_PACKED_ASSIGNMENT(|)
    KSR_PACKED_ASSIGNMENT(^)
    KSR_PACKED_ASSIGNMENT(<<)
    KSR_PACKED_ASSIGNMENT(>>)
#undef KSR_PACKED_ASSIGNMENT
};

template <class T, int N> constexpr vec<T, N>::vec(packed_vec<T, N> from) {
    for (int i = 0; i < N; ++i) ksr_at[i] = from.ksr_at[i];
}

}  // namespace metal

namespace ksr {

// f of each component.
template <class R, class T, int N, class F> constexpr metal::vec<R, N> map(F f, metal::vec<T, N> a) {
    metal::vec<R, N> r;
    r.ksr_at[0] = f(a.ksr_at[0]);
    r.ksr_at[1] = f(a.ksr_at[1]);
    if constexpr (N > 2) r.ksr_at[2] = f(a.ksr_at[2]);
    if constexpr (N > 3) r.ksr_at[3] = f(a.ksr_at[3]);
    return r;
}
template <class R, class T, class U, int N, class F>
constexpr metal::vec<R, N> map(F f, metal::vec<T, N> a, metal::vec<U, N> b) {
    metal::vec<R, N> r;
    r.ksr_at[0] = f(a.ksr_at[0], b.ksr_at[0]);
    r.ksr_at[1] = f(a.ksr_at[1], b.ksr_at[1]);
    if constexpr (N > 2) r.ksr_at[2] = f(a.ksr_at[2], b.ksr_at[2]);
    if constexpr (N > 3) r.ksr_at[3] = f(a.ksr_at[3], b.ksr_at[3]);
    return r;
}
template <class R, class T, class U, class V, int N, class F>
constexpr metal::vec<R, N> map(F f, metal::vec<T, N> a, metal::vec<U, N> b, metal::vec<V, N> c) {
    metal::vec<R, N> r;
    r.ksr_at[0] = f(a.ksr_at[0], b.ksr_at[0], c.ksr_at[0]);
    r.ksr_at[1] = f(a.ksr_at[1], b.ksr_at[1], c.ksr_at[1]);
    if constexpr (N > 2) r.ksr_at[2] = f(a.ksr_at[2], b.ksr_at[2], c.ksr_at[2]);
    if constexpr (N > 3) r.ksr_at[3] = f(a.ksr_at[3], b.ksr_at[3], c.ksr_at[3]);
    return r;
}

}  // namespace ksr

namespace metal {

// A scalar operand takes the vector's component type.
#define KSR_VECTOR_OPERATOR(op, R)                                                                                     \
    template <class T, int N> constexpr vec<R, N> operator op(vec<T, N> a, vec<T, N> b) {                              \
        return ksr::map<R>([](T x, T y) { return R(x op y); }, a, b);                                                  \
    }                                                                                                                  \
    template <class T, int N, ksr::scalar S> constexpr vec<R, N> operator op(vec<T, N> a, S b) {                       \
        return a op vec<T, N>(b);                                                                                      \
    }                                                                                                                  \
    template <class T, int N, ksr::scalar S> constexpr vec<R, N> operator op(S a, vec<T, N> b) {                       \
        return vec<T, N>(a) op b;                                                                                      \
    }                                                                                                                  \
    template <class T, int N, class B> constexpr vec<R, N> operator op(packed_vec<T, N> a, B b) {                      \
        return vec<T, N>(a) op b;                                                                                      \
    }                                                                                                                  \
    template <class T, int N> constexpr vec<R, N> operator op(vec<T, N> a, packed_vec<T, N> b) {                       \
        return a op vec<T, N>(b);                                                                                      \
    }                                                                                                                  \
    template <class T, int N, ksr::scalar S> constexpr vec<R, N> operator op(S a, packed_vec<T, N> b) {                \
        return a op vec<T, N>(b);                                                                                      \
    }
KSR_VECTOR_OPERATOR(+, T)
KSR_VECTOR_OPERATOR(-, T)
KSR_VECTOR_OPERATOR(*, T)
KSR_VECTOR_OPERATOR(/, T)
KSR_VECTOR_OPERATOR(%, T)
KSR_VECTOR_OPERATOR(&, T)
KSR_VECTOR_OPERATOR(|, T)
KSR_VECTOR_OPERATOR(^, T)
KSR_VECTOR_OPERATOR(<<, T)
KSR_VECTOR_OPERATOR(>>, T)
KSR_VECTOR_OPERATOR(==, bool)
KSR_VECTOR_OPERATOR(!=, bool)
KSR_VECTOR_OPERATOR(<, bool)
KSR_VECTOR_OPERATOR(>, bool)
KSR_VECTOR_OPERATOR(<=, bool)
KSR_VECTOR_OPERATOR(>=, bool)
KSR_VECTOR_OPERATOR(&&, bool)
KSR_VECTOR_OPERATOR(||, bool)
#undef KSR_VECTOR_OPERATOR

template <class T, int N> constexpr vec<T, N> operator-(vec<T, N> a) {
    return ksr::map<T>([](T x) { return T(-x); }, a);
}
template <class T, int N> constexpr vec<T, N> operator-(packed_vec<T, N> a) { return -vec<T, N>(a); }
template <class T, int N> constexpr vec<T, N> operator+(vec<T, N> a) { return a; }
template <class T, int N> constexpr vec<T, N> operator~(vec<T, N> a) {
    return ksr::map<T>([](T x) { return T(~x); }, a);
}
template <class T, int N> constexpr vec<bool, N> operator!(vec<T, N> a) {
    return ksr::map<bool>([](T x) { return !x; }, a);
}

}  // namespace metal

#ifndef KSR_CUDA  // which gives these names other meanings
#define KSR_VECTOR_NAMES(T, name)                                                                                      \
    typedef metal::vec<T, 2> name##2;                                                                                  \
    typedef metal::vec<T, 3> name##3;                                                                                  \
    typedef metal::vec<T, 4> name##4;                                                                                  \
    typedef metal::packed_vec<T, 2> packed_##name##2;                                                                  \
    typedef metal::packed_vec<T, 3> packed_##name##3;                                                                  \
    typedef metal::packed_vec<T, 4> packed_##name##4;
KSR_VECTOR_NAMES(bool, bool)
KSR_VECTOR_NAMES(char, char)
KSR_VECTOR_NAMES(uchar, uchar)
KSR_VECTOR_NAMES(short, short)
KSR_VECTOR_NAMES(ushort, ushort)
KSR_VECTOR_NAMES(int, int)
KSR_VECTOR_NAMES(uint, uint)
KSR_VECTOR_NAMES(long, long)
KSR_VECTOR_NAMES(ulong, ulong)
KSR_VECTOR_NAMES(half, half)
KSR_VECTOR_NAMES(bfloat, bfloat)
KSR_VECTOR_NAMES(float, float)
#undef KSR_VECTOR_NAMES

namespace metal {
using ::bfloat;
using ::half;
#define KSR_ALSO(name) using ::name##2; using ::name##3; using ::name##4;
KSR_ALSO(bool)
KSR_ALSO(char)
KSR_ALSO(uchar)
KSR_ALSO(short)
KSR_ALSO(ushort)
KSR_ALSO(int)
KSR_ALSO(uint)
KSR_ALSO(long)
KSR_ALSO(ulong)
KSR_ALSO(half)
KSR_ALSO(bfloat)
KSR_ALSO(float)
#undef KSR_ALSO
}  // namespace metal

template <class To, class From> constexpr To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs two types of the same size");
    if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) {
        return __builtin_bit_cast(To, from);
    } else {
        To to;
        __builtin_memcpy(&to, &from, sizeof to);
        return to;
    }
}
namespace metal {
using ::as_type;
}
#endif
