// What a launch gives its kernel: each argument converts to whatever the parameter is.
#pragma once

namespace ksr {

// So many bytes into an array.
struct pointer {
    void* array;
    ksr_i64 bytes;
    template <class T> KSR_INLINE operator T*() const { return reinterpret_cast<T*>(static_cast<char*>(array) + bytes); }
};

struct integer_given {
    ksr_i64 value;
    template <class T> requires(arithmetic<T> || half_like<T> || __is_enum(T)) KSR_INLINE operator T() const { return T(value); }
    template <class T> KSR_INLINE operator T*() const { return reinterpret_cast<T*>(value); }  // a null pointer
};

struct real_given {
    ksr_i64 bits;
    template <class T> requires(arithmetic<T> || half_like<T>) KSR_INLINE operator T() const { return T(__builtin_bit_cast(double, bits)); }
};

}  // namespace ksr
