"""The journal of verdicts: one file with a line per verdict, which only grows. Each verdict is on
the disk before the next is handled.

Only complete lines count. After a power failure or on a full disk the last line may be incomplete.
It is cut off when the journal is opened again, and the file of its verdict is checked again.
Verdicts are not kept in memory, only their places in the journal.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import open_private
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences

_VERSION = 1


class Journal:
    """The verdicts of one class, by key. A lock on the file lets only one process at a time open
    it.

    Raises: CourseError if another process has the journal open; OSError if it cannot be opened.
    """

    def __init__(self, file: Path):
        self.file = file
        self._descriptor = open_private(file, os.O_RDWR)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._places: dict[str, int] = {}
            self.torn = 0  # number of incomplete or damaged lines
            self._end = self._read()
        except BlockingIOError:
            os.close(self._descriptor)
            raise CourseError(
                _(
                    "another `course grade` is at work in {folder}. Wait for it, or choose another"
                    " folder."
                ).format(folder=paths.shown(file.parent))
            ) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> int:
        """Store the place of each verdict, cut off an incomplete last line, and return the length
        of the journal."""
        place = 0
        with open(self.file, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    self.torn += 1
                    break
                try:
                    self._places[_parse(line)[0]] = place
                except (ValueError, KeyError, TypeError, RecursionError):
                    # another program wrote here, or the disk is damaged: the file of this verdict
                    # is checked again
                    self.torn += 1
                place += len(line)
        os.ftruncate(self._descriptor, place)
        return place

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the newest verdict for ``key``, as it was appended; None if there is none."""
        place = self._places.get(key)
        if place is None:
            return None
        with open(self.file, "rb") as lines:
            lines.seek(place)
            return _parse(lines.readline())[1]

    def append(self, key: str, verdict: dict[str, Any]) -> None:
        """Store a verdict. It is on the disk when this returns.

        Raises: EnvironmentFault if it cannot be written; the journal then stays as it was.
        """
        line = (
            json.dumps(
                {"v": _VERSION, "key": key, "verdict": verdict},
                ensure_ascii=True,
                separators=(",", ":"),
            ).encode()
            + b"\n"
        )
        try:
            unwritten = memoryview(line)
            while unwritten:
                unwritten = unwritten[
                    os.pwrite(self._descriptor, unwritten, self._end + len(line) - len(unwritten)) :
                ]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._end)
            raise describe_full_disk(error, self.file) from error
        self._places[key] = self._end
        self._end += len(line)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def describe_full_disk(error: OSError, file: Path) -> EnvironmentFault:
    """Return the exception for a file of the class that cannot be written."""
    problem = _(
        "{file} cannot be written: {reason}. Every verdict before this one is kept."
    ).format(file=paths.shown(file), reason=error.strerror)
    remedy = (
        _("Make room there, then give the same command again: it goes on where it stopped.")
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        else _("Set that right, then give the same command again: it goes on where it stopped.")
    )
    return EnvironmentFault(join_sentences(problem, remedy))


def _parse(line: bytes) -> tuple[str, dict[str, Any]]:
    entry = json.loads(line)
    if (
        entry["v"] != _VERSION
        or not isinstance(entry["key"], str)
        or not isinstance(entry["verdict"], dict)
    ):
        raise ValueError("no line of this journal's")
    return entry["key"], entry["verdict"]
