"""The functions of a text: definitions, lambdas among them, and declarations, found on tokens."""

from __future__ import annotations

from dataclasses import dataclass

from search.devices.simulator.tokens import Token, following, pairs, preceding

_AFTER_PARAMETERS = frozenset({"const", "volatile", "noexcept", "mutable"})
_NO_TYPE = frozenset(
    {"return", "else", "do", "case", "constexpr", "if", "while", "for", "switch", "sizeof", "requires"}
)
_SIGNS_OF_TYPES = frozenset({"::", "<", ">", ",", "*", "&"})
_QUALIFIERS = frozenset({"const", "volatile", "device", "constant", "thread", "threadgroup", "struct"})
_WORDS_OF_TYPES = frozenset({"bool", "char", "short", "int", "long", "float", "unsigned", "signed"})
_LONGEST_TYPE = 24  # tokens of a type after ``->``


@dataclass(frozen=True)
class Function:
    """A definition, or with ``body`` -1 a declaration, by indices of tokens; ``name`` is empty for lambdas.

    ``opened`` is -1 where a lambda has no parameter list; ``special`` is a template's specialization.
    """

    name: str
    at: int
    opened: int
    closed: int
    body: int
    end: int
    special: bool = False

    @property
    def parameters(self) -> range:
        """Where its parameters are."""
        return range(self.opened, self.closed) if self.opened >= 0 else range(0)


def parameter_types(tokens: list[Token], function: Function) -> tuple[str, ...]:
    """Return the type of each parameter as it is written, without names and defaults: what tells overloads apart."""
    if function.opened < 0 or following(tokens, function.opened) == function.closed:
        return ()
    depth = 0
    words: list[list[Token]] = [[]]
    for token in tokens[function.opened + 1 : function.closed]:
        depth += (token.text in ("(", "[", "{", "<")) - (token.text in (")", "]", "}", ">"))
        if token.text == "," and depth == 0:
            words.append([])
        elif not token.blank:
            words[-1].append(token)
    return tuple(" ".join(_type_of(parameter)) for parameter in words)


def _type_of(parameter: list[Token]) -> list[str]:
    """Return the words of a parameter up to its default, without its name where it has one."""
    texts = [token.text for token in parameter]
    end = texts.index("=") if "=" in texts else len(texts)
    begin = end - 1
    while begin > 0 and parameter[begin].kind != "name":
        begin -= 1  # an array's extent
    named = parameter[begin].kind == "name" and texts[begin] not in _WORDS_OF_TYPES and _is_type(parameter[:begin])
    return texts[:begin] + texts[begin + 1 : end] if named else texts[:end]


def _is_type(words: list[Token]) -> bool:
    return any(word.text == ">" or (word.kind == "name" and word.text not in _QUALIFIERS) for word in words)


def functions_in(tokens: list[Token]) -> list[Function]:
    """Return the definitions in ``tokens``, lambdas too, and the declarations that stand outside of all bodies."""
    partner = pairs(tokens)
    found: list[Function] = []
    covered = -1
    for index, token in enumerate(tokens):
        if token.directive or index not in partner:
            continue
        if token.text == "{" and (function := _function_at(tokens, index, partner)):
            found.append(function)
            covered = max(covered, function.end)
        elif token.text == "(" and index > covered and (function := _declaration_at(tokens, index, partner)):
            found.append(function)
    return found


def _function_at(tokens: list[Token], body: int, partner: dict[int, int]) -> Function | None:
    """Return the function whose body begins at ``body``, if it is one."""
    closed = preceding(tokens, body)
    for at in range(closed, max(-1, closed - _LONGEST_TYPE), -1):
        if tokens[at].text in (";", "{", "}", "(", ")"):
            break
        if tokens[at].text == "->":
            closed = preceding(tokens, at)
            break
    while closed >= 0 and tokens[closed].text in _AFTER_PARAMETERS:
        closed = preceding(tokens, closed)
    if closed < 0:
        return None
    if tokens[closed].text == "]" and _introduces_lambda(tokens, partner.get(closed, -1)):
        return Function("", partner[closed], -1, closed, body, partner[body])
    if tokens[closed].text != ")" or closed not in partner:
        return None
    opened = partner[closed]
    named = _name_before(tokens, opened, partner)
    return named and Function(named[0], named[1], opened, closed, body, partner[body], named[2])


