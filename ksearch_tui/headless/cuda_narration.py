"""What a person is told of a CUDA file: what is in it, what is open and how to answer, what is refused."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from ksearch_tui.inert import one_line
from search.from_cuda.reading import Reading


def narrate_reading(reading: Reading) -> None:
    """Print, on standard error, what was found in a CUDA file."""
    path, inventory = reading.source.path, reading.inventory
    kinds = Counter(occurrence.primitive.kind for occurrence in inventory.occurrences)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    say(f"{path}: {len(inventory.occurrences)} primitives ({told}), {inventory.coverage:.0%} direct or idiom")
    for diagnostic in reading.source.diagnostics:
        say(f"{path}:{diagnostic.span.line}:{diagnostic.span.column}: {diagnostic.message}")
    for choice in reading.plan.choices:
        say(f"{path}:{choice.span.line}: {choice.message}")
    for line in _question_lines(reading):
        say(line)
    if reading.translation:
        for refusal in reading.translation.refusals:
            say(f"{path}:{refusal}")
        for note in reading.translation.notes:
            say(f"note: {note}")


def say(text: str) -> None:
    """Print one line on standard error; a name from a file can't act on the terminal."""
    print(one_line(text), file=sys.stderr)


def _question_lines(reading: Reading) -> Iterator[str]:
    questions = reading.questions
    for question in questions:
        yield f"{reading.source.path}:{question.span.line}: open: {question.message}"
    keys = list(dict.fromkeys(question.answer for question in questions if question.answer))
    if keys:
        yield "answer with " + " ".join(f"--answer {key}={_example(key)}" for key in keys)


def _example(key: str) -> str:
    """Return how an answer to a question may look."""
    kind = key.partition(".")[0]
    return {
        "grid": "'ceildiv(n, 256)'",
        "block": "256",
        "shared": "0",
        "type": "float",
        "scalar": "1.0",
        "branch": "then",
    }.get(kind, "SIZE")
