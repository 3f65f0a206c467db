"""A learner's progress: one local, git-ignored file, ``.course/progress.json``.

A lock guards every change, because a notebook and ``course watch`` may check at the same time. The
text goes to a temporary file, which is synced and renamed, so that a crash leaves the last good
state. A file that cannot be read is moved aside under a dated name, with a warning, and never
deleted.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, lock_file, write_atomic
from course_lib.base.plain import decode
from course_lib.base.text import shorten
from course_lib.base.translation import gettext as _
from course_lib.grading.verdict import (
    EXIT_CODES,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    Verdict,
    from_dict,
)

_VERSION = 2
# files of version 1 number the exercises as the first curriculum did
_RENUMBERED = {
    "01b": "02a", "02a": "10a", "02b": "10b", "02c": "10c", "03b": "04a", "03c": "04b",
    "04a": "06a", "06a": "07a", "06b": "08a",
    "07a": "02b", "07b": "09a", "08a": "11a", "08b": "11b", "09a": "12a", "09b": "13a",
    "09c": "13b", "10a": "14a",
}  # fmt: skip
_LAST_BYTES = 32 << 10  # limit for one verdict; an ordinary one is shorter
_SAID = 200  # limit for a prediction, in characters
_MOST_MOVES = 1000  # limit for one hunt, far more than a person makes
# UnicodeDecodeError is a ValueError
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass
class ExerciseProgress:
    """The progress in one exercise.

    ``checks`` counts verdicts on attempted files; ``last`` is the last verdict in the format of
    ``--json``.
    """

    checks: int = 0
    hints: int = 0
    solution_seen: bool = False
    passed_at: str = ""
    last: dict = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return bool(self.passed_at)


@dataclass(frozen=True)
class Prediction:
    """A learner's first answer to a question of a lesson, and whether the right answer was a
    surprise."""

    said: str
    surprised: bool
    made_at: str = ""


@dataclass(frozen=True)
class StepRecord:
    """The first pass of a lesson's step, and the number of tries that it took."""

    passed_at: str
    tries: int


@dataclass
class HuntRecord:
    """One play of a hunt. ``moves`` are plain data, in order; ``course_lib.hunt.game`` interprets
    them."""

    hunt: str
    level: str
    started_at: str = ""
    moves: list[dict] = field(default_factory=list)


@dataclass
class _Kept:
    """The whole content of the file."""

    exercises: dict[str, ExerciseProgress] = field(default_factory=dict)
    predictions: dict[str, Prediction] = field(default_factory=dict)
    recalled: dict[str, Prediction] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    hunts: dict[str, HuntRecord] = field(default_factory=dict)


def file() -> Path:
    return paths.state() / "progress.json"


def read() -> dict[str, ExerciseProgress]:
    """Return the record of every exercise that has one, by id. Never raises because of the file's
    content."""
    return _read().exercises


def read_predictions() -> dict[str, Prediction]:
    """Return every prediction, by id. Never raises because of the file's content."""
    return _read().predictions


def read_recalled() -> dict[str, Prediction]:
    """Return every answer to a recall question, by lesson and id: "05 03-ones". Never raises
    because of the file's content."""
    return _read().recalled


def read_steps() -> dict[str, StepRecord]:
    """Return every passed step, by id. Never raises because of the file's content."""
    return _read().steps


def read_hunts() -> dict[str, HuntRecord]:
    """Return every play that was begun, by its name: that of the hunt or of the day. Never raises
    because of the file's content."""
    return _read().hunts


def _read() -> _Kept:
    try:
        return _parse(file())
    except _UNREADABLE:
        # read again under the lock: another process may have moved the unreadable file aside and
        # written a good one
        with _lock() as path:
            return _parse_or_move_aside(path)


def record(exercise_id: str) -> ExerciseProgress:
    """Return the record of one exercise; an empty one if there is none yet."""
    return read().get(exercise_id, ExerciseProgress())


def note_verdict(verdict: Verdict) -> None:
    """Save a verdict, and the time of the first pass. A grader fault says nothing about the file,
    and is not saved."""
    if verdict.status == GRADER_FAULT:
        return
    with _change(verdict.exercise) as entry:
        if verdict.status != NOT_ATTEMPTED:
            entry.checks += 1
        if verdict.status == PASS and not entry.passed_at:
            entry.passed_at = datetime.now().isoformat(timespec="seconds")
        entry.last = _fit(verdict.as_dict())


def note_hint(exercise_id: str, available: int) -> int:
    """Count a hint; return the number of the hint to show, from 1 and at most ``available``."""
    with _change(exercise_id) as entry:
        entry.hints = min(entry.hints + 1, available)
        return entry.hints


def note_solution_seen(exercise_id: str) -> None:
    with _change(exercise_id) as entry:
        entry.solution_seen = True


def note_reset(exercise_id: str) -> None:
    """Forget the last verdict, which was about a text that is gone. A pass stays a pass."""
    with _change(exercise_id) as entry:
        entry.last = {}