def _declaration_at(tokens: list[Token], opened: int, partner: dict[int, int]) -> Function | None:
    """Return the function that is declared, and not defined, with the parameters at ``opened``."""
    after = following(tokens, partner[opened])
    while after < len(tokens) and tokens[after].text in _AFTER_PARAMETERS:
        after = following(tokens, after)
    if after >= len(tokens) or tokens[after].text != ";":
        return None
    named = _name_before(tokens, opened, partner)
    if not named or not named[0] or named[2]:
        return None
    before = tokens[declaration_begin(tokens, named[1]) : named[1]]
    if any(token.text in _NO_TYPE or (token.kind == "sign" and token.text not in _SIGNS_OF_TYPES) for token in before):
        return None  # an expression, such as ``sum += a[i] * exp(b);``
    return Function(named[0], named[1], opened, partner[opened], -1, -1)


def _name_before(tokens: list[Token], opened: int, partner: dict[int, int]) -> tuple[str, int, bool] | None:
    """Return the name of the function with parameters at ``opened``, where it is, and whether it is specialized."""
    at, special = preceding(tokens, opened), False
    if at >= 0 and tokens[at].text == ">":
        special = True
        at = preceding(tokens, _opening_angle(tokens, at))
    if at < 0:
        return None
    if tokens[at].text == "]":
        begin = partner.get(at, -1)
        return ("", begin, False) if _introduces_lambda(tokens, begin) else None
    if tokens[at].text == ")" and tokens[preceding(tokens, partner.get(at, 0))].text == "operator":
        return "", preceding(tokens, partner[at]), False
    if tokens[at].kind != "name" or tokens[at].text in _NO_TYPE:
        return None
    before = preceding(tokens, at)
    while before >= 0 and tokens[before].text == "::":
        before = preceding(tokens, before)
        if before >= 0 and tokens[before].text == ">":
            before = preceding(tokens, _opening_angle(tokens, before))
        before = preceding(tokens, before)
    if before < 0 or tokens[before].directive or tokens[before].text in _NO_TYPE:
        return None
    if tokens[before].kind != "name" and tokens[before].text not in (">", "*", "&"):
        return None
    begin = declaration_begin(tokens, at)
    words = [token.text for token in tokens[begin:at] if not token.blank][:3]
    return tokens[at].text, at, special or words == ["template", "<", ">"]


def declaration_begin(tokens: list[Token], at: int) -> int:
    while at > 0 and not tokens[at - 1].directive and tokens[at - 1].text not in (";", "{", "}"):
        at -= 1
    return at


def _introduces_lambda(tokens: list[Token], at: int) -> bool:
    """Whether the bracket at ``at`` begins a lambda: no array's extent, no index, no attribute."""
    if at < 0 or tokens[following(tokens, at)].text == "[":
        return False
    before = preceding(tokens, at)
    if before < 0:
        return True
    token = tokens[before]
    return token.text == "return" or (token.kind == "sign" and token.text not in (")", "]", "[", ">"))


def _opening_angle(tokens: list[Token], at: int) -> int:
    """Return where the ``<`` that ``>`` at ``at`` closes is, or -1."""
    depth = 0
    while at >= 0 and tokens[at].text not in (";", "{", "}"):
        depth += (tokens[at].text == ">") - (tokens[at].text == "<")
        if depth == 0:
            return at
        at -= 1
    return -1


def closing_angle(tokens: list[Token], at: int) -> int:
    """Return where the template arguments that begin at ``at`` end, or -1 when it is a comparison."""
    depth = 0
    while at < len(tokens) and tokens[at].text not in (";", "{", "}"):
        depth += (tokens[at].text == "<") - (tokens[at].text == ">")
        if depth == 0:
            return at
        at += 1
    return -1
