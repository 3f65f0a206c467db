"""Killed at any point, out of room, with any number of workers: the gradebook is the one of an
undisturbed run."""

from __future__ import annotations

import errno
import functools
import json
import os
import random
import resource
import shutil
import signal
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from fake_grading import fake_check, grade, read_results, slow_check, write_class, write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.classroom import workers
from course_lib.classroom.checking import FileAnswer
from course_lib.classroom.engine import Engine, Job
from course_lib.classroom.journal import Journal


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A class, and what one run without any trouble makes of it."""
    home = tmp_path_factory.mktemp("undisturbed")
    folder = write_class(home / "class", 20)
    grade(folder, home / "out")
    return folder, read_results(home / "out")


def in_child(work) -> int:
    """Run ``work`` in a fork of this process; returns its process id. It is all imported there
    already."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize("kills", [20, pytest.param(50, marks=pytest.mark.sweep)])
def test_killed_at_random_points_and_resumed_nothing_is_lost_nor_done_twice(
    undisturbed, tmp_path, kills
):
    folder, expected = undisturbed
    rng = random.Random(20)
    whole = grade(folder, tmp_path / "timed", check=slow_check).checked
    kept: set[int] = set()
    for round_ in range(kills):
        out = tmp_path / f"out {round_ // 10}"  # killed up to ten times in a row
        child = in_child(lambda out=out: grade(folder, out, check=slow_check))
        # by what is written, not by the clock: a machine under load would have every child killed
        # before it has begun
        _wait_until_killable(child, out / "journal.jsonl", more=rng.randrange(whole // 6))
        time.sleep(rng.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kept.add(_count_lines(out / "journal.jsonl"))
        if round_ % 10 == 9:
            graded = grade(folder, out)
            assert read_results(out) == expected
            lines = (out / "journal.jsonl").read_bytes().splitlines()
            keys = [json.loads(line)["key"] for line in lines]
            assert len(keys) == len(set(keys)) == graded.checked + graded.kept
    assert len(kept) > kills // 5, "the kills did not hit different points"


def _count_lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def _wait_until_killable(child: int, journal: Path, *, more: int) -> None:
    """Until ``child`` has added ``more`` lines to the journal, or is done."""
    wanted = _count_lines(journal) + more
    while (
        _count_lines(journal) < wanted
        and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):
        time.sleep(0.002)


@pytest.mark.parametrize("count", [1, 4])
def test_any_number_of_workers_writes_the_same_bytes(undisturbed, tmp_path, count):
    folder, expected = undisturbed
    grade(folder, tmp_path / "out", workers=count)
    assert read_results(tmp_path / "out") == expected


def test_processes_write_the_same_bytes(undisturbed, tmp_path):
    folder, expected = undisturbed
    grade(folder, tmp_path / "out", start=functools.partial(workers.start_processes, 2))
    assert read_results(tmp_path / "out") == expected


@given(cut=st.integers(0, 6000))
@settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_a_torn_journal_is_cut_off_and_done_again(undisturbed, tmp_path_factory, cut):
    folder, expected = undisturbed
    out = tmp_path_factory.mktemp("torn") / "out"
    shutil.copytree(folder.parent / "out", out)
    journal = out / "journal.jsonl"
    whole = journal.read_bytes()
    torn = whole[: max(len(whole) - cut, 0)]
    journal.write_bytes(torn)
    graded = grade(folder, out)
    assert graded.kept == torn.count(b"\n") and graded.torn == (
        not torn.endswith(b"\n") and torn != b""
    )
    assert read_results(out) == expected


def test_a_line_that_somebody_broke_is_done_again(undisturbed, tmp_path):
    folder, expected = undisturbed
    grade(folder, tmp_path / "out")
    journal = tmp_path / "out" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3], lines[7] = b"\0" * (len(lines[3]) - 1) + b"\n", b"[" * 100_000 + b"\n"
    journal.write_bytes(b"".join(lines))
    graded = grade(folder, tmp_path / "out")
    assert (graded.torn, graded.checked) == (2, 2) and read_results(tmp_path / "out") == expected


def test_a_full_disk_stops_with_a_message_and_goes_on_when_there_is_room(undisturbed, tmp_path):
    folder, expected = undisturbed
    out = tmp_path / "out"

    def fill(most: int) -> None:
        # what a file grows to: beyond it a write fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        with pytest.raises(
            EnvironmentFault,
            match=r"cannot be written: File too large.*give the same command again",
        ):
            grade(folder, out)

    sizes = []
    for most in (100, 3000, 9001, 20_000):
        child = in_child(functools.partial(fill, most))
        assert os.waitpid(child, 0)[1] == 0
        sizes.append((out / "journal.jsonl").stat().st_size)
        assert (out / "journal.jsonl").read_bytes().endswith(b"\n") or sizes[-1] == 0
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0]
    assert grade(folder, out).kept > 5
    assert read_results(out) == expected


def test_what_could_not_be_written_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append("one", {"status": "pass"})

        def write_half(descriptor, data, place, stock=os.pwrite):
            stock(descriptor, bytes(data)[:5], place)
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "pwrite", write_half)
        with pytest.raises(EnvironmentFault, match="No space left"):
            journal.append("two", {"status": "pass"})
        monkeypatch.undo()
        assert "two" not in journal and journal.get("one") == {"status": "pass"}
        journal.append("three", {"status": "fail"})
    with Journal(tmp_path / "journal.jsonl") as journal:
        assert (len(journal), journal.torn, journal.get("three")) == (2, 0, {"status": "fail"})


