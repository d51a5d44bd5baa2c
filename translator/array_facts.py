"""What a plan says of each array: dtype, elements, role, and what integers used as indices stay below.

The number of elements comes, in this order, from what the host allocates, from a comment with the array's shape whose
sizes are all known, from the largest index that the kernels can form, from a comment with sizes of its own. A bound on
the elements of an integer array follows from the size of the array that they index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from translator.array_roles import role_of, written_partly
from translator.array_shapes import remarked_shape, strided_shape
from translator.c_types import ITEM_BYTES, dtype_of, plain_type, vector_width
from translator.cuda_source import CudaSource
from translator.definitions import Definition, Definitions
from translator.host_code import HostCode
from translator.host_expressions import text_size
from translator.host_tensors import numel
from translator.host_values import Grid, HostArray, HostStep
from translator.kernel_use import read_kernel
from translator.kernel_values import Access, Binding
from translator.launch_comments import Remark, extent_of, remarks_beside
from translator.launch_plan import Argument, ArrayPlan, Question, Role
from translator.multiples import Multiples
from translator.requirements import Requirement
from translator.size_order import maximum, minimum
from translator.size_text import parse_size
from translator.sizes import (
    ONE,
    Size,
    UnreadableSize,
    coefficient,
    floordiv,
    is_open,
    name,
    names_in,
    number,
    render,
    renders,
)
from translator.span import Span

_NUMPY_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "bool": 1, "int8": 1, "uint8": 1, "int16": 2,
                "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8}  # fmt: skip


@dataclass(frozen=True)
class BoundStep:
    """A launch with its kernel's parameters bound: types by name, sizes and arrays (with an offset in bytes)."""

    step: HostStep
    template: tuple[str, ...]
    arguments: tuple[Argument, ...]
    types: dict[str, str]
    values: dict[str, Size]
    arrays: dict[str, tuple[str, Size]] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrayFacts:
    """What the facts are read from."""

    source: CudaSource
    definitions: Definitions
    host: HostCode
    root: Definition | None
    answers: Mapping[str, str]
    alignment: list[Requirement] = field(default_factory=list)

    @staticmethod
    def item_bytes(type_text: str) -> Size:
        """Return the bytes of one element of an array whose pointers are of this type: ``float4`` has elements of 4."""
        if dtype := dtype_of(type_text):
            return number(_NUMPY_BYTES[dtype])
        plain = plain_type(type_text)
        return number(ITEM_BYTES[plain]) if plain in ITEM_BYTES else name(f"sizeof({plain})")

    def shown(self, size: Size) -> str:
        return render(size, self.host.axes)


def array_plans(
    facts: ArrayFacts, steps: Sequence[BoundStep]
) -> tuple[tuple[ArrayPlan, ...], list[Question], tuple[str, ...]]:
    """Return the arrays of a plan in the order of their first use, what can't be told, and ``__constant__`` ones."""
    uses = _Uses(facts, steps)
    symbols = _symbols(facts, steps)
    questions: list[Question] = []
    plans: list[ArrayPlan] = []
    for array in uses.arrays:
        extent = uses.extent(array)
        span = uses.first[array]
        dtype = dtype_of(facts.host.arrays[array].type)
        if not dtype:
            questions.append(_unknown_type(array, facts.host.arrays[array].type, span))
        text = facts.shown(extent) if extent is not None and renders(extent) else ""
        if not text and (extent is None or not is_open(extent)):
            questions.append(
                Question(array, f"how many elements '{array}' has can't be told from the host or the kernels: answer "
                         f"extent.{array}", span, f"extent.{array}")
            )  # fmt: skip
        below = uses.below(array)
        if below is None and array in uses.indexing and uses.role(array) in (Role.INPUT, Role.INOUT):
            questions.append(
                Question(array, f"elements of '{array}' are used as indices or counts, and nothing says what they stay "
                         f"below: answer below.{array}", span, f"below.{array}")
            )  # fmt: skip
        plans.append(
            ArrayPlan(array, dtype, text, uses.role(array), facts.host.arrays[array].zeroed,
                      facts.shown(below) if below is not None and renders(below) else "", uses.shape(array, extent),
                      uses.gathered(array), uses.partly(array, extent), tuple(sorted(uses.met.get(array, ()))))
        )  # fmt: skip
    plans = _with_results(plans)
    plans += symbols
    return tuple(plans), questions, tuple(plan.name for plan in symbols)


