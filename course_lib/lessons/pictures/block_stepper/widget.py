"""Lessons 01, 02 and 07: a norm kernel, one block at a time, with its source, lanes, sums and row
statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.block_stepper.model import (
    BLOCKS,
    EPS,
    EXAMPLE,
    KINDS,
    MAX_COLUMNS,
    MAX_ROWS,
    check_rows,
    make_random_rows,
    write_rows,
)


def block_stepper(
    kind: str = "rms_norm",
    x: ArrayLike | None = None,
    block: int = 4,
    mask_deviation: bool = True,
    *,
    one_block: bool = False,
    eps: float = 1e-5,
    dtype: str | None = None,
) -> MovingPicture:
    """Step one program of a blocked norm kernel over its row: lanes, masks, sums and the
    statistics.

    Args:
        kind: "layer_norm" or "rms_norm".
        x: shape (M, N) with at most 6 rows and 16 columns; None takes the 3 x 8 worked example.
        block: 2, 4, 8 or 16.
        mask_deviation: LayerNorm only. False begins with the bug: lanes past N hold 0 - mean when
            they are squared.
        one_block: show the kernel whose block holds the whole row. Its source has no loops, and the
            learner can only drag numbers and step. In the blocked picture the learner can also type
            rows and change N, BLOCK and eps.
        dtype: "fp16" or "fp32", for RMSNorm of one block without eps: the dtype of x and of its
            squares, whose sum is fp32. The learner can change it.

    Raises: CourseError if an argument has another value.
    """
    if block not in BLOCKS:
        raise CourseError(
            _("the block stepper shows BLOCK from {blocks}; you asked for {block}.").format(
                blocks=BLOCKS, block=block
            )
        )
    rows_given = np.asarray(EXAMPLE if x is None else x, dtype=np.float64)
    check_rows(rows_given, block, kind, eps, None, None)
    if rows_given.shape[0] > MAX_ROWS or rows_given.shape[1] > MAX_COLUMNS:
        words = _(
            "the block stepper shows up to {rows} rows and {columns} columns; this x has shape"
            " {shape}."
        )
        raise CourseError(words.format(rows=MAX_ROWS, columns=MAX_COLUMNS, shape=rows_given.shape))
    if one_block and rows_given.shape[1] > block:
        words = _(
            "one block of {block} lanes does not hold a row of {columns}; choose a larger block, or"
            " one_block=False."
        )
        raise CourseError(words.format(block=block, columns=rows_given.shape[1]))
    if dtype is not None and (
        dtype not in ("fp16", "fp32") or kind != "rms_norm" or not one_block or eps
    ):
        words = _(
            "dtype is fp16 or fp32, and needs kind='rms_norm', one_block=True and eps=0; you asked"
            " for {dtype!r}, kind={kind!r}, one_block={one_block}, eps={eps}."
        )
        raise CourseError(words.format(dtype=dtype, kind=kind, one_block=one_block, eps=eps))
    rows = write_rows(rows_given)
    data = {
        "start": {
            "kind": kind, "typed": rows, "row": 0, "n": rows_given.shape[1], "block": block,
            "eps": eps, "masked": mask_deviation, "step": 0,
            "limits": None, "oneBlock": one_block, "dtype": dtype,
        },
        "kinds": KINDS, "blocks": BLOCKS, "eps": EPS, "maxRows": MAX_ROWS,
        "maxColumns": MAX_COLUMNS,
        "examples": [[_("worked example"), write_rows(EXAMPLE)],
            [_("random, mean 3"), write_rows(make_random_rows(mean=3.0))]],
    }  # fmt: skip
    return MovingPicture(
        "block_stepper",
        data,
        _(
            "{kind} of a row of {columns} numbers in blocks of {block}: the steps of one program in"
            " a line, its source with the lines of the step marked, the row as points that can be"
            " dragged, and under it what each lane holds and adds up."
        ).format(kind=KINDS[kind], columns=rows_given.shape[1], block=block),
    )
