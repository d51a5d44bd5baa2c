"""The `openai` client for one endpoint: it sends what this program means to send, to that address, and nothing else.

What comes back is bounded before anything else looks at it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import openai

from profiles.models import Endpoint
from search.proposers.llm.asking import ModelFault
from search.proposers.llm.streamed import NotTheProtocol

SENT_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
)
"""Headers that an endpoint needs. The library would add others: what machine this is, and whatever stands in the
environment for OpenAI (organization, project, custom headers), also for an endpoint that isn't OpenAI's."""

MOST_BYTES = 128 * 2**20
"""Of one answer, its frame included; a token takes some 300 bytes."""


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer up to `MOST_BYTES`; raises `NotTheProtocol` when more come."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._stream:
            count += len(piece)
            if count > MOST_BYTES:
                raise NotTheProtocol("dropped", f"it sent more than {MOST_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Bound what is read of ``response``. A compressed one is refused: few bytes of it may be many."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NotTheProtocol("dropped", "it compressed its answer, although asked not to")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


def connect(endpoint: Endpoint, key: str, connect_seconds: float) -> openai.AsyncOpenAI:
    """Return a client that neither retries by itself nor follows to another address; only connecting is timed.

    The key is in no object of the library: it is put into each request as it leaves. A proxy of the environment is not
    used for an endpoint on this machine. Raises `ModelFault` when the proxy can't be used.
    """

    async def put_headers(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in SENT_HEADERS]:
            del request.headers[name]
        request.headers["accept-encoding"] = "identity"
        if key:
            request.headers["authorization"] = f"Bearer {key}"

    timeout = openai.Timeout(None, connect=connect_seconds)
    try:
        transport = openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not endpoint.local,
            event_hooks={"request": [put_headers], "response": [_bound]},
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
