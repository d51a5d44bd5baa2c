// Scalar types: fixed sizes, half by the compiler's _Float16, bfloat in software.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef _Float16 half;
typedef _Float16 float16_t;

#define METAL_FUNC inline __attribute__((always_inline))

static_assert(sizeof(long) == 8, "Metal's long has 64 bits");

// Marks the code of one counted operation by a label in the assembly of a counted build; nothing otherwise.
#ifdef KSR_COUNTED
#if defined(__APPLE__)
#define KSR_LABEL "Lksr_"
#else
#define KSR_LABEL ".Lksr_"
#endif
#if defined(__x86_64__)
#define KSR_MARK(operation, value) asm(KSR_LABEL #operation "_%=:" : "+x"(value))
#else
#define KSR_MARK(operation, value) asm(KSR_LABEL #operation "_%=:" : "+w"(value))
#endif
#define KSR_COUNT(counter, amount) ksr_here()->counters.counter += (amount)
#define KSR_UNCOUNTED __attribute__((noinline, no_sanitize("thread")))
#else
#define KSR_MARK(operation, value)
#define KSR_COUNT(counter, amount)
#ifdef KSR_CHECKED
#define KSR_UNCOUNTED __attribute__((noinline, no_sanitize("thread", "bounds")))
#else
#define KSR_UNCOUNTED
#endif
#endif

struct bfloat;

namespace ksr {

template <class T> struct is_integer { static constexpr bool value = false; };
template <class T> struct is_floating { static constexpr bool value = false; };
#define KSR_INTEGER(T) template <> struct is_integer<T> { static constexpr bool value = true; };
KSR_INTEGER(bool)
KSR_INTEGER(char)
KSR_INTEGER(signed char)
KSR_INTEGER(unsigned char)
KSR_INTEGER(short)
KSR_INTEGER(unsigned short)
KSR_INTEGER(int)
KSR_INTEGER(unsigned int)
KSR_INTEGER(long)
KSR_INTEGER(unsigned long)
KSR_INTEGER(long long)
KSR_INTEGER(unsigned long long)
#undef KSR_INTEGER
template <> struct is_floating<float> { static constexpr bool value = true; };
template <> struct is_floating<double> { static constexpr bool value = true; };
template <> struct is_floating<half> { static constexpr bool value = true; };
template <> struct is_floating<bfloat> { static constexpr bool value = true; };

template <class T> concept integer = is_integer<T>::value;
template <class T> concept arithmetic = is_integer<T>::value || is_floating<T>::value;

}  // namespace ksr

// The upper half of a float. Every operation is done in float and rounded to nearest even, as Metal's is. Of other
// floating types only float is reached without a cast, and from none: Metal converts only to a higher rank by itself.
struct bfloat {
    ushort ksr_bits;

    bfloat() = default;
    template <ksr::arithmetic T> constexpr explicit(!ksr::integer<T>) bfloat(T value) : ksr_bits(ksr_round(float(value))) {}
    template <class T> requires __is_same(T, float) constexpr operator T() const {
        return __builtin_bit_cast(float, uint(ksr_bits) << 16);
    }
    template <ksr::arithmetic T> requires(!__is_same(T, float)) constexpr explicit operator T() const { return T(float(*this)); }

    static constexpr ushort ksr_round(float value) {
        uint bits = __builtin_bit_cast(uint, value);
        if (value != value) return 0x7FC0;
        return ushort((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }

    constexpr bfloat operator-() const { return bfloat(-float(*this)); }
    constexpr bfloat operator+() const { return *this; }
    template <class T> constexpr bfloat& operator+=(T other) { return *this = bfloat(float(*this) + float(other)); }
    template <class T> constexpr bfloat& operator-=(T other) { return *this = bfloat(float(*this) - float(other)); }
    template <class T> constexpr bfloat& operator*=(T other) { return *this = bfloat(float(*this) * float(other)); }
    template <class T> constexpr bfloat& operator/=(T other) { return *this = bfloat(float(*this) / float(other)); }
    constexpr bfloat& operator++() { return *this += 1; }
    constexpr bfloat& operator--() { return *this -= 1; }
    constexpr bfloat operator++(int) {
        bfloat before = *this;
        *this += 1;
        return before;
    }
    constexpr bfloat operator--(int) {
        bfloat before = *this;
        *this -= 1;
        return before;
    }
};
typedef bfloat bfloat16_t;

// bfloat with bfloat or an integer stays bfloat; with float or half it becomes float.
#define KSR_BFLOAT_OPERATOR(op)                                                                                        \
    constexpr bfloat operator op(bfloat a, bfloat b) { return bfloat(float(a) op float(b)); }                          \
    template <ksr::integer T> constexpr bfloat operator op(bfloat a, T b) { return bfloat(float(a) op float(b)); }     \
    template <ksr::integer T> constexpr bfloat operator op(T a, bfloat b) { return bfloat(float(a) op float(b)); }     \
    constexpr float operator op(bfloat a, float b) { return float(a) op b; }                                           \
    constexpr float operator op(float a, bfloat b) { return a op float(b); }                                           \
    constexpr float operator op(bfloat a, half b) { return float(a) op float(b); }                                     \
    constexpr float operator op(half a, bfloat b) { return float(a) op float(b); }
KSR_BFLOAT_OPERATOR(+)
KSR_BFLOAT_OPERATOR(-)
KSR_BFLOAT_OPERATOR(*)
KSR_BFLOAT_OPERATOR(/)
#undef KSR_BFLOAT_OPERATOR

// The sum (and so on) as above, converted to the type of what it is assigned to.
#define KSR_BFLOAT_ASSIGNMENT(op)                                                                                      \
    template <ksr::arithmetic T> requires(!__is_same(T, bfloat)) constexpr T& operator op##=(T& a, bfloat b) {         \
        return a = T(a op b);                                                                                          \
    }
KSR_BFLOAT_ASSIGNMENT(+)
KSR_BFLOAT_ASSIGNMENT(-)
KSR_BFLOAT_ASSIGNMENT(*)
KSR_BFLOAT_ASSIGNMENT(/)
#undef KSR_BFLOAT_ASSIGNMENT

#define KSR_BFLOAT_COMPARISON(op)                                                                                      \
    constexpr bool operator op(bfloat a, bfloat b) { return float(a) op float(b); }                                    \
    template <ksr::arithmetic T> constexpr bool operator op(bfloat a, T b) { return float(a) op float(b); }            \
    template <ksr::arithmetic T> constexpr bool operator op(T a, bfloat b) { return float(a) op float(b); }
KSR_BFLOAT_COMPARISON(==)
KSR_BFLOAT_COMPARISON(!=)
KSR_BFLOAT_COMPARISON(<)
KSR_BFLOAT_COMPARISON(>)
KSR_BFLOAT_COMPARISON(<=)
KSR_BFLOAT_COMPARISON(>=)
#undef KSR_BFLOAT_COMPARISON
