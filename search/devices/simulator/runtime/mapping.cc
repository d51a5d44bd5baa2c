#include <sys/mman.h>

#include "process.h"

ksr_u64 to_page(ksr_u64 bytes) { return (bytes + kPadBytes - 1) / kPadBytes * kPadBytes; }

void map_arrays(int file, ksr_address* begin, ksr_address* end) {
    ksr_u64 total = kArrayGuard + kPadBytes;
    for (ksr_u32 i = 0; i < job.arrays; ++i) total += to_page(job.array[i].bytes) + 2 * kPadBytes + kArrayGuard;
    void* reserved = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) fault(kOutOfMemory);
    ksr_address at = to_page(reinterpret_cast<ksr_address>(reserved));
    *begin = at;
    for (int constant = 0; constant < 2; ++constant) {
        for (ksr_u32 i = 0; i < job.arrays; ++i) {
            Array& array = job.array[i];
            if (array.constant != constant) continue;
            at += kArrayGuard;
            ksr_u64 bytes = to_page(array.bytes) + 2 * kPadBytes;
            int protection = array.writable ? PROT_READ | PROT_WRITE : PROT_READ;
            void* mapped = mmap(reinterpret_cast<void*>(at), bytes, protection, MAP_SHARED | MAP_FIXED, file,
                                off_t(array.offset - kPadBytes));
            if (mapped == MAP_FAILED) fault(kOutOfMemory);
            array.at = reinterpret_cast<ksr_u8*>(at + kPadBytes);
            at += bytes;
        }
        if (!constant || job.check) *end = at + kArrayGuard;
    }
}
