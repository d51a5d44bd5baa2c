"""The whole of a translation: each launch of the plan as a pass, and the arrays between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from translator.cuda_source import CudaSource, span_of
from translator.launch_plan import (
    ArrayArgument,
    ArrayPlan,
    LaunchPlan,
    LaunchStep,
    Role,
    ScalarArgument,
    SizeArgument,
    StructArgument,
    plain_arguments,
)
from translator.metal_writer.accesses import ATOMIC, READ, UPDATE, Access, find_accesses
from translator.metal_writer.binding import template_arguments
from translator.metal_writer.chain import Uses, Versions, name_versions, named, step_arrays, writes
from translator.metal_writer.conditions import active_source
from translator.metal_writer.constants import integer
from translator.metal_writer.constructions import with_constructions
from translator.metal_writer.copies import copy_functions
from translator.metal_writer.cub_source import with_cub
from translator.metal_writer.dependence import Dependence
from translator.metal_writer.divergence import check_barriers
from translator.metal_writer.expressions import Expressions, plain_name
from translator.metal_writer.fills import Fill, fill_of
from translator.metal_writer.flow import (
    fence,
    follow_pointers,
    grid_barrier,
    last_block,
    operators,
    reachable,
    spin_lock,
)
from translator.metal_writer.function_arguments import PutIn, put_in_functions
from translator.metal_writer.functors import put_in_functors
from translator.metal_writer.in_place import split_array
from translator.metal_writer.kernel import write_kernel
from translator.metal_writer.macros import expand_macros
from translator.metal_writer.names import renamed, reserved_words
from translator.metal_writer.namespaces import without_namespaces, without_qualifiers
from translator.metal_writer.passes import ArrayUse, Finding, Pass
from translator.metal_writer.program import Program, Routine, read_program
from translator.metal_writer.reference_casts import without_reference_casts
from translator.metal_writer.refused import Refused
from translator.metal_writer.struct_parameters import open_structs
from translator.translation import NamedArray, Refusal, TranslatedPass, Translation

MOST_THREADS = 1024
MOST_COPIES = 16
"""How many functions of one kernel may be copied for other memory."""


@dataclass
class _Launch:
    """One launch, read: the functions that it runs, callers first, and where it touches which array."""

    step: LaunchStep
    program: Program
    kernel: Routine
    order: list[Routine]
    readers: dict[Routine, Expressions]
    accesses: list[Access]
    given: dict[str, str]

    @property
    def uses(self) -> Uses:
        """What the launch does with each array that it is given."""
        found: dict[str, set[str]] = {}
        for access in self.accesses:
            found.setdefault(access.array, set()).add(access.kind)
        return {name: frozenset(kinds - {"address"}) for name, kinds in found.items() if kinds != {"address"}}


@dataclass
class _Work:
    """What has been written and refused so far."""

    passes: list[TranslatedPass] = field(default_factory=list)
    buffers: list[NamedArray] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    versions: dict[str, ArrayPlan] = field(default_factory=dict)

    def refuse(self, kernel: str, finding: Finding) -> None:
        """Number a refusal; one that says the same of the same place is not repeated."""
        if not any(r.reason == finding.reason and r.span == finding.span for r in self.refusals):
            number = len(self.refusals) + 1
            self.refusals.append(Refusal(number, kernel, finding.reason, finding.advice, finding.span))


def write_metal(source: CudaSource, plan: LaunchPlan) -> Translation:
    """Translate the launches of ``plan``; what can't be translated is among the refusals, never an exception."""
    plan, source = without_qualifiers(source, plan), without_namespaces(expand_macros(active_source(source)))
    source = with_cub(without_reference_casts(with_constructions(source)))
    given, unfit = put_in_functors(put_in_functions(source, plan))
    opened = open_structs(given.source, given.plan)
    source, plan, work = opened.source, opened.plan, _Work()
    for kernel, refused in (*unfit, *opened.refused):
        work.refuse(kernel, Finding(refused.reason, refused.advice, span_of(refused.node)))
    steps = [step for step in plan.steps if not any(isinstance(a, StructArgument) for a in step.arguments)]
    launches = [launch for step in steps if (launch := _read(source, plan, step, work)) is not None]
    launches, fills = _without_fills(plan, launches)
    versions = name_versions(plan, [launch.uses for launch in launches])
    for fill in fills:
        versions[fill.array].current, versions[fill.array].initial = "", fill.value
    for number, launch in enumerate(launches):
        _write(launch, plan, versions, work, number)
    return _with_own_lines(_translation(plan, versions, work), given)


