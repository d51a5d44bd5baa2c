"""Does the simulator read CUDA as an NVIDIA GPU does? The CUDA files of the tests on both, on the same inputs.

Three steps, because a GPU machine may have neither this package nor a network:

    python benchmarks/originals_on_gpu.py pack FOLDER      here: run the originals on the simulator, keep what they gave
    python benchmarks/originals_on_gpu.py run FOLDER       there (nvcc and numpy): run them on the GPU and compare
    python benchmarks/originals_on_gpu.py record FOLDER    here: keep the comparison beside this script
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
SIZES = 3
SHARE = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3.2e-2, "float64": 1e-12}
"""How far the GPU's result may be off, relative to an element and to the root mean square of its array: its fast
functions are other approximations, and its atomics come in another order."""

_HEADERS = ("cassert", "cfloat", "climits", "cmath", "cstdint", "cstdio", "cstdlib", "cuda_fp16.h", "cuda_bf16.h",
            "cooperative_groups.h", "cooperative_groups/reduce.h", "cub/cub.cuh", "cuda/functional")  # fmt: skip

_NAMES_OF_OLD = """
#if CUB_VERSION >= 300000  // CUDA 13 has them by other names only
namespace cub { using Sum = cuda::std::plus<>; using Max = cuda::maximum<>; using Min = cuda::minimum<>; }
#endif
"""

_HARNESS = """
struct AnyPointer {{
    char* at;
    template <class T> operator T*() const {{ return reinterpret_cast<T*>(at); }}
}};

static void check(cudaError_t error) {{
    if (error != cudaSuccess) {{ std::fprintf(stderr, "%s\\n", cudaGetErrorString(error)); std::exit(1); }}
}}

static char* load(const char* path, size_t bytes) {{
    void* host = std::malloc(bytes);
    FILE* file = std::fopen(path, "rb");
    if (!file || std::fread(host, 1, bytes, file) != bytes) std::exit(2);
    std::fclose(file);
    char* device;
    check(cudaMalloc(&device, bytes));
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    std::free(host);
    return device;
}}

static void save(const char* path, const char* device, size_t bytes) {{
    void* host = std::malloc(bytes);
    check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    FILE* file = std::fopen(path, "wb");
    std::fwrite(host, 1, bytes, file);
    std::fclose(file);
}}

int main() {{
{body}
    return 0;
}}
"""


def pack(folder: Path) -> None:
    """Run what the simulator can run; write for each trial a CUDA program, its inputs and the simulator's results."""
    from search.devices.simulator.cuda_device import CudaSimulator
    from search.evaluation.proof import draw_inputs
    from search.evaluation.trial_sizes import NoSizes, trial_sizes
    from translator.cuda_source import parse_cuda
    from translator.device_text import device_text
    from translator.launches import read_launches

    simulator = CudaSimulator(workers=1)
    for path in sorted((*CORPUS.glob("cuda/*.cu"), *CORPUS.glob("odd/*.cu"))):
        source = parse_cuda(path.read_text(encoding="utf-8"), path.name)
        plan = read_launches(source)
        if plan.questions:
            print(f"{path.stem}: left out, {plan.questions[0].message}")
            continue
        try:
            chosen = trial_sizes(plan, SIZES)
        except NoSizes as error:
            print(f"{path.stem}: left out, {error}")
            continue
        for number, axes in enumerate(chosen):
            program, inputs, _ = draw_inputs(plan, device_text(source), axes, seed=number)
            try:
                result = simulator.check(program, inputs, time_limit=60.0)
            except Exception as error:  # a kernel that the simulator refuses is told, and left out
                print(f"{path.stem}: left out, {error}")
                break
            if wrong := next((report for report in result.reports if report.certain), None):
                print(f"{path.stem}: left out, its result is not defined: {wrong.message}")
                break
            _write_trial(folder / f"{path.stem}-{number}", source.text, plan, program, inputs, dict(result.outputs))


