"""A run with a model on the command line, from the endpoint's profile to the session: real kernels on the simulator.

The model is played by the test over HTTP. It writes the kernels of the softmax family, with a slip here and there.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from search.kernels.families import FAMILIES
from search.kernels.program import Program
from search.tree import Tree
from sessions.store import read_session
from tests.ksearch_tui.commands import ksearch
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
    other.write_text(session.read_text().replace('context = "mapping"', 'context = "none"'))
    done = ksearch("compare", str(session), str(other), str(session), "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert [(each["context"], len(each["sessions"])) for each in settings] == [("none", 1), ("mapping", 2)]
    assert settings[0]["best_speedup"] == settings[1]["best_speedup"] > 5
    assert settings[0]["malformed"] == 3


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


def test_its_summary_says_how_predictions_came_out(finished: tuple[Path, Any, Played]) -> None:
    session, done, _ = finished
    tree = Tree.fold(read_session(session).events)
    found = [tree.speedup_over_parent(o.id) / o.predicted for o in tree.options.values() if o.parent and o.passing]
    bias = statistics.geometric_mean(found)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  trust")]
    # Every prediction was 0.1 and every program was faster than that, so all errors are to one side.
    said = f"found {bias:.2f}× of what was predicted, off by {bias:.2f}× ({len(found)} results)"
    assert lines == [f"  trust   chooser proposes: {said}", f"  trust   writer writes: {said}"]
