"""The commands as a person runs them: in a process of their own."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from sessions.store import read_session

GOOD_SOFTMAX = """\
//@ pass softmax
//@ inputs x
//@ outputs y
//@ grid rows
//@ threadgroup 32
//@ template T = T, N = n
//@ source
uint row = thread_position_in_grid.x;
if (row < uint(threads_per_grid.x)) {
  size_t at = size_t(row) * N;
  float top = -INFINITY;
  for (int i = 0; i < N; ++i) { top = max(top, float(x[at + i])); }
  float sum = 0.0f;
  for (int i = 0; i < N; ++i) { sum += exp(float(x[at + i]) - top); }
  for (int i = 0; i < N; ++i) { y[at + i] = T(exp(float(x[at + i]) - top) / sum); }
}
"""


def ksearch(*arguments: str, home: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ksearch_tui.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(home),
        stdin=subprocess.DEVNULL,
    )


def environment(home: Path) -> dict[str, str]:
    """A person with an empty home; the compiled runtime is shared, since building it is not what is tested."""
    return {**os.environ, "XDG_DATA_HOME": str(home / "data"), "COLUMNS": "100"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def finished(home: Path) -> tuple[dict, Path]:
    """The result of one short run and its session file."""
    session = home / "run.ksearch.toml"
    done = ksearch(
        "run", "softmax", "--device", "simulator", "--budget", "3", "--json", "--session", str(session), home=home
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), session


def test_the_version_needs_neither_textual_nor_mlx() -> None:
    code = (
        "import sys, ksearch_tui.cli as c\n"
        "try: c.main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = {'textual', 'mlx', 'numpy', 'openai', 'tree_sitter'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ksearch-tui 0.")


@pytest.mark.parametrize(
    "command",
    [
        *("explore", "run", "resume", "replay", "check", "export", "report", "compare"),
        *("briefing", "translate", "new", "simulate", "problems", "profiles", "doctor"),
    ],
)
def test_every_command_has_help(command: str, home: Path) -> None:
    done = ksearch(command, "--help", home=home)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: ksearch-tui {command}")


def test_the_listings_are_data(home: Path) -> None:
    problems = json.loads(ksearch("problems", "--json", home=home).stdout)
    assert {"softmax", "attention_prefill"} <= {row["name"] for row in problems}
    profiles = json.loads(ksearch("profiles", "--json", home=home).stdout)
    by_name = {row["name"]: row for row in profiles}
    # 40 cores at 1.38 GHz, 256 FLOP a core and cycle.
    assert by_name["apple-m3-max"]["fp32_tflops"] == 14.13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "sofmax"], "unknown problem 'sofmax': did you mean 'softmax'?"),
        (["run", "softmax", "--device", "simulater"], "unknown device 'simulater': did you mean 'simulator'?"),
        (["run", "softmax", "--profile", "apple-m3-mx"], "did you mean 'apple-m3-max'?"),
        (["run", "softmax", "--budget", "0"], "must be at least 1"),
        (["run", "softmax", "--proposer", "oracle"], "oracle"),
        (["replay", "atention", "--headless"], "did you mean 'attention'?"),
        (["check", "no-such-file.metal", "--problem", "softmax"], "there is no file no-such-file.metal"),
        (["explore", "softmax"], "needs a terminal"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
    ],
)
def test_wrong_usage_is_answered_in_a_sentence(arguments: list[str], message: str, home: Path) -> None:
    done = ksearch(*arguments, home=home)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_run_reports_its_best_kernel_and_keeps_the_session(finished: tuple[dict, Path]) -> None:
    result, session = finished
    assert result["evaluations"] == 3
    assert result["best"]["time_kind"] == "modelled"
    assert result["best"]["time_on"] == "apple-m3-max"
    assert result["best"]["speedup_over_root"] >= 1
    assert 0 < result["best"]["roofline_fraction"] <= 1
    kinds = [event["kind"] for event in tomllib.loads(session.read_text())["events"]]
    assert kinds.count("evaluated") == 3
    assert kinds[-1] == "stopped"


def test_a_run_without_a_session_name_is_kept_among_the_persons_sessions(home: Path) -> None:
    done = ksearch("run", "softmax", "--device", "simulator", "--budget", "1", home=home)
    assert done.returncode == 0, done.stderr
    found = list((home / "data" / "ksearch-tui" / "sessions").glob("softmax-*.ksearch.toml"))
    assert len(found) == 1
    assert str(found[0]) in done.stdout


def test_resuming_goes_on_where_the_run_stopped(finished: tuple[dict, Path], tmp_path: Path, home: Path) -> None:
    copy = tmp_path / "copy.ksearch.toml"
    copy.write_bytes(finished[1].read_bytes())
    done = ksearch("resume", str(copy), "--headless", "--budget", "4", "--json", home=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"] == 4
    before, after = read_session(finished[1]).events, read_session(copy).events
    assert after[: len(before)] == before


def test_a_replay_tells_the_same_story_without_running_anything(finished: tuple[dict, Path], home: Path) -> None:
    result, session = finished
    done = ksearch("replay", str(session), "--headless", "--json", home=home)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["best"] == result["best"]
    told = ksearch("replay", str(session), "--headless", home=home).stdout
    assert result["best"]["title"] in told


def test_an_exported_kernel_is_a_module(finished: tuple[dict, Path], tmp_path: Path, home: Path) -> None:
    module = tmp_path / "kernel.py"
    done = ksearch("export", str(finished[1]), "-o", str(module), home=home)
    assert done.returncode == 0, done.stderr
    compile(module.read_text(), str(module), "exec")
    assert ksearch("export", str(finished[1]), home=home).stdout == module.read_text()


def test_a_right_kernel_passes_the_check(tmp_path: Path, home: Path) -> None:
    kernel = tmp_path / "k.metal"
    kernel.write_text(GOOD_SOFTMAX)
    done = ksearch("check", str(kernel), "--problem", "softmax", "--device", "simulator", home=home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("passed ")
    assert "modelled, apple-m3-max" in done.stdout


@pytest.mark.parametrize(("init", "passes"), [("//@ init 0\n", True), ("//@ init 1\n", False), ("", False)])
def test_a_kernel_that_adds_into_its_outputs_needs_them_to_begin_as_zero(
    init: str, passes: bool, tmp_path: Path, home: Path
) -> None:
    kernel = tmp_path / "k.metal"
    kernel.write_text(
        "//@ pass add\n//@ inputs x\n//@ outputs y\n//@ grid rows * n\n//@ threadgroup 64\n//@ template N = n\n"
        f"{init}//@ atomic_outputs\n//@ source\nuint i = thread_position_in_grid.x;\n"
        "if (i < x_shape[0] * N) atomic_fetch_add_explicit(&y[i / N], x[i], memory_order_relaxed);\n"
    )
    problem = Path(__file__).parents[1] / "app" / "row_sums"
    done = ksearch("check", str(kernel), "--problem", str(problem), "--device", "simulator", home=home)
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    assert done.stdout.startswith("passed " if passes else "failed")


@pytest.mark.parametrize(
    ("old", "new", "stage", "text"),
    [
        ("i < N; ++i) { sum", "i < N - 1; ++i) { sum", "correctness", "y"),
        ("sum += exp(", "sum += expo(", "compile", "expo"),
        ("y[at + i] = T(", "y[at + i + 1] = T(", "correctness", ""),
    ],
)
def test_a_wrong_kernel_fails_the_check_and_says_where(
    old: str, new: str, stage: str, text: str, tmp_path: Path, home: Path
) -> None:
    kernel = tmp_path / "k.metal"
    kernel.write_text(GOOD_SOFTMAX.replace(old, new))
    assert new in kernel.read_text()
    done = ksearch("check", str(kernel), "--problem", "softmax", "--device", "simulator", "--json", home=home)
    assert done.returncode == 1, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["outcome"] == "failed"
    assert verdict["failure_stage"] == stage or text == ""
    assert text in verdict["failure_message"]
    if stage == "compile":
        # The line in the file, not in the body: seven lines of launch facts, and the seventh line after them.
        assert verdict["failure_line"] == 14


@pytest.mark.parametrize(
    ("path", "message"),
    [("/proc/nowhere/s.ksearch.toml", "/proc/nowhere"), (".", "folder")],
)
def test_a_session_that_cannot_be_written_is_refused_before_any_work(path: str, message: str, home: Path) -> None:
    done = ksearch("run", "softmax", "--device", "simulator", "--session", path, home=home)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(platform.system() == "Darwin", reason="a Mac has Metal")
def test_a_device_that_this_machine_has_not_is_refused_before_a_session_begins(tmp_path: Path, home: Path) -> None:
    session = tmp_path / "s.ksearch.toml"
    done = ksearch("run", "softmax", "--device", "metal", "--session", str(session), home=home)
    assert done.returncode == 1
    assert "take the device 'simulator'" in done.stderr
    assert not session.exists()


def test_without_a_back_end_of_mlx_the_simulator_still_works(tmp_path: Path, home: Path) -> None:
    broken = tmp_path / "mlx"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "core.py").write_text("raise ImportError('libmlx.so: cannot open shared object file')")
    arguments = ("run", "softmax", "--budget", "1", "--session", str(tmp_path / "s.ksearch.toml"), "--device")
    environ = {**environment(home), "PYTHONPATH": str(tmp_path)}
    for device, code in (("simulator", 0), ("metal", 1)):
        done = subprocess.run(
            [sys.executable, "-m", "ksearch_tui.cli", *arguments, device], capture_output=True, text=True, env=environ
        )
        assert done.returncode == code, done.stderr
    assert "mlx[cpu]" in done.stderr


def test_an_existing_session_is_never_overwritten(finished: tuple[dict, Path], home: Path) -> None:
    before = finished[1].read_bytes()
    done = ksearch("run", "softmax", "--session", str(finished[1]), "--device", "simulator", home=home)
    assert done.returncode == 1
    assert "resume" in done.stderr
    assert finished[1].read_bytes() == before


@pytest.mark.parametrize("text", ["", "not = toml = at all", "schema_version = 99\n"])
def test_a_broken_or_newer_session_is_refused_in_a_sentence(text: str, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "s.ksearch.toml"
    path.write_text(text)
    for arguments in (["replay", str(path), "--headless"], ["resume", str(path), "--headless"]):
        done = ksearch(*arguments, home=home)
        assert done.returncode == 1
        assert "s.ksearch.toml" in done.stderr
        assert "Traceback" not in done.stderr


def test_ctrl_c_keeps_what_was_found_and_says_how_to_go_on(tmp_path: Path, home: Path) -> None:
    session = tmp_path / "s.ksearch.toml"
    process = subprocess.Popen(
        [sys.executable, "-m", "ksearch_tui.cli", "run", "softmax", "--device", "simulator", "--session", str(session)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home),
        start_new_session=True,
        # A shell's background jobs, and so a test run among them, ignore the signal; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while "evaluated" not in (session.read_text() if session.exists() else ""):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, narration = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"ksearch-tui resume {session}" in narration
    assert "Traceback" not in narration
    assert not read_session(session).repair


def test_the_doctor_tries_the_simulator(home: Path) -> None:
    done = ksearch("doctor", "--json", home=home)
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert findings["simulator"]["state"] == "good"
    assert findings["CUDA parser"]["state"] == "good"


def test_without_a_compiler_the_run_says_what_to_install(home: Path, tmp_path: Path) -> None:
    # An empty PATH hides every compiler; -c blocks Zig's package, should it be installed.
    code = (
        "import sys; sys.modules['ziglang'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'ziglang' else find(name, package)\n"
        "from ksearch_tui.cli import main\n"
        "raise SystemExit(main(['doctor']))"
    )
    environ = {**environment(home), "PATH": str(tmp_path)}
    environ.pop("CXX", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 1
    line = next(line for line in done.stdout.splitlines() if line[2:].startswith("simulator"))
    assert line.startswith("✗") and "compiler" in line
