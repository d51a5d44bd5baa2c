"""The C++ compiler: which one this machine has, how it is called, and what it has made already.

Everything that was compiled lies in the user's cache under a hash of all that went into it, and gets there by a rename:
two processes that compile the same thing at once both succeed, and none sees a half-written file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from search.devices.base import DeviceUnavailable
from search.devices.simulator.assembly import instrument

HERE = Path(__file__).parent
RUNTIME, HEADERS = HERE / "runtime", HERE / "headers"

COMPILE_SECONDS = 60.0
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


class CompileError(Exception):
    """A compiler that refused its input; the text is what it printed."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: how to call it, whether it is a clang, and its version line."""

    command: tuple[str, ...]
    clang: bool
    version: str

    @property
    def zig(self) -> bool:
        """Whether it is zig's clang, which names CPUs in its own way and would build a C++ library before it links."""
        return "ziglang" in self.command


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """Return this machine's compiler; raise `DeviceUnavailable` saying what to install when there is none."""
    chosen = os.environ.get("CXX", "").strip()
    candidates = [tuple(shlex.split(chosen))] if chosen else []
    if not chosen:
        candidates += [(name,) for name in ("clang++", "g++") if shutil.which(name)]
        if importlib.util.find_spec("ziglang"):
            candidates.append((sys.executable, "-m", "ziglang", "c++"))
    for command in candidates:
        try:
            answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answer.returncode == 0 and answer.stdout:
            return Compiler(command, "clang" in answer.stdout, answer.stdout.splitlines()[0])
    if chosen:
        raise DeviceUnavailable(f"the compiler in $CXX, '{chosen}', does not run: correct or unset CXX")
    how = "xcode-select --install" if sys.platform == "darwin" else "apt install g++ (or your system's way)"
    raise DeviceUnavailable(
        f"the simulator needs a C++ compiler and found neither clang++ nor g++: {how}, or pip install ziglang"
    )


def cache_folder() -> Path:
    """Return the folder for compiled things: $KSEARCH_CACHE, else the user's cache; raise `DeviceUnavailable`."""
    if chosen := os.environ.get("KSEARCH_CACHE"):
        folder = Path(chosen)
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "ksearch-tui"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ksearch-tui"
    folder = folder / "simulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceUnavailable(f"can't write the cache {folder}: {error.strerror}; set KSEARCH_CACHE") from error
    return folder


def build_kernel(text: str, *, counted: bool) -> Path:
    """Return the library that ``text`` compiles to, ``counted`` or for speed; raise `CompileError`."""
    flags = [*_LANGUAGE, *_machine_flags(), *_private_memory_flags(), "-nostdinc", "-O2"]
    parts = [RUNTIME / "memory.cc"]
    if counted:
        flags += _counting_flags()
        parts.append(RUNTIME / "hooks.cc")

    def build(folder: Path, result: Path) -> None:
        source, assembly = folder / "kernel.cc", folder / "kernel.s"
        source.write_text(text, encoding="utf-8")
        _compile([*flags, f"-I{HEADERS}", "-S", str(source), "-o", str(assembly)])
        if counted:
            written = assembly.read_text(encoding="latin-1")  # strings in it may be any bytes
            assembly.write_text(instrument(written), encoding="latin-1")
        objects = [str(_object(part)) for part in parts]
        _compile([*_link_flags(), str(assembly), *objects, *_arithmetic_library(), "-o", str(result)])

    return _cached("counted" if counted else "kernel", ".so", [*flags, text], build)


def _counting_flags() -> list[str]:
    """Return flags that call `runtime/hooks.cc` at each access, mark basic blocks, and leave scalar code scalar."""
    clang = find_compiler().clang
    flags = ["-DKSR_COUNTED", "-g0", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-unroll-loops"]
    flags += ["-fsanitize=thread", f"-fsanitize-coverage=trace-pc{',no-prune' if clang else ''}"]
    if clang and _on_x86():
        # Pairs of floats that it passes in one register would be multiplied four at a time.
        flags += ["-mllvm", "-disable-vector-combine"]
    return flags


def build_runner() -> Path:
    """Return the program that runs kernels, compiled once for this machine and compiler; raise `CompileError`."""
    flags = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-sanitize=undefined"]
    sources = [str(RUNTIME / f"{name}.cc") for name in ("runner", "job", "scheduler", "counting")]
    libraries = [] if sys.platform == "darwin" else ["-ldl", "-lpthread", "-lm"]
    if find_compiler().zig:
        libraries.append("-nostdlib++")

    def build(folder: Path, result: Path) -> None:
        _compile([*flags, *sources, *libraries, "-o", str(result)])

    return _cached("runner", "", flags, build)


def _object(source: Path) -> Path:
    # A loop that fills memory must not be compiled into a call of the function that it is.
    flags = [*_LANGUAGE, *_machine_flags(), "-O2", "-fno-builtin"]
    if not find_compiler().clang:
        flags.append("-fno-tree-loop-distribute-patterns")
    return _cached(
        source.stem, ".o", flags, lambda folder, result: _compile([*flags, "-c", str(source), "-o", str(result)])
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
    # The assembly pass takes part in every counted build.
    for path in sorted([*RUNTIME.rglob("*"), *HEADERS.rglob("*"), HERE / "assembly.py"]):
        if path.is_file():
            digest.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _cached(name: str, suffix: str, ingredients: list[str], build: Callable[[Path, Path], None]) -> Path:
    compiler = find_compiler()
    material = "\0".join([*compiler.command, compiler.version, _runtime_digest(), *ingredients])
    folder = cache_folder()
    path = folder / f"{name}-{hashlib.sha256(material.encode()).hexdigest()[:32]}{suffix}"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as scratch:
        result = Path(scratch) / f"result{suffix}"
        build(Path(scratch), result)
        os.replace(result, path)
    return path


def _compile(arguments: list[str]) -> None:
    compiler = find_compiler()
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        answer = subprocess.run(
            [*compiler.command, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"error: the compiler was still at work after {COMPILE_SECONDS:.0f} s") from error
    if answer.returncode:
        raise CompileError(answer.stderr)
