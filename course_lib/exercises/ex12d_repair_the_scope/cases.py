"""Repair the scope (12d): its cases."""

from __future__ import annotations

from course_lib.exercises.dw_kernels import ADD_TO_BUFFERS

PARTS = {"add_to_buffers_kernel": ADD_TO_BUFFERS}
