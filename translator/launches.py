"""How a CUDA source launches its kernels, read off its host code: a `LaunchPlan`, with questions where it doesn't say.

`read_launches` reads the source alone; `answered_plan` takes what a person answered as well, by these keys:

=================  =================================================================================================
``grid``           blocks, one to three sizes with commas between: ``ceildiv(n, 256), heads``
``block``          threads a block, alike
``shared``         bytes of dynamic shared memory
``extent.ARRAY``   how many elements an array has
``below.ARRAY``    what the elements of an integer array stay below
``type.NAME``      what a template parameter stands for: ``float``
``value.NAME``     an integer of the host or of a template, as a size
``scalar.NAME``    a floating-point argument
``branch.LINE``    ``then`` or ``else``: the way that the ``if``, ``?:`` or ``BOOL_SWITCH`` in that line goes; for a
                   ``switch`` the label of a ``case``
``rounds.LINE``    how many rounds of the loop in that line are taken
=================  =================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from translator.array_facts import ArrayFacts, array_plans
from translator.c_types import plain_type
from translator.cuda_source import CudaSource, span_of
from translator.definitions import Definition, Definitions, parameter_of, read_definitions
from translator.host_code import HostCode
from translator.host_launches import parse_grid
from translator.host_macros import with_launches_in_place
from translator.host_statements import FOLLOWING, enter, run
from translator.host_values import Grid, HostStep, Null, Record, Value, open_grid, pointers_in
from translator.launch_binding import Binder, template_value, type_question
from translator.launch_plan import (
    ArrayArgument,
    LaunchPlan,
    LaunchStep,
    Question,
    SizeArgument,
    plain_arguments,
)
from translator.mistakes import CudaInputError, require_kernels
from translator.size_text import parse_size
from translator.sizes import ZERO, UnreadableSize, modulo, names_in, render, renders

_KEYS = re.compile(r"(?:grid|block|shared|(?:extent|below|type|value|scalar)\.\w+|(?:branch|rounds)\.\d+)\Z")


def read_launches(source: CudaSource, kernel: str | None = None) -> LaunchPlan:
    """Return how the host launches a kernel (the first one that it launches when none is named).

    A host function that launches several kernels in sequence gives a step for each. Raises `CudaInputError` for a
    source without kernels or without that kernel.
    """
    return answered_plan(source, kernel, {})


def answered_plan(source: CudaSource, kernel: str | None, answers: Mapping[str, str]) -> LaunchPlan:
    """Return the plan of `read_launches` with a person's answers put in.

    Raises `CudaInputError` also for an answer that is no size, and for one about an array or a number that isn't here.
    """
    require_kernels(source, kernel)
    for key in answers:
        if not _KEYS.match(key):
            raise CudaInputError(
                f"'{key}' is no answer that a plan takes: use grid, block, shared, extent.ARRAY, below.ARRAY, "
                "type.NAME, value.NAME, scalar.NAME, branch.LINE or rounds.LINE"
            )
    source = with_launches_in_place(source)
    definitions = read_definitions(source)
    try:
        host, root = _followed(source, definitions, kernel, answers)
        plan = _plan(source, definitions, host, root, kernel, answers)
    except UnreadableSize as error:
        raise CudaInputError(f"an answer can't be used: {error}") from None
    except RecursionError:
        raise CudaInputError(f"{source.path}: its code is nested too deeply to be followed") from None
    _require_used(source, plan, answers)
    return plan


def _require_used(source: CudaSource, plan: LaunchPlan, answers: Mapping[str, str]) -> None:
    """Raise `CudaInputError` for an answer about an array or a number that the plan doesn't have."""
    arrays, scalars = [array.name for array in plan.arrays], [scalar.name for scalar in plan.scalars]
    for key in answers:
        kind, _, name = key.partition(".")
        known = {"extent": arrays, "below": arrays, "scalar": scalars}.get(kind)
        if known is not None and name not in known:
            there = f"there are {', '.join(known)}" if known else "there are none"
            raise CudaInputError(f"{source.path}: '{key}' answers nothing, there is no '{name}' in the plan; {there}")


def launch_from_text(text: str) -> dict[str, str]:
    """Return answers from one line: ``grid=ceildiv(n,256) block=256 shared=0 extent.x=n*d``.

    Raises `CudaInputError` for a part that isn't ``key=value``.
    """
    found: dict[str, str] = {}
    parts = re.split(r"\s+(?=[A-Za-z_.\d]+\s*=)", text.strip())
    for part in filter(None, parts):
        key, sign, value = part.partition("=")
        if not sign or not value.strip() or not _KEYS.match(key.strip()):
            raise CudaInputError(f"'{part}' isn't an answer: write key=value, such as grid=ceildiv(n,256) or block=256")
        found[key.strip()] = value.strip().strip('"')
    return found


