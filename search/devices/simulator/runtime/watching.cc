// Linked into a kernel that is compiled with -fsanitize=thread, in place of that sanitizer's runtime: each access of the
// kernel calls one of these, with the line that it stands in (checking.py adds it), before it happens.
//
// KSR_ELEMENT_BITS is the size of what has a mark of its own: the narrowest access of this kernel.
#include "checking.h"

namespace {

constexpr ksr_u32 kBits = KSR_ELEMENT_BITS;

KSR_INLINE ksr_u64 epoch_of(ksr_u64 mark) { return mark >> KSR_EPOCH_AT; }

// The same as `unordered` for two accesses of one epoch.
bool unordered_since_barrier(const ksr_watch* watch, ksr_u64 before, ksr_u64 now) {
    ksr_u32 a = ksr_thread_of(before), b = ksr_thread_of(now);
    if (a == b) return false;
    if (a / KSR_SIMD_WIDTH != b / KSR_SIMD_WIDTH) return true;
    const ksr_meetings& meetings = watch->meetings[a / KSR_SIMD_WIDTH];
    ksr_u32 stamp = ksr_stamp_of(before);
    if (stamp < meetings.all) return false;
    return !meetings.some || stamp >= meetings.met[b % KSR_SIMD_WIDTH][a % KSR_SIMD_WIDTH];
}

// Whether nothing orders the access `before` ahead of the one that `now` marks.
KSR_INLINE bool unordered(const ksr_watch* watch, ksr_space space, ksr_u64 before, ksr_u64 now) {
    if (epoch_of(before) == epoch_of(now)) return unordered_since_barrier(watch, before, now);
    return space == KSR_DEVICE && before >= watch->pass_first && before < watch->first[space];
}

KSR_INLINE bool elsewhere(ksr_u64 a, ksr_u64 b) { return (a ^ b) >> KSR_THREAD_AT; }

// Keeps two reads such that any write that is unordered with some read is unordered with one of them.
__attribute__((noinline)) void note_reader(const ksr_watch* watch, ksr_space space, ksr_cell* cell, ksr_u64 now) {
    if (!unordered(watch, space, cell->reader, now)) {
        cell->reader = now;
        return;
    }
    if (!unordered(watch, space, cell->other, now)) {
        cell->other = now;
        return;
    }
    // Three that are unordered: the two that stand farthest apart stay.
    ksr_u64 first = watch->first[space];
    ksr_u32 simdgroup = ksr_thread_of(cell->reader) / KSR_SIMD_WIDTH;
    bool together = cell->other >= first && simdgroup == ksr_thread_of(cell->other) / KSR_SIMD_WIDTH;
    if (cell->reader < first || (together && simdgroup != ksr_thread_of(now) / KSR_SIMD_WIDTH)) cell->other = now;
}

// Whether an access of this epoch is in another simdgroup than `now`, or with no simdgroup operation in between.
KSR_INLINE bool plainly_unordered(ksr_u64 before, ksr_u64 now) {
    constexpr ksr_u32 kSimdgroupAt = KSR_THREAD_AT + __builtin_ctz(KSR_SIMD_WIDTH);
    ksr_u64 difference = before ^ now;
    return difference >> kSimdgroupAt || !ksr_stamp_of(difference);
}

// Whether `note_reader` would leave both as they are: what many simdgroups read comes here again and again.
KSR_INLINE bool stay_readers(const ksr_cell* cell, ksr_u64 now) {
    ksr_u64 reader = cell->reader, other = cell->other;
    if (epoch_of(reader) != epoch_of(now) || epoch_of(other) != epoch_of(now)) return false;
    bool together = ksr_thread_of(reader ^ other) < KSR_SIMD_WIDTH, joins = ksr_thread_of(reader ^ now) < KSR_SIMD_WIDTH;
    return (!together || joins) && plainly_unordered(reader, now) && plainly_unordered(other, now);
}

KSR_INLINE void read_cell(ksr_worker* worker, ksr_watch* watch, ksr_space space, ksr_cell* cell, ksr_u64 now,
                          ksr_address address) {
    ksr_u64 writer = cell->writer;
    if (elsewhere(writer, now) && !(writer & now & KSR_ATOMIC) && unordered(watch, space, writer, now))
        watch->race(worker, space, KSR_WRITE_READ, writer, now, address, 1u << kBits);
    if (!elsewhere(cell->reader, now)) {
        cell->reader = now;
    } else if (!stay_readers(cell, now)) {
        note_reader(watch, space, cell, now);
    }
}

KSR_INLINE void write_cell(ksr_worker* worker, ksr_watch* watch, ksr_space space, ksr_cell* cell, ksr_u64 now,
                           ksr_address address) {
    ksr_u64 writer = cell->writer, reader = cell->reader, other = cell->other;
    if (elsewhere(writer, now) && !(writer & now & KSR_ATOMIC) && unordered(watch, space, writer, now))
        watch->race(worker, space, KSR_WRITE_WRITE, writer, now, address, 1u << kBits);
    else if (elsewhere(reader, now) && !(reader & now & KSR_ATOMIC) && unordered(watch, space, reader, now))
        watch->race(worker, space, KSR_READ_WRITE, reader, now, address, 1u << kBits);
    else if (elsewhere(other, now) && !(other & now & KSR_ATOMIC) && unordered(watch, space, other, now))
        watch->race(worker, space, KSR_READ_WRITE, other, now, address, 1u << kBits);
    cell->writer = now;
    cell->reader = cell->other = 0;
}

KSR_INLINE ksr_u64 mark(ksr_worker* worker, const ksr_watch* watch, ksr_space space, ksr_u32 line) {
    const ksr_simdgroup* group = worker->simdgroup;
    ksr_u32 place = line < KSR_MOST_LINE ? line : KSR_MOST_LINE;
    if (group->path[worker->lane]) place = watch->place(worker, place);
    return watch->identity[space][group->first_thread + worker->lane] | ksr_u64(place) << KSR_PLACE_AT;
}

// A vector of three has room for four: the fourth quarter of a wide access may be nobody's.
bool is_padding(ksr_u32 i, ksr_u32 cells) { return cells >= 4 && i >= cells - cells / 4; }

KSR_INLINE void touch_shared(ksr_worker* worker, ksr_watch* watch, ksr_address address, ksr_u32 bytes, bool write,
                             ksr_u64 atomic, ksr_u32 line) {
    ksr_u64 offset = address - watch->shared_memory;
    if (offset >= watch->shared_bytes || watch->shared_bytes - offset < bytes) {
        watch->outside(worker, KSR_SHARED, address, bytes, write, line);
        return;
    }
    ksr_u64 now = mark(worker, watch, KSR_SHARED, line) | atomic;
    ksr_cell* cells = watch->shared_cells + (offset >> kBits);
    ksr_u32 count = ksr_u32(((offset + bytes - 1) >> kBits) - (offset >> kBits) + 1);
    for (ksr_u32 i = 0; i < count; ++i) {
        ksr_u64 writer = cells[i].writer;
        ksr_address at = address + (ksr_address(i) << kBits);
        if (writer == KSR_NOBODYS) {
            watch->outside(worker, KSR_SHARED, address, bytes, write, line);
            return;
        }
        if (write) {
            write_cell(worker, watch, KSR_SHARED, cells + i, now, at);
        } else {
            if (writer < watch->first[KSR_SHARED] && !is_padding(i, count)) watch->unwritten(worker, at, bytes, line);
            read_cell(worker, watch, KSR_SHARED, cells + i, now, at);
        }
    }
}

KSR_INLINE void touch_device(ksr_worker* worker, ksr_watch* watch, ksr_address address, ksr_u32 bytes, bool write,
                             ksr_u64 atomic, ksr_u32 line) {
    ksr_watched* array = watch->window[(address - watch->device_begin) >> KSR_WINDOW_BITS];
    ksr_u64 offset = array ? address - array->begin : ~0ull;
    if (!array || offset >= array->bytes || array->bytes - offset < bytes) {
        watch->outside(worker, KSR_DEVICE, address, bytes, write, line);
        return;
    }
    if (!array->cells) return;
    ksr_u64 now = mark(worker, watch, KSR_DEVICE, line) | atomic;
    ksr_cell* cells = array->cells + (offset >> kBits);
    ksr_u32 count = ksr_u32(((offset + bytes - 1) >> kBits) - (offset >> kBits) + 1);
    for (ksr_u32 i = 0; i < count; ++i) {
        ksr_address at = address + (ksr_address(i) << kBits);
        if (write)
            write_cell(worker, watch, KSR_DEVICE, cells + i, now, at);
        else
            read_cell(worker, watch, KSR_DEVICE, cells + i, now, at);
    }
}

KSR_INLINE void touch(void* where, ksr_u32 bytes, bool write, ksr_u64 atomic, ksr_u32 line) {
    ksr_worker* worker = ksr_here();
    ksr_watch* watch = worker->watch;
    ksr_address address = reinterpret_cast<ksr_address>(where);
    if (address - watch->shared_begin < watch->shared_span) {
        if (watch->unsettled) watch->settle(worker);
        touch_shared(worker, watch, address, bytes, write, atomic, line);
    } else if (address - watch->device_begin < watch->device_span) {
        if (watch->unsettled) watch->settle(worker);
        touch_device(worker, watch, address, bytes, write, atomic, line);
    }
}

// Places of a sanitizer's message, as GCC and clang lay them out.
struct Place {
    const char* file;
    ksr_u32 line, column;
};
struct Mismatch {
    Place place;
    const void* type;
    ksr_u8 log_alignment, kind;
};

// A type as a sanitizer describes it: of a whole number `info` has whether it is signed and, above, log2 of its bits.
struct Type {
    ksr_u16 kind, info;
    char name[1];
};
struct Index {
    Place place;
    const Type *array, *number;
};

}  // namespace

