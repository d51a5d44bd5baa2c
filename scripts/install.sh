#!/usr/bin/env bash
# Makes the virtual environment $1 with ksearch-tui, its development tools and the MLX back end for this machine.
set -euo pipefail
venv=${1:?usage: install.sh VENV}
python=${PYTHON:-python3}

"$python" - <<'PY' || { echo "ksearch-tui needs Python 3.11 or newer; set PYTHON=/path/to/one" >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

extras=dev
if [ "$(uname -s)" != Darwin ]; then
  # MLX on Linux has no back end of its own, and the two share a library file: exactly one of them.
  if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then extras=dev,cuda; else extras=dev,cpu; fi
fi
# The simulator compiles kernels; without a C++ compiler on the path, Zig's package brings one.
if [ -z "${CXX:-}" ] && ! command -v clang++ >/dev/null 2>&1 && ! command -v g++ >/dev/null 2>&1; then
  extras=$extras,simulator
fi

if command -v uv >/dev/null 2>&1; then
  [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
  uv pip install --quiet --python "$venv/bin/python" -e ".[$extras]"
else
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --upgrade pip
  "$venv/bin/python" -m pip install --quiet -e ".[$extras]"
fi