def note_prediction(prediction_id: str, answer: str, *, surprised: bool) -> None:
    """Save a learner's prediction. Only the first one counts: later ones are made after the answer
    was shown."""
    with _change_all() as records:
        now = datetime.now().isoformat(timespec="seconds")
        records.predictions.setdefault(
            prediction_id, Prediction(shorten(answer, _SAID), surprised, now)
        )


def note_recalled(lesson: str, prediction_id: str, answer: str, *, surprised: bool) -> None:
    """Save the answer to a prediction's question when ``lesson`` asked it again. The first one in
    each lesson stays."""
    with _change_all() as records:
        now = datetime.now().isoformat(timespec="seconds")
        records.recalled.setdefault(
            f"{lesson} {prediction_id}", Prediction(shorten(answer, _SAID), surprised, now)
        )


def note_step(step_id: str, tries: int) -> None:
    """Save that a step was passed, with the number of tries. The first pass stays."""
    with _change_all() as records:
        now = datetime.now().isoformat(timespec="seconds")
        records.steps.setdefault(step_id, StepRecord(now, tries))


def note_hunt(play: str, hunt: str, level: str, move: dict | None = None) -> HuntRecord:
    """Begin the play of this name if there is none, and add ``move`` to it; return its record."""
    with _change_all() as records:
        now = datetime.now().isoformat(timespec="seconds")
        record = records.hunts.setdefault(play, HuntRecord(hunt, level, now))
        if move is not None and len(record.moves) < _MOST_MOVES:
            record.moves.append(move)
        return record


def parse(data: bytes) -> _Kept:
    """Return the content of a progress file from another course folder, for :func:`take_over`.

    Raises: CourseError if ``data`` is no progress file that this version of the course reads.
    """
    try:
        return _parse_text(data.decode())
    except _UNREADABLE as broken:
        raise CourseError(
            _("the progress in it cannot be read ({error}). Nothing was changed.").format(
                error=broken
            )
        ) from broken


def take_over(source: _Kept) -> int:
    """Take the records of ``source`` that are missing here, and those that have a pass where the
    record here has none; return how many."""
    count = 0
    with _change_all() as records:
        for name, part in vars(records).items():
            for key, entry in vars(source)[name].items():
                current = part.get(key)
                if current is None or (
                    isinstance(current, ExerciseProgress) and entry.passed and not current.passed
                ):
                    part[key] = entry
                    count += 1
    return count


@contextlib.contextmanager
def _change(exercise_id: str) -> Iterator[ExerciseProgress]:
    with _change_all() as records:
        yield records.exercises.setdefault(exercise_id, ExerciseProgress())


@contextlib.contextmanager
def _change_all() -> Iterator[_Kept]:
    with _lock() as path:
        records = _parse_or_move_aside(path)
        yield records
        parts = {
            name: {key: asdict(part[key]) for key in sorted(part)}
            for name, part in vars(records).items()
        }
        write_atomic(path, _encode({"version": _VERSION} | parts) + b"\n")


def _encode(data: dict) -> bytes:
    """Return JSON in UTF-8. A lone surrogate, which an older file may hold, is written as an escape
    sequence."""
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _fit(verdict: dict) -> dict:
    """Return the verdict, its longest texts shortened step by step until it takes at most
    ``_LAST_BYTES``."""
    for most in (200, 100, 20):
        if len(_encode(verdict)) <= _LAST_BYTES:
            break
        cases = [case | {"detail": shorten(case["detail"], most)} for case in verdict["cases"]]
        verdict = (
            verdict
            | {"cases": cases}
            | {name: shorten(verdict[name], 8 * most) for name in ("message", "printed")}
        )
    return verdict


@contextlib.contextmanager
def _lock() -> Iterator[Path]:
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        lock_file(lock.fileno(), exclusive=True, wait=True)
        yield path


def _parse(path: Path) -> _Kept:
    try:
        return _parse_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _Kept()


def _parse_text(text: str) -> _Kept:
    data = json.loads(text)
    if data["version"] == 1:
        data["exercises"] = {
            _RENUMBERED.get(name, name): e | {"last": {}} for name, e in data["exercises"].items()
        }
    elif data["version"] != _VERSION:
        raise ValueError(f"it was written by another version of the course ({data['version']})")
    # older files have no predictions, recalled answers, steps or hunts
    parts = {"exercises": data["exercises"]} | {
        part.name: data[part.name] for part in fields(_Kept) if part.name in data
    }
    records: _Kept = decode(_Kept, parts)
    for entry in records.exercises.values():
        if entry.last and from_dict(entry.last).status not in EXIT_CODES:
            raise ValueError(f"{entry.last['status']!r} is no verdict")
    return records


def _parse_or_move_aside(path: Path) -> _Kept:
    try:
        return _parse(path)
    except _UNREADABLE as broken:
        copy = keep_copy(path, path.parent / "kept")
        path.unlink(missing_ok=True)
        warnings.warn(
            f"course: {paths.shown(path)} could not be read ({broken}) and was moved to"
            f" {paths.shown(copy)}. Progress starts anew; your exercise files are untouched.",
            stacklevel=3,
        )
        return _Kept()