#define HOOK(name, bytes, write) \
    extern "C" void __tsan_##name(void* where, ksr_u32 line) { touch(where, bytes, write, 0, line); }
#include "access_hooks.h"

extern "C" void __tsan_read_range(void* where, unsigned long bytes, ksr_u32 line) {
    touch(where, ksr_u32(bytes), false, 0, line);
}
extern "C" void __tsan_write_range(void* where, unsigned long bytes, ksr_u32 line) {
    touch(where, ksr_u32(bytes), true, 0, line);
}
// Between an atomic load and an atomic store others may come in: what is lost by that shall show in the outputs.
static void step_aside() {
    ksr_worker* worker = ksr_here();
    if (worker->watch->shuffled) worker->runtime->pause(worker);
}

// What clang calls where it copies or fills memory whole.
extern "C" void* memcpy(void* to, const void* from, unsigned long bytes);
extern "C" void* memmove(void* to, const void* from, unsigned long bytes);
extern "C" void* memset(void* to, int value, unsigned long bytes);
extern "C" void* __tsan_memcpy(void* to, const void* from, unsigned long bytes, ksr_u32 line) {
    touch(const_cast<void*>(from), ksr_u32(bytes), false, 0, line);
    touch(to, ksr_u32(bytes), true, 0, line);
    return memcpy(to, from, bytes);
}
extern "C" void* __tsan_memmove(void* to, const void* from, unsigned long bytes, ksr_u32 line) {
    touch(const_cast<void*>(from), ksr_u32(bytes), false, 0, line);
    touch(to, ksr_u32(bytes), true, 0, line);
    return memmove(to, from, bytes);
}
extern "C" void* __tsan_memset(void* to, int value, unsigned long bytes, ksr_u32 line) {
    touch(to, ksr_u32(bytes), true, 0, line);
    return memset(to, value, bytes);
}

