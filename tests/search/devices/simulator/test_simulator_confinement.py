"""The compiler at work on a kernel's text reaches no more than it needs, whatever the text makes it do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from search.devices.simulator.confinement import readable
from search.devices.simulator.toolchain import FAST, CompileError, build_kernel, build_launcher

SECRET = "a_secret_of_this_user"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def walls(bench) -> set[str]:
    """What this system can keep from a compiler."""
    answer = subprocess.run([str(build_launcher()), "--walls"], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


@pytest.fixture
def secret(tmp_path, walls) -> Path:
    """A file that only this user should read."""
    if "files" not in walls:
        pytest.skip("this system knows no Landlock: the text rules alone keep a compiler from files")
    path = tmp_path / "secret.txt"
    path.write_text(f"{SECRET};\n")
    return path


@pytest.fixture
def confined(bench, tmp_path) -> Run:
    """Run Python code where a compiler would run, with the folder ``inside`` to itself."""
    inside = tmp_path / "inside"
    inside.mkdir()
    reads = [word for path in readable((sys.executable,)) for word in ("-r", str(path))]

    def run(code: str, *, cpu: int = 10, file_bytes: int = 1 << 20) -> subprocess.CompletedProcess[str]:
        limits = [str(cpu), str(4 << 30), str(file_bytes)]
        command = [str(build_launcher()), *limits, *reads, "-w", str(inside), "--", sys.executable, "-S", "-c", code]
        return subprocess.run(command, capture_output=True, text=True, cwd=inside, timeout=30)

    return run


@pytest.mark.parametrize(
    "text",
    [
        '#include "{path}"\n',
        'asm(".incbin \\"{path}\\"");\n',
        'extern "C" const char ksr_kernel[] = {{\n#include "{path}"\n}};',
    ],
    ids=["an include", "a file for the assembler", "an include in an array"],
)
def test_a_compiler_opens_no_file_of_this_user(bench, secret, text):
    with pytest.raises(CompileError) as caught:
        build_kernel(text.format(path=secret), FAST)
    assert SECRET not in str(caught.value)


def test_a_compiler_finds_a_file_that_it_may_not_read_closed(bench, secret):
    with pytest.raises(CompileError, match=r"Permission denied|cannot open|file not found|error opening"):
        build_kernel(f'#include "{secret}"\n', FAST)


def test_what_runs_as_a_compiler_writes_only_into_its_folder(confined, secret):
    done = confined("open('own.txt', 'w').write('x'); print(open('own.txt').read())")
    assert (done.returncode, done.stdout) == (0, "x\n")
    for code in (f"open({str(secret)!r})", f"open({str(secret.parent / 'new.txt')!r}, 'w')", "open('/usr/new', 'w')"):
        assert "PermissionError" in confined(code).stderr
    assert not (secret.parent / "new.txt").exists()


def test_what_runs_as_a_compiler_has_no_network(confined, walls):
    if "calls" not in walls:
        pytest.skip("this system filters no calls")
    assert "PermissionError" in confined("import _socket; _socket.socket()").stderr


def test_what_runs_as_a_compiler_is_limited_in_time_and_in_what_it_writes(confined):
    assert confined("while True: pass", cpu=1).returncode < 0
    assert confined("open('large', 'wb').write(bytes(2 << 20))").returncode != 0


def test_a_launcher_without_a_command_starts_nothing(bench):
    assert subprocess.run([str(build_launcher()), "1", "1", "1", "-r", "/usr"]).returncode == 127


def test_a_compiler_in_somebodys_home_opens_no_more_of_it_than_programs_have_there(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "clang++"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    opened = {path for path in readable((str(program),)) if path.is_relative_to(tmp_path)}
    assert opened == {program, *(tmp_path / name for name in ("bin", "lib", "lib64", "libexec", "share", "pyvenv.cfg"))}
