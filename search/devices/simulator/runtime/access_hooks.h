// Every name by which an instrumented build announces an access of a fixed size.
// Includes expand HOOK(name, bytes, is a write), which each kind of build defines in its own way first.
#define HOOKS(bytes)                                   \
    HOOK(read##bytes, bytes, false)                    \
    HOOK(write##bytes, bytes, true)                    \
    HOOK(unaligned_read##bytes, bytes, false)          \
    HOOK(unaligned_write##bytes, bytes, true)          \
    HOOK(volatile_read##bytes, bytes, false)           \
    HOOK(volatile_write##bytes, bytes, true)           \
    HOOK(unaligned_volatile_read##bytes, bytes, false) \
    HOOK(unaligned_volatile_write##bytes, bytes, true) \
    HOOK(read_write##bytes, bytes, true)               \
    HOOK(unaligned_read_write##bytes, bytes, true)

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

#undef HOOKS
#undef HOOK
