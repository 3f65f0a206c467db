"""Tests of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.kind import WITH_PYTORCH, Mode
from course_lib.grading.kinds._functions import FunctionKind

if TYPE_CHECKING:
    from course_lib.grading.judging.judge import Judged


class TestsKind(FunctionKind):
    """The learner writes functions that get a kernel and raise AssertionError if it is wrong."""

    modes = (Mode("tests", N_("in PyTorch (CPU)"), "tests_child:Tests", limits=WITH_PYTORCH),)
    needs_pytorch = True
    counts_parts = True
    shuffles_cases = True  # a test must not learn which kernel it gets

    def describe_pass(self, judged: list[Judged]) -> str:
        from course_lib.grading.judging import wording  # a confined process judges nothing

        return _("{caught}, and no right kernel is accused.").format(
            caught=wording.count_caught(judged)
        )


KIND = TestsKind()
