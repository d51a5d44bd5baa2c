"""Whether a reply speaks of options that are there, in a state in which it may change them: refused whole if not."""

from __future__ import annotations

from collections.abc import Iterable

from search.option import Option
from search.proposers.llm.replies import RatingReply, RedirectReply, RefineReply
from search.proposers.llm.reply_text import MalformedReply
from search.tree import OPEN, Tree

MOST_NAMED = 12


def check_refinement(reply: RefineReply, tree: Tree) -> None:
    """Raise `MalformedReply` unless ratings, splits and closes are of options that are still open, and what is
    inserted stands under options that passed; none of them in a pruned branch."""
    waiting = {option.id for option in tree.options.values() if option.status in OPEN and not tree.is_pruned(option.id)}
    passed = {option.id for option in tree.passed()}
    decided = {option.id for option in map(tree.__getitem__, sorted(waiting)) if option.pinned or option.approved_by}
    faults = [
        f"{place} is {option}; {_no('open option', waiting)}"
        for place, option in _of_open_options(reply)
        if option not in waiting
    ]
    faults += [
        f"{place} is {option}; a person or the run has decided on it, so it can be rated only"
        for place, option in _of_open_options(reply)
        if option in decided and not place.startswith("ratings")
    ]
    faults += [
        f"inserts[{number}].under is {insert.under}; {_no('option that has passed', passed)}"
        for number, insert in enumerate(reply.inserts)
        if insert.under not in passed
    ]
    _refuse(faults)


def still_to_do(reply: RefineReply, tree: Tree) -> RefineReply:
    """Return what is left of a refinement that was begun: not what is as it says, nor what is about a pruned option."""

    def waits(option: str) -> bool:
        return option not in tree.options or not tree.is_pruned(option)

    def differs(rating: RatingReply) -> bool:
        node = tree.options.get(rating.option)
        return node is None or (node.rating, node.confidence) != (rating.rating, rating.confidence)

    left = {
        "ratings": tuple(each for each in reply.ratings if waits(each.option) and differs(each)),
        "splits": tuple(each for each in reply.splits if waits(each.option)),
        "closes": tuple(each for each in reply.closes if waits(each.option)),
    }
    return reply.model_copy(update=left)


def still_ruled_out(reply: RedirectReply, tree: Tree) -> RedirectReply:
    """Return a redirection that was begun without the options that it has ruled out already."""
    left = tuple(each for each in reply.avoid if each not in tree.options or not tree.is_pruned(each))
    return reply.model_copy(update={"avoid": left})


def check_redirection(reply: RedirectReply, tree: Tree, option: str) -> None:
    """Raise `MalformedReply` unless ``avoid`` names open options under ``option``."""
    below = {node.id for node in _open_below(tree, option)}
    _refuse(
        [
            f"avoid[{number}] is {avoided}; {_no(f'open option under {option}', below)}"
            for number, avoided in enumerate(reply.avoid)
            if avoided not in below
        ]
    )


def _open_below(tree: Tree, option: str) -> Iterable[Option]:
    return (node for node in tree.subtree(option) if node.status in OPEN and node.id != option)


def _of_open_options(reply: RefineReply) -> Iterable[tuple[str, str]]:
    for kind in ("ratings", "splits", "closes"):
        for number, entry in enumerate(getattr(reply, kind)):
            yield f"{kind}[{number}].option", entry.option


def _no(what: str, known: set[str]) -> str:
    names = sorted(known, key=lambda name: (len(name), name))
    if not names:
        return f"there is no {what}"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"no {what} has that id (there is {', '.join(names[:MOST_NAMED])}{more})"


def _refuse(faults: list[str]) -> None:
    if faults:
        raise MalformedReply(" ".join(f"{fault}." for fault in faults))
