"""Which compiler is taken, and what is said when there is none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from search.devices.base import DeviceUnavailable
from search.devices.simulator.compilers import find_compiler

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what puts a compiler into an otherwise empty PATH; it notes how often it was asked to compile."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("KSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    find_compiler.cache_clear()

    def put(name: str, version: str, *, knows_half: bool = True) -> None:
        program = programs / name
        asked = tmp_path / f"{name}-asked"
        program.write_text(
            f"#!/bin/sh\ncase \"$*\" in *--version) echo '{version}'; exit 0;; esac\n"
            f"echo asked >> '{asked}'\nexit {int(not knows_half)}\n"
        )
        program.chmod(0o755)

    return put


@pytest.fixture(autouse=True)
def forget():
    """Leave no compiler of this module behind for the next one."""
    yield
    find_compiler.cache_clear()


def test_clang_comes_before_gcc(install: Install) -> None:
    install("g++", "g++ (Debian 12.2.0-14) 12.2.0")
    assert find_compiler().command == ("g++",)
    assert not find_compiler().clang
    find_compiler.cache_clear()
    install("clang++", "Debian clang version 16.0.6")
    assert find_compiler().command == ("clang++",)
    assert find_compiler().clang


def test_a_chosen_compiler_comes_before_all(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("clang++", "g++", "mine"):
        install(name, f"{name} 20.1")
    monkeypatch.setenv("CXX", "mine -B/somewhere")
    assert find_compiler().command == ("mine", "-B/somewhere")


def test_a_clang_that_is_too_old_leaves_the_work_to_gcc(install: Install) -> None:
    install("clang++", "Debian clang version 14.0.6", knows_half=False)
    install("g++", "g++ (Debian 12.2.0-14) 12.2.0")
    assert find_compiler().command == ("g++",)


def test_a_version_is_asked_once(install: Install, tmp_path: Path) -> None:
    install("g++", "g++ 12.2.0")
    for _ in range(3):
        find_compiler.cache_clear()
        find_compiler()
    assert (tmp_path / "g++-asked").read_text() == "asked\n"
    install("g++", "g++ 13.1.0")
    find_compiler.cache_clear()
    assert find_compiler().version == "g++ 13.1.0"
    assert (tmp_path / "g++-asked").read_text() == "asked\nasked\n"


@pytest.mark.parametrize(
    ("chosen", "installed", "says"),
    [
        ("", {}, r"neither clang\+\+ nor g\+\+"),
        ("", {"clang++": "clang version 14.0.6", "g++": "g++ 9.4.0"}, r"too old \(clang version 14.0.6, g\+\+ 9.4.0\)"),
        ("no-such-compiler", {}, "the compiler in \\$CXX, 'no-such-compiler', does not run"),
        ("g++", {"g++": "g++ 9.4.0"}, r"too old \(g\+\+ 9.4.0\)"),
    ],
)
def test_what_is_missing_is_said(
    install: Install, monkeypatch: pytest.MonkeyPatch, chosen: str, installed: dict[str, str], says: str
) -> None:
    for name, version in installed.items():
        install(name, version, knows_half=False)
    if chosen:
        monkeypatch.setenv("CXX", chosen)
    with pytest.raises(DeviceUnavailable, match=says):
        find_compiler()
