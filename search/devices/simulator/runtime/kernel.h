// A compiled pass.
#pragma once

#include "job.h"
#include "scheduler.h"

// What was loaded of one pass.
struct Kernel {
    ksr_entry entry;
    unsigned long (*declare)();  // returns the bytes of threadgroup memory
    unsigned long (*zones)();    // returns how many of them are nobody's (checked mode; null where there are none)
    void (*fill)(void* const*);  // gives the kernel's constants their values from its buffers; null where it has none
    ksr_u32 threadgroup_bytes;
    ksr_u64* block_counts;  // how often each basic block ran (counted mode)
    const ksr_u32* block_weights;
    ksr_u32 blocks;
    const ksr_u32* element_bits;  // the narrowest access (checked mode)
};

// Only finds what was compiled: none of it runs before the sandbox is entered (that nothing in the library runs by being
// loaded was seen to when it was built).
Kernel load_kernel(const Pass& pass);
