"""The page of a report: it says what was found, stands alone, and keeps whatever text is in it from acting."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch_tui.inert import one_line
from ksearch_tui.report.page import render
from search.config import RunConfig
from search.kernels.program import Program
from search.problems.definition import load_problem
from search.tree import Tree
from sessions.examples import example_names, example_path
from sessions.report import gather
from sessions.store import Session, read_session
from tests.sessions.all_kinds import (
    a_root_that_failed,
    all_kinds,
    in_session,
    program,
    proposed,
    replied,
)
from tests.sessions.conftest import passed

VOID = frozenset({"meta"})
PARTS = {"html", "head", "title", "style", "body", "main", "header", "footer", "section", "h1", "h2", "h3", "p"}
LISTS = {"ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td"}
WITHIN = {"div", "span", "b", "strong", "small", "q", "code", "pre", "time"}
DRAWN = {"figure", "figcaption", "svg", "path", "rect", "text"}
ELEMENTS = VOID | PARTS | LISTS | WITHIN | DRAWN
# What stands apart on the page without a blank in its text.
APART = frozenset({"td", "th", "dt", "dd", "small"})
POINTS_OUTSIDE = frozenset({"href", "xlink:href", "src", "srcset", "action", "background", "data", "poster", "style"})
NEVER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]")

HOSTILE = (
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- ]]> --> &lt;b&gt; {{ 7 * 7 }} {% raw %}",
    "\x1b[31mred\x00\x07 \u202eback\u2066wards\ufffe",
    "</pre></code></table></svg>javascript:alert(1)",
)


class Page(HTMLParser):
    """A page as read: its elements with their attributes, and its text; what doesn't fit together is an error."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.style = self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += " " if tag in APART else ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.text += " " if tag in APART else ""

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            self.style += data
        else:
            self.text += data

    @property
    def words(self) -> str:
        """The text with every run of white space as one blank."""
        return " ".join(self.text.split())

    def attributes(self, name: str) -> list[str]:
        """Return the values of an attribute, in order."""
        return [value for _, attributes in self.elements if (value := attributes.get(name))]


def read(page: str) -> Page:
    """Return the page as read, after checking that nothing in it can act and nothing is fetched for it."""
    assert not NEVER.search(page)
    read = Page(page)
    for tag, attributes in read.elements:
        assert tag in ELEMENTS
        assert not [name for name in attributes if name.startswith("on") or name in POINTS_OUTSIDE]
    assert "url(" not in read.style and "@import" not in read.style
    return read


def page_of(session: Session, with_problem: bool = False) -> Page:
    problem = load_problem(session.config.problem) if with_problem else None
    return read(render(gather("a.ksearch.toml", session, problem)))


ALL = in_session(all_kinds())


def test_the_policy_allows_the_page_s_own_style_and_nothing_else() -> None:
    page = page_of(ALL)
    [policy] = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    # The policy holds from where it stands on: before the style and all else.
    assert [tag for tag, _ in page.elements][:4] == ["html", "head", "meta", "meta"]


def test_the_page_is_for_light_and_dark_and_for_paper() -> None:
    style = page_of(ALL).style
    assert "@media screen and (prefers-color-scheme: dark)" in style and "@media print" in style


@pytest.mark.parametrize("name", example_names())
def test_an_example_s_page_says_what_was_found(name: str) -> None:
    session = read_session(example_path(name))
    tree = Tree.fold(session.events)
    page = page_of(session, with_problem=True)
    best = tree.best()
    assert best is not None and best.passing is not None
    problem = load_problem(session.config.problem)
    for said in (
        problem.title,
        f"{tree.speedup(best.id):.2f}× the naive kernel",
        f"{best.passing.roofline_fraction:.0%} of the roofline",
        "modelled for apple-m3-max",
        "A time of MLX’s own call was not recorded.",
        f"The run stopped: {tree.stopped}.",
        *(time.workload for time in best.passing.times),
        *(option.title for option in tree.options.values()),
        *(" ".join(option.why.split()) for option in tree.options.values()),
    ):
        assert one_line(said) in page.words
    assert page.words.count("★ best") == 1
    assert f"of which {sum(not e.passed for o in tree.options.values() for e in o.evaluations)} failed" in page.words


