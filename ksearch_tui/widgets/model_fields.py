"""The fields of the start screen that say which models are asked, and how much they may use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label, Select

from ksearch_tui.inert import one_line
from ksearch_tui.paths import own_endpoints
from profiles.hardware import ProfileError
from profiles.models import Endpoint, endpoint_names, load_endpoint
from search.config import RunConfig

CONTEXTS = {"full": "the whole briefing", "mapping": "CUDA's primitives in Metal", "none": "the problem alone"}
_FIRST_LISTED = "the first it lists"


class ModelFields(Vertical):
    """Endpoint, context, and the model of each role; empty ones are the endpoint's choice."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(id="model-fields")
        self._config = config

    def compose(self) -> ComposeResult:
        own = self._config.endpoint
        names = endpoint_names(own_endpoints())
        known = names if not own or own in names else [*names, own]
        shown = [(one_line(PurePath(name).name.removesuffix(".toml")), name) for name in known]
        told = [(f"{level}: {what}", level) for level, what in CONTEXTS.items()]
        with Horizontal(classes="field"):
            yield Label("Endpoint")
            yield Select(shown, value=own or names[0], allow_blank=False, id="endpoint", compact=True)
            yield Select(told, value=self._config.context, allow_blank=False, id="context", compact=True)
        with Horizontal(classes="field"):
            yield Label("Models")
            yield Input(self._config.selector, id="selector", compact=True)
            yield Input(self._config.generator, id="generator", compact=True)

    def endpoint(self) -> Endpoint:
        """Return the chosen endpoint; raise `ProfileError` when its file doesn't read."""
        return load_endpoint(str(self.query_one("#endpoint", Select).value), own_endpoints())

    def settings(self) -> dict[str, str]:
        """Return what the fields say, as `ksearch_tui.headless.settings.model_settings` takes it."""
        return {
            "endpoint": str(self.query_one("#endpoint", Select).value),
            "selector": self.query_one("#selector", Input).value.strip(),
            "generator": self.query_one("#generator", Input).value.strip(),
            "context": str(self.query_one("#context", Select).value),
        }

    def describe(self) -> str:
        """Name the endpoint's own models in the empty fields; return what is missing to ask it, "" if nothing is."""
        try:
            endpoint = self.endpoint()
        except ProfileError as error:
            return str(error)
        self.query_one("#selector", Input).placeholder = f"chooses: {endpoint.selector or _FIRST_LISTED}"
        self.query_one("#generator", Input).placeholder = f"writes: {endpoint.generator or _FIRST_LISTED}"
        return missing_key(endpoint, os.environ)


def missing_key(endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    """Return what to do about the endpoint's key, "" when it is there or none is needed."""
    if not endpoint.key_env or environ.get(endpoint.key_env, "").strip():
        return ""
    return f"{endpoint.title} needs a key: set {endpoint.key_env} and start again, or take the catalogue"
