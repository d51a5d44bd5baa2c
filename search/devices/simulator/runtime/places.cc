#include "places.h"

#include <stdlib.h>

namespace {

constexpr ksr_u32 kBuckets = 2 * KSR_PLACES;

struct Places {
    ksr_u32 count;
    ksr_line_and_path at[KSR_PLACES];
    ksr_u16 bucket[kBuckets];  // numbers from 1
};
Places* places;

}  // namespace

bool ksr_prepare_places() {
    places = static_cast<Places*>(calloc(1, sizeof(Places)));
    return places;
}

ksr_u32 ksr_place_with_calls(ksr_u32 path, ksr_u32 line) {
    ksr_u32 number = ((path * 0x9E3779B1u) ^ (line * 0x85EBCA77u)) >> 8;
    for (;; ++number) {
        ksr_u16& bucket = places->bucket[number % kBuckets];
        if (!bucket) {
            if (places->count == KSR_PLACES) return line;
            places->at[places->count] = {line, path};
            bucket = ksr_u16(++places->count);
        }
        const ksr_line_and_path& known = places->at[bucket - 1];
        if (known.line == line && known.path == path) return KSR_PLACES + bucket - 1;
    }
}

ksr_line_and_path ksr_line_and_path_of(ksr_u32 place) {
    return place < KSR_PLACES ? ksr_line_and_path{place, 0} : places->at[place - KSR_PLACES];
}
