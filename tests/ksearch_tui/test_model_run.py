"""A run with a model on the command line, from the endpoint's profile to the session: real kernels on the simulator.

The model is played by the test over HTTP. It writes the kernels of the softmax family, with a slip here and there.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ksearch_tui.headless.summary import run_summary, summary_lines
from search.kernels.families import FAMILIES
from search.kernels.program import Program
from search.tree import Tree
from sessions.store import read_session
from tests.ksearch_tui.commands import ksearch
from tests.model_server.scripted import reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import KEY, NO_CHANGE, Played, first, option, written

SOFTMAX = FAMILIES["softmax"]
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def kernel(*keys: str) -> Program:
    """The program of the softmax family after these transformations."""
    plan = SOFTMAX.start
    for key in keys:
        plan = SOFTMAX.transformations[key](plan)
    return SOFTMAX.write(plan)


def said(program: Program, **changes: str) -> dict[str, Any]:
    """``program`` as a model gives it, with a text of its source replaced."""
    (step,) = program.passes
    source = step.source
    for old, new in changes.values():
        assert old in source
        source = source.replace(old, new, 1)
    return written(
        source,
        passes=[
            {
                "name": step.name,
                "inputs": list(step.inputs),
                "outputs": list(step.outputs),
                "grid": list(step.grid),
                "threadgroup": list(step.threadgroup),
                "template": [{"name": name, "value": value} for name, value in step.template],
                "header": step.header,
                "source": source,
                "init_value": None,
                "atomic_outputs": False,
            }
        ],
        comment="As it was asked for.",
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any, Played]]:
    """A run that is over: its session, the finished process and the model that was asked."""
    home = tmp_path_factory.mktemp("home")
    with ModelServer() as server:
        server.key = KEY
        played = Played(server)
        plain = {"predicted": 0.1}  # nothing falls short of that, so nothing is to be improved
        families = [
            {"name": "division of work", "options": [option("Row per simdgroup", rating=9, **plain)]},
            {"name": "threadgroup memory", "options": [option("Row per threadgroup", rating=5, **plain)]},
            {"name": "arithmetic", "options": [option("One division per row", rating=2, **plain)]},
        ]
        wrong = first("", "", "", families=families, bottlenecks=[])
        played.says("initialize", wrong, first("", "", "", families=families))
        played.says(
            "write",
            said(kernel("row_per_simdgroup"), slip=("peak = simd_max(peak);", "peak = warp_max(peak);")),
            said(kernel("row_per_simdgroup", "online")),
            said(kernel("row_per_threadgroup"), slip=(f"scratch[lane] = sum;\n{BARRIER}", "scratch[lane] = sum;")),
        )
        played.says("repair", said(kernel("row_per_simdgroup")), said(kernel("row_per_threadgroup")))
        played.says(
            "refine",
            {
                **NO_CHANGE,
                "inserts": [{"under": "o2", "option": option("Online softmax", rating=9, **plain)}],
                "closes": [{"option": "o4", "why": "division is not what bounds it"}],
            },
            *[{**NO_CHANGE, "statuses": [{"option": "o3", "status": "passed"}]}] * 2,
        )
        profile = server.write_profile(home / "mine.toml", key_env="MINE_KEY", selector="chooser", generator="writer")
        session = home / "a.ksearch.toml"
        done = ksearch(
            *("run", "softmax", "--device", "simulator", "--profile", "apple-m3-max", "--endpoint", str(profile)),
            *("--context", "mapping", "--budget", "6", "--tokens", "400000", "--session", str(session)),
            home=home,
            MINE_KEY=KEY,
        )
        yield session, done, played


def test_a_whole_search_with_its_slips_ends_with_a_faster_kernel(finished: tuple[Path, Any, Played]) -> None:
    session, done, played = finished
    assert done.returncode == 0, done.stderr
    tree = Tree.fold(read_session(session).events)
    by_title = {o.title: o for o in tree.options.values()}
    simdgroup, threadgroup = by_title["Row per simdgroup"], by_title["Row per threadgroup"]
    root = tree[tree.root]
    assert (root.writer, root.status, len(root.evaluations)) == ("catalogue", "passed", 1)
    slip = simdgroup.evaluations[0].failure
    assert slip is not None and slip.stage == "compile" and "warp_max" in slip.message
    race = threadgroup.evaluations[0].failure
    assert race is not None and race.stage == "race"
    assert [o.status for o in (simdgroup, threadgroup)] == ["passed", "passed"]
    proven = tree.program(simdgroup.program).passes[0].source
    assert proven.strip() == kernel("row_per_simdgroup").passes[0].source.strip()
    assert by_title["Online softmax"].parent == simdgroup.id
    assert by_title["One division per row"].status == "pruned"
    assert tree.speedup(simdgroup.id) > 5
    assert tree.evaluations == 6
    assert "refused whole" in done.stderr and "statuses" in done.stderr
    assert "race" in played.prompt("repair")


def test_its_summary_says_what_the_models_used(finished: tuple[Path, Any, Played]) -> None:
    session, done, played = finished
    tree = Tree.fold(read_session(session).events)
    assert len(played.calls) == tree.account.replies
    assert tree.account.malformed == 3
    line = next(line for line in done.stdout.splitlines() if line.startswith("  models"))
    assert "chooser and writer at" in line and "context mapping" in line
    assert f"{len(played.calls)} questions (3 replies malformed)" in line
    assert f"{tree.account.prompt_tokens} + {tree.account.completion_tokens} tokens, $0.0000" in line


def test_nothing_of_it_holds_the_key(finished: tuple[Path, Any, Played]) -> None:
    session, done, _ = finished
    kept = [path.read_bytes() for path in session.parent.rglob("*") if path.is_file()]
    assert session.read_bytes() in kept
    assert not any(KEY.encode() in content for content in [*kept, done.stdout.encode(), done.stderr.encode()])


def test_sessions_of_two_settings_stand_side_by_side(finished: tuple[Path, Any, Played], tmp_path: Path) -> None:
    session, _, _ = finished
    other = tmp_path / "b.ksearch.toml"
    told = session.read_text().replace('context = "mapping"', 'context = "none"')
    other.write_text(told.replace("counted = true", "counted = false", 1))
    done = ksearch("compare", str(session), str(other), str(session), "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert [(each["context"], len(each["sessions"])) for each in settings] == [("none", 1), ("mapping", 2)]
    assert settings[0]["best_speedup"] == settings[1]["best_speedup"] > 5
    assert settings[0]["malformed"] == 3
    done = ksearch("compare", str(session), str(other), home=tmp_path)
    figure = f"{settings[0]['tokens']:,.0f}"
    assert done.stdout.count(f" ~{figure} ") == 1 and done.stdout.count(f" {figure} ") == 1


def test_an_endpoint_that_is_down_leaves_no_session_and_names_the_catalogue(
    model_server: ModelServer, tmp_path: Path
) -> None:
    profile = model_server.write_profile(tmp_path / "mine.toml", base_url="http://127.0.0.1:9/v1", selector="m")
    session = tmp_path / "a.ksearch.toml"
    done = ksearch("run", "softmax", "--endpoint", str(profile), "--session", str(session), home=tmp_path)
    assert done.returncode == 1
    assert "can't be reached at http://127.0.0.1:9/v1" in done.stderr
    assert "--proposer catalogue" in done.stderr
    assert "Traceback" not in done.stderr
    assert not session.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--proposer", "llm"), "--proposer llm needs an --endpoint: there is gemini, lm-studio"),
        (("--endpoint", "olama"), "did you mean 'ollama'?"),
        (("--endpoint", "./nothing.toml"), "there is no such file"),
        (("--endpoint", "ollama", "--context", "some"), "invalid choice: 'some'"),
    ],
)
def test_a_wrong_setting_is_said(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = ksearch("run", "softmax", *arguments, home=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_wrong_key_in_the_middle_keeps_the_session_and_it_goes_on_later(
    model_server: ModelServer, tmp_path: Path
) -> None:
    played = Played(model_server)
    model_server.key = KEY
    profile = model_server.write_profile(tmp_path / "mine.toml", key_env="MINE_KEY", selector="m", generator="m")

    def revoke(request: Any) -> dict[str, Any]:
        model_server.key = "another"
        return first("a", "b", "c")

    played.says("initialize", revoke)
    session = tmp_path / "a.ksearch.toml"
    done = ksearch(
        *("run", "softmax", "--endpoint", str(profile), "--session", str(session), "--device", "simulator"),
        home=tmp_path,
        MINE_KEY=KEY,
    )
    assert done.returncode == 1
    assert "refuses the key" in done.stderr and "MINE_KEY" in done.stderr
    assert f"nothing is lost; go on with: ksearch-tui resume {session}" in done.stderr
    tree = Tree.fold(read_session(session).events)
    assert [o.status for o in tree.options.values()] == ["passed", "approved", "proposed", "proposed"]
    assert KEY not in done.stderr + session.read_text()
    model_server.key = KEY
    played.says("write", said(kernel("row_per_simdgroup")))
    more = ("--budget", "2", "--headless")
    done = ksearch("resume", str(session), *more, home=tmp_path, MINE_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert played.calls == ["initialize", "write"]
    tree = Tree.fold(read_session(session).events)
    assert [o.status for o in tree.options.values()] == ["passed", "passed", "proposed", "proposed"]


def test_a_summary_marks_tokens_that_nobody_counted(finished: tuple[Path, Any, Played]) -> None:
    session, _, _ = finished
    read = read_session(session)
    replied = next(event for event in read.events if event.kind == "replied")
    data = {name: value for name, value in replied.data.items() if name != "question"}
    more = replace(replied, seq=read.events[-1].seq, data={**data, "counted": False, "outcome": "cancelled"})
    tree = Tree.fold([*[event for event in read.events if event.kind != "stopped"], more])
    summary = run_summary(read.config, tree, session)
    assert summary["models"]["estimated"] == 1
    [line] = [line for line in summary_lines(summary) if line.startswith("  models")]
    assert f" about {tree.account.prompt_tokens} + " in line and "about $0.0000" in line


def test_a_limit_that_ends_within_a_question_is_said_and_kept_when_the_run_goes_on(
    model_server: ModelServer, tmp_path: Path
) -> None:
    played = Played(model_server)
    large = {"prompt_tokens": 15_000, "completion_tokens": 4000}
    played.says("initialize", reply({**first("a", "b", "c"), "status": "passed"}, usage=large))
    profile = model_server.write_profile(tmp_path / "mine.toml", key_env="", selector="m", generator="m")
    session = tmp_path / "a.ksearch.toml"
    done = ksearch(
        *("run", "softmax", "--endpoint", str(profile), "--session", str(session), "--device", "simulator"),
        *("--context", "none", "--tokens", "21000"),
        home=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    reason = "the budget of 21000 tokens is spent: 2000 are left, and the next question could take "
    assert f"the run stopped: {reason}" in done.stderr and "; the reply was not sent back" in done.stderr
    assert "15000 + 4000 tokens" in done.stdout
    done = ksearch("resume", str(session), "--headless", home=tmp_path)
    assert f"the run stopped: {reason}" in done.stderr
    assert played.calls == ["initialize"]


def test_a_run_that_is_killed_while_the_tree_is_thought_over_goes_on_there(
    model_server: ModelServer, tmp_path: Path
) -> None:
    played = Played(model_server)
    plain = {"predicted": 0.1}  # nothing falls short of that, so nothing is to be improved
    named = ("Row per simdgroup", "Row per threadgroup", "One division per row")
    families = [{"name": name, "options": [option(name, rating=9 - n, **plain)]} for n, name in enumerate(named)]
    played.says("initialize", first("", "", "", families=families))
    played.says("write", said(kernel("row_per_simdgroup")), said(kernel("row_per_threadgroup")))
    played.says("refine", reply(NO_CHANGE, before=60))
    profile = model_server.write_profile(tmp_path / "mine.toml", key_env="", selector="m", generator="m")
    session = tmp_path / "a.ksearch.toml"
    command = ("run", "softmax", "--endpoint", str(profile), "--session", str(session), "--device", "simulator")
    running = subprocess.Popen(
        [sys.executable, "-m", "ksearch_tui.cli", *command, "--budget", "3"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **{f"XDG_{kind}_HOME": str(tmp_path) for kind in ("DATA", "CACHE", "CONFIG")}},
        start_new_session=True,
    )
    try:
        assert model_server.wait_for(lambda _: "refine" in played.calls, 120)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    before = read_session(session).events
    assert [event.kind for event in before[-2:]] == ["rated", "sent"] and before[-1]["call"] == "refine"
    played.calls.clear()
    done = ksearch("resume", str(session), "--headless", home=tmp_path)
    assert done.returncode == 0, done.stderr
    # What had been asked is asked again, first and once; then the search goes on.
    assert played.calls[0] == "refine" and played.calls.count("refine") == 1 and "initialize" not in played.calls
    tree = Tree.fold(read_session(session).events)
    assert tree.events[: len(before)] == before
    # What the question may have used when the program was killed counts.
    assert "; lost: the program was killed while it was asked" in done.stderr
    assert tree.account.estimated == 1 and f"about {before[-1]['prompt_tokens']} + 0 tokens" in done.stderr
    assert [o.status for o in tree.options.values()] == ["passed", "passed", "passed", "proposed"]


def test_its_summary_says_how_predictions_came_out(finished: tuple[Path, Any, Played]) -> None:
    session, done, _ = finished
    tree = Tree.fold(read_session(session).events)
    found = [tree.speedup_over_parent(o.id) / o.predicted for o in tree.options.values() if o.parent and o.passing]
    bias = statistics.geometric_mean(found)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  trust")]
    # Every prediction was 0.1 and every program was faster than that, so all errors are to one side.
    said = f"found {bias:.2f}× of what was predicted, off by {bias:.2f}× ({len(found)} results)"
    assert lines == [f"  trust   chooser proposes: {said}", f"  trust   writer writes: {said}"]
