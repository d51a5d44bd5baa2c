"""``ksearch-tui problems`` and ``ksearch-tui profiles``."""

from __future__ import annotations

import argparse
import json

from profiles.hardware import load_profile, profile_names
from search.problems.definition import built_in_names, load_problem


def problems(options: argparse.Namespace) -> int:
    """Print the built-in problems."""
    found = [load_problem(name) for name in built_in_names()]
    if options.json:
        rows = [
            {
                "name": problem.name,
                "title": problem.title,
                "axes": dict(problem.axes),
                "workloads": [{"name": w.name, "role": w.role} for w in problem.workloads if not w.hidden],
                "cuda": [path.name for path in problem.cuda],
                "folder": str(problem.folder),
            }
            for problem in found
        ]
        print(json.dumps(rows, indent=2))
        return 0
    for problem in found:
        print(f"{problem.name:<22}{problem.title}")
        print(f"{'':<22}axes {', '.join(problem.axes)} · CUDA {', '.join(path.name for path in problem.cuda)}")
    return 0


def profiles(options: argparse.Namespace) -> int:
    """Print the hardware profiles and how sure their main figures are."""
    found = [load_profile(name) for name in profile_names()]
    if options.json:
        rows = [
            {
                "name": profile.name,
                "title": profile.title,
                "cores": profile.cores,
                "clock_ghz": profile.clock_ghz,
                "bandwidth_gbs": profile.bandwidth_gbs,
                "fp32_tflops": round(profile.cores * profile.clock_ghz * profile.fp32_flops / 1e3, 2),
                "confidence": dict(profile.confidence),
            }
            for profile in found
        ]
        print(json.dumps(rows, indent=2))
        return 0
    print(f"{'profile':<18}{'GPU':<16}{'cores':>5}{'GB/s':>9}{'FP32 TFLOP/s':>14}   clock")
    for profile in found:
        tflops = profile.cores * profile.clock_ghz * profile.fp32_flops / 1e3
        sure = profile.confidence.get("clock_ghz", "low")
        print(
            f"{profile.name:<18}{profile.title:<16}{profile.cores:>5}{profile.bandwidth_gbs:>9.1f}{tflops:>14.2f}"
            f"   {profile.clock_ghz:.3f} GHz ({sure} confidence)"
        )
    return 0
