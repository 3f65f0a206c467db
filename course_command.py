"""The ``course`` command's entry point. It stands outside ``course_lib`` for one reason.

Importing ``course_lib`` chooses the GPU or the interpreter, and raises where neither can work.
``course doctor`` must run exactly then, and ``course status`` should not pay for importing PyTorch.
So the choice is put off first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

BROKEN_ENVIRONMENT = 78  # as in course_lib/cli/app.py, which may be what cannot be imported


def _name_command(argv: list[str]) -> list[str]:
    """Return the arguments as `course` takes them: `norm-kernels-course DIR`, which uvx makes easy
    to type, is `course init DIR`."""
    program, *arguments = argv
    if Path(program).name != "norm-kernels-course" or not arguments or arguments[0].startswith("-"):
        return arguments
    import typer

    from course_lib.cli.app import app

    return (
        arguments if arguments[0] in typer.main.get_command(app).commands else ["init", *arguments]
    )


def _leave_to_folder(arguments: list[str]) -> None:
    """Go on in the environment of the course folder, if it has one and this is another: that one
    has the pinned versions.

    `init`, `env` and `update` stay here, because they may bring a newer course than that
    environment has.
    """
    from course_lib.base import paths

    if (
        not paths.is_installed()
        or (folder := paths.find_folder()) is None
        or arguments[:1] in (["init"], ["update"], ["env"])
    ):
        return
    from course_lib.base.installation import find_python
    from course_lib.learner import environment

    python = find_python(folder)
    if python is not None and not environment.runs_here(folder):
        os.execv(python, [str(python), "-m", "course_command", *arguments])


def main() -> None:
    os.environ["COURSE_DEFER_CHOICE"] = "1"
    try:
        arguments = _name_command(sys.argv)
        _leave_to_folder(arguments)
        from course_lib.cli.app import run
    except (Exception, SystemExit) as error:
        # a file of somebody's called random.py or typing.py, on PYTHONPATH, is imported before
        # anything else can say so
        from course_lib.base.installation import import_fault

        if (fault := import_fault(error)) is None:
            raise
        print(f"course: {fault}", file=sys.stderr)
        sys.exit(BROKEN_ENVIRONMENT)
    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
