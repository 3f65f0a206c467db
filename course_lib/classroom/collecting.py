"""Takes the exercise files out of what one learner handed in, and says of two which one counts.

The rules, which a report repeats where one was needed:

- Of two submissions by one learner the later one counts, and it alone.
- Of two different files for one exercise counts: the one named as the course names it before another; then the one in a folder
  ``exercises``; then the one that lies higher; then the later one; then the last by name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from course_lib.base.files import read_plain_file
from course_lib.base.installation import environment_fault
from course_lib.base.text import make_visible_line
from course_lib.catalog import Exercise
from course_lib.classroom.archives import FILE_BYTES, Member, explain_unwanted, is_archive, is_skipped, is_wanted, unpack
from course_lib.classroom.discovery import Entry, Submissions, SubmissionSource

_MOST_ENTRIES = 20_000
_MOST_LEVELS = 16
_MOST_ARCHIVES = 3
_MOST_NOTES = 12
_MOST_OTHERS = 3
_NAME = re.compile(r"(?P<id>ex\d\d[a-z])(?![a-z0-9])[^.]*", re.IGNORECASE)
# what systems and browsers append to a name that is taken: -1, (2), " copy"
_APPENDED = re.compile(r"(?:[-_ ]?\((?P<one>\d{1,4})\)|[-](?P<two>\d{1,4})| copy)$", re.IGNORECASE)


@dataclass
class Collected:
    """What counts of one learner's submissions.

    ``files``: the file that counts, by exercise; ``refused``: why there is a file for an exercise and it cannot be read. ``problem``: why
    nothing could be read at all; ``notes``: what else a person should know. ``progress``: the learner's progress file. ``time`` tells which of two
    submissions is the later: it is the latest of the files and archives that count on this disk, in seconds since 1970; 0 if there is none.
    ``others``: the first files of Python code that are no exercise's.
    """

    entry: Entry
    files: dict[str, Member] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    progress: bytes | None = None
    time: float = 0.0
    others: list[str] = field(default_factory=list)


def collect(submissions: Submissions, exercises: Collection[Exercise]) -> Collected:
    """The files of ``exercises`` that one learner handed in. Never raises for what a learner left there.

    Raises: EnvironmentFault or OSError if this machine does not let an archive be read.
    """
    all_collected = [_collect_entry(entry, exercises) for entry in submissions.entries]
    if len(all_collected) == 1:
        return all_collected[0]
    # the later one; one with nothing in it never hides one with something
    ranked = sorted(range(len(all_collected)), key=lambda n: (bool(all_collected[n].files), all_collected[n].time, n))
    counts = all_collected[ranked[-1]]
    names = [_describe_sources(entry) for entry in submissions.entries]
    counts.notes.insert(0, f"{len(names)} submissions: {', '.join(names)}; the later one counts: {names[ranked[-1]]}")
    return counts


def read_clock(entry: Entry, member: Member) -> tuple[float, str]:
    """Return when a file was handed in, in seconds since 1970, and how that is known; 0, and why not, where it is not known."""
    if entry.submitted:
        return entry.submitted, "the mapping's time"
    if member.packed:
        return member.time, "the time in the archive" if member.time else "the archive has no time"
    if entry.clockless:
        return 0.0, entry.clockless
    return member.time, "the file's time on the disk"


def _describe_sources(entry: Entry) -> str:
    return " + ".join(make_visible_line(source.path.name) for source in entry.sources) or "nothing"


def _collect_entry(entry: Entry, exercises: Collection[Exercise]) -> Collected:
    collected = Collected(entry, notes=list(entry.notes), problem=entry.problem)
    if entry.problem:
        return collected
    members: list[Member] = []
    times: list[float] = []
    for source in entry.sources:
        for found, time in _read_source(source, collected):
            members.append(found)
            times.append(time)
    ids = {exercise.id: exercise for exercise in exercises}
    candidates: dict[str, list[int]] = {}
    for number, member in enumerate(members):
        if PurePosixPath(member.path).name == "progress.json":
            collected.progress = member.data
        elif (wanted := _find_exercise(member.path)) in ids:
            candidates.setdefault(wanted, []).append(number)
    for exercise_id in sorted(candidates):
        _choose(ids[exercise_id], [members[n] for n in candidates[exercise_id]], collected)
        collected.refused.pop(exercise_id, None)
    counted = {id(member) for member in collected.files.values()}
    collected.time = max((time for member, time in zip(members, times, strict=True) if id(member) in counted), default=0.0)
    if len(collected.notes) > _MOST_NOTES:
        collected.notes[_MOST_NOTES:] = [f"and {len(collected.notes) - _MOST_NOTES} more such things"]
    if not members and not collected.refused and not collected.problem:
        holds = f"; it holds {', '.join(collected.others)}" if collected.others else ""
        collected.problem = collected.notes.pop(0) if collected.notes else f"there is no exercise file (ex07a_NAME.py) in it{holds}"
    return collected


def _find_exercise(path: str) -> str:
    match = _NAME.match(PurePosixPath(path).name)
    return match["id"][2:].lower() if match else ""


def _choose(exercise: Exercise, members: list[Member], collected: Collected) -> None:
    chosen = max(members, key=lambda member: _rank(exercise, member))
    collected.files[exercise.id] = chosen
    if any(member.data != chosen.data for member in members):
        paths = ", ".join(sorted(member.path for member in members))
        collected.notes.append(f"{exercise.id}: {len(members)} files ({paths}); {chosen.path} counts")


def _rank(exercise: Exercise, member: Member) -> tuple:
    path = PurePosixPath(member.path)
    stem = path.name[: -len(".py")].lower()
    appended = _APPENDED.search(stem)
    number = int(appended["one"] or appended["two"] or 1) if appended else 0
    bare = stem[: appended.start()] if appended else stem
    return bare == exercise.file, path.parent.name == "exercises", -len(path.parts), member.time, number, member.path


def _read_source(source: SubmissionSource, collected: Collected) -> Iterator[tuple[Member, float]]:
    """Each member that may matter, with the time that counts for it: the file's own, or that of the archive it is in."""
    try:
        status = os.lstat(source.path)
    except OSError as error:
        collected.notes.append(f"{make_visible_line(source.path.name)} cannot be read: {error.strerror}")
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _read_folder(source.path, collected)
    else:
        yield from _read_file(source.path, PurePosixPath(source.name or source.path.name), status, collected)


