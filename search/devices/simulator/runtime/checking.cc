// What the checked mode does at each barrier, simdgroup operation and fault; see checking.h.
#include "checking.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "findings.h"
#include "job.h"
#include "checked_pass.h"
#include "places.h"

namespace {

constexpr ksr_space kSpaces[] = {KSR_DEVICE, KSR_SHARED};
constexpr ksr_u64 kEpochStep = 1ull << KSR_EPOCH_AT;
constexpr ksr_u32 kDeviceFence = 1, kThreadgroupFence = 2;  // mem_flags

ksr_watch* watch;
Findings* findings;
ksr_watched arrays[kMaxArrays];
ksr_u32 array_count;
ksr_u64 epoch[2];      // in place
ksr_u64 pass_number;
ksr_u64 group_now;
ksr_u64* group_begins;  // the device epoch with which each threadgroup began, in the order that they ran
ksr_u64* group_index;
ksr_u64 groups_begun;
ksr_u64 last_fence[2];  // the line of the latest barrier that did not order this memory, 0 when one did since
bool exhausted;

// Room for marks that costs memory only where it is touched.
ksr_cell* cells_for(ksr_u64 elements) {
    void* room = mmap(nullptr, elements * sizeof(ksr_cell) + 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) ksr_report_out_of_memory();
    return static_cast<ksr_cell*>(room);
}

void identify(ksr_space space, ksr_u32 thread, ksr_u32 stamp) {
    watch->identity[space][thread] =
        epoch[space] | ksr_u64(thread) << KSR_THREAD_AT | ksr_u64(stamp) << KSR_STAMP_AT;
}

void begin_epoch(ksr_space space) {
    if (epoch[space] >> KSR_EPOCH_AT >= KSR_MOST_EPOCH)
        exhausted = true;
    else
        epoch[space] += kEpochStep;
}

void forget_meetings() {
    for (ksr_meetings& meetings : watch->meetings) {
        meetings.operations = meetings.all = 0;
        if (meetings.some) memset(meetings.met, 0, sizeof meetings.met);
        meetings.some = false;
    }
}

void identify_all() {
    for (ksr_u32 thread = 0; thread < KSR_MAX_THREADS; ++thread)
        for (ksr_space space : kSpaces) identify(space, thread, 0);
}

ksr_u64 group_of(ksr_u64 mark) {
    ksr_u64 low = 0, high = groups_begun;
    while (high - low > 1) {
        ksr_u64 middle = (low + high) / 2;
        (group_begins[middle] <= mark ? low : high) = middle;
    }
    return group_index[low];
}

ksr_u64 value_at(ksr_address address, ksr_u64 bytes) {
    ksr_u64 value = 0;
    memcpy(&value, reinterpret_cast<const void*>(address), bytes < 8 ? bytes : 8);
    return value;
}

// Two writes of one value do no harm: their finding gives way to a worse one between the same lines.
bool is_harmless(const Finding& finding) {
    return finding.kind == kRace && finding.detail == KSR_WRITE_WRITE && finding.settled && finding.before == finding.after;
}

ksr_u32 place(ksr_worker* worker, ksr_u32 line) {
    return ksr_place_with_calls(worker->simdgroup->path[worker->lane], line);
}

ksr_trail trail_of_mark(ksr_worker* worker, ksr_u64 mark) {
    ksr_line_and_path at = ksr_line_and_path_of(ksr_place_of_mark(mark));
    return ksr_trail_of_line(worker, at.path, at.line);
}

// Where the lane that runs now stands in `line`.
ksr_trail trail_here(ksr_worker* worker, ksr_u32 line) {
    return ksr_trail_of_line(worker, worker->simdgroup->path[worker->lane], line);
}

bool same_line(ksr_trail a, ksr_trail b) { return !((a ^ b) & ((1u << KSR_TRAIL_BITS) - 1)); }

// A finding to fill in, null when these lines have one of this kind already.
Finding* find(ksr_worker* worker, FindingKind kind, ksr_trail line, ksr_trail other_line) {
    Finding* finding = nullptr;
    for (ksr_u64 i = 0; i < findings->count && !finding; ++i) {
        Finding& known = findings->finding[i];
        if (known.kind != kind || known.pass != pass_number) continue;
        if ((!same_line(known.line, line) || !same_line(known.other_line, other_line)) &&
            (!same_line(known.line, other_line) || !same_line(known.other_line, line)))
            continue;
        if (!is_harmless(known)) return nullptr;
        finding = &known;
    }
    if (!finding && findings->count == kMaxFindings) return nullptr;
    if (!finding) finding = &findings->finding[findings->count++];
    *finding = {};
    finding->kind = kind;
    finding->pass = pass_number;
    finding->line = line;
    finding->other_line = other_line;
    finding->thread = worker->simdgroup->first_thread + worker->lane;
    finding->group = finding->other_group = group_now;
    return finding;
}

void name_shared(Finding* finding, ksr_address address) {
    finding->array = -1;
    finding->byte = ksr_i64(address - watch->shared_memory);
    const ksr_declared* nearest = nullptr;
    ksr_i64 least = 0;
    for (ksr_u32 i = 0; i < watch->arrays; ++i) {
        const ksr_declared& declared = watch->array[i];
        ksr_i64 begin = declared.offset, end = begin + declared.bytes;
        // What lies past an array is likelier meant to be in it than what lies before the next.
        ksr_i64 distance = finding->byte < begin ? 2 * (begin - finding->byte) : finding->byte >= end ? finding->byte - end + 1 : 0;
        if (nearest && distance >= least) continue;
        nearest = &declared;
        least = distance;
    }
    if (!nearest) return;
    finding->byte -= nearest->offset;
    finding->array_bytes = nearest->bytes;
    finding->element_bytes = nearest->element_bytes;
    finding->row_bytes = nearest->row_bytes;
    strncpy(finding->name, nearest->name, sizeof finding->name - 1);
}

void name_device(Finding* finding, ksr_address address) {
    ksr_u64 least = ~0ull;
    for (ksr_u32 i = 0; i < array_count; ++i) {
        const ksr_watched& array = arrays[i];
        ksr_address end = array.begin + array.bytes;
        ksr_u64 distance = address < array.begin ? array.begin - address : address >= end ? address - end + 1 : 0;
        if (distance >= least) continue;
        least = distance;
        finding->array = array.number;
        finding->byte = ksr_i64(address - array.begin);
        finding->array_bytes = array.bytes;
    }
}

void name(Finding* finding, ksr_space space, ksr_address address, ksr_u64 bytes) {
    finding->bytes = bytes;
    space == KSR_SHARED ? name_shared(finding, address) : name_device(finding, address);
}

void settle(ksr_worker*) {
    watch->unsettled = 0;
    for (ksr_u64 i = 0; i < findings->count; ++i) {
        Finding& finding = findings->finding[i];
        if (finding.settled || !finding.after) continue;
        finding.after = value_at(finding.after, finding.bytes);
        finding.settled = 1;
    }
}

void race(ksr_worker* worker, ksr_space space, ksr_conflict conflict, ksr_u64 earlier, ksr_u64 later,
          ksr_address address, ksr_u32 bytes) {
    Finding* finding = find(worker, kRace, trail_of_mark(worker, later), trail_of_mark(worker, earlier));
    if (!finding) return;
    finding->detail = conflict;
    finding->other_thread = ksr_thread_of(earlier);
    if (space == KSR_DEVICE) finding->other_group = group_of(earlier);
    if (finding->group == finding->other_group) finding->unfenced = last_fence[space];
    name(finding, space, address, bytes);
    if (conflict != KSR_WRITE_WRITE) return;
    finding->before = value_at(address, bytes);
    finding->after = address;  // until the value is known
    watch->unsettled = 1;
}

void outside(ksr_worker* worker, ksr_space space, ksr_address address, ksr_u32 bytes, bool write, ksr_u32 line) {
    Finding* finding = find(worker, kOutside, trail_here(worker, line), 0);
    if (!finding) return;
    finding->detail = write;
    name(finding, space, address, bytes);
}

void unwritten(ksr_worker* worker, ksr_address address, ksr_u32 bytes, ksr_u32 line) {
    if (Finding* finding = find(worker, kUnwritten, trail_here(worker, line), 0)) name(finding, KSR_SHARED, address, bytes);
}

void index(ksr_worker* worker, ksr_i64 at, const char* array, ksr_u32 line) {
    Finding* finding = find(worker, kIndex, trail_here(worker, line), 0);
    if (!finding) return;
    finding->byte = at;
    strncpy(finding->name, array, sizeof finding->name - 1);
}

void misaligned(ksr_worker* worker, ksr_address address, ksr_u32 alignment, ksr_u32 line) {
    Finding* finding = find(worker, kMisaligned, trail_here(worker, line), 0);
    if (!finding) return;
    finding->detail = alignment;
    bool shared = address - watch->shared_begin < watch->shared_span;
    name(finding, shared ? KSR_SHARED : KSR_DEVICE, address, alignment);
}

void absent_lane(ksr_worker* worker, ksr_u32 lane, ksr_u32 from, ksr_u64 site) {
    Finding* finding = find(worker, kAbsentLane, ksr_trail_of_site(worker, site), 0);
    if (!finding) return;
    finding->thread = worker->simdgroup->first_thread + lane;
    finding->detail = from;
    finding->other_thread = worker->simdgroup->live;
}

void absent_named(ksr_worker* worker, ksr_u32 lane, ksr_u32 named, ksr_u32 active, ksr_u64 site) {
    const ksr_simdgroup* group = worker->simdgroup;
    ksr_trail at = site >= KSR_NOWHERE ? ksr_trail_of_line(worker, group->path[lane], group->operand[lane])
                                       : ksr_trail_of_site(worker, site);
    Finding* finding = find(worker, kNamed, at, 0);
    if (!finding) return;
    finding->thread = group->first_thread + lane;
    finding->detail = named & (group->live | active);
    finding->other_thread = active;
}

void declare(ksr_worker*, const ksr_declared* declared) {
    if (watch->arrays == KSR_MOST_DECLARED || declared->offset + declared->bytes > watch->shared_bytes) return;
    watch->array[watch->arrays++] = *declared;
    ksr_u32 bits = ksr_element_bits;
    ksr_u64 end = (ksr_u64(declared->offset) + declared->bytes + (1u << bits) - 1) >> bits;
    for (ksr_u64 i = declared->offset >> bits; i < end; ++i) watch->shared_cells[i] = {0, 0, 0};
}

double seconds_now() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

}  // namespace

