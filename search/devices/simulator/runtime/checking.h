// The checked mode: who touched each element of the memory that threads share, so that an access which nothing orders
// against another is found when it happens. The fast path is linked into the kernel (watching.cc), what happens once a
// barrier or once a fault is the runner's (checking.cc).
#pragma once

#include "abi.h"
#include "scheduler.h"

// A mark says who made an access: epoch (22 bits) | thread (10) | simdgroup stamp (16) | place (14) | kind (2).
// Epochs count the barriers of all threadgroups one after another, so an epoch also says which threadgroup it was in.
// Stamps count the operations of a simdgroup since the barrier. A place is a line, or, from KSR_PLACES on, the number of
// a line together with the calls that led to it.
constexpr ksr_u32 KSR_EPOCH_AT = 42, KSR_THREAD_AT = 32, KSR_STAMP_AT = 16, KSR_PLACE_AT = 2;
constexpr ksr_u32 KSR_PLACES = 1u << 13, KSR_MOST_LINE = KSR_PLACES - 1, KSR_MOST_STAMP = (1u << 16) - 1;
constexpr ksr_u64 KSR_MOST_EPOCH = (1ull << 22) - 2;
constexpr ksr_u64 KSR_ATOMIC = 1;
constexpr ksr_u64 KSR_NOBODYS = ~0ull;  // the writer of memory that belongs to no array

// The last write of one element, and reads since: two are enough to tell whether any write is unordered with a read.
struct ksr_cell {
    ksr_u64 writer, reader, other;
};

enum ksr_space : ksr_u32 { KSR_DEVICE = 0, KSR_SHARED = 1 };

// A device array; `cells` is null where nobody may write.
struct ksr_watched {
    ksr_address begin;
    ksr_u64 bytes;
    ksr_u32 number;
    ksr_cell* cells;
};

constexpr ksr_u32 KSR_MOST_DECLARED = 64;
constexpr ksr_u32 KSR_WINDOW_BITS = 36;  // narrower than the guard between arrays: a window sees at most one
constexpr ksr_u32 KSR_WINDOWS = 4096;

// How the lanes of one simdgroup have met since the barrier.
struct ksr_meetings {
    ksr_u32 operations;  // stamp of the latest
    ksr_u32 all;         // what is stamped lower came before an operation that every lane took part in
    bool some;           // an operation of only some lanes has been; then `met` counts too
    ksr_u16 met[KSR_SIMD_WIDTH][KSR_SIMD_WIDTH];  // [a][b]: what b did and is stamped lower came before what a does now
};

enum ksr_conflict : ksr_u32 { KSR_WRITE_WRITE = 0, KSR_WRITE_READ = 1, KSR_READ_WRITE = 2 };  // earlier, later

struct ksr_watch {
    ksr_address device_begin, device_span, shared_begin, shared_span;
    ksr_watched* window[KSR_WINDOWS];
    ksr_address shared_memory;  // where threadgroup memory begins
    ksr_u32 shared_bytes;
    ksr_cell* shared_cells;
    ksr_u64 first[2];  // the epoch, in place, with which this threadgroup began
    ksr_u64 pass_first;  // device accesses of epochs before it are ordered before all that follows
    ksr_u64 identity[2][KSR_MAX_THREADS];  // the mark of each thread but for its line
    ksr_meetings meetings[KSR_MAX_SIMDGROUPS];
    ksr_u32 arrays;
    ksr_declared array[KSR_MOST_DECLARED];
    ksr_u32 unsettled;  // findings whose value after the access is not known yet
    bool shuffled;      // a seed chooses the order: lanes let others go first at atomic operations

    void (*declare)(ksr_worker*, const ksr_declared*);
    ksr_u32 (*place)(ksr_worker*, ksr_u32 line);  // of an access that the running lane makes within calls
    void (*settle)(ksr_worker*);
    void (*race)(ksr_worker*, ksr_space, ksr_conflict, ksr_u64 earlier, ksr_u64 later, ksr_address, ksr_u32 bytes);
    void (*outside)(ksr_worker*, ksr_space, ksr_address, ksr_u32 bytes, bool write, ksr_u32 line);
    void (*unwritten)(ksr_worker*, ksr_address, ksr_u32 bytes, ksr_u32 line);
    void (*index)(ksr_worker*, ksr_i64 index, const char* array, ksr_u32 line);  // past an array of this type
    void (*misaligned)(ksr_worker*, ksr_address, ksr_u32 alignment, ksr_u32 line);
    void (*absent_lane)(ksr_worker*, ksr_u32 lane, ksr_u32 from, ksr_u64 site);
    void (*absent_named)(ksr_worker*, ksr_u32 lane, ksr_u32 named, ksr_u32 active, ksr_u64 site);
};

KSR_INLINE ksr_u32 ksr_thread_of(ksr_u64 mark) { return ksr_u32(mark >> KSR_THREAD_AT) & (KSR_MAX_THREADS - 1); }
KSR_INLINE ksr_u32 ksr_place_of_mark(ksr_u64 mark) { return ksr_u32(mark >> KSR_PLACE_AT) & (2 * KSR_PLACES - 1); }
KSR_INLINE ksr_u32 ksr_stamp_of(ksr_u64 mark) { return ksr_u32(mark >> KSR_STAMP_AT) & KSR_MOST_STAMP; }
