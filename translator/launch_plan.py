"""How the kernels of a CUDA source are launched: what the translation, the simulator and a problem need to know of it.

Sizes are texts over axes (the integers that the host passes to its kernels): integers, names, ``+ - * // %``, ``min``,
``max``, ``ceildiv``, ``()``. ``read_launches`` makes a plan; this file only says what is in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from translator.span import Span

Triple = tuple[str, str, str]


class Role(StrEnum):
    """What the kernels do with an array: ``INOUT`` is read before it is written, ``SCRATCH`` is no result."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class ArrayPlan:
    """A device array by the name that the host has for it (that of the kernel's parameter where the host has none).

    ``dtype`` is a name such as ``float32``. ``extent`` is the number of elements, "" when nothing in the source says.
    ``zeroed``: the host clears it before the launches. ``below``: for integers used as indices, what they stay below,
    "" when nothing says. ``shape``: the extents that its elements are laid out in, () when nothing shows more than one.
    ``gathered``: which elements are accessed depends on the data alone. ``partly``: a launch that writes it isn't known
    to write its first element, its last one, and neighbours in between. ``met``: numbers that the kernels compare its
    elements with, and those beside them: values to try.
    """

    name: str
    dtype: str
    extent: str
    role: Role
    zeroed: bool = False
    below: str = ""
    shape: tuple[str, ...] = ()
    gathered: bool = False
    partly: bool = False
    met: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScalarPlan:
    """A floating-point number that the host passes: ``value`` is its text when the source fixes it, else ""."""

    name: str
    dtype: str
    value: str = ""


@dataclass(frozen=True)
class ArrayArgument:
    """A pointer argument: the array, and how many elements into it the kernel's parameter points."""

    array: str
    offset: str = "0"


@dataclass(frozen=True)
class SizeArgument:
    """An integer (or bool) argument, as a text over axes; 0 for a pointer is the null pointer."""

    size: str


@dataclass(frozen=True)
class ScalarArgument:
    """A floating-point argument: the name of a `ScalarPlan`."""

    scalar: str


@dataclass(frozen=True)
class StructMember:
    """A member of a struct that is passed: ``name`` is ``[0]`` in an array, "" for a base class.

    ``unset``: the host gives it no value, and no kernel reads it.
    """

    name: str
    type: str
    argument: Argument
    unset: bool = False


@dataclass(frozen=True)
class StructArgument:
    """A struct that is passed by value, or an array in one: its type with template arguments, its members in order.

    ``made``: a constructor makes it, whose parameters these are instead of members.
    """

    type: str
    members: tuple[StructMember, ...]
    made: bool = False

    def leaves(self, path: str = "") -> Iterator[tuple[str, StructMember]]:
        """Yield the numbers and arrays in it, with what stands after the object to name each: ``dims.rows``."""
        for member in self.members:
            dot = "." if path and member.name and member.name[0] != "[" else ""
            if isinstance(member.argument, StructArgument):
                yield from member.argument.leaves(path + dot + member.name)
            else:
                yield path + dot + member.name, member


Argument = ArrayArgument | SizeArgument | ScalarArgument | StructArgument


def plain_arguments(arguments: Iterable[Argument]) -> Iterator[ArrayArgument | SizeArgument | ScalarArgument]:
    """Yield arguments, structs as what they hold."""
    for argument in arguments:
        if isinstance(argument, StructArgument):
            yield from plain_arguments(member.argument for member in argument.members)
        else:
            yield argument


@dataclass(frozen=True)
class LaunchStep:
    """One launch. ``grid`` counts **blocks**, as CUDA does; ``shared`` is dynamic shared memory in bytes.

    ``template`` has the kernel's template arguments as C++ text (``64``, ``float``), host constants put in.
    ``arguments`` go with the kernel's parameters one to one.
    """

    kernel: str
    template: tuple[str, ...]
    grid: Triple
    block: Triple
    shared: str
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True)
class Question:
    """Something that the source doesn't say and a person has to: what it is about (an array, an axis, a kernel).

    ``answer`` is the key under which `answered_plan` takes an answer (``extent.x``), "" when the source must change.
    """

    about: str
    message: str
    span: Span
    answer: str = ""


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of one host function, in order, with what they work on.

    ``requires`` has conditions over axes that the host checks before it launches: a text and what it must be a multiple
    of, must not exceed, must reach or must equal: ``("multiple", "d", "4")``, ``("most", "cols", "1024")``,
    ``("least", "n", "32")``, ``("equal", "d", "64")``; an axis that must equal a number is put in and is no axis.
    ``choices`` says where the plan is one of several that the host has, and how to get another. ``given`` has sizes
    that the source gives to axes (those of a ``main``), as examples. ``symbols`` are the arrays that are
    ``__constant__`` variables by that name, which the host fills before it launches; ``function`` is the host function,
    "" when there is none. A plan with ``questions`` isn't complete.
    """

    axes: tuple[str, ...]
    scalars: tuple[ScalarPlan, ...]
    arrays: tuple[ArrayPlan, ...]
    steps: tuple[LaunchStep, ...]
    requires: tuple[tuple[str, str, str], ...] = ()
    questions: tuple[Question, ...] = ()
    choices: tuple[Question, ...] = ()
    given: tuple[tuple[str, int], ...] = ()
    symbols: tuple[str, ...] = ()
    function: str = ""
