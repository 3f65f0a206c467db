"""The places of the course's own files and the learner's. Everything that opens a file of the
course asks this module.

In a checkout both are in one folder. An installed package carries the course's files in
``course_lib/shipped``; the learner's files are in a course folder, which ``course init`` makes.

Two environment variables move folders, so that tests never touch a learner's work:
``COURSE_EXERCISES`` names the folder with the learner's files, ``COURSE_STATE`` the folder with
progress and kept copies.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from course_lib.base.errors import CourseError
from course_lib.base.tab import FOLDER, IN_TAB
from course_lib.base.text import make_visible_line

DISTRIBUTION = "norm-kernels-course"  # the package's name in an index
PACKAGE = Path(__file__).resolve().parent.parent
# in a checkout its root folder, otherwise the folder in which packages are installed
ROOT = PACKAGE.parent
SHIPPED = PACKAGE / "shipped"  # only in an installed package: setup.py puts it there
FILES = SHIPPED if SHIPPED.is_dir() else ROOT
SOLUTIONS = FILES / "solutions"
NOTEBOOKS = FILES / "notebooks"
NOTEBOOK_SOURCES = NOTEBOOKS / "source"
# in a learner's release, in place of solutions and sources; see is_release()
EXERCISE_FOLDERS = PACKAGE / "exercises"
RELEASED = PACKAGE / "catalog" / "released"
KINDS = PACKAGE / "grading" / "kinds"  # one module per kind of exercise
BENCH_RESULTS = PACKAGE / "bench" / "results"
# the file that makes a folder a course folder; ``course_lib.learner.folder`` writes it
MARKER = Path(".course", "folder.json")
# the archive that ``course export`` writes and ``course import`` reads, unless they name another
# file
WORK = Path("my-course.zip")


def list_kinds() -> tuple[str, ...]:
    """Return the names of the kinds of exercises."""
    return tuple(sorted(file.stem for file in KINDS.glob("[a-z]*.py")))


def is_release() -> bool:
    """Return True in a copy that ``course release`` made: it has no solutions, no tests, nothing
    for authors and instructors."""
    return RELEASED.is_dir()


def is_installed() -> bool:
    """Return True if the course is an installed package, and not a checkout or a release."""
    return FILES is SHIPPED


def name_program() -> str:
    """Return the command that a person types to run the course, usually ``course``."""
    if "UV" in os.environ:  # set by uvx, which leaves no command `course` in the shell
        return name_uvx()
    return "course" if shutil.which("course") else str(Path(sys.executable).with_name("course"))


def name_uvx() -> str:
    """Return the command by which uv runs this same course: from the index, or from the clone or
    file that it was installed from."""
    import shlex
    from urllib.parse import unquote

    source = unquote(read_origin().get("url", "").removeprefix("file://"))
    return f"uvx --from {shlex.quote(source)} {DISTRIBUTION}" if source else f"uvx {DISTRIBUTION}"


def read_origin() -> dict:
    """Return what pip recorded of a package that came from a file or an address (PEP 610); an empty
    dictionary if it came from an index."""
    # Imported here: this module is loaded before anything can say that a file of the learner's
    # bears the name of a module.
    import importlib.metadata
    import json

    try:
        return json.loads(
            importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}"
        )
    except importlib.metadata.PackageNotFoundError:  # a copy that nobody installed
        return {}


def find_folder() -> Path | None:
    """Return the folder in which the learner works: the checkout, or the course folder that holds
    the current folder; None if there is none.

    In a browser tab it is always :data:`~course_lib.base.tab.FOLDER`.
    """
    if not is_installed():
        return ROOT
    if IN_TAB:
        return FOLDER
    current = Path.cwd()
    return next(
        (folder for folder in (current, *current.parents) if (folder / MARKER).is_file()), None
    )


def folder() -> Path:
    """Return the folder that :func:`find_folder` finds.

    Raises: CourseError if there is none; the message says how to make one.
    """
    if (home := find_folder()) is None:
        # here, because the set-up reads this module with Pythons that cannot read catalogs
        from course_lib.base.translation import gettext as _

        raise CourseError(
            _(
                "{folder} is not in a course folder. `{program} init my-course` makes one here,"
                " with exercises and lessons; if you have one already, change to it: `cd"
                " my-course`."
            ).format(folder=Path.cwd(), program=name_program())
        )
    return home


def exercises() -> Path:
    """Return the folder with the learner's exercise files.

    Raises: CourseError if the package is installed and this is no course folder.
    """
    return Path(os.environ.get("COURSE_EXERCISES") or folder() / "exercises").resolve()


def state() -> Path:
    """Return the git-ignored folder with progress, last verdicts and kept copies of learners'
    files.

    Raises: CourseError if the package is installed and this is no course folder.
    """
    return Path(os.environ.get("COURSE_STATE") or folder() / ".course").resolve()


def shown(path: Path) -> str:
    """Return ``path`` as messages show it: relative to the course folder, even if tests or builds
    have moved ``exercises`` or ``.course``.

    A link keeps its own name. Control characters in a name are made visible.
    """
    path = Path(path)
    path = path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name
    for place, name in _list_places():
        if path.is_relative_to(place):
            path = Path(name) / path.relative_to(place)
            break
    return make_visible_line(str(path))


def locate(name: str) -> Path:
    """Return the path that :func:`shown` gave as ``name``."""
    short_name, *parts = Path(name).parts
    places = {short: place for place, short in _list_places()}
    return (
        places[short_name].joinpath(*parts)
        if short_name in places
        else places.get(".", Path.cwd()) / name
    )


def _list_places() -> list[tuple[Path, str]]:
    if (home := find_folder()) is None:
        return []
    return [(exercises(), "exercises"), (state(), ".course"), (home, ".")]
