// What a pass moved: from the accesses of single lanes to those of simdgroups, as a GPU makes them.
#pragma once

#include "abi.h"

// A device array that is counted, and which of its lines were touched (null where only some threadgroups run).
struct ksr_counted_array {
    ksr_address begin, end;
    bool read, written;
    ksr_u8* read_lines;
    ksr_u8* written_lines;
};

struct ksr_counting {
    ksr_u32 line_bits;   // a cache line has 2^line_bits bytes
    ksr_u32 block_bits;  // a core's first-level cache moves 2^block_bits bytes of one line in a cycle
    ksr_u32 arrays;
    ksr_counted_array* array;
};

// Sets what ksr_flush_log counts against.
void ksr_count_with(ksr_counting* counting);
// Empties the first-level caches: another threadgroup starts.
void ksr_forget_lines();
