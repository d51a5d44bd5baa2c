// Dynamic shared memory, loads and stores with a hint for a cache, and copies that a GPU does in the background.
#pragma once

// Runs on no fiber, so that nothing may ask there which thread it is.
#define KSR_UNWATCHED __attribute__((no_sanitize("thread", "alignment")))

namespace ksr {

#if defined(KSR_HAS_SHARED) && defined(__clang__)
// Makes the section of shared memory, also where only kernels that are not launched declare some.
KSR_THREADGROUP char section_of_shared_memory[16];
#endif

// Where dynamic shared memory begins in the block's: after what is declared with a size.
KSR_INLINE ksr_u32 dynamic_begin() {
#ifdef KSR_HAS_SHARED
    return (ksr_u32(ksr_threadgroup_end - storage_begin()) + 15) & ~15u;
#else
    return 0;
#endif
}
// What a block has besides dynamic shared memory; in the checked build that is followed by memory of nobody.
KSR_INLINE unsigned long declared_bytes() {
#ifdef KSR_CHECKED
    return dynamic_begin() + KSR_ZONE_BYTES;
#else
    return dynamic_begin();
#endif
}
template <class T> KSR_INLINE T* dynamic_shared([[maybe_unused]] const char* name) {
    ksr_worker* worker = ksr_here();
    ksr_u32 begin = dynamic_begin();
#ifdef KSR_CHECKED
    const ksr_declared declared = {begin, worker->dynamic_bytes, sizeof(T), sizeof(T), name};
    ksr_declare(&declared);
#endif
    return reinterpret_cast<T*>(worker->threadgroup_memory + begin);
}

// Gives constant memory the contents of an array.
template <class T> KSR_UNWATCHED inline void fill(T& constant, const void* from) {
    __builtin_memcpy(const_cast<void*>(static_cast<const volatile void*>(&constant)), from, sizeof(T));
}

}  // namespace ksr

// Variables outside of functions that can change have a section of their own: zeros are where shared memory is.
#if defined(__APPLE__)
#define KSR_GLOBAL __attribute__((section("__DATA,ksr_global")))
#else
#define KSR_GLOBAL __attribute__((section("ksr_global")))
#endif
#define KSR_CONSTANT const

#define KSR_LOAD(name) template <class T> KSR_INLINE T name(const T* at) { return *at; }
KSR_LOAD(__ldg)
KSR_LOAD(__ldca)
KSR_LOAD(__ldcg)
KSR_LOAD(__ldcs)
KSR_LOAD(__ldlu)
KSR_LOAD(__ldcv)
#undef KSR_LOAD
#define KSR_STORE(name) template <class T> KSR_INLINE void name(T* at, T value) { *at = value; }
KSR_STORE(__stwb)
KSR_STORE(__stcg)
KSR_STORE(__stcs)
KSR_STORE(__stwt)
#undef KSR_STORE

// Byte by byte, so that the checked build sees each access.
KSR_INLINE void* memcpy(void* to, const void* from, unsigned long bytes) {
    for (unsigned long i = 0; i < bytes; ++i) static_cast<uchar*>(to)[i] = static_cast<const uchar*>(from)[i];
    return to;
}
KSR_INLINE void* memset(void* to, int value, unsigned long bytes) {
    for (unsigned long i = 0; i < bytes; ++i) static_cast<uchar*>(to)[i] = uchar(value);
    return to;
}

// A copy that is done at once: what waits for it has nothing to wait for.
KSR_INLINE void __pipeline_memcpy_async(void* to, const void* from, unsigned long bytes, unsigned long zeros = 0) {
    if (bytes == 16 && !zeros) *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
    else if (bytes == 8 && !zeros) *static_cast<uint2*>(to) = *static_cast<const uint2*>(from);
    else if (bytes == 4 && !zeros) *static_cast<uint*>(to) = *static_cast<const uint*>(from);
    else
        for (unsigned long i = 0; i < bytes; ++i)
            static_cast<uchar*>(to)[i] = i + zeros < bytes ? static_cast<const uchar*>(from)[i] : uchar(0);
}
KSR_INLINE void __pipeline_commit() {}
KSR_INLINE void __pipeline_wait_prior(unsigned long) {}
