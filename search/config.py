"""The settings of a run, as they stand at the head of a session file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class RunConfig:
    """Which problem, on which device and for which hardware profile, proposed by whom, and how much may be spent.

    ``problem`` is a built-in name or a folder; ``budget`` counts evaluations. For the proposer ``llm``: ``endpoint`` is
    a name or a person's own file, ``selector`` and ``generator`` are its models ("" for the endpoint's choice), and
    ``context`` is how much of the briefing they read. ``minutes``, ``tokens`` and ``usd`` are limits, 0 for none.
    """

    problem: str
    device: str = "simulator"
    profile: str = "apple-m3-max"
    proposer: str = "catalogue"
    budget: int = 40
    endpoint: str = ""
    selector: str = ""
    generator: str = ""
    context: str = "full"
    minutes: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    @property
    def problem_name(self) -> str:
        """The name of the problem, also of a person's own folder."""
        return PurePath(self.problem).name

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint, also of a person's own file."""
        return PurePath(self.endpoint).name.removesuffix(".toml")
