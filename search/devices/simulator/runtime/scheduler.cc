#include "scheduler.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr ksr_address kStackBytes = 256 << 10;
constexpr ksr_address kGuardBytes = 64 << 10;
constexpr ksr_address kRecordBytes = 1 << 20;
constexpr ksr_address kThreadgroupAt = 4 << 20;    // end of threadgroup memory, where a guard begins
constexpr ksr_address kThreadgroupMost = 1 << 20;
constexpr ksr_address kStacksAt = 8 << 20;
constexpr ksr_u16 kPoison = 0xFFD5;  // a NaN as float, half and bfloat; -43 as a short
constexpr ksr_u8 kSlack = 0xD5;

constexpr ksr_address kThreadStackAt = KSR_REGION_BYTES - kGuardBytes - KSR_THREAD_STACK_BYTES;

static_assert(kStacksAt + KSR_MAX_THREADS * (kStackBytes + kGuardBytes) + kGuardBytes <= kThreadStackAt);

// Threads of a simdgroup whose number in the threadgroup is below `threads`.
ksr_u32 lanes_of(ksr_u32 simdgroup, ksr_u32 threads) {
    ksr_u32 first = simdgroup * KSR_SIMD_WIDTH;
    ksr_u32 count = threads - first;
    return count >= KSR_SIMD_WIDTH ? ~0u : (1u << count) - 1;
}

}  // namespace

struct ksr_fiber_worker {
    ksr_worker shared;  // first: kernels find it at the region's start
    ksr_thread thread;
    const ksr_launch* launch;
    void* main_stack_pointer;
    ksr_u32 threads, simdgroups, todo;  // of this threadgroup; a bit in `todo` for each simdgroup not yet stuck
    ksr_u32 stacks_made, stacks_free, starting_stack;
    ksr_u64 random;  // state of the generator that chooses who goes on, 0 for the order of numbers
    bool in_turns;
    ksr_uint3 position_size;  // the group size that `positions` was made for
    ksr_u16 free_stack[KSR_MAX_THREADS];
    ksr_u16 positions[KSR_MAX_THREADS][3];
    ksr_simdgroup simdgroup[KSR_MAX_SIMDGROUPS];
    ksr_paths paths;
};

static_assert(sizeof(ksr_fiber_worker) <= kRecordBytes);

