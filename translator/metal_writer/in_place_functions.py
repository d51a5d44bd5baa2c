"""Arrays that functions change for the kernel that calls them: what each function does, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from translator.metal_writer.accesses import READ, UPDATE, WRITE, Access, conditions_around, loops_around
from translator.metal_writer.coverage import keep_unwritten
from translator.metal_writer.dependence import Dependence, place_parts
from translator.metal_writer.expressions import Expressions, call_arguments
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.program import Routine


@dataclass(frozen=True)
class Event:
    """A place of a function where an array is read or written, by itself or by a function that is called there."""

    node: Node
    end: int
    reads: bool
    writes: bool
    call: bool

    @property
    def place(self) -> Node:
        """What decides which elements are touched: the element, or what a function is given."""
        return (self.node.child_by_field_name("arguments") or self.node) if self.call else self.node


class FunctionUse:
    """What the functions of a kernel do with one array; ``readers`` has callers before what they call."""

    def __init__(self, array: str, accesses: list[Access], readers: Mapping[Routine, Expressions]) -> None:
        self.array, self.readers = array, readers
        self.direct: dict[Routine, list[Access]] = {}
        for access in accesses:
            self.direct.setdefault(access.routine, []).append(access)
        self.events: dict[Routine, list[Event]] = {}
        for routine in reversed(list(readers)):
            self.events[routine] = self._events_of(routine)

    def reading(self, routine: Routine) -> bool:
        """Whether a function reads the array, itself or through what it calls."""
        return any(event.reads for event in self.events.get(routine, ()))

    def writing(self, routine: Routine) -> bool:
        """Whether a function writes the array, itself or through what it calls."""
        return any(event.writes for event in self.events.get(routine, ()))

    def _events_of(self, routine: Routine) -> list[Event]:
        found = [
            Event(a.node, _assignment(a.node).end_byte, a.kind in (READ, UPDATE), a.kind in (WRITE, UPDATE), False)
            for a in self.direct.get(routine, ())
        ]
        reader = self.readers[routine]
        for call in calls_in(routine.body):
            for callee in called(reader.program, call):
                reads, writes = self.reading(callee), self.writing(callee)
                if (reads or writes) and self._given(reader, callee, call):
                    found.append(Event(call, call.end_byte, reads, writes, True))
                    break
        return found

    def _given(self, reader: Expressions, callee: Routine, call: Node) -> bool:
        """Whether a call hands the array on."""
        for parameter, argument in zip(callee.parameters, call_arguments(call), strict=False):
            origins = reader.lvalue_origins(argument) if parameter.type.reference else reader.origins_of(argument)
            if ("array", self.array) in origins:
                return True
        return False

    def reads_come_first(self, routine: Routine) -> bool:
        """Whether no element is read in a function after one was written: then each read means what came in."""
        dependence = Dependence(self.readers[routine])
        events = self.events[routine]
        if sum(event.call and event.writes for event in events) > 1:
            return False
        for write in (event for event in events if event.writes):
            for loop in loops_around(write.node, routine.body):
                if not dependence.advances(write.place, loop):
                    return False
            if any(read.reads and write.end <= read.node.start_byte for read in events):
                return False
        callees = {callee for event in events if event.call for callee in called(dependence.reader.program, event.node)}
        return all(self.reads_come_first(callee) for callee in callees if callee in self.readers)

    def surely_writes(self, routine: Routine) -> bool:
        """Whether every thread that calls a function writes the same elements, whatever the data."""
        dependence = Dependence(self.readers[routine])
        writes = [event for event in self.events[routine] if event.writes]
        if not writes or any(returned.named_child_count == 0 for returned in dependence.returns):
            return False
        for event in writes:
            around = conditions_around(event.node, routine.body) or loops_around(event.node, routine.body)
            if around or any(dependence.on_data(part) for part in place_parts(event.place)):
                return False
            if event.call and not all(
                self.surely_writes(callee) for callee in called(dependence.reader.program, event.node)
            ):
                return False
        return True

    def kept_by_calls(self, kernel: Routine) -> bool:
        """Whether the kernel's calls write every element that is its threads' to write."""
        dependence = Dependence(self.readers[kernel])
        for event in self.events[kernel]:
            if not event.writes:
                continue
            if not event.call or not all(self.surely_writes(c) for c in called(dependence.reader.program, event.node)):
                return False
            access = Access(self.array, WRITE, event.place, "", kernel)
            if keep_unwritten(access, [access], dependence) != []:
                return False
        return True


def _assignment(node: Node) -> Node:
    while node.parent is not None and node.type not in ("assignment_expression", "update_expression"):
        node = node.parent
    return node
