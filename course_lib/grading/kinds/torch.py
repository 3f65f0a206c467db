"""Functions in PyTorch operations."""

from __future__ import annotations

from course_lib.base.translation import mark as N_
from course_lib.grading.kind import WITH_PYTORCH, Mode
from course_lib.grading.kinds._functions import FunctionKind


class TorchKind(FunctionKind):
    """The learner writes functions that take and return tensors."""

    modes = (
        Mode("torch", N_("in PyTorch (CPU)"), "functions:TorchFunctions", limits=WITH_PYTORCH),
    )
    needs_pytorch = True
    step_imports = "import math\nimport torch"


KIND = TorchKind()
