"""The third wall: a compiled kernel is looked through before anything loads it.

Loading a library can run code of it: initializers, finalizers, resolvers of symbols. The runner loads kernels before it
locks itself in (a loader needs more of the system than a kernel may have), so a library that has any of these, or that
offers or wants more names than a kernel does, never gets into the cache from which the runner loads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MOST_BYTES = 64 << 20
"""The most memory that the code and the tables of one kernel may take when loaded."""

_RUNS = (
    "would run code when it is loaded: a global's value must be known when the kernel is compiled (constexpr), or be "
    "computed in the kernel"
)
_WRITABLE_CODE = "would have code that it can write to"
_TOO_LARGE = f"takes more than {MOST_BYTES >> 20} MiB by its global arrays alone: make them smaller"
_NOT_OURS = "did not become a library of this machine's kind"
_OWN_PREFIXES = ("ksr_", "_ksr_", "__start_ksr_", "__stop_ksr_")
_LINKERS_OWN = frozenset({"__mh_dylib_header", "___dso_handle", "__bss_start", "_end"})


def flaw_of(library: bytes, *, initializers: int) -> str:
    """Return what is wrong with a compiled kernel, as the end of a sentence about it; '' when nothing is.

    ``initializers`` is how many the compiler itself adds: one where it instruments (``-fsanitize=thread``).
    """
    readers = {b"\x7fELF\x02\x01": _elf_flaws, b"\xcf\xfa\xed\xfe": _mach_flaws}
    try:
        for magic, flaws in readers.items():
            if library.startswith(magic):
                return next(flaws(library, initializers), "")
    except (struct.error, LookupError, ValueError, OverflowError):
        pass
    return _NOT_OURS


def _text_at(library: bytes, at: int) -> str:
    return library[at : library.index(b"\0", at)].decode("ascii") if b"\0" in library[at:] else ""


def _foreign(name: str) -> bool:
    return bool(name) and name not in _LINKERS_OWN and not name.startswith(_OWN_PREFIXES)


# ELF, as the System V ABI lays it out: header, segments, dynamic entries, sections, symbols, relocations.
_LOAD, _DYNAMIC, _INTERPRETER, _STACK = 1, 2, 3, 0x6474E551
_EXECUTABLE, _WRITABLE = 1, 2
_NEEDED, _TEXT_RELOCATIONS = 1, 22
_INITIALIZERS_BYTES = 27
_RUN_AROUND = frozenset({12, 13, 26, 32})  # INIT, FINI, FINI_ARRAY, PREINIT_ARRAY
_RELOCATIONS, _DYNAMIC_SYMBOLS = 4, 11
_RESOLVED_BY_CODE = frozenset({37, 1032})  # IRELATIVE of x86-64 and of arm64
_RESOLVER = 10  # the type of a symbol whose address a function returns


def _elf_flaws(library: bytes, initializers: int) -> Iterator[str]:
    segments_at, sections_at = struct.unpack_from("<QQ", library, 32)
    segment_bytes, segment_count, section_bytes, section_count = struct.unpack_from("<4H", library, 54)
    loaded = 0
    for index in range(segment_count):
        kind, flags, offset, _, _, size, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", library, segments_at + index * segment_bytes
        )
        loaded += in_memory if kind == _LOAD else 0
        if kind == _DYNAMIC:
            yield from _dynamic_flaws(library[offset : offset + size], initializers)
        if kind == _INTERPRETER or (kind == _STACK and flags & _EXECUTABLE):
            yield _WRITABLE_CODE
        if kind == _LOAD and flags & _EXECUTABLE and flags & _WRITABLE:
            yield _WRITABLE_CODE
    if loaded > MOST_BYTES:
        yield _TOO_LARGE
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", library, sections_at + index * section_bytes)
        for index in range(section_count)
    ]
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind == _DYNAMIC_SYMBOLS:
            yield from _elf_symbol_flaws(library, offset, size, names_at=sections[link][4])
        if kind == _RELOCATIONS:
            for _, info, _ in struct.iter_unpack("<QQq", library[offset : offset + size]):
                if info & 0xFFFFFFFF in _RESOLVED_BY_CODE:
                    yield _RUNS


def _dynamic_flaws(entries: bytes, initializers: int) -> Iterator[str]:
    for tag, value in struct.iter_unpack("<qQ", entries):
        if tag in _RUN_AROUND or (tag == _INITIALIZERS_BYTES and value > 8 * initializers):
            yield _RUNS
        if tag == _NEEDED:
            yield "wants another library loaded"
        if tag == _TEXT_RELOCATIONS:
            yield _WRITABLE_CODE


def _elf_symbol_flaws(library: bytes, offset: int, size: int, *, names_at: int) -> Iterator[str]:
    for name_at, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", library[offset : offset + size]):
        name = _text_at(library, names_at + name_at)
        if info & 15 == _RESOLVER:
            yield _RUNS
        if _foreign(name):
            yield f"offers the name '{name}' to others" if section else f"wants '{name}', which no kernel has"


# Mach-O: load commands; segments with their sections, libraries, symbols.
_SEGMENT, _SYMBOLS, _ROUTINES = 0x19, 0x2, 0x1A
_LIBRARIES = frozenset({0xC, 0x80000018, 0x8000001F, 0x80000023, 0x20})
_SYSTEM = (
    "/usr/lib/libSystem"  # Apple's linker puts it into every library; linking stopped at the first name wanted of it
)
_INITIALIZER_BYTES = {0x9: 8, 0x16: 4}  # by the section types that hold some
_RUN_WHEN_LOADED = frozenset({0xA, 0xD, 0x15})  # section types: finalizers, interposing, of thread-local variables
_DEBUG, _PRIVATE, _KIND, _IN_SECTION, _EXTERNAL, _BY_RESOLVER = 0xE0, 0x10, 0x0E, 0x0E, 0x01, 0x100


def _mach_flaws(library: bytes, initializers: int) -> Iterator[str]:
    (commands,) = struct.unpack_from("<I", library, 16)
    at, loaded = 32, 0
    for _ in range(commands):
        command, size = struct.unpack_from("<II", library, at)
        if command == _SEGMENT:
            in_memory, protection, sections = struct.unpack_from("<32xQ20xII", library, at)
            loaded += in_memory
            if protection & 2 and protection & 4:
                yield _WRITABLE_CODE
            for index in range(sections):
                bytes_held, flags = struct.unpack_from("<40xQ16xI", library, at + 72 + index * 80)
                most = initializers * _INITIALIZER_BYTES.get(flags & 0xFF, 0)
                if flags & 0xFF in _RUN_WHEN_LOADED or (flags & 0xFF in _INITIALIZER_BYTES and bytes_held > most):
                    yield _RUNS
        elif command == _ROUTINES:
            yield _RUNS
        elif command in _LIBRARIES:
            (name_at,) = struct.unpack_from("<I", library, at + 8)
            if not _text_at(library, at + name_at).startswith(_SYSTEM):
                yield "wants another library loaded"
        elif command == _SYMBOLS:
            yield from _mach_symbol_flaws(library, *struct.unpack_from("<III", library, at + 8))
        at += size
    if loaded > MOST_BYTES:
        yield _TOO_LARGE


def _mach_symbol_flaws(library: bytes, at: int, count: int, names_at: int) -> Iterator[str]:
    for name_at, kind, _, description, _ in struct.iter_unpack("<IBBHQ", library[at : at + 16 * count]):
        if kind & _DEBUG:
            continue
        if description & _BY_RESOLVER and kind & _KIND == _IN_SECTION:
            yield _RUNS
        name = _text_at(library, names_at + name_at)
        if kind & _EXTERNAL and not kind & _PRIVATE and kind & _KIND == _IN_SECTION and _foreign(name):
            yield f"offers the name '{name}' to others"
