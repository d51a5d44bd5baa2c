"""The first wall for CUDA: device code that reaches for more than a kernel has is not compiled.

Behind it stand the same walls as behind that for Metal: nothing is linked with a kernel, the library is looked through
before it is loaded, and it runs locked in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile

from search.devices.base import KernelFault
from search.devices.simulator.screening import own_names
from search.devices.simulator.tokens import tokenize
from search.kernels.cuda_program import CudaLaunch, CudaProgram, StructValue, Value
from translator.reach import KEYWORDS, SPELLING_RULES, Reach, reaching_out

_C_LIBRARY = (
    "abort|calloc|connect|dlopen|dlsym|exec[lv]p?e?|_?exit|fopen|v?fork|fprintf|sn?printf|free|getenv|kill|longjmp|malloc|"
    "mmap|mprotect|popen|puts|raise|realloc|setenv|setjmp|signal|socket|syscall|system"
)
_COMPILERS_OWN = (
    r"__(?:builtin|sync|atomic|has|is|gnu|cxa|libc|dso|start|stop)_\w+"
    r"|__(?:attribute|declspec|extension|label|thread|auto_type|typeof|real|imag|volatile|FILE|BASE_FILE|FILE_NAME|COUNTER"
    r"|INCLUDE_LEVEL|DATE|TIME|TIMESTAMP)(?:__)?\b"
)
_CUB = (
    "(?:Block|Warp)(?:Reduce|Scan)|Sum|Max|Min|ArgMax|ArgMin|KeyValuePair|Block(?:Reduce|Scan)Algorithm"
    r"|BLOCK_(?:REDUCE|SCAN)_\w+"
)
_ATTRIBUTES = r"(?:maybe_unused|likely|unlikely|fallthrough|nodiscard|noreturn)\s*\]\s*\]"

CUDA = Reach(
    rules=(
        (r"\b(?:asm|__asm__|__asm)\b", "inline PTX is not run: use CUDA's intrinsics, or plain code"),
        (rf"\b(?:{_COMPILERS_OWN})", "'{0}' is the compiler's own, and no word of CUDA's: drop it"),
        (rf"\b(?:{_C_LIBRARY})\b(?=\s*\()", "'{0}' belongs to the C library: device code can't call it here"),
        (rf"\[\s*\[(?!\s*{_ATTRIBUTES})", "this attribute is not accepted: drop it"),
        (r"^[ \t]*(?:export\s+)?(?:import|module)\b", "a kernel can't import anything: drop this line"),
        (
            rf"^[ \t]*#[ \t]*define[ \t]+(?:{KEYWORDS}|__global__|__device__|__shared__|__constant__)\b",
            "a word of the language can't be defined anew: choose another name",
        ),
        (r"<<<", "a kernel that launches kernels is not run: launch them from the host"),
        (r"\b(?:wmma|nvcuda|mma_sync)\b", "'{0}' is refused: the simulator has no tensor cores of CUDA's"),
        (r"\b(?:thrust|cutlass|cute)\s*::", "'{0}' is refused: the simulator has no such library"),
        (
            rf"\bcub\s*::\s*(?!(?:{_CUB})\b)\w+",
            "'{0}' is refused: of CUB the simulator has reductions and scans over a block or a warp",
        ),
        (r"\btex(?:1D|2D|3D)\w*|\bsurf[123]D\w*", "'{0}' is refused: the simulator has no textures"),
        (
            r"\b(?:this_(?:grid|multi_grid|cluster)|(?:grid|cluster)_group)\b",
            "'{0}' is refused: blocks run one after another here and can't wait for each other; use two launches",
        ),
        (r"\bclock(?:64)?\s*\(\s*\)", "'{0}' is refused: the simulator has no clock"),
        *SPELLING_RULES,
    ),
    pragmas=r"\s*(?:unroll\b|nounroll\b|nv_\w+|once\b|diag_\w+)",
    only_pragmas="only #pragma unroll and CUDA's own are accepted: drop this one",
    includes=re.compile(r"\s*<[\w./+-]+>\s*"),
    only_includes="no other file is read, so put the device code that it brings into this one",
    closed=False,
)
"""What device code may have. Includes of libraries do nothing, so they may stay."""

_KERNEL = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_TEMPLATE_ARGUMENT = re.compile(r"[\w\s:<>,.*+\-/%&|!()^~=?]{1,200}")
_ARRAY = re.compile(r"[A-Za-z_]\w*")


def screen_cuda(program: CudaProgram) -> None:
    """Raise `KernelFault` (stage ``compile``) when the text or a name reaches outside of kernels."""
    for line, words in chain(reaching_out(program.text, CUDA), own_names(program.text), _externals(program.text)):
        raise KernelFault("compile", words, line=line)
    for array in program.arrays:
        if not _ARRAY.fullmatch(array.spec.name):
            raise KernelFault("compile", f"{array.spec.name[:60]!r} can't be the name of an array: choose a plain name")
    for launch in program.launches:
        _screen_launch(launch)


def _externals(text: str) -> Iterator[tuple[int, str]]:
    """Yield declarations of what is elsewhere: all ``extern`` but dynamic shared memory and names with C's linkage."""
    tokens = [token for token in tokenize(text) if not token.blank]
    for index, token in enumerate(tokens):
        if token.text != "extern":
            continue
        rest = list(islice(takewhile(lambda token: token.text not in (";", "{", "("), tokens[index + 1 :]), 12))
        if not (rest and rest[0].kind == "string") and "__shared__" not in [token.text for token in rest]:
            yield token.line, "nothing outside of the file can be declared: drop 'extern' and define it"


def _screen_launch(launch: CudaLaunch) -> None:
    if not _KERNEL.fullmatch(launch.kernel):
        raise KernelFault("compile", f"{launch.kernel[:60]!r} can't be the name of a kernel")
    for argument in (*launch.template, *_types(launch.arguments)):
        found = next(chain(reaching_out(argument, CUDA), own_names(argument)), None)
        if found or not _TEMPLATE_ARGUMENT.fullmatch(argument) or "//" in argument or "/*" in argument:
            words = f"{argument[:60]!r} can't be a template argument: write a type or a number"
            raise KernelFault("compile", words, pass_name=launch.kernel)


def _types(values: Iterable[Value]) -> Iterator[str]:
    """Yield the types that a launch names to make its arguments."""
    for value in values:
        if isinstance(value, StructValue):
            yield from [value.type] if value.type else []
            yield from _types(value.members)
