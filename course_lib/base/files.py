"""Reading files that others left, whatever they are; writing files so that a crash half-way leaves the old text or the new one."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

_KINDS = {
    stat.S_IFLNK: "is a symbolic link",
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe, no plain file",
    stat.S_IFSOCK: "is a socket, no plain file",
}
_TEMPORARY = re.compile(r"course-(check|probe|job|compile)-[a-z0-9_]+")
# as base/tab.py says it; this file is run alone, too, and imports nothing of the course
_IN_TAB = sys.platform == "emscripten"
# what looks like a plain file there may wait for ever, or act when it is read; a browser has no such files
_OF_THE_KERNEL = () if _IN_TAB else ("/proc", "/sys")


class NoPlainFile(OSError):
    """Something else stands where a plain file belongs; ``strerror`` says what: "is a folder"."""


def read_plain_file(path: Path, most: int) -> bytes:
    """What a plain file holds, or its first ``most`` bytes; read once, so that what was looked at is what is used.

    A link is not followed, if only the last part of ``path`` is one: whoever hands in a link could have any file read that the reader
    may read. Nothing that could wait, such as a pipe or a device, is opened for reading.

    Raises: NoPlainFile if something else stands there; another OSError if it cannot be read.
    """
    _require_plain(path, os.lstat(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        _require_plain(path, os.fstat(descriptor))  # it may be another one by now
        return file.read(most) or b""


def _require_plain(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise NoPlainFile(errno.EINVAL, _KINDS.get(kind, "is a device, no plain file"), str(path))
    if found.st_dev in {os.stat(folder).st_dev for folder in _OF_THE_KERNEL if os.path.exists(folder)}:
        raise NoPlainFile(errno.EINVAL, "is made by the kernel, and no plain file", str(path))


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace ``path`` by ``data``: a temporary file beside it, synced, then renamed over it.

    Text is written as UTF-8. The permissions of an existing file are kept.

    Raises: OSError, with the old file untouched, if the disk is full or the folder cannot be written.
    """
    path = Path(path)
    if isinstance(data, str):
        data = data.encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        # mkstemp makes 0600; a file that a group or a web server could read must stay readable
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself has to reach the disk
    finally:
        os.close(folder)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file that its owner alone may read and write, whatever the umask is and the file's mode was; an ``opener`` for :func:`open`.

    Raises: OSError if it cannot be opened, or its mode cannot be set.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def make_private_folder(path: Path) -> None:
    """Make a folder that its owner alone may enter, or take the rights of all others from one that is there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def keep_copy(path: Path, folder: Path, now: datetime | None = None) -> Path:
    """Copy ``path`` into ``folder`` under a dated name that is not taken yet; return the copy's path."""
    now = now or datetime.now()
    data = path.read_bytes()
    stamp = now.strftime("%Y-%m-%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{path.stem}-{stamp}{path.suffix}"
    number = 2
    while not _reserved(copy):
        copy = folder / f"{path.stem}-{stamp}-{number}{path.suffix}"
        number += 1
    try:
        write_atomic(copy, data)
    except BaseException:
        copy.unlink(missing_ok=True)  # the empty reservation would pass for a copy
        raise
    return copy


def _reserved(path: Path) -> bool:
    """Take the name ``path``, whatever other processes do at the same time; False if it is taken."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class TemporaryFolder:
    """A folder of this process's own among the system's temporary files, gone with :meth:`remove` or at the context's end.

    While it lives, the folder itself is locked (shared flock), which ends with the process however that ends. The first folder that
    a process makes removes those that others left behind when they were killed.

    Args:
        prefix: "course-check-" and the like; only such are ever removed for others.

    Raises: OSError if it cannot be made.
    """

    def __init__(self, prefix: str):
        _remove_abandoned(tempfile.gettempdir())
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            with contextlib.suppress(FileNotFoundError):  # taken for abandoned before it was locked
                self.lock = _lock(self.path, exclusive=False)
                if os.path.samestat(os.fstat(self.lock), os.lstat(self.path)):
                    return
                os.close(self.lock)

    def remove(self) -> None:
        """Remove it with all that is in it, and let go of the lock."""
        remove_tree(self.path)
        os.close(self.lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *raised: object) -> None:
        self.remove()


def remove_tree(folder: Path) -> None:
    """Remove a folder, also one that somebody took pains to keep: without permissions, or with a thousand levels."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx", str(folder)], ["rm", "-rf", "--", str(folder)]):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


@functools.cache  # once in a process, and place
def _remove_abandoned(place: str) -> None:
    """Remove the temporary folders of this user's whose process has ended."""
    names: list[str] = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:  # not everybody may list a shared folder
        names = [entry.name for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    for name in names:
        folder = Path(place, name)
        with contextlib.suppress(OSError):  # it is in use, another user's, or was removed meanwhile: leave it
            lock = _lock(folder, exclusive=True)
            try:
                found = os.fstat(lock)
                if found.st_uid == os.geteuid():
                    remove_tree(folder)
            finally:
                os.close(lock)


def _lock(folder: Path, exclusive: bool) -> int:
    """A descriptor that holds the folder's lock. Exclusive: only if nobody has it.

    Raises: OSError if ``folder`` is no folder or a link, or is locked; never on a file system without such locks where one is shared.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        lock_file(descriptor, exclusive, wait=not exclusive)
    except OSError:
        if exclusive:
            os.close(descriptor)
            raise  # without locks nothing can be known to be abandoned
    return descriptor


def lock_file(descriptor: int, exclusive: bool, wait: bool) -> None:
    """Lock an open file or folder until it is closed. In a browser tab there is one process, and nothing to lock against.

    Raises: OSError if another process has the lock and ``wait`` is False, or if the file system has no locks.
    """
    if _IN_TAB:
        return
    import fcntl  # not on every system on which `course doctor` says what is missing

    fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
