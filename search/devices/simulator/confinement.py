"""Where a compiler may read while it is at work on a kernel's text, which nobody vouches for (runtime/confine.cc)."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/nix/store")
_OF_A_PROGRAM = ("bin", "lib", "lib64", "libexec", "share", "pyvenv.cfg")


def readable(command: tuple[str, ...]) -> Iterator[Path]:
    """Yield the folders (and files) that a compiler called by ``command`` needs: the system's, and its own.

    Of where it is installed only the folders that programs have there: that may be somebody's home.
    """
    yield from map(Path, _SYSTEM)
    if found := shutil.which(command[0]):
        for program in {Path(found), Path(found).resolve()}:
            yield from _installed_with(program)
    if "ziglang" in command and (package := importlib.util.find_spec("ziglang")):
        yield from map(Path, package.submodule_search_locations or ())


def _installed_with(program: Path) -> Iterator[Path]:
    prefix = program.parent.parent
    yield program
    yield from (prefix / folder for folder in _OF_A_PROGRAM)
