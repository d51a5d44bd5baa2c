"""Long work in a thread beside the screen's: the interpreter goes from one to the other more often."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 0.0005
_lock = threading.Lock()
_working: list[float] = []
"""The interval as it was, once for each piece of work that goes on."""


@contextmanager
def brisk_threads() -> Iterator[None]:
    """Within this, a thread that computes gives way after half a millisecond.

    A key takes the screen's thread some dozens of turns; at the usual five milliseconds each they add up to a delay
    that can be seen.
    """
    with _lock:
        _working.append(sys.getswitchinterval() if not _working else _working[0])
        sys.setswitchinterval(_SECONDS)
    try:
        yield
    finally:
        with _lock:
            before = _working.pop()
            if not _working:
                sys.setswitchinterval(before)
