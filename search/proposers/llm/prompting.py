"""The questions that a search asks of its two models, each put together from the parts of `prompt_parts`.

What seldom changes stands first, so that an endpoint that caches prompts can use it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from search.evaluation.record import Failure
from search.kernels.program import Program
from search.proposers.llm.asking import Ask, Part, Role
from search.proposers.llm.program_replies import ProgramReply
from search.proposers.llm.prompt_parts import (
    Setting,
    contract_part,
    failure_part,
    filled,
    guidance_part,
    malformed_part,
    option_part,
    problem_part,
    program_part,
    reference_parts,
    task_part,
    timing_part,
    tree_part,
)
from search.proposers.llm.replies import InitializeReply, ProposeReply, RedirectReply, RefineReply
from search.proposers.llm.reply_schema import schema_of
from translator.briefing import tokens

REPLIES: Mapping[str, type[BaseModel]] = {
    "initialize": InitializeReply,
    "propose": ProposeReply,
    "redirect": RedirectReply,
    "refine": RefineReply,
    "write": ProgramReply,
    "repair": ProgramReply,
    "improve": ProgramReply,
}


@dataclass(frozen=True)
class Shortened:
    """A question made shorter, and what went, in words for a person."""

    ask: Ask
    told: str


# -- the model that chooses -------------------------------------------------------------------------------------------


def ask_initialize(setting: Setting) -> Ask:
    """Ask for the kernel's class, its bottlenecks and the first families of options, under the root if there is one."""
    return _to_selector("initialize", setting, setting.tree.root)


def ask_propose(setting: Setting, option: str) -> Ask:
    """Ask for new options under ``option``."""
    return _to_selector("propose", setting, option, option=option)


def ask_redirect(setting: Setting, option: str, guidance: str) -> Ask:
    """Ask for options under ``option`` that follow ``guidance``, or for a question."""
    return _to_selector("redirect", setting, option, guidance, option=option)


def ask_refine(setting: Setting, option: str) -> Ask:
    """Ask what the result of ``option`` teaches about the rest of the tree."""
    return _to_selector("refine", setting, option, option=option)


def _to_selector(call: str, setting: Setting, at: str, guidance: str = "", **values: object) -> Ask:
    tree = setting.tree
    parts = [problem_part(setting), *reference_parts(setting)]
    if at:
        node = tree[at]
        if node.program:
            parts.append(program_part(tree.program(node.program), node.id, needed=False))
        parts += [*timing_part(setting, node), tree_part(setting, at)]
    parts += [*guidance_part(setting, at, guidance), task_part(call, **values)]
    return _ask(Role.SELECTOR, call, at, parts)


# -- the model that writes --------------------------------------------------------------------------------------------


def ask_write(setting: Setting, option: str) -> Ask:
    """Ask for the program of ``option``, built on that of its parent."""
    tree, node = setting.tree, setting.tree[option]
    code = []
    if node.parent:
        above = tree[node.parent]
        code = [program_part(tree.program(above.program), above.id, needed=True), *timing_part(setting, above)]
        change = f"the program of {above.id} above, with the change that the option describes and no other"
    else:
        change = "plain and correct first; everything is measured against it"
    return _to_generator("write", setting, option, code, change=change)


def ask_repair(setting: Setting, option: str, program: Program, failure: Failure) -> Ask:
    """Ask for ``program`` mended after ``failure``."""
    code = [program_part(program, f"{option}, which failed", needed=True), failure_part(setting, program, failure)]
    return _to_generator("repair", setting, option, code, failure)


def ask_improve(setting: Setting, option: str) -> Ask:
    """Ask for a faster program of ``option``, which has passed."""
    node = setting.tree[option]
    program = setting.tree.program(node.program)
    code = [program_part(program, node.id, needed=True), *timing_part(setting, node)]
    return _to_generator("improve", setting, option, code)


def _to_generator(
    call: str, setting: Setting, option: str, code: Sequence[Part], failure: Failure | None = None, **values: object
) -> Ask:
    guidance = guidance_part(setting, option)
    followed = ', and a line "Followed:" with how you followed what the person asks for' if guidance else ""
    parts = [
        problem_part(setting),
        contract_part(setting),
        *reference_parts(setting),
        tree_part(setting, option),
        *code,
        option_part(setting.tree[option], failure),
        *guidance,
        task_part(call, form=filled("form", followed=followed), **values),
    ]
    return replace(_ask(Role.GENERATOR, call, option, parts), plain_form=filled("plain_form"))


# -- asking again -----------------------------------------------------------------------------------------------------


def ask_again(ask: Ask, reply: str, fault: str) -> Ask:
    """Ask the same once more, with what was wrong with the last ``reply``."""
    return _with_parts(ask, (*ask.parts, malformed_part(reply, fault)))


def shorter(ask: Ask, most_tokens: int = 0) -> Shortened | None:
    """Return the question one step shorter, or as many as bring it to ``most_tokens`` if that is given.

    None when nothing can go any more. The steps are those of `search.proposers.llm.prompt_parts`.
    """
    short, gone = ask, dict[str, str]()
    while not gone or (most_tokens and prompt_tokens(short) > most_tokens):
        able = [part for part in short.parts if part.shorter]
        if not able:
            break
        part = min(able, key=lambda part: part.priority)
        gone[part.name] = "shortened" if part.shorter[0] else "left out"
        less = replace(part, text=part.shorter[0], shorter=part.shorter[1:])
        short = _with_parts(short, tuple(less if other is part else other for other in short.parts))
    if not gone:
        return None
    return Shortened(short, ", ".join(f"{name} {what}" for name, what in gone.items()))


def prompt_tokens(ask: Ask) -> int:
    """Return about how many tokens the question is; rather too many than too few."""
    return tokens(ask.system) + tokens(ask.user)


def _ask(role: Role, call: str, option: str, parts: Sequence[Part]) -> Ask:
    system = filled(f"system_{role.value}", data=filled("data"))
    schema: dict[str, Any] = schema_of(REPLIES[call])
    return _with_parts(Ask(role, call, option, system, "", f"{call}_reply", schema), tuple(parts))


def _with_parts(ask: Ask, parts: tuple[Part, ...]) -> Ask:
    return replace(ask, user="\n\n".join(part.text for part in parts if part.text), parts=parts)
