"""Forms of a CUDA source that no single word gives away, for the rows of the table that match a ``structure``.

Each finder says what form it takes; the row in ``primitives.toml`` says what becomes of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from tree_sitter import Node

from translator.bodies import Bodies, Body, base_name, enclosing, squeeze
from translator.call_graph import on_loops
from translator.cuda_source import CudaSource, Function, Parameter, span_of
from translator.span import Span

Finder = Callable[[CudaSource, Bodies], Iterator[Span]]

_NUMBER = re.compile(
    r"(?:(?:const|volatile|unsigned|signed|long|short|int|float|double|char|bool|half|__half|size_t|"
    r"u?int(?:8|16|32|64)_t|__nv_bfloat16|nv_bfloat16|uint|std::size_t|ptrdiff_t|ssize_t)\s*&?\s*)+"
)
_TYPE_PARAMETER = re.compile(r"(?:typename|class)\s+(\w+)")
_SHUFFLE = re.compile(r"__shfl(?:_up|_down|_xor)?(?:_sync)?$")
_EXCHANGE = re.compile(r"__(?:shfl|ballot|any|all|reduce|match)_")
_BY_LANE = re.compile(r"\blane\w*|threadIdx\.x(?!/|>>|<(?:32|warpSize|WARP_SIZE))")
_OVER_THE_END = re.compile(r"\(?[\w.*+/%()\[\]]+>=?\w")
_TAKES_LOCK = re.compile(r"atomicCAS\([^,]+,0u?,1u?\)|atomicExch\([^,]+,1u?\)")
_COUNTS_BLOCKS = re.compile(r"atomic(?:Inc|Add)\(")
_LAST_BLOCK = re.compile(r"==\(?(?:gridDim|num_blocks|n_blocks|blocks)[\w.]*-1|==\w*(?:blocks|Blocks)\w*-1")
_FUNCTION = re.compile(r"\(\*\w*\)\(")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def find_structures(source: CudaSource, bodies: Bodies) -> Iterator[tuple[str, Span]]:
    """Yield each form that a source shows, by its name, and where."""
    for name, finder in FINDERS.items():
        for span in finder(source, bodies):
            yield name, span


def find_atomics(source: CudaSource, bodies: Bodies) -> Iterator[tuple[str, Span]]:
    """Yield each atomic on shared memory, or on a type that has none in Metal: which of them, and where.

    The spans go from the function's name to the opening bracket.
    """
    for body in bodies.bodies:
        shared = {declaration.name: declaration.type for declaration in body.shared}
        types = {parameter.name: parameter.type for parameter in body.function.parameters} | shared
        for call in body.calls:
            arguments = call.node.child_by_field_name("arguments")
            if not call.name.startswith("atomic") or arguments is None or not arguments.named_children:
                continue
            name = base_name(source, arguments.named_children[0])
            kind = types.get(name, "")
            span = call.span._replace(end=arguments.start_byte + 1)
            if re.search(r"half|bfloat", kind):
                yield "half", span
            elif "double" in kind:
                yield "double", span
            elif re.search(r"long|64_t", kind):
                yield "wide", span
            elif name in shared:
                yield ("shared float" if "float" in kind else "shared"), span


def _kernels(bodies: Bodies) -> Iterator[Body]:
    return (body for body in bodies.bodies if body.function.kernel)


def _device_functions(bodies: Bodies) -> Iterator[Body]:
    return (body for body in bodies.bodies if not body.function.kernel)


def _early_returns(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A return of a kernel that stands before one of its barriers."""
    for body in _kernels(bodies):
        yield from (span for span in body.returns if span.end <= _last_barrier(body))


def _last_barrier(body: Body) -> int:
    return max((call.span.start for call in body.barriers), default=-1)