def _unknown_type(array: str, type_text: str, span: Span) -> Question:
    plain = plain_type(type_text)
    if re.fullmatch(r"\w+", plain) and plain not in ("void", ""):
        return Question(array, f"the elements of '{array}' are of the type {plain}, which is no number here: answer "
                        f"type.{plain} when it stands for one", span, f"type.{plain}")  # fmt: skip
    return Question(array, f"what the elements of '{array}' are can't be told", span)


def _with_results(plans: list[ArrayPlan]) -> list[ArrayPlan]:
    """Return the plans with the last written scratch array as a result, when the host never looks at any."""
    if any(plan.role in (Role.OUTPUT, Role.INOUT) for plan in plans):
        return plans
    last = max((at for at, plan in enumerate(plans) if plan.role == Role.SCRATCH), default=-1)
    return [replace(p, role=Role.OUTPUT) if at == last else p for at, p in enumerate(plans)]


def _symbols(facts: ArrayFacts, steps: Sequence[BoundStep]) -> list[ArrayPlan]:
    """Return the ``__constant__`` arrays that the kernels read and the host fills."""
    texts = " ".join(facts.source.text_of(step.step.kernel.body) for step in steps)
    reached = texts + " ".join(
        facts.source.text_of(d.body) for same in facts.definitions.functions.values() for d in same if not d.host
    )
    found = []
    for declaration in facts.source.declarations:
        if declaration.space != "constant" or declaration.filled:
            continue
        if declaration.name not in facts.definitions.symbols or not re.search(rf"\b{declaration.name}\b", reached):
            continue
        size = number(vector_width(declaration.type))
        try:
            for extent in declaration.extents:
                size = size * text_size(facts.host, extent, facts.definitions.symbols[declaration.name])  # type: ignore[operator]
        except (UnreadableSize, TypeError, AttributeError):
            continue
        found.append(ArrayPlan(declaration.name, dtype_of(declaration.type), facts.shown(size), Role.INPUT))
    return found


