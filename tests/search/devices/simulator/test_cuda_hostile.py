"""CUDA files that mean harm: each is stopped with a clear message, and by the walls behind the first one as well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from search.devices.simulator import cuda_device
from search.kernels.cuda_program import StructValue

ESCAPED = Path("/tmp/ksearch-escaped-cuda")
OUT = {"out": (4, "float32")}
BODY = "__global__ void k(float* out) { out[0] = 1; }"


def kernel(line):
    return f"__global__ void k(float* out) {{\n{line}\nout[0] = 1;\n}}"


HOSTILE = {
    "assembly": (kernel('asm volatile("syscall");'), 2, "inline PTX is not run"),
    "assembly in other words": (kernel('__asm__("int3");'), 2, "inline PTX is not run"),
    "assembly at the top": ('asm(".globl main");\n' + BODY, 1, "inline PTX is not run"),
    "a call of the system": (kernel('system("touch /tmp/ksearch-escaped-cuda");'), 2, "belongs to the C library"),
    "memory of the host": (kernel("void* p = malloc(1 << 30);"), 2, "belongs to the C library"),
    "a builtin": (kernel("__builtin_return_address(0);"), 2, "'__builtin_return_address' is the compiler's own"),
    "a constructor": (
        "__attribute__((constructor)) static void first() { volatile int n = 1; }\n" + BODY,
        1,
        "'__attribute__' is the compiler's own",
    ),
    "an attribute": ("[[gnu::constructor]] static void first() {}\n" + BODY, 1, "this attribute is not accepted"),
    "a function of elsewhere": ("extern int other(const char*);\n" + BODY, 1, "drop 'extern'"),
    "a file of the machine": ('#include "/etc/passwd"\n' + BODY, 1, "no other file is read"),
    "a file by a macro": ("#define F </etc/passwd>\n#include F\n" + BODY, 2, "no other file is read"),
    "a file embedded": (kernel('#embed "/etc/passwd"'), 2, "#embed is not accepted"),
    "whether a file is there": ('#if __has_include("/etc/shadow")\n#endif\n' + BODY, 1, "'__has_include' is the"),
    "other lines": ('#line 1 "/etc/passwd"\n' + BODY, 1, "#line is not accepted"),
    "a word in pieces": ("#define GLUE(a, b) a##b\n" + BODY, 1, "'##' can build any word"),
    "a word over two lines": (kernel("as\\\nm(\"nop\");"), 2, "splits a word"),
    "a word of the language": ("#define if while\n" + BODY, 1, "can't be defined anew"),
    "a qualifier defined anew": ("#define __global__ static\n" + BODY, 1, "can't be defined anew"),
    "the simulator's own names": (kernel("ksr_here()->runtime = 0;"), 2, "reserved for the simulator"),
    "the entry of the simulator": ('extern "C" void ksr_kernel() {}\n' + BODY, 1, "reserved for the simulator"),
    "a raw literal": (kernel('const char* s = R"(")";'), 2, "raw string literals"),
    "a pragma": ("#pragma GCC poison float\n" + BODY, 1, "only #pragma unroll"),
    "a digraph": ("%:include </etc/passwd>\n" + BODY, 1, "digraphs"),
    "much nesting": (kernel("out[0] = " + "(" * 200 + "1" + ")" * 200 + ";"), 2, "nest more than"),
    "signs that nobody sees": (kernel("int \u200bx;"), 2, "U+200B"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left():
    ESCAPED.unlink(missing_ok=True)
    yield
    assert not ESCAPED.exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_reaches_outside_is_refused_at_its_line(cuda, name):
    text, line, says = HOSTILE[name]
    fault = cuda.fault(text, cuda.launch("k", 1, 1, "out"), outputs=OUT)
    assert (fault.stage, fault.line) == ("compile", line)
    assert says in fault.message


@pytest.mark.parametrize(
    ("name", "stage"),
    [("a call of the system", "compile"), ("a constructor", "compile"), ("a function of elsewhere", "")],
)
def test_the_walls_behind_hold_when_the_screening_is_left_out(cuda, monkeypatch, name, stage):
    monkeypatch.setattr(cuda_device, "screen_cuda", lambda program: None)
    launch = cuda.launch("k", 1, 1, "out")
    if stage:
        assert cuda.fault(HOSTILE[name][0], launch, outputs=OUT).stage == stage
    else:  # declared and not called: there is nothing to stop
        assert cuda.run(HOSTILE[name][0], launch, outputs=OUT)["out"][0] == 1


def test_a_system_call_made_by_hand_ends_the_process(cuda, monkeypatch):
    monkeypatch.setattr(cuda_device, "screen_cuda", lambda program: None)
    text = kernel('asm volatile("syscall" : : "a"(39) : "rcx", "r11", "memory");')
    fault = cuda.fault(text, cuda.launch("k", 1, 1, "out"), outputs=OUT)
    assert fault.stage == "sandbox"


@pytest.mark.parametrize(
    ("kernel_name", "template"),
    [("k<1>(0), system", ()), ("k", ("1>(out); } void f() {",)), ("k", ("__builtin_trap()",)), ("k", ("1 /* x",))],
)
def test_names_and_template_arguments_are_no_code(cuda, kernel_name, template):
    fault = cuda.fault(BODY, cuda.launch(kernel_name, 1, 1, "out", template=template), outputs=OUT)
    assert (fault.stage, "can't be" in fault.message) == ("compile", True)


def test_the_type_of_an_argument_is_no_code(cuda):
    launch = cuda.launch("k", 1, 1, "out")
    harmful = replace(launch, arguments=(*launch.arguments, StructValue((StructValue((), "F{}; } void f() {"),))))
    fault = cuda.fault(BODY, harmful, outputs=OUT)
    assert (fault.stage, "can't be" in fault.message) == ("compile", True)


def test_a_template_that_never_ends_ends_the_compilation(cuda):
    text = "template <int N> struct Endless { static constexpr int v = Endless<N + 1>::v; };\n" + kernel(
        "out[1] = Endless<0>::v;"
    )
    assert cuda.fault(text, cuda.launch("k", 1, 1, "out"), outputs=OUT).stage == "compile"
