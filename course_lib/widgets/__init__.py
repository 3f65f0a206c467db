"""Pictures that a learner can move: model -> figure -> widget, one file a topic. Importing this applies the course's style.

The functions have their module's name and take its place here: reach into a module with
``from course_lib.widgets.copy_map import model``.
"""

from __future__ import annotations

from course_lib.widgets import style
from course_lib.widgets.access_map import access_map
from course_lib.widgets.accuracy import accuracy
from course_lib.widgets.block_stepper import block_stepper
from course_lib.widgets.bytes_moved import bytes_moved
from course_lib.widgets.cancellation import cancellation
from course_lib.widgets.copy_map import copy_map
from course_lib.widgets.explorer import explore, kernel_explorer
from course_lib.widgets.explorer_model import learners_kernel
from course_lib.widgets.live import picture
from course_lib.widgets.loss_curves import loss_curves
from course_lib.widgets.merge_tree import merge_tree
from course_lib.widgets.missing_term import missing_term
from course_lib.widgets.pass_counter import pass_counter
from course_lib.widgets.projection import projection
from course_lib.widgets.reduction_tree import reduction_tree
from course_lib.widgets.schedule_explorer import schedule_explorer
from course_lib.widgets.schedule_run import interleaved

style.use()

__all__ = [
    "access_map",
    "accuracy",
    "block_stepper",
    "bytes_moved",
    "cancellation",
    "copy_map",
    "explore",
    "interleaved",
    "kernel_explorer",
    "learners_kernel",
    "loss_curves",
    "merge_tree",
    "missing_term",
    "pass_counter",
    "picture",
    "projection",
    "reduction_tree",
    "schedule_explorer",
    "style",
]
