#include "calls.h"

namespace {

constexpr ksr_u64 kPlaceMask = (ksr_u64(1) << KSR_PATH_AT) - 1;
constexpr ksr_u32 kBuckets = 2 * KSR_MOST_PATHS;

ksr_u32 bucket_of(ksr_u32 path, ksr_u64 place) {
    return ksr_u32((place + path * 0x2545F4914F6CDD1Dull) * 0x9E3779B97F4A7C15ull >> 40) % kBuckets;
}

// Steps back along a path; *at becomes the place of the call that is left behind.
void step_back(const ksr_paths* paths, ksr_u32* path, ksr_u64* at) {
    *at = paths->place[*path];
    *path = paths->before[*path];
}

}  // namespace

ksr_u32 ksr_longer_path(ksr_paths* paths, ksr_u32 path, ksr_u64 place) {
    ksr_u32 bucket = bucket_of(path, place);
    for (ksr_u32 known; (known = paths->bucket[bucket]); bucket = (bucket + 1) % kBuckets)
        if (paths->before[known] == path && paths->place[known] == place) return known;
    if (paths->count + 1 == KSR_MOST_PATHS) return path;
    ksr_u32 fresh = ++paths->count;
    paths->before[fresh] = path;
    paths->depth[fresh] = paths->depth[path] + 1;
    paths->place[fresh] = place;
    paths->bucket[bucket] = ksr_u16(fresh);
    return fresh;
}

bool ksr_earlier(const ksr_paths* paths, ksr_u64 a, ksr_u64 b) {
    if (a >= KSR_NOWHERE || b >= KSR_NOWHERE) return a < b;
    ksr_u32 way_a = ksr_path_of_site(a), way_b = ksr_path_of_site(b);
    ksr_u64 at_a = a & kPlaceMask, at_b = b & kPlaceMask;
    while (way_a != way_b) {
        ksr_u32 depth_a = paths->depth[way_a], depth_b = paths->depth[way_b];
        if (depth_a >= depth_b) step_back(paths, &way_a, &at_a);
        if (depth_b >= depth_a) step_back(paths, &way_b, &at_b);
    }
    return at_a != at_b ? at_a < at_b : a < b;  // equal where a macro's uses are told apart by nothing
}

ksr_trail ksr_trail_of(const ksr_paths* paths, ksr_u32 path, ksr_u32 line) {
    ksr_trail trail = line;
    for (ksr_u32 shift = KSR_TRAIL_BITS; path && shift < 3 * KSR_TRAIL_BITS; shift += KSR_TRAIL_BITS) {
        trail |= ksr_trail(ksr_line_of_site(paths->place[path])) << shift;
        path = paths->before[path];
    }
    return trail;
}
