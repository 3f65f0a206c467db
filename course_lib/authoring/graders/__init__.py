"""Writes the files that ``course release`` makes for another system, which install the course there
and grade one submission.

For GitHub there is a workflow instead.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from course_lib.authoring.release import require_free
from course_lib.authoring.wheel import build_wheel
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import open_private
from course_lib.base.translation import gettext as _

_TEMPLATES = Path(__file__).parent
_DATE = (1980, 1, 1, 0, 0, 0)


def write_gradescope(folder: Path, settings: str, secret: bytes | None) -> str:
    """Write ``autograder.zip`` into ``folder``, and return words for what to do with it.

    Args:
        settings: the content of ``settings.json``.
        secret: the secret from which the hidden cases are drawn; None makes a new one.

    Raises: CourseError if ``folder`` is not empty; OSError if it cannot be written.
    """
    require_free(folder)
    secret = secret or secrets.token_hex(16).encode()
    files = _collect(settings) | _read_templates("gradescope") | {"secret": secret}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "autograder.zip"
    with (
        open(file, "xb", opener=open_private) as out,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = (0o755 if content.startswith(b"#!") else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return _(
        "{file}, {size} MB, is the autograder of one assignment. It holds the secret of the hidden"
        " cases and the course's solutions: do not pass it on. docs/grading-a-class.md says where"
        " to upload it, and which memory to choose."
    ).format(file=file, size=f"{file.stat().st_size / 1e6:.0f}")


def write_classroom50(folder: Path, settings: str) -> str:
    """Write the files of one assignment's autograder into ``folder``, and return words for what to
    do with them.

    Raises: as :func:`write_gradescope`.
    """
    require_free(folder)
    files = _collect(settings) | _read_templates("classroom50")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return _(
        "{folder} has the autograder of one assignment. Copy its files into"
        " CLASSROOM/autograders/ASSIGNMENT/ of your classroom50 repository;"
        " docs/grading-a-class.md says what its points are worth."
    ).format(folder=folder)


def write_workflow(folder: Path, exercises: Sequence[str]) -> str:
    """Write the workflow that checks ``exercises`` into the class's repository ``folder``, and
    return words for what it does.

    The versions of the actions are those of the course's own workflow.

    Raises: CourseError if ``folder`` is no copy of the course, or has that workflow; OSError if it
    cannot be written.
    """
    if not (folder / "Makefile").is_file() or not (folder / "exercises").is_dir():
        raise CourseError(
            _(
                "{folder} is no copy of the course for learners: `course release {folder}` makes"
                " one first."
            ).format(folder=folder)
        )
    file = folder / ".github" / "workflows" / "check.yml"
    if file.exists():
        raise CourseError(
            _("{file} is there already, and nothing is overwritten. Remove it first.").format(
                file=file
            )
        )
    own_workflow = (paths.ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    pins = dict(re.findall(r"uses: (\S+)@(.+)", own_workflow))
    text = (
        (_TEMPLATES / "workflow" / "check.yml")
        .read_text(encoding="utf-8")
        .replace("EXERCISES", " ".join(exercises))
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        re.sub(r"(\S+)@PINNED", lambda match: f"{match[1]}@{pins[match[1]]}", text),
        encoding="utf-8",
    )
    return _(
        "{file} checks {exercises} at every push, with the cases that every learner has: it shows"
        " how far they are, and gives no points."
    ).format(file=file, exercises=", ".join(exercises))


def _collect(settings: str) -> dict[str, bytes]:
    """Return the files that every system needs: the course's wheel, the pinned versions, the
    installer, the assignment's settings."""
    with tempfile.TemporaryDirectory() as work:
        wheel = build_wheel(Path(work))
        files = {wheel.name: wheel.read_bytes()}
    constraints = (paths.ROOT / "constraints.txt").read_bytes()
    install = (_TEMPLATES / "install.sh").read_bytes()
    return files | {
        "constraints.txt": constraints,
        "install.sh": install,
        "settings.json": settings.encode(),
    }


def _read_templates(system: str) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes() for file in (_TEMPLATES / system).iterdir() if file.is_file()
    }
