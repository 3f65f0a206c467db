"""``make quick``: the tests of the rooms that a change touches, a few cases of each dear one.
``make test`` runs all of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable

from course_lib.base import paths
from course_lib.base.errors import CourseError

# cases of a test function whose cases cost over 0.1 s: the first, the last and one between
OF_EACH = 3
_ALWAYS = ("tests/test_architecture.py", "tests/test_imports.py", "tests/test_documents.py")
# For a change in one of these folders, the tests in the named folders of tests/ run in addition.
_FURTHER = {
    "solutions": ("grading",),
    "exercises": ("catalog", "grading"),  # of learners, and the folders in course_lib
    "notebooks": ("authoring", "lessons"),
    "tools": ("tools",),
}


def list_changed(since: str) -> list[str]:
    """Return the files that differ from ``since``, as paths from the course's folder. Changes need
    not be committed.

    Raises: CourseError if git does not know ``since``, or the folder is not a git checkout.
    """
    files: list[str] = []
    for command in (
        ("diff", "--name-only", "--merge-base", since),
        ("ls-files", "--others", "--exclude-standard"),
    ):
        answer = subprocess.run(("git", *command), cwd=paths.ROOT, text=True, capture_output=True)
        if answer.returncode:
            raise CourseError(
                f"git cannot compare this folder with {since}:"
                f" {answer.stderr.strip().splitlines()[0]}. SINCE=COMMIT names another commit."
            )
        files += answer.stdout.splitlines()
    return sorted(set(files))


def choose_tests(changed: Iterable[str]) -> list[str]:
    """Return the test folders and test files for the ``changed`` files; an empty list if nothing
    changed."""
    chosen: set[str] = set()
    for file in changed:
        top, _, inner = file.partition("/")
        room = inner.partition("/")[0] if top in ("course_lib", "tests") else ""
        further = (*_FURTHER.get(top, ()), *_FURTHER.get(room, ()))
        chosen |= {f"tests/{name}" for name in (room, *further)}
    existing = sorted(name for name in chosen - {"tests/"} if (paths.ROOT / name).exists())
    return [*dict.fromkeys((*_ALWAYS, *existing))] if changed else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--since", default="main", help="the commit or branch to compare with (default: main)"
    )
    parser.add_argument("pytest", nargs="*", help="goes to pytest, after --")
    arguments = parser.parse_args()
    try:
        chosen = choose_tests(list_changed(arguments.since))
    except CourseError as error:
        sys.exit(f"course: {error}")
    if not chosen:
        print(f"course: nothing differs from {arguments.since}. SINCE=COMMIT names another commit.")
        return 0
    print(
        f"course: at most {OF_EACH} cases of each dear test, and all others, in"
        f" {', '.join(chosen)}",
        flush=True,
    )
    return subprocess.run(
        (sys.executable, "-m", "pytest", f"--of-each={OF_EACH}", *chosen, *arguments.pytest),
        cwd=paths.ROOT,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
