"""What would reach outside a kernel, read off its text: files, the compiler, the machine, the code written around it.

These rules hold for every kernel wherever it runs. `translator.metal_lint` adds those of the language to them, and the
simulator refuses what they find by itself. They work on text whose comments and literals are blanked, so they must see
exactly the comments and literals that the compiler sees: spellings that could make a difference are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from translator.metal_attributes import ATTRIBUTES
from translator.paired_braces import unpaired_braces

MOST_CHARACTERS = 256 << 10
"""The longest text that is read at all; the longest kernel that MLX has is a tenth of it."""

MOST_NESTING = 100
"""How deep brackets may nest: compilers recurse with them."""

_ENOUGH = 100  # a text may break a rule with every character that it has

_C_LIBRARY = (
    "abort|calloc|connect|dlopen|dlsym|exec[lv]p?e?|_?exit|fopen|v?fork|f?printf|free|getenv|kill|longjmp|malloc|mmap|"
    "mprotect|popen|puts|raise|realloc|setenv|setjmp|signal|socket|syscall|system"
)
KEYWORDS = (
    "alignas|auto|bool|break|case|char|class|const|constexpr|continue|decltype|default|do|else|enum|false|float|for|if|"
    "inline|int|long|namespace|operator|return|short|signed|sizeof|static|struct|switch|template|this|true|typedef|"
    "typename|union|unsigned|using|void|volatile|while"
)
_METALS_OWN = (
    rf"(?:maybe_unused|likely|unlikely|fallthrough|kernel|host_name|max_total_threads_per_threadgroup|buffer|"
    rf"threadgroup|function_constant|"
    rf"{'|'.join(ATTRIBUTES)})\s*(?:\(\s*(?:\w+|\"\s*\")?\s*\)\s*)?\]\s*\]"
)

# Words with two underscores that ask a compiler no more than what is true of a type, or what it can do; the others are
# names that MLX's own headers have: of types (`__Add`), and of macros' parameters (`__op__`).
_HARMLESS = (
    r"METAL_(?:\w+_)?_\b|HAVE_\w+|VA_ARGS__|restrict(?:__)?\b|U?INT(?:8|16|32|64)_MAX__\b|cpp_\w+|"
    r"is_(?:empty|same|enum|class|union|base_of|trivially_copyable)\b|[A-Z][a-z]\w*|(?:op|operator)__\b"
)

# Each rule: what it looks like in code (comments and literals blanked), and what to do.
SPELLING_RULES: tuple[tuple[str, str], ...] = (
    (r"##", "'##' can build any word: write the word itself"),
    (r"<%|%>|<:|:>|%:", "write brackets, braces and '#' themselves, not their digraphs"),
    (r"\?\?[=/'()!<>-]", "write the character itself, not its trigraph"),
    (r"[\w#/*]\\\r?\n(?=[\w#/*])", "a line that ends in a backslash splits a word: write the word on one line"),
    (r"\\(?!\r?\n)", "a backslash can only stand at the end of a line of a macro"),
    (r"\\\r?\n?\s*\Z", "the text can't end in a backslash: it would join the line that follows"),
)
"""What no language needs here, and what could hide a part of a text from the other rules."""

_METALS_RULES: tuple[tuple[str, str], ...] = (
    (r"\bextern\b", "nothing outside the kernel can be declared: drop 'extern' and define it in the header"),
    (r"\basm\b", "no assembly is accepted: use Metal's own functions"),
    (
        rf"\b__(?!{_HARMLESS})\w+",
        "'{0}' is the compiler's own: use Metal's functions and plain declarations",
    ),
    (r"(?<![\w>])::\s*(?!metal\b)(?=\w)", "only names of metal:: can be reached from a kernel: drop the leading '::'"),
    (
        rf"\b(?:{_C_LIBRARY})\b(?=\s*\()",
        "'{0}' belongs to the C library, which a GPU does not have: drop the call",
    ),
    (rf"\[\s*\[(?!\s*{_METALS_OWN})", "this attribute is not accepted: only Metal's own are"),
    (r"\b(?:gnu|_Clang)\b|\bclang\b(?=\s*::)", "'{0}' names attributes of a compiler: none is accepted"),
    (r"^[ \t]*(?:export\s+)?(?:import|module)\b", "a kernel can't import anything: drop this line"),
    (
        rf"^[ \t]*#[ \t]*define[ \t]+(?:{KEYWORDS})\b",
        "a word of the language can't be defined anew: choose another name",
    ),
)

_NOT_PRINTABLE = re.compile(r"[^ -~\t\r\n]|\r(?!\n)")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)([^\n]*)", re.MULTILINE)
_ALLOWED_DIRECTIVES = ("define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma", "error")
_PRAGMA = r"\s*(?:unroll\b|nounroll\b|unused\b|once\b|clang\s+(?:loop|fp)\b|METAL\b)"
_ONLY_PRAGMAS = "only #pragma unroll, unused, clang loop and clang fp are accepted: drop this one"
METAL_LIBRARY = re.compile(r"\s*<(?:metal_\w+|simd/simd\.h)>\s*")


@dataclass(frozen=True)
class Reach:
    """What a language lets a kernel's text have.

    ``rules`` pair a pattern of code with what to do; ``pragmas`` and ``includes`` are patterns of what may follow those
    words. ``closed``: braces pair up everywhere, as the text stands inside of a function.
    """

    rules: tuple[tuple[str, str], ...]
    pragmas: str
    only_pragmas: str
    includes: re.Pattern[str]
    only_includes: str
    closed: bool


METAL = Reach(
    (*_METALS_RULES, *SPELLING_RULES),
    _PRAGMA,
    _ONLY_PRAGMAS,
    METAL_LIBRARY,
    "MLX includes Metal's standard library, and nothing else can be reached",
    closed=True,
)


def reaching_out(text: str, reach: Reach = METAL) -> Iterator[tuple[int, str]]:
    """Yield what of ``text`` (the source or the header of a kernel) reaches outside: its line from 1, and what to do.

    A text that is too long, or that hides part of itself from these rules, yields that alone; any yields at most 100.
    """
    hiding = list(islice(_hiding(text), _ENOUGH))
    if hiding:
        yield from hiding
        return
    code = blank_text(text)
    findings = chain(
        _word_findings(code, reach),
        _pragma_findings(code, text, reach),
        _directive_findings(code, reach),
        unpaired_braces(code) if reach.closed else (),
        _nesting_findings(code),
    )
    yield from islice(findings, _ENOUGH)


_DECLTYPE = re.compile(r"\b(decltype\s*\([\w\s.]*)\)")


def _word_findings(code: str, reach: Reach) -> Iterator[tuple[int, str]]:
    code = _DECLTYPE.sub(r"\1>", code)  # a type's name ends here, and what follows '::' is its own
    for pattern, message in reach.rules:
        for match in re.finditer(pattern, code, re.MULTILINE):
            yield line_of(code, match.start()), message.format(match.group())


def _pragma_findings(code: str, text: str, reach: Reach) -> Iterator[tuple[int, str]]:
    allowed = re.compile(rf'_Pragma\s*\(\s*"{reach.pragmas}[^"\\\n]*"\s*\)')
    for match in re.finditer(r"\b_Pragma\b", code):
        if not allowed.match(text, match.start()):
            yield line_of(code, match.start()), reach.only_pragmas


def _hiding(text: str) -> Iterator[tuple[int, str]]:
    if len(text) > MOST_CHARACTERS:
        yield 1, f"the text has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read: make it shorter"
        return
    for match in _NOT_PRINTABLE.finditer(plain_comments(text)):
        code_point = f"U+{ord(match.group()):04X}"
        yield line_of(text, match.start()), f"{code_point} can't stand in MLX's sources: spell it in ASCII"
    for match in _TOKEN.finditer(text):
        if match["raw"]:
            yield line_of(text, match.start()), "raw string literals are not accepted: drop it"
            return
        if match["block"] and not match["end"]:
            yield line_of(text, match.start()), "this comment is never closed: end it with '*/'"


def line_of(text: str, at: int) -> int:
    """Return the line, from 1, of the character ``at``."""
    return text.count("\n", 0, at) + 1


_TOKEN = re.compile(
    r"(?P<number>(?<!\w)\.?\d(?:'\w|[eEpP][+-]|[\w.])*)"  # the quotes in 1'000 open no literal
    r"|//(?:\\\r?\n|[^\n])*"  # a line comment, with the lines that a backslash adds to it
    r"|(?P<block>/\*.*?(?:(?P<end>\*/)|\Z))"
    r'|(?P<raw>(?<!\w)(?:u8|[uUL])?R")'
    r'|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)'
    r"|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)",
    re.DOTALL,
)


def blank_text(text: str) -> str:
    """Return ``text`` with comments and literals blanked; every other character keeps its place."""
    return _TOKEN.sub(lambda match: match["number"] or match["raw"] or re.sub(r"[^\n]", " ", match.group()), text)


def plain_comments(text: str) -> str:
    """Return ``text`` with each letter or sign beyond ASCII in its comments as a ``_``: MLX hands Metal ASCII alone."""
    return _TOKEN.sub(
        lambda match: _plain(match.group()) if match.group().startswith(("//", "/*")) else match.group(), text
    )


def _plain(comment: str) -> str:
    return "".join("_" if letter.isprintable() and not letter.isascii() else letter for letter in comment)


def _directive_findings(code: str, reach: Reach) -> Iterator[tuple[int, str]]:
    for match in _DIRECTIVE.finditer(code):
        word, rest = match.groups()
        line = line_of(code, match.start())
        if word in ("include", "import"):
            if not reach.includes.fullmatch(rest):
                yield line, f"drop the #{word}: {reach.only_includes}"
        elif word == "pragma" and not re.match(reach.pragmas, rest):
            yield line, reach.only_pragmas
        elif word not in _ALLOWED_DIRECTIVES:
            yield line, f"#{word} is not accepted: drop it"


def _nesting_findings(code: str) -> Iterator[tuple[int, str]]:
    depth = 0
    for match in re.finditer(r"[(\[{}\])]", code):
        depth += 1 if match.group() in "([{" else -1
        if depth > MOST_NESTING:
            yield line_of(code, match.start()), f"brackets nest more than {MOST_NESTING} deep: write it in steps"
            return
