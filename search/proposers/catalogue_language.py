"""What a person means by a sentence such as "try double buffering first, no unrolling": pure, words in, keys out.

The sentence is cut into words; phrases that name an optimization are found in it, whatever their ending and with small
slips of the pen. A negation reaches as far as the list that follows it; what comes *first*, *last* or *after* something
else is put in its place. Nothing here knows which optimizations there are: phrases come in by key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 2000
ALIKE, SAME_STEM, SLIPS_FROM = 0.8, 0.95, 5

Phrases = Mapping[str, Sequence[str]]

_FILLERS = frozenset(["a", "an", "the", "of", "its", "their", "all", "some", "any", "please", "also", "both"])
_NOUN_NEGATIONS = frozenset(["no", "without", "nor", "neither", "non"])
_LIST_NEGATIONS = frozenset(
    ["not", "dont", "never", "avoid", "skip", "omit", "exclude", "except", "drop", "remove", "forget", "ignore", "stop"]
)
_VERBS = frozenset(
    ["try", "use", "do", "start", "begin", "go", "want", "prefer", "make", "give", "apply", "add", "keep"]
)
_TURNS = _VERBS | {"then", "first", "next", "now", "but", "instead", "just", "only", "focus"}
_FIRST = frozenset(["first", "firstly", "initially"])
_LAST = frozenset(["last", "lastly", "finally", "later", "afterwards", "eventually"])
_COMMAS, _STOPS = frozenset(","), frozenset(".;:!?")
_COPULAS = frozenset(["is", "are", ":"])
_JOINS = frozenset(["and", "or", "nor", "plus"])


@dataclass(frozen=True)
class Unsure:
    """Words that could mean several things: the keys, and the text with the words left open at ``{}``."""

    words: str
    keys: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Reading:
    """What a sentence asks for, in the order meant, what it rules out, and where it could mean several things."""

    wanted: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    unsure: tuple[Unsure, ...] = ()


@dataclass(frozen=True)
class _Item:
    """A word, a punctuation mark, or a phrase that was found (``keys``, more than one when it is not clear which)."""

    text: str
    keys: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


def read_guidance(text: str, phrases: Phrases) -> Reading:
    """Return what ``text`` means, with ``phrases`` naming each key; what it mentions twice counts as said last."""
    items = _find(text[:LONGEST], phrases)
    negated = _negations(items)
    wanted: list[tuple[int, str]] = []
    avoid: list[str] = []
    unsure: list[Unsure] = []
    for place, item in zip(_places(items), items, strict=True):
        if not item.keys:
            continue
        wanted = [(at, key) for at, key in wanted if key not in item.keys]
        if item in negated:
            avoid = [key for key in avoid if key not in item.keys] + list(item.keys)
            continue
        avoid = [key for key in avoid if key not in item.keys]
        if len(item.keys) > 1:
            words = text[item.start : item.end]
            braced = [part.replace("{", "{{").replace("}", "}}") for part in (text[: item.start], text[item.end :])]
            unsure.append(Unsure(words, item.keys, "{}".join(braced)))
        else:
            wanted.append((place, item.keys[0]))
    ordered = tuple(key for _, key in sorted(wanted, key=lambda pair: pair[0]))
    return Reading(ordered, tuple(avoid), tuple(unsure))


def read_all(texts: Iterable[str], phrases: Phrases) -> Reading:
    """Return what several sentences mean together, oldest first: a later one has the last word on what it mentions."""
    wanted: list[str] = []
    avoid: list[str] = []
    for text in texts:
        reading = read_guidance(text, phrases)
        mentioned = {*reading.wanted, *reading.avoid}
        wanted = [key for key in wanted if key not in mentioned] + list(reading.wanted)
        avoid = [key for key in avoid if key not in mentioned] + list(reading.avoid)
    return Reading(tuple(wanted), tuple(avoid))


# -- words and phrases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Word:
    text: str
    stem: str
    start: int
    end: int


def _words(text: str) -> list[_Word]:
    found = []
    pattern = r"\w+n['’]t\b|k\s*(?:/|&|and)\s*v\b|[a-z0-9]+|[.,;:!?]"
    for match in re.finditer(pattern, text.lower().replace("_", " ")):
        word = match.group()
        if re.fullmatch(r"\w+n['’]t", word):
            word = "dont"
        elif re.fullmatch(r"k\W*(?:and\s*)?v|k\s+and\s+v", word):
            word = "kv"
        if word not in _FILLERS:
            found.append(_Word(word, _stem(word), match.start(), match.end()))
    return found


def _stem(word: str) -> str:
    """Cut the ending: buffering, buffered, buffers become buffer; tile, tiles, tiling become til."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=4096)
def _phrase_words(phrase: str) -> tuple[_Word, ...]:
    return tuple(word for word in _words(phrase) if word.text[0].isalnum())


def _likeness(word: _Word, wanted: _Word) -> float:
    """Return 1 for the same word, less for another ending, less again for a slip in a longer word, else 0."""
    if word.text == wanted.text:
        return 1.0
    if word.stem == wanted.stem:
        return SAME_STEM
    if min(len(word.stem), len(wanted.stem)) < SLIPS_FROM:
        return 0.0
    return _similarity(word.stem, wanted.stem)


@lru_cache(maxsize=65536)
def _similarity(stem: str, wanted: str) -> float:
    ratio = difflib.SequenceMatcher(a=stem, b=wanted, autojunk=False).ratio()
    return ratio * SAME_STEM if ratio >= ALIKE else 0.0


