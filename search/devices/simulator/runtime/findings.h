// What the checked mode found, as it lies in the shared file after the report. checking.py is the other end.
#pragma once

#include "abi.h"

constexpr ksr_u32 kMaxFindings = 64;

enum FindingKind : ksr_u64 {
    kRace = 1,        // detail: what the earlier and the later access did (ksr_conflict)
    kOutside = 2,     // detail: is a write
    kUnwritten = 3,
    kMisaligned = 4,  // detail: the alignment that it needs
    kAbsentLane = 5,  // detail: the lane that was asked; other_thread: lanes that live
    kPartial = 6,     // detail: lanes that took part, a bit each; other_thread: lanes that live
    kReturned = 7,    // a barrier; detail: threads that had returned; other_thread: one of them
    kNamed = 8,       // detail: lanes that an operation's mask names; other_thread: lanes that came
    kIndex = 9,       // past an array that is no memory of its own here: a private one, a table, a row; byte: the index
};

// `line` and `other_line` have the calls that led there too (ksr_trail in calls.h).
// An index past an array has the array's type as its name.
// An array of threadgroup memory has a name here and `array` below 0; a device array has its number in the job.
struct Finding {
    ksr_u64 kind, pass, line, other_line, thread, other_thread, group, other_group, detail;
    ksr_i64 array;
    ksr_i64 byte;
    ksr_u64 bytes, array_bytes, element_bytes, row_bytes;
    ksr_u64 before, after, settled;  // the value that lay there and the one that replaced it (write after write)
    ksr_u64 unfenced;                // a barrier stood between them that did not order this memory: its line, likewise
    char name[40];
};

struct Findings {
    ksr_u64 count, groups_run, groups;
    Finding finding[kMaxFindings];
};