namespace {

ksr_fiber_worker* owner(ksr_worker* worker) { return reinterpret_cast<ksr_fiber_worker*>(worker); }

// One of the set bits: the lowest, or one that the seed chooses.
ksr_u32 choose(ksr_fiber_worker* worker, ksr_u32 bits) {
    if (!worker->random) return __builtin_ctz(bits);
    for (ksr_u64 skipped = ksr_choose_below(worker, ksr_u64(__builtin_popcount(bits))); skipped; --skipped) bits &= bits - 1;
    return __builtin_ctz(bits);
}

enum Choice { kResume, kStart, kDone };

// Completes the operation of the pending lanes that stand earliest in the source: threads that took a branch catch up
// before those that went around it.
void complete_earliest(ksr_worker* worker, ksr_simdgroup* group) {
    const ksr_paths* paths = &owner(worker)->paths;
    ksr_u32 active = group->pending;
    ksr_u64 site = group->site;
    ksr_combine combine = group->common;
    if (group->mixed) {
        ksr_u32 first = __builtin_ctz(group->pending);
        site = group->sites[first];
        active = 0;
        for (ksr_u32 rest = group->pending; rest; rest &= rest - 1) {
            ksr_u32 lane = __builtin_ctz(rest);
            if (group->sites[lane] != site && ksr_earlier(paths, group->sites[lane], site)) {
                site = group->sites[lane];
                active = 0;
                first = lane;
            }
            if (group->sites[lane] == site) active |= 1u << lane;
        }
        combine = group->combine[first];
    }
    combine(group, active);
    if (worker->watch) ksr_watch_operation(worker, group, active, site);
    group->runnable = active;
    group->pending &= ~active;  // of those that stay, each has its site noted
}

// Every live thread waits at a barrier: lets them go on, or reports why that would be wrong.
void release_barrier(ksr_fiber_worker* worker) {
    ksr_u32 waiting = 0, missing = 0, thread = ~0u, missing_thread = ~0u, fence = 0;
    ksr_u64 site = 0;
    for (ksr_u32 i = 0; i < worker->simdgroups; ++i) {
        ksr_simdgroup* group = &worker->simdgroup[i];
        ksr_u32 gone = lanes_of(i, worker->threads) & ~group->barrier;
        missing += __builtin_popcount(gone);
        if (gone && missing_thread == ~0u) missing_thread = group->first_thread + __builtin_ctz(gone);
        for (ksr_u32 rest = group->barrier; rest; rest &= rest - 1) {
            ksr_u32 lane = __builtin_ctz(rest);
            ++waiting;
            if (thread == ~0u) {
                thread = group->first_thread + lane;
                site = group->sites[lane];
                fence = group->operand[lane];
            } else if (group->sites[lane] != site) {
                ksr_report_divergence(KSR_TWO_BARRIERS, ksr_trail_of_site(&worker->shared, site),
                                      ksr_trail_of_site(&worker->shared, group->sites[lane]), waiting, 0, thread,
                                      group->first_thread + lane);
            }
        }
        group->runnable = group->barrier;
        group->barrier = 0;
        worker->todo |= 1u << i;
    }
    if (missing && !(fence & KSR_RETURNED_ARRIVE))
        ksr_report_divergence(KSR_THREADS_RETURNED, ksr_trail_of_site(&worker->shared, site), 0, waiting, missing, thread,
                              missing_thread);
    if (missing && worker->shared.watch) ksr_watch_returned(&worker->shared, site, missing, thread, missing_thread);
    if (worker->shared.watch) ksr_watch_barrier(&worker->shared, fence, site);
    ++worker->shared.counters.barriers;
}

// Where a simdgroup could go on: may have another one go first.
void pass_turn(ksr_fiber_worker* worker) {
    ksr_u32 number = ksr_u32(worker->shared.simdgroup - worker->simdgroup);
    ksr_u32 later = worker->todo & ~((2u << number) - 1);
    if (worker->in_turns)
        number = __builtin_ctz(later ? later : worker->todo);
    else if (worker->random)
        number = choose(worker, worker->todo);
    worker->shared.simdgroup = &worker->simdgroup[number];
}

// Chooses what runs next; sets the worker's simdgroup and lane.
Choice pick(ksr_fiber_worker* worker) {
    for (;;) {
        ksr_simdgroup* group = worker->shared.simdgroup;
        if (group->runnable) {
            worker->shared.lane = choose(worker, group->runnable);
            return kResume;
        }
        if (group->unstarted) {
            worker->shared.lane = choose(worker, group->unstarted);
            group->runnable = 1u << worker->shared.lane;
            group->unstarted &= ~group->runnable;
            return kStart;
        }
        if (group->paused) {
            if (worker->shared.log) ksr_flush_log(&worker->shared, false);
            group->runnable = group->paused;
            group->paused = 0;
            pass_turn(worker);
            continue;
        }
        if (group->pending) {
            if (worker->shared.log && group->pending == group->live) ksr_flush_log(&worker->shared, true);
            complete_earliest(&worker->shared, group);
            pass_turn(worker);
            continue;
        }
        if (worker->shared.log) ksr_flush_log(&worker->shared, true);
        worker->todo &= ~(1u << (group - worker->simdgroup));
        if (!worker->todo) {
            ksr_u32 barrier = 0;
            for (ksr_u32 i = 0; i < worker->simdgroups; ++i) barrier |= worker->simdgroup[i].barrier;
            if (!barrier) return kDone;
            release_barrier(worker);
        }
        worker->shared.simdgroup = &worker->simdgroup[choose(worker, worker->todo)];
    }
}

// Writes down where the thread that starts now stands.
void place_thread(ksr_fiber_worker* worker) {
    ksr_thread* thread = &worker->thread;
    ksr_simdgroup* group = worker->shared.simdgroup;
    thread->lane = worker->shared.lane;
    thread->simdgroup = ksr_u32(group - worker->simdgroup);
    thread->index = group->first_thread + thread->lane;
    const ksr_u16* position = worker->positions[thread->index];
    thread->in_group = {position[0], position[1], position[2]};
    const ksr_uint3& size = worker->launch->nominal_size;
    thread->in_grid = {thread->group.x * size.x + position[0], thread->group.y * size.y + position[1],
                       thread->group.z * size.z + position[2]};
}

ksr_address stack_end(ksr_fiber_worker* worker, ksr_u32 stack) {
    return reinterpret_cast<ksr_address>(worker) + kStacksAt + (stack + 1) * (kGuardBytes + kStackBytes);
}

// Tops stand at different distances from a page's end: the same distance for all would put every fiber's hottest lines
// into the same few sets of the processor's caches.
ksr_address stack_top(ksr_fiber_worker* worker, ksr_u32 stack) { return stack_end(worker, stack) - stack % 61 * 64; }

// The life of a stack: runs threads from their start to their end until there is none to start.
[[noreturn]] void live(ksr_fiber_worker* worker) {
    ksr_u32 stack = worker->starting_stack;
    for (;;) {
        place_thread(worker);
        worker->launch->entry(&worker->thread, worker->launch->buffers);
        ksr_simdgroup* group = worker->shared.simdgroup;
        group->live &= ~(1u << worker->shared.lane);
        group->runnable &= ~(1u << worker->shared.lane);
        Choice choice = pick(worker);
        if (choice == kStart) continue;
        worker->free_stack[worker->stacks_free++] = ksr_u16(stack);
        void* nowhere;
        ksr_switch(&nowhere, choice == kDone ? worker->main_stack_pointer
                                             : worker->shared.simdgroup->stack_pointer[worker->shared.lane]);
    }
}

[[noreturn]] void begin() { live(owner(ksr_here())); }

// Returns a stack pointer at which `begin` starts.
void* fresh_stack(ksr_fiber_worker* worker) {
    ksr_u32 stack;
    if (worker->stacks_free) {
        stack = worker->free_stack[--worker->stacks_free];
    } else {
        stack = worker->stacks_made++;
        void* low = reinterpret_cast<void*>(stack_end(worker, stack) - kStackBytes);
        if (mprotect(low, kStackBytes, PROT_READ | PROT_WRITE))
            ksr_report_out_of_memory();
    }
    worker->starting_stack = stack;
    void** top = reinterpret_cast<void**>(stack_top(worker, stack));
    top -= 4;  // keeps the alignment that a called function expects
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(begin);
    return top;
}

void leave(ksr_worker* shared) {
    ksr_fiber_worker* worker = owner(shared);
    void** save = &shared->simdgroup->stack_pointer[shared->lane];
    ksr_simdgroup* from = shared->simdgroup;
    ksr_u32 lane = shared->lane;
    Choice choice = pick(worker);
    if (choice == kStart)
        ksr_switch(save, fresh_stack(worker));
    else if (shared->simdgroup != from || shared->lane != lane)
        ksr_switch(save, shared->simdgroup->stack_pointer[shared->lane]);
}

ksr_u8* memory_end(ksr_fiber_worker* worker) {
    return worker->shared.threadgroup_memory + worker->launch->threadgroup_bytes;
}

ksr_u8* threadgroup_guard(ksr_fiber_worker* worker) {
    return reinterpret_cast<ksr_u8*>(worker) + kThreadgroupAt;
}

void set_positions(ksr_fiber_worker* worker, ksr_uint3 size) {
    if (memcmp(&worker->position_size, &size, sizeof size) == 0) return;
    worker->position_size = size;
    ksr_u32 i = 0;
    for (ksr_u32 z = 0; z < size.z; ++z)
        for (ksr_u32 y = 0; y < size.y; ++y)
            for (ksr_u32 x = 0; x < size.x; ++x, ++i) {
                worker->positions[i][0] = ksr_u16(x);
                worker->positions[i][1] = ksr_u16(y);
                worker->positions[i][2] = ksr_u16(z);
            }
}

ksr_u32 trimmed(ksr_u32 group, ksr_u32 size, ksr_u32 grid) {
    ksr_u32 left = grid - group * size;
    return left < size ? left : size;
}

}  // namespace