def _find(text: str, phrases: Phrases) -> list[_Item]:
    """Cut ``text`` into items, taking the longest phrase at each place; equally good ones of several keys stay open."""
    words, items, at = _words(text), [], 0
    while at < len(words):
        length, keys = _best_phrase(words[at:], phrases)
        if keys:
            first, last = words[at], words[at + length - 1]
            items.append(_Item(text[first.start : last.end], keys, first.start, last.end))
            at += length
        else:
            items.append(_Item(words[at].text, (), words[at].start, words[at].end))
            at += 1
    return items


def _best_phrase(words: Sequence[_Word], phrases: Phrases) -> tuple[int, tuple[str, ...]]:
    best: tuple[int, float] = (0, 0.0)
    keys: list[str] = []
    for key, names in phrases.items():
        for name in names:
            phrase = _phrase_words(name)
            if not phrase or len(phrase) > len(words) or len(phrase) < best[0]:
                continue
            likeness = [_likeness(word, wanted) for word, wanted in zip(words, phrase, strict=False)]
            score = (len(phrase), sum(likeness)) if all(likeness) else (0, 0.0)
            if score > best:
                best, keys = score, [key]
            elif score == best and best[0] and key not in keys:
                keys.append(key)
    return best[0], tuple(keys)


# -- negation and order -----------------------------------------------------------------------------------------------


def _negations(items: Sequence[_Item]) -> set[_Item]:
    """Return the phrases that the sentence rules out."""
    negated: set[_Item] = set()
    reach, fresh = "", False  # "": none, "noun": joined by and/or, "list": over commas too; fresh: nothing negated yet
    for at, item in enumerate(items):
        word, before, following = item.text, items[:at], items[at + 1 :]
        if item.keys:
            if (reach and not _turned_after(following)) or _refused_after(following):
                negated.add(item)
            fresh = False
        elif word in _STOPS:
            reach, fresh = "", False
        elif word in _COMMAS:
            if reach and not _list_goes_on(reach, following):
                reach = ""
        elif (
            _looks_back(before)
            or _next_is(following, "only")
            or (word == "but" and at and before[-1].text == "anything")
        ):
            continue  # of what stands before it, or no negation ("not only", "anything but")
        elif word in _LIST_NEGATIONS or _starts_contrast(items, at):
            reach, fresh = "list" if word in _LIST_NEGATIONS else "noun", True
        elif word in _NOUN_NEGATIONS:
            reach, fresh = "noun", True
        elif word in _TURNS and (not fresh or word == "but"):
            reach = ""
    return negated


def _next_is(following: Sequence[_Item], word: str) -> bool:
    return bool(following) and following[0].text == word


def _looks_back(before: Sequence[_Item]) -> bool:
    """Whether a word after ``before`` says something of the phrase in front of it: "unrolling is not wanted"."""
    return len(before) > 1 and bool(before[-2].keys) and before[-1].text in _COPULAS


def _starts_contrast(items: Sequence[_Item], at: int) -> bool:
    """Whether *instead of*, *rather than*, *other than* or *anything but* starts here (articles and *of* are gone)."""
    word, following = items[at].text, items[at + 1 :]
    if word in ("rather", "other"):
        return _next_is(following, "than")
    if word == "anything":
        return _next_is(following, "but")
    return word == "instead" and bool(following) and bool(following[0].keys)


def _turned_after(following: Sequence[_Item]) -> bool:
    """Whether the phrase before ``following`` is put first after all: "no unrolling and double buffering first"."""
    return bool(following) and following[0].text in _FIRST


def _refused_after(following: Sequence[_Item]) -> bool:
    """Whether the phrase before ``following`` is refused after the fact: "unrolling is not wanted", "leave ... out"."""
    words = [item.text for item in following[:2]]
    if words[:1] == ["out"]:
        return True
    return len(words) == 2 and words[0] in _COPULAS and words[1] in ("not", "no", "out", "dont")


def _list_goes_on(reach: str, following: Sequence[_Item]) -> bool:
    """Whether the negation before a comma reaches over it.

    After *avoid*, *skip*, *don't* it does unless what follows turns to something else; after *no* or *without* only
    when a list is closed by *and* or *or*: "no unrolling, tiles or double buffering" against "no unrolling, tiles".
    """
    segment = []
    for item in following:
        if item.text in _COMMAS | _STOPS:
            break
        segment.append(item)
    turned = any(item.text in _TURNS for item in segment)
    if reach == "list":
        return not turned
    rest = [item for item in following if item.keys or item.text not in _COMMAS]
    listed = []
    for item in rest:
        if not item.keys and item.text not in _JOINS:
            break
        listed.append(item)
    return not turned and len(listed) == len(rest) and any(item.text in _JOINS for item in listed)


def _places(items: Sequence[_Item]) -> list[int]:
    """Return a rank for each item: its place in the sentence, moved for *first*, *last*, *after* and *before*."""
    ranks = [at * 10 for at in range(len(items))]
    many = len(items) * 10 + 10
    for at, item in enumerate(items):
        if not item.keys:
            continue
        after = items[at + 1].text if at + 1 < len(items) else ""
        before = items[at - 1].text if at else ""
        if after in _FIRST:
            ranks[at] -= many
        elif after in _LAST or before in _LAST:
            ranks[at] += many
        earlier = _nearest(items, reversed(range(at)))
        later = _nearest(items, range(at + 1, len(items)))
        if before == "after" and earlier is not None:
            ranks[at] = ranks[earlier] - 1
        elif before == "before" and earlier is None and later is not None:
            ranks[at] = ranks[later] + 1
    return ranks


def _nearest(items: Sequence[_Item], indices: Iterable[int]) -> int | None:
    """Return the nearest phrase among ``indices`` in the same sentence."""
    for at in indices:
        if items[at].text in _STOPS:
            return None
        if items[at].keys:
            return at
    return None
