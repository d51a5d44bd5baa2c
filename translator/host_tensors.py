"""Tensors of PyTorch and vectors of the host: their elements and dimensions, as axes until a variable names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tree_sitter import Node

from translator.c_integers import read_size
from translator.cuda_source import span_of
from translator.host_expressions import SAME_TENSOR, only_value, size_or_reason
from translator.host_values import HostArray, Tensor, Value
from translator.launch_plan import Question
from translator.sizes import Operation, Size, UnreadableSize, floordiv, name, number, product

if TYPE_CHECKING:
    from translator.host_code import HostCode


_NEW_TENSORS = re.compile(
    r"(?:torch|at)::(?P<what>empty|zeros|ones|full|empty_like|zeros_like|ones_like)\Z|(?P<of>\w+)\.new_(?P<new>empty|zeros)\Z"
)


def makes_tensor(host: HostCode, value: Node | None) -> bool:
    if value is None:
        return False
    node = only_value(host, value)
    if node.type != "call_expression":
        return node.type == "identifier" and isinstance(host.env.get(host.of(node)), Tensor)
    function = node.child_by_field_name("function")
    called = "".join(host.of(function).split())
    object_, _, method = called.rpartition(".")
    return bool(_NEW_TENSORS.match(called)) or (method in SAME_TENSOR and isinstance(host.env.get(object_), Tensor))


def new_tensor(host: HostCode, text: str, value: Node | None) -> Value:
    node = only_value(host, value) if value is not None else None
    if node is None:
        host.arrays.setdefault(text, HostArray(text, "", local=True))
        return Tensor(text)
    if node.type == "identifier":
        return host.env[host.of(node)]
    arguments = node.child_by_field_name("arguments")
    called = "".join(host.of(node.child_by_field_name("function")).split())
    match = _NEW_TENSORS.match(called)
    if match is None:
        return host.env.get(called.rpartition(".")[0], Tensor(text))
    what = match["what"] or match["new"]
    array = host.arrays.setdefault(text, HostArray(text, "", local=True))
    array.zeroed = what.startswith("zeros")
    first = arguments.named_children[0] if arguments is not None and arguments.named_child_count else None
    if first is not None and what.endswith("_like"):
        like = host.env.get(host.of(first))
        if isinstance(like, Tensor):
            host.numels[text] = numel(host, like.array)
            host.likes[text] = like.array
            host.arrays[text].type = host.arrays[like.array].type
    elif first is not None and first.type == "initializer_list":
        with suppress(UnreadableSize):
            sizes = [read_size(child, host) for child in first.named_children]
            host.sizes.update({(text, at): size for at, size in enumerate(sizes)})
            host.dimensions[text] = len(sizes)
            host.numels[text] = array.items = product(sizes)
    return Tensor(text)


def rank_of(host: HostCode, array: str) -> int:
    """Return how many dimensions a tensor has, where it is made with them or the host checks that; else 0."""
    return host.dimensions.get(array) or host.dimensions.get(host.likes.get(array, array), 0)


def stride(host: HostCode, array: str, at: int, node: Node) -> Size:
    """Return how many elements lie between neighbours along a dimension, the tensor being contiguous."""
    like = host.likes.get(array, array)
    key = f"value.{array}_stride{at if at >= 0 else f'_last{-at}'}"
    if key in host.answers:
        return host.answer_size(host.answers[key])
    rank = rank_of(host, array) or _rank_of_indices(host, like)
    if not rank and at < -2:
        rank = -at
    if not rank and at >= 0:
        raise UnreadableSize(f"how many dimensions '{like}' has isn't known: answer {key}")
    count = f"have {rank} dimensions and be" if rank else "be"
    said = f"'{like}' is taken to {count} contiguous, as MLX passes arrays; value.{like}_stride0 and its like say else"
    host.choices.append(Question(like, said, span_of(node)))
    after = range(at + 1, 0) if at < 0 else range(at + 1 - rank, 0)
    return product([size_of(host, like, each) for each in after])


def _rank_of_indices(host: HostCode, array: str) -> int:
    """Return how many dimensions a tensor must have for what the host asks of it; 0 where it may as well have more."""
    found = re.findall(rf"\b{array}\s*\.\s*(size|stride)\s*\(\s*(-?\d+)\s*\)", host.source.text)
    sizes = {int(at) for what, at in found if what == "size"}
    strides = {int(at) for what, at in found if what == "stride"}
    last = max(sizes | strides, default=-1)
    if last < 0 or (re.search(rf"\b{array}\s*\.\s*numel\b", host.source.text) and min(sizes, default=0) >= 0):
        return 0
    return last + 1 if last in sizes else last + 2


def size_of(host: HostCode, array: str, at: int) -> Size:
    """Return a tensor's extent along a dimension; from the end where it is negative and the rank isn't known."""
    array, rank = host.likes.get(array, array), rank_of(host, array)
    at += rank if at < 0 else 0
    if at < 0 and (known := _rank_of_indices(host, array)) and (array, at + known) in host.sizes:
        at += known
    key = (array, at)
    if key not in host.sizes:
        host.sizes[key] = host.axis(f"{array}_size{at if at >= 0 else f'_last{-at}' if at < -1 else '_last'}")
    return host.sizes[key]


def numel(host: HostCode, array: str) -> Size:
    if array not in host.numels:
        if count := rank_of(host, array):
            return product([size_of(host, array, at) for at in range(count)])
        host.numels[array] = host.axis(f"{array}_numel")
    return host.numels[array]


def dimension(host: HostCode, object_: str, at: int) -> Size:
    tensor = host.env.get(object_)
    if not isinstance(tensor, Tensor):
        raise UnreadableSize(f"the source doesn't say how large '{object_}' is")
    return size_of(host, tensor.array, at)


def tensor_size(host: HostCode, object_: str, method: str, arguments: Sequence[Node]) -> Size:
    tensor = host.env[object_]
    assert isinstance(tensor, Tensor)
    if method == "size" and len(arguments) == 1:
        at = read_size(arguments[0], host).constant
        if at is not None:
            return dimension(host, object_, at)
    if method == "stride" and len(arguments) == 1:
        along = read_size(arguments[0], host).constant
        if along is not None:
            return stride(host, tensor.array, along, arguments[0])
    if method in ("numel", "size") and not arguments:
        return numel(host, tensor.array)
    if method in ("dim", "ndimension") and (rank := rank_of(host, tensor.array)):
        return number(rank)
    if method == "element_size" and host.arrays[tensor.array].type:
        return host.type_bytes(host.arrays[tensor.array].type)
    raise UnreadableSize(f"the source doesn't say what '{object_}.{method}' gives")


def new_vector(host: HostCode, text: str, item: str, value: Node | None) -> None:
    device = "device_vector" in host.declared[text]
    array = HostArray(text, item.strip(), local=True)
    first = value.named_children[0] if value is not None and value.named_child_count else None
    size = size_or_reason(host, first) if first is not None else None
    if isinstance(size, Size):
        host.numels[text] = size
        array.items = size if device else None
        array.zeroed = value is not None and value.named_child_count < 3
    array.copied_out = device
    host.arrays[text] = array
    host.env[text] = Tensor(text)


def rename_size(host: HostCode, text: str, found: Size, value: Node) -> None:
    """Call an unnamed size of a tensor by the variable that first holds it."""
    for size in (*host.sizes.values(), *host.numels.values()):
        if halve_size(host, text, found, size):
            return
        if size == found and str(found) in host.axes and str(found) not in host.declared and text != str(found):
            old = str(found)
            host.axes[host.axes.index(old)] = text
            host._put({old: name(text)})
            host.env[text] = name(text)
            return


def halve_size(host: HostCode, text: str, found: Size, size: Size) -> bool:
    """Take ``d = x.size(1) / 2`` as the axis, and the size as twice that: other sizes would leave a rest."""
    atom = next(iter(found.atoms))
    old = str(size)
    if not isinstance(atom, Operation) or atom.kind != "//" or old not in host.axes or host._named(old):
        return False
    if atom.operands[0] != size or found != floordiv(*atom.operands) or text in host.axes:
        return False
    host.axes[host.axes.index(old)] = text
    host._put({old: atom.operands[1] * name(text)})
    host.env[text] = name(text)
    return True
