"""Counting arithmetic in assembly text, for both processors."""

from __future__ import annotations

import re

from search.devices.simulator.assembly import KINDS, instrument

X86 = """
ksr_kernel:
	call	__sanitizer_cov_trace_pc@PLT
	vmulss	%xmm1, %xmm0, %xmm0
	vfmadd213ss	%xmm2, %xmm1, %xmm0
	vaddps	%ymm1, %ymm0, %ymm0
	.Lksr_exp2_17:
	je	.L3
	call	__sanitizer_cov_trace_pc
	vdivss	%xmm1, %xmm0, %xmm0
	vsqrtss	%xmm1, %xmm0, %xmm0
	addq	$8, %rsp
	jmp	.L5
.L3:
	vaddss	%xmm1, %xmm0, %xmm0
	call	__sanitizer_cov_trace_pc@PLT
	vmulss	%xmm1, %xmm0, %xmm0
	jne	.L3
	vsubss	%xmm1, %xmm0, %xmm0
.L5:
	jmp	__sanitizer_cov_trace_pc@PLT
_ZN3ksr6reduceIfNS_3addIfEELj32EEEvP13ksr_simdgroupj:
	call	__sanitizer_cov_trace_pc@PLT
	vaddss	%xmm1, %xmm0, %xmm0
"""

ARM = """
ksr_kernel:
	adrp	x1, thing
	bl	__sanitizer_cov_trace_pc
	fmul	s0, s0, s1
	fmadd	s0, s0, s1, s2
	fadd	v0.4s, v0.4s, v1.4s
	fmla	v0.4s, v1.4s, v2.4s
	fdiv	s0, s1, s2
	fsqrt	s0, s0
"""


def weights(text: str) -> list[dict[str, int]]:
    """The nonzero weights of each block, from the table in instrumented ``text``."""
    rows = re.findall(r"\.long\t([\d, ]+,[\d, ]+)", text)
    numbers = [[int(number) for number in row.split(",")] for row in rows]
    return [{kind: n for kind, n in zip(KINDS, row, strict=False) if n} for row in numbers]


def test_each_block_of_x86_is_weighed_by_its_own_instructions():
    text = instrument(X86)
    assert weights(text) == [
        {"flop": 1 + 2 + 8, "exp2": 1},
        {"flop": 1, "divide": 1, "sqrt": 1},
        {"flop": 1 + 1 + 1},  # before its call, after it, and what follows without a call
        {},
        {},  # a simdgroup reduction counts as one, not by its additions
    ]
    assert "sanitizer" not in text
    assert text.count("incq") == 5
    assert "incq\t.Lksr_counts+24(%rip)\n\tret" in text


def test_each_block_of_arm64_is_weighed_by_its_own_instructions():
    text = instrument(ARM)
    assert weights(text) == [{"flop": 1 + 2 + 4 + 8 + 1, "divide": 1, "sqrt": 1}]
    assert "adrp\tx16, .Lksr_counts+0" in text
