// Linked into a kernel that is compiled with -fsanitize=thread, in place of that sanitizer's runtime: each access of the
// kernel calls one of these, which logs it when it touches counted memory.
#include "abi.h"

namespace {

KSR_INLINE void log(void* where, ksr_u32 bytes, bool write, void* instruction) {
    ksr_worker* worker = ksr_here();
    ksr_address address = reinterpret_cast<ksr_address>(where);
    bool counted = (address >= worker->device_begin && address < worker->device_end) ||
                   (address >= worker->threadgroup_begin && address < worker->threadgroup_end);
    if (!counted) return;
    ksr_u32 lane = worker->lane;
    ksr_u64 tag = reinterpret_cast<ksr_address>(instruction) << 8 | bytes << 1 | write;
    worker->log[lane * KSR_LOG_STRIDE + worker->logged[lane]++] = {tag, address};
    if (worker->logged[lane] == KSR_WINDOW) worker->runtime->pause(worker);
}

// Long runs of bytes (an array copied whole) count as 16-byte accesses.
KSR_INLINE void log_range(void* where, ksr_u64 bytes, bool write, void* instruction) {
    for (ksr_u64 done = 0; done < bytes; done += 16)
        log(static_cast<char*>(where) + done, bytes - done < 16 ? ksr_u32(bytes - done) : 16, write, instruction);
}

}  // namespace

#define HOOK(name, bytes, write) \
    extern "C" void __tsan_##name(void* where) { log(where, bytes, write, __builtin_return_address(0)); }
#include "access_hooks.h"

extern "C" void __tsan_read_range(void* where, unsigned long bytes) {
    log_range(where, bytes, false, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void* where, unsigned long bytes) {
    log_range(where, bytes, true, __builtin_return_address(0));
}

// What clang calls where it copies or fills memory whole.
extern "C" void* memcpy(void* to, const void* from, unsigned long bytes);
extern "C" void* memmove(void* to, const void* from, unsigned long bytes);
extern "C" void* memset(void* to, int value, unsigned long bytes);
extern "C" void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
    log_range(const_cast<void*>(from), bytes, false, __builtin_return_address(0));
    log_range(to, bytes, true, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}
extern "C" void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
    log_range(const_cast<void*>(from), bytes, false, __builtin_return_address(0));
    log_range(to, bytes, true, __builtin_return_address(0));
    return memmove(to, from, bytes);
}
extern "C" void* __tsan_memset(void* to, int value, unsigned long bytes) {
    log_range(to, bytes, true, __builtin_return_address(0));
    return memset(to, value, bytes);
}

extern "C" void __tsan_vptr_read(void*) {}
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
