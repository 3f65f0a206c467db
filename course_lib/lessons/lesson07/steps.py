"""The steps of lesson 07: four hunts, each for an input on which the page's kernel is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.lessons.steps.step import Slip, Step, WrongForm

_EPS = 1e-5
_BLOCK = 8  # of the page's launches
_COLUMNS = 32  # the longest row of the first hunt: the page prints it
_SHAPE = (3, 4)  # of x in the second hunt
_MAX_HALF = 65504
_MAX_ERROR = 0.05  # of an element of y in the third hunt
_MAX_INT = 2**31 - 1
_MAX_COLUMNS = 65536
_H100_BYTES = 80e9


def accept_length(columns: Any) -> str:
    """Return why the page's kernel is right on rows of this many columns; "" if it is wrong
    there."""
    if isinstance(columns, bool) or not isinstance(columns, int) or not 1 <= columns <= _COLUMNS:
        raise WrongForm(
            _("N has to be a whole number from 1 to {largest}.").format(largest=_COLUMNS)
        )
    if columns > _BLOCK:
        return ""
    past = _BLOCK - columns
    if past:
        return _(
            "There the kernel is right: {past} of its {lanes} lanes lie past the end, and add"
            " nothing to either sum."
        ).format(past=past, lanes=_BLOCK)
    return _("There the kernel is right: each lane has a column, and each column a lane.")


def accept_layout(x: Any) -> str:
    """Return why the page's kernel, which has one stride for x and a packed y, is right on this x;
    "" if it is wrong."""
    if (
        not isinstance(x, torch.Tensor)
        or tuple(x.shape) != _SHAPE
        or not x.is_floating_point()
        or not x.isfinite().all()
    ):
        raise WrongForm(
            _(
                "`x` should be a tensor of three rows and four columns, of finite floating-point"
                " numbers."
            )
        )
    (M, N), stride = _SHAPE, x.stride(0)
    memory = np.full(M * max(N, stride) + N, np.nan)
    for row in range(M):
        try:
            memory[row * stride : row * stride + N] = _normalise(
                x[0].as_strided((N,), (1,), x.storage_offset() + row * stride)
            )
        except RuntimeError:  # the kernel reads past the memory of x
            return ""
    right = np.array([_normalise(row) for row in x])
    if not np.allclose(memory[: M * N].reshape(M, N), right, atol=1e-3):
        return ""
    return _(
        "The rows of this `x` begin {stride} elements apart, as those of `y` do, and there the"
        " kernel is right."
    ).format(stride=stride)


def _has_column_stride(x: torch.Tensor) -> bool:
    return x.stride(1) != 1


def _normalise(row: torch.Tensor) -> np.ndarray:
    numbers = row.double().cpu().numpy()
    return (numbers - numbers.mean()) / np.sqrt(numbers.var() + _EPS)


def accept_row(row: Any) -> str:
    """Return why the page's kernel is right on these eight fp16 numbers; "" if it is wrong by more
    than a twentieth."""
    try:
        numbers = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise WrongForm(_("`row` should be a list of eight numbers.")) from None
    if numbers.shape != (_BLOCK,) or not (np.abs(numbers) <= _MAX_HALF).all():
        raise WrongForm(
            _(
                "`row` should be a list of eight numbers, each between -{largest} and {largest}."
            ).format(largest=_MAX_HALF)
        )
    half = numbers.astype(np.float16)
    off = _find_error(half, _sum_half(half))
    if not off <= _MAX_ERROR:
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        in_order = np.add.accumulate(half)[-1]
    tree = _(
        "From left to right the sum would fail; but a tree adds it up (lesson 06), lane i and lane"
        " i + 4 first, and there the large numbers meet their opposites."
    )
    fails_in_order = not _find_error(half, in_order) <= _MAX_ERROR
    return join_sentences(
        _(
            "There the kernel loses little: no element of `y` is off by more than {error:.1g}."
        ).format(error=off),
        tree if fails_in_order else "",
    )


def _find_error(half: np.ndarray, total: np.float16) -> float:
    """Return the largest error of the kernel's y, if ``total`` is its sum of the row."""
    exact = half.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        # a sum divided by a whole number is fp32, and so is all that follows
        deviation = exact - np.float32(total) / np.float32(_BLOCK)
        off = deviation / np.sqrt((deviation**2).mean() + _EPS)
        return float(np.abs(off - (exact - exact.mean()) / np.sqrt(exact.var() + _EPS)).max())


def _sum_half(numbers: np.ndarray) -> np.float16:
    """Return the sum in fp16, as a tree over the lanes adds it up."""
    with np.errstate(over="ignore", invalid="ignore"):
        while numbers.size > 1:
            half = numbers.size // 2
            numbers = numbers[:half] + numbers[half:]
    return numbers[0]


