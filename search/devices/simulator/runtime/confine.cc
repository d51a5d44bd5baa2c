// Starts a compiler that can do little harm if a kernel's text takes it over: it reads only where it is told to, writes
// only in its own folder, has no network, and ends when it has used up its time or memory.
//
//     confine CPU-SECONDS MEMORY-BYTES FILE-BYTES [-r FOLDER]... [-w FOLDER]... -- COMMAND...
//
// `confine --walls` prints which of "files" and "calls" this system can keep: limits alone are everywhere.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi.h"

namespace {

constexpr int kNotStarted = 127;

void set_limit(int what, rlim_t soft, rlim_t hard) {
    const struct rlimit limit = {soft, hard};
    setrlimit(decltype(RLIMIT_CORE)(what), &limit);
}

}  // namespace

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "filter.h"

namespace {

// Landlock, as the kernel's documentation describes it; declared here because older systems have no header for it.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr ksr_u64 kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8, kTruncate = 1 << 14;
constexpr ksr_u64 kRead = kExecute | kReadFile | kReadFolder, kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;
constexpr int kHighestRight[] = {0, 13, 14, 15, 15, 16};  // how many rights each version knows
struct Ruleset {
    ksr_u64 files, network, scopes;
};
struct __attribute__((packed)) Rule {
    ksr_u64 allowed;
    int folder;
};

int landlock_version() { return int(syscall(kCreateRuleset, nullptr, 0, 1)); }

// The rights on files that this version of Landlock can take away.
ksr_u64 rights_of(int version) { return (ksr_u64(1) << kHighestRight[version < 5 ? version : 5]) - 1; }

bool allow(int ruleset, const char* path, ksr_u64 rights) {
    Rule rule = {rights, open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0) return true;  // what is not there can't be read either
    struct stat about;
    if (!fstat(rule.folder, &about) && !S_ISDIR(about.st_mode)) rule.allowed &= kOfFiles;
    bool added = syscall(kAddRule, ruleset, 1, &rule, 0) == 0;
    close(rule.folder);
    return added;
}

// Takes all files away but those given. True where the system knows no such thing: the text rules stand alone there.
bool confine_files(char** words) {
    int version = landlock_version();
    if (version < 1) return true;
    const ksr_u64 rights = rights_of(version);
    // Version 4 can refuse TCP, 6 to reach other processes by signals and by sockets without a file.
    Ruleset given = {rights, version >= 4 ? ksr_u64(3) : 0, version >= 6 ? ksr_u64(3) : 0};
    size_t bytes = version >= 6 ? sizeof given : version >= 4 ? 16 : 8;
    int ruleset = int(syscall(kCreateRuleset, &given, bytes, 0));
    if (ruleset < 0) return false;
    for (; strcmp(words[0], "--"); words += 2)
        if (!allow(ruleset, words[1], strcmp(words[0], "-w") ? kRead : rights)) return false;
    if (!allow(ruleset, "/dev/null", rights & (kReadFile | kWriteFile | kTruncate))) return false;
    bool done = syscall(kRestrictSelf, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

// What no compiler needs and an attack does: the network, other processes' memory, the kernel's less trodden ways.
constexpr long kRefused[] = {
    SYS_socket, SYS_socketpair, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount, SYS_umount2,
    SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open, SYS_add_key, SYS_request_key,
    SYS_keyctl, SYS_userfaultfd, SYS_init_module, SYS_finit_module, SYS_kexec_load, SYS_reboot, SYS_swapon,
    425 /* io_uring_setup */, 426, 427, 428 /* open_tree */, 429, 430, 434 /* pidfd_open */, 438,
};

bool refuse_calls() {
    Filter filter = {};
    filter.load(offsetof(seccomp_data, arch));
    filter.add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    filter.end(SECCOMP_RET_ERRNO | EPERM);
    filter.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    filter.when_any_bit(1u << 30, 1);  // x32's numbers
    filter.end(SECCOMP_RET_ERRNO | EPERM);
#endif
    for (long call : kRefused) {
        filter.when_equal(ksr_u32(call), 1);
        filter.end(SECCOMP_RET_ERRNO | EPERM);
    }
    filter.end(SECCOMP_RET_ALLOW);
    const sock_fprog program = {filter.length, filter.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 || errno == ENOSYS || errno == EINVAL;
}

bool confine(char** words) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return false;
    return confine_files(words) && refuse_calls();
}

void print_walls() {
    if (landlock_version() >= 1) puts("files");
    ksr_u32 action = SECCOMP_RET_ERRNO;
    if (!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action)) puts("calls");
}

}  // namespace

#else

namespace {

bool confine(char**) { return true; }
void print_walls() {}

}  // namespace

#endif

int main(int count, char** words) {
    if (count == 2 && !strcmp(words[1], "--walls")) {
        print_walls();
        return 0;
    }
    char** command = words;
    while (*command && strcmp(*command, "--")) ++command;
    if (count < 6 || !*command || !command[1]) return kNotStarted;
    rlim_t seconds = rlim_t(atoll(words[1])), memory = rlim_t(atoll(words[2])), file = rlim_t(atoll(words[3]));
    set_limit(RLIMIT_CPU, seconds, seconds + 1);
    set_limit(RLIMIT_AS, memory, memory);
    set_limit(RLIMIT_FSIZE, file, file);
    set_limit(RLIMIT_CORE, 0, 0);
    if (!confine(words + 4)) {
        fprintf(stderr, "error: the compiler can't be confined: %s\n", strerror(errno));
        return kNotStarted;
    }
    execvp(command[1], command + 1);
    fprintf(stderr, "error: %s: %s\n", command[1], strerror(errno));
    return kNotStarted;
}
