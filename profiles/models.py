"""Model endpoints: where to ask, what each is known to take, and what its models cost.

An endpoint is ``models/<name>.toml``. A person's own is the same file anywhere on disk.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import ipaddress
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from profiles.hardware import CONFIDENCE_LEVELS, ProfileError

MODELS = Path(__file__).parent / "models"
STRUCTURES = ("schema", "object", "fenced")
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
OURS = frozenset({"model", "messages", "stream", "stream_options", "response_format", "n", *TOKEN_LIMITS})
"""Fields of a request that the client sets, or that would change what comes back."""


@dataclass(frozen=True)
class ModelFacts:
    """One model: ``context`` tokens for prompt and reply, ``reply_tokens`` at most in a reply.

    Prices are USD per million tokens, as read on the day ``read``; None where not known. ``cached_usd`` is the price of
    prompt tokens that the endpoint had read before.
    """

    name: str
    context: int
    reply_tokens: int
    input_usd: float | None
    output_usd: float | None
    cached_usd: float | None
    read: datetime.date
    confidence: str


@dataclass(frozen=True)
class Endpoint:
    """One endpoint that speaks the chat-completions protocol of OpenAI.

    - ``base_url``: what comes before ``/chat/completions``. ``key_env``: the variable in the environment, "" if none.
    - ``billed``: whether tokens cost money; where they don't, every reply costs nothing.
    - ``structured``: ways to get JSON, in the order to try: ``schema`` (a JSON schema), ``object`` (any JSON object),
      ``fenced`` (asked for in words). ``strict``: whether a schema is sent as a strict one. ``object_as``: how to ask
      for an object: as a ``json_object`` or, where that is refused, as a ``schema`` of any object.
    - ``token_limit``: the one field that limits a reply. ``reply_tokens``: its value, for a model that can do so many.
    - ``usage``: tokens while streaming: ``on_request`` (with stream_options), ``always``, or ``unknown`` (asked for,
      and not again once that is refused).
    - ``refuses``: fields that it answers with an error, never sent. ``request``: fields to send besides.
    - ``cuts_prompts``: whether a prompt that is too long is cut in silence.
    - ``first_token_seconds``: the longest wait for the first piece of a reply, loading a model included.
    - ``selector``, ``generator``: models by default; "" takes the first that the endpoint lists.
    - ``setup``: three lines that set it up. ``confidence``: by field. ``notes``: sources, and what to know.
    """

    name: str
    title: str
    base_url: str
    key_env: str
    billed: bool
    structured: tuple[str, ...]
    strict: bool
    object_as: str
    token_limit: str
    reply_tokens: int
    usage: str
    first_token_seconds: float
    selector: str
    generator: str
    setup: tuple[str, ...]
    refuses: tuple[str, ...] = ()
    cuts_prompts: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelFacts, ...] = ()
    confidence: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""

    @property
    def host(self) -> str:
        """The host of ``base_url``."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine."""
        return _is_loopback(self.host)

    def facts(self, model: str) -> ModelFacts | None:
        """Return what is known of ``model``, None if it isn't listed."""
        return next((facts for facts in self.models if facts.name == model), None)


def endpoint_names(own: Path | None = None) -> list[str]:
    """Return the names of the endpoints that come with the package and of those in the folder ``own``."""
    return sorted(_paths(own))


