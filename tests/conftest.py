"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model_server.server import ModelServer


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """Return a running model server without a script."""
    with ModelServer() as server:
        yield server