def _bounds_checks(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """An if with nothing but a return in it, whose condition is that something has reached or passed an end."""
    for body in _kernels(bodies):
        for whole, condition in body.conditions:
            leaves = next((span for span in body.returns if whole.holds(span)), None)
            after = source.text[leaves.end : whole.end].strip(" \t\r\n}") if leaves else "more"
            if leaves and not after and leaves.end > _last_barrier(body) and _OVER_THE_END.match(condition):
                yield Span(whole.start, leaves.end, whole.line, whole.column)


def _parameters(functions: Iterator[Body], wanted: Callable[[Function, Parameter], bool]) -> Iterator[Span]:
    for body in functions:
        yield from (p.span for p in body.function.parameters if wanted(body.function, p))


def _is_number(function: Function, parameter: Parameter) -> bool:
    kind = parameter.type.strip()
    types = {name for item in function.template if (name := _type_parameter(item))}
    return bool(_NUMBER.fullmatch(kind)) or set(kind.replace("const", "").split()) <= types


def _type_parameter(item: str) -> str:
    match = _TYPE_PARAMETER.match(item)
    return match[1] if match else ""


def _is_function(parameter: Parameter) -> bool:
    return bool(_FUNCTION.search(squeeze(parameter.type)))


def _is_struct(function: Function, parameter: Parameter) -> bool:
    plain = bool(parameter.name) and not re.search(r"[*&\[(.]|\bcuda\w+_t\b", parameter.type)
    return plain and not _is_number(function, parameter)


def _templates(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A kernel with template parameters: its name."""
    for body in _kernels(bodies):
        if body.function.template:
            span = body.function.span
            at = source.text.find(body.function.name, span.start)
            yield Span(at, at + len(body.function.name), *_place(source, at, span))


def _place(source: CudaSource, at: int, before: Span) -> tuple[int, int]:
    """Return line and column of a character of the text after the start of a span."""
    lines = source.text.count("\n", before.start, at)
    return before.line + lines, at - source.text.rfind("\n", 0, at) if lines else before.column + at - before.start


def _in_place(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """An array parameter of a kernel that is written, and read too."""
    for body in _kernels(bodies):
        arrays = {p.name: p for p in body.function.parameters if "*" in p.type and not p.type.startswith("const ")}
        accesses = Counter(access.array for access in body.accesses)
        writes: Counter[str] = Counter()
        reads_too: set[str] = set()
        for assignment in body.assignments:
            if assignment.target_node.type == "subscript_expression":
                name = base_name(source, assignment.target_node)
                writes[name] += 1
                if assignment.operator != "=":
                    reads_too.add(name)
        for name, parameter in arrays.items():
            if writes[name] and (name in reads_too or accesses[name] > writes[name]):
                yield parameter.span


def _several_launches(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """In a host function, the first launch of another kernel than before; one kernel may be launched by cases."""
    hosts = sorted(source.host_functions, key=lambda span: span.start)
    first: dict[int, str] = {}
    for launch in source.launches:
        index, kernel = enclosing(hosts, launch.span), launch.kernel.partition("<")[0]
        if index is not None and first.setdefault(index, kernel) not in (kernel, ""):
            first[index] = ""
            yield launch.span


def _ragged_blocks(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A launch whose block is a number and no multiple of 32, of a kernel whose lanes exchange values."""
    exchanging = {b.function.name for b in _kernels(bodies) if any(_EXCHANGE.match(call.name) for call in b.calls)}
    for launch in source.launches:
        block = bodies.constants.get(launch.block, launch.block)
        if launch.kernel.partition("<")[0] in exchanging and block.isdecimal() and int(block) % 32:
            yield launch.span


def _program_constants(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A constexpr outside of functions: at program scope or in a struct."""
    for node in source.nodes_of("type_qualifier"):
        if source.text_of(node) == "constexpr" and (declaration := node.parent):
            around = declaration.parent.type if declaration.parent else ""
            if declaration.type in ("declaration", "field_declaration") and around in (
                "translation_unit", "declaration_list", "field_declaration_list", "preproc_ifdef", "preproc_if",
            ):  # fmt: skip
                yield span_of(declaration)


def _local_arrays(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """An array that a function of the device declares for each thread."""
    functions = [body.function.body for body in bodies.bodies]
    shared = {declaration.span.start for declaration in source.declarations}
    for node in source.nodes_of("array_declarator"):
        if node.parent is None or node.parent.type == node.type:
            continue
        declaration: Node | None = node.parent
        while declaration is not None and declaration.type == "init_declarator":
            declaration = declaration.parent
        if declaration is not None and declaration.type == "declaration" and declaration.start_byte not in shared:
            span = span_of(node)
            if enclosing(functions, span) is not None:
                yield span


def _divergent_shuffles(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A shuffle in an if whose condition depends on the lane."""
    for body in bodies.bodies:
        branches = [span for span, condition in body.conditions if _BY_LANE.search(condition)]
        for call in body.calls:
            if _SHUFFLE.match(call.name) and any(branch.holds(call.span) for branch in branches):
                yield call.span


def _spin_locks(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A loop that goes on until an atomic has turned 0 into 1."""
    for node in source.nodes_of("while_statement", "do_statement"):
        condition = node.child_by_field_name("condition")
        if condition is not None and _TAKES_LOCK.search(squeeze(source.text_of(condition))):
            yield span_of(condition)


def _last_blocks(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A count of blocks by an atomic, compared with the number of blocks less one, in a kernel with a fence."""
    for body in _kernels(bodies):
        text = squeeze(source.text[body.function.body.start : body.function.body.end])
        if "__threadfence" in text and _COUNTS_BLOCKS.search(text) and _LAST_BLOCK.search(text):
            yield from [call.span for call in body.calls if _COUNTS_BLOCKS.match(call.name + "(")][:1]


def _recursions(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A call that leads back to where it stands; templates and overloads may call others of their name."""
    names = Counter(body.function.name for body in bodies.bodies)
    single = {
        body.function.name: body
        for body in bodies.bodies
        # A name with two underscores is an overload of one of CUDA's own.
        if names[body.function.name] == 1 and not body.function.template and not body.function.name.startswith("__")
    }
    left = on_loops({name: {call.name for call in body.calls} & single.keys() for name, body in single.items()})
    for name in single:
        if name in left:
            yield next(call.span for call in single[name].calls if call.name in left)


def _beyond_ascii(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """Characters beyond ASCII in a kernel or a device function, the first of each."""
    for body in bodies.bodies if not source.text.isascii() else ():
        span = body.function.span
        if match := _BEYOND_ASCII.search(source.text, span.start, span.end):
            yield Span(match.start(), match.end(), *_place(source, match.start(), span))


def _indices_in_functions(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """The first use of a launch's index in each device function."""
    functions = [body.function for body in _device_functions(bodies)]
    for function in functions:
        text = source.text[function.body.start : function.body.end]
        if match := re.search(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b", text):
            at = function.body.start + match.start()
            yield Span(at, at + len(match[0]), *_place(source, at, function.body))


def _member_functions(source: CudaSource, bodies: Bodies) -> Iterator[Span]:
    """A device function that stands in a struct: its name."""
    structs: list[Span] = []
    for node in source.nodes_of("field_declaration_list"):
        if not structs or node.start_byte >= structs[-1].end:
            structs.append(span_of(node))
    for body in _device_functions(bodies):
        if enclosing(structs, body.function.span) is not None:
            span = body.function.span
            at = source.text.find(body.function.name, span.start)
            yield Span(at, at + len(body.function.name), *_place(source, at, span))


FINDERS: Mapping[str, Finder] = {
    "early return": _early_returns,
    "bounds check": _bounds_checks,
    "pointer to pointer": lambda s, b: _parameters(_kernels(b), lambda f, p: p.type.count("*") > 1),
    "scalar parameter": lambda s, b: _parameters(_kernels(b), _is_number),
    "struct parameter": lambda s, b: _parameters(_kernels(b), _is_struct),
    "function pointer": lambda s, b: _parameters(iter(b.bodies), lambda f, p: _is_function(p)),
    "pointer parameter": lambda s, b: _parameters(
        _device_functions(b), lambda f, p: "*" in p.type and not _is_function(p)
    ),
    "reference parameter": lambda s, b: _parameters(_device_functions(b), lambda f, p: "&" in p.type),
    "kernel template": _templates,
    "in-place array": _in_place,
    "several launches": _several_launches,
    "ragged block": _ragged_blocks,
    "program constant": _program_constants,
    "local array": _local_arrays,
    "divergent shuffle": _divergent_shuffles,
    "spin lock": _spin_locks,
    "last block": _last_blocks,
    "recursion": _recursions,
    "beyond ascii": _beyond_ascii,
    "index in function": _indices_in_functions,
    "member function": _member_functions,
}
