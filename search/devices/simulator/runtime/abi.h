// What a compiled kernel and the runtime share. It knows no kernel language: metal.h gives Metal's words their meaning
// with nothing but this file, and needs no symbol of the runtime (a kernel can't replace what it can't name).
//
// Everything that runs a threadgroup lives in one aligned region of address space: its fibers' stacks and what the system
// keeps of the thread that runs them. So any code on a fiber finds its worker by rounding an address down: no
// thread-local storage, no hidden parameter.
#pragma once

typedef unsigned char ksr_u8;
typedef unsigned short ksr_u16;
typedef unsigned int ksr_u32;
typedef unsigned long long ksr_u64;
typedef long long ksr_i64;
typedef __UINTPTR_TYPE__ ksr_address;

constexpr ksr_u32 KSR_SIMD_WIDTH = 32;
constexpr ksr_u32 KSR_MAX_SIMDGROUPS = 32;
constexpr ksr_u32 KSR_MAX_THREADS = KSR_SIMD_WIDTH * KSR_MAX_SIMDGROUPS;
constexpr ksr_u32 KSR_SLOT_BYTES = 16;
constexpr ksr_u32 KSR_SIMDGROUP_BARRIER = 1, KSR_MATRIX_PRODUCT = 41;  // kinds of operation that need every lane
constexpr ksr_u32 KSR_RETURNED_ARRIVE = 1u << 16;         // of a barrier, beside mem_flags: it waits for live threads only
// Where an operation stands: the calls that led to it (24 bits, see calls.h) | line (20) | column (14) | kind (6).
constexpr ksr_u32 KSR_PATH_AT = 40, KSR_LINE_AT = 20, KSR_COLUMN_AT = 6;
constexpr ksr_u64 KSR_NOWHERE = ~0ull << KSR_PATH_AT;     // in place of the calls: it stands in many places, and comes last
constexpr ksr_u32 KSR_MOST_PATHS = 4096;                  // ways of calls that one worker tells apart
constexpr ksr_address KSR_REGION_BYTES = ksr_address(1) << 29;
constexpr ksr_u32 KSR_WINDOW = 1024;                     // accesses that a lane logs before it pauses
constexpr ksr_u32 KSR_LOG_STRIDE = KSR_WINDOW + 4;        // between lanes' logs: not a power of two, for the caches
constexpr ksr_u32 KSR_REUSE_DEPTHS = 256;                 // lines of the largest first-level share that is told apart

#define KSR_INLINE inline __attribute__((always_inline))

struct ksr_simdgroup;
struct ksr_worker;
struct ksr_watch;  // checking.h

// Completes one simdgroup operation for the lanes whose bits are set: reads their values, writes their results.
typedef void (*ksr_combine)(ksr_simdgroup*, ksr_u32 active);

// The lanes of one simdgroup. Every live lane has its bit in exactly one of the five masks that follow `live`, except
// the lane that is running, whose bit is in `runnable`.
struct ksr_simdgroup {
    ksr_u32 live;       // not returned yet
    ksr_u32 unstarted;  // no stack yet
    ksr_u32 runnable;   // may run now
    ksr_u32 pending;    // waits in a simdgroup operation
    ksr_u32 barrier;    // waits at a threadgroup barrier
    ksr_u32 paused;     // its access log is full (counted mode), or it lets others go first (checked mode)
    ksr_u32 first_thread;
    ksr_u32 mixed;      // nonzero when the pending lanes may be at different sites: `sites` and `combine` have theirs
    ksr_u64 site;       // the operation that all pending lanes wait at, when it is one,
    ksr_combine common;  // and what completes it
    void* stack_pointer[KSR_SIMD_WIDTH];
    ksr_u32 path[KSR_SIMD_WIDTH];  // the calls that each lane is in, of those that are noted; 0 for none
    ksr_u64 sites[KSR_SIMD_WIDTH];
    ksr_combine combine[KSR_SIMD_WIDTH];
    ksr_u32 operand[KSR_SIMD_WIDTH];
    // A slot a lane, whatever its type: lanes that wait in different operations bring values of different sizes.
    alignas(64) ksr_u8 value[KSR_SIMD_WIDTH * KSR_SLOT_BYTES];
    alignas(64) ksr_u8 result[KSR_SIMD_WIDTH * KSR_SLOT_BYTES];
};

struct ksr_uint3 {
    ksr_u32 x, y, z;
};

