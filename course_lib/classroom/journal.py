"""What was found out stays found out: one file that only grows, a line for each verdict, on the disk before the next one is looked at.

A line is complete or it does not count: one that was torn when the power went, or the disk was full, is cut off when the journal is
opened again, and its file is checked again. The verdicts stay in the file; only where each begins is kept in memory.
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

_VERSION = 1


class Journal:
    """The verdicts of one class, by key. For one process at a time, which the file's lock makes sure.

    Raises: CourseError if another process has it open, or the file is no journal; OSError if it cannot be opened.
    """

    def __init__(self, file: Path):
        self.file = file
        self._descriptor = open_private(file, os.O_RDWR)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._places: dict[str, int] = {}
            self.torn = 0  # lines that did not count
            self._end = self._read()
        except BlockingIOError:
            os.close(self._descriptor)
            raise CourseError(
                f"another `course grade` is at work in {paths.shown(file.parent)}. Wait for it, or choose another folder."
            ) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> int:
        """Note where each verdict begins, and cut off what is behind the last complete line."""
        place = 0
        with open(self.file, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    self.torn += 1
                    break
                try:
                    self._places[_parse(line)[0]] = place
                except (ValueError, KeyError, TypeError, RecursionError):
                    self.torn += 1  # somebody wrote into it, or the disk lost a block: that verdict is made again
                place += len(line)
        os.ftruncate(self._descriptor, place)
        return place

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> dict[str, Any] | None:
        """The newest verdict kept for ``key``, as it was appended; None if there is none."""
        place = self._places.get(key)
        if place is None:
            return None
        with open(self.file, "rb") as lines:
            lines.seek(place)
            return _parse(lines.readline())[1]

    def append(self, key: str, verdict: dict[str, Any]) -> None:
        """Keep a verdict. It is on the disk when this returns.

        Raises: EnvironmentFault if it cannot be written; the journal is as it was before.
        """
        line = json.dumps({"v": _VERSION, "key": key, "verdict": verdict}, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.pwrite(self._descriptor, rest, self._end + len(line) - len(rest)) :]
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
    """What to say where a file of the class cannot be written."""
    room = " Make room there" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else " Set that right"
    return EnvironmentFault(
        f"{paths.shown(file)} cannot be written: {error.strerror}. Every verdict before this one is kept.{room}, then give the same command again: it goes on where it stopped."
    )


def _parse(line: bytes) -> tuple[str, dict[str, Any]]:
    entry = json.loads(line)
    if entry["v"] != _VERSION or not isinstance(entry["key"], str) or not isinstance(entry["verdict"], dict):
        raise ValueError("no line of this journal's")
    return entry["key"], entry["verdict"]
