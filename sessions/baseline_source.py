"""A problem's MLX baseline as source that stands alone: the function, and whatever of its file it rests on."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from search.problems.definition import Problem
from sessions.blocks import SessionError

_ALLOWED = sys.stdlib_module_names | {"mlx"}


@dataclass(frozen=True)
class BaselineSource:
    """The baseline's function name, the imports it needs (sorted lines), its definitions, and the names they take."""

    function: str
    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    names: frozenset[str]


def baseline_source(problem: Problem) -> BaselineSource:
    """Cut the baseline out of the problem's file.

    Raises `SessionError` when the file does not read or the baseline needs more than MLX and the standard library.
    """
    file, _, function = problem.baseline_at.partition(":")
    path = problem.folder / file
    try:
        text = path.read_text(encoding="utf-8")
        statements = ast.parse(text).body
    except (OSError, ValueError, SyntaxError) as error:
        raise SessionError(f"{path}: {error}") from error
    where = {name: statement for statement in statements for name in _bound(statement)}
    if function not in where:
        raise SessionError(f"{path}: there is no function '{function}'")
    needed, waiting = set(), [function]
    while waiting:
        name = waiting.pop()
        if name in where and name not in needed:
            needed.add(name)
            if not isinstance(where[name], ast.Import | ast.ImportFrom):
                waiting += [node.id for node in ast.walk(where[name]) if isinstance(node, ast.Name)]
    carried = [statement for statement in statements if needed & set(_bound(statement))]
    for statement in carried:
        for module in _imported(statement):
            if module.partition(".")[0] not in _ALLOWED:
                raise SessionError(
                    f"{path}: '{function}' rests on '{module}', and an exported module carries it as its fallback "
                    "with nothing but MLX to import: write the baseline with MLX alone"
                )
    imports = {line for statement in carried for line in _import_lines(statement, needed)}
    lines = text.splitlines()
    return BaselineSource(
        function,
        tuple(sorted(imports, key=lambda line: (line.startswith("from"), line.lower()))),
        tuple(_segment(lines, s) for s in carried if not isinstance(s, ast.Import | ast.ImportFrom)),
        frozenset(needed),
    )


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a file gives a meaning to."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _imported(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def _import_lines(statement: ast.stmt, needed: set[str]) -> Iterator[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            if (alias.asname or alias.name).partition(".")[0] in needed:
                one = ast.Import([alias])
                yield ast.unparse(one if isinstance(statement, ast.Import) else _only(statement, alias))


def _only(statement: ast.ImportFrom, alias: ast.alias) -> ast.ImportFrom:
    return ast.ImportFrom(statement.module, [alias], statement.level)


def _segment(lines: list[str], statement: ast.stmt) -> str:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(lines[first - 1 : statement.end_lineno])
