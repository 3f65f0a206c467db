"""The unpacking of the exercise files in a zip or tar. It runs in a confined process, because the
archive may be hostile.

The learner chose the names, links and sizes in the archive, and the way in which it is packed. So
only members that look like an exercise file or a progress file are read, each up to a limit. A
member that points outside of the archive, or is a link, is left out, and a note says so. An archive
that unpacks to too many bytes is refused as a whole. No member is written to the disk.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import calendar
import gzip
import io
import lzma
import re
import stat
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from course_lib.base.files import read_plain_file
from course_lib.base.text import make_visible_line, shorten
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.translation import translate_filled
from course_lib.base.worker import WorkerFailure
from course_lib.sandbox import jobs
from course_lib.sandbox.jobs import JobFailure, ResourceLimits
from course_lib.sandbox.machine import Exchange, Machine, ServerKind
from course_lib.sandbox.stage import Stage

KIND = ServerKind("course_lib.classroom.archives:make_machine")
ARCHIVE = "archive"  # the name of the bytes that come with a job
MOST_BYTES = 32 << 20  # limit on the packed size of an archive
MOST_UNPACKED = 256 << 20
# limit on unpacked / packed bytes, for archives of more than _SMALL unpacked bytes
MOST_RATIO = 200
MOST_MEMBERS = 20_000
MOST_WANTED = 200
# one byte more than the grader's limit, so that the grader notices a file that is too large
FILE_BYTES = (1 << 20) + 1
_SMALL = 8 << 20
_LONGEST = 200
_LIMITS = ResourceLimits(
    case=20.0, total=20.0, address_bytes=4 << 30, memory_bytes=1 << 30, resident_bytes=1 << 30
)
_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".zip", ".tar")
_OTHERS = (".7z", ".rar", ".gz", ".bz2", ".xz", ".zst")
WANTED = re.compile(r"(?i:ex\d\d[a-z](?![a-z0-9]).*\.py)|progress\.json")
# wrong names that learners may give to an exercise's file: 07a.py, ex7a.py, exercise_07a.ipynb,
# ex07a_layer_norm_forward.py.txt
_MEANT = re.compile(
    r"(?:ex(?:ercise)?)?[-_ ]?\d{1,2}[-_ ]?[a-z](?![a-z0-9]).*\.(?:py|txt|ipynb)", re.IGNORECASE
)
# the exercise that such a name means
_GUESSED = re.compile(r"(?:ex(?:ercise)?)?[-_ ]?(\d{1,2})[-_ ]?([a-z])(?![a-z0-9])", re.IGNORECASE)
MOST_MISNAMED = 50  # limit on the files with wrong names that are read of an archive
# names in an archive of a whole class, as Canvas and Moodle pack it
_OF_A_CLASS = re.compile(r".*(?:_assignsubmission_|_\d+_\d+_ex\d\d[a-z]).*")
# folders of the course, or of the system that packed the archive, whose files have the names of
# exercises but are no submissions
_SKIPPED = re.compile(
    r"__MACOSX|solutions|tests|site-packages|build|node_modules|kept|__pycache__|\.(?!course$).*"
)


@dataclass(frozen=True)
class Member:
    """A file of a submission.

    ``path`` is its path in the submission, with "/". ``time`` is in seconds since 1970, from the
    archive if the file is ``packed`` in one, else from the disk. ``unwanted`` explains why the file
    does not count under its name, or is "".
    """

    path: str
    data: bytes
    time: float
    packed: bool = False
    unwanted: str = ""


@dataclass(frozen=True)
class Unpacked:
    """The content of an archive: ``members`` that may count, ``notes`` on members left out, and the
    ``problem`` if it cannot be read."""

    members: tuple[Member, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


def is_archive(name: str) -> bool:
    """Return whether a name has the suffix of an archive, including formats that the course does
    not read."""
    return name.lower().endswith((*_SUFFIXES, *_OTHERS))


def name_without_suffix(name: str) -> str:
    suffix = next((s for s in (*_SUFFIXES, *_OTHERS) if name.lower().endswith(s)), "")
    return name[: len(name) - len(suffix)] or name


def is_wanted(path: PurePosixPath) -> bool:
    """Return whether a file has the name of an exercise file or a progress file, and lies in a
    folder that is not skipped."""
    return WANTED.fullmatch(path.name) is not None and not is_skipped(path.parent)


def explain_unwanted(path: PurePosixPath) -> str:
    """Return why a file is not read although its author may have meant it as an exercise's; "" for
    all other files."""
    if WANTED.fullmatch(path.name) or not _MEANT.fullmatch(path.name) or is_skipped(path.parent):
        return ""
    if path.name.lower().endswith(".ipynb"):
        return N_("is a notebook; what is graded is the .py file of exercises/")
    return N_("is not named as the course names its files (ex07a_NAME.py)")


def guess_exercise(path: PurePosixPath) -> str:
    """Return the id that a name such as ``7a.py`` or ``ex7a_norm.txt`` means, "07a"; else ""."""
    match = _GUESSED.match(path.name)
    return f"{int(match[1]):02}{match[2].lower()}" if match else ""


def is_skipped(folder: PurePosixPath) -> bool:
    """Return whether a folder holds no submissions: the course's solutions and tests, caches, and
    hidden folders except ``.course``."""
    return any(_SKIPPED.fullmatch(part) for part in folder.parts)


def unpack(path: Path) -> Unpacked:
    """Return the exercise files in an archive. The content of the archive never causes an
    exception.

    Raises: EnvironmentFault or OSError if this machine cannot start the confined process.
    """
    name = make_visible_line(path.name)
    if not path.name.lower().endswith(_SUFFIXES):
        problem = _("{file} is packed in a way that is not read here; zip and tar are")
        return Unpacked(problem=problem.format(file=name))
    try:
        data = read_plain_file(path, MOST_BYTES + 1)
    except OSError as error:
        problem = _("{file} cannot be read: {reason}")
        return Unpacked(problem=problem.format(file=name, reason=error.strerror))
    if len(data) > MOST_BYTES:
        problem = _("{file} is larger than {count} MB")
        return Unpacked(problem=problem.format(file=name, count=MOST_BYTES >> 20))
    job = {"name": path.name.encode(errors="replace").decode()}
    try:
        return _check_answer(jobs.ask(KIND, job, _LIMITS, inputs={ARCHIVE: data}), name)
    except JobFailure as failure:
        if failure.answer.stage is Stage.STARTING:
            raise jobs.describe_not_started(N_("reads archives"), failure.answer) from None
        problem = _("{file} takes more time or memory to unpack than a submission should")
        return Unpacked(problem=problem.format(file=name))
    except WorkerFailure as failed:
        raise jobs.describe_not_started(N_("reads archives"), failed) from None


def _check_answer(answer: Any, name: str) -> Unpacked:
    """Return a checked copy of the process's answer. The archive may have taken control of the
    process, so the answer is not trusted."""
    try:
        members = tuple(
            Member(
                _cut(m["path"]),
                base64.b64decode(m["data"], validate=True)[:FILE_BYTES],
                _clean_time(m["time"]),
                unwanted=explain_unwanted(PurePosixPath(_cut(m["path"]))),
            )
            for m in answer["members"][: MOST_WANTED + MOST_MISNAMED]
        )
        # the confined process has no catalog
        notes = tuple(translate_filled(_cut(note), "interface") for note in answer["notes"][:20])
        words = translate_filled(_cut(answer["problem"]), "interface")
        problem = f"{name} {words}" if words else ""
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        problem = _("{file} cannot be read: the process that unpacked it gave no proper answer")
        return Unpacked(problem=problem.format(file=name))
    return Unpacked(members, notes, problem)


def _clean_time(seconds: Any) -> float:
    return float(seconds) if isinstance(seconds, (int, float)) and abs(seconds) < 1e11 else 0.0


def _cut(text: str) -> str:
    return shorten(make_visible_line(text), _LONGEST)


def make_machine(_argument: str) -> Machine:
    return _Unpacker()


class _Unpacker(Machine):
    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        exchange.begin_case(0)
        contents = read_members(exchange.read(ARCHIVE), job["name"])
        members = [
            {"path": m.path, "data": base64.b64encode(m.data).decode(), "time": m.time}
            for m in contents.members
        ]
        exchange.write_answer(
            {"members": members, "notes": list(contents.notes), "problem": contents.problem}
        )


class _TooMuch(Exception):
    """Raised for an archive with more bytes or members than a submission may have."""


def read_members(data: bytes, name: str) -> Unpacked:
    """Return the exercise files in the bytes of an archive. :func:`unpack` runs this in its
    process; call it only in a confined process."""
    gathered = _Gathered()
    try:
        if data.startswith(b"PK"):
            _read_zip(data, gathered)
        else:
            _read_tar(data, gathered)
    except _TooMuch as bomb:
        return Unpacked(problem=str(bomb))
    # invalid bytes make the libraries raise many exceptions, and all of them mean that the archive
    # is damaged
    except Exception as error:
        return Unpacked(
            problem=(
                N_("is damaged, or no {kind} ({error})").format(
                    kind="zip" if name.lower().endswith(".zip") else "tar",
                    error=type(error).__name__,
                )
            )
        )
    return Unpacked(tuple(gathered.members), gathered.describe())


class _Gathered:
    def __init__(self) -> None:
        self.members: list[Member] = []
        self.left_out: dict[str, list[str]] = {}
        self.count = 0
        self.misnamed = 0

    def look_at(self, name: str, why_not: str) -> PurePosixPath | None:
        """Return the path of a member if it is to be read, else None. Note every member that points
        outside, whatever its name.

        ``why_not`` explains why the member cannot be read, or is "".
        """
        self.count += 1
        if self.count > MOST_MEMBERS:
            raise _TooMuch(N_("has more than {count} members").format(count=MOST_MEMBERS))
        name = name.replace("\\", "/")
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", name):
            self.left_out.setdefault(N_("points outside the archive"), []).append(name)
        elif _OF_A_CLASS.fullmatch(name):
            self.left_out.setdefault(
                N_("belongs to the download of a class: unpack that, and name its folder"), []
            ).append(name)
        elif is_wanted(path):
            if not why_not:
                if len(self.members) - self.misnamed >= MOST_WANTED:
                    raise _TooMuch(
                        N_("has more than {count} exercise files").format(count=MOST_WANTED)
                    )
                return path
            self.left_out.setdefault(why_not, []).append(name)
        elif why := explain_unwanted(path):
            if not why_not and self.misnamed < MOST_MISNAMED:
                self.misnamed += 1
                return path
            self.left_out.setdefault(why, []).append(name)
        return None

    def describe(self) -> tuple[str, ...]:
        return tuple(
            (
                N_("{file} and {count} more: not read, it {why}")
                if len(names) > 1
                else N_("{file}: not read, it {why}")
            ).format(file=_cut(names[0]), count=len(names) - 1, why=why)
            for why, names in self.left_out.items()
        )


def _read_zip(data: bytes, gathered: _Gathered) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _require_sane(sum(member.file_size for member in members), len(data))
        for member in members:
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            why_not = (
                N_("is encrypted")
                if member.flag_bits & 1
                else N_("is a link")
                if kind not in (0, stat.S_IFREG)
                else ""
            )
            if (path := gathered.look_at(member.filename, why_not)) is not None:
                with archive.open(member) as file:
                    gathered.members.append(
                        Member(str(path), file.read(FILE_BYTES), _read_time(member.date_time))
                    )


def _read_time(date_time: tuple[int, ...]) -> float:
    """Return a zip's time in seconds since 1970. A zip has no time zone, so read it as UTC: then
    all machines get the same result."""
    try:
        return float(calendar.timegm((*date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0


class _Counted(io.RawIOBase):
    """A decompressed stream that raises _TooMuch when more bytes were read from it than an archive
    may have."""

    def __init__(self, stream: IO[bytes], packed: int):
        self.stream, self.packed, self.given = stream, packed, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size if size >= 0 else 1 << 20)
        self.given += len(data)
        _require_sane(self.given, self.packed)
        return data


def _read_tar(data: bytes, gathered: _Gathered) -> None:
    opened: IO[bytes] = io.BytesIO(data)
    for magic, library in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ", lzma)):
        if data.startswith(magic):
            opened = library.open(opened)  # type: ignore[assignment]
    with tarfile.open(fileobj=_Counted(opened, len(data)), mode="r|") as archive:
        for member in archive:
            if member.isdir():
                continue
            why_not = (
                ""
                if member.isreg()
                else N_("is a link")
                if member.issym() or member.islnk()
                else N_("is no plain file")
            )
            if (path := gathered.look_at(member.name, why_not)) is not None:
                file = archive.extractfile(member)
                assert file is not None, "a plain file"
                gathered.members.append(
                    Member(str(path), file.read(FILE_BYTES), float(member.mtime))
                )


def _require_sane(unpacked: int, packed: int) -> None:
    if unpacked > MOST_UNPACKED:
        raise _TooMuch(N_("unpacks to more than {count} MB").format(count=MOST_UNPACKED >> 20))
    if unpacked > _SMALL and unpacked > MOST_RATIO * packed:
        raise _TooMuch(N_("unpacks to more than {count} times its size").format(count=MOST_RATIO))
