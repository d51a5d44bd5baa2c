"""How the parts of the writer say that something has no correct translation."""

from __future__ import annotations

from tree_sitter import Node


class Refused(Exception):
    """Raised where the text can't be translated; caught at the statement, so that the rest is read too."""

    def __init__(self, node: Node, reason: str, advice: str) -> None:
        super().__init__(f"{reason}: {advice}")
        self.node, self.reason, self.advice = node, reason, advice
