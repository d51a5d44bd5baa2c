// The operating-system threads that run kernels. All are made before the sandbox is entered: after that none can be.
#pragma once

#include "abi.h"

constexpr ksr_u32 kMaxTeam = 256;

// Makes a team of (at most) `size`, the caller among them; each of the others calls `prepare` first, and all of them have
// when this returns. Returns how many there are.
ksr_u32 start_team(ksr_u32 size, void (*prepare)());

// Calls `work(i, context)` for each i below `count` (at most the team's size), in a thread of its own, 0 in the caller's;
// returns when all of them have.
void run_team(ksr_u32 count, void (*work)(ksr_u32, void*), void* context);
