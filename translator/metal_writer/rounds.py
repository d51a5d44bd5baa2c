"""Loops that begin elsewhere in each thread and end as much elsewhere, so that all threads go round equally often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer.dependence import Dependence

_COMPARISONS = ("<", "<=", ">", ">=")


def same_rounds(loop: Node, dependence: Dependence) -> bool:
    """Whether a loop such as ``for (int t = a + i; t < b + i; t += step)`` has the same rounds in all threads.

    What differs between threads must stand in the beginning and in the bound alike, and never change.
    """
    found = _counted(loop, dependence)
    if found is None:
        return False
    begin, bound, step = found
    texts = [Counter(_terms(node, dependence)) for node in (begin, bound)]
    both = texts[0] & texts[1]
    nodes = {key: node for side in (begin, bound) for key, node in _terms_with_nodes(side, dependence)}
    if any(not dependence.uniform(nodes[key]) for part in texts for key in part - both):
        return False
    return (step is None or dependence.uniform(step)) and all(_stays(nodes[key], dependence) for key in both)


def _counted(loop: Node, dependence: Dependence) -> tuple[Node, Node, Node | None] | None:
    """Return where a counter begins, what bounds it, and what it grows by (None for one), None for any other loop."""
    begin, condition = loop.child_by_field_name("initializer"), loop.child_by_field_name("condition")
    update = loop.child_by_field_name("update")
    if loop.type != "for_statement" or begin is None or condition is None or update is None:
        return None
    if condition.type != "binary_expression" or condition.children[1].type not in _COMPARISONS:
        return None
    counter, bound = condition.named_children[0], condition.named_children[-1]
    variable = dependence.reader.variable(counter) if counter.type == "identifier" else None
    if variable is None or variable.value is None or not _holds(begin, variable.value):
        return None
    changes = dependence.values(variable)
    if len(changes) != 2 or not any(node == changes[1] for node in walk(update)):
        return None
    if update.type == "assignment_expression" and update.children[1].type not in ("+=", "-="):
        return None
    return variable.value, bound, changes[1] if update.type == "assignment_expression" else None


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _terms(node: Node, dependence: Dependence) -> Iterator[tuple[str, str]]:
    for key, _ in _terms_with_nodes(node, dependence):
        yield key


def _terms_with_nodes(node: Node, dependence: Dependence, sign: str = "+") -> Iterator[tuple[tuple[str, str], Node]]:
    """Yield the terms of a sum with their signs."""
    if node.type == "parenthesized_expression" and node.named_child_count == 1:
        yield from _terms_with_nodes(node.named_children[0], dependence, sign)
    elif node.type == "binary_expression" and node.children[1].type in ("+", "-"):
        yield from _terms_with_nodes(node.named_children[0], dependence, sign)
        right = sign if node.children[1].type == "+" else "-" if sign == "+" else "+"
        yield from _terms_with_nodes(node.named_children[-1], dependence, right)
    else:
        yield (sign, "".join(dependence.reader.text(node).split())), node


def _stays(node: Node, dependence: Dependence) -> bool:
    """Whether a term is made of names that are given a value once, and numbers."""
    for inner in walk(node):
        if inner.type in ("call_expression", "subscript_expression", "pointer_expression", "update_expression"):
            return False
        variable = dependence.reader.variable(inner) if inner.type == "identifier" else None
        if variable is not None and len(dependence.values(variable)) > 1:
            return False
    return True
