"""The two functions of an autograd Function."""

from __future__ import annotations

from course_lib.base.translation import mark as N_
from course_lib.grading.kind import WITH_PYTORCH, Mode
from course_lib.grading.kinds._functions import FunctionKind


class AutogradKind(FunctionKind):
    """The learner writes ``forward`` and ``backward``, and PyTorch's autograd calls them."""

    modes = (
        Mode(
            "autograd",
            N_("in PyTorch's autograd (CPU)"),
            "autograd_child:Autograd",
            limits=WITH_PYTORCH,
        ),
    )
    needs_pytorch = True


KIND = AutogradKind()
