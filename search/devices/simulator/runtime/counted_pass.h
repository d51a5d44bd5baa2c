// The counted mode as the runner calls it.
#pragma once

#include "kernel.h"

// Makes the first worker log what it runs; device arrays lie between `begin` and `end`.
void prepare_counting(ksr_address begin, ksr_address end);

// Counts a sample of a pass's `total` threadgroups, as large as the job's budget allows.
void count_pass(const Pass& pass, const Kernel& kernel, const ksr_launch& launch, ksr_u64 total, PassReport* into);
