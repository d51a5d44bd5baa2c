"""Metal's own rules, read off the text of a kernel: what Apple's compiler or MLX refuses, or what reaches outside.

A kernel's ``source`` is the body of a function whose signature MLX writes; its ``header`` stands before that function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One broken rule: its line (from 1) in the source, or the header when ``in_header``, and what to do about it."""

    line: int
    in_header: bool
    severity: str
    message: str


# MLX adds a parameter of this name when the text of the source has it.
ATTRIBUTES = (
    "dispatch_quadgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "grid_origin",
    "grid_size",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "thread_execution_width",
    "thread_index_in_quadgroup",
    "thread_index_in_simdgroup",
    "thread_index_in_threadgroup",
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "threads_per_grid",
    "threads_per_simdgroup",
    "threads_per_threadgroup",
)

_C_LIBRARY = (
    "abort|calloc|connect|dlopen|dlsym|exec[lv]p?e?|_?exit|fopen|v?fork|f?printf|free|getenv|kill|longjmp|malloc|mmap|"
    "mprotect|popen|puts|raise|realloc|setenv|setjmp|signal|socket|syscall|system"
)

_TYPE = r"(?:u?(?:int|short|char|long)[234]?|(?:float|half)[234]?|size_t|auto|bool)"

# Each rule: what it looks like in code (comments and strings blanked), and what to do.
_RULES: tuple[tuple[str, str], ...] = (
    (r"\bdouble\b", "Metal has no double: use float"),
    (r"\bgoto\b", "Metal has no goto: use a loop or a condition"),
    (r"\b(?:new|delete)\b", "there is no heap on the GPU: declare a thread or threadgroup array of fixed size"),
    (r"\b(?:throw|try|catch|typeid|dynamic_cast|virtual|thread_local)\b", "Metal has no '{0}': write it without"),
    (r"\bextern\b", "nothing outside the kernel can be declared: drop 'extern' and define it in the header"),
    (r"\bstd\b(?=\s*(?:::|;))", "Metal has no std: the same functions stand in metal::, which MLX already uses"),
    (r"\basm\b", "no assembly is accepted: use Metal's own functions"),
    (
        r"\b__(?!METAL_VERSION__|HAVE_\w+)\w+",
        "'{0}' is the compiler's own: use Metal's functions and plain declarations",
    ),
    (r"(?<![\w>])::\s*(?!metal\b)(?=\w)", "only names of metal:: can be reached from a kernel: drop the leading '::'"),
    (
        rf"\b(?:{_C_LIBRARY})\b(?=\s*\()",
        "'{0}' belongs to the C library, which a GPU does not have: drop the call",
    ),
    (
        r"\[\[(?!\s*(?:maybe_unused|likely|unlikely|fallthrough)\b)",
        "no attribute is accepted here: MLX adds the kernel's own, by the names in the source",
    ),
    (
        r"\b(?:kernel|vertex|fragment)\s+void\b",
        "give only the body of the kernel: MLX writes the signature from the names of inputs and outputs",
    ),
    (
        rf"\b{_TYPE}\s+(?:const\s+)?(?:{'|'.join(ATTRIBUTES)})\b(?!\s*\[\[)",
        "MLX already declares that name as a parameter: drop the declaration and use the name as it is",
    ),
    (r"<%|%>|%:", "write braces and '#' themselves, not their digraphs"),
    (r"\w\\\r?\n(?=\w)", "a line that ends in a backslash splits a word: write the word on one line"),
)
_WARNINGS: tuple[tuple[str, str], ...] = (
    (
        r"\bmem_none\b",
        "mem_none orders no memory: use mem_threadgroup or mem_device if other threads read what was written",
    ),
)

_NOT_PRINTABLE = re.compile(r"[^ -~\t\r\n]")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)([^\n]*)", re.MULTILINE)
_ALLOWED_DIRECTIVES = ("define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma", "error")
_ALLOWED_PRAGMA = re.compile(r"\s*(?:unroll\b|nounroll\b|clang\s+(?:loop|fp)\b|METAL\b)")


