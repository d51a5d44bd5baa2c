"""The help screen: what the signs mean, and every key of the screen it was opened from."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ksearch_tui.keys import Action, actions, user_keys_path
from ksearch_tui.widgets.page import Page, Paragraph
from ksearch_tui.widgets.too_small import TooSmall
from ksearch_tui.wording import STATUS_SIGNS, STATUS_STYLES

_HEADINGS = {
    "start": "Starting",
    "explorer": "Steering",
    "replay": "Replaying",
    "browse": "Looking",
    "list": "In a list or text",
    "lines": "In a kernel",
    "mapping": "In the Mapping tab",
    "activity": "In the Activity tab",
    "app": "Everywhere",
}
_LABEL_WIDTH = 16
_BLANK = Paragraph(Content(""))


class HelpScreen(ModalScreen[None]):
    """Closes with Esc, q or ?."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss", "close")]

    def __init__(self, places: tuple[str, ...], keymap: dict[str, str]) -> None:
        super().__init__()
        self._places = places
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog-large"):
            yield Static("Keys and signs (Esc closes)", classes="dialog-title", markup=False)
            yield Page(id="help-text")
        yield TooSmall()

    def on_mount(self) -> None:
        """Write the text."""
        page = self.query_one(Page)
        page.write(help_text(self._places, self._keymap))
        page.focus()


def help_text(places: tuple[str, ...], keymap: dict[str, str]) -> list[Paragraph]:
    """Return the keys of ``places`` with a person's own in place of the defaults, and the legend."""
    text = []
    for place in places:
        text += [_heading(_HEADINGS[place]), *(_key(action, keymap) for action in actions(place)), _BLANK]
    text.append(_heading("Signs"))
    text += [_entry(Content.assemble((status, STATUS_STYLES[status])), sign) for status, sign in STATUS_SIGNS.items()]
    text += [
        _entry(Content("the fastest so far"), "★"),
        _entry(Content("what the policy would take next"), "»"),
        _entry(Content("pinned"), "^"),
        _entry(Content("rating from 0 to 10, and how sure it is"), "7.5 ▮▮▮▯"),
        _entry(Content("speedup over the naive kernel"), "2.05×"),
        _BLANK,
        Paragraph(Content(f'Keys of your own go into {user_keys_path()}, one line an action, such as  approve = "y"')),
        Paragraph(Content("ctrl+p opens the command palette; text can be selected with the mouse.")),
    ]
    return text


def _heading(text: str) -> Paragraph:
    return Paragraph(Content.assemble((text, "bold $text-accent")))


def _entry(text: Content, label: str) -> Paragraph:
    return Paragraph(text, f"  {label}", _LABEL_WIDTH)


def _key(action: Action, keymap: dict[str, str]) -> Paragraph:
    return _entry(Content(action.help), key_names(keymap.get(action.name, action.keys)))


def key_names(keys: str) -> str:
    """Return keys as a person reads them: ``question_mark,f1`` is ``? F1``."""
    from textual.keys import format_key

    return " ".join(format_key(key.strip()) if len(key.strip()) > 1 else key.strip() for key in keys.split(","))