def _read_file(path: Path, name: PurePosixPath, status: os.stat_result, collected: Collected) -> Iterator[tuple[Member, float]]:
    if is_archive(name.name):
        yield from _read_archive(path, "", status, collected)
    elif is_wanted(name):
        if member := _read_member(path, name, collected):
            yield member, member.time
    elif why := explain_unwanted(name):
        collected.notes.append(f"{make_visible_line(name.name)}: not read, it {why}")
    elif not collected.notes:
        collected.notes.append(f"{make_visible_line(name.name)} is no exercise file")


def _read_archive(path: Path, before: str, status: os.stat_result, collected: Collected) -> Iterator[tuple[Member, float]]:
    unpacked = unpack(path)
    collected.notes += [*unpacked.notes, *([unpacked.problem] if unpacked.problem else [])]
    for member in unpacked.members:
        yield Member(f"{before}{member.path}", member.data, member.time, packed=True), status.st_mtime


def _read_member(path: Path, name: PurePosixPath, collected: Collected) -> Member | None:
    shown = make_visible_line(str(name))
    try:
        data = read_plain_file(path, FILE_BYTES)
        return Member(shown, data, path.lstat().st_mtime)
    except OSError as error:
        fault = environment_fault(error)
        if fault is not None and not isinstance(error, PermissionError):
            raise  # too many open files, no memory: that is this machine's, and nobody's submission is at fault
        why = f"{shown} {error.strerror}" if str(error.strerror).startswith("is ") else f"{shown} cannot be read: {error.strerror}"
        collected.refused[_find_exercise(str(name))] = why
        collected.notes.append(why)
        return None


def _read_folder(folder: Path, collected: Collected) -> Iterator[tuple[Member, float]]:
    looked_at, archives = 0, 0
    for path, name, status in _walk(folder, collected):
        looked_at += 1
        if looked_at > _MOST_ENTRIES:
            collected.notes.append(f"it holds more than {_MOST_ENTRIES} files; the rest was not looked at")
            return
        if is_archive(name.name) and stat.S_ISREG(status.st_mode):
            archives += 1
            if archives > _MOST_ARCHIVES:
                collected.notes.append(f"{make_visible_line(str(name))}: not read, {_MOST_ARCHIVES} archives were read before it")
                continue
            yield from _read_archive(path, f"{make_visible_line(str(name))}/", status, collected)
        elif is_wanted(name):
            if member := _read_member(path, name, collected):
                yield member, member.time
        elif why := explain_unwanted(name):
            collected.notes.append(f"{make_visible_line(str(name))}: not read, it {why}")
        elif name.suffix in (".py", ".ipynb") and len(collected.others) < _MOST_OTHERS:
            collected.others.append(make_visible_line(str(name)))


def _walk(folder: Path, collected: Collected) -> Iterator[tuple[Path, PurePosixPath, os.stat_result]]:
    """Everything in a folder but folders, in the order of names; no link is followed."""
    waiting = [(folder, PurePosixPath())]
    while waiting:
        here, name = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            collected.notes.append(f"{make_visible_line(str(name / '.'))} cannot be read: {error.strerror}")
            continue
        for entry in entries:
            inner = name / entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                collected.notes.append(f"{make_visible_line(str(inner))} cannot be read: {error.strerror}")
                continue
            if not stat.S_ISDIR(status.st_mode):
                yield Path(entry.path), inner, status
            elif not is_skipped(inner) and len(inner.parts) <= _MOST_LEVELS:
                waiting.append((Path(entry.path), inner))
