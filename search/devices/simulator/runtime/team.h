// The operating-system threads that run kernels. All are made before the sandbox is entered: after that none can be.
#pragma once

#include "abi.h"

constexpr ksr_u32 kMaxTeam = 256;

// The memory that a member's stack is in.
struct ThreadStack {
    void* begin;
    ksr_u64 bytes;
};

// Has a new thread, on `stack`, lead the team: it calls `work` once the caller makes no system calls any more that its
// creation takes. False when the system grants no thread.
bool lead_team(ThreadStack stack, void (*work)());

// Makes a team of (at most) `size`, the caller, who leads it, among them. Member i is on `stack_of(i)`; each but the caller
// calls `prepare` first, and all of them have when this returns. Returns how many there are.
ksr_u32 start_team(ksr_u32 size, ThreadStack (*stack_of)(ksr_u32), void (*prepare)());

// Calls `work(i, context)` for each i below `count` (at most the team's size), in a thread of its own, 0 in the caller's;
// returns when all of them have.
void run_team(ksr_u32 count, void (*work)(ksr_u32, void*), void* context);
