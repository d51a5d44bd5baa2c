"""docs/translator.md shows the tables as they are; KSEARCH_WRITE_DOCS=1 writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from translator.metal_rule import Rule
from translator.pattern_table import load_patterns
from translator.primitives import CATEGORIES, load_primitives

PAGE = Path(__file__).parents[2] / "docs" / "translator.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"


def cell(text: str) -> str:
    return re.sub(r"[|<*]", r"\\\g<0>", text)


def code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def tables() -> Iterator[str]:
    rows = load_primitives()
    yield f"### Primitives: {len(rows)}\n"
    for category in CATEGORIES:
        yield f"#### {category}\n\n| CUDA | Metal | kind | trap |\n|---|---|---|---|"
        for row in rows:
            if row.category == category:
                metal = code(row.metal) if row.example and not row.prose else cell(row.metal)
                yield f"| {code(row.cuda)} | {metal} | {row.kind} | {cell(row.trap)} |"
        yield ""
    patterns = load_patterns()
    yield f"### Patterns: {len(patterns)}\n"
    for pattern in patterns:
        yield f"#### {pattern.name}\n\n{pattern.says[0].upper()}{pattern.says[1:]}. {pattern.when}\n"
        yield f"CUDA: `{pattern.cuda}`\n\n```metal\n{pattern.metal}\n```\n\n{pattern.trap}\n"


def test_the_page_shows_the_tables_as_they_are():
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    written = head + BEGIN + "\n".join(tables()) + END + tail
    if os.environ.get("KSEARCH_WRITE_DOCS"):
        PAGE.write_text(written, encoding="utf-8")
    assert text == written, "out of date: KSEARCH_WRITE_DOCS=1 pytest tests/translator/test_translator_page.py"


def test_the_page_names_every_rule_of_the_lint():
    lint = PAGE.read_text(encoding="utf-8").partition("## The lint")[2].partition("## The tables")[0]
    rows = (line.split("|")[1] for line in lint.splitlines() if line.startswith("| `"))
    named = [rule for row in rows for rule in re.findall(r"`([\w-]+)`", row)]
    assert sorted(named) == sorted(Rule)
