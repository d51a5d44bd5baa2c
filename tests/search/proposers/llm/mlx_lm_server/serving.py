"""A real `mlx_lm.server` in a process of its own, on a model that the test made; nothing is fetched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiles.models import Endpoint, load_endpoint

READY_SECONDS = 60.0
_BODY = "Incoming Request Body: "


class MlxLmServer:
    """Serves the model in the folder ``model``, and others by their path; ``home`` takes its caches and its log."""

    def __init__(self, model: Path, home: Path) -> None:
        self._model, self._home = model, home
        self._log = home / "mlx_lm.server.log"
        self.port = 0

    def __enter__(self) -> MlxLmServer:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._home.mkdir(parents=True, exist_ok=True)
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": str(self._home / "huggingface")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "mlx_lm", "server", "--log-level", "DEBUG"),
                    *("--model", str(self._model), "--port", str(self.port)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **offline},
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()
        self._process.wait()

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests for a reply so far, as it read them."""
        decoder = json.JSONDecoder()
        return [decoder.raw_decode(rest)[0] for rest in self.log.split(_BODY)[1:]]

    def endpoint(self, **changes: Any) -> Endpoint:
        """Return the profile ``mlx-lm`` with this server's port and ``changes``."""
        profile = load_endpoint("mlx-lm")
        return replace(profile, **{"base_url": profile.base_url.replace("8080", str(self.port)), **changes})

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"mlx_lm.server did not start:\n{self.log[-4000:]}")
            time.sleep(0.1)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False