def load_endpoint(name: str, own: Path | None = None) -> Endpoint:
    """Load an endpoint by name, or from a path that ends in ``.toml``.

    A file in the folder ``own`` goes before one of the package with the same name. Raises `ProfileError`: with the
    nearest name when it is unknown, with the file and the key when it doesn't read.
    """
    if name.endswith(".toml"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ProfileError(f"{path}: there is no such file")
        return read_endpoint(path)
    paths = _paths(own)
    if name not in paths:
        close = difflib.get_close_matches(name, paths, n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(sorted(paths))}"
        raise ProfileError(f"unknown endpoint '{name}': {hint}")
    return read_endpoint(paths[name])


def read_endpoint(path: Path) -> Endpoint:
    """Read one file; raise `ProfileError` with the key that isn't right."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: {error}") from error
    _check_keys(f"{path}", data, Endpoint)
    if data["name"] != path.stem:
        raise ProfileError(f"{path}: name must be '{path.stem}', like the file, and it is {data['name']!r}")
    _check_choices(path, data)
    _check_address(path, data)
    models = tuple(_facts(path, number, table) for number, table in enumerate(data.get("models", ()), 1))
    if len({facts.name for facts in models}) != len(models):
        raise ProfileError(f"{path}: models lists the same name twice")
    lists = {key: tuple(data.get(key, ())) for key in ("structured", "setup", "refuses")}
    return Endpoint(**{**data, **lists, "models": models})


def _paths(own: Path | None) -> dict[str, Path]:
    folders = [MODELS, *([own] if own is not None else [])]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


# -- checks -----------------------------------------------------------------------------------------------------------

_KINDS = {
    "str": "a text",
    "bool": "true or false",
    "int": "a positive whole number",
    "float": "a positive number",
    "float | None": "a number, 0 or more",
    "tuple[str, ...]": "a list of texts",
    "tuple[ModelFacts, ...]": "tables, [[models]]",
    "Mapping[str, Any]": "a table",
    "Mapping[str, str]": "a table of texts",
    "datetime.date": "a day, such as 2026-11-30",
}
_OPTIONAL = ("input_usd", "output_usd", "cached_usd")


def _check_keys(where: str, data: Mapping[str, Any], kind: type[Endpoint] | type[ModelFacts]) -> None:
    fields = {each.name: each for each in dataclasses.fields(kind)}
    for key, value in data.items():
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            raise ProfileError(f"{where}: unknown key '{key}'" + (f"; did you mean '{close[0]}'?" if close else ""))
        if not _fits(value, str(fields[key].type)):
            raise ProfileError(f"{where}: {key} must be {_KINDS[str(fields[key].type)]}, and it is {value!r}")
    needed = [
        name
        for name, each in fields.items()
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING and name not in _OPTIONAL
    ]
    if missing := [name for name in needed if name not in data]:
        raise ProfileError(f"{where}: {', '.join(missing)} missing")


def _fits(value: object, kind: str) -> bool:
    if kind in ("str", "bool"):
        return isinstance(value, str if kind == "str" else bool)
    if kind in ("int", "float", "float | None"):
        accepted = int if kind == "int" else (int, float)
        number = isinstance(value, accepted) and not isinstance(value, bool) and math.isfinite(value)
        return number and (value > 0 or (value == 0 and kind == "float | None"))  # type: ignore[operator]
    if kind == "datetime.date":
        return type(value) is datetime.date
    if kind.startswith("Mapping"):
        texts = "Any" in kind or (isinstance(value, dict) and all(isinstance(text, str) for text in value.values()))
        return isinstance(value, dict) and texts
    item = str if "str" in kind else dict
    return isinstance(value, list) and all(isinstance(each, item) for each in value)


def _check_choices(path: Path, data: Mapping[str, Any]) -> None:
    ways = data["structured"]
    if not ways or len(set(ways)) != len(ways) or not set(ways) <= set(STRUCTURES) or ways[-1] != "fenced":
        raise ProfileError(f"{path}: structured must list some of {', '.join(STRUCTURES)}, once each, fenced last")
    for key, choices in (
        ("object_as", ("json_object", "schema")),
        ("token_limit", TOKEN_LIMITS),
        ("usage", ("on_request", "always", "unknown")),
    ):
        if data[key] not in choices:
            raise ProfileError(f"{path}: {key} must be {' or '.join(choices)}, and it is {data[key]!r}")
    if len(data["setup"]) != 3:
        raise ProfileError(f"{path}: setup must be three lines, and it has {len(data['setup'])}")
    if taken := sorted(OURS & set(data.get("request", {}))):
        raise ProfileError(f"{path}: request can't set {', '.join(taken)}; the program does")
    if refused := sorted(set(data.get("refuses", ())) & set(data.get("request", {}))):
        raise ProfileError(f"{path}: request sets {', '.join(refused)}, which refuses says is never sent")
    for key, level in data.get("confidence", {}).items():
        if key not in {each.name for each in dataclasses.fields(Endpoint)}:
            raise ProfileError(f"{path}: confidence of an unknown key '{key}'")
        if level not in CONFIDENCE_LEVELS:
            raise ProfileError(f"{path}: confidence of {key} must be high, medium or low, and it is {level!r}")


def _check_address(path: Path, data: Mapping[str, Any]) -> None:
    """Refuse an address that would give a key away: written into it, or sent over the internet in the clear."""
    if data["key_env"] and not (data["key_env"].isidentifier() and data["key_env"].isascii()):
        # What stands there may be the key itself, so it isn't shown.
        raise ProfileError(f"{path}: key_env must be the name of an environment variable, such as OPENAI_API_KEY")
    try:
        url = urlsplit(data["base_url"])
        host, inside = url.hostname, url.username or url.password or url.query or url.fragment
        _ = url.port
    except ValueError as error:
        raise ProfileError(f"{path}: base_url isn't an address: {error}") from error
    if inside:
        raise ProfileError(f"{path}: base_url can't have a user, a password or a query; a key belongs into key_env")
    if url.scheme not in ("http", "https") or not host:
        raise ProfileError(f"{path}: base_url must start with https:// or http://, and it is {data['base_url']!r}")
    if url.scheme == "http" and data["key_env"] and not _is_near(host):
        raise ProfileError(f"{path}: base_url must start with https://: a key would travel to {host} in the clear")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_near(host: str) -> bool:
    """Return whether ``host`` is this machine or one of a private network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))


def _facts(path: Path, number: int, table: Mapping[str, Any]) -> ModelFacts:
    where = f"{path}: model {number}" + (f" ('{table['name']}')" if isinstance(table.get("name"), str) else "")
    _check_keys(where, table, ModelFacts)
    if table["confidence"] not in CONFIDENCE_LEVELS:
        raise ProfileError(f"{where}: confidence must be high, medium or low, and it is {table['confidence']!r}")
    if ("input_usd" in table) != ("output_usd" in table):
        raise ProfileError(f"{where}: input_usd and output_usd go together")
    if table["reply_tokens"] >= table["context"]:
        raise ProfileError(f"{where}: reply_tokens must be less than context")
    return ModelFacts(**{**dict.fromkeys(_OPTIONAL), **table})
