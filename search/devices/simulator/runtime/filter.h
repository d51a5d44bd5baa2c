// A program for Linux's system-call filter, written front to back.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "abi.h"

#if defined(__x86_64__)
constexpr ksr_u32 kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr ksr_u32 kArchitecture = AUDIT_ARCH_AARCH64;
#endif

struct Filter {
    sock_filter code[96];
    unsigned short length;

    void add(ksr_u32 operation, ksr_u32 value, ksr_u8 if_true = 0, ksr_u8 if_false = 0) {
        code[length++] = {static_cast<unsigned short>(operation), if_true, if_false, value};
    }
    void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, ksr_u32(offset)); }
    // The low half of an argument: every value that is asked about fits into it.
    void load_argument(int index) { load(offsetof(seccomp_data, args) + 8 * size_t(index)); }
    void end(ksr_u32 action) { add(BPF_RET | BPF_K, action); }
    // The next `count` instructions only run when what was loaded is (or, has bits of) `value`.
    void when_equal(ksr_u32 value, ksr_u8 count) { add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count); }
    void when_any_bit(ksr_u32 bits, ksr_u8 count) { add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, count); }
};
