"""What is left of a process that was killed: nothing, after a moment. For the tests that kill the
owner of a worker."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil


def processes_under(folder: Path) -> list[psutil.Process]:
    """Every process that works in the folder or below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd().startswith(str(folder)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def kill_owner(program: str, moment: float, folder: Path, environment: Mapping[str, str]) -> None:
    """Start ``program`` in ``folder``, kill it ``moment`` seconds after it printed "now", and see
    everything under it end."""
    owner = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, cwd=folder
    )
    assert owner.stdout is not None and owner.stdout.readline() == b"now\n"
    time.sleep(moment)
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 240  # a bound, for a machine that is busy with other work
    while processes_under(folder):
        assert time.monotonic() < deadline
        time.sleep(0.05)
