"""`course doctor`: looks at machine and environment, and says what to do about what it finds.

Whatever may crash, hang or be missing (PyTorch, Triton, the GPU's driver) is tried in processes of its own, so that a
segmentation fault becomes a finding. Nothing of the course that needs PyTorch is imported here.
"""

from course_lib.doctor.examination import examine
from course_lib.doctor.findings import NOTE, OK, PROBLEM, DoctorFinding, as_text, can_run

__all__ = ["NOTE", "OK", "PROBLEM", "DoctorFinding", "as_text", "can_run", "examine"]
