"""A file that somebody else made is read only if it is a plain file, and nothing makes the reader
wait."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from course_lib.base.files import NoPlainFile, read_plain_file


@pytest.fixture
def secret(tmp_path) -> Path:
    file = tmp_path / "secret"
    file.write_text("nobody may read this")
    return file


def a_folder(path: Path, _: Path) -> None:
    path.mkdir()


def a_link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def a_dangling_link(path: Path, _: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def a_link_to_itself(path: Path, _: Path) -> None:
    path.symlink_to(path)


def a_link_to_a_device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_the_kernels_log(path: Path, _: Path) -> None:
    path.symlink_to("/proc/kmsg")


def a_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def a_device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except OSError:
        pytest.skip("this user makes no devices")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (a_folder, "is a folder"), (a_link, "is a symbolic link"),
        (a_dangling_link, "is a symbolic link"),
        (a_link_to_itself, "is a symbolic link"), (a_link_to_a_device, "is a symbolic link"),
        (a_link_to_the_kernels_log, "is a symbolic link"),
        (a_pipe, "is a pipe, no plain file"), (a_socket, "is a socket, no plain file"),
        (a_device, "is a device, no plain file"),
    ],
)  # fmt: skip
def test_what_is_no_plain_file_is_named(tmp_path, secret, make, says):
    make(tmp_path / "ex00a.py", secret)
    with pytest.raises(NoPlainFile) as refused:
        read_plain_file(tmp_path / "ex00a.py", 100)
    assert refused.value.strerror == says and "nobody may" not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "/proc/kmsg",
        "/proc/self/environ",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/dev/zero",
    ],
)
def test_the_kernels_own_files_are_none(path):
    if not os.path.exists(path):
        pytest.skip("this kernel has none")
    with pytest.raises(NoPlainFile):
        read_plain_file(Path(path), 100)


def swapped_after_a_look(folder: Path, monkeypatch, make) -> Path:
    """A plain file that ``make`` puts something else in place of, as soon as its status was asked
    for."""
    file = folder / "ex00a.py"
    file.write_text("mine")
    looked = os.lstat

    def look_and_swap(path):
        found = looked(path)
        if Path(path) == file:
            file.unlink()
            make(file)
        return found

    monkeypatch.setattr(os, "lstat", look_and_swap)
    return file


def test_a_file_that_becomes_a_link_between_the_looks_is_not_followed(
    tmp_path, secret, monkeypatch
):
    file = swapped_after_a_look(tmp_path, monkeypatch, lambda file: file.symlink_to(secret))
    with pytest.raises(OSError) as refused:
        read_plain_file(file, 100)
    assert "nobody may" not in str(refused.value)


def test_a_file_that_becomes_a_pipe_between_the_looks_makes_nobody_wait(tmp_path, monkeypatch):
    file = swapped_after_a_look(tmp_path, monkeypatch, os.mkfifo)
    refused = []

    def read() -> None:
        with pytest.raises(NoPlainFile) as caught:
            read_plain_file(file, 100)
        refused.append(caught.value.strerror)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(5)
    assert refused == ["is a pipe, no plain file"]


def test_a_plain_file_is_read_to_its_end_or_to_the_limit(tmp_path):
    file = tmp_path / "ex00a.py"
    file.write_bytes(b"x" * 300_000)
    assert (
        read_plain_file(file, 10) == b"x" * 10
        and read_plain_file(file, 1_000_000) == b"x" * 300_000
    )
    file.write_bytes(b"")
    assert read_plain_file(file, 10) == b""


def test_a_folder_on_the_way_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "ex00a.py").write_text("mine")
    (tmp_path / "linked").symlink_to("real")
    assert read_plain_file(tmp_path / "linked" / "ex00a.py", 10) == b"mine"