void ksr_block(ksr_worker* worker) { leave(worker); }

void ksr_pause(ksr_worker* worker) {
    ksr_u32 bit = 1u << worker->lane;
    worker->simdgroup->paused |= bit;
    worker->simdgroup->runnable &= ~bit;
    leave(worker);
}

ksr_u32 ksr_enter(ksr_worker* worker, ksr_u32 path, ksr_u64 place) {
    return ksr_longer_path(&owner(worker)->paths, path, place);
}

ksr_trail ksr_trail_of_site(ksr_worker* worker, ksr_u64 site) {
    return ksr_trail_of(&owner(worker)->paths, ksr_path_of_site(site), ksr_line_of_site(site));
}

ksr_trail ksr_trail_of_line(ksr_worker* worker, ksr_u32 path, ksr_u32 line) {
    return ksr_trail_of(&owner(worker)->paths, path, line);
}

void ksr_run_threadgroup(ksr_fiber_worker* worker, const ksr_launch* launch, ksr_u64 index) {
    if (owner(ksr_here()) != worker) ksr_report_thread_elsewhere();
    ksr_thread* thread = &worker->thread;
    worker->launch = launch;
    thread->group = {ksr_u32(index % launch->groups.x), ksr_u32(index / launch->groups.x % launch->groups.y),
                     ksr_u32(index / launch->groups.x / launch->groups.y)};
    thread->grid = launch->grid;
    worker->shared.dynamic_bytes = launch->dynamic_bytes;
    worker->shared.votes = 0;
    thread->groups = launch->groups;
    thread->nominal_size = launch->nominal_size;
    thread->group_size = {trimmed(thread->group.x, launch->nominal_size.x, launch->grid.x),
                          trimmed(thread->group.y, launch->nominal_size.y, launch->grid.y),
                          trimmed(thread->group.z, launch->nominal_size.z, launch->grid.z)};
    set_positions(worker, thread->group_size);
    worker->threads = thread->group_size.x * thread->group_size.y * thread->group_size.z;
    worker->simdgroups = (worker->threads + KSR_SIMD_WIDTH - 1) / KSR_SIMD_WIDTH;
    worker->todo = worker->simdgroups == 32 ? ~0u : (1u << worker->simdgroups) - 1;
    for (ksr_u32 i = 0; i < worker->simdgroups; ++i) {
        ksr_simdgroup* group = &worker->simdgroup[i];
        group->live = group->unstarted = lanes_of(i, worker->threads);
        group->runnable = group->pending = group->barrier = group->paused = group->mixed = 0;
        group->first_thread = i * KSR_SIMD_WIDTH;
    }
    ksr_u16* memory = reinterpret_cast<ksr_u16*>(worker->shared.threadgroup_memory);
    for (ksr_u32 i = 0; i < launch->threadgroup_bytes / 2; ++i) memory[i] = kPoison;
    if (worker->shared.watch) ksr_watch_threadgroup(&worker->shared, index);
    worker->shared.simdgroup = &worker->simdgroup[choose(worker, worker->todo)];
    pick(worker);
    ksr_switch(&worker->main_stack_pointer, fresh_stack(worker));
    for (ksr_u8* slack = memory_end(worker); slack < threadgroup_guard(worker); ++slack)
        if (*slack != kSlack) ksr_report_threadgroup_overrun(ksr_u32(slack - worker->shared.threadgroup_memory));
}

