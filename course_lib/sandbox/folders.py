"""A job's folder: made, read and removed as what it may be, the work of someone who means harm."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def make_folder(prefix: str) -> Iterator[Path]:
    """A folder for one job, removed afterwards, also where the job took pains that it cannot be removed."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove_folder(folder)


def read_file(file: Path, most: int) -> bytes | None:
    """Up to ``most`` bytes of a plain file; None for anything else."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as opened:
        return opened.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def remove_folder(folder: Path) -> None:
    """Remove the folder, also where someone took pains that it cannot be removed: folders without permissions, or a thousand levels of them."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        subprocess.run(
            ["chmod", "-R", "u+rwx", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        subprocess.run(["rm", "-rf", "--", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
