"""The steps of lesson 09: sweeps of a longer chain, the rounded sum, and an addition with
strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.lessons.steps.step import In, Out, Slip, Step, Try, WrongForm
from course_lib.norms import reference

_EPS = 1e-5
# bf16 has 8 significant bits: 257 becomes 256, and 1 + 1/256 becomes 1
_X, _RESIDUAL = [[256, 3, -5, 0.5], [1, -2, 0.25, 1]], [[1, 0.5, 2, 0.25], [1 / 256, 4, 0.25, -1]]
_TOTAL = [[256, 3.5, -3, 0.75], [1, 2, 0.5, 0]]
_W = [1, 0.5, 2, -1]
# fp16 has 11 significant bits: 2049 becomes 2048, and 4098 is halfway between 4096 and 4100
_X16 = [[2048, 1, -2], [4096, 8, 0.5]]
_RESIDUAL16 = [[1, 2, 4], [2, -8, 0.25]]
_TOTAL16 = [[2048, 3, 2], [4096, 0, 0.75]]


def _accept_sweeps(sweeps: Any) -> str:
    try:
        unfused, fused = sweeps
    except (TypeError, ValueError):
        raise WrongForm(_("`sweeps` has to be two numbers.")) from None
    if unfused != 8:
        return _(
            "Three kernels do not make {sweeps} sweeps. Write down for each of them which matrices"
            " it reads and which it writes, y too."
        ).format(sweeps=unfused)
    if fused != 5:
        return _(
            "One kernel does not make {sweeps} sweeps. Which matrices does it have to read? Which"
            " two are kept? What happens to y?"
        ).format(sweeps=fused)
    return ""


def _add_try(
    description: str, dtype: str, x: list, residual: list, total: list, stride_residual: int
) -> Try:
    rows, columns = len(x), len(x[0])
    return Try(
        description,
        arguments={
            "x_ptr": In(x, dtype), "residual_ptr": In(residual, dtype, stride=stride_residual),
            "total_ptr": Out((rows, columns), dtype), "lost_ptr": Out((rows, columns)),
            "stride_residual": stride_residual, "N": columns,
        },
        grid=(rows,),
        constexprs={"BLOCK": 4},
        expected={"total_ptr": total, "lost_ptr": np.add(x, residual) - total},
    )  # fmt: skip


def _round_try(description: str, dtype: str, x: list, residual: list, total: list, w: list) -> Try:
    y = reference.rms_norm(np.array(total, dtype=np.float64), np.array(w, dtype=np.float64), _EPS).y
    arguments = (In(x, dtype), In(residual, dtype), In(w, dtype), _EPS)
    return Try(description, arguments=arguments, expected=(np.array(total, dtype=np.float64), y))


STEPS = (
    Step(
        "09-passes",
        kind="value",
        entry_point="sweeps",
        accepts=_accept_sweeps,
        question="In the fused kernel, what is still in the lanes when it is needed again?",
        debrief=(
            "3 of 8 sweeps saved: a longer chain has more to fuse. What is neither an input nor"
            " kept never leaves the registers."
        ),
        slips=(
            Slip("8, 5", "8, 4"),
            Slip("8, 5", "7, 5"),
            Slip("8, 5", "8, 6"),
            Slip("8, 5", "5, 4"),
        ),
    ),
    Step(
        "09-round",
        kind="torch",
        entry_point="add_rms_norm",
        tries=(
            _round_try("two rows in bf16, where 256 + 1 is 256", "bf16", _X, _RESIDUAL, _TOTAL, _W),
            _round_try(
                "two rows in fp16, where 2048 + 1 is 2048",
                "fp16",
                _X16,
                _RESIDUAL16,
                _TOTAL16,
                _W[:3],
            ),
        ),
        question=(
            "total is 256 and the exact sum is 257. Of which of the two is y the norm? And in which"
            " dtype is that norm computed?"
        ),
        debrief=(
            "One rounding more, at the right place, and one kernel gives the bits of two. In the"
            " exercise it is one line."
        ),
        slips=(
            Slip("wide = total.float()", "wide = x.float() + residual.float()", "unrounded_total"),
            Slip(
                "total = x + residual",
                "total = x.float() + residual.float()",
                "total is not rounded to the dtype of x",
                "`total` goes to memory in the dtype of `x`. Which number arrives there, 257 or"
                " 256?",
            ),
            Slip(
                "wide = total.float()",
                "wide = x.float()",
                "y is the norm of x alone",
                "`y` is the norm of a sum. What is missing in the matrix that you take?",
            ),
            Slip("wide = total.float()", "wide = total", "low_precision"),
        ),
    ),
    Step(
        "09-add",
        kind="kernel",
        entry_point="add_kernel",
        tries=(
            _add_try("bf16, rows of 4, all 4 apart", "bf16", _X, _RESIDUAL, _TOTAL, 4),
            _add_try(
                "fp16, rows of 3, those of residual 5 apart", "fp16", _X16, _RESIDUAL16, _TOTAL16, 5
            ),
        ),
        question=(
            "Where does row 1 of residual begin? And what does `lost` hold if nothing was rounded?"
        ),
        debrief=(
            "A total in fp32 would lose nothing, and cost twice the bytes. The tutorial's LayerNorm"
            " has one stride for all its matrices, and reads beside the row where they differ."
        ),
        slips=(
            Slip("row * stride_residual", "row * N", "stride_ignored"),
            Slip("row * stride_residual", "row * BLOCK", "stride_ignored"),
            Slip(
                "exact.to(total_ptr.dtype.element_ty)",
                "exact",
                "nothing is lost, because nothing is rounded",
                "`lost` is what the rounding takes away. Which number do you subtract from `exact`,"
                " and in which dtype is it?",
            ),
            Slip("exact.to(total_ptr.dtype.element_ty)", "exact.to(tl.float16)", "another_dtype"),
        ),
    ),
)
