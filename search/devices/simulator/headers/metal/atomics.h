// Atomics: real ones, since threadgroups run at once on several cores.
#pragma once

namespace ksr {
template <class T> constexpr bool atomic_type =
    __is_same(T, int) || __is_same(T, uint) || __is_same(T, float) || __is_same(T, bool) || __is_same(T, ulong);
template <class T> concept whole = __is_same(T, int) || __is_same(T, uint);
template <class T> concept counted = whole<T> || __is_same(T, float);
}

namespace metal {

enum memory_order { memory_order_relaxed = 0, memory_order_seq_cst = 5 };  // others are refused (refused.py)

template <class T> struct atomic {
    static_assert(ksr::atomic_type<T>, "Metal's atomics hold int, uint, float, bool or ulong");
    T ksr_value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

}  // namespace metal

namespace ksr {

template <class T> struct same { typedef T type; };

template <uint Bytes> struct word { typedef uint type; };
template <> struct word<1> { typedef uchar type; };
template <> struct word<2> { typedef ushort type; };
template <> struct word<8> { typedef ulong type; };

template <class T, class F> KSR_UNCOUNTED T change(volatile T* object, F f) {
    KSR_COUNT(atomics, 1);
    typedef typename word<sizeof(T)>::type bits;
    volatile bits* at = reinterpret_cast<volatile bits*>(object);
#if defined(KSR_COUNTED) || defined(KSR_CHECKED)  // one thread runs, and the sanitizer would make a call of every atomic instruction
    T before = __builtin_bit_cast(T, bits(*at));
    *at = __builtin_bit_cast(bits, f(before));
    return before;
#else
    bits before = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &before, __builtin_bit_cast(bits, f(__builtin_bit_cast(T, before))), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return __builtin_bit_cast(T, before);
#endif
}

// Replaces the value by f of it; returns what it was.
template <class T, class F> KSR_INLINE T update(volatile T* object, F f, [[maybe_unused]] uint line) {
#ifdef KSR_CHECKED
    ksr_atomic_write(object, sizeof(T), line);
#endif
    return change(object, f);
}
template <class T, class F> KSR_INLINE T update(volatile metal::atomic<T>* object, F f, uint line) {
    return update(&object->ksr_value, f, line);
}

template <class T> KSR_UNCOUNTED T look(const volatile metal::atomic<T>* object) { return object->ksr_value; }

}  // namespace ksr

namespace metal {

template <class T> KSR_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order, [[maybe_unused]] KSR_IN_LINE) {
#ifdef KSR_CHECKED
    ksr_atomic_read(object, sizeof(T), ksr_line);
#endif
    return ksr::look(object);
}
template <class T> KSR_INLINE void atomic_store_explicit(volatile atomic<T>* object, typename ksr::same<T>::type value, memory_order, KSR_IN_LINE) {
    ksr::update(object, [value](T) { return value; }, ksr_line);
}
template <class T> KSR_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, typename ksr::same<T>::type value, memory_order, KSR_IN_LINE) {
    return ksr::update(object, [value](T) { return value; }, ksr_line);
}
// What Metal has of each type: all are stored, exchanged and compared; a float is added to as well; a ulong has its own two.
#define KSR_FETCH(name, Type, expression)                                                                              \
    template <ksr::Type T> KSR_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* object, typename ksr::same<T>::type value, memory_order, KSR_IN_LINE) { \
        return ksr::update(object, [value](T was) { return T(expression); }, ksr_line);                                          \
    }
KSR_FETCH(add, counted, was + value)
KSR_FETCH(sub, counted, was - value)
KSR_FETCH(min, whole, value < was ? value : was)
KSR_FETCH(max, whole, was < value ? value : was)
KSR_FETCH(and, whole, was & value)
KSR_FETCH(or, whole, was | value)
KSR_FETCH(xor, whole, was ^ value)
#undef KSR_FETCH
KSR_INLINE void atomic_min_explicit(volatile atomic<ulong>* object, ulong value, memory_order, KSR_IN_LINE) {
    ksr::update(object, [value](ulong was) { return value < was ? value : was; }, ksr_line);
}
KSR_INLINE void atomic_max_explicit(volatile atomic<ulong>* object, ulong value, memory_order, KSR_IN_LINE) {
    ksr::update(object, [value](ulong was) { return was < value ? value : was; }, ksr_line);
}
template <class T>
KSR_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected, typename ksr::same<T>::type value, memory_order, memory_order, KSR_IN_LINE) {
    typedef typename ksr::word<sizeof(T)>::type bits;
    T wanted = *expected;
    T was = ksr::update(object, [wanted, value](T before) {
        return __builtin_bit_cast(bits, before) == __builtin_bit_cast(bits, wanted) ? value : before;
    }, ksr_line);
    *expected = was;
    return __builtin_bit_cast(bits, was) == __builtin_bit_cast(bits, wanted);
}

KSR_INLINE void atomic_thread_fence([[maybe_unused]] mem_flags fence, memory_order, thread_scope = thread_scope_device) {
#ifdef KSR_CHECKED
    if (uint(fence & mem_flags::mem_device)) ksr_fence_device();
#endif
#if !defined(KSR_COUNTED) && !defined(KSR_CHECKED)
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

}  // namespace metal
