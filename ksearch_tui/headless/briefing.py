"""``ksearch-tui briefing``: what someone who writes a Metal kernel for a problem is told."""

from __future__ import annotations

import argparse
import sys

from ksearch_tui.headless.settings import DEFAULT_PROFILE
from profiles.hardware import load_profile
from search.briefing import problem_briefing
from search.problems.definition import load_problem
from translator.briefing import tokens


def briefing(options: argparse.Namespace) -> int:
    """Print the briefing of a problem for a hardware profile; its length goes to stderr."""
    profile = load_profile(options.profile or DEFAULT_PROFILE)
    text = problem_briefing(load_problem(options.problem), profile, options.context)
    print(text, end="")
    print(f"about {tokens(text):,} tokens, for {profile.name}", file=sys.stderr)
    return 0
