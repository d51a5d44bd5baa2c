"""What a kernel can do wrong, and what is said about it."""

from __future__ import annotations

import platform
import time

import numpy as np
import pytest

from search.kernels.dtypes import DTYPES
from search.kernels.program import ArraySpec, BoundPass, BoundProgram

X = {"x": np.arange(64, dtype=np.float32)}
LAUNCH = {"inputs": X, "outputs": {"out": ((64,), "float32")}, "grid": 64, "threadgroup": 64}
I = "uint i = thread_position_in_grid.x;\n"  # noqa: E741


@pytest.mark.parametrize(
    ("source", "header", "line", "in_header", "says"),
    [
        (I + "\nout[i] = y;", "", 3, False, "'y' was not declared|undeclared identifier 'y'"),
        (
            I + "out[i] = f(1);",
            "float f(float v) {\n  return v + w;\n}",
            2,
            True,
            "'w' was not declared|undeclared identifier 'w'",
        ),
        (I + "out[i] = max(x[i], 1);", "", 2, False, "ambiguous"),
        (I + "float4 v = x[i];\nout[i] = v.xyz + 1;", "", 3, False, "cannot convert|incompatible type"),
        (I + "float2 v = x[i];\n\nout[i] = dot(v.xz, v);", "", 4, False, "the vector has no such component"),
        (I + "out[i] = 1", "", 2, False, "expected ';'"),
        (I + "if (i) {\n  out[i] = 1;\n", "", 2, False, "this '{' is never closed"),
        (I + "}\nvoid f() {", "", 2, False, "this '}' has no '{'"),
        (I + "#include <stdio.h>\nout[i] = 1;", "", 2, False, "drop the #include"),
        (I + "out[i] = 1;", "\n#include <unistd.h>\n", 2, True, "drop the #include"),
        (I + 'out[i] = 1; asm("nop");', "", 2, False, "no assembly is accepted"),
        (I + "static float t[4] = {0};", "", 2, False, "would keep its value"),
        (
            I + "out[i] = 1;",
            "float f() {\n  threadgroup float t[4];\n  return t[0]; }",
            2,
            True,
            "in the kernel's body",
        ),
        (
            I + "float a[20000]; for (int k = 0; k < 20000; ++k) a[k] = x[k % 64] * k;\nout[i] = a[i];",
            "",
            1,
            False,
            "48 KiB",
        ),
    ],
)
def test_a_compile_error_names_the_kernels_own_line(bench, source, header, line, in_header, says):
    fault = bench.fault(source, header=header, **LAUNCH)
    assert fault.stage == "compile"
    assert fault.pass_name == "kernel"
    assert any(words in fault.message for words in says.split("|"))
    assert "ksr" not in fault.message
    if line > 1:
        assert (fault.line, fault.in_header) == (line, in_header)


def test_includes_of_metals_own_library_are_allowed(bench):
    header = "#include <metal_stdlib>\n#include <metal_simdgroup>\nusing namespace metal;"
    out = bench.run(I + "out[i] = x[i];", header=header, **LAUNCH)["out"]
    np.testing.assert_array_equal(out, X["x"])


def test_an_endless_loop_ends_at_the_time_limit(bench):
    begin = time.monotonic()
    fault = bench.fault(I + "while (true) { if (x[0] == 1.0f) break; }\nout[i] = 1;", seconds=0.5, **LAUNCH)
    assert (fault.stage, fault.pass_name) == ("timeout", "kernel")
    assert "never ends" in fault.message
    assert time.monotonic() - begin < 5


def test_the_pass_that_hangs_is_named(bench):
    spec = (ArraySpec("out", (64,), DTYPES["float32"]),)
    fine = BoundPass("fine", (), spec, I + "out[i] = 1;", "", (64, 1, 1), (64, 1, 1), ())
    stuck = BoundPass("stuck", (), spec, "for (;;) {}", "", (64, 1, 1), (64, 1, 1), ())
    with pytest.raises(Exception, match=r"pass 'stuck' was still running after 0\.5 s") as caught:
        bench.device.run(BoundProgram((fine, stuck), ("out",)), {}, time_limit=0.5)
    assert caught.value.pass_name == "stuck"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("out[i] = x[i + 100000000];", "reads 'x' at element 100000000; it has 64 (64)"),
        ("out[i] = x[int(i) - 100000];", "reads 'x' at element -100000; it has 64 (64)"),
        ("out[i * 1000000 + 1000000] = 1;", "writes 'out' at element 1000000; it has 64 (64)"),
        ("((device float*)x)[i + 3] = 1; out[i] = 1;", "writes to the input 'x' (element 3), which is read-only"),
        ("device float* p = out; p -= (1l << 45); out[i] = *p;", "far outside of every array"),
    ],
)
def test_an_index_far_outside_is_named_with_its_array(bench, body, says):
    fault = bench.fault(I + body, **LAUNCH)
    assert fault.stage == "bounds"
    # Reads and writes are told apart where the processor says which it was.
    assert says.replace("reads ", "").replace("writes ", "") in fault.message.replace("reads ", "").replace(
        "writes ", ""
    ).replace("touches ", "")


def test_writing_just_outside_an_output_is_reported_with_its_name(bench):
    for body in ("out[i + 1] = 1;", "out[int(i) - 1] = 1;", "other[i + 4000] = 1; out[i] = 1;"):
        program = bench.bind(
            I + body,
            outputs={"out": ((64,), "float32"), "other": ((64,), "float32")},
            grid=64,
            threadgroup=64,
        )
        overruns = bench.device.run(program, {}, time_limit=20).overruns
        assert overruns == (("other",) if "other" in body else ("out",))


