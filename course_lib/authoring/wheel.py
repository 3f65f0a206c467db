"""Build the course's wheel for what carries the course elsewhere: a class system's autograder, a browser tab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from course_lib.base import paths


def build_wheel(folder: Path) -> Path:
    """Build the wheel into ``folder``, which is empty, without a network, and return its path.

    Raises: CalledProcessError if pip fails; it has said why.
    """
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, paths.ROOT]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
