// What the runner is asked to do, and where it writes what came of it. search/devices/simulator/job.py is the other end.
#pragma once

#include "findings.h"

constexpr ksr_u32 kMaxArrays = 256, kMaxPasses = 32, kMaxBuffers = 64, kMaxPath = 4096;
constexpr ksr_u32 kKinds = 16;  // kinds of counted arithmetic: FLOPs and special functions

// An array lies in the shared file with a pad before and after it.
struct Array {
    ksr_u64 offset, bytes;  // of the array itself; the pads are kPadBytes before, and up to a whole page after
    bool writable, constant;
    ksr_u8* at;
};

struct Pass {
    ksr_uint3 grid, group;
    ksr_u32 dynamic_bytes;  // of threadgroup memory, besides what the kernel declares
    ksr_u32 buffers;
    ksr_u32 buffer[kMaxBuffers];
    char path[kMaxPath];
};

// On pages of its own, which are read-only while kernels run.
struct alignas(16 << 10) Job {
    bool count;
    ksr_u32 workers, seconds, line_bits, block_bits, memory_limit;  // lines of 2^line_bits bytes
    bool check;
    ksr_u64 seed;          // of the order in which threads run while checking
    bool in_turns;         // simdgroups take turns at their operations
    ksr_u32 milliseconds;  // that checking a pass may take
    ksr_u64 budget;  // counted accesses and basic blocks to spend on one pass
    ksr_u32 arrays, passes;
    Array array[kMaxArrays];
    Pass pass[kMaxPasses];
};

constexpr ksr_u64 kPadBytes = 16 << 10;

enum State : ksr_u64 { kRunning = 1, kDone = 2, kFault = 3 };

enum FaultKind : ksr_u64 {
    kOutOfBounds = 1,         // array, byte, 1 read 2 write 0 unknown
    kOutsideEverything = 2,
    kThreadgroupOverrun = 3,  // byte
    kStackOverflow = 4,
    kArithmetic = 5,
    kIllegal = 6,
    kDiverged = 7,            // what, place, other place (ksr_trail), threads waiting, missing, a thread, another thread
    kTooMuchMemory = 8,       // bytes declared
    kNotLoaded = 9,
    kOutOfMemory = 10,
    kRefusedCall = 11,        // number of the system call, its name in 16 bytes
    kNoSandbox = 12,          // error number
    kAssertion = 13,          // line, thread, its threadgroup's position in x, y and z
    kThreadElsewhere = 14,    // what the system keeps of a thread is not where the thread's stack is
};

// Counts of one pass, over the threadgroups that ran.
struct PassReport {
    ksr_u64 threadgroups, sampled, threads, threadgroup_bytes;
    ksr_u64 footprint_read, footprint_written;
    ksr_counters counters;
    ksr_u64 kinds[kKinds];
};

struct Report {
    ksr_u64 state, pass, kind;
    ksr_i64 detail[8];
    PassReport counts[kMaxPasses];
    Findings findings;
};

// Reads a job from a stream of lines; false when it is not one.
bool read_job(Job* job);