def lint(source: str, header: str = "") -> list[Finding]:
    """Return what is wrong with a kernel's ``source`` and ``header``, in the order of the lines, header first."""
    findings = []
    for text, in_header in ((header, True), (source, False)):
        found = {(line, severity, message) for line, severity, message in _findings(text)}
        findings += [Finding(line, in_header, severity, message) for line, severity, message in sorted(found)]
    if not blank_text(source).strip():
        findings.append(Finding(1, False, ERROR, "the source is empty: write the body of the kernel"))
    return findings


def _findings(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _NOT_PRINTABLE.finditer(text):
        code_point = f"U+{ord(match.group()):04X}"
        yield _line(text, match.start()), ERROR, f"{code_point} can't stand in MLX's sources: spell it in ASCII"
    code = blank_text(text)
    for severity, rules in ((ERROR, _RULES), (WARNING, _WARNINGS)):
        for pattern, message in rules:
            for match in re.finditer(pattern, code):
                yield _line(code, match.start()), severity, message.format(match.group())
    yield from ((line, ERROR, message) for line, message in _directive_findings(code))
    yield from ((line, ERROR, message) for line, message in _brace_findings(code))
    if (start := _open_comment(text)) is not None:
        yield _line(text, start), ERROR, "this comment is never closed: end it with '*/'"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


_TOKEN = re.compile(
    r"(?P<number>\b\d(?:[\w.]|'\w)*)"  # the quotes in 1'000 open no literal
    r"|//(?:\\\r?\n|[^\n])*"  # a line comment, with the lines that a backslash adds to it
    r"|(?P<block>/\*.*?(?:(?P<end>\*/)|\Z))"
    r'|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)'
    r"|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)",
    re.DOTALL,
)


def blank_text(text: str) -> str:
    """Return ``text`` with comments and literals blanked; every other character keeps its place."""
    return _TOKEN.sub(lambda match: match.group("number") or re.sub(r"[^\n]", " ", match.group()), text)


def _open_comment(text: str) -> int | None:
    """Return where a block comment starts that is never closed."""
    return next((m.start() for m in _TOKEN.finditer(text) if m.group("block") and not m.group("end")), None)


def _directive_findings(code: str) -> Iterator[tuple[int, str]]:
    for match in _DIRECTIVE.finditer(code):
        word, rest = match.groups()
        line = _line(code, match.start())
        if word in ("include", "import"):
            yield line, f"drop the #{word}: MLX includes Metal's standard library, and nothing else can be reached"
        elif word == "pragma" and not _ALLOWED_PRAGMA.match(rest):
            yield line, "only #pragma unroll, clang loop and clang fp are accepted: drop this one"
        elif word not in _ALLOWED_DIRECTIVES:
            yield line, f"#{word} is not accepted: drop it"


_BRACE_OR_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*|[{}]", re.MULTILINE)
_CLOSES_TOO_MUCH = "this '}' has no '{': in a source it would end the function that MLX writes around it; remove it"


def _brace_findings(code: str) -> Iterator[tuple[int, str]]:
    """Find braces that don't pair up within the text, within each branch of an #if, and within each #define.

    Were they counted over the whole text only, ``#define`` and ``#if 0`` could hide one half of a pair and let the rest
    close the generated function.
    """
    open_lines: list[list[int]] = [[]]
    for match in _BRACE_OR_DIRECTIVE.finditer(code):
        line, token, word = _line(code, match.start()), match.group(), match.group(1)
        if token == "{":
            open_lines[-1].append(line)
        elif token == "}":
            if not open_lines[-1]:
                yield line, _CLOSES_TOO_MUCH
            else:
                open_lines[-1].pop()
        elif word in ("if", "ifdef", "ifndef"):
            open_lines.append([])
        elif word in ("elif", "else", "endif"):
            if len(open_lines) == 1:
                yield line, f"this #{word} has no #if: remove it"
                continue
            if open_lines.pop():
                yield line, f"braces must pair up within each branch of an #if: close them before this #{word}"
            if word != "endif":
                open_lines.append([])
        elif not _pairs_up(token):
            yield line, "braces must pair up within a #define"
    if len(open_lines) > 1:
        yield _line(code, len(code)), "an #if is never closed: add its #endif"
    for line in open_lines[0]:
        yield line, "this '{' is never closed: add its '}'"


def _pairs_up(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0
