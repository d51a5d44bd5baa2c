"""How the C++ compiler is called for kernels and for the programs that run them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from search.devices.simulator.accesses import tell_lines
from search.devices.simulator.assembly import instrument
from search.devices.simulator.cache import cache_folder, kept
from search.devices.simulator.compilers import find_compiler
from search.devices.simulator.confinement import readable
from search.devices.simulator.library import flaw_of
from search.devices.simulator.screening import smuggled_directive

HERE = Path(__file__).parent
RUNTIME, HEADERS = HERE / "runtime", HERE / "headers"

COMPILE_SECONDS = 60.0
COMPILE_CPU_SECONDS = 20
COMPILE_MEMORY_BYTES = 4 << 30
COMPILE_FILE_BYTES = 128 << 20
_MOST_SAID = 1 << 20  # bytes of a compiler's complaints that are read

UNROLLED_INSTRUCTIONS = 2700
PRIVATE_BYTES = 48 << 10
"""The most private memory that one function of a kernel may use: less than the guard below a fiber's stack."""

# Contraction is off: Metal's default math mode is "safe", and a result must not depend on whether this CPU has fma.
# Aliasing rules are off: kernels read float arrays as uint, and Metal's compiler lets them. Loops may be endless: one
# that is must be found, not removed.
_LANGUAGE = (
    *("-std=c++20", "-fPIC", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-fno-math-errno"),
    *("-fno-trapping-math", "-ffp-contract=off", "-fno-strict-aliasing", "-fsigned-char", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-fno-threadsafe-statics", "-fno-sanitize=undefined", "-fno-ident"),
    *("-fvisibility=hidden", "-fno-finite-loops"),
)

_SCALAR = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")

# A call before each access, by whether the compiler is a clang: it leaves out a read before a write of the same place.
_ACCESSES_ANNOUNCED = {
    False: ("-fsanitize=thread",),
    True: ("-fsanitize=thread", "-mllvm", "-tsan-instrument-read-before-write"),
}

# What these name could bring files into a kernel that its text doesn't ask for.
_FOREIGN_VARIABLES = frozenset({"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "LIBRARY_PATH"})

# How a compiler ends that met one of its limits, and what that says about the kernel.
_ENDINGS = (
    (r"out of memory|[Mm]emory exhausted|bad_alloc|[Cc]annot allocate", "more than {memory} GiB to compile"),
    (r"[Ff]ile size limit|[Ff]ile too large", "more than {file} MiB when compiled: its tables are too large"),
    (r"CPU time limit|[Kk]illed", "more than {cpu} s to compile: it has too much to work out"),
    (
        r"internal compiler error|terminated program|PLEASE submit|frontend command failed",
        "more than this compiler can do: write it more simply",
    ),
)


class CompileError(Exception):
    """A compiler that refused its input; the text is what it printed."""


FAST, COUNTED, CHECKED = "kernel", "counted", "checked"
"""Ways to build a kernel: for speed, with its work counted, with every access checked."""


def build_kernel(text: str, how: str) -> Path:
    """Return the library that ``text`` compiles to, built `FAST`, `COUNTED` or `CHECKED`; raise `CompileError`."""
    flags = [*_LANGUAGE, *_machine_flags(), *_private_memory_flags(), *_bounding_flags(), "-nostdinc", "-O2"]
    if how == COUNTED:
        flags += _counting_flags()
    elif how == CHECKED:
        flags += _checking_flags()

    def build(folder: Path, result: Path) -> None:
        source, assembly = folder / "kernel.cc", folder / "kernel.s"
        source.write_text(text, encoding="utf-8")
        _compile([*flags, f"-I{HEADERS}", "-S", str(source), "-o", str(assembly)], folder)
        if directive := smuggled_directive(assembly.read_bytes()):
            raise CompileError(f"error: the kernel has the assembler obey '{directive}': it may hold no assembly")
        objects = [_object(RUNTIME / "memory.cc")]
        if how != FAST:
            written = assembly.read_text(encoding="latin-1")  # strings in it may be any bytes
            if how == COUNTED:
                written = instrument(written)
                objects.append(_object(RUNTIME / "hooks.cc"))
            else:
                written, element_bits = tell_lines(written)
                objects.append(_object(RUNTIME / "watching.cc", f"-DKSR_ELEMENT_BITS={element_bits}"))
            assembly.write_text(written, encoding="latin-1")
        _compile([*_link_flags(), str(assembly), *map(str, objects), *_arithmetic_library(), "-o", str(result)], folder)
        if flaw := flaw_of(result.read_bytes(), initializers=flags.count("-fsanitize=thread")):
            raise CompileError(f"error: the kernel {flaw}")

    return _cached(how, ".so", [*flags, text], build)


def frame_bytes(text: str) -> int:
    """Return the largest stack frame of the kernel ``text``'s own functions, 0 if the compiler doesn't say.

    It holds a thread's arrays, and what else is alive and finds no place in the CPU's registers.
    """
    flags = [*_LANGUAGE, *_machine_flags(), "-nostdinc", "-O2", "-fstack-usage"]
    if _on_x86():
        flags.append("-mno-red-zone")  # what a function that calls none keeps below its frame
    if find_compiler().clang:
        flags += _SCALAR  # it would keep eight values of an array in one register

    def build(folder: Path, result: Path) -> None:
        source, usage = folder / "kernel.cc", folder / "kernel.su"
        source.write_text(text, encoding="utf-8")
        _compile([*flags, f"-I{HEADERS}", "-S", str(source), "-o", str(folder / "kernel.s")], folder)
        functions = usage.read_text(encoding="utf-8", errors="replace").splitlines() if usage.exists() else []
        own = [line.split("\t") for line in functions if Path(line.partition(":")[0]).name == source.name]
        # A frame of none is known too: it counts as one byte.
        result.write_text(str(max((int(frame) or 1 for _, frame, _ in own), default=0)), encoding="ascii")

    return int(_cached("frame", ".txt", [*flags, text], build).read_text(encoding="ascii"))


def _counting_flags() -> list[str]:
    """Return flags that call `runtime/hooks.cc` at each access, mark basic blocks, and leave scalar code scalar."""
    clang = find_compiler().clang
    flags = ["-DKSR_COUNTED", "-g0", *_SCALAR, *_unrolling_flags(), *_ACCESSES_ANNOUNCED[clang]]
    flags += [f"-fsanitize-coverage=trace-pc{',no-prune' if clang else ''}"]
    if clang and _on_x86():
        # Pairs of floats that it passes in one register would be multiplied four at a time.
        flags += ["-mllvm", "-disable-vector-combine"]
    return flags


def _unrolling_flags() -> list[str]:
    """Return flags that unroll inner loops of a fixed length, and no others, as a GPU's compiler does.

    A GPU can't index registers, so arrays stay in them only when every index is known; then neighbouring loads also
    become one. The limit is that of LLVM's AMDGPU target for loops over private arrays, the one that is public.
    """
    if find_compiler().clang:
        options = (f"-unroll-threshold={UNROLLED_INSTRUCTIONS}", "-unroll-allow-partial=0", "-unroll-runtime=0")
        return [word for option in options for word in ("-mllvm", option)]
    return [
        *("-O3", "-fno-unroll-loops", "-fno-loop-interchange", "-fno-loop-unroll-and-jam", "-fno-split-loops"),
        *(f"--param=max-completely-peeled-insns={UNROLLED_INSTRUCTIONS}", "--param=max-completely-peel-times=256"),
        # Nor are loads taken out of loops: a CPU keeps them on its stack, which is not counted, without any limit.
        *("-fno-tree-loop-im", "-fno-tree-pre"),
    ]


def _checking_flags() -> list[str]:
    """Return flags that call `runtime/watching.cc` at each access and say which line each instruction comes from."""
    clang = find_compiler().clang
    flags = ["-DKSR_CHECKED", *_SCALAR, "-fno-unroll-loops", *_ACCESSES_ANNOUNCED[clang]]
    flags += ["-fsanitize=alignment", "-gno-column-info"]
    # An index past an array that is known to the compiler alone: a private array, a table, a row.
    flags += ["-fsanitize=array-bounds" if clang else "-fsanitize=bounds"]
    if clang:
        return [*flags, "-gline-tables-only"]
    return [*flags, "-g1", "-gno-variable-location-views", "-fno-schedule-insns2", "-fno-reorder-blocks"]


def build_runner() -> Path:
    """Return the program that runs kernels, compiled once for this machine and compiler; raise `CompileError`."""
    flags = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-sanitize=undefined"]
    names = ("runner", "job", "kernel", "mapping", "faults", "mathematics", "scheduler", "calls", "team", "sandbox")
    names_of_modes = ("counted_pass", "counting", "checking", "places")
    sources = [str(RUNTIME / f"{name}.cc") for name in (*names, *names_of_modes)]
    libraries = [] if sys.platform == "darwin" else ["-ldl", "-lpthread", "-lm"]
    if find_compiler().zig:
        libraries.append("-nostdlib++")

    def build(folder: Path, result: Path) -> None:
        _compile([*flags, *sources, *libraries, "-o", str(result)], folder)

    return _cached("runner", "", flags, build)


def _object(source: Path, *more: str) -> Path:
    # A loop that fills memory must not be compiled into a call of the function that it is.
    flags = [*_LANGUAGE, *_machine_flags(), "-O2", "-fno-builtin", *more]
    if not find_compiler().clang:
        flags.append("-fno-tree-loop-distribute-patterns")
    return _cached(
        source.stem,
        ".o",
        flags,
        lambda folder, result: _compile([*flags, "-c", str(source), "-o", str(result)], folder),
    )


@lru_cache(maxsize=1)
def _machine_flags() -> tuple[str, ...]:
    """Return flags for instructions that this CPU has: conversions of half, fused multiply-add."""
    compiler = find_compiler()
    # Every operation on half is rounded, as on a GPU; for other CPUs clang has no such flag and does it anyway.
    rounding = ("-fexcess-precision=16",)
    if not _on_x86():
        return () if compiler.clang else rounding
    level = "x86-64-v3" if _has_avx2() else "x86-64-v2"
    if compiler.zig:
        level = level.replace("-", "_")
    alignment = () if compiler.clang else ("-malign-data=abi",)
    return (f"-march={level}", "-fcf-protection=none", *rounding, *alignment)


def _private_memory_flags() -> list[str]:
    if find_compiler().clang:
        return [f"-Wframe-larger-than={PRIVATE_BYTES}", "-Werror=frame-larger-than"]
    return [f"-Werror=frame-larger-than={PRIVATE_BYTES}"]


def _bounding_flags() -> list[str]:
    """Return flags that end what a kernel can have a compiler do without end: expansions, evaluations, complaints."""
    flags = ["-ftemplate-depth=200", "-fconstexpr-depth=200", "-Werror=vla", "-Werror=alloca"]
    if find_compiler().clang:
        return [*flags, "-ferror-limit=20", "-fconstexpr-steps=4194304"]
    return [*flags, "-fmax-errors=20", "-fconstexpr-ops-limit=4194304"]


def _on_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def _has_avx2() -> bool:
    cpu = Path("/proc/cpuinfo")
    if not cpu.is_file():
        return True  # every Intel Mac that still gets a compiler
    words = set(cpu.read_text(encoding="utf-8", errors="replace").split())
    return {"avx2", "fma", "f16c", "bmi2"} <= words


def _link_flags() -> list[str]:
    flags = ["-shared", "-nostdlib", *_machine_flags()]
    # A name that the kernel doesn't define itself is an error here, not something to find in the runner; one that it
    # does define means that.
    return flags if sys.platform == "darwin" else [*flags, "-Wl,-z,defs", "-Wl,-Bsymbolic"]


def _arithmetic_library() -> list[str]:
    """Return what holds the conversions that a CPU has no instruction for; it can compute and nothing else."""
    return [] if sys.platform == "darwin" or find_compiler().zig else ["-lgcc"]


@lru_cache(maxsize=1)
def _runtime_digest() -> str:
    digest = hashlib.sha256()
    # The assembly passes take part in every counted and checked build.
    for path in sorted([*RUNTIME.rglob("*"), *HEADERS.rglob("*"), HERE / "assembly.py", HERE / "accesses.py"]):
        if path.is_file():
            digest.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _cached(name: str, suffix: str, ingredients: list[str], build: Callable[[Path, Path], None]) -> Path:
    compiler = find_compiler()
    return kept(name, suffix, [*compiler.command, compiler.version, _runtime_digest(), *ingredients], build)


def build_launcher() -> Path:
    """Return the program that starts a compiler confined, compiled once from our own text; raise `CompileError`."""
    flags = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti"]
    flags += ["-nostdlib++"] if find_compiler().zig else []

    def build(folder: Path, result: Path) -> None:
        _call([*find_compiler().command, *flags, str(RUNTIME / "confine.cc"), "-o", str(result)], folder)

    return _cached("confine", "", flags, build)


def _compile(arguments: list[str], folder: Path) -> None:
    """Call the compiler in ``folder``, confined to it; raise `CompileError` with what it said."""
    compiler = find_compiler()
    limits = (COMPILE_CPU_SECONDS, COMPILE_MEMORY_BYTES, COMPILE_FILE_BYTES)
    reads = (HEADERS, RUNTIME, cache_folder(), *readable(compiler.command))
    writes = (folder, _own_cache()) if compiler.zig else (folder,)
    walls = [word for path in reads for word in ("-r", str(path))] + [w for path in writes for w in ("-w", str(path))]
    _call([str(build_launcher()), *map(str, limits), *walls, "--", *compiler.command, *arguments], folder)


def _own_cache() -> Path:
    """Return the folder for what zig keeps of its own between calls."""
    folder = cache_folder() / "zig"
    folder.mkdir(exist_ok=True)
    return folder


def _call(command: list[str], folder: Path) -> None:
    """Run ``command`` in ``folder``; raise `CompileError` with what it said when it fails or takes too long.

    It runs in this process's group, so that whoever kills that also ends a compiler at work.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN_VARIABLES}
    environment |= {"LC_ALL": "C", "TMPDIR": str(folder)}
    if find_compiler().zig:
        environment |= {"ZIG_GLOBAL_CACHE_DIR": str(_own_cache()), "ZIG_LOCAL_CACHE_DIR": str(_own_cache())}
    with tempfile.TemporaryFile(dir=folder) as said:
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=folder,
                timeout=COMPILE_SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"error: the compiler was still at work after {COMPILE_SECONDS:.0f} s") from error
        if answer.returncode:
            said.seek(0)
            raise CompileError(_complaint(said.read(_MOST_SAID).decode(errors="replace")))


def _complaint(printed: str) -> str:
    """Return what a compiler printed, or, where it met a limit, that the kernel needs more than it may have."""
    for pattern, words in _ENDINGS:
        if re.search(pattern, printed):
            figures = {"cpu": COMPILE_CPU_SECONDS, "memory": COMPILE_MEMORY_BYTES >> 30}
            return "error: the kernel needs " + words.format(**figures, file=COMPILE_FILE_BYTES >> 20)
    if "error" not in printed:  # ended by a signal, and not by a driver that would tell which
        return (
            f"error: the kernel needs more than {COMPILE_CPU_SECONDS} s or {COMPILE_MEMORY_BYTES >> 30} GiB to compile"
        )
    return printed