def _followed(
    source: CudaSource, definitions: Definitions, kernel: str | None, answers: Mapping[str, str]
) -> tuple[HostCode, Definition | None]:
    """Follow the host function that launches, or bind the kernel itself when there is none."""
    host = HostCode(source, definitions, kernel, answers, FOLLOWING)
    root = _root(source, definitions, host, kernel)
    if root is None:
        _launch_unseen(source, definitions, host, kernel, answers)
        return host, None
    driver = root.name == "main" or not root.parameters
    given = _root_template(source, definitions, host, root, answers)
    enter(host, root, given, driver)
    run(host, root.body)
    if not host.steps and not host.questions:
        host.questions.append(
            Question("launch", f"'{root.name}' launches nothing that could be followed: answer grid and block",
                     span_of(root.node), "grid")
        )  # fmt: skip
    if driver and kernel is not None:
        host.steps = _needed(host.steps, kernel)
    return host, root


def _root(source: CudaSource, definitions: Definitions, host: HostCode, kernel: str | None) -> Definition | None:
    """Return the host function to start from: one that launches itself, or a caller that fixes its template."""
    every = [d for same in definitions.functions.values() for d in same if d.host]
    every.sort(key=lambda definition: (definition.name == "main", definition.node.start_byte))
    direct = [d for d in every if _launches_itself(source, d, kernel)]
    if not direct:
        return None
    roots = [_caller(source, definitions, every, one) for one in direct]
    fixed = (root for root in roots if not root.template or root.name in definitions.instances)
    return next(fixed, roots[0])


def _caller(source: CudaSource, definitions: Definitions, every: Sequence[Definition], root: Definition) -> Definition:
    """Return a function, or one that calls it and fixes what its template or its structs are."""
    for _ in range(4):
        if (not root.template or root.name in definitions.instances) and not _takes_struct(source, definitions, root):
            return root
        called = re.compile(rf"\b{re.escape(root.name)}\s*(?:<[^;]*>)?\s*\(")
        callers = [d for d in every if d.name != root.name and called.search(source.text_of(d.body))]
        if not callers:
            return root
        root = callers[0]
    return root


def _takes_struct(source: CudaSource, definitions: Definitions, root: Definition) -> bool:
    """Whether a function is given a struct of the source, which a caller may fill."""
    types = (plain_type(parameter_of(source, parameter)[0]) for parameter in root.parameters)
    return any(re.sub(r"\s*<.*", "", text).rpartition("::")[2] in definitions.structs for text in types)


def _launches_itself(source: CudaSource, definition: Definition, kernel: str | None) -> bool:
    text = source.text_of(definition.body)
    return ("<<<" in text or "cudaLaunch" in text) and (
        kernel is None or re.search(rf"\b{re.escape(kernel)}\b", text) is not None
    )


def _root_template(
    source: CudaSource, definitions: Definitions, host: HostCode, root: Definition, answers: Mapping[str, str]
) -> dict[str, Value]:
    """Bind the template parameters of the function that the plan starts from; return the integers."""
    given: dict[str, Value] = {}
    instance = next(iter(definitions.instances.get(root.name, [])), ())
    for at, text in enumerate(root.template):
        fixed = instance[at] if at < len(instance) else root.template_defaults[at]
        if root.template_types[at]:
            host.types[text] = answers.get(f"type.{text}", fixed or text)
            if host.types[text] == text:
                host.questions.append(type_question(text, source, root))
        else:
            host.env[text] = given[text] = template_value(source, host, root, text, fixed, answers)
    return given


def _launch_unseen(
    source: CudaSource, definitions: Definitions, host: HostCode, kernel: str | None, answers: Mapping[str, str]
) -> None:
    """Bind a kernel that nothing launches: its parameters are arrays, axes and numbers by their own names."""
    function = next(f for f in source.kernels if kernel is None or f.name == kernel)
    definition = next((d for d in definitions.functions.get(function.name, []) if not d.host), None)
    if definition is None:
        raise CudaInputError(
            f"{source.path}:{function.span.line}: the kernel '{function.name}' can't be read to its end"
        )
    enter(host, definition, _root_template(source, definitions, host, definition, answers), False)
    grids: list[Grid] = []
    for key, what in (("grid", "how many blocks"), ("block", "how many threads a block")):
        if key in answers:
            grids.append(parse_grid(answers[key], host))
            continue
        host.questions.append(
            Question(key, f"no host code launches '{function.name}': answer {key}, {what} it is launched with",
                     function.span, key)
        )  # fmt: skip
        grids.append(open_grid(key))
    dynamic = any(
        d.extern and d.space == "shared" and function.body.holds(d.span) for d in source.declarations
    )  # fmt: skip
    shared = parse_size(answers["shared"]) if "shared" in answers else ZERO
    if dynamic and "shared" not in answers:
        host.questions.append(
            Question("shared", f"no host code launches '{function.name}': answer shared, its bytes of dynamic memory",
                     function.span, "shared")
        )  # fmt: skip
    names = [parameter_of(source, parameter)[1] for parameter in definition.parameters]
    template = tuple(
        host.types[text] if is_type else str(host.env[text])
        for text, is_type in zip(definition.template, definition.template_types, strict=True)
    )
    arguments = tuple(host.env.get(text, Null()) for text in names)
    host.steps.append(
        HostStep(definition, template, dict(host.types), grids[0], grids[1], shared, arguments, function.span)
    )


