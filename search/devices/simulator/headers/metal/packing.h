// Colours and normals packed into an integer: the first component lies in the lowest bits.
#pragma once

namespace ksr {

// A part of an integer as a fraction: of all its values, or of those of one sign.
KSR_INLINE float fraction(uint whole, uint at, uint bits) {
    uint most = (1u << bits) - 1u;
    return float(whole >> at & most) / float(most);
}
KSR_INLINE float signed_fraction(uint whole, uint at, uint bits) {
    int value = int(whole << (32 - at - bits)) >> (32 - bits);
    return metal::fmax(float(value) / float((1 << (bits - 1)) - 1), -1.0f);
}
KSR_INLINE uint part(float value, uint at, uint bits) {
    return uint(metal::rint(metal::saturate(value) * float((1u << bits) - 1u))) << at;
}
KSR_INLINE uint signed_part(float value, uint at, uint bits) {
    float most = float((1 << (bits - 1)) - 1);
    int whole = int(metal::rint(metal::clamp(value, -1.0f, 1.0f) * most));
    return (uint(whole) & ((1u << bits) - 1u)) << at;
}
KSR_INLINE float from_srgb(float x) { return x <= 0.04045f ? x / 12.92f : metal::powr((x + 0.055f) / 1.055f, 2.4f); }
KSR_INLINE float to_srgb(float x) {
    x = metal::saturate(x);
    return x < 0.0031308f ? 12.92f * x : 1.055f * metal::powr(x, 1.0f / 2.4f) - 0.055f;
}

}  // namespace ksr

namespace metal {

#define KSR_UNPACKED(name, N, Packed, ...)                                                                             \
    KSR_INLINE vec<float, N> unpack_##name##_to_float(Packed x) { return vec<float, N>(__VA_ARGS__); }                 \
    KSR_INLINE vec<half, N> unpack_##name##_to_half(Packed x) { return vec<half, N>(unpack_##name##_to_float(x)); }
#define KSR_PACKED(name, N, Packed, expression)                                                                        \
    KSR_INLINE Packed pack_float_to_##name(vec<float, N> v) { return Packed(expression); }                             \
    KSR_INLINE Packed pack_half_to_##name(vec<half, N> v) { return pack_float_to_##name(vec<float, N>(v)); }

KSR_UNPACKED(unorm4x8, 4, uint, ksr::fraction(x, 0, 8), ksr::fraction(x, 8, 8), ksr::fraction(x, 16, 8), ksr::fraction(x, 24, 8))
KSR_UNPACKED(snorm4x8, 4, uint, ksr::signed_fraction(x, 0, 8), ksr::signed_fraction(x, 8, 8), ksr::signed_fraction(x, 16, 8),
             ksr::signed_fraction(x, 24, 8))
KSR_UNPACKED(unorm4x8_srgb, 4, uint, ksr::from_srgb(ksr::fraction(x, 0, 8)), ksr::from_srgb(ksr::fraction(x, 8, 8)),
             ksr::from_srgb(ksr::fraction(x, 16, 8)), ksr::fraction(x, 24, 8))
KSR_UNPACKED(unorm2x16, 2, uint, ksr::fraction(x, 0, 16), ksr::fraction(x, 16, 16))
KSR_UNPACKED(snorm2x16, 2, uint, ksr::signed_fraction(x, 0, 16), ksr::signed_fraction(x, 16, 16))
KSR_UNPACKED(unorm10a2, 4, uint, ksr::fraction(x, 0, 10), ksr::fraction(x, 10, 10), ksr::fraction(x, 20, 10), ksr::fraction(x, 30, 2))
KSR_UNPACKED(unorm565, 3, ushort, ksr::fraction(x, 11, 5), ksr::fraction(x, 5, 6), ksr::fraction(x, 0, 5))

KSR_PACKED(unorm4x8, 4, uint, ksr::part(v.x, 0, 8) | ksr::part(v.y, 8, 8) | ksr::part(v.z, 16, 8) | ksr::part(v.w, 24, 8))
KSR_PACKED(snorm4x8, 4, uint, ksr::signed_part(v.x, 0, 8) | ksr::signed_part(v.y, 8, 8) | ksr::signed_part(v.z, 16, 8) |
                                  ksr::signed_part(v.w, 24, 8))
KSR_PACKED(unorm4x8_srgb, 4, uint, ksr::part(ksr::to_srgb(v.x), 0, 8) | ksr::part(ksr::to_srgb(v.y), 8, 8) |
                                       ksr::part(ksr::to_srgb(v.z), 16, 8) | ksr::part(v.w, 24, 8))
KSR_PACKED(unorm2x16, 2, uint, ksr::part(v.x, 0, 16) | ksr::part(v.y, 16, 16))
KSR_PACKED(snorm2x16, 2, uint, ksr::signed_part(v.x, 0, 16) | ksr::signed_part(v.y, 16, 16))
KSR_PACKED(unorm10a2, 4, uint, ksr::part(v.x, 0, 10) | ksr::part(v.y, 10, 10) | ksr::part(v.z, 20, 10) | ksr::part(v.w, 30, 2))
KSR_PACKED(unorm565, 3, ushort, ksr::part(v.x, 11, 5) | ksr::part(v.y, 5, 6) | ksr::part(v.z, 0, 5))
#undef KSR_UNPACKED
#undef KSR_PACKED

}  // namespace metal
