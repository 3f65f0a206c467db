"""Run `course author`: `new` lays out a skeleton, `check` says what is missing."""

from __future__ import annotations

import importlib.util

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.translation import gettext as _

_TOOLS = ("pytest", "xdist", "hypothesis", "jupytext", "nbclient")


def new(thing: str, name: str, kind: str | None) -> int:
    """Lay out the files of a new thing and say what comes next.

    Raises: CourseError if ``thing`` or the name is none, or a file is there already.
    """
    from course_lib.authoring import skeletons

    if thing not in skeletons.NEW:
        raise CourseError(
            _("there is no {thing!r} to be made. There are: {things}.").format(
                thing=thing, things=", ".join(skeletons.NEW)
            )
        )
    if thing == "exercise":
        written = skeletons.new_exercise(name, kind or "kernel")
    elif kind:
        raise CourseError(_("--kind belongs to a new exercise."))
    else:
        written = skeletons.NEW[thing](name)
    for path in written:
        print(_("{file}: written").format(file=paths.shown(path)))
    tests = [path for path in written if path.name.startswith("test_")]
    if thing == "exercise":
        print(
            _("`make build`, then `course author check {exercise}` says what is missing.").format(
                exercise=name.removeprefix("ex")[:3]
            )
        )
    elif tests:
        print(
            _("`python -m pytest {file}` says what is missing.").format(file=paths.shown(tests[0]))
        )
    else:
        print(
            _(
                "`python -m course_lib.authoring.notebooks {lesson}` builds it, and says what is"
                " missing."
            ).format(lesson=name[:2])
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
            _(
                "the authors' tools are not installed ({tools} not found). `make dev` installs"
                " them."
            ).format(tools=", ".join(absent))
        )
    from course_lib.authoring import check as checking

    return checking.check(chosen)
