"""The file ``submission_metadata.yml`` of Gradescope's "Export Submissions": who handed in which
folder, and when.

It has an entry for each folder ``submission_12345``, with keys as Ruby writes its symbols::

    submission_12345:
      :submitters:
      - :name: Jane Doe
        :sid: '30012345'
        :email: jane@example.edu
      :created_at: 2026-10-19 20:00:00.123456000 Z

The members of a group are several submitters of one folder. Scores, results and the history of
earlier submissions follow; they are not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import read_plain_file
from course_lib.base.translation import gettext as _
from course_lib.classroom.weeks import read_moment

METADATA = "submission_metadata.yml"
_FOLDER = re.compile(r"submission_\d+")
_MOST_BYTES = 64 << 20  # the results of every submission stand in it, too
# the loader in C reads a large class's file in seconds instead of minutes
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Submitter:
    """A person who handed in a submission. ``sid`` is the student's number; it and ``email`` are
    "" where the export has none."""

    name: str
    sid: str
    email: str


@dataclass(frozen=True)
class Exported:
    """A submission of the export: the name of its folder, the members of its group, and its time in
    seconds since 1970, or 0 if the export has none."""

    folder: str
    submitters: tuple[Submitter, ...]
    submitted: float


def read_metadata(file: Path) -> list[Exported]:
    """Return the submissions that the file describes.

    Raises: CourseError if it cannot be read, or has another form than that of an export.
    """
    where = paths.shown(file)
    try:
        whole = yaml.load(read_plain_file(file, _MOST_BYTES), _Loader)
    except OSError as error:
        raise CourseError(
            _("{file} cannot be read: {reason}.").format(file=where, reason=error.strerror)
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise _refuse(where, _("it is no YAML: {reason}").format(reason=reason)) from None
    if not isinstance(whole, dict):
        raise _refuse(where, _("it has no submissions"))
    return [_read_submission(str(folder), entry, where) for folder, entry in whole.items()]


def _read_submission(folder: str, entry: Any, where: str) -> Exported:
    if not _FOLDER.fullmatch(folder):
        raise _refuse(
            where, _("{folder!r} is no folder submission_NUMBER").format(folder=folder[:80])
        )
    submitters = _get(entry, "submitters")
    if not isinstance(submitters, list) or not submitters:
        raise _refuse(where, _("{folder} has no submitters").format(folder=folder))
    people = tuple(
        Submitter(*(_read_text(submitter, name) for name in ("name", "sid", "email")))
        for submitter in submitters
    )
    if not all(person.sid or person.email or person.name for person in people):
        raise _refuse(where, _("a submitter of {folder} has no name").format(folder=folder))
    return Exported(folder, people, _read_time(_get(entry, "created_at"), f"{where}, {folder}"))


def _get(entry: Any, name: str) -> Any:
    """Return the value of a key that is written ``:name`` or ``name``; None if there is none."""
    return entry.get(f":{name}", entry.get(name)) if isinstance(entry, dict) else None


def _read_text(entry: Any, name: str) -> str:
    value = _get(entry, name)
    return str(value).strip() if isinstance(value, str | int) else ""


def _read_time(value: Any, where: str) -> float:
    if value is None:
        return 0.0
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)  # Gradescope writes UTC
    return read_moment(value, f"{where}: created_at").timestamp()


def _refuse(where: str, why: str) -> CourseError:
    return CourseError(
        _(
            "{file} is not as Gradescope exports it: {reason}. Export the submissions again, or"
            " remove the file and say who is who with --map."
        ).format(file=where, reason=why)
    )
