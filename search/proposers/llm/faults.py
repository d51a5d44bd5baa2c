"""From what went wrong with one request to a fault with a sentence: what, from whom, and what a person can do. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from profiles.models import Endpoint
from search.proposers.llm.asking import ModelFault
from search.proposers.llm.masking import KeyMask
from search.proposers.llm.wordings import NOTHING, Complaint, Said, complaint
from search.spending import Spent

MOST_WAIT = 120.0
"""Seconds; an endpoint that asks for a longer wait isn't waited for: the run pauses, and says so."""


@dataclass(frozen=True)
class Trouble:
    """Why one request got no reply: a kind of `ModelFault`, in words, and what was complained about."""

    kind: str
    what: str
    remedy: str
    complaint: Complaint
    retry_after: float | None = None

    def fault(self, spent: Spent, attempts: int = 0, too_dear: str = "") -> ModelFault:
        """Return the fault to raise, with all that was ``spent`` on the question in so many ``attempts``.

        ``too_dear``: which limit of the run kept it from being asked again.
        """
        limit = self.complaint.context if self.kind == "too_long" else 0
        return ModelFault(
            self.kind,
            f"{self.what} It was not asked again: {too_dear}." if too_dear else f"{self.what} {self.remedy}",
            retry_after=self.retry_after,
            limit=limit or None,
            spent=spent,
            attempts=attempts,
            too_dear=too_dear,
        )


class Sentences:
    """Words troubles for a person, about one model of one endpoint."""

    def __init__(self, endpoint: Endpoint, model: str, mask: KeyMask) -> None:
        self._endpoint, self._model, self._mask = endpoint, model, mask
        self._who = f"{endpoint.title} ({model})" if model else endpoint.title

    def trouble(self, kind: str, said: str = "", found: Complaint | None = None, wait: float | None = None) -> Trouble:
        """Return a trouble of ``kind``; ``said`` is what the endpoint said about it."""
        quoted = self._mask.shown(said)
        what, remedy = self._wording(kind)
        sentence = f"{what}: {quoted}" if quoted else what
        if kind == "rate_limit" and wait is not None and wait > MOST_WAIT:
            remedy = f"It asks to wait {wait:.0f} s. {remedy}"
        sentence += "" if sentence.endswith((".", "…", "!", "?")) else "."
        return Trouble(kind, sentence, remedy, found or NOTHING, wait)

    def of_error(self, said: Said, headers: Mapping[str, str], now: datetime) -> Trouble:
        """Return what an error that the endpoint answered means, before or inside a stream."""
        found = complaint(said.all)
        kind = _kind(said, found)
        message = said.message if said.is_json or kind not in ("unreachable", "server") else ""
        if not message and said.status is not None:
            message = f"HTTP {said.status}"
        if said.status is not None and 300 <= said.status < 400:
            message = f"it sends on to {headers.get('location', 'another address')}"
        wait = asked_wait(headers, now) if said.delay is None else said.delay
        return self.trouble(kind, message, found, wait)

    def _wording(self, kind: str) -> tuple[str, str]:
        """Return what happened, and what a person can do about it."""
        endpoint, who = self._endpoint, self._who
        start = f"Start it ({endpoint.setup[1]})" if endpoint.local else "Check the address and the network"
        wordings = {
            "rate_limit": (f"{who} takes no more requests for now", "Go on later, or with another model."),
            "timeout": (f"{who} was silent for too long", "Go on when it is less busy, or take a smaller model."),
            "dropped": (f"{who} broke off before its reply was whole", "Nothing of it is used. Go on to ask again."),
            "server": (f"{who} failed", "Go on later, or with another model."),
            "too_long": (f"the prompt is too long for {who}", "Take a model with more context, or a lower --context."),
            "wrong_key": (
                f"{endpoint.title} refuses the key",
                f"Set {endpoint.key_env} to a valid one and start again."
                if endpoint.key_env
                else "It wants one: name the variable that holds it as key_env in a profile of your own.",
            ),
            "no_credit": (f"{endpoint.title} has no credit left for this key", "Add some, or take another endpoint."),
            "unknown_model": (
                f"{endpoint.title} has no model '{self._model}'",
                f"Check its name. What the endpoint is set up with: {endpoint.setup[1]}"
                if endpoint.local
                else "Check its name.",
            ),
            "unreachable": (
                f"{endpoint.title} can't be reached at {endpoint.base_url}",
                f"{start}, or search with --proposer catalogue, which needs no model.{self._path_hint()}",
            ),
            "refusal": (f"{who} refused to answer", "Word the guidance in another way, or take another model."),
            "empty": (f"{who} gave no answer", "Ask again, or take another model."),
            "length": (
                f"{who} reached the limit of a reply before it was done",
                "Nothing of it is used. Take a model that is briefer, or raise reply_tokens in its profile.",
            ),
            "bad_request": (f"{who} refuses the request", "The profile of the endpoint may need a change."),
        }
        return wordings[kind]

    def _path_hint(self) -> str:
        bare = urlsplit(self._endpoint.base_url).path in ("", "/")
        return " Most endpoints want an address that ends in /v1." if bare else ""


def _kind(said: Said, found: Complaint) -> str:
    """Return the kind of fault. A status that means one thing goes before words, which may quote anything."""
    status, about = said.status, found.about
    if status == 429:
        return "no_credit" if about == "no_credit" else "rate_limit"
    if status == 402:
        return "no_credit"
    if status == 401 or (status == 403 and about != "refusal"):
        return "wrong_key"
    if status == 413:
        return "too_long"
    if status is not None and 300 <= status < 400:
        return "unreachable"
    if about == "too_long":
        return "too_long"
    if about in ("wrong_key", "no_credit", "unknown_model", "refusal") and (status is None or status < 500):
        return about
    if status in (404, 405) and (not said.is_json or said.message in ("Not Found", "Method Not Allowed")):
        return "unreachable"
    if status is None or status >= 500 or status in (408, 409, 425):
        return "server"
    return "bad_request"


def asked_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a Retry-After header (seconds, or a date as in HTTP) or its form in ms asks for."""
    for name, factor in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * factor
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, ((until if until.tzinfo else until.replace(tzinfo=UTC)) - now).total_seconds())
