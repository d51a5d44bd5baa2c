"""Which C++ compiler this machine has for kernels."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from search.devices.base import DeviceUnavailable
from search.devices.simulator.cache import kept

# What a compiler that is too old stumbles over: clang has half on x86 from version 15.
_HALF = """
template <class T> concept Any = true;
template <Any T> T twice(T x) { return x + x; }
_Float16 four = twice(_Float16(2));
"""


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
    """Return this machine's compiler: $CXX, or the first of clang++, g++ and ziglang that can compile kernels.

    Raises `DeviceUnavailable` saying what to install when there is none.
    """
    chosen = os.environ.get("CXX", "").strip()
    candidates = [tuple(shlex.split(chosen))] if chosen else []
    if not chosen:
        candidates += [(name,) for name in ("clang++", "g++") if shutil.which(name)]
        if importlib.util.find_spec("ziglang"):
            candidates.append((sys.executable, "-m", "ziglang", "c++"))
    running = [compiler for command in candidates if (compiler := _compiler(command))]
    for compiler in running:
        if _knows_half(compiler):
            return compiler
    if chosen and not running:
        raise DeviceUnavailable(f"the compiler in $CXX, '{chosen}', does not run: correct or unset CXX")
    how = "xcode-select --install" if sys.platform == "darwin" else "apt install g++ (or your system's way)"
    found = "neither clang++ nor g++"
    if running:
        found = f"only one that is too old ({', '.join(compiler.version for compiler in running)})"
    raise DeviceUnavailable(
        f"the simulator needs a C++ compiler (clang 15, g++ 12 or newer), found {found}: {how} or pip install ziglang"
    )


def _compiler(command: tuple[str, ...]) -> Compiler | None:
    """Return the compiler that ``command`` calls, None when it doesn't run."""
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode or not answer.stdout:
        return None
    return Compiler(command, "clang" in answer.stdout, answer.stdout.splitlines()[0])


def _knows_half(compiler: Compiler) -> bool:
    """Return whether it is new enough for kernels; a version is asked once."""
    command = [*compiler.command, "-std=c++20", "-S", "probe.cc", "-o", "probe.s"]

    def ask(folder: Path, answer: Path) -> None:
        (folder / "probe.cc").write_text(_HALF, encoding="ascii")
        asked = subprocess.run(command, cwd=folder, capture_output=True, timeout=60)
        answer.write_text("no" if asked.returncode else "yes", encoding="ascii")

    try:
        return kept("compiler", ".txt", [*command, compiler.version, _HALF], ask).read_text(encoding="ascii") == "yes"
    except (OSError, subprocess.TimeoutExpired):
        return False
