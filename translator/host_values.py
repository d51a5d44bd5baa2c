"""What a variable of host code can hold, as far as launches need it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from translator.definitions import Definition
from translator.sizes import ONE, OPEN_MARK, ZERO, Size, name
from translator.span import Span
from translator.struct_types import Part
from translator.substitution import substitute

MOST_NESTED = 12
"""How deep calls, macros and names may refer to each other."""


@dataclass(frozen=True)
class Grid:
    """A ``dim3``."""

    x: Size
    y: Size = ONE
    z: Size = ONE


def open_grid(what: str) -> Grid:
    """Return what stands for a launch size (``grid`` or ``block``) that a person is still to be asked for."""
    return Grid(*(name(f"{OPEN_MARK}{what}.{part}") for part in "xyz"))


@dataclass(frozen=True)
class Pointer:
    """A pointer ``offset`` bytes into a device array; ``type`` is what it points at, as written."""

    array: str
    type: str
    offset: Size = ZERO


@dataclass(frozen=True)
class Real:
    """A floating-point number: the host's name for it and its value's text, each "" when there is none."""

    name: str
    text: str
    type: str


@dataclass(frozen=True)
class Tensor:
    """A PyTorch tensor (or a vector of the host), which is the array of that name."""

    array: str


@dataclass(frozen=True)
class KernelName:
    """A variable that stands for a kernel, with its template arguments as written."""

    text: str


@dataclass(frozen=True)
class Record:
    """A struct: its type with template arguments, and each number and pointer in it by its path, in order.

    ``made``: what a constructor makes; its parameters, and ``members`` has their values.
    """

    type: str
    members: tuple[tuple[str, Value], ...]
    made: Part | None = None

    def member(self, path: str) -> Value | None:
        """Return what a path leads to: a member, or a struct in this one."""
        inner = []
        for held, value in self.members:
            if held == path:
                return value
            if held.startswith(path) and held[len(path)] in ".[":
                inner.append((held[len(path) :].lstrip("."), value))
        return Record("", tuple(inner)) if inner else None

    def with_member(self, path: str, value: Value) -> Record:
        """Return the struct with another value in one place."""
        return replace(self, members=tuple((held, value if held == path else old) for held, old in self.members))


@dataclass(frozen=True)
class Null:
    """``nullptr``."""


@dataclass(frozen=True)
class Unread:
    """A value that the source doesn't fix, with the reason in words."""

    reason: str
    span: Span


Value = Size | Grid | Pointer | Real | Tensor | KernelName | Record | Null | Unread


@dataclass
class HostArray:
    """What the host does with one device array.

    ``bytes`` is what it allocates and ``items`` how many elements, None when it doesn't; ``moved`` is how many bytes it
    clears or copies.
    """

    name: str
    type: str
    bytes: Size | None = None
    items: Size | None = None
    moved: Size | None = None
    local: bool = False
    zeroed: bool = False
    freed: bool = False
    copied_in: bool = False
    copied_out: bool = False
    returned: bool = False


@dataclass(frozen=True)
class HostStep:
    """A launch as the host makes it: sizes over axes, arguments as values. ``types`` holds what names of types mean."""

    kernel: Definition
    template: tuple[str, ...]
    types: dict[str, str] = field(compare=False)
    grid: Grid
    block: Grid
    shared: Size
    arguments: tuple[Value, ...]
    span: Span


def replaced_grid(grid: Grid, values: Mapping[str, Size]) -> Grid:
    """Return a launch size with names in it replaced."""
    return Grid(*(substitute(size, values) for size in (grid.x, grid.y, grid.z)))


def replaced(value: Value, values: Mapping[str, Size]) -> Value:
    """Return a value with names in its sizes replaced."""
    if isinstance(value, Size):
        return substitute(value, values)
    if isinstance(value, Grid):
        return replaced_grid(value, values)
    if isinstance(value, Record):
        return replace(value, members=tuple((path, replaced(inner, values)) for path, inner in value.members))
    if isinstance(value, Pointer):
        return replace(value, offset=substitute(value.offset, values))
    return value


def pointers_in(values: Iterable[Value]) -> Iterator[Pointer]:
    """Yield the pointers among values, those in structs too."""
    for value in values:
        if isinstance(value, Pointer):
            yield value
        elif isinstance(value, Record):
            yield from pointers_in(inner for _, inner in value.members)


def split_path(text: str) -> tuple[str, str]:
    """Return the variable that ``(*p).dims.rows`` begins with, and the path after it."""
    text = re.sub(r"^\(\*(\w+)\)", r"\1", "".join(text.split()).replace("->", "."))
    match = re.match(r"(\w+)(?:\.|(?=\[))(.+)\Z", text)
    return (match[1], match[2]) if match else (text, "")
