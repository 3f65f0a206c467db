"""The folder of a class's results: the checks that it can be used, the secret for its hidden cases,
and the writing of its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import make_private_folder, open_private, read_plain_file
from course_lib.base.translation import gettext as _
from course_lib.classroom.own_word import MARKS
from course_lib.grading.cases.hidden import Secret, read_secret

JOURNAL, SETTINGS, SECRET, IGNORE = "journal.jsonl", "class.json", "secret", ".gitignore"
FILES = "files"  # the folder of the files that were marked, each under the hash of its bytes
_VERSION = 1
_MOST_BYTES = 2 << 20  # a file that was marked is smaller


def prepare_folder(out: Path, folder: Path) -> None:
    """Make the folder ``out``, or check that it is empty or holds a class's results.

    Raises: CourseError if it holds other files, or lies in ``folder``, the folder of the
    submissions.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise CourseError(
            _(
                "{folder} lies in the folder of the submissions, and would be taken for one. Choose"
                " another with -o."
            ).format(folder=paths.shown(out))
        )
    if out.exists() and not (out / SETTINGS).exists() and (strangers := _list_strangers(out)):
        raise CourseError(
            _(
                "{folder} holds other files ({files}). Choose an empty folder with -o, or a new"
                " one."
            ).format(folder=paths.shown(out), files=", ".join(strangers[:3]))
        )
    make_private_folder(out)  # it will hold learners' results and the secret
    if is_in_repository(out) and not (out / IGNORE).exists():
        write_lines(out / IGNORE, ["*\n"])


def is_in_repository(folder: Path) -> bool:
    """Return True if ``folder`` lies in a git repository, where a commit may take up its files."""
    return any((above / ".git").exists() for above in (folder.resolve(), *folder.resolve().parents))


def _list_strangers(out: Path) -> list[str]:
    """Return the names in ``out`` that come neither from a run that was killed at its start, nor
    from a teacher's ``marks.csv``."""
    first_files = (SECRET, SETTINGS, IGNORE)
    ours = (MARKS, JOURNAL, SECRET, IGNORE, *map(_name_part, first_files))
    return sorted(name for name in os.listdir(out) if name not in ours)


def take_secret(out: Path, secret_file: Path | None) -> bytes:
    """Return the secret of this class: from ``secret_file``, or from ``out``, where the first run
    writes a random one.

    Raises: CourseError if earlier runs used another secret, or if a file of the secret cannot be
    used.
    """
    secret_path = out / SECRET
    if secret_file is None and not secret_path.exists() and not (out / SETTINGS).exists():
        write_lines(secret_path, [f"{secrets.token_hex(16)}\n"])
    if secret_file is None and not secret_path.exists():
        raise CourseError(
            _(
                "{folder} was begun with a secret from a file. Name the same one: --secret-file."
            ).format(folder=paths.shown(out))
        )
    secret = read_secret(secret_file or secret_path)
    fingerprint = Secret(secret).fingerprint
    settings = out / SETTINGS
    if settings.exists():
        try:
            stored_fingerprint = json.loads(settings.read_text(encoding="utf-8"))["secret"]
        except (ValueError, KeyError, TypeError):
            raise CourseError(
                _(
                    "{file} is damaged. Remove that file alone, and give the same command again."
                ).format(file=paths.shown(settings))
            ) from None
        if stored_fingerprint != fingerprint:
            raise CourseError(
                _(
                    "{folder} was begun with another secret (fingerprint {stored}, this one has"
                    " {fingerprint}): its hidden cases were others, and results of both do not"
                    " belong in one gradebook. Give the same secret, or choose another folder with"
                    " -o."
                ).format(
                    folder=paths.shown(out), stored=stored_fingerprint, fingerprint=fingerprint
                )
            )
    else:
        write_lines(settings, [json.dumps({"version": _VERSION, "secret": fingerprint}) + "\n"])
    return secret


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Replace the content of ``file`` by the lines in UTF-8, completely or not at all. Each line
    contains its line end.

    The lines are never all in memory. Only the owner can read the file.

    Raises: OSError if the disk is full or the folder cannot be written; the old file then stays as
    it was.
    """
    with open_replacement(file) as out:
        out.writelines(line.encode("utf-8", "backslashreplace") for line in lines)


@contextlib.contextmanager
def open_replacement(file: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``file`` once the block has ended without an exception. Only the
    owner can read it.

    Raises: OSError if the disk is full or the folder cannot be written; the old file then stays as
    it was.
    """
    part = file.with_name(_name_part(file.name))
    try:
        with open(part, "wb", opener=open_private) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def keep_file(out: Path, data: bytes) -> None:
    """Keep a file that is marked, so that its mark can be explained as long as it counts.

    Raises: OSError if the disk is full or the folder cannot be written.
    """
    folder = out / FILES
    file = folder / hashlib.sha256(data).hexdigest()
    if not file.exists():
        make_private_folder(folder)
        with open_replacement(file) as kept:
            kept.write(data)


def read_kept_file(out: Path, digest: str) -> bytes | None:
    """Return the file that was marked under this hash; None if it is not kept, or was changed."""
    try:
        data = read_plain_file(out / FILES / digest, _MOST_BYTES)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None


def forget_files(out: Path, kept: Collection[str]) -> None:
    """Remove the files that no mark counts any more; ``kept`` has the hashes of the others."""
    for file in (out / FILES).glob("*"):
        if file.name not in kept:
            file.unlink()


def _name_part(name: str) -> str:
    """Return the name that a file has until it is complete."""
    return f".{name}.part"
