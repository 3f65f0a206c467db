"""What ``course release`` does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from course_lib.base.errors import EnvironmentFault
from course_lib.cli.grade import TIERS, choose_exercises


def release(folder: Path) -> int:
    """Make the learners' copy and say what it is.

    Raises: CourseError if it cannot be made; EnvironmentFault if the authors' tools are not installed.
    """
    _require_tools()
    from course_lib.authoring import release as releasing

    print(releasing.release(folder))
    return 0


def release_gradescope(
    folder: Path,
    *,
    week: str | None,
    plan: Path | None,
    only: str | None,
    everything: bool,
    secret_file: Path | None,
    weights: str | None,
    partial: bool,
    tier: str | None,
) -> int:
    """Make an autograder for Gradescope and say what it is.

    Raises: CourseError if it cannot be made, or exercises or secret cannot be used; EnvironmentFault if the authors' tools are not installed.
    """
    _require_tools()
    from course_lib.authoring import graders
    from course_lib.classroom.one_submission import Settings
    from course_lib.grading.cases.hidden import read_secret

    asked, _ = choose_exercises(week, plan, only, everything)
    settings = Settings(asked, weights, partial, TIERS[tier] if tier else None)
    print(graders.write_gradescope(folder, settings.write(), read_secret(secret_file) if secret_file else None))
    return 0


def _require_tools() -> None:
    if importlib.util.find_spec("jupytext") is None:
        raise EnvironmentFault(
            "a release is built with the authors' tools, which are not here. `make dev` installs them."
        )
