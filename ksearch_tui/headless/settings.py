"""From the words of a command line to the settings of a run."""

from __future__ import annotations

import argparse
import difflib
from dataclasses import replace
from pathlib import Path

from ksearch_tui.headless.errors import USAGE, CommandError
from ksearch_tui.paths import own_endpoints
from profiles.detect import local_profile
from profiles.hardware import load_profile
from profiles.models import endpoint_names, load_endpoint
from search.assembly import proposer_names
from search.config import RunConfig
from search.devices.registry import METAL, default_device, device_names, open_device
from search.problems.definition import built_in_names, load_problem

DEFAULT_PROFILE = "apple-m3-max"
LLM = "llm"


def device_and_profile(device: str, profile: str) -> tuple[str, str]:
    """Return the device (``auto`` resolved) and the profile ("" is this machine's own, or that of a common Mac)."""
    if device == "auto":
        device = default_device()
    elif device not in device_names():
        close = difflib.get_close_matches(device, device_names(), n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(device_names())}"
        raise CommandError(f"unknown device '{device}': {hint}", USAGE)
    # What can't run here is refused before a session begins.
    open_device(device, load_profile(profile or DEFAULT_PROFILE)).close()
    chosen = profile or (_this_machine() if device == METAL else "") or DEFAULT_PROFILE
    return device, load_profile(chosen).name


def _this_machine() -> str:
    import mlx.core as mx

    return local_profile(str(mx.device_info().get("device_name", "")))


def run_config(options: argparse.Namespace) -> RunConfig:
    """Return the settings that ``options`` ask for; unknown names raise with the nearest one."""
    problem = load_problem(options.problem)
    device, profile = device_and_profile(options.device, options.profile)
    proposer = options.proposer or (LLM if options.endpoint else "catalogue")
    if proposer not in proposer_names():
        raise CommandError(f"unknown proposer '{proposer}': there is {', '.join(proposer_names())}", USAGE)
    # A built-in problem is kept by name; a person's own by its absolute folder, so that resuming works from anywhere.
    named = options.problem in built_in_names()
    return RunConfig(
        problem=options.problem if named else str(problem.folder),
        device=device,
        profile=profile,
        proposer=proposer,
        budget=options.budget,
        minutes=options.minutes,
        tokens=options.tokens,
        usd=options.usd,
        **(_models(options) if proposer == LLM else {}),
    )


def _models(options: argparse.Namespace) -> dict[str, str]:
    if not options.endpoint:
        names = ", ".join(endpoint_names(own_endpoints()))
        raise CommandError(f"--proposer llm needs an --endpoint: there is {names}", USAGE)
    selector, generator = options.selector or options.model, options.generator or options.model
    return model_settings(options.endpoint, selector, generator, options.context)


def model_settings(endpoint: str, selector: str, generator: str, context: str) -> dict[str, str]:
    """Return whom a run asks, as fields of its settings; raise `ProfileError` when there is no such endpoint.

    An endpoint of the package is kept by name, a person's own by its absolute file.
    """
    known = load_endpoint(endpoint, own_endpoints())
    own = own_endpoints() / f"{endpoint}.toml"
    if endpoint.endswith(".toml"):
        named = str(Path(endpoint).expanduser().resolve())
    else:
        named = str(own) if own.is_file() else known.name
    return {"endpoint": named, "selector": selector, "generator": generator, "context": context}


def resumed_config(config: RunConfig, options: argparse.Namespace) -> RunConfig:
    """Return the settings of a session that goes on, with the limits that ``options`` set anew."""
    return replace(
        config,
        budget=options.budget or config.budget,
        minutes=options.minutes or config.minutes,
        tokens=options.tokens or config.tokens,
        usd=options.usd or config.usd,
    )


def session_file(name: str) -> Path:
    """Return the path of a session file or of a recorded example by its name."""
    from sessions.examples import example_names, example_path

    path = Path(name).expanduser()
    if path.exists():
        return path
    if name in example_names():
        return example_path(name)
    close = difflib.get_close_matches(name, example_names(), n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'?" if close else f"the recorded examples are {', '.join(example_names())}"
    raise CommandError(f"there is no session file and no example '{name}': {hint}", USAGE)
