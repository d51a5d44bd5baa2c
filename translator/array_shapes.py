"""The shape of an array that is one pointer in CUDA: from a comment beside it, else from the strides of its accesses.

An access at ``row * cols + c`` has the strides ``cols`` and 1; strides that divide one another, and the number of
elements, are the extents of a shape from the inside out. Where they don't, the array stays flat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from translator.extents import is_variable
from translator.launch_comments import Remark, extent_of
from translator.sizes import ONE, Size, UnreadableSize, floordiv


def remarked_shape(extent: Size, remarks: Iterable[tuple[Remark, Mapping[str, Size]]]) -> tuple[Size, ...]:
    """Return the shape that a comment gives an array of ``extent`` elements, () when none does."""
    for remark, sizes in remarks:
        total, unknown = extent_of(remark.shape, sizes)
        if remark.shape and not unknown and total == extent:
            return tuple(extent_of([size], sizes)[0] for size in remark.shape)
    return ()


def strided_shape(extent: Size, offsets: Iterable[Size], item: Size) -> tuple[Size, ...]:
    """Return the shape that the accesses at ``offsets`` (bytes, elements of ``item`` bytes) show, () when none."""
    strides = {stride for offset in offsets for stride in _strides(offset, item)} - {ONE}
    whole = abs(extent.terms[0][1]) if len(extent.terms) == 1 else 1
    fitting = [stride for stride in strides if _fits(stride, extent, whole)]
    chain: list[Size] = []
    for stride in sorted(fitting, key=lambda size: sum(len(monomial) for monomial, _ in size.terms)):
        if chain and _ratio(stride, chain[-1]) is None:
            return ()
        chain.append(stride)
    return _extents([ONE, *chain, extent]) if chain else ()


def _extents(chain: Sequence[Size]) -> tuple[Size, ...]:
    ratios = [_ratio(outer, inner) for inner, outer in itertools.pairwise(chain)]
    found = [ratio for ratio in ratios if ratio is not None and ratio != ONE]
    return tuple(reversed(found))


def _fits(stride: Size, extent: Size, whole: int) -> bool:
    """Whether a stride may be a part of the extent; a number that stands for threads of a block is none."""
    return stride.terms[0][1] in (1, whole) and _ratio(extent, stride) not in (None, ONE)


def _strides(offset: Size, item: Size) -> list[Size]:
    """Return what each variable of an offset is multiplied by, in elements."""
    found = []
    for monomial, factor in offset.terms:
        variables = [atom for atom in monomial if is_variable(atom)]
        if len(variables) != 1:
            continue
        rest = tuple(atom for atom in monomial if not is_variable(atom))
        stride = _ratio(Size(((rest, abs(factor)),)), item)
        if stride is not None and stride.terms:
            found.append(stride)
    return found


def _ratio(outer: Size, inner: Size) -> Size | None:
    """Return ``outer`` by ``inner`` when that leaves no rest."""
    try:
        ratio = floordiv(outer, inner)
        return ratio if ratio * inner == outer else None
    except UnreadableSize:
        return None