def accept_shape(shape: Any) -> str:
    """Return why the page's kernel finds the last row of a packed fp16 matrix of this shape; "" if
    it does not."""
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if len(sizes) != 2 or not all(type(size) is int and size >= 1 for size in sizes):
        raise WrongForm(
            _(
                "`shape` should be two whole numbers above 0, rows and columns, such as"
                " (4096, 8192)."
            )
        )
    M, N = sizes
    if N > _MAX_COLUMNS:
        raise WrongForm(
            _("A row may have {largest:,} columns at most.").format(largest=_MAX_COLUMNS)
        )
    if 2 * M * N > _H100_BYTES:
        raise WrongForm(
            _("In fp16 this matrix has {size:,.0f} GB, and the H100 has 80.").format(
                size=2 * M * N / 1e9
            )
        )
    if (M - 1) * N > _MAX_INT:
        return ""
    return _(
        "Its last row begins at element {first:,}. The largest number of 32 bits with a sign is"
        " {largest:,}."
    ).format(first=(M - 1) * N, largest=_MAX_INT)


STEPS = (
    Step(
        "07-length",
        kind="value",
        entry_point="N",
        accepts=accept_length,
        question="How many numbers of a row does a program load, if its block has eight lanes?",
        debrief=(
            "A program loads once, 8 numbers. The others are in no sum, so here mean and variance"
            " are wrong, and with them every result of the row. The last ones are not even written."
        ),
        slips=(
            Slip("N = 9", "N = 8"),
            Slip("N = 9", "N = 1"),
            Slip("N = 9", "N = 0"),
            Slip("N = 9", "N = 9.5"),
        ),
    ),
    Step(
        "07-layout",
        kind="value",
        entry_point="x",
        accepts=accept_layout,
        question=(
            "The kernel gets one stride, that of `x`, and takes it for `y`, too. When do the two"
            " differ?"
        ),
        debrief=(
            "The kernel has one stride for two tensors. It reads `x` in the right places, writes"
            " `y` in the wrong ones, and some of them lie behind the end of `y`."
        ),
        other_debrief=(
            _has_column_stride,
            "Here already the load is wrong: the columns of your `x` do not follow each other"
            " (`x.stride(1)` is not 1), and the kernel takes neighbours in memory for a row. It has"
            " a second fault: one stride for two tensors. With `x[:, :4]` of a wider matrix it"
            " reads `x` in the right places, and writes `y` in the wrong ones.",
        ),
        slips=(
            Slip("torch.arange(18.0).reshape(3, 6)[:, :4]", "torch.arange(12.0).reshape(3, 4) + 1"),
            Slip(
                "torch.arange(18.0).reshape(3, 6)[:, :4]",
                "torch.arange(18.0).reshape(3, 6)[:, :4].contiguous()",
            ),
            Slip("torch.arange(18.0).reshape(3, 6)[:, :4]", "torch.arange(18.0).reshape(3, 6)"),
            Slip("torch.arange(18.0).reshape(3, 6)[:, :4]", "torch.arange(24.0).reshape(6, 4)[3:]"),
        ),
    ),
    Step(
        "07-half",
        kind="value",
        entry_point="row",
        accepts=accept_row,
        question=(
            "Your eight numbers fit into fp16. What does the kernel compute from them first, and"
            " does that fit?"
        ),
        debrief=(
            "`tl.sum` adds fp16 numbers in fp16. Past 65504 the sum is infinite, and every result"
            " is NaN. A smaller sum may have too few digits: from 2048 on fp16 has every second"
            " whole number, from 32768 on every 32nd."
        ),
        slips=(
            Slip(
                "[4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]", "[1, -1, 1, -1, 1, -1, 1, -1]"
            ),
            Slip(
                "[4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]",
                "[300, -300, 300, -300, 300, -300, 300, -300]",
            ),
            Slip(
                "[4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]",
                "[70000, -300, 300, -300, 300, -300, 300, -300]",
            ),
            Slip(
                "[4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]",
                "[60000, 60000, -60000, -60000, 0, 0, 0, 0]",
            ),
            Slip("[4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]", "[300, -300]"),
        ),
    ),
    Step(
        "07-size",
        kind="value",
        entry_point="shape",
        accepts=accept_shape,
        question=(
            "The kernel computes `row * stride` in 32 bits. For which last row is that product too"
            " large?"
        ),
        debrief=(
            "The product passes 2\u00b3\u00b9 and wraps around: the kernel looks in front of `x`. 4"
            " GiB of fp16 are enough for that. `row = tl.program_id(0).to(tl.int64)` mends it."
        ),
        slips=(
            Slip("(32769, 65536)", "(32768, 65536)"),
            Slip("(32769, 65536)", "(65536, 32768)"),
            Slip("(32769, 65536)", "(1, 65536)"),
            Slip("(32769, 65536)", "(10_000_000, 65536)"),
            Slip("(32769, 65536)", "(4, 2**30)"),
        ),
    ),
)
