"""Takes the exercise files out of a zip or tar, in a confined process: nothing is written to the disk, and nothing has to be trusted.

Who hands in an archive chooses its names, its links, its sizes and how it is packed. So only what looks like an exercise file or a
progress file is read, each to a limit; a member that points outside, or is a link, is left out and said; and an archive that unpacks to too much
is refused as a whole.
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
from course_lib.base.worker import WorkerFailure
from course_lib.sandbox import jobs
from course_lib.sandbox.jobs import JobFailure, ResourceLimits
from course_lib.sandbox.machine import Machine, ServerKind, begin_case, write_answer
from course_lib.sandbox.stage import Stage

KIND = ServerKind("course_lib.classroom.archives:make_machine")
MOST_BYTES = 32 << 20  # of an archive
MOST_UNPACKED = 256 << 20
MOST_RATIO = 200  # unpacked to packed, above _SMALL unpacked bytes
MOST_MEMBERS = 20_000
MOST_WANTED = 200
FILE_BYTES = (1 << 20) + 1  # one more than the grader reads, so that it sees what is too large
_SMALL = 8 << 20
_LONGEST = 200
_LIMITS = ResourceLimits(case=20.0, total=20.0, address_bytes=4 << 30, memory_bytes=1 << 30, resident_bytes=1 << 30)
_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".zip", ".tar")
_OTHERS = (".7z", ".rar", ".gz", ".bz2", ".xz", ".zst")
WANTED = re.compile(r"(?i:ex\d\d[a-z](?![a-z0-9]).*\.py)|progress\.json")
# a name that somebody may have given to an exercise's file: 07a.py, ex7a.py, exercise_07a.ipynb, ex07a_layer_norm_forward.py.txt
_MEANT = re.compile(r"(?:ex(?:ercise)?)?[-_ ]?\d{1,2}[-_ ]?[a-z](?![a-z0-9]).*\.(?:py|txt|ipynb)", re.IGNORECASE)
# of a whole class, as Canvas and Moodle pack it
_OF_A_CLASS = re.compile(r".*(?:_assignsubmission_|_\d+_\d+_ex\d\d[a-z]).*")
# where a copy of the whole course, or a system that packs for us, has files of the same names that nobody handed in
_SKIPPED = re.compile(r"__MACOSX|solutions|tests|site-packages|build|node_modules|kept|__pycache__|\.(?!course$).*")


@dataclass(frozen=True)
class Member:
    """A file of a submission. ``path`` is where it lies in it, with "/"; ``time`` are seconds since 1970, as the archive says if it is ``packed``
    in one, else as the disk says."""

    path: str
    data: bytes
    time: float
    packed: bool = False


@dataclass(frozen=True)
class Unpacked:
    """The members that may matter, what is to be said of the others, and why the whole cannot be read, if so."""

    members: tuple[Member, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


def is_archive(name: str) -> bool:
    """True for a name that ends as archives do, also those that the course does not read."""
    return name.lower().endswith((*_SUFFIXES, *_OTHERS))


def name_without_suffix(name: str) -> str:
    suffix = next((s for s in (*_SUFFIXES, *_OTHERS) if name.lower().endswith(s)), "")
    return name[: len(name) - len(suffix)] or name


def is_wanted(path: PurePosixPath) -> bool:
    """True for what may be an exercise file or a progress file, where such files lie."""
    return WANTED.fullmatch(path.name) is not None and not is_skipped(path.parent)


def explain_unwanted(path: PurePosixPath) -> str:
    """Why a file is not read that its author may have meant as an exercise's; "" for one that is read, and for one that nobody meant."""
    if WANTED.fullmatch(path.name) or not _MEANT.fullmatch(path.name) or is_skipped(path.parent):
        return ""
    if path.name.lower().endswith(".ipynb"):
        return "is a notebook; what is graded is the .py file of exercises/"
    return "is not named as the course names its files (ex07a_NAME.py)"


def is_skipped(folder: PurePosixPath) -> bool:
    """True for a folder whose files are nobody's submission: the course's own solutions and tests, caches, hidden ones but ``.course``."""
    return any(_SKIPPED.fullmatch(part) for part in folder.parts)


def unpack(path: Path) -> Unpacked:
    """What an archive holds of exercise files. Never raises for what is in the archive.

    Raises: EnvironmentFault or OSError if this machine starts no process for it.
    """
    name = make_visible_line(path.name)
    if not path.name.lower().endswith(_SUFFIXES):
        return Unpacked(problem=f"{name} is packed in a way that is not read here; zip and tar are")
    try:
        data = read_plain_file(path, MOST_BYTES + 1)
    except OSError as error:
        return Unpacked(problem=f"{name} cannot be read: {error.strerror}")
    if len(data) > MOST_BYTES:
        return Unpacked(problem=f"{name} is larger than {MOST_BYTES >> 20} MB")
    job = {"archive": base64.b64encode(data).decode(), "name": path.name.encode(errors="replace").decode()}
    try:
        return _check_answer(jobs.ask(KIND, job, _LIMITS), name)
    except JobFailure as failure:
        if failure.answer.stage is Stage.STARTING:
            raise jobs.describe_not_started("reads archives", failure.answer) from None
        return Unpacked(problem=f"{name} takes more time or memory to unpack than a submission should")
    except WorkerFailure as failed:
        raise jobs.describe_not_started("reads archives", failed) from None


