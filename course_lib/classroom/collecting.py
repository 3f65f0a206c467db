"""The exercise files of one learner's submissions, and the choice of the file that counts.

If a rule had to decide, a note in the learner's report says so:

- Of several submissions by one learner, only the latest counts. A submission without exercise files
  never counts before one with some.
- A file whose name only hints at an exercise (``07a.py``) is not read, unless the teacher accepts
  such names; then it counts if it is the only one for an exercise without a file of the right name.
- Of several different files for one exercise, the first of these differences decides: a file with
  the course's name; a file in a folder ``exercises``; the file in the higher folder; the later
  file; the last by name.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from course_lib import catalog
from course_lib.base.files import NoPlainFile, read_plain_file
from course_lib.base.installation import environment_fault
from course_lib.base.text import make_visible_line
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise
from course_lib.classroom.archives import (
    FILE_BYTES,
    Member,
    explain_unwanted,
    guess_exercise,
    is_archive,
    is_skipped,
    is_wanted,
    unpack,
)
from course_lib.classroom.discovery import Entry, Submissions, SubmissionSource
from course_lib.classroom.record import MAPPING_CLOCK

_MOST_ENTRIES = 20_000
_MOST_LEVELS = 16
_MOST_ARCHIVES = 3
_MOST_NOTES = 12
_MOST_OTHERS = 3
_NAME = re.compile(r"(?P<id>ex\d\d[a-z])(?![a-z0-9])[^.]*", re.IGNORECASE)
# suffixes that systems and browsers append to the name of a file that exists already: -1, (2), "
# copy"
_APPENDED = re.compile(r"(?:[-_ ]?\((?P<one>\d{1,4})\)|[-](?P<two>\d{1,4})| copy)$", re.IGNORECASE)


@dataclass(frozen=True)
class Misnamed:
    """A file that is not read because of its name. ``exercise`` is the id that the name hints at,
    or "", and ``why`` says what is wrong with the name."""

    path: str
    exercise: str
    why: str

    @property
    def note(self) -> str:
        note = _("{file}: not read, it {why}").format(file=self.path, why=_(self.why))
        guess = _("; by its name it is probably {exercise}").format(exercise=self.exercise)
        return note + (guess if self.exercise else "")


@dataclass
class Collected:
    """The parts of one learner's submission that count.

    ``files`` has by exercise the file that counts, ``refused`` the reason why the file for an
    exercise cannot be read, ``misnamed`` the files that are not read because of their names.
    ``problem`` explains why nothing could be read at all. ``notes`` has other remarks for the
    teacher; of a remark on one exercise, ``subjects`` has the exercise. ``progress`` is the content
    of the learner's progress file.
    ``time`` orders the submissions of one learner: it is the latest time on this disk of the files
    that count, or of their archives, in seconds since 1970; 0 if there is no file. ``others`` names
    the first Python files and notebooks that belong to no exercise.
    """

    entry: Entry
    files: dict[str, Member] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    misnamed: list[Misnamed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    subjects: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    progress: bytes | None = None
    time: float = 0.0
    others: list[str] = field(default_factory=list)

    def note(self, words: str, exercise: str) -> None:
        """Add a remark on one exercise, or on all if it is ""."""
        self.notes.append(words)
        if exercise:
            self.subjects[words] = exercise


def collect(
    submissions: Submissions, exercises: Collection[Exercise], accept_names: bool = False
) -> Collected:
    """Return the files for ``exercises`` that one learner handed in. The content of a submission
    never causes an exception.

    Args:
        accept_names: whether a file counts whose name only hints at an exercise, if it is the only
            one.

    Raises: EnvironmentFault or OSError if this machine cannot read files or unpack archives.
    """
    all_collected = [
        _collect_entry(entry, exercises, accept_names) for entry in submissions.entries
    ]
    if len(all_collected) == 1:
        return all_collected[0]
    # the latest submission, but one without exercise files never counts before one with some
    ranked = sorted(
        range(len(all_collected)),
        key=lambda n: (bool(all_collected[n].files), all_collected[n].time, n),
    )
    counts = all_collected[ranked[-1]]
    names = [_describe_sources(entry) for entry in submissions.entries]
    counts.notes.insert(
        0,
        _("{count} submissions: {names}; the later one counts: {name}").format(
            count=len(names), names=", ".join(names), name=names[ranked[-1]]
        ),
    )
    return counts


@dataclass(frozen=True)
class Clock:
    """The time when a file was handed in, in seconds since 1970, or 0 if it is not known.

    ``source`` is where the time is from, or why it is not known. ``vouched`` is true if the system
    that took the file says the time, or at least whether the file is late.
    """

    time: float
    source: str
    vouched: bool = False


def read_clock(entry: Entry, member: Member) -> Clock:
    """Return when a file was handed in.

    The system that took the file is asked first: the times in an archive and on a disk are those
    of the learner's machine, of a copy or of a clone.
    """
    if entry.submitted:
        return Clock(entry.submitted, entry.clock or MAPPING_CLOCK, vouched=True)
    if entry.marks_late:
        return Clock(0.0, entry.clockless, vouched=True)
    if member.packed:
        source = N_("the time in the archive") if member.time else N_("the archive has no time")
        return Clock(member.time, source)
    if entry.clockless:
        return Clock(0.0, entry.clockless)
    return Clock(member.time, N_("the file's time on the disk"))


def _describe_sources(entry: Entry) -> str:
    return " + ".join(make_visible_line(source.path.name) for source in entry.sources) or "nothing"


def _collect_entry(entry: Entry, exercises: Collection[Exercise], accept_names: bool) -> Collected:
    collected = Collected(entry, notes=list(entry.notes), problem=entry.problem)
    if entry.problem:
        return collected
    timed = [pair for source in entry.sources for pair in _read_source(source, collected)]
    members = [member for member, _time in timed]
    ids = {exercise.id: exercise for exercise in exercises}
    candidates, hinting = _group_members(members, ids, collected)
    for exercise_id in sorted(candidates):
        _choose(ids[exercise_id], candidates[exercise_id], collected)
        collected.refused.pop(exercise_id, None)
    for exercise_id in sorted(hinting):
        misnamed = hinting[exercise_id]
        if accept_names and exercise_id in ids and exercise_id not in candidates:
            misnamed = _accept_name(ids[exercise_id], misnamed, collected)
        collected.misnamed += [Misnamed(m.path, exercise_id, m.unwanted) for m in misnamed]
    for entry_misnamed in collected.misnamed:
        collected.note(entry_misnamed.note, entry_misnamed.exercise)
    counted = {id(member) for member in collected.files.values()}
    collected.time = max((time for member, time in timed if id(member) in counted), default=0.0)
    if len(collected.notes) > _MOST_NOTES:
        collected.notes[_MOST_NOTES:] = [
            _("and {count} more such things").format(count=len(collected.notes) - _MOST_NOTES)
        ]
    is_empty = all(member.unwanted and id(member) not in counted for member in members)
    if is_empty and not collected.refused and not collected.problem:
        collected.problem = _find_problem(collected)
    return collected


def _group_members(
    members: list[Member], ids: Collection[str], collected: Collected
) -> tuple[dict[str, list[Member]], dict[str, list[Member]]]:
    """Return by exercise the files that have its name, and by the exercise that they hint at, or
    "", those with a wrong name. A file of progress is kept in ``collected``."""
    candidates: dict[str, list[Member]] = {}
    hinting: dict[str, list[Member]] = {}
    for member in members:
        if PurePosixPath(member.path).name == "progress.json":
            collected.progress = member.data
        elif member.unwanted:
            hinting.setdefault(_guess_exercise(member.path), []).append(member)
        elif (exercise_id := _find_exercise(member.path)) in ids:
            candidates.setdefault(exercise_id, []).append(member)
    return candidates, hinting


def _find_problem(collected: Collected) -> str:
    """Return why there is no file in a submission, and take that away from the notes."""
    notes = [misnamed.note for misnamed in collected.misnamed] or collected.notes
    if notes:
        collected.notes.remove(problem := notes[0])
        return problem
    problem = _("there is no exercise file (ex07a_NAME.py) in it")
    holds = _("; it holds {names}").format(names=", ".join(collected.others))
    return problem + (holds if collected.others else "")


def _guess_exercise(path: str) -> str:
    """Return the exercise that a wrong name hints at; "" if there is none of that name."""
    guess = guess_exercise(PurePosixPath(path))
    return guess if guess in catalog.exercises() else ""


def _accept_name(exercise: Exercise, misnamed: list[Member], collected: Collected) -> list[Member]:
    """Let the only file that may be one of an exercise count as that; return those that do not
    count. Copies with the same bytes are one file."""
    code = [member for member in misnamed if member.data and member.path[-6:].lower() != ".ipynb"]
    if len({member.data for member in code}) != 1:
        return misnamed
    collected.files[exercise.id] = code[0]
    collected.refused.pop(exercise.id, None)
    note = _("{file} counts as {name}.py (--accept-names)")
    collected.note(note.format(file=code[0].path, name=exercise.file), exercise.id)
    return [member for member in misnamed if member.data != code[0].data]


def _find_exercise(path: str) -> str:
    match = _NAME.match(PurePosixPath(path).name)
    return match["id"][2:].lower() if match else ""


def _choose(exercise: Exercise, members: list[Member], collected: Collected) -> None:
    chosen = max(members, key=lambda member: _rank(exercise, member))
    collected.files[exercise.id] = chosen
    if any(member.data != chosen.data for member in members):
        paths = ", ".join(sorted(member.path for member in members))
        note = _("{count} files ({paths}); {file} counts")
        collected.note(note.format(count=len(members), paths=paths, file=chosen.path), exercise.id)


def _rank(exercise: Exercise, member: Member) -> tuple:
    path = PurePosixPath(member.path)
    stem = path.name[: -len(".py")].lower()
    appended = _APPENDED.search(stem)
    number = int(appended["one"] or appended["two"] or 1) if appended else 0
    bare = stem[: appended.start()] if appended else stem
    return (
        bare == exercise.file,
        path.parent.name == "exercises",
        -len(path.parts),
        member.time,
        number,
        member.path,
    )


def _read_source(source: SubmissionSource, collected: Collected) -> Iterator[tuple[Member, float]]:
    """Yield each member that may count, with its time on this disk: that of the file, or of the
    archive that contains it."""
    try:
        status = os.lstat(source.path)
    except OSError as error:
        collected.notes.append(
            _("{file} cannot be read: {reason}").format(
                file=make_visible_line(source.path.name), reason=error.strerror
            )
        )
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _read_folder(source.path, collected)
    else:
        yield from _read_file(
            source.path, PurePosixPath(source.name or source.path.name), status, collected
        )


def _read_file(
    path: Path, name: PurePosixPath, status: os.stat_result, collected: Collected
) -> Iterator[tuple[Member, float]]:
    if is_archive(name.name):
        yield from _read_archive(path, "", status, collected)
    elif is_wanted(name):
        if member := _read_member(path, name, collected):
            yield member, member.time
    elif why := explain_unwanted(name):
        yield _read_misnamed(path, name, why), status.st_mtime
    elif not collected.notes:
        note = _("{file} is no exercise file")
        collected.notes.append(note.format(file=make_visible_line(name.name)))


def _read_archive(
    path: Path, before: str, status: os.stat_result, collected: Collected
) -> Iterator[tuple[Member, float]]:
    unpacked = unpack(path)
    collected.notes += [*unpacked.notes, *([unpacked.problem] if unpacked.problem else [])]
    for member in unpacked.members:
        yield (replace(member, path=f"{before}{member.path}", packed=True), status.st_mtime)


def _read_member(path: Path, name: PurePosixPath, collected: Collected) -> Member | None:
    file_name = make_visible_line(str(name))
    try:
        data = read_plain_file(path, FILE_BYTES)
        return Member(file_name, data, path.lstat().st_mtime)
    except OSError as error:
        fault = environment_fault(error)
        if fault is not None and not isinstance(error, PermissionError):
            # too many open files, or no memory: the fault lies with this machine, not with the
            # submission
            raise
        why = (
            f"{file_name} {error.strerror}"
            if str(error.strerror).startswith("is ")
            else _("{file} cannot be read: {reason}").format(file=file_name, reason=error.strerror)
        )
        collected.refused[_find_exercise(str(name))] = why
        collected.notes.append(why)
        return None


def _read_misnamed(path: Path, name: PurePosixPath, why: str) -> Member:
    """Return a file whose name does not count, without its bytes if it cannot be read."""
    data = b""
    with contextlib.suppress(PermissionError, NoPlainFile):
        data = read_plain_file(path, FILE_BYTES)
    return Member(make_visible_line(str(name)), data, path.lstat().st_mtime, unwanted=why)


def _read_folder(folder: Path, collected: Collected) -> Iterator[tuple[Member, float]]:
    looked_at, archives = 0, 0
    for path, name, status in _walk(folder, collected):
        looked_at += 1
        if looked_at > _MOST_ENTRIES:
            collected.notes.append(
                _("it holds more than {count} files; the rest was not looked at").format(
                    count=_MOST_ENTRIES
                )
            )
            return
        if is_archive(name.name) and stat.S_ISREG(status.st_mode):
            archives += 1
            if archives > _MOST_ARCHIVES:
                collected.notes.append(
                    _("{file}: not read, {count} archives were read before it").format(
                        file=make_visible_line(str(name)), count=_MOST_ARCHIVES
                    )
                )
                continue
            yield from _read_archive(path, f"{make_visible_line(str(name))}/", status, collected)
        elif is_wanted(name):
            if member := _read_member(path, name, collected):
                yield member, member.time
        elif why := explain_unwanted(name):
            yield _read_misnamed(path, name, why), status.st_mtime
        elif name.suffix in (".py", ".ipynb") and len(collected.others) < _MOST_OTHERS:
            collected.others.append(make_visible_line(str(name)))


def _walk(
    folder: Path, collected: Collected
) -> Iterator[tuple[Path, PurePosixPath, os.stat_result]]:
    """Yield all entries below a folder except folders, with their names and states; the entries of
    one folder in the order of their names.

    No link is followed.
    """
    waiting = [(folder, PurePosixPath())]
    while waiting:
        current, name = waiting.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError as error:
            collected.notes.append(
                _("{file} cannot be read: {reason}").format(
                    file=make_visible_line(str(name / ".")), reason=error.strerror
                )
            )
            continue
        for entry in entries:
            inner = name / entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                collected.notes.append(
                    _("{file} cannot be read: {reason}").format(
                        file=make_visible_line(str(inner)), reason=error.strerror
                    )
                )
                continue
            if not stat.S_ISDIR(status.st_mode):
                yield Path(entry.path), inner, status
            elif not is_skipped(inner) and len(inner.parts) <= _MOST_LEVELS:
                waiting.append((Path(entry.path), inner))
