// The process that runs kernels: it loads what was compiled, maps the arrays, runs the passes in order, and writes what
// came of it into the shared file. Nothing that a kernel does here can reach the process that asked.
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <sys/prctl.h>
#include <ucontext.h>
#endif

#include "checked_pass.h"
#include "counting.h"
#include "job.h"
#include "sandbox.h"
#include "scheduler.h"
#include "team.h"

namespace {

constexpr ksr_u64 kArrayGuard = ksr_u64(1) << 30;
constexpr ksr_u32 kMaxMappings = 60000;  // Linux allows a process about 65,000
constexpr ksr_u32 kSignalStack = 64 << 10;
// Private memory that a run may take: at all, for each worker (stacks of 1024 threads are half of it), and for each byte
// of the arrays (what is noted of them).
constexpr ksr_u64 kMemory = 1 << 30, kMemoryOfWorker = 512 << 20, kMemoryOfArrays = 16;
constexpr ksr_u64 kCheckedMemory = 1 << 20;  // threadgroup memory with the zones between arrays
constexpr int kFaulted = 3, kBadJob = 4;

Job job;
Report* report;
ksr_fiber_worker* workers[kMaxTeam];
ksr_u32 faults;

// What was loaded of one pass.
struct Kernel {
    ksr_entry entry;
    unsigned long (*declare)();  // returns the bytes of threadgroup memory
    ksr_u32 threadgroup_bytes;
    ksr_u64* block_counts;  // how often each basic block ran (counted mode)
    const ksr_u32* block_weights;
    ksr_u32 blocks;
    const ksr_u32* element_bits;  // the narrowest access (checked mode)
};

[[noreturn]] void fault(FaultKind kind, ksr_i64 a = 0, ksr_i64 b = 0, ksr_i64 c = 0, ksr_i64 d = 0, ksr_i64 e = 0,
                        ksr_i64 f = 0, ksr_i64 g = 0) {
    if (__atomic_fetch_add(&faults, 1, __ATOMIC_SEQ_CST) == 0) {
        report->kind = kind;
        const ksr_i64 detail[] = {a, b, c, d, e, f, g};
        memcpy(report->detail, detail, sizeof detail);
        __atomic_store_n(&report->state, kFault, __ATOMIC_SEQ_CST);
        _exit(kFaulted);
    }
    for (;;) pause();  // the first fault is the one that is told
}

float exp10_of(float x) { return float(pow(10.0, double(x))); }
float rsqrt_of(float x) { return 1.0f / sqrtf(x); }

const ksr_runtime runtime = {ksr_block, ksr_pause, expf,  exp2f, exp10_of, logf,   log2f,  log10f, sinf,
                             cosf,      tanf,      asinf, acosf, atanf,    sinhf,  coshf,  tanhf,  asinhf,
                             acoshf,    atanhf,    rsqrt_of, atan2f, powf, fmodf,  ldexpf, frexpf};

// 1 for a read, 2 for a write, 3 for an instruction, 0 where the machine doesn't say.
int access_of(const void* context) {
#if defined(__linux__) && defined(__x86_64__)
    auto error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
    return error & 16 ? 3 : error & 2 ? 2 : 1;
#elif defined(__APPLE__) && defined(__aarch64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext->__es.__esr & 0x40 ? 2 : 1;
#else
    (void)context;
    return 0;
#endif
}

void on_memory_fault(int, siginfo_t* info, void* context) {
    ksr_address address = reinterpret_cast<ksr_address>(info->si_addr);
    if (access_of(context) == 3) fault(kOutsideEverything, 0, 0, 3);
    for (ksr_u32 i = 0; i < job.workers; ++i) {
        ksr_place place = workers[i] ? ksr_place_of(workers[i], address) : KSR_ELSEWHERE;
        if (place == KSR_STACK) fault(kStackOverflow);
        if (place == KSR_THREADGROUP) {
            const ksr_worker* worker = ksr_worker_shared(workers[i]);
            fault(kThreadgroupOverrun, ksr_i64(address - worker->threadgroup_begin));
        }
    }
    ksr_u32 nearest = 0;
    ksr_u64 least = ~0ull;
    for (ksr_u32 i = 0; i < job.arrays; ++i) {
        ksr_address begin = reinterpret_cast<ksr_address>(job.array[i].at), end = begin + job.array[i].bytes;
        ksr_u64 distance = address < begin ? begin - address : address >= end ? address - end : 0;
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    if (least > kArrayGuard * 64) fault(kOutsideEverything, 0, 0, access_of(context));
    ksr_i64 byte = ksr_i64(address - reinterpret_cast<ksr_address>(job.array[nearest].at));
    fault(kOutOfBounds, nearest, byte, access_of(context));
}

void on_arithmetic(int, siginfo_t*, void*) { fault(kArithmetic); }
void on_illegal(int, siginfo_t*, void*) { fault(kIllegal); }

void on_refused_call(int, siginfo_t* info, void*) {
    RefusedCall call = refused_call(info);
    ksr_i64 name[2];
    memcpy(name, call.name, sizeof name);
    fault(kRefusedCall, call.number, name[0], name[1]);
}

void catch_signal(int number, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(number, &action, nullptr);
}

// A fiber that overflows its stack can't also hold the handler's frame.
void use_signal_stack() {
    stack_t stack = {};
    stack.ss_sp = malloc(kSignalStack);
    stack.ss_size = kSignalStack;
    sigaltstack(&stack, nullptr);
}

void limit_process() {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &none);
    ksr_u64 memory = kMemory + job.workers * kMemoryOfWorker;
    for (ksr_u32 i = 0; i < job.arrays; ++i) memory += kMemoryOfArrays * job.array[i].bytes;
    limit_memory(memory);
    if (job.seconds) {  // should the process that asked be gone, this one ends by itself
        struct itimerval timer = {};
        timer.it_value.tv_sec = job.seconds;
        setitimer(ITIMER_REAL, &timer, nullptr);
    }
}

ksr_u64 to_page(ksr_u64 bytes) { return (bytes + kPadBytes - 1) / kPadBytes * kPadBytes; }

// Maps the arrays that are (or are not) constant, each with wide guards of unmapped addresses. Returns the range.
void map_arrays(int file, bool constant, ksr_address* begin, ksr_address* end) {
    ksr_u64 total = kArrayGuard + kPadBytes;
    for (ksr_u32 i = 0; i < job.arrays; ++i)
        if (job.array[i].constant == constant) total += to_page(job.array[i].bytes) + 2 * kPadBytes + kArrayGuard;
    void* reserved = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) fault(kOutOfMemory);
    ksr_address at = to_page(reinterpret_cast<ksr_address>(reserved));
    *begin = at;
    for (ksr_u32 i = 0; i < job.arrays; ++i) {
        Array& array = job.array[i];
        if (array.constant != constant) continue;
        at += kArrayGuard;
        ksr_u64 bytes = to_page(array.bytes) + 2 * kPadBytes;
        int protection = array.writable ? PROT_READ | PROT_WRITE : PROT_READ;
        void* mapped = mmap(reinterpret_cast<void*>(at), bytes, protection, MAP_SHARED | MAP_FIXED, file,
                            off_t(array.offset - kPadBytes));
        if (mapped == MAP_FAILED) fault(kOutOfMemory);
        array.at = reinterpret_cast<ksr_u8*>(at + kPadBytes);
        at += bytes;
    }
    *end = at;
}

