"""What a kernel's variables can hold, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from translator.c_facts import Fact
from translator.sizes import ZERO, Size
from translator.span import Span


class Use(StrEnum):
    """What an access does; ``UPDATE`` reads and writes (``+=``, atomics)."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"


@dataclass(frozen=True)
class Access:
    """One access of an array. ``extent``: how many elements the array must have for it, None when nothing bounds it.

    ``place`` is the access as written and ``context`` the loops and conditions around it: a read is of what the kernel
    itself wrote when an earlier write has the same place and no more context. ``scattered``: where it goes depends on
    elements of an array. ``offset``: how far into the array, in bytes, None when unknown. ``begin``: the smallest of
    that. ``dense``: neighbours among threads or rounds access neighbouring elements.
    """

    array: str
    use: Use
    extent: Size | None
    place: str
    context: tuple[str, ...]
    span: Span
    scattered: bool = False
    offset: Size | None = None
    begin: Size | None = None
    dense: bool = False


@dataclass(frozen=True)
class KernelUse:
    """The accesses of a kernel in the order of the text, and the guards on elements of integer arrays.

    ``aligned`` has the sizes that vector accesses need to be multiples, with what of: rows of ``n`` numbers that are
    read four at a time need ``n`` to be a multiple of 4. ``met`` has the numbers that elements of integer arrays are
    compared with, and those beside them. ``indexing`` are the arrays whose elements say where shared or local memory is
    accessed, with nothing that bounds them.
    """

    accesses: tuple[Access, ...]
    guarded: Mapping[str, Size]
    aligned: tuple[tuple[str, int], ...]
    met: Mapping[str, tuple[int, ...]]
    indexing: frozenset[str]


@dataclass(frozen=True)
class ArrayPointer:
    """A pointer into an array; ``array`` is "" for shared and local memory, ``offset`` in bytes, None when unknown."""

    array: str
    type: str
    offset: Size | None = ZERO


@dataclass(frozen=True)
class Condition:
    true: tuple[Fact, ...]
    false: tuple[Fact, ...]


@dataclass(frozen=True)
class Reference:
    """Another name for an element; ``place`` is the element as written where the reference was bound."""

    pointer: ArrayPointer
    place: str


KernelValue = Size | ArrayPointer | Condition | Reference | None


@dataclass(frozen=True)
class Binding:
    """What a launch gives a kernel.

    ``types`` and ``values`` go by the names of parameters and template parameters, ``arrays`` has the array, the type
    of its elements and the offset in bytes by parameter, ``below`` what the elements of integer arrays stay below.
    """

    types: Mapping[str, str]
    values: Mapping[str, Size]
    arrays: Mapping[str, tuple[str, str, Size]]
    grid: tuple[Size, Size, Size]
    block: tuple[Size, Size, Size]
    below: Mapping[str, Size]
