// How soon a simdgroup comes back to a cache line, which says what a first-level cache of any size would hold for it.
#pragma once

#include <string.h>

#include "abi.h"

// The lines that a simdgroup touched last, the latest first. A line's depth is how many others were touched since: a
// cache that drops the least recently used line holds it when it has more lines than that (R. L. Mattson et al.,
// "Evaluation techniques for storage hierarchies", 1970), so one walk counts for caches of every size.
struct ksr_reuse {
    struct Entry {
        ksr_u32 line;
        ksr_u32 deepest;  // that it has been since it was last written
    };

    ksr_u32 held;
    ksr_u32 expected;  // the depth of the line before: who walks in a circle finds every line at the same one
    Entry entry[KSR_REUSE_DEPTHS];

    // Moves a line to the front. Returns its depth: for a read where it was; for a write the deepest that it was since the
    // write before, as a cache that held it all the time writes it back once for both. KSR_REUSE_DEPTHS is never held.
    ksr_u32 touch(ksr_u32 line, bool write) {
        ksr_u32 at = expected;
        if (at >= held || entry[at].line != line)
            for (at = 0; at < held && entry[at].line != line;) ++at;
        ksr_u32 depth = at, since_write = KSR_REUSE_DEPTHS;
        if (at < held) {
            expected = at;
            since_write = entry[at].deepest > depth ? entry[at].deepest : depth;
        } else {
            depth = KSR_REUSE_DEPTHS;
            if (held < KSR_REUSE_DEPTHS)
                ++held;
            else
                --at;
        }
        memmove(entry + 1, entry, at * sizeof(Entry));
        entry[0] = {line, write ? 0 : since_write};
        return write ? since_write : depth;
    }
};
