"""Run `course author`: `new` lays out a skeleton, `check` says what is missing."""

from __future__ import annotations

import importlib.util

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault

_TOOLS = ("pytest", "xdist", "hypothesis", "jupytext", "nbclient")


def new(thing: str, name: str, kind: str | None) -> int:
    """Lay out the files of a new thing and say what comes next.

    Raises: CourseError if ``thing`` or the name is none, or a file is there already.
    """
    from course_lib.authoring import skeletons

    if thing not in skeletons.NEW:
        raise CourseError(
            f"there is no {thing!r} to be made. There are: {', '.join(skeletons.NEW)}."
        )
    if thing == "exercise":
        written = skeletons.new_exercise(name, kind or "kernel")
    elif kind:
        raise CourseError("--kind belongs to a new exercise.")
    else:
        written = skeletons.NEW[thing](name)
    print("\n".join(f"{paths.shown(path)}: written" for path in written))
    tests = [path for path in written if path.name.startswith("test_")]
    if thing == "exercise":
        print(
            f"`make build`, then `course author check {name.removeprefix('ex')[:3]}` says what"
            " is missing."
        )
    elif tests:
        print(f"`python -m pytest {paths.shown(tests[0])}` says what is missing.")
    else:
        print(
            f"`python -m course_lib.authoring.notebooks {name[:2]}` builds it, and says what is"
            " missing."
        )
    return 0


def check(exercise_ids: list[str]) -> int:
    """Check the exercises named, or all; returns 1 if something is missing.

    Raises: CourseError if there is no such exercise; EnvironmentFault if the authors' tools are not
    installed.
    """
    chosen = [catalog.get(exercise_id) for exercise_id in exercise_ids] or list(
        catalog.exercises().values()
    )
    if absent := [tool for tool in _TOOLS if importlib.util.find_spec(tool) is None]:
        raise EnvironmentFault(
            f"the authors' tools are not installed ({', '.join(absent)} not found). `make dev`"
            " installs them."
        )
    from course_lib.authoring import check as checking

    return checking.check(chosen)
