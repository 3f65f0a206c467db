"""Make Triton's CPU interpreter behave as a GPU does. Only this package touches Triton's private
interpreter.

``import course_lib`` calls ``install()`` once, if this process interprets its kernels.
"""

from __future__ import annotations

from course_lib.interpreter.install import install, losses

__all__ = ["install", "losses"]
