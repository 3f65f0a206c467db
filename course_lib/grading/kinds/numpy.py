"""Functions in NumPy operations."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.kind import Mode
from course_lib.grading.kinds._functions import FunctionKind


class NumPyKind(FunctionKind):
    """The learner writes functions that take and return arrays and numbers."""

    modes = (Mode("numpy", N_("in NumPy"), "functions:NumPyFunctions"),)
    step_imports = "import math\nimport numpy as np"

    def describe_needed_imports(self) -> str:
        return _("This exercise needs only `import numpy as np`; remove the line.")


KIND = NumPyKind()