// Where the thread that starts now stands. A kernel reads it first thing: the next thread overwrites it.
struct ksr_thread {
    ksr_uint3 in_grid, in_group, group;     // positions
    ksr_uint3 grid, groups, group_size;     // extents; group_size is the size of this, perhaps trimmed, group
    ksr_uint3 nominal_size;                 // extent of a group that is not trimmed
    ksr_u32 index, lane, simdgroup;
};

typedef void (*ksr_entry)(const ksr_thread*, void* const* buffers);

// One access of one lane to counted memory: the instruction that made it, tagged with size and direction, and where.
struct ksr_access {
    ksr_u64 tag;  // instruction << 8 | size << 1 | is a write
    ksr_address address;
};

struct ksr_counters {
    ksr_u64 barriers;    // times that a threadgroup passed a barrier
    ksr_u64 shuffles;    // simdgroup operations that move values
    ksr_u64 reductions;  // simdgroup operations that combine values
    ksr_u64 atomics;     // lane operations
    ksr_u64 matrix_flops;
    ksr_u64 device_accesses;
    ksr_u64 device_blocks;  // pieces of a line that the core's first-level cache moves in a cycle each
    ksr_u64 threadgroup_accesses, threadgroup_cycles;
    ksr_u64 logged;  // lane accesses, the work that counting itself costs
    ksr_u64 device_read_lines[KSR_REUSE_DEPTHS + 1], device_write_lines[KSR_REUSE_DEPTHS + 1];  // by depth (reuse.h)
};

// Mathematics of double, which only CUDA has.
struct ksr_double_mathematics {
    double (*exp)(double);
    double (*exp2)(double);
    double (*exp10)(double);
    double (*log)(double);
    double (*log2)(double);
    double (*log10)(double);
    double (*sin)(double);
    double (*cos)(double);
    double (*tan)(double);
    double (*asin)(double);
    double (*acos)(double);
    double (*atan)(double);
    double (*sinh)(double);
    double (*cosh)(double);
    double (*tanh)(double);
    double (*asinh)(double);
    double (*acosh)(double);
    double (*atanh)(double);
    double (*erf)(double);
    double (*erfc)(double);
    double (*expm1)(double);
    double (*log1p)(double);
    double (*cbrt)(double);
    double (*lgamma)(double);
    double (*tgamma)(double);
    double (*atan2)(double, double);
    double (*pow)(double, double);
    double (*fmod)(double, double);
};

// The runtime's functions that a kernel may call, and the mathematics that it would otherwise link.
struct ksr_runtime {
    void (*block)(ksr_worker*);  // run something else until this lane may go on
    void (*pause)(ksr_worker*);  // the same, for a lane that could go on: others of its simdgroup go first
    ksr_u32 (*enter)(ksr_worker*, ksr_u32 path, ksr_u64 place);  // the path that a call in `place` makes of `path`
    float (*exp)(float);
    float (*exp2)(float);
    float (*exp10)(float);
    float (*log)(float);
    float (*log2)(float);
    float (*log10)(float);
    float (*sin)(float);
    float (*cos)(float);
    float (*tan)(float);
    float (*asin)(float);
    float (*acos)(float);
    float (*atan)(float);
    float (*sinh)(float);
    float (*cosh)(float);
    float (*tanh)(float);
    float (*asinh)(float);
    float (*acosh)(float);
    float (*atanh)(float);
    float (*rsqrt)(float);
    float (*atan2)(float, float);
    float (*pow)(float, float);
    float (*fmod)(float, float);
    float (*ldexp)(float, int);
    float (*frexp)(float, int*);
    float (*erf)(float);
    float (*erfc)(float);
    float (*expm1)(float);
    float (*log1p)(float);
    float (*cbrt)(float);
    float (*lgamma)(float);
    float (*tgamma)(float);
    ksr_double_mathematics of_double;
    void (*assertion)(ksr_worker*, ksr_u32 line);  // one has failed: ends the run
};

// One operating-system thread, which runs one threadgroup at a time.
struct ksr_worker {
    ksr_simdgroup* simdgroup;  // of the lane that runs now
    ksr_u32 lane;
    ksr_u8* threadgroup_memory;
    const ksr_runtime* runtime;
    ksr_address device_begin, device_end;            // counted addresses (counted mode)
    ksr_address threadgroup_begin, threadgroup_end;
    ksr_access* log;                                 // KSR_LOG_STRIDE entries a lane
    ksr_u32 logged[KSR_SIMD_WIDTH];
    ksr_watch* watch;                                // null but in checked mode
    const ksr_thread* thread;                        // its positions and extents of the threadgroup count, those of a thread don't
    const ksr_u16 (*positions)[3];                   // of each thread in its threadgroup
    ksr_u32 dynamic_bytes;                           // threadgroup memory that the launch asks for besides what is declared
    ksr_u32 votes;                                   // threads that are for it, in a barrier that counts
    ksr_counters counters;
};

