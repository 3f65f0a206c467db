"""The examination behind `course doctor`: it looks at machine and environment, and says what to do
about each problem.

Anything that may crash, hang or be missing (PyTorch, Triton, the GPU's driver) is tried in a
separate process, so that a segmentation fault becomes a finding. This package imports nothing of
the course that needs PyTorch.
"""

from course_lib.doctor.examination import examine
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding, as_text, can_run

__all__ = ["NOTE", "OK", "PROBLEM", "DoctorFinding", "as_text", "can_run", "examine"]
