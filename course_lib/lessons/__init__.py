"""Pictures that a learner can move, one folder per picture. Importing this package applies the course's style.

A function here hides the folder of the same name. Import from inside a folder in full:
``from course_lib.lessons.copy_map.model import make_data``.
"""

from __future__ import annotations

from course_lib.lessons import style
from course_lib.lessons.access_map.widget import access_map
from course_lib.lessons.accuracy.widget import accuracy
from course_lib.lessons.answers import close_answers
from course_lib.lessons.block_stepper.widget import block_stepper
from course_lib.lessons.bytes_moved.widget import bytes_moved
from course_lib.lessons.cancellation.widget import cancellation
from course_lib.lessons.compiled_kernel.model import learners_kernel
from course_lib.lessons.compiled_kernel.widget import explore, kernel_explorer
from course_lib.lessons.copy_map.widget import copy_map
from course_lib.lessons.hunt_panel import hunt
from course_lib.lessons.kernel_roofline.widget import kernel_roofline
from course_lib.lessons.kit.page import dress_page
from course_lib.lessons.live import picture
from course_lib.lessons.loss_curves.widget import loss_curves
from course_lib.lessons.merge_tree.widget import merge_tree
from course_lib.lessons.missing_term.widget import missing_term
from course_lib.lessons.norm_race.widget import norm_race
from course_lib.lessons.pass_counter.widget import pass_counter
from course_lib.lessons.prediction import predict, review_predictions
from course_lib.lessons.projection.widget import projection
from course_lib.lessons.reduction_tree.widget import reduction_tree
from course_lib.lessons.schedule.run import interleaved
from course_lib.lessons.schedule.widget import schedule_explorer
from course_lib.lessons.stepping import step

style.use()
dress_page()
close_answers()

__all__ = [
    "access_map",
    "accuracy",
    "block_stepper",
    "bytes_moved",
    "cancellation",
    "copy_map",
    "explore",
    "hunt",
    "interleaved",
    "kernel_explorer",
    "kernel_roofline",
    "learners_kernel",
    "loss_curves",
    "merge_tree",
    "missing_term",
    "norm_race",
    "pass_counter",
    "picture",
    "predict",
    "projection",
    "reduction_tree",
    "review_predictions",
    "schedule_explorer",
    "step",
    "style",
]
