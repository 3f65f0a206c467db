"""Lesson 15: a race of norms over the same matrix, for each of the stored row lengths."""

from __future__ import annotations

import ipywidgets

import course_lib
from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.asking import AskingPicture, choose_exercise
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson15.norm_race.model import HERE, OWN, STORED, make_data


def norm_race() -> MovingPicture | AskingPicture:
    """Show a race of PyTorch, torch.compile, two libraries, the tutorial's design and the course's
    kernels, from stored times.

    On a machine with a GPU, a button measures all of them there, and can add a kernel of the
    learner's.

    Raises: CourseError if nothing is stored.
    """

    def make(where: str = STORED, own: str = "") -> MovingPicture:
        data = make_data(where, own)
        words = _(
            "A race: a bar for each of {names}, as long as the time of one call. Times: {source}."
        )
        return MovingPicture(
            "norm_race",
            data,
            words.format(names=list_words(data["names"].values()), source=data["source"]),
        )

    if course_lib.MODE != "gpu":
        return make()
    where = ipywidgets.Dropdown(
        options=[(_("as stored"), STORED), (_("this GPU, some minutes"), HERE)],
        description=_("times:"),
    )
    own = choose_exercise(OWN, _("your own kernel:"))
    return AskingPicture(make, {"where": where, "own": own}, _("Race"))
