"""What the lessons do with the stand-in for PyTorch, each in a process in which it is ``torch``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from course_lib.base import paths

STANDINS = paths.ROOT / "course_lib" / "tab" / "standins"
_START = f"""
import sys
sys.path[:0] = [{str(STANDINS)!r}, {str(paths.ROOT)!r}]
import torch
assert torch.__file__.startswith({str(STANDINS)!r})
"""


def run(code: str) -> str:
    """What ``code`` prints where the stand-in is ``torch``."""
    done = subprocess.run(
        [sys.executable, "-c", _START + code],
        env={"COURSE_DEVICE": "cpu", "PATH": "/usr/bin:/bin", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("room", ["lessons", "norms", "kernels", "interpreter", "bench", "tuning", "catalog", "hunt"])
def test_every_module_that_a_lesson_may_load_can_be_imported(room):
    run(f"""
import importlib, pkgutil
room = importlib.import_module("course_lib.{room}")
names = [found.name for found in pkgutil.walk_packages(room.__path__, "course_lib.{room}.")]
assert names
for name in names:
    importlib.import_module(name)
""")
