"""The row of the start screen that says how much a run may use, each limit with its unit."""

from __future__ import annotations

import math

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label

from search.spending import Budget

MOST = 1e9


class FieldError(ValueError):
    """A field that a run can't start with, in words for a person."""


class LimitFields(Horizontal):
    """Evaluations, minutes and, where models are asked, tokens and USD; but for the first, empty is no limit."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(id="limits", classes="field")
        self._budget = budget

    def compose(self) -> ComposeResult:
        budget = self._budget
        yield Label("Budget")
        yield from _limit("budget", "evaluations", budget.evaluations)
        yield from _limit("minutes", "minutes", budget.minutes)
        yield from _limit("tokens", "tokens", budget.tokens, "of-models")
        yield from _limit("usd", "USD", budget.usd, "of-models")

    def show_models(self, on: bool) -> None:
        """Show the limits that are about models, or not."""
        for widget in self.query(".of-models"):
            widget.display = on

    def limits(self, *, models: bool) -> Budget:
        """Return what the fields say, those about ``models`` too or not; raise `FieldError` at one that is wrong."""
        return Budget(
            int(self._read("budget", "evaluations", whole=True, needed=True)),
            self._read("minutes", "minutes"),
            int(self._read("tokens", "tokens", whole=True)) if models else 0,
            self._read("usd", "USD") if models else 0.0,
        )

    def _read(self, id: str, unit: str, *, whole: bool = False, needed: bool = False) -> float:
        text = self.query_one(f"#{id}", Input).value.strip()
        if not text and not needed:
            return 0.0
        try:
            value = float(int(text)) if whole else float(text)
        except ValueError:
            value = math.nan
        if not 0 < value <= MOST:
            wanted = "a whole number, 1 or more" if whole else "a number above 0"
            raise FieldError(f"the budget of {unit} is '{text}'; it must be {wanted}")
        return value


def _limit(id: str, unit: str, value: float, classes: str = "") -> ComposeResult:
    yield Input(f"{value:.10g}" if value else "", placeholder="–", id=id, compact=True, classes=classes)
    yield Label(unit, classes=f"unit {classes}")