def _with_own_lines(translation: Translation, given: PutIn) -> Translation:
    """Return a translation whose lines from copies of functions are those of the functions, and kernels likewise."""
    lines, kernels = given.lines, given.kernels
    if not lines:
        return translation

    def own(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(lines.get(number, number) for number in numbers)

    passes = [
        replace(
            each,
            kernel=kernels.get(each.kernel, each.kernel),
            header_lines=own(each.header_lines),
            source_lines=own(each.source_lines),
        )
        for each in translation.passes
    ]
    refusals = [
        replace(
            each,
            kernel=kernels.get(each.kernel, each.kernel),
            span=each.span._replace(line=lines.get(each.span.line, each.span.line)),
        )
        for each in translation.refusals
    ]
    return replace(translation, passes=tuple(passes), refusals=tuple(refusals))


def _without_fills(plan: LaunchPlan, launches: list[_Launch]) -> tuple[list[_Launch], list[Fill]]:
    """Leave out the launches that only fill an array which atomics then work on."""
    kept, fills = [], []
    for number, launch in enumerate(launches):
        fill = fill_of(plan, launch.step, launch.readers[launch.kernel], launch.accesses)
        array = fill.array if fill is not None else ""
        before = any(array in earlier.uses for earlier in launches[:number])
        after = next((later.uses[array] for later in launches[number + 1 :] if array in later.uses), frozenset())
        if fill is not None and not before and ATOMIC in after:
            fills.append(fill)
        else:
            kept.append(launch)
    return kept, fills


def _read(source: CudaSource, plan: LaunchPlan, step: LaunchStep, work: _Work) -> _Launch | None:
    """Read one launch, or note why that can't be done."""
    program = read_program(source)
    kernel = next((routine for routine in program.routines_of(step.kernel) if routine.kernel), None)
    try:
        if kernel is not None:
            return _followed(program, plan, step, kernel)
        if program.unread:
            raise program.unread[-1]
    except Refused as refused:
        work.refuse(step.kernel, Finding(refused.reason, refused.advice, span_of(refused.node)))
        return None
    work.refuse(step.kernel, Finding(f"there is no kernel '{step.kernel}'", "define it in this file", step.span))
    return None


def _followed(program: Program, plan: LaunchPlan, step: LaunchStep, kernel: Routine) -> _Launch:
    """Return a launch with its functions and pointers followed; raise `Refused` for what no kernel can do here."""
    order = reachable(program, kernel)
    if (barrier := grid_barrier(program, order)) is not None:
        raise Refused(barrier, "a barrier over the whole grid has no counterpart",
                      "launch one kernel before it and one after it")  # fmt: skip
    if (loop := spin_lock(program, order)) is not None:
        raise Refused(loop, "a loop waits for other threads, which Metal doesn't promise to run",
                      "use an atomic operation, or a second kernel")  # fmt: skip
    if (count := last_block(program, order)) is not None:
        raise Refused(count, "the block that counts itself last adds up what the others have written",
                      "make it two launches: one that writes each block's part, and one that adds up the parts; the "
                      "counter and the fence then go")  # fmt: skip
    given = template_arguments(kernel, step, program.text)
    arrays = {array.name for array in plan.arrays}
    held = {name for name in arrays if name in program.items and program.items[name].kind == "memory"}
    readers = {routine: Expressions(program, routine, given if routine is kernel else {}, held) for routine in order}
    for routine in operators(program, readers):
        order.append(routine)
        readers[routine] = Expressions(program, routine, {}, held)
    begin = {parameter: {("array", argument.array)}
             for parameter, argument in zip(kernel.parameters, step.arguments, strict=False)
             if isinstance(argument, ArrayArgument) and argument.array in arrays}  # fmt: skip
    for parameter, argument in zip(kernel.parameters, step.arguments, strict=False):
        if isinstance(argument, SizeArgument) and parameter.type.pointers:  # a null pointer
            begin[parameter] = {("device", "")}
    for _ in range(MOST_COPIES):
        for routine in readers:
            for variable in routine.all_variables():
                variable.origins = set(begin.get(variable, ()))
        follow_pointers(readers)
        if not copy_functions(program, readers, order):
            break
    return _Launch(step, program, kernel, order, readers, find_accesses(readers), given)


def _write(launch: _Launch, plan: LaunchPlan, versions: dict[str, Versions], work: _Work, number: int) -> None:
    """Write one launch, or note why there is no pass for it."""
    before = {name: version.current for name, version in versions.items()}
    arrays, initial = step_arrays(versions, launch.uses)
    for argument in launch.step.arguments:
        if isinstance(argument, ArrayArgument) and argument.array not in arrays:
            arrays[argument.array] = ArrayUse(before.get(argument.array, "") or argument.array, "")
    work.versions |= {use.write: versions[array].plan for array, use in arrays.items() if use.write}
    shared = Pass(launch.program, arrays, launch.readers, scalars={s.name: s for s in plan.scalars})
    shared.dtypes = {array.name: array.dtype for array in plan.arrays}
    kernel = launch.step.kernel
    combined: list[_Combined] = []
    try:
        check_barriers(launch.readers)
        combined = _take_apart(launch, shared, before, {array.name for array in plan.arrays if array.partly}, work)
        initial |= {0.0} if combined else set()
        if len(initial) > 1:
            raise Refused(launch.kernel.node, "two arrays of one kernel begin with different numbers",
                          "fill one of them in a kernel of its own")  # fmt: skip
        grid, group = _sizes(launch)
        text = write_kernel(shared, launch.step, launch.kernel, launch.order, launch.given)
    except Refused as refused:
        shared.refuse(refused.node, refused.reason, refused.advice)
    for finding in shared.findings:
        work.refuse(kernel, finding)
    if shared.findings:
        return
    for note in shared.notes:
        work.notes[note] = None
    outputs = [use.write for use in arrays.values() if use.write] + list(shared.flags.values())
    name = kernel if kernel not in {step.name for step in work.passes} else f"{kernel}_{number + 1}"
    work.passes.append(
        TranslatedPass(
            name,
            kernel,
            _inputs(shared, launch, text.source),
            tuple(dict.fromkeys(outputs)),
            text.header,
            text.source,
            grid,
            group,
            text.template,
            min(initial, default=None),
            text.header_lines,
            text.source_lines,
        )
    )
    for entry in combined:
        _combine(entry, versions, work)


@dataclass(frozen=True)
class _Combined:
    """An array that a pass of its own puts together: ``parts`` are the buffers that it takes besides ``held``."""

    array: str
    held: str
    output: str
    parts: tuple[tuple[str, str], ...]
    value: str
    why: str


def _inputs(shared: Pass, launch: _Launch, text: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for argument in plain_arguments(launch.step.arguments):
        if isinstance(argument, ArrayArgument):
            use = shared.arrays[argument.array]
            if use.read and use.read != use.write:
                names[use.read] = None
        elif isinstance(argument, ScalarArgument):
            names[_program_name(argument.scalar)] = None
    for name in launch.readers[launch.kernel].globals:
        if name in shared.arrays:
            names[shared.arrays[name].read] = None
    words = set(re.findall(r"\w+", text))
    return tuple(name for name in names if name in words)


def _take_apart(
    launch: _Launch, shared: Pass, before: dict[str, str], partly: set[str], work: _Work
) -> list[_Combined]:
    """Split the arrays that are changed in place; return those that a pass afterwards must put together."""
    combined = []
    dependence = Dependence(launch.readers[launch.kernel])
    talks = False
    for name, kinds in launch.uses.items():
        accesses = [access for access in launch.accesses if access.array == name and access.kind != "address"]
        use, held = shared.arrays[name], before[name]
        if not writes(kinds):
            if not use.read:
                raise Refused(
                    accesses[0].node, f"'{name}' is read and nothing has written it", "fill it before the launch"
                )
            continue
        if not held:
            talks |= bool(kinds & {READ, UPDATE})
            continue
        if ATOMIC in kinds:
            if kinds != {ATOMIC} or not all(_adds(launch.readers[a.routine], a) for a in accesses):
                raise Refused(accesses[0].node, f"'{name}' holds values before the launch and is changed by atomics",
                              "clear it before the launch and combine the two afterwards")  # fmt: skip
            sums = renamed(f"{_program_name(name)}_sum", {array.name for array in work.buffers})
            shared.arrays[name] = ArrayUse("", sums)
            combined.append(_Combined(name, held, use.write, ((sums, ""),), f"{held}[i] + {sums}[i]",
                                      "What the array held before, and what the atomics have added."))  # fmt: skip
            continue
        split = split_array(name, accesses, dependence, launch.readers, name in partly)
        shared.splits[name] = split
        talks |= bool(split.reads_of_output) or split.chosen
        reads = bool(kinds & {READ, UPDATE}) or bool(split.copies)
        output = use.write
        if split.flagged:
            taken = {array.name for array in work.buffers} | set(launch.uses)
            output = renamed(f"{_program_name(name)}_new", taken)
            flags = renamed(f"{_program_name(name)}_written", taken)
            shared.flags[name] = flags
            combined.append(_Combined(name, held, use.write, ((output, ""), (flags, "bool")),
                                      f"{flags}[i] ? {output}[i] : {held}[i]",
                                      "Elements that the kernel has not written stay as they were."))  # fmt: skip
        shared.arrays[name] = ArrayUse(held if reads else "", output)
    if talks and (call := fence(launch.program, launch.order)) is not None:
        raise Refused(call, "what other blocks have written is read in the same kernel",
                      "read it in a second kernel: a fence orders nothing between threadgroups here")  # fmt: skip
    if talks:
        shared.barrier = "mem_flags::mem_device | mem_flags::mem_threadgroup"
    return combined


def _program_name(array: str) -> str:
    return renamed(array, reserved_words(()))


def _adds(reader: Expressions, access: Access) -> bool:
    function = access.node.child_by_field_name("function")
    return function is not None and plain_name(reader.program, function) == "atomicAdd"


def _combine(entry: _Combined, versions: dict[str, Versions], work: _Work) -> None:
    """Add the pass that puts an array together."""
    array = versions[entry.array].plan
    for name, dtype in entry.parts:
        work.buffers.append(replace(named(array, name), dtype=dtype or array.dtype))
    source = f"// {entry.why}\nuint i = thread_position_in_grid.x;\n{entry.output}[i] = {entry.value};"
    last = work.passes[-1]
    work.passes.append(
        TranslatedPass(
            f"{entry.output}_combined",
            last.kernel,
            (entry.held, *(name for name, _ in entry.parts)),
            (entry.output,),
            "",
            source,
            (array.extent, "1", "1"),
            (f"min({array.extent}, 256)", "1", "1"),
            (),
            None,
            (),
            (0,) * 3,
        )
    )


def _sizes(launch: _Launch) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Return the grid in threads and the threadgroup."""
    step = launch.step
    block = tuple(_plain(launch, text) for text in step.block)
    grid = tuple(_times(_plain(launch, count), size) for count, size in zip(step.grid, block, strict=True))
    if all(size.isdigit() for size in block):
        threads = int(block[0]) * int(block[1]) * int(block[2])
        if threads > MOST_THREADS:
            raise Refused(launch.kernel.node, f"'{step.kernel}' is launched with {threads} threads in a block",
                          "use at most 1024")  # fmt: skip
    return (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])


def _plain(launch: _Launch, text: str) -> str:
    value = integer(launch.program, text.replace("//", "/"), {}) if "ceildiv" not in text else None
    return str(value) if value is not None and not any(c.isalpha() for c in text) else text


def _times(count: str, size: str) -> str:
    if count.isdigit() and size.isdigit():
        return str(int(count) * int(size))
    if size == "1":
        return count
    if count == "1":
        return size
    return f"{_factor(count)} * {_factor(size)}"


def _factor(text: str) -> str:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth == 0 and character in "+-/%*" and not text.isalnum():
            return f"({text})"
    return text


def _translation(plan: LaunchPlan, versions: dict[str, Versions], work: _Work) -> Translation:
    inputs = [named(v.plan, _program_name(v.plan.name)) for v in versions.values()
              if v.plan.role in (Role.INPUT, Role.INOUT)]  # fmt: skip
    inputs += [NamedArray(_program_name(s.name), s.name, (), s.dtype) for s in plan.scalars]
    results = {v.current: v for v in versions.values()
               if v.plan.role in (Role.OUTPUT, Role.INOUT) and v.current}  # fmt: skip
    known = {array.name for array in inputs} | set(results) | {buffer.name for buffer in work.buffers}
    for step in work.passes:
        for name in step.outputs:
            if name not in known:
                known.add(name)
                plan_of = next(v.plan for v in versions.values() if name.startswith(_program_name(v.plan.name)))
                work.buffers.append(named(plan_of, name))
    outputs = tuple(named(version.plan, name) for name, version in results.items())
    return Translation(
        tuple(work.passes), tuple(work.buffers), tuple(inputs), outputs, tuple(work.refusals), tuple(work.notes)
    )
