"""Temporary folders: the next start removes those of a process that was killed, and no other."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course_lib.base import files, paths
from course_lib.base.files import TemporaryFolder, remove_tree


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Where temporary files go; looked at anew in each test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def start_owner(place: Path, body: str, waits: bool = True) -> subprocess.Popen:
    """A process that makes a folder there and says its name."""
    code = f"""
        import os, sys, time
        sys.path.insert(0, {str(paths.ROOT)!r})
        os.environ["COURSE_DEFER_CHOICE"] = "1"
        from course_lib.base.files import TemporaryFolder
        {textwrap.indent(textwrap.dedent(body), " " * 8).strip()}
        {"time.sleep(600)" if waits else ""}
    """
    environment = os.environ | {"TMPDIR": str(place)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


MAKES = (
    'made = TemporaryFolder("course-check-")\n(made.path /'
    ' "00.in").write_text("x")\nprint(made.path, flush=True)'
)


def make_one() -> None:
    files._remove_abandoned.cache_clear()
    TemporaryFolder("course-check-").remove()


def test_it_is_there_while_it_is_used_and_gone_afterwards(place):
    with TemporaryFolder("course-check-") as folder:
        (folder / "deep" / "deeper").mkdir(parents=True)
        assert folder.parent == place and folder.stat().st_mode & 0o777 == 0o700
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_uses_stays(place):
    killed, living = start_owner(place, MAKES), start_owner(place, MAKES)
    try:
        left, used = (Path(owner.stdout.readline().strip()) for owner in (killed, living))
        make_one()
        assert left.exists() and used.exists(), "both owners live"
        killed.kill()
        killed.wait()
        assert left.exists()
        make_one()
        assert not left.exists() and (used / "00.in").read_text() == "x"
    finally:
        for owner in (killed, living):
            owner.kill()
            owner.communicate()


@pytest.mark.parametrize("moment", [0.0, 0.002, 0.01, 0.05])
def test_a_process_killed_between_start_and_end(place, moment):
    """Whatever it was at: nothing is left after the next start."""
    owner = start_owner(
        place,
        'print("now", flush=True)\nwhile True:\n    TemporaryFolder("course-check-").remove()',
        waits=False,
    )
    assert owner.stdout.readline() == "now\n"
    time.sleep(0.1 + moment)
    owner.kill()
    owner.communicate()
    make_one()
    assert list(place.iterdir()) == []


def test_a_folder_is_kept_while_a_worker_of_a_killed_owner_is_at_work_in_it(place):
    body = """
        from course_lib.base.worker import WorkerCommand, Worker
        made = Worker(lambda: WorkerCommand(["sleep", "600"], dict(os.environ)), on_owner_death=None, temporary_folder="course-compile-")
        made.start()
        print(made.folder, made.pid, flush=True)
    """  # noqa: E501
    owner = start_owner(place, body)
    folder, pid = owner.stdout.readline().split()
    try:
        owner.kill()
        owner.communicate()
        make_one()
        assert Path(folder).exists()
    finally:
        os.kill(int(pid), 9)
    deadline = time.monotonic() + 60
    while Path(folder).exists():
        assert time.monotonic() < deadline
        make_one()


def test_what_only_looks_like_one_is_left_alone(place):
    target = place / "precious"
    target.mkdir()
    (target / "work").write_text("mine")
    (place / "course-check-abcdefgh").symlink_to(target)
    (place / "course-check-ijklmnop").write_text("a file")
    for name in (
        "course-test-state-abcdefgh",
        "course-check-",
        "course-check-ABC",
        "my-course-check-abcdefgh",
        "course-launch-abcdefgh",
    ):
        (place / name).mkdir()
    before = sorted(place.rglob("*"))
    make_one()
    assert sorted(place.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_left_alone(place):
    folder = place / "course-check-abcdefgh"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    make_one()
    assert folder.exists()


def test_many_starts_at_once_never_take_one_anothers_folder(place):
    def work(_: int) -> bool:
        files._remove_abandoned.cache_clear()
        with TemporaryFolder("course-check-") as folder:
            (folder / "00.in").write_text("x")
            time.sleep(0.001)
            return (folder / "00.in").read_text() == "x"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(300)))
    assert list(place.iterdir()) == []


def test_where_there_are_no_locks_nothing_is_taken_for_abandoned(place, monkeypatch):
    def refuse(*arguments):
        raise OSError(95, "Operation not supported")

    left = place / "course-check-abcdefgh"
    left.mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    make_one()
    assert left.exists()


def test_one_that_is_hard_to_remove_is_removed(place):
    folder = place / "hard"
    deep = folder
    for _ in range(30):
        deep = deep / "d"
    deep.mkdir(parents=True)
    deep.chmod(0)
    folder.chmod(0o500)
    remove_tree(folder)
    remove_tree(folder)
    assert not folder.exists()
