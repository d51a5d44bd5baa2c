"""Kernels that Apple's compiler takes break no rule of the lint: those of mlx-lm, and the headers that MLX ships."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import mlx
import pytest

from translator.metal_lint import Surroundings, lint

# In a process of its own, so that what it makes mlx-lm believe stays there.
CAPTURE = """
import importlib, json, pkgutil
import mlx.core as mx
kernels = []
real = mx.fast.metal_kernel
def capture(**made):
    kernels.append({key: made.get(key) or "" for key in ("name", "source", "header", "input_names", "output_names")})
    return real(**made)
mx.fast.metal_kernel = capture
mx.metal.is_available = lambda: True
import mlx_lm.kernels
for module in pkgutil.iter_modules(mlx_lm.kernels.__path__):
    importlib.import_module(f"mlx_lm.kernels.{module.name}")
for module in ("models.rwkv7", "models.gated_delta", "models.ssm", "models.deepseek_v41", "tuner.losses"):
    importlib.import_module(f"mlx_lm.{module}")
print(json.dumps(kernels))
"""

METAL = Path(next(iter(mlx.__path__))) / "include" / "mlx" / "backend" / "metal" / "kernels"


def test_the_kernels_of_mlx_lm_have_no_findings():
    done = subprocess.run([sys.executable, "-c", CAPTURE], capture_output=True, text=True, timeout=120, check=True)
    kernels = json.loads(done.stdout.splitlines()[-1])
    assert len(kernels) >= 15
    for kernel in kernels:
        around = Surroundings(tuple(kernel["input_names"]), tuple(kernel["output_names"]))
        assert lint(kernel["source"], kernel["header"], around) == [], kernel["name"]


def as_a_header(text: str) -> str:
    """Return a file of MLX as what a person could pass as a header: no other files, no macros that join words."""
    text = re.sub(r"[^\x00-\x7f]|\[\[[^\[\]]*function_constant\([^)]*\)[^\[\]]*\]\]", "", text)
    text = re.sub(r"(?m)^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*", "", text)
    return re.sub(r'(?m)^[ \t]*#[ \t]*(?:include "|pragma once)[^\n]*', "", text)


@pytest.mark.skipif(not METAL.is_dir(), reason="this build of MLX ships no Metal headers")
def test_the_functions_of_mlx_have_no_findings_of_structure():
    # Whole kernels stand in these files: their threadgroup memory is in the right place there.
    read = 0
    for path in METAL.rglob("*.h"):
        found = lint("y[0] = thread_index_in_simdgroup;", as_a_header(path.read_text(encoding="utf-8")))
        rules = {f.rule for f in found if f.severity == "error"}
        assert rules <= {"reaches-outside", "threadgroup-in-function"}, path.name
        read += "reaches-outside" not in rules
    assert read > 65
