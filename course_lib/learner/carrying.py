"""The transfer of a learner's work to another course folder by a zip: the changed exercises and the
progress.

A browser tab and a machine read the same zip. A tab needs it as a copy, because the browser may
delete the tab's files.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, read_plain_file, write_atomic
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.catalog.texts import find_file
from course_lib.learner import progress, workspace

_MOST_BYTES = 8 << 20  # limit for the zip and for each file in it
_PROGRESS = ".course/progress.json"


def pack(file: Path = paths.WORK) -> str:
    """Write the work of this course folder into ``file``; return a sentence that lists its content.

    Raises: CourseError if ``file`` exists already or there is no work; OSError if it cannot be
    written.
    """
    if file.exists():
        raise CourseError(
            _(
                "{file} is there already, and stays as it is. Name another file, or remove it"
                " first."
            ).format(file=paths.shown(file))
        )
    worked = [
        find_file(exercise)
        for exercise in catalog.exercises().values()
        if workspace.has_work(exercise)
    ]
    records = progress.file() if progress.file().exists() else None
    if not worked and records is None:
        raise CourseError(
            _(
                "there is no work to carry yet: no exercise in {folder} was changed, and "
                "nothing was checked."
            ).format(folder=paths.shown(paths.exercises()))
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in worked:
            archive.writestr(f"exercises/{path.name}", path.read_bytes())
        if records is not None:
            archive.writestr(_PROGRESS, records.read_bytes())
    write_atomic(file, packed.getvalue())
    held = [path.name for path in worked] + [_("your progress")] * (records is not None)
    return _("{file} holds {files}.").format(file=paths.shown(file), files=", ".join(held))


def unpack(file: Path = paths.WORK) -> list[str]:
    """Copy the work in ``file`` into this course folder; return a line for each thing that was
    done.

    An exercise file of this folder that differs from the zip's is first copied to ``.course/kept``.
    A progress record of this folder stays, unless only the zip's has a pass.

    Raises: CourseError if ``file`` is no such zip, and then nothing is changed; OSError if it
    cannot be read, or something cannot be written.
    """
    files, ignored = _read(file)
    if not files:
        raise CourseError(
            _(
                "{file} holds no work of this course: no exercises/exNN_*.py and no {progress}."
            ).format(file=paths.shown(file), progress=_PROGRESS)
        )
    # raises before anything is changed
    records = progress.parse(files.pop(_PROGRESS)) if _PROGRESS in files else None
    notes = [
        _("{name} is no part of your work, and was left out.").format(name=name) for name in ignored
    ]
    for exercise in catalog.exercises().values():
        path = find_file(exercise)
        data = files.get(f"exercises/{path.name}")
        if data is None or (path.exists() and path.read_bytes() == data):
            continue
        copy = keep_copy(path, paths.state() / "kept") if workspace.has_work(exercise) else None
        write_atomic(path, data)
        notes.append(
            join_sentences(
                _("{file} is from the zip.").format(file=paths.shown(path)),
                _("Yours is kept as {copy}.").format(copy=paths.shown(copy)) if copy else "",
            )
        )
    if records is not None:
        notes.append(
            _("Records of progress that were taken from the zip: {count}.").format(
                count=progress.take_over(records)
            )
        )
    return notes


def _read(file: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the learner's files in the zip, by name, and the names of its other files.

    Raises: CourseError if it is no zip, or a file in it is too large.
    """
    wanted_names = {
        f"exercises/{exercise.file}.py" for exercise in catalog.exercises().values()
    } | {_PROGRESS}
    files, ignored = {}, []
    try:
        with zipfile.ZipFile(io.BytesIO(read_plain_file(file, _MOST_BYTES))) as archive:
            for info in archive.infolist():
                if info.filename in wanted_names:
                    with archive.open(info) as packed:
                        files[info.filename] = packed.read(_MOST_BYTES + 1)
                elif not info.is_dir():
                    ignored.append(info.filename)
    except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError, NotImplementedError) as problem:
        raise CourseError(
            _("{file} cannot be read as a zip ({problem}). Nothing was changed.").format(
                file=paths.shown(file), problem=problem
            )
        ) from problem
    if large := [name for name, data in files.items() if len(data) > _MOST_BYTES]:
        raise CourseError(
            _("{name} in {file} is larger than {most} MB. Nothing was changed.").format(
                name=large[0], file=paths.shown(file), most=_MOST_BYTES >> 20
            )
        )
    return files, ignored
