"""Where host code goes one way or another: conditions, switches, loops.

Where the host chooses between launches, or between kernels to launch, and the condition isn't known:

- a condition that can be required (``d == 64``, ``n % 4 == 0``, ``n <= 1024``) is: the plan goes that way, holds for
  those sizes, and says so in ``choices``;
- else a condition whose opposite can be required is treated alike;
- else the plan goes the last way, the general one, and asks.

An answer ``value.NAME`` fixes a size beforehand, ``branch.LINE`` (``then`` or ``else``) the way an ``if`` goes,
``rounds.LINE`` how many rounds of a loop are taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import choose, truth
from translator.cuda_source import shorten, span_of, walk
from translator.host_calls import follow_calls
from translator.host_checks import keep_check, require
from translator.host_expressions import read_value
from translator.host_launches import MOST_STEPS, launched_kernels, launches_within
from translator.host_records import joined_records
from translator.host_values import Null, Pointer, Record, Unread, Value, split_path
from translator.launch_plan import Question
from translator.mistakes import CudaInputError
from translator.requirements import requirements
from translator.sizes import Size, UnreadableSize, name

if TYPE_CHECKING:
    from translator.host_code import HostCode


PERHAPS = "perhaps"
"""What ``leaving`` is where a condition that isn't known decides whether a round of a loop is left."""

MOST_ROUNDS = 64
"""How many rounds of a loop with launches are followed."""

_LEAVES = re.compile(
    r"\s*(?:\{\s*(?:[^;{}]*;\s*){0,4})?(?:return|throw|(?:std::)?(?:exit|abort|terminate)\s*\(|goto)\b"
)


def follow_if(host: HostCode, node: Node) -> bool:
    condition = node.child_by_field_name("condition")
    yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    follow_calls(host, condition) if condition is not None else None
    chosen = _known_way(host, node, condition)
    if chosen is not None:
        return host.run(yes if chosen else no)
    if not launches_within(host, yes) and not launches_within(host, no):
        if _LEAVES.match(host.of(yes)):
            keep_check(host, condition, False)
            return host.run(no)
        follow_both(host, condition, yes, no)
        return False
    return host.run(yes if choose_way(host, node, condition, yes, no) else no)


def way_of(host: HostCode, node: Node, condition: Node | None) -> bool:
    """Return whether a condition holds by which one launch is made or another; see above where that isn't known."""
    known = _known_way(host, node, condition)
    return _choose(host, node, condition, (True, False)) if known is None else known


def _known_way(host: HostCode, node: Node, condition: Node | None) -> bool | None:
    key = f"branch.{span_of(node).line}"
    answer = host.answers.get(key)
    if answer not in (None, "then", "else"):
        raise CudaInputError(f"'{key}={answer}' can't be used: answer then or else")
    return condition_holds(host, condition) if answer is None else answer == "then"


def condition_holds(host: HostCode, condition: Node | None) -> bool | None:
    """Return whether a condition holds; device arrays that are passed are there."""
    while condition is not None and condition.type in ("condition_clause", "parenthesized_expression"):
        condition = condition.child_by_field_name("value") or next(iter(condition.named_children), None)
    if condition is None:
        return None
    if condition.type == "unary_expression" and condition.children[0].type == "!":
        inner = condition_holds(host, condition.child_by_field_name("argument"))
        return None if inner is None else not inner
    if condition.type == "binary_expression" and condition.children[1].type in ("==", "!="):
        sides = [read_value(host, condition.child_by_field_name(side)) for side in ("left", "right")]
        if any(isinstance(side, Null) for side in sides) and any(isinstance(side, Pointer | Null) for side in sides):
            same = all(isinstance(side, Null) for side in sides)
            return same == (condition.children[1].type == "==")
    if condition.type == "binary_expression" and condition.children[1].type in ("&&", "||"):
        both = condition.children[1].type == "&&"
        truths = [condition_holds(host, condition.child_by_field_name(side)) for side in ("left", "right")]
        if (not both) in truths:
            return not both
        return both if None not in truths else None
    if condition.type == "identifier" and isinstance(found := host.env.get(host.of(condition)), Pointer | Null):
        return isinstance(found, Pointer)
    if re.search(r"cudaSuccess|cudaError", host.of(condition)):
        return "==" in host.of(condition)
    return truth(condition, host)


