"""What is looked for in a compiled kernel before it may be loaded."""

from __future__ import annotations

import struct

import pytest

from search.devices.simulator.library import flaw_of
from search.devices.simulator.screening import smuggled_directive


def mach(*commands: bytes) -> bytes:
    """A Mach-O library with these load commands and nothing else."""
    return struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, len(commands), sum(map(len, commands)), 0, 0) + b"".join(
        commands
    )


def segment(*, protection: int = 5, size: int = 4096, section_type: int = 0, section_bytes: int = 8) -> bytes:
    """A segment command with one section."""
    section = struct.pack("<16s16sQQ8I", b"__any", b"__ANY", 0, section_bytes, 0, 0, 0, 0, section_type, 0, 0, 0)
    return struct.pack("<II16sQQQQIIII", 0x19, 152, b"__ANY", 0, size, 0, size, 7, protection, 1, 0) + section


def wants(name: bytes) -> bytes:
    """The command that has another library loaded."""
    padded = name + b"\0" * (8 - len(name) % 8)
    return struct.pack("<6I", 0xC, 24 + len(padded), 24, 0, 0, 0) + padded


def offering(name: bytes, *, kind: int = 0x0F, description: int = 0) -> bytes:
    """A library with one symbol."""
    names_at = 32 + 24 + 16
    command = struct.pack("<6I", 0x2, 24, 32 + 24, 1, names_at, len(name) + 2)
    return mach(command) + struct.pack("<IBBHQ", 1, kind, 1, description, 0) + b"\0" + name + b"\0"


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (mach(segment()), ""),
        (mach(segment(section_type=0x9)), "run code when it is loaded"),
        (mach(segment(section_type=0xA)), "run code when it is loaded"),
        (mach(segment(section_type=0x16, section_bytes=4)), "run code when it is loaded"),
        (mach(struct.pack("<II64x", 0x1A, 72)), "run code when it is loaded"),
        (mach(segment(protection=7)), "code that it can write to"),
        (mach(segment(size=65 << 20)), "more than 64 MiB"),
        (mach(wants(b"/usr/lib/libSystem.B.dylib")), ""),
        (mach(wants(b"/usr/lib/libcurl.4.dylib")), "another library"),
        (offering(b"_ksr_kernel"), ""),
        (offering(b"_malloc"), "offers the name '_malloc'"),
        (offering(b"_malloc", kind=0x1F), ""),  # private: nobody else sees it
        (offering(b"_ksr_kernel", description=0x100), "run code when it is loaded"),
        (b"#!/bin/sh\n", "this machine's kind"),
        (mach(segment())[:60], "this machine's kind"),
        (b"\x7fELF\x02\x01" + b"\xff" * 100, "this machine's kind"),
        (b"", "this machine's kind"),
    ],
    ids=lambda value: value or "nothing" if isinstance(value, str) else "library",
)
def test_a_library_is_looked_through(library, says):
    found = flaw_of(library, initializers=0)
    assert says in found
    assert bool(says) == bool(found)


def test_an_instrumented_library_has_the_compilers_initializer_and_no_other():
    assert flaw_of(mach(segment(section_type=0x9)), initializers=1) == ""
    assert flaw_of(mach(segment(section_type=0x9, section_bytes=16)), initializers=1) != ""
    assert flaw_of(mach(segment(section_type=0x16, section_bytes=4)), initializers=1) == ""
    assert flaw_of(mach(segment(section_type=0x16, section_bytes=8)), initializers=1) != ""


@pytest.mark.parametrize(
    ("assembly", "directive"),
    [
        (b'\t.incbin "/etc/passwd"\n', ".incbin"),
        (b'nop; .INCBIN "/etc/passwd"\n', ".INCBIN"),
        (b"\t.macro a\n", ".macro"),
        (b"\t.if 0\n", ".if"),
        (b"\t.section\t.rodata\n\t.size\tksr_kernel, .-ksr_kernel\nf.end:\n", ""),
    ],
)
def test_directives_that_no_compiler_writes_are_found(assembly, directive):
    assert smuggled_directive(assembly) == directive