#if defined(__x86_64__) && defined(__linux__)
#define KSR_INSIDE "movq %%fs:0, %0"  // the thread's control block, which the ABI has begin with its own address
#elif defined(__x86_64__)
#define KSR_INSIDE "movq %%rsp, %0"
#elif defined(__aarch64__)
#define KSR_INSIDE "mov %0, sp"
#else
#error "the simulator switches stacks on x86-64 and arm64 only"
#endif

KSR_INLINE ksr_worker* ksr_worker_around(ksr_address inside) {
    return reinterpret_cast<ksr_worker*>(inside & ~(KSR_REGION_BYTES - 1));
}

KSR_INLINE ksr_worker* ksr_here() {
    ksr_address inside;
    asm(KSR_INSIDE : "=r"(inside));
    return ksr_worker_around(inside);
}

// The same for code that lanes take turns in. A compiler would keep the address on the fiber's stack, and the processor
// would have to know the next lane's stack pointer before it could begin with the lane's turn.
KSR_INLINE ksr_worker* ksr_here_anew() {
    ksr_address inside;
    asm volatile(KSR_INSIDE : "=r"(inside));
    return ksr_worker_around(inside);
}

// On Apple's systems x18 belongs to the system and no code uses it.
#if defined(__APPLE__)
#define KSR_PLATFORM_REGISTER
#else
#define KSR_PLATFORM_REGISTER "x18",
#endif

