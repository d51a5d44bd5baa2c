// What a kernel does wrong, as the processor or the scheduler notices it, on its way into the report.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif

#include "process.h"
#include "sandbox.h"

namespace {

constexpr ksr_u32 kSignalStack = 64 << 10;
constexpr int kFaulted = 3;

ksr_u32 faults;

constexpr int kBadAddress = 4;

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
#if defined(SI_KERNEL)  // an address that the processor would not even look up
    if (info->si_code == SI_KERNEL) fault(kOutsideEverything, 0, 0, kBadAddress);
#endif
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
    if (least > kArrayGuard) fault(kOutsideEverything, 0, 0, access_of(context));
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

}  // namespace

void fault(FaultKind kind, ksr_i64 a, ksr_i64 b, ksr_i64 c, ksr_i64 d, ksr_i64 e, ksr_i64 f, ksr_i64 g) {
    if (__atomic_fetch_add(&faults, 1, __ATOMIC_SEQ_CST) == 0) {
        report->kind = kind;
        const ksr_i64 detail[] = {a, b, c, d, e, f, g};
        memcpy(report->detail, detail, sizeof detail);
        __atomic_store_n(&report->state, kFault, __ATOMIC_SEQ_CST);
        _exit(kFaulted);
    }
    for (;;) pause();  // the first fault is the one that is told
}

void fail_assertion(ksr_worker* worker, ksr_u32 line) {
    fault(kAssertion, line, worker->simdgroup->first_thread + worker->lane, worker->thread->group.x,
          worker->thread->group.y, worker->thread->group.z);
}

// A fiber that overflows its stack can't also hold the handler's frame.
void use_signal_stack() {
    stack_t stack = {};
    stack.ss_sp = malloc(kSignalStack);
    stack.ss_size = kSignalStack;
    sigaltstack(&stack, nullptr);
}

void catch_faults() {
    use_signal_stack();
    catch_signal(SIGSEGV, on_memory_fault);
    catch_signal(SIGBUS, on_memory_fault);
    catch_signal(SIGFPE, on_arithmetic);
    catch_signal(SIGILL, on_illegal);
    catch_signal(SIGTRAP, on_illegal);
    catch_signal(SIGSYS, on_refused_call);
}

void ksr_report_divergence(ksr_divergence what, ksr_trail place, ksr_trail other_place, ksr_u32 waiting, ksr_u32 missing,
                           ksr_u32 thread, ksr_u32 other_thread) {
    fault(kDiverged, what, ksr_i64(place), ksr_i64(other_place), waiting, missing, thread, other_thread);
}
void ksr_report_threadgroup_overrun(ksr_u32 byte) { fault(kThreadgroupOverrun, byte); }
void ksr_report_out_of_memory() { fault(kOutOfMemory); }
void ksr_report_thread_elsewhere() { fault(kThreadElsewhere); }
