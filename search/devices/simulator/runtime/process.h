// What the parts of the runner share: the job, where the report goes, and how a run ends that went wrong.
#pragma once

#include "job.h"
#include "scheduler.h"
#include "team.h"

extern Job job;
extern Report* report;
extern ksr_fiber_worker* workers[kMaxTeam];
extern const ksr_runtime runtime;  // mathematics.cc

// Ends the process with a report; the first fault is the one that is told.
[[noreturn]] void fault(FaultKind kind, ksr_i64 a = 0, ksr_i64 b = 0, ksr_i64 c = 0, ksr_i64 d = 0, ksr_i64 e = 0,
                        ksr_i64 f = 0, ksr_i64 g = 0);
[[noreturn]] void fail_assertion(ksr_worker* worker, ksr_u32 line);

// From here on what a kernel does wrong, as the processor notices it, becomes a fault with words. Each thread needs a
// stack of its own for that.
void catch_faults();
void use_signal_stack();

// Addresses that stay unmapped between two arrays: a 32-bit index of a float4 that went below zero stays within.
constexpr ksr_u64 kArrayGuard = ksr_u64(1) << 37;

// Maps the arrays, the constant ones last, each with wide guards of unmapped addresses. Returns the range that is
// watched: all in checked mode, else that of device memory.
void map_arrays(int file, ksr_address* begin, ksr_address* end);
ksr_u64 to_page(ksr_u64 bytes);
