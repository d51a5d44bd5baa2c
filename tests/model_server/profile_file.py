"""An endpoint as the file that a command can be given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tomli_w

from profiles.models import Endpoint


def write_profile(path: Path, endpoint: Endpoint) -> Path:
    """Write ``endpoint``, without what is known of its models, as the profile ``path``; returns the path."""
    left_out = ("models", "confidence", "notes")
    named = replace(endpoint, name=path.stem)
    fields = {key: value for key, value in vars(named).items() if key not in left_out}
    path.write_text(tomli_w.dumps({k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}))
    return path