void ksr_set_order(ksr_fiber_worker* worker, ksr_u64 seed, bool in_turns) {
    worker->random = seed * 0x9E3779B97F4A7C15ull;
    worker->in_turns = in_turns;
}

ksr_u64 ksr_choose_below(ksr_fiber_worker* worker, ksr_u64 bound) {
    ksr_u64& state = worker->random;  // xorshift, which stays at 0
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 32) % bound;
}

ksr_address ksr_threadgroup_room(const ksr_fiber_worker* worker, ksr_address* begin) {
    *begin = reinterpret_cast<ksr_address>(worker) + kThreadgroupAt - kThreadgroupMost;
    return kThreadgroupMost;
}

ksr_worker* ksr_worker_shared(ksr_fiber_worker* worker) { return &worker->shared; }

ksr_fiber_worker* ksr_worker_create(const ksr_runtime* runtime) {
    // Twice the region, so that an aligned one is inside; what is left over is given back.
    void* raw = mmap(nullptr, 2 * KSR_REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    ksr_address begin = reinterpret_cast<ksr_address>(raw);
    ksr_address base = (begin + KSR_REGION_BYTES - 1) & ~(KSR_REGION_BYTES - 1);
    if (base > begin) munmap(raw, base - begin);
    munmap(reinterpret_cast<void*>(base + KSR_REGION_BYTES), begin + KSR_REGION_BYTES - base);
    ksr_address memory = base + kThreadgroupAt - kThreadgroupMost;
    if (mprotect(reinterpret_cast<void*>(base), kRecordBytes, PROT_READ | PROT_WRITE) ||
        mprotect(reinterpret_cast<void*>(memory), kThreadgroupMost, PROT_READ | PROT_WRITE))
        return nullptr;
    ksr_fiber_worker* worker = reinterpret_cast<ksr_fiber_worker*>(base);
    if (mprotect(ksr_thread_stack(worker), KSR_THREAD_STACK_BYTES, PROT_READ | PROT_WRITE)) return nullptr;
    worker->shared.runtime = runtime;
    worker->shared.thread = &worker->thread;
    worker->shared.positions = worker->positions;
    return worker;
}

void* ksr_thread_stack(const ksr_fiber_worker* worker) {
    return reinterpret_cast<void*>(reinterpret_cast<ksr_address>(worker) + kThreadStackAt);
}

void ksr_worker_reserve(ksr_fiber_worker* worker, ksr_u32 threadgroup_bytes) {
    // Threadgroup memory ends where the guard begins, as nearly as alignment allows: what is written past it is noticed.
    ksr_address end = reinterpret_cast<ksr_address>(worker) + kThreadgroupAt;
    ksr_address begin = (end - threadgroup_bytes) & ~(ksr_address)63;
    worker->shared.threadgroup_memory = reinterpret_cast<ksr_u8*>(begin);
    worker->shared.threadgroup_begin = begin;
    worker->shared.threadgroup_end = end;
    memset(worker->shared.threadgroup_memory + threadgroup_bytes, kSlack, end - begin - threadgroup_bytes);
}

ksr_place ksr_place_of(const ksr_fiber_worker* worker, ksr_address address) {
    ksr_address base = reinterpret_cast<ksr_address>(worker);
    if (address < base || address >= base + KSR_REGION_BYTES) return KSR_ELSEWHERE;
    ksr_address at = address - base;
    return at < kStacksAt ? KSR_THREADGROUP : KSR_STACK;
}
