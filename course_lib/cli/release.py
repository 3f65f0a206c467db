"""Run ``course release``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.cli.grade import TIERS


def release(folder: Path) -> int:
    """Make the learners' copy and say what it is.

    Raises: CourseError if it cannot be made; EnvironmentFault if the authors' tools are not
    installed.
    """
    _require_tools()
    from course_lib.authoring import release as releasing

    print(releasing.release(folder))
    return 0


def release_for(
    system: str,
    folder: Path,
    exercises: tuple[str, ...],
    *,
    secret_file: Path | None,
    weights: str | None,
    partial: bool,
    tier: str | None,
) -> int:
    """Make what ``system`` needs to grade the ``exercises``, and say what it is:
    "gradescope", "classroom50" or "workflow".

    Raises: CourseError if it cannot be made, or an option is of no use for that system;
    EnvironmentFault if the authors' tools are not installed.
    """
    _require_tools()
    from course_lib.authoring import graders
    from course_lib.classroom.one_submission import Settings
    from course_lib.grading.cases.hidden import read_secret

    if secret_file and system != "gradescope":
        raise CourseError(
            _(
                "--secret-file is for Gradescope alone: what the other systems get, the students"
                " can read."
            )
        )
    if system == "workflow":
        if weights or partial or tier:
            raise CourseError(
                _(
                    "a workflow gives no points and runs on GitHub: --weights, --partial and"
                    " --require-tier are not for it."
                )
            )
        print(graders.write_workflow(folder, exercises))
        return 0
    settings = Settings(exercises, weights, partial, TIERS[tier] if tier else None).write()
    if system == "gradescope":
        print(
            graders.write_gradescope(
                folder, settings, read_secret(secret_file) if secret_file else None
            )
        )
    else:
        print(graders.write_classroom50(folder, settings))
    return 0


def _require_tools() -> None:
    if importlib.util.find_spec("jupytext") is None:
        raise EnvironmentFault(
            _(
                "a release is built with the authors' tools, which are not here. `make dev`"
                " installs them."
            )
        )
