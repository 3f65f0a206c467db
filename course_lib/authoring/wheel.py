"""Building the course's wheel, for an autograder of a class system or for a browser tab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from course_lib.base import paths


def build_wheel(folder: Path) -> Path:
    """Build the wheel into ``folder``, which must be empty, without using a network, and return the
    wheel's path.

    Raises: CalledProcessError if pip fails. pip prints the reason.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        paths.ROOT,
    ]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
