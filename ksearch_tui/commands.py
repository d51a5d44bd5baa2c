"""The command palette: what can be done here, with the option under the cursor."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from ksearch_tui.inert import one_line
from ksearch_tui.keys import Action, actions
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.run_screen import RunScreen

_ABOUT_OPTION = frozenset({"approve", "prune", "redirect", "edit", "new_option", "more", "pin"})


class ContextCommands(Provider):
    """The actions of the screen, those about an option with its title; what can't be done is left out."""

    async def discover(self) -> Hits:
        """Offer everything before anything is typed."""
        for action, title in self._offered():
            yield DiscoveryHit(Content(title), partial(self.screen.run_action, action.call), title, action.help)

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        matcher = self.matcher(query)
        for action, title in self._offered():
            score = matcher.match(title)
            if score > 0:
                run = partial(self.screen.run_action, action.call)
                yield Hit(score, matcher.highlight(title), run, title, action.help)

    def _offered(self) -> list[tuple[Action, str]]:
        screen = self.screen
        if not isinstance(screen, RunScreen):
            return []
        place = "explorer" if isinstance(screen, ExplorerScreen) else "replay"
        return [
            (action, self._title(action, screen))
            for action in actions(place, "browse")
            if screen.check_action(action.name, ()) is True
        ]

    @staticmethod
    def _title(action: Action, screen: RunScreen) -> str:
        label = f"{action.label[0].upper()}{action.label[1:]}"
        if action.name in _ABOUT_OPTION and screen.option is not None:
            return f"{label}: {one_line(screen.option.title)}"
        return f"Show {action.label}" if action.name.startswith("show_tab") else label
