"""Make the README's pictures from a recorded session: ``python scripts/screenshots.py [SESSION] [-o FOLDER]``.

The session (a file, or a recorded example by name) is copied first; the explorer goes on with the copy but decides
nothing, so the pictures show the run as it was recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from ksearch_tui.app import Ending, KsearchApp
from ksearch_tui.headless.settings import session_file
from ksearch_tui.start_at import AtExplorer, AtReplay, AtStart
from ksearch_tui.widgets.line_view import LineView
from sessions.resume import resume_state
from sessions.store import read_session

SIZE = (132, 38)
IMAGES = Path(__file__).parent.parent / "docs" / "images"


async def explorer_pictures(copy: Path, folder: Path) -> None:
    """Save the explorer with each of its tabs, the cursor on the best option."""
    store, tree = resume_state(copy)
    app = KsearchApp(AtExplorer(store.config, copy, store=store, tree=tree))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("b")
        await save(pilot, folder, "explorer")
        await pilot.press("d")
        await save(pilot, folder, "diff")
        await pilot.press("3", "enter")
        await mapping_pictures(pilot, folder)
        await pilot.press("escape", "4")
        await save(pilot, folder, "timing")
        await pilot.press("q")


async def mapping_pictures(pilot: Pilot[Ending], folder: Path) -> None:
    """Save the Mapping tab where the option points: the translation, then the option's program beside the CUDA."""
    await pilot.press("v")
    for view in ("#mapping-cuda", "#mapping-metal"):
        while len(pilot.app.screen.query_one(view, LineView).lines) < 2:
            await pilot.pause(0.05)
    await pilot.press("z")
    await save(pilot, folder, "mapping")
    await pilot.press("t")
    await save(pilot, folder, "evidence")
    await pilot.press("t", "z")


async def replay_picture(path: Path, title: str, folder: Path) -> None:
    """Save the replay of the session, two thirds of the way."""
    session = read_session(path)
    app = KsearchApp(AtReplay(session.events, session.config, title, speed=4.0, paused=True))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press(*["right"] * (len(session.events) * 2 // 3), "b", "5")
        await save(pilot, folder, "replay")


async def start_picture(folder: Path) -> None:
    """Save the start screen, with no path of the machine that made it."""
    app = KsearchApp(AtStart())
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.3)
        app.screen.query_one("#session", Input).value = "~/kernels/attention.ksearch.toml"
        await save(pilot, folder, "start")


async def settled(pilot: Pilot[Ending]) -> None:
    """Wait until the run is open and shown, with no toast over it."""
    while pilot.app.screen.query_one("#options").cursor_line < 0:  # type: ignore[attr-defined]
        await pilot.pause(0.1)
    await pilot.pause(0.5)
    pilot.app.clear_notifications()


async def save(pilot: Pilot[Ending], folder: Path, name: str) -> None:
    """Save what is on the screen as ``name``.svg."""
    await pilot.pause(0.3)
    pilot.app.save_screenshot(str(folder / f"{name}.svg"))
    print(folder / f"{name}.svg")


def main() -> None:
    """Make every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", nargs="?", default="attention", help="a session file or an example's name")
    parser.add_argument("-o", "--output", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args()
    path = session_file(options.session)
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / path.name
        shutil.copy(path, copy)
        # The start screen lists the sessions in this folder: none of the person's who makes the pictures.
        os.environ["XDG_DATA_HOME"] = temporary
        asyncio.run(explorer_pictures(copy, options.output))
        asyncio.run(replay_picture(path, path.name.removesuffix(".ksearch.toml"), options.output))
        asyncio.run(start_picture(options.output))


if __name__ == "__main__":
    main()
