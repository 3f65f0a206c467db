"""Lesson 09: the bytes that a chain of kernels moves through HBM, against one fused kernel."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson09.bytes_moved.model import make_data


def bytes_moved(
    M: int = 4096, N: int = 4096, dtype: str = "fp16", case: str | None = None
) -> MovingPicture:
    """Show the bytes that fused and unfused launches move through HBM, as a race over time.

    The bandwidth starts at 3000 GB/s, about that of a copy on an H100.

    Args:
        case: "add" (an addition, then RMSNorm) or "eager" (RMSNorm op by op); None lets the learner
            choose.

    Raises: CourseError if a size is below 1, or the case or dtype is unknown.
    """
    return MovingPicture(
        "bytes_moved",
        make_data(M, N, dtype, case),
        _(
            "A race along the time at the memory limit, for M = {M}, N = {N}, {dtype}: a chain of"
            " launches, each a bar that begins where the one before ended, and below it one fused"
            " launch. Each bar is made of the tensors that it reads and, hatched, those that it"
            " writes."
        ).format(M=M, N=N, dtype=dtype),
    )
