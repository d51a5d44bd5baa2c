"""Small sources with a launch, for tests of plans."""

from __future__ import annotations

from translator.cuda_source import parse_cuda
from translator.launch_plan import ArrayPlan, LaunchPlan
from translator.launches import answered_plan

SCALE = """\
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""


def plan(text: str, kernel: str | None = None, **answers: str) -> LaunchPlan:
    return answered_plan(parse_cuda(text, "k.cu"), kernel, {key.replace("__", "."): a for key, a in answers.items()})


def host(body: str, parameters: str = "const float* x, float* y, int n") -> str:
    return f"{SCALE}void run({parameters}) {{ {body} }}\n"


def array(found: LaunchPlan, name: str) -> ArrayPlan:
    return next(array for array in found.arrays if array.name == name)


def kernel(body: str, parameters: str, launch: str, host_parameters: str = "") -> str:
    names = ", ".join(part.split()[-1].strip("*& ") for part in parameters.split(","))
    return (
        f"__global__ void k({parameters}) {{ {body} }}\n"
        f"void run({host_parameters or parameters}) {{ k<<<{launch}>>>({names}); }}\n"
    )
