// The ways of calls on which lanes come to their operations. A helper that is called from several places stands in one
// place of the source; with the calls before it, each of its operations is as many as the hardware runs.
#pragma once

#include "abi.h"

// A tree: each path is the one before it and a call more. Path 0 has no calls.
struct ksr_paths {
    ksr_u32 count;  // besides path 0
    ksr_u32 before[KSR_MOST_PATHS], depth[KSR_MOST_PATHS];
    ksr_u64 place[KSR_MOST_PATHS];    // of the latest call
    ksr_u16 bucket[2 * KSR_MOST_PATHS];
};

// The path that a call in `place` makes of `path`; once there is no room for another, the same path.
ksr_u32 ksr_longer_path(ksr_paths* paths, ksr_u32 path, ksr_u64 place);

// Whether site `a` comes before `b` in the source: where their ways part, the earlier line (column, kind) decides.
bool ksr_earlier(const ksr_paths* paths, ksr_u64 a, ksr_u64 b);

// A line and those that led to it, 20 bits each: the line, the one that called from, the one that called that, 0 for
// none. What a report says of a place.
typedef ksr_u64 ksr_trail;
constexpr ksr_u32 KSR_TRAIL_BITS = 20;
ksr_trail ksr_trail_of(const ksr_paths* paths, ksr_u32 path, ksr_u32 line);

KSR_INLINE ksr_u32 ksr_line_of_site(ksr_u64 site) {
    return ksr_u32(site >> KSR_LINE_AT) & ((1u << (KSR_PATH_AT - KSR_LINE_AT)) - 1);
}
KSR_INLINE ksr_u32 ksr_path_of_site(ksr_u64 site) { return ksr_u32(site >> KSR_PATH_AT) % KSR_MOST_PATHS; }