// Leaves the running fiber, saving where it stands in *save, and goes on where `load` was saved. Every register that a
// function may use is declared clobbered, so the compiler keeps exactly what is alive; 160 bytes are skipped because
// leaf functions may use the stack below its pointer.
KSR_INLINE void ksr_switch(void** save, void* load) {
#if defined(__x86_64__)
    asm volatile(
        "leaq -160(%%rsp), %%rsp\n\t"
        "pushq %%rbp\n\t"
        "leaq 1f(%%rip), %%rdx\n\t"
        "pushq %%rdx\n\t"
        "movq %%rsp, (%0)\n\t"
        "movq %1, %%rsp\n\t"
        "popq %%rdx\n\t"
        "jmpq *%%rdx\n"
        "1:\n\t"
        "popq %%rbp\n\t"
        "leaq 160(%%rsp), %%rsp"
        : "+a"(save), "+c"(load)
        :
        : "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "memory", "cc");
#else
    register void** saved asm("x0") = save;
    register void* next asm("x1") = load;
    asm volatile(
        "sub sp, sp, #176\n\t"
        "str x29, [sp, #8]\n\t"
        "adr x9, 1f\n\t"
        "str x9, [sp]\n\t"
        "mov x10, sp\n\t"
        "str x10, [x0]\n\t"
        "mov sp, x1\n\t"
        "ldr x9, [sp]\n\t"
        "br x9\n"
        "1:\n\t"
        "ldr x29, [sp, #8]\n\t"
        "add sp, sp, #176"
        : "+r"(saved), "+r"(next)
        :
        : KSR_PLATFORM_REGISTER "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19",
          "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
          "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
          "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc");
#endif
}

// Hands the processor to the next lane of this simdgroup, or to the scheduler when none of them can run.
KSR_INLINE void ksr_yield(ksr_worker* worker, ksr_simdgroup* group, ksr_u32 lane) {
#ifndef KSR_CHECKED  // when checking, the scheduler chooses who goes on
    if (group->runnable) {
        ksr_u32 next = __builtin_ctz(group->runnable);
        worker->lane = next;
        if (next != lane) ksr_switch(&group->stack_pointer[lane], group->stack_pointer[next]);
        return;
    }
#endif
    worker->runtime->block(worker);
}

// A kernel that notes no calls (see ksr_call) has no paths to look up.
#if defined(KSR_CALLS) || defined(KSR_CHECKED)
#define KSR_AFTER_CALLS(site, path) site |= ksr_u64(path) << KSR_PATH_AT
#else
#define KSR_AFTER_CALLS(site, path)
#endif

// Notes where `lane` waits, and where those do that came before: they differ.
static __attribute__((noinline, cold, unused)) void ksr_note_site(
    ksr_simdgroup* group, ksr_u32 lane, ksr_u64 site, ksr_combine combine) {
    for (ksr_u32 rest = group->mixed ? 0 : group->pending; rest; rest &= rest - 1) {
        group->sites[__builtin_ctz(rest)] = group->site;
        group->combine[__builtin_ctz(rest)] = group->common;
    }
    group->mixed = 1;
    group->sites[lane] = site;
    group->combine[lane] = combine;
}

// Takes part in a simdgroup operation: leaves `value` (and `operand`), returns what `combine` makes of all of them.
// `site` tells operations in different places apart; with the calls that led there, only lanes at one site combine.
template <class T>
KSR_INLINE T ksr_collective(T value, ksr_u32 operand, ksr_combine combine, ksr_u64 site) {
    static_assert(sizeof(T) <= KSR_SLOT_BYTES, "a simdgroup operation takes values of at most 16 bytes");
    ksr_worker* worker = ksr_here_anew();
    ksr_simdgroup* group = worker->simdgroup;
    ksr_u32 lane = worker->lane, bit = 1u << lane;
    KSR_AFTER_CALLS(site, group->path[lane]);
    *reinterpret_cast<T*>(group->value + lane * KSR_SLOT_BYTES) = value;
    group->operand[lane] = operand;
    ksr_u32 pending = group->pending | bit, runnable = group->runnable & ~bit;
#if defined(KSR_COUNTED) || defined(KSR_CHECKED)  // the scheduler sees every operation, and where each lane stands
    group->mixed = 1;
    group->sites[lane] = site;
    group->combine[lane] = combine;
#else
    if (pending == bit) {
        group->mixed = 0;
        group->site = site;
        group->common = combine;
    } else if (__builtin_expect(group->site != site || group->mixed, 0)) {
        ksr_note_site(group, lane, site, combine);
    }
    if (pending == group->live && !group->mixed) {
        combine(group, pending);
        runnable = pending;
        pending = 0;
    }
#endif
    group->pending = pending;
    group->runnable = runnable;
    ksr_yield(worker, group, lane);
    return reinterpret_cast<T*>(group->result)[lane];
}

// Waits until every thread of the threadgroup has come to the barrier; `fence` has Metal's mem_flags.
KSR_INLINE void ksr_wait_at_barrier(ksr_u64 site, ksr_u32 fence) {
    ksr_worker* worker = ksr_here_anew();
    ksr_simdgroup* group = worker->simdgroup;
    ksr_u32 lane = worker->lane, bit = 1u << lane;
    KSR_AFTER_CALLS(site, group->path[lane]);
    group->sites[lane] = site;
    group->operand[lane] = fence;
    group->barrier |= bit;
    group->runnable &= ~bit;
    ksr_yield(worker, group, lane);
}

// Stands at the begin of a function that is called from several places: notes the call for the time that it lasts.
struct ksr_call {
    ksr_u32* path;
    ksr_u32 before;

    KSR_INLINE explicit ksr_call(ksr_u64 place) {
        ksr_worker* worker = ksr_here();
        path = &worker->simdgroup->path[worker->lane];
        before = *path;
        *path = worker->runtime->enter(worker, before, place);
    }
    ksr_call(const ksr_call&) = delete;
    KSR_INLINE ~ksr_call() { *path = before; }
};

// Threadgroup arrays have a zone after them that nobody owns (checked mode).
constexpr ksr_u32 KSR_ZONE_BYTES = 2048;

// A threadgroup array as its declaration has it.
struct ksr_declared {
    ksr_u32 offset, bytes, element_bytes, row_bytes;
    const char* name;
};

#ifdef KSR_CHECKED  // linked into the kernel (watching.cc)
extern "C" __attribute__((visibility("hidden"))) void ksr_declare(const ksr_declared*);
extern "C" __attribute__((visibility("hidden"))) void ksr_absent_named(ksr_simdgroup*, ksr_u32 lane, ksr_u32 named, ksr_u32 active);
extern "C" __attribute__((visibility("hidden"))) void ksr_absent_lane(ksr_simdgroup*, ksr_u32 lane, ksr_u32 from);
extern "C" __attribute__((visibility("hidden"))) void ksr_atomic_read(const volatile void*, unsigned long bytes, ksr_u32 line);
extern "C" __attribute__((visibility("hidden"))) void ksr_atomic_write(const volatile void*, unsigned long bytes, ksr_u32 line);
extern "C" __attribute__((visibility("hidden"))) void ksr_fence_device();
// What follows stands in that line of the kernel, whatever the compiler says of expanded code (accesses.py reads it).
#define KSR_STANDS_IN(line) asm volatile(".set ksr_line, %c0" : : "i"(line) : "memory")
#else
#define KSR_STANDS_IN(line)
#endif
