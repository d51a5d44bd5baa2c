"""Variables that would outlast a thread, or be all threads' own: Metal has none of them but constants."""

from __future__ import annotations

import re

from search.devices.simulator.scopes import Item, items_in, scopes_in
from search.devices.simulator.tokens import Token, following, pairs

_TYPE = re.compile(
    r"auto|unsigned|signed|(?:bool|u?(?:char|short|int|long)|half|b?float)[234]?|packed_\w+|size_t|(?:u?int(?:8|16|32|64)"
    r"|b?float16)_t|atomic_\w+"
)
_NO_TYPE = frozenset({"const", "constexpr", "constant", "threadgroup", "struct", "union", "enum", "class", "typename"})
_MAY_STAND_BEFORE = frozenset({"static", "inline", "volatile", "metal", "::"})


def lasting_variable(tokens: list[Token], *, whole: bool) -> tuple[str, int] | None:
    """Return the first variable that lasts: its name and line.

    Judged are ``static`` ones and, of a ``whole`` text, those outside of functions whose type is one of Metal's.
    """
    begins = [at for at, token in enumerate(tokens) if token.text == "static" and not token.directive]
    if whole:
        partner = pairs(tokens)
        outside = list(items_in(tokens, partner, 0, len(tokens)))
        for within_class, items in scopes_in(tokens, partner, 0, len(tokens)):
            outside += [] if within_class else items
        begins += [item.begin for item in outside if isinstance(item, Item)]
    for at in sorted(begins):
        if (name := _declared(tokens, at)) is not None:
            return name.text, name.line
    return None


def _declared(tokens: list[Token], at: int) -> Token | None:
    """Return the name of the variable that can change whose declaration begins at ``at``."""
    typed, static = False, False
    while at < len(tokens) and (tokens[at].text in _MAY_STAND_BEFORE or _TYPE.fullmatch(tokens[at].text)):
        static = static or tokens[at].text == "static"
        typed = typed or tokens[at].text not in _MAY_STAND_BEFORE
        at = following(tokens, at)
    after = following(tokens, at)
    if static and not typed and after < len(tokens) and _is_own_type(tokens[at]):
        at, after, typed = after, following(tokens, after), True
    named = typed and after < len(tokens) and tokens[at].kind == "name"
    return tokens[at] if named and tokens[after].text in ("=", ";", "[", "{", ",") else None


def _is_own_type(token: Token) -> bool:
    """Whether ``token`` may name a type of the text's own: in capitals it may be a macro that says constant."""
    return token.kind == "name" and token.text not in _NO_TYPE and not token.text.isupper()
