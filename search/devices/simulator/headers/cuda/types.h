// Vector types: structs without operators, aligned as CUDA aligns them.
#pragma once

typedef long intptr_t;

#define KSR_CUDA_VECTOR(T, name, align2, align4)                                                                       \
    struct name##1 { T x; };                                                                                           \
    struct alignas(align2) name##2 { T x, y; };                                                                        \
    struct name##3 { T x, y, z; };                                                                                     \
    struct alignas(align4) name##4 { T x, y, z, w; };                                                                  \
    KSR_INLINE constexpr name##1 make_##name##1(T x) { return {x}; }                                                   \
    KSR_INLINE constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                           \
    KSR_INLINE constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                   \
    KSR_INLINE constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
KSR_CUDA_VECTOR(signed char, char, 2, 4)
KSR_CUDA_VECTOR(unsigned char, uchar, 2, 4)
KSR_CUDA_VECTOR(short, short, 4, 8)
KSR_CUDA_VECTOR(unsigned short, ushort, 4, 8)
KSR_CUDA_VECTOR(int, int, 8, 16)
KSR_CUDA_VECTOR(unsigned int, uint, 8, 16)
KSR_CUDA_VECTOR(long, long, 16, 16)
KSR_CUDA_VECTOR(unsigned long, ulong, 16, 16)
KSR_CUDA_VECTOR(long long, longlong, 16, 16)
KSR_CUDA_VECTOR(unsigned long long, ulonglong, 16, 16)
KSR_CUDA_VECTOR(float, float, 8, 16)
KSR_CUDA_VECTOR(double, double, 16, 16)
#undef KSR_CUDA_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
