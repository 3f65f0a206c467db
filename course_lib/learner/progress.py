"""What a learner has done so far: one local, git-ignored file, ``.course/progress.json``.

Every change is made under a lock (a notebook and ``course watch`` may both check at once) and written to a temporary
file that is synced and renamed, so a crash half-way through leaves the last good state. A file that cannot be read any
more is moved aside under a dated name and said, never deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from course_lib.base import paths
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.text import shorten
from course_lib.grading.verdict import EXIT_CODES, GRADER_FAULT, NOT_ATTEMPTED, PASS, Verdict, from_dict

_VERSION = 1
_LAST_BYTES = 32 << 10  # of one verdict; an honest one takes up to 12
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # UnicodeDecodeError is a ValueError


@dataclass
class Record:
    """One exercise. ``checks`` counts verdicts on attempted files; ``last`` is the last verdict as ``--json`` prints it."""

    checks: int = 0
    hints: int = 0
    solution_seen: bool = False
    passed_at: str = ""
    last: dict = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return bool(self.passed_at)


def file() -> Path:
    return paths.state() / "progress.json"


def read() -> dict[str, Record]:
    """Every exercise that has a record, by id. Never raises for what the file holds."""
    try:
        return _parse(file())
    except _UNREADABLE:
        # under the lock: what could not be read may be gone by now, and a good file in its place
        with _locked() as path:
            return _parse_or_move_aside(path)


def record(exercise_id: str) -> Record:
    """The record of one exercise; an empty one if there is none yet."""
    return read().get(exercise_id, Record())


def note_verdict(verdict: Verdict) -> None:
    """Remember a verdict, and the time of the first pass. A grader fault says nothing about the file, and is not kept."""
    if verdict.status == GRADER_FAULT:
        return
    with _changing(verdict.exercise) as entry:
        if verdict.status != NOT_ATTEMPTED:
            entry.checks += 1
        if verdict.status == PASS and not entry.passed_at:
            entry.passed_at = datetime.now().isoformat(timespec="seconds")
        entry.last = _fit(verdict.as_dict())


def note_hint(exercise_id: str, available: int) -> int:
    """Count a hint; returns which one to show, from 1, never past the last."""
    with _changing(exercise_id) as entry:
        entry.hints = min(entry.hints + 1, available)
        return entry.hints


def note_solution_seen(exercise_id: str) -> None:
    with _changing(exercise_id) as entry:
        entry.solution_seen = True


def note_reset(exercise_id: str) -> None:
    """Forget the last verdict: it was about a text that is gone. A pass stays a pass."""
    with _changing(exercise_id) as entry:
        entry.last = {}


@contextlib.contextmanager
def _changing(exercise_id: str) -> Iterator[Record]:
    with _locked() as path:
        records = _parse_or_move_aside(path)
        entry = records.setdefault(exercise_id, Record())
        yield entry
        data = {"version": _VERSION, "exercises": {name: asdict(records[name]) for name in sorted(records)}}
        write_atomic(path, _encode(data) + b"\n")


def _encode(data: dict) -> bytes:
    """JSON in UTF-8. Half a surrogate pair, which an older file may hold, is written as JSON writes it."""
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _fit(last: dict) -> dict:
    """The verdict with its longest texts cut, step by step, until it takes no more than ``_LAST_BYTES``."""
    for most in (200, 100, 20):
        if len(_encode(last)) <= _LAST_BYTES:
            break
        cases = [case | {"detail": shorten(case["detail"], most)} for case in last["cases"]]
        last = last | {"cases": cases} | {name: shorten(last[name], 8 * most) for name in ("message", "printed")}
    return last


@contextlib.contextmanager
def _locked() -> Iterator[Path]:
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def _parse(path: Path) -> dict[str, Record]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            raise ValueError(f"it was written by another version of the course ({data['version']})")
        return {str(name): _record(entry) for name, entry in data["exercises"].items()}
    except FileNotFoundError:
        return {}


def _record(entry: dict) -> Record:
    """Raises: TypeError, ValueError or KeyError if ``entry`` is no record, in its fields or in their types."""
    parsed = Record(**entry)
    for name, kind in (("checks", int), ("hints", int), ("solution_seen", bool), ("passed_at", str), ("last", dict)):
        if not isinstance(getattr(parsed, name), kind):
            raise TypeError(f"{name} is {getattr(parsed, name)!r}")
    if parsed.last and from_dict(parsed.last).status not in EXIT_CODES:
        raise ValueError(f"{parsed.last['status']!r} is no verdict")
    return parsed


def _parse_or_move_aside(path: Path) -> dict[str, Record]:
    try:
        return _parse(path)
    except _UNREADABLE as broken:
        copy = keep_copy(path, path.parent / "kept")
        path.unlink(missing_ok=True)
        warnings.warn(
            f"course: {paths.shown(path)} could not be read ({broken}) and was moved to {paths.shown(copy)}. Progress starts anew; your exercise files are untouched.",
            stacklevel=3,
        )
        return {}