def choose_way(host: HostCode, node: Node, condition: Node | None, yes: Node | None, no: Node | None) -> bool:
    """Choose between launches whose condition isn't known."""
    if host.wanted is not None:
        here, there = (host.wanted in launched_kernels(host, branch, frozenset()) for branch in (yes, no))
        if here != there:
            found = requirements(condition, host, here)
            if found is not None:
                require(host, found)
            return here
    ways = [way for way, branch in ((True, yes), (False, no)) if launches_within(host, branch)]
    if ways == [True] and yes is not None and any(n.type == "return_statement" for n in walk(yes)):
        ways.append(False)  # what follows is for the other sizes
    return _choose(host, node, condition, ways)


def _choose(host: HostCode, node: Node, condition: Node | None, ways: Sequence[bool]) -> bool:
    """Choose between the ways that launch: one that can be required, else the last one, and ask."""
    for way in ways:
        found = requirements(condition, host, way)
        if found is not None:
            require(host, found)
            if len(ways) > 1:
                note_choice(host, node, condition, way)
            return way
    if False in ways:
        line = span_of(node).line
        host.ask("launch", f"the host launches one way or another by '{shorten(host.of(condition), 60)}': the last way "
                  f"is taken; answer branch.{line} (then or else) to choose", node, f"branch.{line}")  # fmt: skip
        return False
    return True


def note_choice(host: HostCode, node: Node, condition: Node | None, way: bool) -> None:
    line = span_of(node).line
    said = "where" if way else "except where"
    other = "else" if way else "then"
    host.choices.append(Question("launch", f"this plan is for sizes {said} {shorten(host.of(condition), 60)}; answer "
                                 f"branch.{line} = {other} for the other way", span_of(node),
                                 f"branch.{line}"))  # fmt: skip


def follow_both(host: HostCode, condition: Node | None, yes: Node | None, no: Node | None) -> None:
    """Follow both branches and join what they leave behind."""
    before = dict(host.env)
    host.run(yes)
    after_yes, leaving = host.env, host.leaving
    host.env, host.leaving = dict(before), ""
    host.run(no)
    host.leaving = PERHAPS if leaving or host.leaving else ""
    for text in {*after_yes, *host.env}:
        a, b = after_yes.get(text), host.env.get(text)
        if a == b or a is None:
            continue
        if text in host.axes and isinstance(a, Size) and isinstance(b, Size) and name(text) in (a, b):
            example = (b if a == name(text) else a).constant
            if example is not None:
                host.given.setdefault(text, example)
                host.env[text] = name(text)
                continue
        host.env[text] = join(host, condition, before, text, a, b)


def join(
    host: HostCode, condition: Node | None, before: dict[str, Value], text: str, a: Value, b: Value | None
) -> Value:
    """Return what a variable is that two branches leave differently."""
    if isinstance(a, Record) and isinstance(b, Record) and (a.type, a.made) == (b.type, b.made):
        return joined_records(
            a, b, lambda path, one, other: join(host, condition, before, f"{text}.{path}", one, other)
        )
    try:
        if not (isinstance(a, Size) and isinstance(b, Size)):
            raise UnreadableSize("")
        scope = host.within(host.text)
        scope.env = before
        return choose(condition, a, b, scope)
    except UnreadableSize:
        where = span_of(condition) if condition is not None else span_of(host.source.root)
        return Unread(f"'{text}' depends on '{shorten(host.of(condition), 50)}'", where)


def follow_switch(host: HostCode, node: Node) -> bool:
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    selected = read_value(host, only_condition(host, condition))
    cases = [child for child in body.named_children if child.type == "case_statement"] if body is not None else []
    labels = [case.child_by_field_name("value") for case in cases]
    answer = host.answers.get(f"branch.{span_of(node).line}")
    taken: int | None = None
    for at, label in enumerate(labels):
        value = read_value(host, label) if label is not None else None
        known = isinstance(selected, Size) and isinstance(value, Size) and value == selected
        if known or (answer is not None and label is not None and host.of(label) == answer):
            taken = at
    constant = isinstance(selected, Size) and selected.constant is not None
    if taken is None and not constant and isinstance(selected, Size):
        for at, label in enumerate(labels):
            value = read_value(host, label) if label is not None else None
            if isinstance(value, Size) and value.constant is not None and case_launches(host, cases, at):
                taken = at
                require(host, [("equal", selected, value)])
                shown = ", ".join(host.of(other) for other in labels if other is not None)
                said = f"the host launches by {selected}: this plan is for {value} of {shown}"
                key = f"value.{selected}"
                host.choices.append(Question(str(selected), f"{said}; answer {key} for another", span_of(node), key))
                break
    if taken is None:
        taken = next((at for at, label in enumerate(labels) if label is None), None)
    for case in cases[taken:] if taken is not None else []:
        for child in case.named_children:
            if child == case.child_by_field_name("value") or not host.run(child):
                continue
            if host.leaving == "break":
                host.leaving = ""
                return False
            return True
    return False


