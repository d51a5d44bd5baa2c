"""Record the example session of selective_scan: ``python -m scripts.record_selective_scan [-o FILE]``.

A whole search on the simulator, with a model whose replies were written by hand (tests/fixtures/selective_scan), asked
over HTTP as any other would be. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from ksearch_tui.narration import narrate
from search.config import RunConfig
from search.evaluation.client import EvaluatorProcess
from search.events import Event
from sessions.store import SessionStore
from tests.model_server.by_hand import MODEL, ByHand, engine_by_hand, run_alone
from tests.model_server.server import ModelServer

ROOT = Path(__file__).parent.parent
REPLIES = ROOT / "tests" / "fixtures" / "selective_scan"
EXAMPLE = ROOT / "sessions" / "examples" / "selective_scan.ksearch.toml"
CONFIG = RunConfig(problem="selective_scan", proposer="llm", budget=40, endpoint=MODEL, selector=MODEL, generator=MODEL)


async def record(path: Path) -> None:
    """Search under autopilot until nothing is left to try; then ``path`` is what was recorded."""
    replies, partial = ByHand(REPLIES), path.with_name(f"{path.name}.part")
    partial.unlink(missing_ok=True)
    with ModelServer() as server, SessionStore.create(partial, CONFIG) as store:
        evaluator = EvaluatorProcess(CONFIG.problem, CONFIG.device, CONFIG.profile)
        engine = engine_by_hand(CONFIG, server, replies, evaluator)

        def tell(event: Event) -> None:
            if sentence := narrate(event, engine.tree):
                print(sentence, file=sys.stderr, flush=True)

        engine.subscribe(store.append)
        engine.subscribe(tell)
        await run_alone(engine)
    partial.replace(path)
    if replies.left:
        print(f"nobody asked for {sorted(replies.left)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=EXAMPLE, metavar="FILE")
    asyncio.run(record(parser.parse_args().output))


if __name__ == "__main__":
    main()
