"""Which of the explorer's actions can be done with the option under the cursor. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from search.option import FAILED, OPEN, PROPOSED, PRUNED, Option
from search.tree import Tree

_NEEDS: Mapping[str, Callable[[Option], bool]] = {
    "approve": lambda option: option.status in (PROPOSED, PRUNED),
    "prune": lambda option: bool(option.parent) and not option.pruned,
    "edit": lambda option: option.status in OPEN or option.status == FAILED,
    "redirect": lambda option: option.status not in (PRUNED, FAILED),
    "more": lambda option: option.passing is not None and not option.pruned,
    "new_option": lambda option: not option.pruned and option.status != FAILED,
}
_ALWAYS = frozenset({"fold", "unfold", "top", "bottom", "break_off", "pause", "autopilot"})


def possible(action: str, tree: Tree, option: Option | None) -> bool:
    """Whether ``action`` of the explorer can be done with ``option``, None where there is none yet."""
    if action in _ALWAYS:
        return True
    if action == "undo":
        return tree.last_undoable() is not None
    if option is None:
        return False
    return _NEEDS[action](option) if action in _NEEDS else True
