// Runs threadgroups: fibers for their threads, simdgroup operations, barriers.
#pragma once

#include "abi.h"
#include "calls.h"

// One pass: what all workers share and none changes.
struct ksr_launch {
    ksr_entry entry;
    void* const* buffers;
    ksr_uint3 grid, groups, nominal_size;
    ksr_u32 threadgroup_bytes, dynamic_bytes;  // all of it, and the part that the launch asks for
};

struct ksr_fiber_worker;

// A worker of its own region; null when the address space is refused.
ksr_fiber_worker* ksr_worker_create(const ksr_runtime* runtime);
ksr_worker* ksr_worker_shared(ksr_fiber_worker* worker);

// Memory in the worker's region for the stack of the operating-system thread that calls `ksr_run_threadgroup` for it,
// which has to be there.
constexpr ksr_address KSR_THREAD_STACK_BYTES = 256 << 10;
void* ksr_thread_stack(const ksr_fiber_worker* worker);

// Makes room for threadgroups that declare `threadgroup_bytes` (at most 1 MiB).
void ksr_worker_reserve(ksr_fiber_worker* worker, ksr_u32 threadgroup_bytes);

// Runs threadgroup `index` (x fastest) of a launch to its end.
void ksr_run_threadgroup(ksr_fiber_worker* worker, const ksr_launch* launch, ksr_u64 index);

// The entries of ksr_runtime that are the scheduler's.
void ksr_block(ksr_worker* worker);
void ksr_pause(ksr_worker* worker);
ksr_u32 ksr_enter(ksr_worker* worker, ksr_u32 path, ksr_u64 place);

// Where a site is, or a line to which the calls of `path` led.
ksr_trail ksr_trail_of_site(ksr_worker* worker, ksr_u64 site);
ksr_trail ksr_trail_of_line(ksr_worker* worker, ksr_u32 path, ksr_u32 line);

// What an address inside a worker's region is; for the message about a fault.
enum ksr_place { KSR_ELSEWHERE, KSR_STACK, KSR_THREADGROUP };
ksr_place ksr_place_of(const ksr_fiber_worker* worker, ksr_address address);

// Provided by the process that runs the kernel: ends it, with what was found.
enum ksr_divergence { KSR_THREADS_RETURNED = 1, KSR_TWO_BARRIERS = 2 };
[[noreturn]] void ksr_report_divergence(ksr_divergence what, ksr_trail place, ksr_trail other_place, ksr_u32 waiting,
                                        ksr_u32 missing, ksr_u32 thread, ksr_u32 other_thread);
[[noreturn]] void ksr_report_threadgroup_overrun(ksr_u32 byte);
[[noreturn]] void ksr_report_out_of_memory();
[[noreturn]] void ksr_report_thread_elsewhere();  // on a thread where `ksr_here` doesn't find the worker

// Provided by the counting: takes the access logs of the simdgroup that runs now, and empties them. `together` says that
// every live lane has come to the same point.
void ksr_flush_log(ksr_worker* worker, bool together);

// Lets the order of lanes, simdgroups and threadgroups depend on `seed`; 0 is the order of their numbers, in which a
// simdgroup goes on to the next barrier unless they take turns: then the next one goes on at each operation.
void ksr_set_order(ksr_fiber_worker* worker, ksr_u64 seed, bool in_turns);

// A number below `bound` that the seed chooses, 0 without one.
ksr_u64 ksr_choose_below(ksr_fiber_worker* worker, ksr_u64 bound);

// The addresses that only threadgroup memory has any business in: where they begin, and how many bytes.
ksr_address ksr_threadgroup_room(const ksr_fiber_worker* worker, ksr_address* begin);

// Provided by the checking, and called where a worker is watched: a threadgroup begins; every thread has come to the
// barrier `site`; the lanes `active` complete the operation `site`.
void ksr_watch_threadgroup(ksr_worker* worker, ksr_u64 index);
void ksr_watch_barrier(ksr_worker* worker, ksr_u32 fence, ksr_u64 site);
void ksr_watch_returned(ksr_worker* worker, ksr_u64 site, ksr_u32 missing, ksr_u32 thread, ksr_u32 missing_thread);
void ksr_watch_operation(ksr_worker* worker, ksr_simdgroup* group, ksr_u32 active, ksr_u64 site);
