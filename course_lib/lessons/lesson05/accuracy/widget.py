"""Lesson 05: the error of each statistics kernel against mean/std, for the course's kernels and the
learner's own."""

from __future__ import annotations

import ipywidgets

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson05.accuracy.model import (
    BLOCKS,
    COLUMNS,
    OWN,
    QUANTITIES,
    check_settings,
    make_data,
)


def accuracy(quantity: str = "var", n: int = 512, block: int = 256) -> AskingPicture:
    """Show the error against mean/std of the four streamed kernels, with the bound of one. A button
    runs another N or BLOCK, or the learner's kernels.

    Args:
        quantity: "var", "rstd" or "y" (the LayerNorm output).
        n: columns, 64, 512 or 4096.
        block: columns per step, 256 or 1024.

    Raises: CourseError if an argument has another value.
    """

    check_settings(quantity, n, block)

    def make(n: int, block: int, **checked: bool) -> MovingPicture:
        data = make_data(
            quantity,
            n,
            block,
            [exercise_id for exercise_id in OWN if checked[f"own_{exercise_id}"]],
        )
        return MovingPicture(
            "accuracy",
            data,
            _(
                "Error of the {quantity} against mean/std of the row, both axes logarithmic, one"
                " line per kernel: {kernels}. N = {n}, BLOCK = {block}. One-pass loses two digits"
                " for each factor of 10 in mean/std, Welford one, two-pass next to none."
            ).format(
                quantity=_(QUANTITIES[quantity]),
                kernels=list_words(
                    data["names"][key] for key in data["curves"][f"{quantity}|ordinary"]
                ),
                n=n,
                block=block,
            ),
        )

    controls = {
        "n": ipywidgets.Dropdown(options=COLUMNS, value=n, description=_("columns N")),
        "block": ipywidgets.Dropdown(options=BLOCKS, value=block, description="BLOCK"),
    } | {
        f"own_{exercise_id}": ipywidgets.Checkbox(
            False, description=_(name), indent=False, layout=ipywidgets.Layout(width="auto")
        )
        for exercise_id, name in OWN.items()
    }
    return AskingPicture(make, controls, _("Run the kernels"))
