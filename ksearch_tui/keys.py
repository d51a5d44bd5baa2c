"""The registry of actions: what a person can do, where, and with which keys (`keys.toml`, or keys of their own)."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path
from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Action:
    """One thing to do: its name (``action_<name>`` does it), where it is there, its keys, and how it is called.

    A number at the end of a name is the action's argument: ``show_tab_2`` is ``action_show_tab(2)``.
    """

    name: str
    where: str
    keys: str
    label: str
    help: str
    footer: bool = False

    @property
    def call(self) -> str:
        """The action as Textual calls it."""
        stem, _, last = self.name.rpartition("_")
        return f"{stem}({last})" if last.isdigit() else self.name


def _load() -> tuple[Action, ...]:
    places = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(Action(name, where, **fields) for where, names in places.items() for name, fields in names.items())


ACTIONS = _load()


def actions(*places: str) -> list[Action]:
    """Return the actions of ``places``, place by place."""
    return [action for place in places for action in ACTIONS if action.where == place]


def bindings(*places: str) -> list[BindingType]:
    """Return the key bindings of ``places``; each binding's id is its action's name."""
    return [
        Binding(action.keys, action.call, action.label, show=action.footer, id=action.name, tooltip=action.help)
        for action in actions(*places)
    ]


def user_keys_path() -> Path:
    """Return where a person's own keys are looked for."""
    return user_config_path("ksearch-tui") / "keys.toml"


def user_keymap(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return a person's own keys by action name, and a sentence for each line that can't be used."""
    try:
        wanted = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, [f"{path}: {error}"]
    known = {action.name for action in ACTIONS}
    keymap, problems = {}, []
    for name, keys in wanted.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "the help screen lists the names"
            problems.append(f"{path}: there is no action '{name}': {hint}")
        elif not isinstance(keys, str) or not keys.strip(" ,"):
            problems.append(f'{path}: \'{name}\' needs keys as text, such as "a" or "ctrl+a,f5"')
        else:
            keymap[name] = keys
    return keymap, problems