// Only finds what was compiled: none of it runs before the sandbox is entered (that nothing in the library runs by being
// loaded was seen to when it was built).
Kernel load(const Pass& pass) {
    void* library = dlopen(pass.path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fault(kNotLoaded);
    Kernel kernel = {};
    kernel.entry = reinterpret_cast<ksr_entry>(dlsym(library, "ksr_kernel"));
    kernel.declare = reinterpret_cast<unsigned long (*)()>(dlsym(library, "ksr_threadgroup_bytes"));
    if (!kernel.entry || !kernel.declare) fault(kNotLoaded);
    if (job.count) {
        kernel.block_counts = static_cast<ksr_u64*>(dlsym(library, "ksr_block_counts"));
        kernel.block_weights = static_cast<ksr_u32*>(dlsym(library, "ksr_block_weights"));
        auto blocks = static_cast<const ksr_u32*>(dlsym(library, "ksr_blocks"));
        if (!kernel.block_counts || !kernel.block_weights || !blocks) fault(kNotLoaded);
        kernel.blocks = *blocks;
    }
    if (job.check) {
        kernel.element_bits = static_cast<const ksr_u32*>(dlsym(library, "ksr_element_bits"));
        if (!kernel.element_bits) fault(kNotLoaded);
    }
    return kernel;
}

ksr_u32 ceildiv(ksr_u32 a, ksr_u32 b) { return a / b + (a % b != 0); }
ksr_u32 least(ksr_u32 a, ksr_u32 b) { return a < b ? a : b; }

ksr_launch launch_of(const Pass& pass, const Kernel& kernel, void** buffers) {
    for (ksr_u32 i = 0; i < pass.buffers; ++i) buffers[i] = job.array[pass.buffer[i]].at;
    ksr_launch launch = {};
    launch.entry = kernel.entry;
    launch.buffers = buffers;
    launch.grid = pass.grid;
    launch.nominal_size = {least(pass.group.x, pass.grid.x), least(pass.group.y, pass.grid.y),
                           least(pass.group.z, pass.grid.z)};
    launch.groups = {ceildiv(pass.grid.x, launch.nominal_size.x), ceildiv(pass.grid.y, launch.nominal_size.y),
                     ceildiv(pass.grid.z, launch.nominal_size.z)};
    launch.threadgroup_bytes = kernel.threadgroup_bytes;
    return launch;
}

ksr_u64 threadgroups_of(const ksr_launch& launch) {
    return ksr_u64(launch.groups.x) * launch.groups.y * launch.groups.z;
}

// The threadgroups of a pass as the workers share them: whoever is free takes the next few.
struct Shares {
    const ksr_launch* launch;
    ksr_u64 next, total, few;
};

void run_share(ksr_u32 member, void* context) {
    Shares* shares = static_cast<Shares*>(context);
    for (;;) {
        ksr_u64 begin = __atomic_fetch_add(&shares->next, shares->few, __ATOMIC_RELAXED);
        for (ksr_u64 i = begin; i < begin + shares->few; ++i) {
            if (i >= shares->total) return;
            ksr_run_threadgroup(workers[member], shares->launch, i);
        }
    }
}

void run_all(const ksr_launch& launch, ksr_u64 total) {
    ksr_u32 threads = launch.nominal_size.x * launch.nominal_size.y * launch.nominal_size.z;
    ksr_u64 count = least(job.workers, kMaxMappings / (2 * threads));
    if (total < count) count = total;
    Shares shares = {&launch, 0, total, total / (count * 16) + 1};
    for (ksr_u32 i = 0; i < count; ++i) ksr_worker_reserve(workers[i], launch.threadgroup_bytes);
    run_team(ksr_u32(count), run_share, &shares);
}

ksr_u64 block_work(const Kernel& kernel) {
    ksr_u64 work = 0;
    for (ksr_u32 i = 0; i < kernel.blocks; ++i) work += kernel.block_counts[i];
    return work;
}

void clear_counts(const Kernel& kernel, ksr_worker* worker, ksr_counting* counting) {
    memset(kernel.block_counts, 0, kernel.blocks * sizeof(ksr_u64));
    worker->counters = {};
    for (ksr_u32 i = 0; i < counting->arrays; ++i) counting->array[i].read = counting->array[i].written = false;
}

ksr_u64 lines_of(const ksr_counted_array& array) {
    return ((array.end - array.begin - 1) >> job.line_bits) + 1;
}

// Notes each line that is touched: worth it only where every threadgroup runs.
void count_footprints(ksr_counting* counting) {
    for (ksr_u32 i = 0; i < counting->arrays; ++i) {
        ksr_counted_array& array = counting->array[i];
        array.read_lines = static_cast<ksr_u8*>(calloc(lines_of(array) / 8 + 1, 1));
        array.written_lines = static_cast<ksr_u8*>(calloc(lines_of(array) / 8 + 1, 1));
    }
}

ksr_u64 touched(const ksr_counted_array& array, bool any, const ksr_u8* bitmap) {
    if (!bitmap) return any ? array.end - array.begin : 0;
    ksr_u64 lines = 0;
    for (ksr_u64 i = 0; i < (lines_of(array) + 7) / 8; ++i) lines += ksr_u64(__builtin_popcount(bitmap[i]));
    ksr_u64 bytes = lines << job.line_bits;
    return bytes < array.end - array.begin ? bytes : array.end - array.begin;
}

// The ith of `count` threadgroups that stand for all: spread evenly along the first dimension that has several, and
// by golden ratios along the others, so that no pattern of the grid (a causal mask, a tail) falls between them.
ksr_u64 sample(const ksr_launch& launch, ksr_u64 i, ksr_u64 count) {
    const ksr_u32 extents[] = {launch.groups.x, launch.groups.y, launch.groups.z};
    const double steps[] = {0.0, 0.6180339887498949, 0.7548776662466927};
    ksr_u64 index = 0, stride = 1;
    ksr_u32 several = 0;
    for (ksr_u32 extent : extents) {
        if (extent == 1) continue;
        double at = 0.5 + double(i) * steps[several];
        if (several) {
            at = floor((at - floor(at)) * extent);
        } else {  // towards the middle from both sides: what grows along the grid is met at its mean
            at = (double(i) + 0.5) / double(count) * extent - 0.5;
            at = 2 * i + 1 < count ? ceil(at) : floor(at);
        }
        index += ksr_u64(at) * stride;
        stride *= extent;
        ++several;
    }
    return index;
}

// Counts a sample of the threadgroups, as large as the budget allows: one of two says what a threadgroup costs.
ksr_u64 count_sample(const Kernel& kernel, const ksr_launch& launch, ksr_u64 total, ksr_counting* counting) {
    ksr_worker* worker = ksr_worker_shared(workers[0]);
    ksr_u64 sampled = total < 2 ? total : 2;
    for (;;) {
        clear_counts(kernel, worker, counting);
        if (sampled == total) count_footprints(counting);
        for (ksr_u64 i = 0; i < sampled; ++i) {
            ksr_forget_lines();
            ksr_run_threadgroup(workers[0], &launch, sampled == total ? i : sample(launch, i, sampled));
        }
        if (sampled != 2 || total == 2) return sampled;
        ksr_u64 work = (block_work(kernel) + worker->counters.logged) / 2 + 1;
        if (job.budget / work <= 2) return sampled;
        sampled = job.budget / work < total ? job.budget / work : total;
    }
}

void count_pass(const Pass& pass, const Kernel& kernel, const ksr_launch& launch, ksr_u64 total, PassReport* into) {
    static ksr_counted_array arrays[kMaxBuffers];
    ksr_counting counting = {job.line_bits, job.block_bits, 0, arrays};
    for (ksr_u32 i = 0; i < pass.buffers; ++i) {
        const Array& array = job.array[pass.buffer[i]];
        if (array.constant) continue;
        ksr_address begin = reinterpret_cast<ksr_address>(array.at);
        arrays[counting.arrays++] = {begin, begin + array.bytes, false, false, nullptr, nullptr};
    }
    ksr_count_with(&counting);
    ksr_worker_reserve(workers[0], launch.threadgroup_bytes);
    into->sampled = count_sample(kernel, launch, total, &counting);
    into->counters = ksr_worker_shared(workers[0])->counters;
    for (ksr_u32 i = 0; i < counting.arrays; ++i) {
        into->footprint_read += touched(arrays[i], arrays[i].read, arrays[i].read_lines);
        into->footprint_written += touched(arrays[i], arrays[i].written, arrays[i].written_lines);
        free(arrays[i].read_lines);
        free(arrays[i].written_lines);
    }
    for (ksr_u32 block = 0; block < kernel.blocks; ++block)
        for (ksr_u32 kind = 0; kind < kKinds; ++kind)
            into->kinds[kind] += kernel.block_counts[block] * kernel.block_weights[block * kKinds + kind];
}

void prepare_counting(ksr_address begin, ksr_address end) {
    ksr_worker* worker = ksr_worker_shared(workers[0]);
    worker->device_begin = begin;
    worker->device_end = end;
    worker->log = static_cast<ksr_access*>(malloc(sizeof(ksr_access) * KSR_SIMD_WIDTH * KSR_LOG_STRIDE));
    if (!worker->log) fault(kOutOfMemory);
}

void check_pass(ksr_u32 number, const Kernel& kernel, const ksr_launch& launch, ksr_u64 total) {
    ksr_worker_reserve(workers[0], launch.threadgroup_bytes);
    ksr_watch_arrays(job, job.pass[number], number, *kernel.element_bits);
    report->findings.groups += total;
    report->findings.groups_run += ksr_check_pass(workers[0], &launch, total, job.milliseconds / 1000.0);
}

// The most threadgroups that any pass has.
ksr_u64 most_threadgroups() {
    ksr_u64 most = 0;
    for (ksr_u32 i = 0; i < job.passes; ++i) {
        void* buffers[kMaxBuffers];
        ksr_u64 total = threadgroups_of(launch_of(job.pass[i], {}, buffers));
        if (total > most) most = total;
    }
    return most;
}

// Makes every thread and every region that the passes will need.
void gather_team() {
    ksr_u64 most = most_threadgroups();
    if (most < job.workers) job.workers = ksr_u32(most);
    job.workers = start_team(job.workers, use_signal_stack);
    for (ksr_u32 i = 0; i < job.workers; ++i)
        if (!(workers[i] = ksr_worker_create(&runtime))) fault(kOutOfMemory);
}

void lock_in() {
    // What a fault is explained by must be what it was: a kernel can't change it.
    mprotect(&job, sizeof job, PROT_READ);
    if (int error = enter_sandbox()) fault(kNoSandbox, error);
}

}  // namespace

