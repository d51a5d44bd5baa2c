#include "sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

void set_limit(int what, rlim_t most) {
    const struct rlimit limit = {most, most};
    setrlimit(decltype(RLIMIT_CORE)(what), &limit);
}

// Also where no filter stands behind them: no file can be opened, none that was inherited is left.
void close_everything() {
    for (int file = 0; file < 64; ++file) close(file);  // the runner opens a handful
    set_limit(RLIMIT_NOFILE, 0);
}

}  // namespace

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "filter.h"

namespace {

#if defined(__x86_64__)
constexpr ksr_u32 kPause = SYS_pause;
#else
constexpr ksr_u32 kPause = SYS_ppoll;  // how pause() is made here
#endif
constexpr ksr_u32 kPlain[] = {SYS_exit_group, SYS_exit, SYS_munmap, SYS_brk, kPause, SYS_clock_gettime};
constexpr ksr_u32 kWaits[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET};

// Whatever is not allowed here ends in SIGSYS. Numbers are compared whole, which shuts out x32's (they have bit 30).
Filter compute_only() {
    Filter filter = {};
    filter.load(offsetof(seccomp_data, arch));
    filter.add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    filter.end(SECCOMP_RET_TRAP);
    filter.load(offsetof(seccomp_data, nr));
    for (ksr_u32 call : kPlain) {
        filter.when_equal(call, 1);
        filter.end(SECCOMP_RET_ALLOW);
    }
    // The threads wait for each other, and wake each other; no other kind of futex.
    filter.when_equal(SYS_futex, 9);
    filter.load_argument(1);
    filter.add(BPF_ALU | BPF_AND | BPF_K, ksr_u32(FUTEX_CMD_MASK));
    for (ksr_u32 operation : kWaits) {
        filter.when_equal(operation, 1);
        filter.end(SECCOMP_RET_ALLOW);
    }
    filter.end(SECCOMP_RET_TRAP);
    // Memory comes without a file, and never becomes code.
    filter.when_equal(SYS_mprotect, 4);
    filter.load_argument(2);
    filter.when_any_bit(PROT_EXEC, 1);
    filter.end(SECCOMP_RET_TRAP);
    filter.end(SECCOMP_RET_ALLOW);
    filter.when_equal(SYS_mmap, 6);
    filter.load_argument(2);
    filter.when_any_bit(PROT_EXEC, 1);
    filter.end(SECCOMP_RET_TRAP);
    filter.load_argument(3);
    filter.when_any_bit(MAP_ANONYMOUS, 1);
    filter.end(SECCOMP_RET_ALLOW);
    filter.end(SECCOMP_RET_TRAP);
    return filter;
}

// The calls that an attack would begin with, so that a message can name them.
struct NamedCall {
    long number;
    char name[16];
};
constexpr NamedCall kNamed[] = {
#define CALL(name) {SYS_##name, #name}
    CALL(read),     CALL(write),    CALL(openat),   CALL(close),    CALL(socket),  CALL(connect),  CALL(sendto),
    CALL(clone),    CALL(execve),   CALL(kill),     CALL(tgkill),   CALL(getpid),  CALL(ptrace),   CALL(ioctl),
    CALL(unlinkat), CALL(mkdirat),  CALL(renameat), CALL(dup),      CALL(prctl),   CALL(mremap),   CALL(mprotect),
    CALL(mmap),     CALL(madvise),  CALL(futex),    CALL(getrandom), CALL(writev), CALL(nanosleep), CALL(sched_yield),
    CALL(setrlimit), CALL(prlimit64), CALL(memfd_create), CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(ftruncate),
#if defined(__x86_64__)
    CALL(open),     CALL(fork),     CALL(vfork),    CALL(unlink),   CALL(mkdir),   CALL(rename),   CALL(alarm),
    CALL(chmod),    CALL(creat),
#endif
#undef CALL
};

}  // namespace

void limit_memory(ksr_u64 bytes) { set_limit(RLIMIT_DATA, bytes); }

int enter_sandbox() {
    close_everything();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    Filter filter = compute_only();
    const sock_fprog program = {filter.length, filter.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? errno : 0;
}

RefusedCall refused_call(const void* siginfo) {
    const siginfo_t* info = static_cast<const siginfo_t*>(siginfo);
    RefusedCall call = {-1, {}};
    if (info->si_arch != kArchitecture) return call;
    call.number = info->si_syscall;
    for (const NamedCall& named : kNamed)
        if (named.number == call.number) memcpy(call.name, named.name, sizeof call.name);
    return call;
}

#elif defined(__APPLE__)

// Declared here because the header marks it as deprecated; nothing took its place for programs outside of the App Store.
extern "C" int sandbox_init(const char* profile, ksr_u64 flags, char** error);

// Where private memory can't be limited, what bounds it is that only the runtime takes any.
void limit_memory(ksr_u64) {}

int enter_sandbox() {
    char* error = nullptr;
    if (sandbox_init("(version 1)(deny default)", 0, &error)) return EPERM;
    close_everything();
    set_limit(RLIMIT_NPROC, 0);
    return 0;
}

// The sandbox answers a call that it refuses with an error and no signal.
RefusedCall refused_call(const void*) { return {-1, {}}; }

#else
#error "the simulator knows how to lock itself in on Linux and macOS only"
#endif
