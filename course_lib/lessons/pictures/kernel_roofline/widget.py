"""Lesson 15: norm kernels under the roofline, for several row lengths, including the learner's
own."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.lessons.kit.asking import AskingPicture, choose_exercise
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.pictures.kernel_roofline.model import OWN, make_data


def kernel_roofline() -> AskingPicture:
    """Show the course's kernels under the roofline. A button adds a kernel of the learner's, if it
    passes its check.

    Raises: CourseError if nothing is stored and this machine has no GPU.
    """

    def make(own: str) -> MovingPicture:
        data = make_data(own)
        words = _(
            "TFLOP/s against operations per byte, both axes logarithmic, under the roof of an"
            " {gpu}: {kernels}. Beside it the share of the roof that each of them reaches. Times:"
            " {source}."
        )
        names = _(", ").join(kernel["label"] for kernel in data["kernels"].values())
        return MovingPicture(
            "kernel_roofline",
            data,
            words.format(gpu=data["roof"]["name"], kernels=names, source=data["source"]),
        )

    return AskingPicture(
        make, {"own": choose_exercise(OWN, _("your own kernel:"))}, _("Put it there")
    )
