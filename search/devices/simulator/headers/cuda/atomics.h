// Atomics on plain memory, and fences.
#pragma once

namespace ksr {

template <class T, class F> KSR_INLINE T updated(T* at, F f, uint line) { return update(static_cast<volatile T*>(at), f, line); }

}  // namespace ksr

#define KSR_ATOMIC(name, T, expression)                                                                                \
    KSR_INLINE T atomic##name(T* at, T value, KSR_IN_LINE) {                                                           \
        return ksr::updated(at, [value](T was) { return static_cast<T>(expression); }, ksr_line);                                   \
    }                                                                                                                  \
    KSR_INLINE T atomic##name##_block(T* at, T value, KSR_IN_LINE) { return atomic##name(at, value, ksr_line); }       \
    KSR_INLINE T atomic##name##_system(T* at, T value, KSR_IN_LINE) { return atomic##name(at, value, ksr_line); }
#define KSR_ATOMIC_WORD(name, expression)                                                                              \
    KSR_ATOMIC(name, int, expression)                                                                                  \
    KSR_ATOMIC(name, unsigned int, expression)
#define KSR_ATOMIC_WORDS(name, expression)                                                                             \
    KSR_ATOMIC_WORD(name, expression)                                                                                  \
    KSR_ATOMIC(name, long long, expression)                                                                            \
    KSR_ATOMIC(name, unsigned long long, expression)
KSR_ATOMIC_WORD(Add, unsigned(was) + unsigned(value))
KSR_ATOMIC(Add, unsigned long long, was + value)
KSR_ATOMIC(Add, float, was + value)
KSR_ATOMIC(Add, double, was + value)
KSR_ATOMIC(Add, half, was + value)
KSR_ATOMIC(Add, half2, was + value)
KSR_ATOMIC(Add, __nv_bfloat16, was + value)
KSR_ATOMIC(Add, __nv_bfloat162, was + value)
KSR_ATOMIC_WORD(Sub, unsigned(was) - unsigned(value))
KSR_ATOMIC_WORDS(Min, value < was ? value : was)
KSR_ATOMIC_WORDS(Max, was < value ? value : was)
KSR_ATOMIC_WORDS(And, was & value)
KSR_ATOMIC_WORDS(Or, was | value)
KSR_ATOMIC_WORDS(Xor, was ^ value)
KSR_ATOMIC_WORD(Exch, value)
KSR_ATOMIC(Exch, unsigned long long, value)
KSR_ATOMIC(Exch, float, value)
KSR_ATOMIC(Inc, unsigned int, was >= value ? 0 : was + 1)
KSR_ATOMIC(Dec, unsigned int, was == 0 || was > value ? value : was - 1)
#undef KSR_ATOMIC_WORDS
#undef KSR_ATOMIC_WORD
#undef KSR_ATOMIC

#define KSR_ATOMIC_CAS(T)                                                                                              \
    KSR_INLINE T atomicCAS(T* at, T wanted, T value, KSR_IN_LINE) {                                                    \
        return ksr::updated(at, [wanted, value](T was) { return was == wanted ? value : was; }, ksr_line);             \
    }
KSR_ATOMIC_CAS(int)
KSR_ATOMIC_CAS(unsigned int)
KSR_ATOMIC_CAS(unsigned long long)
KSR_ATOMIC_CAS(unsigned short)
#undef KSR_ATOMIC_CAS

KSR_INLINE void __threadfence() { metal::atomic_thread_fence(metal::mem_flags::mem_device, metal::memory_order_seq_cst); }
KSR_INLINE void __threadfence_system() { __threadfence(); }
KSR_INLINE void __threadfence_block() { metal::atomic_thread_fence(metal::mem_flags::mem_threadgroup, metal::memory_order_seq_cst); }
