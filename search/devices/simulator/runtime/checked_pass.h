// The checked mode as the runner and the scheduler call it.
#pragma once

#include "findings.h"
#include "job.h"
#include "scheduler.h"

// The size of what has a mark of its own, as a power of two: the narrowest access of the kernel that runs.
extern ksr_u32 ksr_element_bits;

// Makes `worker` check what it runs; device arrays lie between `begin` and `end`.
void ksr_prepare_checks(ksr_worker* worker, Findings* into, ksr_address begin, ksr_address end, bool shuffled);

// Watches the arrays that pass `number` takes.
void ksr_watch_arrays(const Job& job, const Pass& pass, ksr_u32 number, ksr_u32 element_bits);

// Runs threadgroups one after another, in an order that the seed chooses, for at most `seconds`; returns how many.
ksr_u64 ksr_check_pass(ksr_fiber_worker* fibers, const ksr_launch* launch, ksr_u64 total, double seconds);