ksr_u32 ksr_element_bits;

void ksr_prepare_checks(ksr_worker* worker, Findings* into, ksr_address begin, ksr_address end, bool shuffled) {
    findings = into;
    watch = static_cast<ksr_watch*>(calloc(1, sizeof(ksr_watch)));
    if (!watch || !ksr_prepare_places()) ksr_report_out_of_memory();
    worker->watch = watch;
    watch->device_begin = begin;
    watch->device_span = end - begin;
    watch->shuffled = shuffled;
    watch->declare = declare;
    watch->place = place;
    watch->settle = settle;
    watch->race = race;
    watch->outside = outside;
    watch->unwritten = unwritten;
    watch->index = index;
    watch->misaligned = misaligned;
    watch->absent_lane = absent_lane;
    watch->absent_named = absent_named;
}

void ksr_watch_arrays(const Job& job, const Pass& pass, ksr_u32 number, ksr_u32 element_bits) {
    for (ksr_u32 i = 0; i < array_count; ++i)
        if (arrays[i].cells) munmap(arrays[i].cells, ((arrays[i].bytes >> ksr_element_bits) + 1) * sizeof(ksr_cell) + 1);
    ksr_element_bits = element_bits;
    array_count = 0;
    pass_number = number;
    memset(watch->window, 0, sizeof watch->window);
    for (ksr_u32 i = 0; i < pass.buffers; ++i) {
        const Array& array = job.array[pass.buffer[i]];
        ksr_address begin = reinterpret_cast<ksr_address>(array.at);
        ksr_watched& watched = arrays[array_count++];
        watched = {begin, array.bytes, pass.buffer[i], nullptr};
        if (array.writable) watched.cells = cells_for((array.bytes >> element_bits) + 1);
        ksr_u64 last = (begin + array.bytes - 1 - watch->device_begin) >> KSR_WINDOW_BITS;
        for (ksr_u64 w = (begin - watch->device_begin) >> KSR_WINDOW_BITS; w <= last && w < KSR_WINDOWS; ++w)
            watch->window[w] = &watched;
    }
}