def _write_trial(folder: Path, text: str, plan: Any, program: Any, inputs: Any, outputs: Any) -> None:
    from search.devices.simulator.job import POISON
    from translator.cuda_source import parse_cuda
    from translator.device_text import device_text

    folder.mkdir(parents=True, exist_ok=True)
    code = device_text(parse_cuda(text, ""))
    # A plan has a kernel's bare name.
    body = [f"    using namespace {name};" for name in re.findall(r"\bnamespace\s+(\w+)\s*\{", code)]
    arrays = []
    for array in program.arrays:
        spec = array.spec
        content = inputs.get(spec.name)
        if content is None:
            content = np.zeros(spec.shape, spec.dtype.storage)
            if not array.zeroed:
                words = np.full(content.nbytes // 2 + 1, POISON, np.uint16)
                content = np.frombuffer(words.tobytes()[: content.nbytes], content.dtype)
        (folder / f"{spec.name}.in").write_bytes(np.ascontiguousarray(content).tobytes())
        if spec.name in outputs:
            (folder / f"{spec.name}.want").write_bytes(np.ascontiguousarray(outputs[spec.name]).tobytes())
        body.append(f'    AnyPointer {spec.name}_{{load("{spec.name}.in", {content.nbytes})}};')
        if spec.name in plan.symbols:
            body.append(
                f"    check(cudaMemcpyToSymbol({spec.name}, {spec.name}_.at, {content.nbytes}, 0, "
                "cudaMemcpyDeviceToDevice));"
            )
        arrays.append(
            {
                "name": spec.name,
                "dtype": spec.dtype.name,
                "storage": spec.dtype.storage,
                "result": spec.name in outputs,
                "itemsize": spec.dtype.itemsize,
            }
        )
    sizes = {array.spec.name: array.spec.dtype.itemsize for array in program.arrays}
    for launch in program.launches:
        template = f"<{', '.join(launch.template)}>" if launch.template else ""
        grid, block = (", ".join(map(str, size)) for size in (launch.grid, launch.block))
        arguments = ", ".join(_argument(value, sizes) for value in launch.arguments)
        body.append(
            f"    {launch.kernel}{template}<<<dim3({grid}), dim3({block}), {launch.shared}>>>({arguments});\n"
            "    check(cudaGetLastError());\n    check(cudaDeviceSynchronize());"
        )
    for entry in arrays:
        if entry["result"]:
            name = entry["name"]
            bytes_ = (folder / f"{name}.in").stat().st_size
            body.append(f'    save("{name}.got", {name}_.at, {bytes_});')
    harness = _HARNESS.format(body="\n".join(body))
    (folder / "trial.cu").write_text(
        "".join(f"#include <{header}>\n" for header in _HEADERS) + _NAMES_OF_OLD + f"{code}\n{harness}",
        encoding="utf-8",
    )
    (folder / "arrays.json").write_text(json.dumps(arrays))


def _argument(value: Any, sizes: dict[str, int]) -> str:
    from search.kernels.cuda_program import ArrayValue, IntegerValue, StructValue

    if isinstance(value, ArrayValue):
        return f"AnyPointer{{{value.array}_.at + {value.offset * sizes[value.array]}}}"
    if isinstance(value, StructValue):
        members = ", ".join(_argument(member, sizes) for member in value.members)
        return f"{value.type}({members})" if value.type else f"{{{members}}}"
    return str(value.value) if isinstance(value, IntegerValue) else f"{value.value!r}f"


def run(folder: Path) -> None:
    """Build and run every trial on the GPU of this machine, and compare."""
    trials = sorted(path.parent for path in folder.glob("*/trial.cu"))
    with ThreadPoolExecutor(14) as pool:
        built = list(pool.map(_build, trials))
    results = {}
    for trial, problem in zip(trials, built, strict=True):
        results[trial.name] = problem or _run(trial)
        print(f"{trial.name:<36}{results[trial.name] or 'the same'}", flush=True)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    compiler = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    release = next(line.split("release ")[1].split(",")[0] for line in compiler.splitlines() if "release" in line)
    (folder / "results.json").write_text(json.dumps({"gpu": gpu, "cuda": release, "results": results}))


def _build(trial: Path) -> str:
    command = ["nvcc", "-std=c++17", "-arch=native", "-O2", "-w", "-o", "trial", "trial.cu"]
    done = subprocess.run(command, cwd=trial, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return f"does not compile: {(errors or ['?'])[0]}" if done.returncode else ""


def _run(trial: Path) -> str:
    """Return how the GPU's results differ from the simulator's, "" when they don't."""
    done = subprocess.run(["./trial"], cwd=trial, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return f"does not run: {done.stderr.strip()}"
    for entry in json.loads((trial / "arrays.json").read_text()):
        if not entry["result"]:
            continue
        want, got = (np.fromfile(trial / f"{entry['name']}.{which}", entry["storage"]) for which in ("want", "got"))
        written = np.ones(want.shape, bool)
        if entry["itemsize"] >= 2:
            words = want.view(np.uint16).reshape(want.size, -1)
            written = ~(words == 0xFFD5).all(axis=1)
        a, b = _decoded(want[written], entry["dtype"]), _decoded(got[written], entry["dtype"])
        share = SHARE.get(entry["dtype"], 0.0)
        finite = a[np.isfinite(a)]
        scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        with np.errstate(invalid="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= share * (np.abs(a) + scale))
        if not same.all():
            at = int(np.argmin(same))
            return f"{entry['name']}[{at}]: {b[at]:.7g} on the GPU, {a[at]:.7g} simulated ({(~same).sum()} of {a.size})"
    return ""


def _decoded(stored: Any, dtype: str) -> Any:
    if dtype == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def record_results(folder: Path) -> None:
    """Keep the comparison."""
    from machine import record

    found = json.loads((folder / "results.json").read_text())
    kernels: dict[str, list[str]] = {}
    for name, difference in found["results"].items():
        kernels.setdefault(name.rpartition("-")[0], []).append(difference)
    differing = sorted(name for name, differences in kernels.items() if any(differences))
    record(
        __file__,
        {
            "gpu": found["gpu"],
            "cuda": found["cuda"],
            "files": len(kernels),
            "runs": len(found["results"]),
            "files_that_agree": len(kernels) - len(differing),
            "files_that_differ": ", ".join(differing),
        },
    )


if __name__ == "__main__":
    step, where = sys.argv[1], Path(sys.argv[2])
    {"pack": pack, "run": run, "record": record_results}[step](where)
