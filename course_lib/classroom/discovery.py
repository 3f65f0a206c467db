"""The learners of a class and the places of their submissions, found in the folder that a learning
platform's download makes.

This module opens folders only, and of files only Gradescope's list of submissions. It recognises
five layouts by the names in the folder:

- Canvas, "Download Submissions": flat files ``doejane_12345_67890_ex07a_layer_norm_forward.py``
  with the numbers of the user and of the file; ``doejane_LATE_12345_...`` if the file was late
  (``lib/content_zipper.rb`` of instructure/canvas-lms at 05e9653);
- Moodle, "Download all submissions": folders ``Jane Doe_12345_assignsubmission_file`` (older
  versions add ``_`` at the end), or files whose names begin so; ``Group
  A_77_assignsubmission_file`` for a group, and no number for learners who are in no group
  (``mod/assign/classes/downloader.php`` of moodle/moodle);
- Gradescope, "Export Submissions": folders ``submission_12345``, and ``submission_metadata.yml``
  with names, numbers, addresses, times and groups (:mod:`gradescope_export`);
- cloned repositories ``assignment-username``, each with a folder ``exercises``, as GitHub Classroom
  made them until 2026-08-28;
- plain: one folder or archive per learner, with the learner's name.

For any other layout, a mapping file names the learners and their paths.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.text import make_visible_line, shorten
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.classroom.archives import is_archive, name_without_suffix
from course_lib.classroom.gradescope_export import METADATA, Exported, Submitter, read_metadata
from course_lib.classroom.own_word import read_table
from course_lib.classroom.weeks import read_moment

CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>\d+|anon_[^_]+)_(?P<file>\d+)_(?P<rest>.+)"
)
CANVAS_ANONYMOUS = re.compile(
    r"(?P<name>)(?P<late>LATE_)?(?P<id>anon_[^_]+)_(?P<file>\d+)_(?P<rest>.+)"
)
CANVAS_ONLINE = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>\d+|anon_[^_]+)_(?P<kind>text|link)\.html"
)
MOODLE = re.compile(
    r"(?P<name>.+?)(?:_(?P<id>\d+))?_assignsubmission_(?P<kind>[a-z0-9]+)_?(?P<rest>.*)"
)
_LONGEST = 120  # limit on the characters of a name
_MAP_COLUMNS = ("learner", "path", "id", "login", "submitted", "email")
_CANVAS_CLOCK = N_("Canvas's download has no times")
_MOODLE_CLOCK = N_("Moodle's download has no times")
_GRADESCOPE_CLOCK = N_("Gradescope's time")
_CLONE_CLOCK = N_("a clone has the time of cloning")
_KINDS = {
    stat.S_IFLNK: N_("{file} is a symbolic link, which is not followed"),
    stat.S_IFIFO: N_("{file} is a pipe"),
    stat.S_IFSOCK: N_("{file} is a socket"),
    stat.S_IFBLK: N_("{file} is a device"),
    stat.S_IFCHR: N_("{file} is a device"),
}


@dataclass(frozen=True)
class SubmissionSource:
    """A folder, an archive or a plain file that belongs to a learner.

    ``name`` is the name that the learner gave it, if the system that the class was downloaded from
    put a prefix in front, else "".
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Entry:
    """One submission of one learner.

    ``key`` is unique to the learner: the system's own number if there is one, else the name.
    ``learner`` is the name as it is shown. ``id`` and ``login`` match the learner to a gradebook;
    they are empty if the layout does not tell them. ``late`` is true if the system marks the
    submission as late, ``marks_late`` if it marks late submissions at all. ``submitted`` is its
    time in seconds since 1970 if the system or a mapping, named by ``clock``, says it, else 0.
    ``address`` is the learner's e-mail address, and ``feedback_prefix`` the beginning of the names
    under which the system takes feedback files back; both are empty if the layout does not tell.
    ``clockless`` explains why the times of the files on this disk are not the times of submission,
    or is "". ``problem`` explains why the submission cannot be read, or is "". ``notes`` has other
    remarks for the teacher.
    """

    key: str
    learner: str
    sources: tuple[SubmissionSource, ...] = ()
    id: str = ""
    login: str = ""
    late: bool = False
    marks_late: bool = False
    submitted: float = 0.0
    clock: str = ""
    address: str = ""
    feedback_prefix: str = ""
    clockless: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submissions:
    """All submissions of one learner: one entry, or several entries with the learner's key."""

    entries: tuple[Entry, ...]

    @property
    def learner(self) -> Entry:
        return self.entries[0]


