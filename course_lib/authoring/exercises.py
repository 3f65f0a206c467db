"""``python -m course_lib.authoring.exercises``: write exercises/ from solutions/, except for the
files that a learner has changed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.catalog.cut import cut
from course_lib.learner import workspace


def generate() -> dict[str, str]:
    """Return the text of every exercise file by its name. It is the solution with the learner's
    part cut out."""
    return {
        path.name: cut(path.read_text(encoding="utf-8"), path.name)
        for path in sorted(paths.SOLUTIONS.glob("ex*.py"))
    }


def write(folder: Path) -> list[str]:
    """Bring the exercises in ``folder`` up to date, except for the files that a learner has
    changed.

    Returns: one line about each file.
    """
    texts = generate()
    remembered = workspace.read_manifest(folder)
    notes = []
    for name, text in texts.items():
        path = folder / name
        if not path.exists():
            write_atomic(path, text)
            notes.append(f"{name}: written")
        elif path.read_bytes() == text.encode():
            notes.append(f"{name}: up to date")
        elif workspace.is_untouched(path, text, remembered):
            write_atomic(path, text)
            notes.append(f"{name}: written anew")
        else:
            notes.append(
                f"{name}: kept, it has work of yours in it. `course reset {name[2:5]}` copies that"
                " aside and starts over."
            )
    workspace.write_manifest(folder, texts)
    return notes


def put_solutions(folder: Path) -> None:
    """Put the course's solution of each exercise into ``folder``, in the place of what lies
    there."""
    for exercise in catalog.exercises().values():
        shutil.copy(paths.SOLUTIONS / f"{exercise.file}.py", folder)


def main() -> int:
    try:
        print("\n".join(write(paths.exercises())))
    except (CourseError, OSError) as error:
        print(f"course: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
