"""LayerNorm and RMSNorm, from the formula to Triton kernels at the memory limit.

Import it in the first cell of a notebook: ``import course_lib`` chooses the GPU or the interpreter
before Triton is imported, and prints the choice in one line. The parts that a lesson uses are
loaded at their first use.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module

from course_lib.base import runtime as _runtime
from course_lib.base.errors import CourseError

__version__ = "0.1.0"
__all__ = ["DEVICE", "MODE", "CourseError", "exercise"]


def _choose() -> None:
    """Make the choice final, patch the interpreter if it is chosen, and in a notebook print the
    choice."""
    chosen = _runtime.current()
    globals().update(MODE=chosen.mode, DEVICE=chosen.device)
    if chosen.interpreted:
        from course_lib.interpreter import install

        install()
    if _runtime.in_notebook():
        print(chosen.line())
        # PyTorch warns about Python 3.13.0. No lesson depends on it, and a page that prints the
        # warning fails under nbval.
        warnings.filterwarnings("ignore", "Guards may run slower on Python 3.13.0", RuntimeWarning)


# Triton reads this variable if a launch does not set `enable_fp_fusion`, and Triton 3.10 changes
# its default. With the value 1, a multiplication and an addition become one instruction in
# everything that the course compiles. All stored registers, times and last bits come from kernels
# compiled like this.
_runtime.set_default("TRITON_DEFAULT_FP_FUSION", "1")

# The command line postpones the choice until something needs it: see course_command.py.
if os.environ.pop("COURSE_DEFER_CHOICE", None) != "1":
    _choose()

_LAZY = {"exercise": ("course_lib.lessons.panel", "exercise")}


def __getattr__(name: str):
    if name in ("MODE", "DEVICE"):
        _choose()
        return globals()[name]
    if name not in _LAZY:
        raise AttributeError(f"module 'course_lib' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)
