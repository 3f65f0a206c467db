"""The course folder of a learner who installed the course as a package: exercises and lessons, but
not the course's code.

``.course/folder.json`` marks the folder and lists the files that the course wrote, so that a newer
course replaces only unchanged ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.translation import gettext as _
from course_lib.catalog.texts import find_file, is_unsolved, make_learners_text

# further files of the folder, by their names in FILES
_ALSO = ("AGENTS.md", "docs/commands.md", "docs/cpu-mode.md", "docs/kernel-trials.md",
    "docs/kernels.md", "docs/security.md")  # fmt: skip
_README = Path(__file__).with_name("folder_readme.md")


def make(folder: Path, renew: bool = False) -> list[str]:
    """Make a course folder, or add the missing files to one; return a line for each changed file of
    which the course has a newer version.

    A file that the learner changed is left as it is. With ``renew``, a new version replaces a
    changed notebook, of which a copy is kept in ``.course/kept``.

    Raises: CourseError if ``folder`` holds something else, or lies in a course folder; OSError if
    it cannot be written.
    """
    folder = folder.absolute()
    known_hashes = _read_marker(folder)
    if known_hashes is None:
        _require_free(folder)
    given_hashes: dict[str, str] = {}
    notes = []
    for name, data in _list_files():
        path = folder / name
        before, now = (known_hashes or {}).get(name), hashlib.sha256(data).hexdigest()
        if not path.exists() or _hash(path) in (before, now):
            if not path.exists() or before != now:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, data)
            given_hashes[name] = now
        elif before == now or before is None:
            given_hashes[name] = now  # the learner changed the version that is still current
        elif renew and path.suffix == ".ipynb":
            copy = keep_copy(path, folder / ".course" / "kept", datetime.now())
            write_atomic(path, data)
            given_hashes[name] = now
            notes.append(
                _("{name}: new version; yours is kept as {copy}").format(
                    name=name, copy=copy.relative_to(folder)
                )
            )
        else:
            given_hashes[name] = before
            command = (
                f"`course reset {Path(name).stem[2:5]}`"
                if name.startswith("exercises/")
                else "`course update`"
            )
            notes.append(
                _("{name}: yours, as it was; the course has a new one, {command} takes it").format(
                    name=name, command=command
                )
            )
    (folder / ".course").mkdir(exist_ok=True)
    _write_marker(folder, given_hashes)
    return notes


def translate_exercises(folder: Path) -> None:
    """Write each exercise of a course folder or a checkout that is unsolved in another language in
    the chosen one. A file that the learner changed stays.

    Raises: OSError if a file cannot be written.
    """
    given_hashes = _read_marker(folder)
    for exercise in catalog.exercises().values():
        path, data = find_file(exercise), make_learners_text(exercise).encode()
        if not path.is_file() or path.is_symlink() or path.read_bytes() == data:
            continue
        if is_unsolved(exercise, path.read_bytes()):
            write_atomic(path, data)
            if given_hashes is not None:
                given_hashes[f"exercises/{path.name}"] = _hash(path)
    if given_hashes is not None:
        _write_marker(folder, given_hashes)


def _list_files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of every file of a course folder."""
    for exercise in catalog.exercises().values():
        yield f"exercises/{exercise.file}.py", make_learners_text(exercise).encode()
    for file in sorted(
        [*paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"), *paths.NOTEBOOKS.glob("images/*")]
    ):
        yield f"notebooks/{file.relative_to(paths.NOTEBOOKS)}", file.read_bytes()
    for name in _ALSO:
        yield name, (paths.FILES / name).read_bytes()
    readme = _README.read_text(encoding="utf-8")
    yield "README.md", readme.replace(f"uvx {paths.DISTRIBUTION}", paths.name_uvx()).encode()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _read_marker(folder: Path) -> dict[str, str] | None:
    """Return the hash of each file that the course wrote, by name; None if this is no course
    folder."""
    marker = folder / paths.MARKER
    if not marker.exists():
        return None
    try:
        return {
            str(name): str(value)
            for name, value in json.loads(marker.read_text(encoding="utf-8"))["given"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        # the marker is damaged: treat every file that differs from the course's as the learner's
        return {}


def _write_marker(folder: Path, given_hashes: dict[str, str]) -> None:
    write_atomic(
        folder / paths.MARKER,
        json.dumps({"version": course_lib.__version__, "given": given_hashes}, indent=1) + "\n",
    )


def _require_free(folder: Path) -> None:
    """Raise CourseError unless ``folder`` is absent, empty, or a course folder whose ``.course``
    was removed."""
    if folder.exists() and not folder.is_dir():
        raise CourseError(
            _("{folder} is no folder. Name one that is not there yet, or an empty one.").format(
                folder=folder
            )
        )
    around = next((place for place in folder.parents if (place / paths.MARKER).is_file()), None)
    if around is not None:
        raise CourseError(
            _(
                "{folder} lies in the course folder {around}, which is ready: `cd {around}`, "
                "then `course lab`."
            ).format(folder=folder, around=around)
        )
    if (folder / "course_command.py").exists():
        raise CourseError(
            _(
                "{folder} is a checkout of the course, with an environment of its own: give "
                "the command `make lab` there."
            ).format(folder=folder)
        )
    is_course = any((folder / "exercises").glob("ex[0-9][0-9]*.py"))
    if folder.exists() and any(folder.iterdir()) and not is_course:
        raise CourseError(
            _(
                "{folder} holds other files and is no course folder. Name a folder that is "
                "not there yet, or an empty one."
            ).format(folder=folder)
        )