extern "C" void ksr_atomic_read(const volatile void* where, unsigned long bytes, ksr_u32 line) {
    step_aside();
    touch(const_cast<void*>(where), ksr_u32(bytes), false, KSR_ATOMIC, line);
}
extern "C" void ksr_atomic_write(const volatile void* where, unsigned long bytes, ksr_u32 line) {
    step_aside();
    touch(const_cast<void*>(where), ksr_u32(bytes), true, KSR_ATOMIC, line);
}

// A threadgroup array that this thread's code declares.
extern "C" void ksr_declare(const ksr_declared* declared) {
    ksr_worker* worker = ksr_here();
    ksr_watch* watch = worker->watch;
    for (ksr_u32 i = 0; i < watch->arrays; ++i)
        if (watch->array[i].offset == declared->offset) return;
    watch->declare(worker, declared);
}

// A fence between threadgroups, which an atomic flag goes with: who comes to it may have waited for all before it.
extern "C" void ksr_fence_device() {
    ksr_watch* watch = ksr_here()->watch;
    watch->pass_first = watch->first[KSR_DEVICE];
}

// A lane that takes part in a shuffle asks for the value of one that does not, has returned or never was.
extern "C" void ksr_absent_lane(ksr_simdgroup* group, ksr_u32 lane, ksr_u32 from) {
    ksr_worker* worker = ksr_here();
    worker->watch->absent_lane(worker, lane, from, group->sites[lane]);
}

// A lane that an operation's mask names, and that lives, does not come to it; or `lane` does not name itself.
extern "C" void ksr_absent_named(ksr_simdgroup* group, ksr_u32 lane, ksr_u32 named, ksr_u32 active) {
    ksr_worker* worker = ksr_here();
    worker->watch->absent_named(worker, lane, named, active, group->sites[lane]);
}

extern "C" void __ubsan_handle_type_mismatch_v1(Mismatch* what, void* where) {
    ksr_worker* worker = ksr_here();
    ksr_watch* watch = worker->watch;
    ksr_address address = reinterpret_cast<ksr_address>(where);
    bool watched = address - watch->shared_begin < watch->shared_span || address - watch->device_begin < watch->device_span;
    ksr_u32 alignment = 1u << what->log_alignment;
    if (watched && address % alignment) watch->misaligned(worker, address, alignment, what->place.line);
}

// An index outside of the array's type: a private array, a table, a row.
extern "C" void __ubsan_handle_out_of_bounds(const Index* what, ksr_address index, ksr_u32 line) {
    ksr_worker* worker = ksr_here();
    ksr_u32 unused = 64 - (1u << (what->number->info >> 1 & 7));
    ksr_u64 cut = ksr_u64(index) << unused;
    bool is_signed = what->number->info & 1;
    worker->watch->index(worker, is_signed ? ksr_i64(cut) >> unused : ksr_i64(cut >> unused), what->array->name, line);
}

extern "C" void __tsan_vptr_read(void*) {}
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}

extern "C" __attribute__((visibility("default"))) const ksr_u32 ksr_element_bits = kBits;
