"""A model in the loop, as a person sees it: a reply grows, is listed, opened and broken off, and is never markup."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from dataclasses import replace

import pytest
from textual.widgets import Input, Static

from ksearch_tui.app import KsearchApp
from ksearch_tui.screens.explorer import ExplorerScreen
from ksearch_tui.screens.redirect import RedirectDialog
from ksearch_tui.screens.reply import ReplyScreen
from ksearch_tui.start_at import AtExplorer
from ksearch_tui.widgets.activity_log import ActivityLog
from ksearch_tui.widgets.line_view import LineView
from ksearch_tui.widgets.live_reply import LiveReply, LiveText
from ksearch_tui.widgets.option_tab import OptionTab
from ksearch_tui.widgets.status_line import StatusLine
from ksearch_tui.wording import count
from sessions.resume import resume_state
from sessions.store import SessionStore, read_session
from tests.model_server.scripted import error, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.playing import Played, first, option, proposer, written

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])
REDIRECTED = {
    "options": [option("d")],
    "avoid": [],
    "question": "",
    "choices": [],
    "followed": "Every option is free of atomics.",
}
HOSTILE = "[/b][red]\x1b[31mred\x1b]0;mine\x07 \u202eright to left\u202c \u2067\u200f\u061c{title} %s"


@pytest.fixture
def played(run, model_server: ModelServer) -> Played:
    """A model on the server; the run of the app asks it."""
    run.config = replace(run.config, proposer="llm", endpoint="vllm", selector="chooser", generator="writer")
    run.proposer = proposer(model_server, patience=60)
    played = Played(model_server)
    played.says("write", written("SUM"))
    return played


def begun(answer: object, pieces: int, **how) -> object:
    """A reply of which so many pieces of four characters come, and then no more."""
    return reply(answer, pieces=4, stall_after=pieces, **how)


def shown(view: LineView) -> str:
    return "\n".join(line.text.plain for line in view.lines)


def log(pilot) -> str:
    """The log as it reads, each entry on one line."""
    return " ".join(shown(pilot.app.screen.query_one(ActivityLog)).split())


def told(pilot) -> str:
    return "\n".join(note.message for note in pilot.app._notifications)


@SIZES
async def test_a_reply_grows_under_the_log_and_is_listed_with_what_it_used_once_it_is_whole(run, played, until, size):
    played.says("initialize", begun(first("four elements a load", "b", "c"), 60), first("a", "b", "c"))
    async with run.app().run_test(size=size) as pilot:
        await pilot.press("5")
        screen = pilot.app.screen
        text, head = screen.query_one(LiveText), screen.query_one("#live-head", Static)
        await until(pilot, lambda: "four elements a load" in shown(text), 20)
        assert "selector chooser · begin the tree at 'the first kernel'" in str(head.content)
        # Four of the prompt's characters are about a token, so 60 pieces of four are about as many.
        await until(pilot, lambda: re.search(r"~[56]\d tokens, \d+ s · Esc breaks it off", str(head.content)), 10)
        await until(pilot, lambda: "selector, ~" in str(screen.query_one(StatusLine).content), 10)
        await pilot.press("escape", "space")
        await until(pilot, lambda: len(run.tree.options) == 4 and not screen.query_one(LiveReply).display, 20)
        [used] = [
            e for e in run.tree.events if e.kind == "replied" and (e["call"], e["outcome"]) == ("initialize", "used")
        ]
        tokens = f"{used['prompt_tokens']} + {used['completion_tokens']} tokens"
        listed = f"✓ selector chooser was asked to begin the tree at 'the first kernel': {tokens}"
        await until(pilot, lambda: listed in log(pilot), 10)


@pytest.mark.parametrize("inside", [False, True], ids=["a field of their own", "tags in the text"])
async def test_thoughts_are_shown_dimmed_and_folded_once_the_answer_begins(run, played, until, inside):
    thought, answer = "Let me see. " * 60, first("a", "b", "c")
    if inside:
        said = f"<think>{thought}</think>{json.dumps(answer)}"
        played.says("initialize", begun(said, 100), begun(said, 195))
    else:
        played.says("initialize", begun("", 100, reasoning=thought), begun(answer, 190, reasoning=thought))
    async with run.app().run_test(size=(80, 40)) as pilot:
        await pilot.press("5")
        text = pilot.app.screen.query_one(LiveText)
        await until(pilot, lambda: len(text.lines) == 4 and "Let me see." in shown(text), 20)
        assert all("italic" in str(line.text.spans[0].style) for line in text.lines[1:])
        await pilot.press("escape", "space")
        await until(pilot, lambda: "kernel_class" in shown(text), 20)
        assert text.lines[0].text.plain == "▸ thinking: 720 characters"
        assert "Let me see." not in shown(text)


async def test_the_lines_of_a_kernel_are_lines_while_it_is_written(run, played, until):
    kernel = written('uint i = 0;\nif (i < N) {\n\tputs("\\\\");\n}')
    played.answers.clear()
    played.says("write", begun(kernel, len(json.dumps(kernel)) // 4 - 10))
    async with run.app().run_test(size=(80, 40)) as pilot:
        await pilot.press("5")
        text = pilot.app.screen.query_one(LiveText)
        await until(pilot, lambda: "}" in [line.text.plain[:1] for line in text.lines], 20)
        assert [line.text.plain for line in text.lines if "puts(" in line.text.plain] == ['    puts("\\\\");']


@SIZES
async def test_esc_breaks_off_what_a_model_is_asked_in_every_tab(run, played, until, size):
    played.says("initialize", begun(first("a", "b", "c"), 9), first("a", "b", "c"))
    played.says("propose", *[begun({"options": [], "followed": ""}, 3)] * 5)

    def outcomes() -> list[str]:
        replied = [event for event in run.tree.events if event.kind == "replied"]
        return [event["outcome"] for event in replied if event["role"] == "selector"]

    async with run.app().run_test(size=size) as pilot:
        await until(pilot, lambda: run.engine and run.engine.asking and run.engine.asking[0].role == "selector", 10)
        await pilot.press("escape")
        await until(pilot, lambda: run.tree.paused, 10)
        assert "selector chooser; it cost ~" in told(pilot)
        await pilot.press("space")
        await until(pilot, lambda: len(run.tree.options) == 4, 10)
        assert outcomes() == ["cancelled", "used"]
        for number, tab in enumerate("12345", 1):
            await pilot.press(tab, "m", "enter")
            await until(pilot, lambda: bool(run.engine.asking), 10)
            await pilot.press("escape")
            await until(pilot, lambda: not run.engine.asking, 10)
            assert outcomes()[2:] == ["cancelled"] * number
        assert not run.tree.paused
        assert "did not work" not in "".join(note.title for note in pilot.app._notifications)
        # Esc has its old meaning again.
        await pilot.press("enter", "escape")
        assert pilot.app.screen.options.has_focus


async def test_esc_in_a_dialog_takes_back_what_the_dialog_asked(run, played, until):
    played.says("initialize", first("a", "b", "c"))
    played.says("redirect", begun(REDIRECTED, 9))
    async with run.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        await pilot.press(*"no atomics", "enter")
        await until(pilot, lambda: bool(run.engine.asking), 10)
        await pilot.press("escape")
        await until(pilot, lambda: not run.engine.asking, 10)
        assert isinstance(pilot.app.screen, ExplorerScreen)
        assert [event["outcome"] for event in run.tree.events if event.kind == "replied"][-1] == "cancelled"
        assert not run.tree.paused
        assert run.tree[run.tree.root].guidance == ()


async def test_words_that_a_quit_found_unanswered_are_kept_and_followed_by_a_resume(run, played, until):
    played.says("initialize", first("a", "b", "c"))
    played.says("redirect", begun(REDIRECTED, 9))
    async with run.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        await pilot.press(*"no atomics", "enter")
        await until(pilot, lambda: bool(run.engine.asking), 10)
        await pilot.press("ctrl+q")
        await pilot.pause()
    store, tree = resume_state(run.session)
    assert tree[tree.root].guidance == ("no atomics",)
    played.says("redirect", REDIRECTED)
    run.engine = None
    start = AtExplorer(run.config, run.session, store=store, tree=tree)
    async with KsearchApp(start, open_engine=run.open_engine).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) > 4, 10)
        assert run.tree[run.tree.root].guidance == ("no atomics",)


async def test_a_question_that_a_kill_lost_is_said_with_its_tokens_when_the_run_goes_on(run, played, until):
    played.says("initialize", first("a", "b", "c"))
    async with run.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
    events = read_session(run.session).events
    killed = next(event for event in events if event.kind == "sent" and event["call"] == "initialize")
    run.session.unlink()
    with SessionStore.create(run.session, run.config) as store:
        for event in events[: killed.seq]:
            store.append(event)
    played.says("initialize", first("a", "b", "c"))
    run.engine = None
    store, tree = resume_state(run.session)
    start = AtExplorer(run.config, run.session, store=store, tree=tree)
    async with KsearchApp(start, open_engine=run.open_engine).run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
        lost = f"selector chooser was being asked when the program was killed: ~{count(killed['prompt_tokens'])} tokens"
        await until(pilot, lambda: lost in told(pilot))
        await pilot.press("5")
        await until(pilot, lambda: "lost: the program was killed while it was asked" in log(pilot), 5)


@SIZES
async def test_a_malformed_reply_is_listed_with_the_exact_error_and_opens_as_it_came(run, played, until, size):
    wrong = {**first("a", "b", "c"), "status": "passed"}
    played.says("initialize", wrong, first("a", "b", "c"))
    async with run.app().run_test(size=size) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
        [event] = [event for event in run.tree.events if event.data.get("outcome") == "malformed"]
        assert "status" in event["note"]
        await until(pilot, lambda: f"malformed: {' '.join(event['note'].split())}" in log(pilot), 10)
        await pilot.press("enter", "home")
        for _ in range(2):
            await pilot.press("right_square_bracket")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplyScreen))
        text = pilot.app.screen.query_one("#reply-text", LineView)
        await until(pilot, lambda: len(text.lines) > 5, 10)
        assert json.dumps(wrong) in "".join(line.text.plain for line in text.lines)
        assert "malformed" in shown(text)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ExplorerScreen)


async def test_a_reply_in_full_shows_a_kernel_with_its_lines(run, played, until):
    async with run.app().run_test(size=(100, 30)) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: "wrote 'the first kernel'" in log(pilot), 10)
        await pilot.press("enter", "home", "right_square_bracket", "o")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplyScreen))
        text = pilot.app.screen.query_one("#reply-text", LineView)
        await until(pilot, lambda: "source: SUM" in shown(text), 10)
        assert text.lines[0].text.plain == "generator: writer, answered as small at vllm"


async def test_a_wait_is_said_with_who_asked_for_it(run, played, until):
    played.says("initialize", error(429, "slow down", headers={"retry-after": "12"}), first("a", "b", "c"))
    waited = asyncio.Event()
    run.proposer = proposer(played.server, sleep=lambda seconds: waited.wait())
    async with run.app().run_test(size=(160, 50)) as pilot:
        await pilot.press("5")
        head = pilot.app.screen.query_one("#live-head", Static)
        await until(pilot, lambda: "Waiting 12 s, as it asks" in str(head.content), 10)
        status = pilot.app.screen.query_one(StatusLine)
        await until(pilot, lambda: "Waiting 12 s, as it asks" in str(status.content), 10)
        waited.set()
        await until(pilot, lambda: len(run.tree.options) == 4, 10)


async def test_what_stops_every_question_pauses_the_run_and_says_why(run, played, until):
    played.server.key = "another"
    async with run.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: run.engine is not None and run.tree.paused, 10)
        await until(pilot, lambda: "refuses the key" in told(pilot), 10)
        assert "space goes on" in told(pilot)


@SIZES
async def test_a_limit_that_ends_within_a_question_is_said_on_the_screen(run, played, until, size):
    large = {"prompt_tokens": 15_000, "completion_tokens": 4000}
    run.config = replace(run.config, tokens=21_000)
    played.answers.clear()
    played.says("write", reply(written("SUM", passes=[]), usage=large))
    async with run.app().run_test(size=size) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: run.engine is not None and run.tree.stopped, 20)
        assert run.tree.stopped.endswith("; the reply was not sent back")
        await until(pilot, lambda: f"the run stopped: {run.tree.stopped}" in log(pilot), 10)
        assert run.tree.stopped in told(pilot)
        assert played.calls == ["write"]
        status = pilot.app.screen.query_one(StatusLine)
        await until(pilot, lambda: "19k/21k tokens" in str(status.content) or size[0] == 80, 10)


async def test_tokens_that_nobody_counted_are_marked_on_the_screen(run, played, until):
    played.says("initialize", begun(first("a", "b", "c"), 9), first("a", "b", "c"))
    async with run.app().run_test(size=(160, 50)) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: run.engine and run.engine.asking and run.engine.asking[0].role == "selector", 10)
        await until(pilot, lambda: '{"kernel' in shown(pilot.app.screen.query_one(LiveText)), 10)
        await pilot.press("escape", "space")
        await until(pilot, lambda: len(run.tree.options) == 4, 10)
        [broken_off] = [e for e in run.tree.events if e.data.get("outcome") == "cancelled"]
        tokens = f"{broken_off['prompt_tokens']} + {broken_off['completion_tokens']} tokens"
        await until(pilot, lambda: f"'the first kernel': about {tokens}" in log(pilot), 10)
        status = pilot.app.screen.query_one(StatusLine)
        await until(pilot, lambda: re.search(r"~[\d.]+k tokens", str(status.content)) and not run.engine.asking, 10)


async def test_how_the_guidance_was_followed_is_told_at_once_and_stays_with_the_option(run, played, until):
    played.says("initialize", first("a", "b", "c"))
    played.says("redirect", REDIRECTED)
    async with run.app().run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 4, 10)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RedirectDialog))
        pilot.app.screen.query_one(Input).value = "no atomics"
        await pilot.press("enter")
        await until(pilot, lambda: "How it was followed: Every option is free of atomics." in told(pilot), 10)
        page = pilot.app.screen.query_one(OptionTab)
        await until(pilot, lambda: "Every option is free of atomics." in shown(page), 10)
        [line] = [line for line in page.lines if "free of atomics" in line.text.plain]
        assert line.gutter.plain.strip() == "followed"


@SIZES
async def test_hostile_text_of_a_model_is_only_text_wherever_it_is_shown(run, played, until, size):
    hostile = [option(HOSTILE, why=HOSTILE)]
    families = [{"name": name, "options": hostile} for name in ("x", "y", HOSTILE)]
    played.says("initialize", begun(HOSTILE * 9, 60), first("", families=families), first("a", "b", "c"))
    async with run.app().run_test(size=size) as pilot:
        await pilot.press("5")
        text = pilot.app.screen.query_one(LiveText)
        await until(pilot, lambda: "right to left" in shown(text).replace("\n", ""), 20)
        live = shown(text)
        await pilot.press("escape", "space")
        await until(pilot, lambda: len(run.tree.options) == 4, 20)
        await pilot.press("enter", "home", *["right_square_bracket"] * 3, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplyScreen))
        full = pilot.app.screen.query_one("#reply-text", LineView)
        await until(pilot, lambda: "red" in shown(full), 10)
        for seen in (live, log_of(pilot), shown(full)):
            assert "[/b][red]" in seen.replace("\n", "")
            assert not set(seen) & set("\x1b\x07\u202e\u202c\u2067\u200f\u061c")


def log_of(pilot) -> str:
    return shown(pilot.app.screen_stack[-2].query_one(ActivityLog))


async def test_a_key_is_painted_within_a_tenth_of_a_second_while_200_pieces_come_in_each_second(run, played, until):
    played.says("initialize", first(*(f"option {number}" for number in range(6))))
    text = json.dumps({"options": [], "followed": "x" * 40_000})
    played.says("propose", reply(text, between=0.005, pieces=4))
    async with run.app().run_test(size=(160, 50)) as pilot:
        await until(pilot, lambda: run.engine is not None and len(run.tree.options) == 7, 10)
        await pilot.press("5", "m")
        live = pilot.app.screen.query_one(LiveText)
        await until(pilot, lambda: "xxxx" in shown(live), 10)
        began = time.monotonic()
        found = []
        for key in "jjjjjkkkkk" * 2:
            at, pressed = pilot.app.screen.options.cursor_line, time.monotonic()
            pilot.app.simulate_key(key)
            while pilot.app.screen.options.cursor_line == at:
                await asyncio.sleep(0)
            await pilot._wait_for_screen()
            found.append(time.monotonic() - pressed)
            await asyncio.sleep(0.04)
        assert statistics.median(found) < 0.1
        [growing] = pilot.app.screen._under_way.replies
        assert len(growing.pieces) > 60 * (time.monotonic() - began), "pieces came in meanwhile"
        await pilot.press("escape")
