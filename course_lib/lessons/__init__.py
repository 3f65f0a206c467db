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
    "accuracy": "pictures.accuracy.widget",
    "block_stepper": "pictures.block_stepper.widget",
    "bytes_moved": "pictures.bytes_moved.widget",
    "cancellation": "pictures.cancellation.widget",
    "copy_map": "pictures.copy_map.widget",
    "explore": "pictures.compiled_kernel.widget",
    "hunt": "hunt_panel",
    "interleaved": "pictures.schedule.run",
    "kernel_explorer": "pictures.compiled_kernel.widget",
    "kernel_roofline": "pictures.kernel_roofline.widget",
    "ladder": "figures.ladder",
    "learners_kernel": "pictures.compiled_kernel.model",
    "loss_curves": "pictures.loss_curves.widget",
    "merge_tree": "pictures.merge_tree.widget",
    "missing_term": "pictures.missing_term.widget",
    "norm_race": "pictures.norm_race.widget",
    "offer_hunt": "hunt_panel",
    "pass_counter": "pictures.pass_counter.widget",
    "persistent_walk": "pictures.persistent_walk.widget",
    "predict": "prediction",
    "projection": "pictures.projection.widget",
    "reduction_tree": "pictures.reduction_tree.widget",
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
