"""The address of the course's repository, once it is known."""

from __future__ import annotations

import tomllib
from pathlib import Path

from course_lib.base import paths


def read_repository(pyproject: Path = paths.ROOT / "pyproject.toml") -> str:
    """Return ``Repository`` of ``[project.urls]``, without a slash at the end; empty if it is not there."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")
