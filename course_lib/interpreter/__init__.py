"""What makes Triton's CPU interpreter fit for teaching. The only package that touches Triton's private interpreter.

``install()`` is called once, by ``import course_lib``, when the interpreter was chosen.
"""

from __future__ import annotations

from course_lib.interpreter.install import install, losses

__all__ = ["install", "losses"]
