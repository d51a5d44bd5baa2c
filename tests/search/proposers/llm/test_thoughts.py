"""What a model thinks is shown, counted and kept out of its answer, however an endpoint sends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from search.proposers.llm.thoughts import Thoughts
from search.tree import Tree
from tests.model_server.scripted import Scripted, reply
from tests.model_server.server import ModelServer
from tests.search.proposers.llm.asked import ANSWER, Client, Reader, ask
from tests.search.proposers.llm.playing import Played, proposer, run_through, written

ANSWERED = json.dumps(ANSWER)
THOUGHT = "A tile saves reads. " * 30


def parted(text: str, size: int) -> tuple[str, str]:
    """What `Thoughts` makes of ``text`` in pieces of ``size``: all thoughts, and the answer."""
    thoughts = Thoughts()
    told = [thoughts.take(text[start : start + size]) for start in range(0, len(text), size)]
    told.append(thoughts.rest())
    return "".join(thought for thought, _ in told), "".join(answer for _, answer in told)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>hm</think>{}", "hm", "{}"),
        ("\n<Think>\nhm\n</THINK>\n\n{}", "\nhm\n", "\n\n{}"),
        ("<thinking>a < b </think> c</thinking>{}", "a < b </think> c", "{}"),
        ("<think>one</think>\n<reasoning>two</reasoning>{}", "onetwo", "{}"),
        ("<think>never ends </thin", "never ends </thin", ""),
        ("<thin ice>", "", "<thin ice>"),
        ("<thi", "", "<thi"),
        ("  ", "", "  "),
        ('{"why": "<think>not this</think>"}', "", '{"why": "<think>not this</think>"}'),
        ("hm</think>{}", "", "hm</think>{}"),
        ("<think>İİ</think>{}", "İİ", "{}"),
    ],
)
def test_thoughts_at_the_head_of_a_text_are_parted_from_it_however_it_is_cut(
    text: str, thought: str, answer: str, size: int
) -> None:
    assert parted(text, size) == (thought, answer)


HOW: list[dict[str, Any]] = [
    {"text": ANSWERED, "reasoning": THOUGHT},
    {"text": ANSWERED, "reasoning": THOUGHT, "reasoning_keys": ("reasoning",)},
    {"text": f"<think>{THOUGHT}</think>{ANSWERED}"},
]


@pytest.mark.parametrize("how", HOW, ids=["reasoning_content", "reasoning", "in the text"])
async def test_thoughts_stream_apart_and_count_as_tokens_of_the_reply(
    model_server: ModelServer, how: dict[str, Any]
) -> None:
    model_server.script([Scripted(usage=None, **how)])
    heard: list[str] = []
    reader = Reader(heard.append)
    answer = await Client(model_server.endpoint()).client.ask(ask(), reader)
    assert ("".join(reader.thoughts), "".join(heard)) == (THOUGHT, ANSWERED)
    assert len(reader.thoughts) > 10
    assert (answer.text, answer.reasoning) == (ANSWERED, THOUGHT)
    assert answer.completion_tokens == -(-len(THOUGHT + ANSWERED) * 2 // 7)


@pytest.mark.parametrize("tags", [("<think>", "</think>"), ("", "</think>")], ids=["both tags", "only the second"])
async def test_a_local_model_that_thinks_in_its_text_is_understood(
    model_server: ModelServer, scripts: Any, tags: tuple[str, str]
) -> None:
    played = Played(model_server)
    begin, end = tags
    said = f"{begin}{THOUGHT}```json\n{{}}\n```{end}\n\n{json.dumps(written('mine'))}"
    played.says("write", reply(said))
    stage = await run_through(scripts.Stage(budget=1, proposer=proposer(model_server)))
    assert stage.evaluator.called == ["mine"]
    event = stage.last("replied")
    assert (event["outcome"], event["completion_tokens"]) == ("used", -(-len(said) // 4))
    kept = stage.tree.texts[event["text_sha256"]]
    # What a template opens can't be told from the answer before it ends, so it is kept as it came.
    assert (THOUGHT in kept) is not bool(begin)
    assert Tree.fold(stage.events) == stage.tree


@pytest.mark.parametrize("begin", ["<think>", ""], ids=["both tags", "only the second"])
async def test_a_malformed_reply_is_sent_back_without_what_was_thought_before_it(
    model_server: ModelServer, scripts: Any, begin: str
) -> None:
    played = Played(model_server)
    played.says("write", reply(f"{begin}{THOUGHT}</think>{json.dumps(written('mine', passes=[]))}"))
    await run_through(scripts.Stage(budget=1, proposer=proposer(model_server)))
    assert played.calls == ["write", "write"]
    assert '"passes": []' in played.prompt("write") and "A tile saves reads" not in played.prompt("write")


async def test_thoughts_alone_are_no_answer(model_server: ModelServer) -> None:
    model_server.script([reply(f"<think>{THOUGHT}</think>\n")] * 3)
    fault = await Client(model_server.endpoint()).fault()
    assert fault.kind == "empty" and "only reasoning, no reply" in str(fault)
    assert fault.spent.completion_tokens > 3 * len(THOUGHT) / 4