ksr_u64 ksr_check_pass(ksr_fiber_worker* fibers, const ksr_launch* launch, ksr_u64 total, double seconds) {
    ksr_worker* worker = ksr_worker_shared(fibers);
    watch->shared_memory = reinterpret_cast<ksr_address>(worker->threadgroup_memory);
    watch->shared_bytes = launch->threadgroup_bytes;
    watch->shared_span = ksr_threadgroup_room(fibers, &watch->shared_begin);
    ksr_u64 cells = (launch->threadgroup_bytes >> ksr_element_bits) + 1;
    free(watch->shared_cells);
    watch->shared_cells = static_cast<ksr_cell*>(malloc(cells * sizeof(ksr_cell)));
    free(group_begins);
    free(group_index);
    group_begins = static_cast<ksr_u64*>(malloc(total * sizeof(ksr_u64)));
    group_index = static_cast<ksr_u64*>(malloc(total * sizeof(ksr_u64)));
    if (!watch->shared_cells || !group_begins || !group_index) ksr_report_out_of_memory();
    memset(watch->shared_cells, 0xFF, cells * sizeof(ksr_cell));
    watch->arrays = 0;
    groups_begun = 0;
    begin_epoch(KSR_DEVICE);
    watch->pass_first = epoch[KSR_DEVICE];
    double end = seconds_now() + seconds;
    ksr_u64 first = ksr_choose_below(fibers, total), run = 0;
    bool backwards = ksr_choose_below(fibers, 2);
    for (; run < total && !exhausted && seconds_now() < end; ++run) {
        ksr_u64 at = (first + run) % total;
        ksr_run_threadgroup(fibers, launch, backwards ? total - 1 - at : at);
        settle(worker);
    }
    return run;
}

