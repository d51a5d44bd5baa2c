"""The start screen: Enter starts with what is there; mistakes are said in place; recorded sessions open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input, OptionList, Select

from ksearch_tui.app import KsearchApp
from ksearch_tui.paths import sessions_folder
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.replay import ReplayScreen
from ksearch_tui.screens.start import BY_POLICY, StartScreen
from ksearch_tui.start_at import AtStart
from search.config import RunConfig
from sessions.store import SessionStore, read_session

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])


@pytest.fixture
def start(run, monkeypatch):
    """Return the app at the start screen; runs are scripted, and the only example is none."""
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: [])

    def build(config: RunConfig | None = None) -> KsearchApp:
        return KsearchApp(AtStart(config), open_engine=run.open_engine)

    return build


def said(pilot) -> str:
    return str(pilot.app.screen.query_one("#said").content)


@SIZES
async def test_enter_starts_with_the_defaults(start, run, settle, until, size):
    async with start().run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        assert pilot.app.screen.query_one("#problem", Select).value == "attention_prefill"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        await settle(pilot)
        config = pilot.app.screen.config
        assert (config.problem, config.profile, config.budget) == ("attention_prefill", "apple-m3-max", 40)
        await pilot.press("q")
    [path] = sessions_folder().glob("attention_prefill-*.ksearch.toml")
    assert pilot.app.return_value.session == path


async def test_a_folder_of_ones_own_a_budget_and_autopilot_are_taken(start, run, settle, until, tmp_path):
    async with start(run.config).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        screen = pilot.app.screen
        assert screen.query_one("#folder", Input).value == run.config.problem
        screen.query_one("#budget", Input).value = "3"
        screen.query_one("#decides", Select).value = BY_POLICY
        screen.query_one("#session", Input).value = str(tmp_path / "mine.ksearch.toml")
        await pilot.pause()
        await pilot.click("#start")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        await settle(pilot)
        assert run.tree.evaluations == 3
        assert run.tree.stopped == "the budget of 3 evaluations is spent"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("folder", "/nowhere", "unknown problem '/nowhere'"),
        ("folder", "", "name the folder"),
        ("budget", "0", "1 or more"),
        ("budget", "", "1 or more"),
        ("session", "", "name the session's file"),
    ],
)
async def test_a_wrong_field_is_said_in_place(start, run, until, field, value, reason):
    async with start(run.config).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one(f"#{field}", Input).value = value
        await pilot.pause()
        await pilot.click("#start")
        await pilot.pause()
        assert isinstance(pilot.app.screen, StartScreen)
        assert reason in said(pilot)


async def test_an_unwritable_session_path_comes_back_to_the_filled_in_start_screen(start, run, until, tmp_path):
    async with start(run.config).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one("#session", Input).value = str(tmp_path / "no" / "where.ksearch.toml")
        pilot.app.screen.query_one("#budget", Input).value = "7"
        await pilot.click("#start")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen) and said(pilot))
        assert "there is no" in said(pilot)
        assert pilot.app.screen.query_one("#budget", Input).value == "7"


async def record(run, settle) -> None:
    """Record a session in the sessions folder, with one evaluation."""
    sessions_folder().mkdir(parents=True)
    run.session = sessions_folder() / "earlier.ksearch.toml"
    async with run.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("q")


async def test_a_recent_session_goes_on_where_it_was(start, run, settle, until):
    await record(run, settle)
    async with start().run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one(OptionList).focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        await settle(pilot)
        await pilot.press("j", "a")
        await settle(pilot)
        assert run.tree.evaluations == 2
        await pilot.press("q")
    assert len(read_session(run.session).events) == len(run.tree.events)


async def test_a_recent_session_can_be_replayed_instead(start, run, settle, until):
    await record(run, settle)
    async with start().run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one(OptionList).focus()
        await pilot.press("down", "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))


async def test_a_session_that_is_open_elsewhere_is_said_in_place(start, run, settle, until):
    await record(run, settle)
    store = SessionStore.open(run.session)
    async with start().run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one(OptionList).focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: "open in another ksearch-tui" in said(pilot))
    store.close()


ENDPOINT = RunConfig("softmax", "simulator", "apple-m3-max", "llm", endpoint="ollama")


async def test_a_models_endpoint_roles_context_and_limits_are_taken(start, run, settle, until):
    config = replace(ENDPOINT, problem=run.config.problem)
    async with start(config).run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        screen = pilot.app.screen
        fields = {"selector": "big", "generator": " small ", "minutes": "7.5", "tokens": "20000", "usd": "0.25"}
        for field, value in fields.items():
            screen.query_one(f"#{field}", Input).value = value
        screen.query_one("#context", Select).value = "mapping"
        await pilot.click("#start")
        await until(pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen))
        await settle(pilot)
        assert pilot.app.screen.config == replace(
            config, selector="big", generator="small", context="mapping", minutes=7.5, tokens=20000, usd=0.25
        )
        await pilot.press("q")


async def test_the_fields_of_models_are_there_only_for_the_proposer_that_asks_them(start, run, until):
    async with start(run.config).run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        screen = pilot.app.screen
        assert not screen.query_one("#model-fields").display
        assert not screen.query_one("#usd").display
        screen.query_one("#proposer", Select).value = "llm"
        await pilot.pause()
        assert screen.query_one("#model-fields").display
        assert screen.query_one("#usd").display


async def test_a_missing_key_is_said_as_soon_as_its_endpoint_is_chosen(start, run, until, monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    async with start(ENDPOINT).run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        assert said(pilot) == ""
        pilot.app.screen.query_one("#endpoint", Select).value = "gemini"
        await until(pilot, lambda: "set GEMINI_API_KEY and start again, or take the catalogue" in said(pilot))
        pilot.app.screen.query_one("#proposer", Select).value = "catalogue"
        await until(pilot, lambda: said(pilot) == "")


async def test_an_endpoint_that_is_down_is_said_with_a_way_out_and_leaves_no_session(
    run, until, monkeypatch, model_server, tmp_path
):
    monkeypatch.setattr("ksearch_tui.screens.start.example_names", lambda: [])
    profile = model_server.write_profile(tmp_path / "mine.toml", base_url="http://127.0.0.1:9/v1", selector="m")
    config = replace(ENDPOINT, problem=run.config.problem, endpoint=str(profile))
    async with KsearchApp(AtStart(config)).run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        await pilot.click("#start")
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen) and said(pilot), 60)
        assert "can't be reached at http://127.0.0.1:9/v1" in said(pilot)
        assert "catalogue" in said(pilot)
        assert pilot.app.screen.query_one("#endpoint", Select).value == str(profile)
    assert not list(sessions_folder().glob("*.ksearch.toml"))


@pytest.mark.parametrize(("field", "value"), [("tokens", "1.5"), ("usd", "-1"), ("minutes", "soon"), ("usd", "nan")])
async def test_a_limit_that_is_none_is_said(start, run, until, field, value):
    async with start(replace(ENDPOINT, problem=run.config.problem)).run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, StartScreen))
        pilot.app.screen.query_one(f"#{field}", Input).value = value
        await pilot.click("#start")
        await pilot.pause()
        assert isinstance(pilot.app.screen, StartScreen)
        assert f"is '{value}'; it must be a" in said(pilot)
