"""LayerNorm and RMSNorm, from the formula to Triton kernels at the memory limit.

``import course_lib`` belongs into the first cell of a notebook: it chooses the GPU or the interpreter before Triton
is imported, and says which in one line. What a lesson uses is loaded when it is first touched.
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
    """Fix the choice, patch the interpreter where it is the choice, and say so in a notebook."""
    chosen = _runtime.current()
    globals().update(MODE=chosen.mode, DEVICE=chosen.device)
    if chosen.interpreted:
        from course_lib.interpreter import install

        install()
    if _runtime.in_notebook():
        print(chosen.line())
        # PyTorch's advice about Python 3.13.0; nothing in a lesson depends on it, and a page that prints it fails under nbval
        warnings.filterwarnings("ignore", "Guards may run slower on Python 3.13.0", RuntimeWarning)


# Triton asks this variable where a launch does not say `enable_fp_fusion`, and Triton 3.10 changes the default. A multiplication and an addition
# become one instruction in everything that the course compiles: registers, times and last bits were measured so.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

# The command line puts the choice off until something needs it: see course_command.py.
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
