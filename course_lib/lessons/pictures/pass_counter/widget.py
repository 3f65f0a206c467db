"""Lesson 06: the passes over the matrix that each way to normalise a row makes, counted from a
trace of real kernels."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.asking import AskingPicture, choose_exercise
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.pass_counter.model import ALGORITHMS, OWN, make_data


def pass_counter(
    algorithm: str = "two_pass", M: int = 4096, N: int = 8192, dtype: str = "fp16"
) -> AskingPicture:
    """Choose an algorithm and a size, and compare its passes over memory with those of a copy. A
    button counts your own kernel as well.

    Args:
        algorithm: copy, naive (op by op), one_pass, two_pass, welford or resident.
        dtype: fp16 or fp32.

    Raises: CourseError if an argument has another value, or the kernels cannot be traced.
    """

    def make(own: str) -> MovingPicture:
        data = make_data(algorithm, M, N, dtype, own)
        passes = _(", ").join(
            f"{label} {sum(sweep['amount'] for sweep in data['counts'][N][key]['sweeps']):g}"
            for key, label in data["names"].items()
            if key in data["counts"][N]
        )
        words = _(
            "A bar for each algorithm, one piece per sweep over the matrix, as long as it"
            " takes: {passes} sweeps. Below them a row of {columns} columns, once for each sweep of"
            " {algorithm}."
        )
        name = _(ALGORITHMS.get(algorithm, algorithm))
        return MovingPicture(
            "pass_counter", data, words.format(passes=passes, columns=N, algorithm=name)
        )

    return AskingPicture(
        make, {"own": choose_exercise(OWN, _("count your own kernel:"))}, _("Count it")
    )
