"""Pictures that a learner can move: model -> figure -> widget, one file a topic. Importing this applies the course's style.

The functions have their module's name and take its place here: reach into a module with
``from course_lib.widgets.copy_map import model``.
"""

from __future__ import annotations

from course_lib.widgets import style
from course_lib.widgets.block_stepper import block_stepper
from course_lib.widgets.bytes_moved import bytes_moved
from course_lib.widgets.copy_map import copy_map
from course_lib.widgets.live import picture

style.use()

__all__ = ["block_stepper", "bytes_moved", "copy_map", "picture", "style"]