void ksr_watch_threadgroup(ksr_worker*, ksr_u64 index) {
    for (ksr_space space : kSpaces) {
        begin_epoch(space);
        watch->first[space] = epoch[space];
        last_fence[space] = 0;
    }
    group_now = index;
    group_begins[groups_begun] = epoch[KSR_DEVICE];
    group_index[groups_begun++] = index;
    forget_meetings();
    identify_all();
}

void ksr_watch_barrier(ksr_worker* worker, ksr_u32 fence, ksr_u64 site) {
    if (watch->unsettled) settle(worker);
    const ksr_u32 fences[] = {kDeviceFence, kThreadgroupFence};
    for (ksr_space space : kSpaces) {
        if (fence & fences[space]) {
            begin_epoch(space);
            last_fence[space] = 0;
        } else {
            last_fence[space] = ksr_trail_of_site(worker, site);
        }
    }
    forget_meetings();
    identify_all();
}

void ksr_watch_returned(ksr_worker* worker, ksr_u64 site, ksr_u32 missing, ksr_u32 thread, ksr_u32 missing_thread) {
    Finding* finding = find(worker, kReturned, ksr_trail_of_site(worker, site), 0);
    if (!finding) return;
    finding->thread = thread;
    finding->other_thread = missing_thread;
    finding->detail = missing;
}

void ksr_watch_operation(ksr_worker* worker, ksr_simdgroup* group, ksr_u32 active, ksr_u64 site) {
    ksr_u32 kind = site & ((1u << KSR_COLUMN_AT) - 1), number = group->first_thread / KSR_SIMD_WIDTH;
    bool whole = kind == KSR_MATRIX_PRODUCT ? active == ~0u : active == group->live;
    if (!whole && (kind == KSR_MATRIX_PRODUCT || kind == KSR_SIMDGROUP_BARRIER)) {
        if (Finding* finding = find(worker, kPartial, ksr_trail_of_site(worker, site), 0)) {
            finding->thread = group->first_thread + ksr_u32(__builtin_ctz(active));
            finding->detail = active;
            finding->other_thread = group->live;
        }
    }
    ksr_meetings& meetings = watch->meetings[number];
    if (meetings.operations < KSR_MOST_STAMP) ++meetings.operations;
    ksr_u32 stamp = meetings.operations;
    if (active == group->live) {
        // With stamps used up, later accesses of this simdgroup count as ordered: silence rather than a false alarm.
        meetings.all = stamp == KSR_MOST_STAMP ? stamp + 1 : stamp;
    } else {
        meetings.some = true;
        ksr_u16 joint[KSR_SIMD_WIDTH] = {};
        for (ksr_u32 lane = 0; lane < KSR_SIMD_WIDTH; ++lane) {
            if (active >> lane & 1) joint[lane] = ksr_u16(stamp);
            for (ksr_u32 rest = active; rest; rest &= rest - 1) {
                ksr_u16 known = meetings.met[__builtin_ctz(rest)][lane];
                if (known > joint[lane]) joint[lane] = known;
            }
        }
        for (ksr_u32 rest = active; rest; rest &= rest - 1)
            memcpy(meetings.met[__builtin_ctz(rest)], joint, sizeof joint);
    }
    for (ksr_u32 rest = active; rest; rest &= rest - 1)
        for (ksr_space space : kSpaces)
            identify(space, group->first_thread + ksr_u32(__builtin_ctz(rest)), stamp);
}
