// The last wall around a kernel: what the process may still ask of the system once everything is mapped and loaded.
#pragma once

#include "abi.h"

// The most memory that this process may take for itself from now on, in bytes, where the system can hold it to that
// (Linux: private memory that can be written). Arrays in the shared file don't count.
void limit_memory(ksr_u64 bytes);

// Gives up, for good and for every thread: files (none stays open), processes, threads, the network, signals, code that
// is not loaded yet. What is left is to compute, to take memory without code in it, to read the clock, to wait for threads of
// this process, and to end. Returns 0, or the error number of the system that refused.
int enter_sandbox();

// What a process inside gets for a system call that it may not make is SIGSYS: the call's number from the signal's
// siginfo_t, and its name in at most 16 characters, not terminated (zeros where it is not one of the better known).
// The number is -1 for calls of another architecture's table, and where the system tells none.
struct RefusedCall {
    ksr_i64 number;
    char name[16];
};
RefusedCall refused_call(const void* siginfo);