def test_going_past_threadgroup_memory_is_reported(bench):
    for body in ("t[i + 16] = 1;", "t[i + 1] = 1;", "t[i * 100000] = 1;"):
        fault = bench.fault(I + "threadgroup float t[64];" + body + "out[i] = t[0];", **LAUNCH)
        assert fault.stage == "bounds"
        assert "past its threadgroup memory" in fault.message


def test_more_threadgroup_memory_than_the_profile_allows_is_refused_with_the_lines_that_declare_it(bench):
    body = """uint i = thread_position_in_grid.x;
threadgroup float4 t[{size}];
threadgroup half u[8];  // 16 bytes
t[i] = x[i]; u[i % 8] = 0; out[i] = t[i].x;
"""
    launch = {**LAUNCH, "grid": 8, "threadgroup": 8}
    bench.run(body.format(size=2047), **launch)
    fits = bench.device.check(bench.bind(body.format(size=2047), **launch), launch["inputs"], time_limit=20)
    assert not [report for report in fits.reports if report.stage == "memory"]
    fault = bench.fault(body.format(size=2048), **launch)
    assert (fault.stage, fault.pass_name, fault.line) == ("memory", "kernel", 2)
    words = "32784 bytes of threadgroup memory are declared ('t' in line 2, 'u' in line 3); the limit is 32768"
    assert fault.message == words
    checked = bench.device.check(bench.bind(body.format(size=2048), **launch), launch["inputs"], time_limit=20)
    assert [(report.stage, report.message, report.line) for report in checked.reports] == [("memory", words, 2)]


@pytest.mark.parametrize("kept", ["", "threadgroup float u[32]; u[i] = x[i]; out[i] = u[i];"])
def test_threadgroup_memory_in_a_branch_that_is_left_out_counts_for_nothing(bench, kept):
    body = f"""uint i = thread_position_in_grid.x;
out[i] = x[i];
if constexpr (threads < 32) {{
  threadgroup float t[9000];
  t[i] = x[i];
  out[i] = t[i];
}}
{kept}"""
    launch = {**LAUNCH, "grid": 32, "threadgroup": 32, "template": {"threads": 32}}
    bench.run(body, **launch)
    checked = bench.device.check(bench.bind(body, **launch), launch["inputs"], time_limit=20)
    assert checked.reports == ()


def test_threads_that_return_before_a_barrier_are_reported(bench):
    fault = bench.fault(
        I + "if (i >= 40) return;\n\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = 1;", **LAUNCH
    )
    assert (fault.stage, fault.line, fault.in_header) == ("divergence", 4, False)
    assert "40 threads wait" in fault.message and "24 returned" in fault.message and "thread 40" in fault.message


def test_threads_at_two_different_barriers_are_reported(bench):
    header = "void wait() {\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}"
    fault = bench.fault(
        I + "if (i < 32) wait(); else\n threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = 1;",
        header=header,
        **LAUNCH,
    )
    assert fault.stage == "divergence"
    assert "line 2 of the header" in fault.message and "in line 3" in fault.message


def test_threads_may_return_when_no_barrier_follows(bench):
    source = I + "threadgroup_barrier(mem_flags::mem_device); out[i] = 0; if (i % 3) return; out[i] = simd_sum(1);"
    out = bench.run(source, **LAUNCH)["out"]
    np.testing.assert_array_equal(out, np.where(np.arange(64) % 3 == 0, np.where(np.arange(64) < 32, 11, 11), 0))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="arm64 divides by zero without a fault")
def test_dividing_an_integer_by_zero_is_a_crash(bench):
    fault = bench.fault(I + "out[i] = int(i) / int(x[0]);", **LAUNCH)
    assert (fault.stage, fault.message) == ("crash", "an integer was divided by zero")


def test_recursion_without_end_is_a_crash(bench):
    header = "float f(int n) { volatile float a[9]; a[n % 9] = n; return n < 0 ? 0.0f : f(n + 1) + a[0]; }"
    fault = bench.fault(I + "out[i] = f(i);", header=header, **LAUNCH)
    assert fault.stage == "crash"
    assert "private memory" in fault.message


@pytest.mark.parametrize(
    ("header", "body", "says"),
    [
        ('extern "C" int system(const char*);', "out[i] = 1;", "drop 'extern'"),
        ("void ksr_block(int) {}", "out[i] = 1;", "'ksr_block' is reserved"),
        ("float f(float);", "out[i] = f(0);", "'f(float)' is declared but defined nowhere"),
        ("void __tsan_read4(void*) {}", "out[i] = 1;", "'__tsan_read4' is the compiler's own"),
        ("#define ksr_here nothing", "out[i] = 1;", "'ksr_here' is reserved"),
    ],
)
def test_names_that_reach_outside_are_refused(bench, header, body, says):
    fault = bench.fault(I + body, header=header, **LAUNCH)
    assert fault.stage == "compile"
    assert says in fault.message


def test_a_kernel_that_defines_library_functions_harms_only_itself(bench):
    out = bench.run(I + "out[i] = exp(x[0]) + expf(1);", header="float expf(float) { return 7; }", **LAUNCH)["out"]
    np.testing.assert_array_equal(out, [8.0] * 64)


def test_inputs_stay_as_they_were(bench):
    x = np.arange(64, dtype=np.float32)
    bench.run(I + "out[i] = x[i] * 2;", **{**LAUNCH, "inputs": {"x": x}})
    np.testing.assert_array_equal(x, np.arange(64))