def _check_answer(answer: Any, name: str) -> Unpacked:
    """The answer as it should be; the process that gave it may have been taken over by the archive."""
    try:
        members = tuple(
            Member(_cut(m["path"]), base64.b64decode(m["data"], validate=True)[:FILE_BYTES], _clean_time(m["time"]))
            for m in answer["members"][:MOST_WANTED]
        )
        notes = tuple(_cut(note) for note in answer["notes"][:20])
        problem = f"{name} {_cut(answer['problem'])}" if answer["problem"] else ""
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        return Unpacked(problem=f"{name} cannot be read: the process that unpacked it gave no proper answer")
    return Unpacked(members, notes, problem)


def _clean_time(seconds: Any) -> float:
    return float(seconds) if isinstance(seconds, (int, float)) and abs(seconds) < 1e11 else 0.0


def _cut(text: str) -> str:
    return shorten(make_visible_line(text), _LONGEST)


def make_machine(_: str) -> Machine:
    return _Unpacker()


class _Unpacker(Machine):
    def work(self, job: dict[str, Any], folder: Path) -> None:
        begin_case(folder, 0)
        found = read_members(base64.b64decode(job["archive"]), job["name"])
        members = [{"path": m.path, "data": base64.b64encode(m.data).decode(), "time": m.time} for m in found.members]
        write_answer(folder, {"members": members, "notes": list(found.notes), "problem": found.problem})


class _TooMuch(Exception):
    """It unpacks to more than a submission may."""


def read_members(data: bytes, name: str) -> Unpacked:
    """What :func:`unpack` has its process do. Call it only where nothing can be lost."""
    gathered = _Gathered()
    try:
        if data.startswith(b"PK"):
            _read_zip(data, gathered)
        else:
            _read_tar(data, gathered)
    except _TooMuch as bomb:
        return Unpacked(problem=str(bomb))
    except Exception as error:  # whatever the libraries raise of bytes that somebody made up is the same to a reader
        return Unpacked(problem=f"is damaged, or no {'zip' if name.lower().endswith('.zip') else 'tar'} ({type(error).__name__})")
    return Unpacked(tuple(gathered.members), gathered.describe())


class _Gathered:
    def __init__(self) -> None:
        self.members: list[Member] = []
        self.left_out: dict[str, list[str]] = {}
        self.count = 0

    def look_at(self, name: str, why_not: str) -> PurePosixPath | None:
        """The path of a member that is to be read; None for another. What points outside is said whatever it is."""
        self.count += 1
        if self.count > MOST_MEMBERS:
            raise _TooMuch(f"has more than {MOST_MEMBERS} members")
        name = name.replace("\\", "/")
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", name):
            self.left_out.setdefault("points outside the archive", []).append(name)
        elif _OF_A_CLASS.fullmatch(name):
            self.left_out.setdefault("belongs to the download of a class: unpack that, and name its folder", []).append(name)
        elif is_wanted(path):
            if not why_not:
                if len(self.members) >= MOST_WANTED:
                    raise _TooMuch(f"has more than {MOST_WANTED} exercise files")
                return path
            self.left_out.setdefault(why_not, []).append(name)
        elif why := explain_unwanted(path):
            self.left_out.setdefault(why, []).append(name)
        return None

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"{_cut(names[0])}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: not read, it {why}"
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
            why_not = "is encrypted" if member.flag_bits & 1 else "is a link" if kind not in (0, stat.S_IFREG) else ""
            if (path := gathered.look_at(member.filename, why_not)) is not None:
                with archive.open(member) as file:
                    gathered.members.append(Member(str(path), file.read(FILE_BYTES), _read_time(member.date_time)))


def _read_time(date_time: tuple[int, ...]) -> float:
    """A zip knows no time zone: taken for UTC, so that every machine finds the same."""
    try:
        return float(calendar.timegm((*date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0


class _Counted(io.RawIOBase):
    """A decompressed stream that ends the reading when it has given too much."""

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
            why_not = "" if member.isreg() else "is a link" if member.issym() or member.islnk() else "is no plain file"
            if (path := gathered.look_at(member.name, why_not)) is not None:
                file = archive.extractfile(member)
                assert file is not None, "a plain file"
                gathered.members.append(Member(str(path), file.read(FILE_BYTES), float(member.mtime)))


def _require_sane(unpacked: int, packed: int) -> None:
    if unpacked > MOST_UNPACKED:
        raise _TooMuch(f"unpacks to more than {MOST_UNPACKED >> 20} MB")
    if unpacked > _SMALL and unpacked > MOST_RATIO * packed:
        raise _TooMuch(f"unpacks to more than {MOST_RATIO} times its size")
