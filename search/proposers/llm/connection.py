"""The `openai` client for one endpoint: it sends what this program means to send, to that address, and nothing else."""

from __future__ import annotations

from typing import Any

import openai

from profiles.models import Endpoint
from search.proposers.llm.asking import ModelFault

SENT_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
)
"""Headers that an endpoint needs. The library would add others: what machine this is, and whatever stands in the
environment for OpenAI (organization, project, custom headers), also for an endpoint that isn't OpenAI's."""


def connect(endpoint: Endpoint, key: str, connect_seconds: float) -> openai.AsyncOpenAI:
    """Return a client that neither retries by itself nor follows to another address; only connecting is timed.

    The key is in no object of the library: it is put into each request as it leaves. A proxy of the environment is not
    used for an endpoint on this machine. Raises `ModelFault` when the proxy can't be used.
    """

    async def put_headers(request: Any) -> None:
        for name in [name for name in request.headers if name.lower() not in SENT_HEADERS]:
            del request.headers[name]
        if key:
            request.headers["authorization"] = f"Bearer {key}"

    timeout = openai.Timeout(None, connect=connect_seconds)
    try:
        transport = openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not endpoint.local,
            event_hooks={"request": [put_headers]},
        )
    except (ImportError, ValueError):
        unusable = True
    else:
        unusable = False
    if unusable:
        raise ModelFault(
            "unreachable",
            f"{endpoint.title} can't be reached: the proxy that the environment names can't be used. "
            "Look at HTTPS_PROXY and ALL_PROXY.",
        )
    return openai.AsyncOpenAI(
        api_key="in the request hook",
        base_url=endpoint.base_url,
        timeout=timeout,
        max_retries=0,
        http_client=transport,
    )
