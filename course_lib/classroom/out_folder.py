"""The folder that a class's results lie in: whose it is, and the secret that its hidden cases come from."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import make_private_folder, open_private
from course_lib.classroom.own_word import MARKS
from course_lib.grading.cases.hidden import Secret, read_secret

JOURNAL, SETTINGS, SECRET = "journal.jsonl", "class.json", "secret"
_VERSION = 1


def prepare_folder(out: Path, folder: Path) -> None:
    """Make ``out``, or make sure that it is one of ours.

    Raises: CourseError if it holds other things, or lies among the submissions.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise CourseError(f"{paths.shown(out)} lies in the folder of the submissions, and would be taken for one. Choose another with -o.")
    if out.exists() and not (out / SETTINGS).exists() and (others := _list_strangers(out)):
        raise CourseError(f"{paths.shown(out)} holds other files ({', '.join(others[:3])}). Choose an empty folder with -o, or a new one.")
    make_private_folder(out)  # people's results, and the secret


def _list_strangers(out: Path) -> list[str]:
    """What is in ``out`` that no run killed at its very beginning leaves there, nor a teacher before the first."""
    ours = (MARKS, JOURNAL, SECRET, _name_part(SECRET), _name_part(SETTINGS))
    return sorted(name for name in os.listdir(out) if name not in ours)


def take_secret(out: Path, secret_file: Path | None) -> bytes:
    """The secret that this class is graded with: from its file, or one made for it, which stays with the results.

    Raises: CourseError if the class was begun with another.
    """
    own = out / SECRET
    if secret_file is None and not own.exists() and not (out / SETTINGS).exists():
        write_lines(own, [f"{secrets.token_hex(16)}\n"])
    if secret_file is None and not own.exists():
        raise CourseError(f"{paths.shown(out)} was begun with a secret from a file. Name the same one: --secret-file.")
    secret = read_secret(secret_file or own)
    fingerprint = Secret(secret).fingerprint
    settings = out / SETTINGS
    if settings.exists():
        try:
            begun = json.loads(settings.read_text(encoding="utf-8"))["secret"]
        except (ValueError, KeyError, TypeError):
            raise CourseError(f"{paths.shown(settings)} is damaged. Remove that file alone, and give the same command again.") from None
        if begun != fingerprint:
            raise CourseError(
                f"{paths.shown(out)} was begun with another secret (fingerprint {begun}, this one has {fingerprint}): its hidden cases were others, and "
                "results of both do not belong in one gradebook. Give the same secret, or choose another folder with -o."
            )
    else:
        write_lines(settings, [json.dumps({"version": _VERSION, "secret": fingerprint}) + "\n"])
    return secret


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Replace ``file`` by the lines, each with its end, as UTF-8: all of them, or none. They are never all in memory. Its owner alone
    may read it.

    Raises: OSError, with the old file untouched, if the disk is full or the folder cannot be written.
    """
    part = file.with_name(_name_part(file.name))
    try:
        with open(part, "w", encoding="utf-8", errors="backslashreplace", newline="", opener=open_private) as out:
            out.writelines(lines)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _name_part(name: str) -> str:
    """The name under which a file is written until it is whole."""
    return f".{name}.part"
