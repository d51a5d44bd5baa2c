// The process that runs kernels: it loads what was compiled, maps the arrays, runs the passes in order, and writes what
// came of it into the shared file. Nothing that a kernel does here can reach the process that asked.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__linux__)
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "checked_pass.h"
#include "counted_pass.h"
#include "process.h"
#include "sandbox.h"

Job job;
Report* report;
ksr_fiber_worker* workers[kMaxTeam];

namespace {

constexpr ksr_u32 kMaxMappings = 60000;  // Linux allows a process about 65,000
constexpr int kBadJob = 4;
// Private memory that a run may take: at all, for each worker (stacks of 1024 threads are half of it), and for each byte
// of the arrays (what is noted of them).
constexpr ksr_u64 kMemory = 1 << 30, kMemoryOfWorker = 512 << 20, kMemoryOfArrays = 16;
constexpr ksr_u64 kCheckedMemory = 1 << 20;  // threadgroup memory with the zones between arrays

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
    launch.dynamic_bytes = pass.dynamic_bytes;
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

ThreadStack stack_of(ksr_u32 member) { return {ksr_thread_stack(workers[member]), KSR_THREAD_STACK_BYTES}; }

// Makes every region that the passes will need.
void make_workers() {
    ksr_u64 most = most_threadgroups();
    if (most < job.workers) job.workers = ksr_u32(most);
    for (ksr_u32 i = 0; i < job.workers; ++i)
        if (!(workers[i] = ksr_worker_create(&runtime))) fault(kOutOfMemory);
}

void lock_in() {
    // What a fault is explained by must be what it was: a kernel can't change it.
    mprotect(&job, sizeof job, PROT_READ);
    if (int error = enter_sandbox()) fault(kNoSandbox, error);
}

ksr_address watched_begin, watched_end;  // of the arrays
Kernel kernels[kMaxPasses];

void run_pass(ksr_u32 i) {
    report->pass = i;
    unsigned long declared = kernels[i].declare() + job.pass[i].dynamic_bytes;
    unsigned long own = declared - (kernels[i].zones ? kernels[i].zones() : 0);
    if (own > job.memory_limit || declared > kCheckedMemory) fault(kTooMuchMemory, ksr_i64(own));
    kernels[i].threadgroup_bytes = ksr_u32(declared);
    void* buffers[kMaxBuffers];
    ksr_launch launch = launch_of(job.pass[i], kernels[i], buffers);
    if (kernels[i].fill) kernels[i].fill(buffers);
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

// What the team's leader does.
void run_job() {
    use_signal_stack();
    job.workers = start_team(job.workers, stack_of, use_signal_stack);
    if (job.count) prepare_counting(watched_begin, watched_end);
    if (job.check) {
        ksr_prepare_checks(ksr_worker_shared(workers[0]), &report->findings, watched_begin, watched_end, job.seed != 0);
        ksr_set_order(workers[0], job.seed, job.in_turns);
    }
    lock_in();
    for (ksr_u32 i = 0; i < job.passes; ++i) run_pass(i);
    __atomic_store_n(&report->state, kDone, __ATOMIC_SEQ_CST);
    _exit(0);
}

}  // namespace

int main(int, char** arguments) {
    int file = atoi(arguments[1]);
    if (!read_job(&job)) return kBadJob;
    if (job.workers > kMaxTeam) job.workers = kMaxTeam;
    void* shared = mmap(nullptr, to_page(sizeof(Report)), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return kBadJob;
    report = static_cast<Report*>(shared);
    report->state = kRunning;
    limit_process();
    catch_faults();
    map_arrays(file, &watched_begin, &watched_end);
    for (ksr_u32 i = 0; i < job.passes; ++i) {
        report->pass = i;
        kernels[i] = load_kernel(job.pass[i]);
    }
    make_workers();
    if (!lead_team(stack_of(0), run_job)) fault(kOutOfMemory);
    for (;;) pause();  // the leader ends the process
}
