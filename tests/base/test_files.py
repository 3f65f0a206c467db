"""Writing files: a failure or a kill half-way leaves the old text or the new one."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from course_lib.base import paths
from course_lib.base.files import keep_copy, write_atomic

NOW = datetime(2025, 3, 1, 12, 0, 0)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(number: int):
    def fail(*arguments, **named):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("data", ["text, ünicode\r\n", b"\xff\x00bytes"])
def test_what_is_written_is_read_back_byte_for_byte(tmp_path, data):
    write_atomic(tmp_path / "new" / "file.txt", data)
    assert (tmp_path / "new" / "file.txt").read_bytes() == (
        data.encode() if isinstance(data, str) else data
    )
    assert names(tmp_path / "new") == ["file.txt"]


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failure_half_way_leaves_the_old_text_and_nothing_else(tmp_path, monkeypatch, step):
    file = tmp_path / "work.py"
    file.write_text("mine")
    monkeypatch.setattr(os, step, failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        write_atomic(file, "new")
    assert file.read_text() == "mine" and names(tmp_path) == ["work.py"]


def test_a_full_disk_leaves_the_old_text_and_nothing_else(tmp_path):
    file = tmp_path / "work.py"
    file.write_text("mine")
    # the limit is a process's own, so another process meets it
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "import runpy; files = runpy.run_path(sys.argv[1])\n"
        "files['write_atomic'](sys.argv[2], 'x' * 100_000)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            script,
            str(paths.ROOT / "course_lib" / "base" / "files.py"),
            str(file),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode and "OSError" in done.stderr
    assert file.read_text() == "mine" and names(tmp_path) == ["work.py"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_permissions_are_kept(tmp_path, mode):
    file = tmp_path / "work.py"
    file.write_text("mine")
    file.chmod(mode)
    write_atomic(file, "new")
    assert file.stat().st_mode & 0o777 == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_atomic(tmp_path / "new", "text")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_kill_in_the_middle_leaves_the_old_text_or_the_new_one(tmp_path):
    file = tmp_path / "work.py"
    old, new = "old" * 300_000, "new" * 400_000
    script = (
        "import runpy, sys; write = runpy.run_path(sys.argv[1])['write_atomic']\nprint('ready',"
        " flush=True)\nwhile True:\n    write(sys.argv[2], 'new' * 400_000)\n    write(sys.argv[2],"
        " 'old' * 300_000)\n"
    )
    seen = set()
    for _ in range(4):
        write_atomic(file, old)
        writer = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-c",
                script,
                str(paths.ROOT / "course_lib" / "base" / "files.py"),
                str(file),
            ],
            stdout=subprocess.PIPE,
        )
        writer.stdout.readline()
        time.sleep(random.uniform(0.01, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        text = file.read_text()
        assert text in (old, new)
        seen.add(text[:3])
    assert seen


def test_a_copy_never_takes_a_name_that_is_taken(tmp_path):
    file, kept = tmp_path / "ex07a.py", tmp_path / "kept"
    copies = []
    for text in ("one", "two", "three"):
        file.write_text(text)
        copies.append(keep_copy(file, kept, NOW))
    assert [copy.read_text() for copy in copies] == ["one", "two", "three"]
    assert names(kept) == sorted(
        [
            "ex07a-2025-03-01-120000.py",
            "ex07a-2025-03-01-120000-2.py",
            "ex07a-2025-03-01-120000-3.py",
        ]
    )


def test_copies_made_at_once_do_not_overwrite_one_another(tmp_path):
    files = [tmp_path / str(number) / "work.py" for number in range(12)]
    for number, file in enumerate(files):
        write_atomic(file, f"text {number}")
    with ThreadPoolExecutor(12) as pool:
        copies = list(pool.map(lambda file: keep_copy(file, tmp_path / "kept", NOW), files))
    assert sorted(copy.read_text() for copy in copies) == sorted(file.read_text() for file in files)


def test_a_copy_that_cannot_be_written_leaves_no_empty_one(tmp_path, monkeypatch):
    file = tmp_path / "work.py"
    file.write_text("mine")
    monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        keep_copy(file, tmp_path / "kept", NOW)
    assert names(tmp_path / "kept") == [] and file.read_text() == "mine"