def discover(folder: Path, mapping: Path | None = None) -> list[Submissions]:
    """Return the submissions of all learners in ``folder``, or of those in ``mapping``, in the
    order of the learners' names.

    Args:
        folder: the class's folder.
        mapping: a CSV file with the columns learner and path (relative to ``folder``), and
            optionally id, login and submitted.

    Raises: CourseError if the folder does not exist, has no submission, or is itself one learner's
    submission; or if the mapping cannot be used.
    """
    entries = _read_mapping(folder, mapping) if mapping else _read_folder(folder)
    people: dict[str, list[Entry]] = {}
    for entry in entries:
        people.setdefault(entry.key, []).append(entry)
    ordered = sorted(people.items(), key=lambda item: (item[1][0].learner.casefold(), item[0]))
    return _tell_apart([Submissions(tuple(entries)) for _, entries in ordered])


def list_strays(folder: Path) -> list[str]:
    """Return the files in a class's folder that belong to no submission, such as ``notes.txt``."""
    return [make_visible_line(name) for name in _list_folder(folder) if _is_stray(folder / name)]


def _is_stray(path: Path) -> bool:
    """Return whether ``path`` is a plain file that is no archive and whose name has none of the
    systems' patterns."""
    patterns = (CANVAS, CANVAS_ANONYMOUS, CANVAS_ONLINE, MOODLE)
    return (
        _is_plain(path)
        and not is_archive(path.name)
        and path.name != METADATA
        and not any(p.fullmatch(path.name) for p in patterns)
    )


def _tell_apart(people: list[Submissions]) -> list[Submissions]:
    """Append the learner's number to the shown name if several learners have the same name."""
    names = [person.learner.learner for person in people]
    distinct = []
    for person in people:
        learner = person.learner
        if names.count(learner.learner) > 1 and learner.id:
            name = f"{learner.learner} ({learner.id})"
            person = Submissions(tuple(replace(entry, learner=name) for entry in person.entries))
        distinct.append(person)
    return distinct


def _read_folder(folder: Path) -> list[Entry]:
    names = _list_folder(folder)
    if not names:
        raise CourseError(
            _(
                "there is no submission in {folder}. It needs one sub-folder or archive a learner;"
                " `course grade --help` lists the layouts."
            ).format(folder=paths.shown(folder))
        )
    found, other_names = _read_exports(folder, names)
    if not found and all(
        re.match(r"ex\d\d[a-z]_", name) or name == "manifest.json" for name in other_names
    ):
        raise CourseError(
            _(
                "{folder} holds exercise files: it is one learner's submission, not a class. Name"
                " the folder above it, with one sub-folder or archive a learner."
            ).format(folder=paths.shown(folder))
        )
    other_names = [name for name in other_names if not _is_stray(folder / name)]
    if not found and not other_names:
        raise CourseError(
            _("there is no submission in {folder}, but only {files}.").format(
                folder=paths.shown(folder), files=", ".join(map(make_visible_line, names[:3]))
            )
        )
    if len(names) == 1:
        _refuse_nested(folder, names[0])
    prefix = _find_classroom_prefix(folder, other_names)
    return [*found, *(_read_plain(folder / name, prefix) for name in other_names)]


