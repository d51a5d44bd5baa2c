"""Metal's own rules, read off the text of a kernel: what Apple's compiler or MLX refuses.

What reaches outside the kernel (`translator.reach`) is among its findings.

A kernel's ``source`` is the body of a function whose signature MLX writes; its ``header`` stands before that function.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from translator.call_graph import on_loops
from translator.metal_attributes import ATTRIBUTES
from translator.metal_limits import Launch, launch_faults, misplaced, variable_lengths
from translator.metal_rule import Rule
from translator.metal_spaces import ARRAY, POINTER, Memory, memory_of, missing_spaces, mixed_spaces
from translator.metal_tokens import Function, Tokens, functions_of, program_variables_of, tokens_of, variables_of
from translator.reach import MOST_CHARACTERS, blank_text, line_of, reaching_out

__all__ = ["ATTRIBUTES", "ERROR", "WARNING", "Finding", "Launch", "Rule", "Surroundings", "lint"]

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One broken rule: its line (from 1) in the source, or the header when ``in_header``.

    ``message`` says what is wrong and what to do about it. ``severity`` is `ERROR`, or `WARNING` where the kernel is
    built all the same.
    """

    line: int
    in_header: bool
    severity: str
    message: str
    rule: Rule


@dataclass(frozen=True)
class Surroundings:
    """What a kernel's text doesn't say: the names of its arrays, and its launches (one for each workload)."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    launches: tuple[Launch, ...] = ()


NOTHING_KNOWN = Surroundings()

_ATTRIBUTE = "|".join(ATTRIBUTES)
_DECLARED = "MLX already declares that name as a parameter: drop the declaration and use the name as it is"
_NOT_A_TYPE = "return|case|else|goto|and|or|not|new|delete|throw"

# Each rule: its name, what it looks like in code (comments and strings blanked), and what to do.
_RULES: tuple[tuple[Rule, str, str], ...] = (
    (Rule.DOUBLE, r"\bdouble\d?\b", "Metal has no double: use float"),
    (Rule.GOTO, r"\bgoto\b", "Metal has no goto: use a loop or a condition"),
    (
        Rule.HEAP,
        r"\bnew\b|(?<!=)(?<!= )\bdelete\b|\balloca\b",
        "there is no heap on the GPU: declare a thread or threadgroup array of fixed size",
    ),
    (
        Rule.LANGUAGE,
        r"\b(?:throw|try|catch|typeid|dynamic_cast|virtual|thread_local)\b",
        "Metal has no '{0}': write it without",
    ),
    (
        Rule.STANDARD_LIBRARY,
        r"\bstd\b(?=\s*(?:::|;))",
        "Metal has no std: the same functions stand in metal::, which MLX already uses",
    ),
    (
        Rule.ATTRIBUTE,
        r"\bfunction_constant\b",
        "MLX gives a kernel no function constants: use a template parameter",
    ),
    (
        Rule.WHOLE_KERNEL,
        r"\b(?:kernel|vertex|fragment)\s+void\b",
        "give only the body of the kernel: MLX writes the signature from the names of inputs and outputs",
    ),
)
# What the header may have, and the source may not: it stands in a function.
_SOURCE_RULES: tuple[tuple[Rule, str, str], ...] = (
    (
        Rule.ATTRIBUTE,
        r"\[\[(?!\s*(?:maybe_unused|likely|unlikely|fallthrough)\b)",
        "no attribute is accepted here: MLX adds the kernel's own, by the names in the source",
    ),
    (
        Rule.ATTRIBUTE_DECLARED,
        rf"\b(?!(?:{_NOT_A_TYPE})\b)[A-Za-z_]\w*>?\s+(?:const\s+)?(?:{_ATTRIBUTE})\b\s*(?=[;,){{\[:]|=(?!=))(?!\[\[)",
        _DECLARED,
    ),
)
_WARNINGS: tuple[tuple[Rule, str, str], ...] = (
    (
        Rule.INCLUDE,
        r"(?m)^[ \t]*#[ \t]*include\b(?=[ \t]*<(?:metal_|simd/))",
        "drop the #include: MLX includes Metal's standard library, and nothing else can be reached",
    ),
    (
        Rule.ORDERS_NOTHING,
        r"\bmem_none\b",
        "mem_none orders no memory: use mem_threadgroup or mem_device if other threads read what was written",
    ),
    (
        Rule.FUNCTION_POINTER,
        r"\b(?!return\b|case\b|if\b|while\b|for\b|switch\b)\w+\s*\(\s*\*\s*\w*\s*\)\s*\((?!\s*\))",
        "Metal follows a pointer to a function only where it can tell which one that is: pass a functor as a template "
        "parameter",
    ),
)

_BUILT_ALL_THE_SAME = frozenset({Rule.THREADGROUP_INITIALISED})
"""Rules of structure that are warnings."""

_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*", re.MULTILINE)

Found = tuple[int, Rule, str, str]
"""Line, rule, severity, message."""


def lint(source: str, header: str = "", around: Surroundings = NOTHING_KNOWN) -> list[Finding]:
    """Return what is wrong with a kernel's ``source`` and ``header``, in the order of the lines, header first.

    What is known of its arrays and launches makes more rules apply.
    """
    readable = {True: header, False: source}
    by_words = {in_header: set(_by_words(text, in_header)) for in_header, text in readable.items()}
    # A text that reaches outside, or doesn't pair its brackets, is refused for that: no structure is read off it.
    if not any(rule == Rule.REACHES_OUTSIDE for found in by_words.values() for _, rule, _, _ in found):
        for in_header, line, rule, severity, message in _by_structure(source, header, around):
            by_words[in_header].add((line, rule, severity, message))
    findings = [
        Finding(line, in_header, severity, message, rule)
        for in_header in (True, False)
        for line, rule, severity, message in sorted(by_words[in_header], key=lambda found: (found[0], found[3]))
    ]
    if not blank_text(source).strip():
        findings.append(Finding(1, False, ERROR, "the source is empty: write the body of the kernel", Rule.EMPTY))
    return findings


def _by_words(text: str, in_header: bool) -> Iterator[Found]:
    for line, message in reaching_out(text):
        yield line, Rule.REACHES_OUTSIDE, ERROR, message
    if len(text) > MOST_CHARACTERS:
        return
    code = blank_text(text)
    own = () if in_header else _SOURCE_RULES
    for severity, rules in ((ERROR, (*_RULES, *own)), (WARNING, _WARNINGS)):
        for rule, pattern, message in rules:
            for match in re.finditer(pattern, code):
                at = match.start() + len(match.group()) - len(match.group().lstrip())
                yield line_of(code, at), rule, severity, message.format(match.group().strip())


def _by_structure(source: str, header: str, around: Surroundings) -> Iterator[tuple[bool, int, Rule, str, str]]:
    """Yield, for the header (True) or the source, the findings of the rules that need more than a word."""
    codes = {True: blank_text(header), False: blank_text(source)}
    outside, body = tokens_of(codes[True]), tokens_of(codes[False])
    functions = functions_of(outside)
    for in_header, found in (
        (True, missing_spaces(functions, outside, ())),
        (False, missing_spaces((), (), body)),
        (True, misplaced(functions, outside, ())),
        (False, misplaced((), (), body)),
        (True, _mixed_in_functions(functions, outside)),
        (False, mixed_spaces(_by_name(functions), body, _memory_around(outside, around))),
        (True, _recursions(functions)),
        (True, _attributes_in_header(functions, codes[True], source)),
        (False, variable_lengths(body)),
        (False, _attributes_declared(body)),
    ):
        for at, rule, message in found:
            severity = WARNING if rule in _BUILT_ALL_THE_SAME else ERROR
            yield in_header, line_of(codes[in_header], at), rule, severity, message
    for severity, rule, message in launch_faults(codes[False], body, codes[True], around.launches):
        yield False, 1, rule, severity, message
    for name in (*around.inputs, *around.outputs):
        if name in ATTRIBUTES:
            yield (
                False, 1, Rule.ATTRIBUTE_DECLARED, ERROR,
                f"an array is called '{name}', and MLX adds a parameter of that name: give it another name",
            )  # fmt: skip


def _by_name(functions: Sequence[Function]) -> Mapping[str, tuple[Function, ...]]:
    """Return the functions that are called by name alone; templates may take any space."""
    overloads: dict[str, list[Function]] = defaultdict(list)
    for function in functions:
        if not function.member:
            overloads[function.name].append(function)
    return {name: tuple(found) for name, found in overloads.items()}


def _memory_around(outside: Tokens, around: Surroundings) -> dict[str, Memory]:
    """Return what stands outside of a kernel's body: constants of the header, and outputs, which are in device memory.

    An input may be ``constant`` or ``device``, by its size.
    """
    constants = (one for one in program_variables_of(outside) if one.space == "constant")
    return {**memory_of(constants), **{name: Memory("device", POINTER) for name in around.outputs}}


def _mixed_in_functions(functions: Sequence[Function], outside: Tokens) -> Iterator[tuple[int, Rule, str]]:
    constants = {
        name: memory
        for name, memory in memory_of(program_variables_of(outside)).items()
        if memory.how == ARRAY and memory.space == "constant"
    }
    by_name = _by_name(functions)
    for function in functions:
        known = {**constants, **memory_of(function.parameters)}
        yield from mixed_spaces(by_name, function.body, known)


def _recursions(functions: Sequence[Function]) -> Iterator[tuple[int, Rule, str]]:
    """Yield the functions that lead back to themselves; a template or an overload may call another of its name."""
    single = {
        name: found[0] for name, found in _by_name(functions).items() if len(found) == 1 and not found[0].template
    }
    calls = {
        name: {
            token.text
            for index, token in enumerate(function.body[:-1])
            if token.text in single
            and function.body[index + 1].text == "("
            and (not index or function.body[index - 1].text not in ("::", ".", "->"))
        }
        for name, function in single.items()
    }
    for name in sorted(on_loops(calls)):
        message = f"'{name}' leads back to itself, and MLX asks for no call stack: write it as a loop"
        yield single[name].at, Rule.RECURSION, message


def _attributes_declared(body: Tokens) -> Iterator[tuple[int, Rule, str]]:
    """Yield variables by the name of an attribute, pointers among them, which look like products to a word's rule."""
    for local in variables_of(body):
        if local.name in ATTRIBUTES:
            yield local.at, Rule.ATTRIBUTE_DECLARED, _DECLARED


def _attributes_in_header(functions: Sequence[Function], code: str, source: str) -> Iterator[tuple[int, Rule, str]]:
    """Yield attributes that a function of the header uses, and macros with one that the source doesn't mention."""
    for function in functions:
        own = {one.name for one in (*function.parameters, *variables_of(function.body))}
        for index, token in enumerate(function.body):
            before = function.body[index - 1].text if index else ""
            if token.text in ATTRIBUTES and token.text not in own and before not in (".", "->", "::"):
                yield (
                    token.at,
                    Rule.ATTRIBUTE_IN_HEADER,
                    f"'{token.text}' is a parameter of the kernel, unseen by a function of the header: pass it in",
                )
    for definition in _DEFINITION.finditer(code):
        for match in re.finditer(rf"\b(?:{_ATTRIBUTE})\b", definition.group()):
            if match.group() not in source:
                yield (
                    definition.start() + match.start(),
                    Rule.ATTRIBUTE_IN_HEADER,
                    f"MLX adds '{match.group()}' only when the source has that word: mention it there, in a comment",
                )
