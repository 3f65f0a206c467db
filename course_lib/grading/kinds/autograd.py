"""The two functions of an autograd Function."""

from __future__ import annotations

from course_lib.grading.kind import WITH_PYTORCH, Mode
from course_lib.grading.kinds._functions import FunctionKind


class AutogradKind(FunctionKind):
    """The learner writes ``forward`` and ``backward``, and PyTorch's autograd calls them."""

    modes = (Mode("autograd", "autograd_child:Autograd", limits=WITH_PYTORCH),)
    needs_pytorch = True


KIND = AutogradKind()