def _read_exports(folder: Path, names: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """Return an entry for each submission that Canvas, Moodle or Gradescope wrote, and the names
    that belong to none of them."""
    canvas = _read_canvas(folder, names)
    of_canvas = _list_file_names(canvas)
    other_names = [name for name in names if name not in of_canvas]
    moodle = _read_moodle(folder, other_names)
    gradescope = _read_gradescope(folder) if METADATA in other_names else []
    of_gradescope = {METADATA} | _list_file_names(gradescope)
    return [*canvas, *moodle, *gradescope], [
        name for name in other_names if not MOODLE.fullmatch(name) and name not in of_gradescope
    ]


def _list_file_names(entries: Sequence[Entry]) -> set[str]:
    return {source.path.name for entry in entries for source in entry.sources}


def _refuse_nested(folder: Path, name: str) -> None:
    """Raise CourseError if ``folder`` holds nothing but the class's folder ``name``, which would be
    read as one learner's submission."""
    inner = folder / name
    if not inner.is_dir() or inner.is_symlink() or (inner / "exercises").exists():
        return
    names = _list_folder(inner)
    several = {
        each
        for each in names
        if MOODLE.fullmatch(each) or (CANVAS.fullmatch(each) and _is_plain(inner / each))
    }
    if METADATA in names:
        several = set(names) - {METADATA}
    # one learner's submission has an exercise once or twice; three files of it come from several
    # learners
    if not several:
        owners: dict[str, list[str]] = {}
        for file in (
            *inner.glob("*/ex[0-9][0-9]*.py"),
            *inner.glob("*/exercises/ex[0-9][0-9]*.py"),
        ):
            owners.setdefault(file.name, []).append(file.relative_to(inner).parts[0])
        several = {each for folders in owners.values() if len(folders) > 2 for each in folders}
    if several:
        raise CourseError(
            _(
                "{folder} holds nothing but the folder {name}, and that one holds what looks like"
                " the submissions of {count} learners. If that is the class, name {inner}; if it is"
                " one learner, say so with --map."
            ).format(
                folder=paths.shown(folder), name=make_visible_line(name), count=len(several),
                inner=paths.shown(inner),
            )
        )  # fmt: skip


def _list_folder(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        problem = _("{file} is a file, and a class's folder is wanted.")
        unpack = _("Unpack it first.") if is_archive(folder.name) else ""
        raise CourseError(
            join_sentences(problem.format(file=paths.shown(folder)), unpack)
        ) from None
    except OSError as error:
        raise CourseError(
            _("{file} cannot be read: {reason}.").format(
                file=paths.shown(folder), reason=error.strerror
            )
        ) from None
    return sorted(
        name
        for name in names
        if not name.startswith(".") and name not in ("__MACOSX", "desktop.ini")
    )


def _read_canvas(folder: Path, names: Sequence[str]) -> list[Entry]:
    """Return an entry per user number of Canvas. Folders are left out, because Canvas writes only
    files."""
    entries: dict[str, Entry] = {}
    for name in names:
        online = CANVAS_ONLINE.fullmatch(name)
        match = online or CANVAS_ANONYMOUS.fullmatch(name) or CANVAS.fullmatch(name)
        if match is None or "assignsubmission" in name or not _is_plain(folder / name):
            continue
        number = match["id"]
        learner_name = clean_name(match["name"] or number)
        entry = entries.setdefault(
            number,
            Entry(
                f"canvas {number}",
                learner_name,
                id=number,
                marks_late=True,
                feedback_prefix="" if online else name.removesuffix(match["rest"]),
                clockless=_CANVAS_CLOCK,
            ),
        )
        source = SubmissionSource(folder / name, "" if online else match["rest"])
        notes = (
            (
                _("{file} was typed into Canvas, and is not graded").format(
                    file=make_visible_line(name)
                ),
            )
            if online
            else ()
        )
        entries[number] = replace(
            entry,
            sources=(*entry.sources, source),
            late=entry.late or bool(match["late"]),
            notes=(*entry.notes, *notes),
        )
    return list(entries.values())


def _read_moodle(folder: Path, names: Sequence[str]) -> list[Entry]:
    """Return an entry per number of Moodle, or per name where there is no number. Its sources are a
    folder or flat files."""
    entries: dict[str, Entry] = {}
    for name in names:
        match = MOODLE.fullmatch(name)
        if match is None:
            continue
        key, path = match["id"] or match["name"], folder / name
        name_of = clean_name(match["name"])
        number = match["id"] or ""
        # Moodle takes the second part between "_" for the number
        prefix = f"{match['name'].replace('_', ' ')}_{number}_assignsubmission_file_"
        entry = entries.setdefault(
            key,
            Entry(
                f"moodle {key}",
                name_of,
                id=number,
                feedback_prefix=prefix if number else "",
                clockless=_MOODLE_CLOCK,
            ),
        )
        if match["kind"] != "file":
            description = (
                _("an online text")
                if match["kind"] == "onlinetext"
                else _("no file but {kind}").format(kind=match["kind"])
            )
            entries[key] = replace(
                entry,
                notes=(
                    *entry.notes,
                    _("{file} is {description}, which is not graded").format(
                        file=make_visible_line(name), description=description
                    ),
                ),
            )
        elif problem := _find_obstacle(path, match["rest"]):
            entries[key] = replace(entry, notes=(*entry.notes, problem))
        else:
            entries[key] = replace(
                entry, sources=(*entry.sources, SubmissionSource(path, match["rest"]))
            )
    return list(entries.values())


def _read_gradescope(folder: Path) -> list[Entry]:
    """Return an entry per member of each group: each has a mark of their own, as in Gradescope."""
    return [
        _make_exported_entry(folder, exported, person)
        for exported in read_metadata(folder / METADATA)
        for person in exported.submitters
    ]


def _make_exported_entry(folder: Path, exported: Exported, person: Submitter) -> Entry:
    path = folder / exported.folder
    others = [other.name or other.email for other in exported.submitters if other != person]
    return Entry(
        f"gradescope {person.sid or person.email or person.name}",
        clean_name(person.name or person.email or person.sid),
        (SubmissionSource(path, ""),),
        id=clean_name(person.sid) if person.sid else "",
        login=clean_name(person.email) if person.email else "",
        submitted=exported.submitted,
        clock=_GRADESCOPE_CLOCK,
        address=clean_name(person.email) if person.email else "",
        problem=_find_obstacle(path),
        notes=(
            (_("handed in together with {names}").format(names=", ".join(map(clean_name, others))),)
            if others
            else ()
        ),
    )


def _find_classroom_prefix(folder: Path, names: Sequence[str]) -> str:
    """Return the prefix before the user's name in the names of cloned repositories; "" if there is
    none.

    It is the name of the folder that ``gh classroom clone`` makes, without "-submissions". In
    another folder it is the common start of the names of all repositories with exercises, up to its
    last hyphen. Other entries of the folder do not count.
    """
    if folder.name.endswith("-submissions"):
        return f"{folder.name.removesuffix('-submissions')}-"
    names = [
        name
        for name in names
        if all(os.path.isdir(folder / name / inner) for inner in (".git", "exercises"))
    ]
    if len(names) < 2:
        return ""
    # all names between these two in order begin with the common start of the two
    lowest, highest = min(names), max(names)
    same = next(
        (n for n, (a, b) in enumerate(zip(lowest, highest, strict=False)) if a != b),
        min(len(lowest), len(highest)),
    )
    return lowest[: lowest[:same].rfind("-") + 1]


def _read_plain(path: Path, prefix: str) -> Entry:
    name = path.name
    clock = _CLONE_CLOCK if os.path.isdir(path / ".git") else ""
    if prefix and name.startswith(prefix) and len(name) > len(prefix):
        user = name[len(prefix) :]
        login, sources = clean_name(user), (SubmissionSource(path, ""),)
        return Entry(
            _make_key(user),
            login,
            sources,
            login=login,
            clockless=clock,
            problem=_find_obstacle(path),
        )
    bare = name_without_suffix(name) if is_archive(name) and not os.path.isdir(path) else name
    return Entry(
        _make_key(bare),
        clean_name(bare),
        (SubmissionSource(path, ""),),
        clockless=clock,
        problem=_find_obstacle(path),
    )


def _find_obstacle(path: Path, given_name: str = "") -> str:
    """Return why ``path`` cannot be a submission; "" if it can. ``given_name`` is the name that the
    learner gave to a flat file, else ""."""
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        return _("{file} cannot be read: {reason}").format(
            file=make_visible_line(path.name), reason=error.strerror
        )
    file_name = make_visible_line(path.name)
    if stat.S_IFMT(mode) in _KINDS:
        return _(_KINDS[stat.S_IFMT(mode)]).format(file=file_name)
    if stat.S_ISREG(mode) and not given_name and not is_archive(path.name):
        return _("{file} is a file; a folder or an archive (zip, tar) was expected").format(
            file=file_name
        )
    return ""


def _read_mapping(folder: Path, mapping: Path) -> list[Entry]:
    rows = read_table(mapping, _("the mapping"), ("learner", "path"), _MAP_COLUMNS)
    if not rows:
        raise CourseError(_("the mapping {file} names nobody.").format(file=paths.shown(mapping)))
    return [_read_row(folder, cells, where) for _line, where, cells in rows]


def _read_row(folder: Path, cells: dict[str, str], where: str) -> Entry:
    if not cells["learner"]:
        raise CourseError(_("{where}, names no learner.").format(where=where))
    path = Path(cells["path"])
    problem, sources = _("nothing was handed in"), ()
    if cells["path"]:
        if path.is_absolute() or ".." in path.parts:
            raise CourseError(
                _("{where}: {path} does not lie in the class's folder.").format(
                    where=where, path=cells["path"]
                )
            )
        problem = _find_obstacle(folder / path, "a flat file")
        sources = (SubmissionSource(folder / path, ""),)
    key = cells.get("id") or cells["learner"]
    number, login = (clean_name(cells[name]) if cells.get(name) else "" for name in ("id", "login"))
    submitted = (
        read_moment(cells["submitted"], f"{where}: submitted").timestamp()
        if cells.get("submitted")
        else 0.0
    )
    return Entry(
        _make_key(key),
        clean_name(cells["learner"]),
        sources,
        number,
        login,
        submitted=submitted,
        address=clean_name(cells["email"]) if cells.get("email") else "",
        problem=problem,
    )


def clean_name(name: str) -> str:
    """Return a name as it is shown everywhere: on one line, without active control characters, its
    accents composed, its length limited."""
    return (
        shorten(make_visible_line(unicodedata.normalize("NFC", name)).strip(), _LONGEST)
        or "(no name)"
    )


def _make_key(name: str) -> str:
    """Return the key of a name. Entries with one key belong to one learner. Names that differ in
    capitals have different keys."""
    return f"name {unicodedata.normalize('NFC', name)}"


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