class _Uses:
    """The accesses of every array over all launches."""

    def __init__(self, facts: ArrayFacts, steps: Sequence[BoundStep]) -> None:
        self.facts, self.steps = facts, steps
        self.arrays: list[str] = []
        self.first: dict[str, Span] = {}
        self.accesses: dict[str, list[list[Access]]] = {}
        self.guarded: dict[str, Size] = {}
        self.met: dict[str, set[int]] = {}
        self.within: set[str] = set()
        for step in steps:
            for array, _ in step.arrays.values():
                if array not in self.first:
                    self.arrays.append(array)
                    self.first[array] = step.step.span
        self.remarks = self._remarks()
        self.multiples = Multiples(facts.host.requires)
        known = {
            array: total
            for array, remarks in self.remarks.items()
            for remark, sizes in remarks
            if remark.below is not None
            for total, unknown in [extent_of([remark.below], sizes)]
            if not unknown
        }
        known |= {
            key.partition(".")[2]: self._answer(text) for key, text in facts.answers.items() if key[:6] == "below."
        }
        self._known = known
        self._read(known)
        self._solve()

    def _answer(self, text: str) -> Size:
        size = parse_size(text)
        for used in sorted(names_in(size)):
            self.facts.host.axis(used)
        return size

    def _read(self, below: Mapping[str, Size]) -> None:
        self.accesses = {array: [] for array in self.arrays}
        seen: dict[object, list[Access]] = {}
        for step in self.steps:
            key = (step.step.kernel.node.start_byte, step.template, tuple(sorted(step.values.items(), key=str)),
                   tuple(step.arrays.items()), step.step.grid, step.step.block)  # fmt: skip
            if key not in seen:
                parts = self.multiples.parts
                binding = Binding(
                    step.types,
                    {text: parts(size) for text, size in step.values.items()},
                    {
                        text: (array, self._element(array), parts(offset))
                        for text, (array, offset) in step.arrays.items()
                    },
                    self._parts(step.step.grid),
                    self._parts(step.step.block),
                    {array: parts(size) for array, size in below.items()},
                )
                use = read_kernel(self.facts.source, self.facts.definitions, step.step.kernel, binding)
                seen[key] = list(use.accesses)
                for array, size in use.guarded.items():
                    self.guarded.setdefault(array, self.multiples.whole(size))
                self.within |= {array for array in use.indexing if self._wide(array)}
                for array, values in use.met.items():
                    self.met.setdefault(array, set()).update(values)
                for axis, of in use.aligned:
                    self.facts.alignment.append(("multiple", name(axis), number(of)))
            for array in {array for array, _ in step.arrays.values()}:
                self.accesses[array].append([access for access in seen[key] if access.array == array])

    def _wide(self, array: str) -> bool:
        """Whether elements may be more than a table of shared memory has."""
        return dtype_of(self.facts.host.arrays[array].type) in ("int32", "uint32", "int64", "uint64")

    def _parts(self, grid: Grid) -> tuple[Size, Size, Size]:
        parts = self.multiples.parts
        return parts(grid.x), parts(grid.y), parts(grid.z)

    def _element(self, array: str) -> str:
        type_text = self.facts.host.arrays[array].type
        dtype = dtype_of(type_text)
        return {"float32": "float", "float16": "half"}.get(dtype) or next(
            (text for text, size in ITEM_BYTES.items() if dtype and size == _NUMPY_BYTES[dtype]), plain_type(type_text)
        )

    def _remarks(self) -> dict[str, list[tuple[Remark, dict[str, Size]]]]:
        """Return what comments say of arrays, with what their names mean."""
        found: dict[str, list[tuple[Remark, dict[str, Size]]]] = {}
        facts = self.facts
        sizes = {text: value for text, value in facts.host.env.items() if isinstance(value, Size)}
        sizes |= {axis: name(axis) for axis in facts.host.axes} | facts.host.equal
        if facts.root is not None:
            for text, remark in remarks_beside(facts.source, facts.root.parameters, facts.root.node).items():
                found.setdefault(text, []).append((remark, sizes))
        for step in self.steps:
            kernel = step.step.kernel
            for text, remark in remarks_beside(facts.source, kernel.parameters, kernel.node).items():
                if text in step.arrays:
                    found.setdefault(step.arrays[text][0], []).append((remark, sizes | step.values))
        return found

    # -- how many elements --------------------------------------------------------------------------------------------

    def extent(self, array: str) -> Size | None:
        """Return the number of elements, None when nothing tells it."""
        if answer := self.facts.answers.get(f"extent.{array}"):
            return self._answer(answer)
        if (size := self.fixed(array)) is not None:
            return size
        size = self._indexed(array)
        if size is not None:
            return self.multiples.whole(size)
        return self._moved(array) or self._with_new_names(array)

    def _moved(self, array: str) -> Size | None:
        """Return how many elements the host clears or copies."""
        host = self.facts.host.arrays[array]
        return None if host.moved is None else _elements(host.moved, host)

    def fixed(self, array: str) -> Size | None:
        """Return what the host or a comment with known sizes says."""
        host = self.facts.host.arrays[array]
        if (size := self._allocated(host)) is not None:
            return size
        for remark, sizes in self.remarks.get(array, []):
            total, unknown = extent_of(remark.shape, sizes)
            if remark.shape and not unknown:
                return total
        return None

    def _allocated(self, host: HostArray) -> Size | None:
        if host.items is not None:
            return host.items
        if host.bytes is not None:
            return _elements(host.bytes, host)
        if host.name in self.facts.host.numels:
            return self.facts.host.numels[host.name]
        dimensions = self.facts.host.dimensions.get(host.name)
        if dimensions and all((host.name, at) in self.facts.host.sizes for at in range(dimensions)):
            return numel(self.facts.host, host.name)
        return None

    def _indexed(self, array: str) -> Size | None:
        """Return one more than the largest index that any kernel forms."""
        extents = [access.extent for step in self.accesses[array] for access in step]
        if not extents or any(extent is None for extent in extents):
            return None
        known = [extent for extent in extents if extent is not None]
        if any(text[0] == "?" for extent in known for text in names_in(extent)):
            return None
        try:
            return maximum(*known)
        except UnreadableSize:
            return None

    def shape(self, array: str, extent: Size | None) -> tuple[str, ...]:
        """Return the extents of an array whose elements a comment or the accesses lay out in more than one."""
        if extent is None:
            return ()
        shape = remarked_shape(extent, self.remarks.get(array, []))
        if not shape:
            every = [
                self.multiples.whole(a.offset) for step in self.accesses[array] for a in step if a.offset is not None
            ]
            shape = strided_shape(extent, every, self.facts.item_bytes(self.facts.host.arrays[array].type))
        return tuple(map(self.facts.shown, shape)) if len(shape) > 1 and all(map(renders, shape)) else ()

    def gathered(self, array: str) -> bool:
        """Whether every access of an array goes where elements of another say."""
        every = [access.scattered for step in self.accesses[array] for access in step]
        return bool(every) and all(every)

    def partly(self, array: str, extent: Size | None) -> bool:
        """Whether a launch may leave elements of an array unwritten that others are written around."""
        parts = self.multiples.parts(extent) if extent is not None else None
        return written_partly(self.accesses[array], parts)

    # -- what elements stay below -------------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Find what elements that are used as indices stay below, from the sizes of what they index."""
        self.solved: dict[str, Size] = dict(self._known)
        self.indexing: set[str] = set(self.within)
        for array in self.arrays:
            for access in (access for step in self.accesses[array] for access in step):
                marks = {text for text in names_in(access.extent) if text[0] == "?"} if access.extent else set()
                self.indexing.update(text[1:] for text in marks)
                if len(marks) == 1 and access.extent is not None:
                    self._solve_one(marks.pop(), array, access.extent)
        if self.solved != self._known:
            self._read(self.solved)

    def _solve_one(self, mark: str, array: str, extent: Size) -> None:
        answer = self.facts.answers.get(f"extent.{array}")
        whole = self._answer(answer) if answer else self.fixed(array)
        if whole is None:
            whole = self._moved(array) or self._with_new_names(array)
        if whole is None or mark[1:] in self._known:
            return
        whole = self.multiples.parts(whole)
        times = coefficient(extent, mark)
        rest = extent - times * name(mark)
        if names_in(times) & {mark} or mark in names_in(rest):
            return
        try:
            largest = floordiv(whole - rest, times)
            if largest * times != whole - rest:
                return
            found = self.multiples.whole(largest + ONE)
            held = self.solved.get(mark[1:])
            self.solved[mark[1:]] = found if held is None else minimum(held, found)
        except UnreadableSize:
            return

    def _with_new_names(self, array: str) -> Size | None:
        for remark, sizes in self.remarks.get(array, []):
            if remark.shape:
                total, unknown = extent_of(remark.shape, sizes)
                for text in sorted(unknown):
                    self.facts.host.axis(text)
                return total
        return None

    def below(self, array: str) -> Size | None:
        """Return what the elements of an integer array stay below, None when nothing says or needs it."""
        if self.role(array) not in (Role.INPUT, Role.INOUT):
            return None
        return self.solved.get(array, self.guarded.get(array))

    def role(self, array: str) -> Role:
        """Return what the kernels do with an array, over all launches."""
        return role_of(self.facts.host.arrays[array], self.accesses[array])


def _elements(bytes_: Size, host: HostArray) -> Size | None:
    """Return how many elements of an array so many bytes are."""
    try:
        size = floordiv(bytes_, ArrayFacts.item_bytes(host.type))
    except UnreadableSize:
        return None
    return size if renders(size) else None
