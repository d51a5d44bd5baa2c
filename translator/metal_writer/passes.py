"""What the functions of one pass have in common while they are written."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from translator.cuda_source import span_of
from translator.launch_plan import ScalarPlan
from translator.metal_writer.cub_idioms import ScanFunction
from translator.metal_writer.expressions import Expressions
from translator.metal_writer.in_place import Split
from translator.metal_writer.macros import carried_macros, definitions
from translator.metal_writer.program import Program, Routine, Variable
from translator.span import Span

DROPPED = "\0"
"""Stands where something was left out, so that a line that held nothing else goes too."""

ATTRIBUTE_OF = {
    "threadIdx": "thread_position_in_threadgroup",
    "blockIdx": "threadgroup_position_in_grid",
    "blockDim": "threads_per_threadgroup",
    "gridDim": "threadgroups_per_grid",
}
IN_FUNCTIONS = {
    "thread_position_in_threadgroup": "uint3 thread_in_group",
    "threadgroup_position_in_grid": "uint3 group_in_grid",
    "threads_per_threadgroup": "uint3 group_size",
    "threadgroups_per_grid": "uint3 groups",
    "thread_position_in_grid": "uint3 thread_in_grid",
    "threads_per_grid": "uint3 threads_in_grid",
    "thread_index_in_simdgroup": "uint lane_index",
    "thread_index_in_threadgroup": "uint linear_index",
    "simdgroup_index_in_threadgroup": "uint simdgroup_index",
    "simdgroups_per_threadgroup": "uint simdgroup_count",
}
"""The kernel's attributes, and how a function of the header that needs one declares it."""


@dataclass(frozen=True)
class ArrayUse:
    """How a pass has an array: by which names it reads and writes it ("" where it doesn't)."""

    read: str
    write: str

    @property
    def split(self) -> bool:
        """Whether reads and writes go to different arrays."""
        return bool(self.read and self.write) and self.read != self.write


@dataclass
class SharedParameter:
    """Threadgroup memory that a function of the header has, declared in the kernel and passed to it."""

    variable: Variable
    routine: Routine
    name: str


@dataclass
class Rendered:
    """A function of the header, done: the attributes and threadgroup arrays that its callers must pass.

    ``halves`` has the modes in which an argument is passed once more, where its array is changed in place; with
    ``explicit``, a call must give the template arguments.
    """

    text: str
    name: str
    attributes: tuple[str, ...]
    shared: tuple[SharedParameter, ...]
    halves: dict[int, list[tuple[bool, bool]]] = field(default_factory=dict)
    explicit: bool = False


@dataclass
class Finding:
    """A refusal before it is numbered."""

    reason: str
    advice: str
    span: Span


@dataclass
class Pass:
    """What the functions of one pass have in common while they are written."""

    program: Program
    arrays: dict[str, ArrayUse]
    readers: dict[Routine, Expressions]
    splits: dict[str, Split] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    scalars: dict[str, ScalarPlan] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    barrier: str = "mem_flags::mem_threadgroup"
    used: dict[str, None] = field(default_factory=dict)
    idioms: set[str] = field(default_factory=set)
    scans: set[ScanFunction] = field(default_factory=set)
    functions: dict[Routine, Rendered] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prototypes: set[str] = field(default_factory=set)
    macros: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.macros = carried_macros(definitions(self.program.source))

    def refuse(self, node: Node, reason: str, advice: str) -> None:
        """Note a refusal and go on."""
        finding = Finding(reason, advice, span_of(node))
        if finding not in self.findings:
            self.findings.append(finding)