def test_two_at_once_in_one_folder_are_refused(undisturbed, tmp_path):
    folder, _ = undisturbed
    (tmp_path / "out").mkdir()
    with (
        Journal(tmp_path / "out" / "journal.jsonl"),
        pytest.raises(CourseError, match="another `course grade` is at work"),
    ):
        grade(folder, tmp_path / "out")


# ---- faults that are nobody's --------------------------------------------------------------------


def test_a_grader_fault_is_tried_again_and_then_listed_apart(tmp_path):
    folder = write_class(tmp_path / "class", 3)
    write_file(folder / "once", "01a", f"ONCE={tmp_path}/flag ")
    write_file(folder / "never", "01a", "FAULT")
    write_file(folder / "raises", "01a", "RAISE")
    graded = grade(folder, tmp_path / "out")
    assert [(learner, exercise) for learner, exercise, _ in graded.faults] == [
        ("never", "01a"),
        ("raises", "01a"),
    ]
    rows = {
        line.split(",")[0]: line.split(",")
        for line in (tmp_path / "out" / "gradebook.csv").read_text().splitlines()
    }
    assert rows["never"][9:11] == ["", "not graded"] and "not graded" not in rows["once"]
    # neither is kept: the next run tries again, and what was right stays
    (folder / "never" / "ex01a_layer_norm.py").write_text("# better\n")
    assert [learner for learner, _, _ in grade(folder, tmp_path / "out").faults] == ["raises"]


def test_whoever_kills_the_worker_loses_nobody_elses_verdict(undisturbed, tmp_path):
    write_class(tmp_path / "class", 6)
    for name in ("a killer", "m killer", "z killer"):
        write_file(tmp_path / "class" / name, "04a", f"KILL {name}")
    graded = grade(
        tmp_path / "class", tmp_path / "out", start=functools.partial(workers.start_processes, 2)
    )
    assert [learner for learner, _, _ in graded.faults] == ["a killer", "m killer", "z killer"]
    assert all("ended twice" in why for _, _, why in graded.faults) and graded.checked == 15


def test_one_file_that_the_machine_does_not_take_is_listed_and_three_in_a_row_stop(tmp_path):
    folder = write_class(tmp_path / "class", 4)
    write_file(folder / "too large", "01a", "MACHINE")
    graded = grade(folder, tmp_path / "out")
    assert graded.faults == (("too large", "01a", "this machine has no room."),)
    for name in ("b", "c"):
        write_file(folder / name, "01a", f"MACHINE {name}")
    with pytest.raises(
        EnvironmentFault, match=r"3 files in a row .* no room. Every verdict so far is kept"
    ):
        grade(folder, tmp_path / "out", workers=8)


def test_a_recheck_checks_that_exercise_and_no_other(undisturbed, tmp_path):
    folder, expected = undisturbed
    grade(folder, tmp_path / "out")
    seen = []
    graded = grade(
        folder,
        tmp_path / "out",
        recheck=("04a",),
        check=lambda request: seen.append(request.exercise) or fake_check(request),
    )
    assert (
        set(seen) == {"04a"}
        and len(seen) == graded.checked == 20
        and read_results(tmp_path / "out") == expected
    )


def test_only_some_exercises_leave_the_others_as_they_are(undisturbed, tmp_path):
    folder, expected = undisturbed
    grade(folder, tmp_path / "out")
    assert (
        grade(folder, tmp_path / "out", only=("04a",)).checked == 0
        and read_results(tmp_path / "out") == expected
    )


def test_exercise_by_exercise_and_killed_between_is_the_same_as_all_at_once(undisturbed, tmp_path):
    """A run that is killed after its record was written, and before its gradebook, is made good by
    the same command."""
    folder, expected = undisturbed
    out = tmp_path / "out"
    for name in ("07a", "01a", "04a"):
        grade(folder, out, only=(name,))
        whole = read_results(out)
        for file in (out / "gradebook.csv", out / "class.html"):
            file.unlink()
        grade(folder, out, only=(name,))
        assert read_results(out) == whole
    assert read_results(out) == expected
    assert (out / "regrades.csv").read_bytes() == b"when,learner,exercise,old,new,why\r\n"


def test_files_are_read_no_further_ahead_than_the_width():
    """So memory does not grow with the class: of a thousand files five are held at a time."""
    made, ended = 0, 0

    def list_jobs():
        nonlocal made
        for number in range(1000):
            made += 1
            yield Job(str(number), number)

    class Kept(dict):
        def append(self, key, verdict):
            nonlocal ended
            ended += 1
            assert made - ended <= 5, (made, ended)

    engine = Engine(
        lambda: ThreadPoolExecutor(2),
        lambda number: FileAnswer({"status": "pass"}),
        Kept(),
        width=5,
    )
    assert engine.run(list_jobs()).checked == made == 1000


def test_the_progress_goes_forward_only_and_ends_with_the_last_learner(tmp_path):
    """Learners hand in none, one, two or three files, and some of them the same ones: the whole is
    known from the beginning."""
    folder = write_class(tmp_path / "class", 12)
    for number in range(4):
        (folder / f"a nobody {number}").mkdir()
        write_file(folder / f"twin {number}", "04a", "# the same for all\n")
    seen = []
    grade(folder, tmp_path / "out", tell=seen.append)
    assert {progress.learners for progress in seen} == {20}
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert [progress.files for progress in seen] == [*range(1, len(seen)), len(seen) - 1]
    assert 0 < seen[0].done < 6 and seen[-1].done == 20 and seen[-1].files == 4 + 12 * 2 + 6
    again = []
    grade(folder, tmp_path / "out", tell=again.append)
    assert again[-1] == replace(seen[-1], seconds=None)
