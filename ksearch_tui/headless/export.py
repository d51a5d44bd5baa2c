"""``ksearch-tui export``: a session's best kernel as a module that needs only MLX."""

from __future__ import annotations

import argparse
import sys

from ksearch_tui.headless.errors import CommandError
from ksearch_tui.headless.settings import session_file
from search.problems.definition import load_problem
from search.tree import Tree
from sessions.export import export_module
from sessions.store import read_session


def export(options: argparse.Namespace) -> int:
    """Write the module to ``--output``, or to stdout."""
    path = session_file(str(options.file))
    session = read_session(path)
    tree = Tree.fold(session.events)
    text = export_module(tree, load_problem(session.config.problem), options.option, path.name)
    if options.output is None:
        print(text, end="")
        return 0
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"can't write {options.output}: {error.strerror}") from error
    print(f"wrote {options.output}", file=sys.stderr)
    return 0
