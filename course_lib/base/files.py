"""Safe reading of files from other people, and safe writing: a crash during a write leaves the old
text or the new one."""

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
# The same test as in base/tab.py: this file is also run alone, and imports nothing of the course.
_IN_TAB = sys.platform == "emscripten"
# A file that looks plain there may block its reader for ever, or act when it is read. A browser has
# no such files.
_OF_THE_KERNEL = () if _IN_TAB else ("/proc", "/sys")


class NoPlainFile(OSError):
    """Something other than a plain file at a path; ``strerror`` names it, as in "is a folder"."""


def read_plain_file(path: Path, most: int) -> bytes:
    """Return a plain file's content, or its first ``most`` bytes.

    The file is read once, so that the bytes that are examined are the bytes that are used. If the
    last part of ``path`` is a link, it is not followed: a learner's link could otherwise name any
    file that the grader may read. Nothing that could block, such as a pipe or a device, is opened
    for reading.

    Raises: NoPlainFile if something else is there; another OSError if it cannot be read.
    """
    _require_plain(path, os.lstat(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        # the file may have been replaced between lstat and open
        _require_plain(path, os.fstat(descriptor))
        return file.read(most) or b""


def _require_plain(path: Path, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise NoPlainFile(errno.EINVAL, _KINDS.get(kind, "is a device, no plain file"), str(path))
    if status.st_dev in {
        os.stat(folder).st_dev for folder in _OF_THE_KERNEL if os.path.exists(folder)
    }:
        raise NoPlainFile(errno.EINVAL, "is made by the kernel, and no plain file", str(path))


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace ``path`` by ``data``: a temporary file beside it, synced, then renamed over it.

    Text is written as UTF-8. The permissions of an existing file are kept.

    Raises: OSError, with the old file untouched, if the disk is full or the folder cannot be
    written.
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
    """Open a file that only its owner may read and write, whatever the umask or the file's earlier
    mode; an ``opener`` for :func:`open`.

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
    """Make a folder that only its owner may enter; if it exists, take the rights away from
    everybody else."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def keep_copy(path: Path, folder: Path, now: datetime | None = None) -> Path:
    """Copy ``path`` into ``folder`` under a dated name that is not taken yet; return the copy's
    path."""
    now = now or datetime.now()
    data = path.read_bytes()
    stamp = now.strftime("%Y-%m-%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{path.stem}-{stamp}{path.suffix}"
    number = 2
    while not _reserve(copy):
        copy = folder / f"{path.stem}-{stamp}-{number}{path.suffix}"
        number += 1
    try:
        write_atomic(copy, data)
    except BaseException:
        copy.unlink(missing_ok=True)  # an empty reservation would look like a copy
        raise
    return copy


def _reserve(path: Path) -> bool:
    """Create ``path`` as an empty file; return False if the name is taken. Safe against other
    processes that try the same name."""
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
    """A temporary folder of this process, removed by :meth:`remove` or at the context's end.

    While the folder exists, the process holds a shared flock on it, which the kernel releases
    however the process ends. The first folder that a process makes also removes the folders that
    killed processes left behind.

    Args:
        prefix: "course-check-" or a similar one; only folders with such a prefix are removed as
            abandoned.

    Raises: OSError if it cannot be made.
    """

    def __init__(self, prefix: str):
        _remove_abandoned(tempfile.gettempdir())
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            # another process removed the folder as abandoned before it was locked
            with contextlib.suppress(FileNotFoundError):
                self.lock = _lock(self.path, exclusive=False)
                if os.path.samestat(os.fstat(self.lock), os.lstat(self.path)):
                    return
                os.close(self.lock)

    def remove(self) -> None:
        """Remove the folder with all that is in it, and release the lock."""
        remove_tree(self.path)
        os.close(self.lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *raised: object) -> None:
        self.remove()


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if it resists: without permissions, or with a thousand levels."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx", str(folder)], ["rm", "-rf", "--", str(folder)]):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


@functools.cache  # once per process and place
def _remove_abandoned(place: str) -> None:
    """Remove this user's temporary folders whose process has ended."""
    names: list[str] = []
    # a shared folder may not be listable
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        names = [entry.name for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    for name in names:
        folder = Path(place, name)
        # the folder is in use, is another user's, or was removed meanwhile: leave it
        with contextlib.suppress(OSError):
            lock = _lock(folder, exclusive=True)
            try:
                status = os.fstat(lock)
                if status.st_uid == os.geteuid():
                    remove_tree(folder)
            finally:
                os.close(lock)


def _lock(folder: Path, exclusive: bool) -> int:
    """Open ``folder`` and lock it; return the descriptor that holds the lock. An exclusive request
    fails if another lock exists.

    On a file system without locks a shared request returns the descriptor without a lock.

    Raises: OSError if ``folder`` is no folder or is a link; for an exclusive request also if it is
    locked or cannot be locked.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        lock_file(descriptor, exclusive, wait=not exclusive)
    except OSError:
        if exclusive:
            os.close(descriptor)
            raise  # without locks no folder can be known to be abandoned
    return descriptor


def lock_file(descriptor: int, exclusive: bool, wait: bool) -> None:
    """Lock an open file or folder until it is closed. A browser tab has only one process, so there
    the function does nothing.

    Raises: OSError if another process has the lock and ``wait`` is False, or if the file system has
    no locks.
    """
    if _IN_TAB:
        return
    # imported here: a system without fcntl still runs `course doctor`, which says what is missing
    import fcntl

    fcntl.flock(
        descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    )