def _needed(steps: Sequence[HostStep], kernel: str) -> list[HostStep]:
    """Return the launches of one kernel and those before it that share an array with it."""
    kept: list[HostStep] = []
    arrays: set[str] = set()
    for step in reversed(steps):
        own = {pointer.array for pointer in pointers_in(step.arguments)}
        if step.kernel.name == kernel or (kept and own & arrays and _writes_for(step, arrays)):
            kept.insert(0, step)
            arrays |= {
                pointer.array
                for argument, parameter in zip(step.arguments, step.kernel.parameters, strict=False)
                for pointer in pointers_in([argument])
                if isinstance(argument, Record) or b"const" in (parameter.text or b"")
            }
    return kept or list(steps)


def _writes_for(step: HostStep, arrays: set[str]) -> bool:
    return any(
        pointer.array in arrays and (isinstance(argument, Record) or b"const" not in (parameter.text or b""))
        for argument, parameter in zip(step.arguments, step.kernel.parameters, strict=False)
        for pointer in pointers_in([argument])
    )


def _plan(
    source: CudaSource, definitions: Definitions, host: HostCode, root: Definition | None, kernel: str | None,
    answers: Mapping[str, str],
) -> LaunchPlan:  # fmt: skip
    _settle_driver(host)
    binder = Binder(source, host, answers)
    bound = [binder.bind(step) for step in host.steps]
    steps = tuple(
        LaunchStep(
            one.step.kernel.name, one.template, binder.triple(one.step.grid, "grid", one.step),
            binder.triple(one.step.block, "block", one.step), binder.shown(one.step.shared, "shared", one.step),
            one.arguments, one.step.span,
        )
        for one in bound
    )  # fmt: skip
    facts = ArrayFacts(source, definitions, host, root, answers)
    arrays, asked, symbols = array_plans(facts, bound)
    axes = _axes(host, steps, [array.extent for array in arrays] + [array.below for array in arrays])
    questions = _once([*host.questions, *binder.questions, *asked])
    flags = tuple(("most", axis, "1") for axis in host.flags if axis in axes)
    return LaunchPlan(
        axes, tuple(binder.scalars.values()), arrays, steps, (*_requires(host, facts), *flags), questions,
        _once(host.choices), tuple((text, value) for text, value in host.given.items() if text in axes),
        symbols, root.name if root is not None else "",
    )  # fmt: skip


def _requires(host: HostCode, facts: ArrayFacts) -> tuple[tuple[str, str, str], ...]:
    """Return what the host checks and the kernels' vector accesses need, as texts, without what always holds."""
    found: dict[tuple[str, str, str], None] = {}
    for kind, size, other in [*host.requires, *facts.alignment]:
        if size == other or not (renders(size) and renders(other)) or size.constant is not None:
            continue
        if kind == "multiple" and modulo(size, other) == ZERO:
            continue
        found[(kind, render(size, host.axes), render(other, host.axes))] = None
    return tuple(found)


def _settle_driver(host: HostCode) -> None:
    """Take the value that a driver gives to a size which blocks or shared memory depend on: those are no axes."""
    for step in list(host.steps):
        for size in (step.block.x, step.block.y, step.block.z):
            for text in names_in(size) & set(host.given):
                host.fix(text, parse_size(str(host.given.pop(text))))


def _axes(host: HostCode, steps: Iterable[LaunchStep], more: Iterable[str]) -> tuple[str, ...]:
    """Return the names that the plan's sizes use, in the order in which the host has them."""
    texts = list(more)
    for step in steps:
        texts += [*step.grid, *step.block, step.shared]
        texts += [a.size if isinstance(a, SizeArgument) else a.offset if isinstance(a, ArrayArgument) else ""
                  for a in plain_arguments(step.arguments)]  # fmt: skip
    used: dict[str, None] = {}
    for text in texts:
        used.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*(?!\w*\s*\()", text)))
    found = [axis for axis in host.axes if axis in used]
    return (*found, *(text for text in used if text not in found and text not in ("min", "max", "ceildiv")))


def _once(questions: Iterable[Question]) -> tuple[Question, ...]:
    kept: dict[tuple[str, str], Question] = {}
    for question in questions:
        kept.setdefault(("", question.answer) if question.answer else (question.about, question.message), question)
    return tuple(kept.values())