def test_the_best_kernel_stands_there_line_by_line_with_its_launch() -> None:
    session = read_session(example_path("selective_scan"))
    report = gather("a", session)
    text = read(render(report)).text
    assert report.kernel is not None
    assert f"program {report.kernel.sha256[:12]}" in text
    for step in report.kernel.passes:
        numbered = "\n".join(f"{number}{line}" for number, line in enumerate(step.source.split("\n"), start=1))
        assert numbered.replace(" ", "") in text.replace(" ", "")
        assert f"grid {' × '.join(step.grid)} threads · threadgroup {' × '.join(step.threadgroup)}" in text
    assert [buffer.name in text for buffer in report.kernel.buffers] == [True] * len(report.kernel.buffers)


def test_metal_s_words_have_their_colours() -> None:
    page = page_of(in_session(one_program(program("device half4* p; simd_sum(x); // why\n"))))
    kinds = [attributes.get("class") for tag, attributes in page.elements if tag == "span"]
    assert {"k", "kt", "nb", "c1"} <= set(kinds)


def clock(kind: str, outcome: str = "") -> str:
    """Return when the first event of this kind, and with this outcome if it has one, happened: hh:mm:ss."""
    return next(e.at[11:19] for e in ALL.events if e.kind == kind and e.data.get("outcome", "") in ("", outcome))


def test_the_story_of_a_run_by_a_person_and_models_is_told() -> None:
    words = page_of(ALL).words
    for said in (
        "llm at mine, context full",
        "2 by autopilot, 4 by a person (2 against the policy)",
        "360 of 10k",
        "$0.02 of $2.00 without 1 question with no price known",
        "of 30 min",
        f"redirected by a person at {clock('redirected')}: guidance (the policy would have taken “third title”)",
        "policy why",
        "pinned by a person",
        "edited by a person",
        "added by a person",
        "asked back: question (one / two)",
        "warning: note",
        "how the guidance was followed: followed",
        "given up: failed reason",
        "race (pass 'rows', line 2, workload 'tall'): race message",
        "2 second title attempt 1 m2 race (",
        f"generator m2 was asked to write 'second title' {clock('replied', 'malformed')}: malformed, malformed note",
        "rate limited, limit note",
        "m1 proposes 1 found 1.33× of predicted, off by 1.33×",
        "1 prediction, of which 0 promised more than was found",
        "the proposer asked back: question of the run",
        "“second title” is no longer pruned",
        "error: note of the run",
        "the engine paused the run: pause reason",
        "a person switched autopilot on",
        "the run stopped: stop reason",
    ):
        assert said in words, said


def test_measured_times_have_their_interval_their_gpu_and_mlx_beside_them() -> None:
    happenings = one_program(program("a"))
    happenings += [proposed("o2", "o1", "fast", ""), *passed("o2", program("b"), {"tall": 0.002})]
    for _, fields in (each for each in happenings if each[0] == "evaluated"):
        fields |= {"time_kind": "measured", "on": "Apple M3 Max", "baseline_seconds": [0.003], "bound_by": [""]}
        fields |= {"low": [0.0019], "high": [0.0021], "terms": [""]}
    words = page_of(in_session(happenings, RunConfig("softmax", "metal", "apple-m3-max"))).words
    assert "measured on Apple M3 Max 2.00× the naive kernel 1.50× MLX’s own call 50% of the roofline" in words
    assert "2 ms 1.9 ms … 2.1 ms (95 %)" in words
    assert "bounds it" not in words and "modelled" not in words


