#include "kernel.h"

#include <dlfcn.h>

#include "process.h"

Kernel load_kernel(const Pass& pass) {
    void* library = dlopen(pass.path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fault(kNotLoaded);
    Kernel kernel = {};
    kernel.entry = reinterpret_cast<ksr_entry>(dlsym(library, "ksr_kernel"));
    kernel.declare = reinterpret_cast<unsigned long (*)()>(dlsym(library, "ksr_threadgroup_bytes"));
    kernel.fill = reinterpret_cast<void (*)(void* const*)>(dlsym(library, "ksr_fill"));
    if (!kernel.entry || !kernel.declare) fault(kNotLoaded);
    if (job.count) {
        kernel.block_counts = static_cast<ksr_u64*>(dlsym(library, "ksr_block_counts"));
        kernel.block_weights = static_cast<ksr_u32*>(dlsym(library, "ksr_block_weights"));
        auto blocks = static_cast<const ksr_u32*>(dlsym(library, "ksr_blocks"));
        if (!kernel.block_counts || !kernel.block_weights || !blocks) fault(kNotLoaded);
        kernel.blocks = *blocks;
    }
    if (job.check) {
        kernel.zones = reinterpret_cast<unsigned long (*)()>(dlsym(library, "ksr_zone_bytes"));
        kernel.element_bits = static_cast<const ksr_u32*>(dlsym(library, "ksr_element_bits"));
        if (!kernel.element_bits) fault(kNotLoaded);
    }
    return kernel;
}