def case_launches(host: HostCode, cases: Sequence[Node], at: int) -> bool:
    return launches_within(host, cases[at]) or (at + 1 < len(cases) and cases[at].named_child_count == 1)


def only_condition(host: HostCode, condition: Node | None) -> Node | None:
    return condition.child_by_field_name("value") if condition is not None else None


def follow_loop(host: HostCode, node: Node) -> bool:
    body = node.child_by_field_name("body")
    if not launches_within(host, body):
        forget_changed(host, node)
        return False
    initializer = node.child_by_field_name("initializer")
    counted = loop_counter(host, initializer)
    outer = host.env.get(counted)
    declared = initializer is not None and initializer.type == "declaration"
    if initializer is not None:
        host.run(initializer) if declared else host.run_expression(initializer)
    ended = follow_rounds(host, node, counted)
    host.leaving = ""
    if declared and outer is not None:
        host.env[counted] = outer
    return ended


def follow_rounds(host: HostCode, node: Node, counted: str) -> bool:
    """Follow the rounds of a loop with launches: as many as a person has answered, or all when their number is known;
    else one, and ask. Return whether the function ends in one.
    """
    body = node.child_by_field_name("body")
    condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
    key = f"rounds.{span_of(node).line}"
    unknown = (
        "how often the host launches in this loop depends on sizes or data, which a plan can't say: answer "
        f"{key}, how many rounds to take"
    )
    answer = host.answers.get(key)
    most = MOST_ROUNDS if answer is None else _answered_rounds(key, answer)
    counts = counted and not any(n.type == "identifier" and host.of(n) == counted for n in (walk(body) if body else ()))
    for rounds in range(most):
        if len(host.steps) >= MOST_STEPS:
            host.ask("launch", f"the host launches more than {MOST_STEPS} times: the first ones are taken", node)
            return False
        goes_on = True if answer is not None else truth(condition, host) if condition is not None else None
        if goes_on is None:
            host.ask("launch", unknown, node, key)
            return not rounds and host.run(body) and not host.leaving
        if not goes_on:
            return False
        before = dict(host.env)
        if host.run(body) and not host.leaving:
            return True
        if host.leaving == "break":
            return False
        if host.leaving == PERHAPS and answer is None:
            host.ask("launch", unknown, node, key)
            return False
        if counts and not rounds and answer is None and not _differs(before, host.env):
            host.choices.append(Question("launch", "the host repeats these launches unchanged: the plan has them once; "
                                         f"answer {key} for more rounds", span_of(node), key))  # fmt: skip
            return False
        host.leaving = ""
        if update is not None:
            host.run_expression(update)
    if answer is None:
        host.ask("launch", f"the host launches in a loop of more than {MOST_ROUNDS} rounds: the first ones are taken; "
                  f"answer {key}, how many rounds to take", node, key)  # fmt: skip
    return False


def _answered_rounds(key: str, answer: str) -> int:
    if not answer.isdecimal() or not 1 <= int(answer) <= MOST_STEPS:
        raise CudaInputError(f"'{key}={answer}' can't be used: answer a number of rounds, at most {MOST_STEPS}")
    return int(answer)


def _differs(before: dict[str, Value], after: dict[str, Value]) -> bool:
    """Whether a round has left something for the next one that it did not find itself, such as swapped pointers."""
    return any(
        after.get(text) != value and not (isinstance(value, Unread) and isinstance(after.get(text), Unread))
        for text, value in before.items()
    )


def loop_counter(host: HostCode, initializer: Node | None) -> str:
    if initializer is None:
        return ""
    if initializer.type == "assignment_expression":
        return host.of(initializer.child_by_field_name("left"))
    declarator = initializer.child_by_field_name("declarator")
    inner = declarator.child_by_field_name("declarator") if declarator is not None else None
    return host.of(inner)


def forget_changed(host: HostCode, node: Node) -> None:
    """Drop the values of what a loop changes."""
    for inner in walk(node):
        if inner.type in ("assignment_expression", "update_expression"):
            target = host.of(inner.child_by_field_name("left") or inner.child_by_field_name("argument"))
            unknown = Unread(f"'{target}' is computed in a loop", span_of(inner))
            if target in host.env:
                host.env[target] = unknown
            elif isinstance(record := host.env.get(split_path(target)[0]), Record):
                whole = re.split(r"[.\[]", split_path(target)[1])[0]
                for path, _ in record.members:
                    if re.split(r"[.\[]", path)[0] == whole:
                        record = record.with_member(path, unknown)
                host.env[split_path(target)[0]] = record if record.made is None else unknown
