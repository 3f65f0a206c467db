"""Classroom 50 runs this in a student's checkout for each submission. It installs the course beside
this file, and grades the checkout."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
subprocess.run(["bash", HERE / "install.sh"], check=True)
# -I, because the checkout may have its own course_lib, which Python would import
grade = [
    HERE / "venv/bin/python",
    "-I",
    "-m",
    "course_lib.classroom.one_submission",
    "classroom50",
    HERE,
]
sys.exit(subprocess.run(grade, check=False).returncode)
