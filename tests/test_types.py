"""course_lib has no type error at basedpyright's standard level; pyproject.toml has the
settings."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from course_lib.base import paths


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    importlib.util.find_spec("basedpyright") is None,
    reason="basedpyright is not installed (`make dev` installs it)",
)
def test_the_package_has_no_type_error():
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
