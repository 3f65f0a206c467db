"""Shapes and strides: where the elements of a view and of a result lie in memory. Strides count
elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


def unpack_sizes(sizes: tuple) -> Sequence[int]:
    """Return the sizes as a sequence. They were given one by one, or as one sequence."""
    return sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) else sizes


def resolve_shape(shape: tuple, count: int) -> tuple[int, ...]:
    """Return the shape of ``count`` elements, with the size in place of -1."""
    sizes = tuple(operator.index(size) for size in unpack_sizes(shape))
    known_product = math.prod(size for size in sizes if size != -1)
    free = sizes.count(-1)
    if free > 1:
        raise RuntimeError("only one dimension can be inferred")
    if known_product != count if not free else (not known_product or count % known_product):
        raise RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {count}")
    return tuple(count // known_product if size == -1 else size for size in sizes)


def pack(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps."""
    stride, packed = 1, []
    for size in reversed(shape):
        packed.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(packed))


def _is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Return True if the elements lie in memory without gaps, in any order of the dimensions."""
    reach = 1
    for step, size in sorted(
        (step, size) for step, size in zip(stride, shape, strict=True) if size != 1
    ):
        if step != reach:
            return False
        reach *= size
    return True


def find_view(
    old: tuple[int, ...], stride: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides that give memory of the old shape and strides the new shape; None if there
    are none."""
    if not math.prod(old):
        return stride if old == new else pack(new)
    if not old:
        return (1,) * len(new)
    strides, at = [0] * len(new), len(new) - 1
    # Of neighbouring dimensions that lie in memory as one: the innermost stride, the elements in
    # the old shape, those in the new shape.
    base, run, covered = stride[-1], 1, 1
    for k in range(len(old) - 1, -1, -1):
        run *= old[k]
        if k == 0 or (old[k - 1] != 1 and stride[k - 1] != run * base):
            while at >= 0 and (covered < run or new[at] == 1):
                strides[at] = covered * base
                covered *= new[at]
                at -= 1
            if covered != run:
                return None
            if k:
                base, run, covered = stride[k - 1], 1, 1
    return tuple(strides) if at == -1 else None


def check_broadcast(first: Sequence[int], second: Sequence[int]) -> None:
    """Check that two shapes can be broadcast together.

    Raises: RuntimeError if they cannot.
    """
    rank = max(len(first), len(second))
    for k, (a, b) in enumerate(zip(reversed(first), reversed(second), strict=False), start=1):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton"
                f" dimension {rank - k}"
            )


def arrange(shape: tuple[int, ...], operands: Sequence[Layout]) -> tuple[int, ...]:
    """Return the strides of a result of this shape. Its dimensions have the same order in memory as
    those of the operands.

    Source: aten/src/ATen/TensorIterator.cpp of PyTorch, reorder_dimensions.
    """
    if len(set(operands)) == 1 and operands[0][0] == shape and _is_dense(*operands[0]):
        return operands[0][1]
    # per operand, a stride for each dimension of the result; 0 if the operand is repeated along the
    # dimension
    steps = []
    for sizes, strides in operands:
        new = len(shape) - len(sizes)
        pairs = zip(sizes, strides, shape[new:], strict=True)
        steps.append(
            [0] * new + [0 if size == 1 != whole else stride for size, stride, whole in pairs]
        )

    def compare(first: int, second: int) -> int:
        """Return 1 if the second dimension lies further inside than the first, -1 if the first
        does, 0 if nothing says so."""
        for step in steps:
            if step[first] and step[second]:
                if step[first] != step[second]:
                    return -1 if step[first] < step[second] else 1
                if shape[first] > shape[second]:
                    return 1
        return 0

    order = list(reversed(range(len(shape))))  # the innermost dimension first
    for k in range(1, len(order)):
        at = k
        for before in reversed(range(k)):
            comparison = compare(order[before], order[at])
            if comparison > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif comparison < 0:
                break
    order.reverse()
    packed = dict(zip(order, pack([shape[k] for k in order]), strict=True))
    return tuple(packed[k] for k in range(len(shape)))