def test_times_of_two_kinds_are_told_apart() -> None:
    happenings = one_program(program("a"))
    happenings += [proposed("o2", "o1", "fast", ""), *passed("o2", program("b"), {"tall": 0.001})]
    happenings[-1][1].update(time_kind="measured", on="Apple M3 Max")
    words = page_of(in_session(happenings)).words
    assert "Times of this run are modelled for apple-m3-max, and measured on Apple M3 Max." in words
    assert "1.00× the naive kernel" in words


def one_program(of: Program) -> list[tuple[str, dict[str, object]]]:
    return [proposed("o1", "", "root", ""), *passed("o1", of, {"tall": 0.004})]


def test_a_run_without_a_result_says_so() -> None:
    assert "The run ended before it had a first program." in page_of(in_session([])).words
    proposed_only = page_of(in_session([proposed("o1", "", "root", "")])).words
    assert "No kernel has passed." in proposed_only and "The run has not stopped" in proposed_only


def test_a_first_program_that_failed_is_the_outcome() -> None:
    happenings = [
        *a_root_that_failed(),
        ("stopped", {"reason": "there is nothing to build on"}),
    ]
    words = page_of(in_session(happenings)).words
    assert "No kernel passed: the first program failed. “root” was given up: no other way" in words
    assert "Evaluations that failed: 1 of 1" in words


def test_a_torn_or_broken_off_session_says_so() -> None:
    whole = in_session(all_kinds()[:-2])
    torn = Session(whole.config, whole.events, "the last 10 bytes are cut", whole.created)
    words = page_of(torn).words
    assert "The run is paused and has not stopped" in words
    assert "The last event of the file was cut short" in words
    running = page_of(in_session(all_kinds()[:10])).words
    assert "it was broken off, or it is still going on" in running


def test_the_same_file_gives_the_same_page() -> None:
    pages = {render(gather("a", read_session(example_path("attention")))) for _ in range(2)}
    assert len(pages) == 1


def test_nothing_of_this_machine_is_on_the_page(tmp_path: Path) -> None:
    config = RunConfig(str(tmp_path / "mine"), proposer="llm", endpoint=str(tmp_path / "gpubox.toml"))
    page = render(gather("a", in_session(all_kinds(), config)))
    assert str(tmp_path) not in page
    assert "mine" in page and "gpubox" in page


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_in_every_place_is_shown_and_does_nothing(hostile: str) -> None:
    said: list[str] = []

    def say(text: str) -> str:
        said.append(f"{text} {hostile}")
        return said[-1]

    happenings = all_kinds(say)
    happenings.insert(-1, replied(say("role"), say("model"), say("outcome"), note=say("why not"), endpoint=say("at")))
    page = page_of(in_session(happenings))
    # Kernels that lost, answers, and why something was rated or broken off are not on the page.
    hidden = ("an answer", "mends", "cancelled", "rated", "// ", "outcome")
    for text in said:
        assert text.startswith(hidden) or one_line(text).removesuffix("…") in page.words, text
    assert f"// fast kernel {hostile}".split("\n")[0].replace("\x1b", "␛")[:14] in page.text
    # The same elements as with harmless text: nothing of it became one.
    harmless = all_kinds()
    harmless.insert(-1, replied("role", "model", "outcome", note="why not", endpoint="at"))

    def shape(page: Page) -> list[str]:
        # Colours split the kernel's text differently.
        return [tag for tag, _ in page.elements if tag != "span"]

    assert shape(page) == shape(page_of(in_session(harmless)))


WORDS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8"), max_size=60))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_text_survives_and_stays_text(data: st.DataObject) -> None:
    titles: list[str] = []

    def say(text: str) -> str:
        word = data.draw(WORDS)
        if text.endswith("title"):
            titles.append(f"{text} {word}")
            return titles[-1]
        return f"{text} {word}"

    page = page_of(in_session(all_kinds(say)))
    for title in titles:
        assert one_line(title) in page.words
