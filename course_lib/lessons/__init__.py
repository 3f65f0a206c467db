"""The names that a notebook calls: predictions, steps, the hunt, and pictures that a learner can
move. A name loads its module at its first use.

Importing this package gives the page and Matplotlib the course's style, and keeps answers closed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from course_lib.lessons import style
from course_lib.lessons.answers import close_answers
from course_lib.lessons.kit.page import dress_page

_LAZY = {
    "access_map": "pictures.access_map.widget",
    "accuracy": "lesson05.accuracy.widget",
    "block_stepper": "pictures.block_stepper.widget",
    "bytes_moved": "lesson09.bytes_moved.widget",
    "cancellation": "lesson03.cancellation.widget",
    "copy_map": "lesson00.copy_map.widget",
    "hunt": "hunt_panel",
    "interleaved": "pictures.schedule.run",
    "kernel_explorer": "pictures.compiled_kernel.widget",
    "kernel_roofline": "pictures.kernel_roofline.widget",
    "ladder": "figures.ladder",
    "loss_curves": "lesson14.loss_curves.widget",
    "merge_tree": "lesson04.merge_tree.widget",
    "missing_term": "lesson11.missing_term.widget",
    "norm_race": "lesson15.norm_race.widget",
    "offer_hunt": "hunt_panel",
    "pass_counter": "pictures.pass_counter.widget",
    "persistent_walk": "lesson13.persistent_walk.widget",
    "predict": "prediction",
    "projection": "lesson10.projection.widget",
    "reduction_tree": "lesson06.reduction_tree.widget",
    "recall": "recalling",
    "review_predictions": "prediction",
    "schedule_explorer": "pictures.schedule.widget",
    "step": "stepping",
}

style.use()
dress_page()
close_answers()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'course_lib.lessons' has no attribute {name!r}")
    return getattr(import_module(f"course_lib.lessons.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]