void ksr_report_divergence(ksr_divergence what, ksr_u32 line, ksr_u32 other_line, ksr_u32 waiting, ksr_u32 missing,
                           ksr_u32 thread, ksr_u32 other_thread) {
    fault(kDiverged, what, line, other_line, waiting, missing, thread, other_thread);
}
void ksr_report_threadgroup_overrun(ksr_u32 byte) { fault(kThreadgroupOverrun, byte); }
void ksr_report_out_of_memory() { fault(kOutOfMemory); }

int main(int, char** arguments) {
    int file = atoi(arguments[1]);
    if (!read_job(&job)) return kBadJob;
    if (job.workers > kMaxTeam) job.workers = kMaxTeam;
    void* shared = mmap(nullptr, to_page(sizeof(Report)), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return kBadJob;
    report = static_cast<Report*>(shared);
    report->state = kRunning;
    limit_process();
    use_signal_stack();
    catch_signal(SIGSEGV, on_memory_fault);
    catch_signal(SIGBUS, on_memory_fault);
    catch_signal(SIGFPE, on_arithmetic);
    catch_signal(SIGILL, on_illegal);
    catch_signal(SIGTRAP, on_illegal);
    catch_signal(SIGSYS, on_refused_call);
    ksr_address begin, end, constant_begin, constant_end;
    map_arrays(file, false, &begin, &end);
    map_arrays(file, true, &constant_begin, &constant_end);
    static Kernel kernels[kMaxPasses];
    for (ksr_u32 i = 0; i < job.passes; ++i) {
        report->pass = i;
        kernels[i] = load(job.pass[i]);
    }
    gather_team();
    if (job.count) prepare_counting(begin, end);
    if (job.check) {
        ksr_prepare_checks(ksr_worker_shared(workers[0]), &report->findings, begin, end);
        ksr_shuffle(workers[0], job.seed);
    }
    lock_in();
    for (ksr_u32 i = 0; i < job.passes; ++i) {
        report->pass = i;
        unsigned long declared = kernels[i].declare();
        if (declared > (job.check ? kCheckedMemory : job.memory_limit)) fault(kTooMuchMemory, ksr_i64(declared));
        kernels[i].threadgroup_bytes = ksr_u32(declared);
        void* buffers[kMaxBuffers];
        ksr_launch launch = launch_of(job.pass[i], kernels[i], buffers);
        ksr_u64 total = threadgroups_of(launch);
        PassReport& counts = report->counts[i];
        counts.threadgroups = total;
        counts.threads = launch.nominal_size.x * launch.nominal_size.y * launch.nominal_size.z;
        counts.threadgroup_bytes = kernels[i].threadgroup_bytes;
        if (job.count)
            count_pass(job.pass[i], kernels[i], launch, total, &counts);
        else if (job.check)
            check_pass(i, kernels[i], launch, total);
        else
            run_all(launch, total);
    }
    __atomic_store_n(&report->state, kDone, __ATOMIC_SEQ_CST);
    _exit(0);
}
