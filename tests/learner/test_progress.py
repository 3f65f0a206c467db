"""Progress: nothing is lost to a crash, to a broken file, or to two processes at once."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.grading.verdict import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    CaseResult,
    Finding,
    Place,
    Verdict,
    from_dict,
)
from course_lib.learner import progress

pytestmark = pytest.mark.usefixtures("state")


def verdict(status: str = FAIL, exercise: str = "07a", message: str = "in words") -> Verdict:
    return Verdict(
        exercise,
        status,
        "a_cause",
        message,
        (CaseResult("one", "fail", 2.5, "detail"),),
        "cpu",
        "limits only",
        1.25,
        "printed",
    )


def test_nothing_is_there_before_the_first_check(state):
    assert (
        progress.read() == {}
        and progress.record("07a") == progress.ExerciseProgress()
        and not state.exists()
    )


def test_a_verdict_is_read_back_whole():
    progress.note_verdict(verdict())
    assert from_dict(progress.record("07a").last) == verdict()


def in_pieces(**changes) -> Verdict:
    first = Finding("M = 1, N = 3", "y is off", "y[0, 0]", -0.9, -1.2, 41.0, 3, 3, 50.0)
    place = Place(
        "exercises/ex07a_layer_norm_forward.py",
        31,
        "    squares += deviation",
        4,
        11,
        "y is stored here",
    )
    pieces = {
        "headline": "Padding.",
        "first": first,
        "place": place,
        "question": "What?",
        "common": "7 of 23 cases are wrong.",
    }
    return replace(verdict(), **pieces | changes)


def test_the_pieces_of_a_verdict_are_read_back_whole():
    progress.note_verdict(in_pieces())
    assert from_dict(progress.record("07a").last) == in_pieces()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_has_no_word_for_are_read_back(value):
    odd = in_pieces(
        first=replace(in_pieces().first, got=value, want=-value, ratio=None, worst=None)
    )
    progress.note_verdict(odd)
    read = from_dict(progress.record("07a").last).first
    assert repr((read.got, read.want)) == repr((value, float(str(-value)))) and odd.as_json()


def test_a_verdict_from_before_it_had_pieces_is_read(state):
    """As the course of November 2026 wrote it."""
    old = {
        "exercise": "07a", "status": "fail", "cause": "eps_missing", "message": "Eps is missing.",
        "cases": [],
        "mode": "cpu", "isolation": "none", "seconds": 1.5, "printed": "",
    }  # fmt: skip
    state.mkdir()
    progress.file().write_text(
        json.dumps({"version": 2, "exercises": {"07a": GOOD | {"last": old}}})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is not moved aside
        read = from_dict(progress.record("07a").last)
    assert read == Verdict("07a", "fail", "eps_missing", "Eps is missing.", seconds=1.5)


def test_checks_count_attempts_only():
    for status in (NOT_ATTEMPTED, FAIL, ERROR, GRADER_FAULT, PASS, NOT_ATTEMPTED):
        progress.note_verdict(verdict(status))
    assert (
        progress.record("07a").checks == 3
        and progress.record("07a").last["status"] == NOT_ATTEMPTED
    )


def test_a_fault_of_the_grader_leaves_the_record_as_it_was():
    progress.note_verdict(verdict(GRADER_FAULT))
    assert progress.read() == {}
    progress.note_verdict(verdict(FAIL))
    before = progress.record("07a")
    progress.note_verdict(verdict(GRADER_FAULT))
    assert progress.record("07a") == before


def test_a_pass_stays_a_pass_and_keeps_its_first_time(monkeypatch):
    progress.note_verdict(verdict(PASS))
    first = progress.record("07a").passed_at
    progress.note_verdict(verdict(FAIL))
    progress.note_reset("07a")
    assert (
        progress.record("07a").passed
        and progress.record("07a").passed_at == first
        and progress.record("07a").last == {}
    )


def test_hints_count_to_the_last_and_no_further():
    assert [progress.note_hint("07a", 3) for _ in range(5)] == [1, 2, 3, 3, 3]
    assert progress.record("07a").hints == 3 and progress.record("08a").hints == 0


def test_one_exercise_leaves_the_others_alone():
    progress.note_verdict(verdict(PASS, "00a"))
    progress.note_solution_seen("07a")
    progress.note_reset("07a")
    assert (
        progress.record("00a").passed
        and progress.record("07a").solution_seen
        and not progress.record("00a").solution_seen
    )


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_crash_half_way_through_a_write_leaves_the_last_good_state(state, monkeypatch, step):
    progress.note_verdict(verdict(PASS))
    before = progress.file().read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space"):
            progress.note_hint("07a", 3)
    assert progress.file().read_bytes() == before
    assert sorted(p.name for p in state.iterdir()) == ["progress.json", "progress.lock"]
    assert progress.note_hint("07a", 3) == 1


GOOD = {"checks": 1, "hints": 0, "solution_seen": False, "passed_at": "", "last": {}}
BROKEN = {
    "torn": b'{"version": 2, "exercises": {"07a": {"che',
    "empty": b"",
    "not json": b"progress\n",
    "not utf-8": b'{"version": 2, "exercises": {"\xff": {}}}',
    "utf-16": '{"version": 2}'.encode("utf-16"),
    "nul": b"\0" * 100,
    "a list": b"[]",
    "null": b"null",
    "another version": json.dumps({"version": 3, "exercises": {}}).encode(),
    "no version": json.dumps({"exercises": {}}).encode(),
    "no exercises": json.dumps({"version": 2}).encode(),
    "exercises is a list": json.dumps({"version": 2, "exercises": ["07a"]}).encode(),
    "an unknown field": (
        json.dumps({"version": 2, "exercises": {"07a": GOOD | {"score": 1}}}).encode()
    ),
    "a record is null": json.dumps({"version": 2, "exercises": {"07a": None}}).encode(),
    "a count is text": (
        json.dumps({"version": 2, "exercises": {"07a": GOOD | {"checks": "many"}}}).encode()
    ),
    "last is null": (
        json.dumps({"version": 2, "exercises": {"07a": GOOD | {"last": None}}}).encode()
    ),
    "an unknown status": (
        json.dumps(
            {
                "version": 2,
                "exercises": {"07a": GOOD | {"last": verdict().as_dict() | {"status": "great"}}},
            }
        ).encode()
    ),
    "half a finding": (
        json.dumps(
            {
                "version": 2,
                "exercises": {
                    "07a": GOOD | {"last": verdict().as_dict() | {"first": {"case": "one"}}}
                },
            }
        ).encode()
    ),
    "half a verdict": (
        json.dumps(
            {"version": 2, "exercises": {"07a": GOOD | {"last": {"status": "pass"}}}}
        ).encode()
    ),
    "nested beyond reason": b'{"version": 2, "exercises": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("first", ["read", "write"])
def test_a_file_that_cannot_be_read_is_moved_aside_and_said(state, data, first):
    state.mkdir()
    progress.file().write_bytes(data)
    with pytest.warns(
        UserWarning,
        match=r"\.course/progress\.json could not be read .* moved to \.course/kept/progress-",
    ):
        if first == "read":
            assert progress.read() == {}
        else:
            assert progress.note_hint("07a", 3) == 1
    (copy,) = (state / "kept").iterdir()
    assert copy.read_bytes() == data
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        progress.note_verdict(verdict(PASS))
        assert progress.record("07a").passed


def test_readers_that_find_it_broken_at_once_neither_fail_nor_lose_what_was_written_since(state):
    state.mkdir()
    for _ in range(5):
        progress.file().write_bytes(b"torn")
        with warnings.catch_warnings(), ThreadPoolExecutor(8) as pool:
            warnings.simplefilter("ignore")
            readers = [pool.submit(progress.read) for _ in range(6)]
            writers = [pool.submit(progress.note_solution_seen, f"0{n}a") for n in range(2)]
            assert all(isinstance(reader.result(), dict) for reader in readers)
            assert [writer.result() for writer in writers] == [None, None]
        assert progress.record("00a").solution_seen and progress.record("01a").solution_seen


def test_text_that_no_encoding_can_hold_is_kept_as_it_is_shown():
    progress.note_verdict(verdict(message="half a pair: \ud800"))
    assert progress.record("07a").last["message"] == r"half a pair: \ud800"


def test_half_a_character_in_an_older_file_stays_readable(state):
    state.mkdir()
    old = GOOD | {"last": verdict().as_dict() | {"message": "half a pair: \ud800"}}
    progress.file().write_text(json.dumps({"version": 2, "exercises": {"07a": old}}))
    progress.note_hint("00a", 3)
    assert progress.read()["07a"].last == old["last"]


def test_the_longest_verdicts_take_kilobytes():
    """An endless message, of characters that take twelve bytes each in the file."""
    long = "\U0001f600" * 100_000
    cases = tuple(CaseResult(f"case {n}", "fail", 2.0, long) for n in range(60))
    names = ("00a", "04b", "07a", "16b")  # each verdict writes the whole file anew
    for name in names:
        progress.note_verdict(
            in_pieces(message=long, printed=long, headline=long, cases=cases)
            if name == "07a"
            else replace(
                in_pieces(message=long, printed=long, headline=long, cases=cases), exercise=name
            )
        )
    size = progress.file().stat().st_size
    assert size < len(names) * 32_000
    kept = from_dict(progress.record("07a").last)
    assert (kept.status, kept.cause, len(kept.cases)) == (FAIL, "a_cause", 60), (
        "what it says is cut, not what it is"
    )
    assert kept.message.startswith("\U0001f600") and kept.printed


def test_an_honest_verdict_is_kept_whole():
    cases = tuple(
        CaseResult(f"case {n}", "fail", 2.0, "M = 3, N = 8: " + 20 * "words ") for n in range(40)
    )
    honest = replace(in_pieces(cases=cases), printed="mine\n" * 100)
    progress.note_verdict(honest)
    assert from_dict(progress.record("07a").last) == honest


WRITER = """
import os, sys
os.environ["COURSE_DEFER_CHOICE"] = "1"
from course_lib.learner import progress
from course_lib.grading.verdict import Verdict
print("ready", flush=True)
sys.stdin.readline()
for n in range(20):
    progress.note_verdict(Verdict("07a", "fail", "cause", "message"))
    progress.note_solution_seen(f"{sys.argv[1]}{n}")
"""


def test_two_processes_writing_at_once_lose_nothing():
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=30)
        assert writer.returncode == 0
    records = progress.read()
    assert records["07a"].checks == 40
    assert records.keys() == {"07a", *(f"{name}{n}" for name in "ab" for n in range(20))}


def test_hints_of_the_catalog_are_the_limit():
    exercise = catalog.get("07a")
    assert max(progress.note_hint(exercise.id, len(exercise.hints)) for _ in range(5)) == 3


def test_a_file_of_the_first_curriculum_is_read_under_the_numbers_of_this_one(state):
    state.mkdir()
    old = {"02a": GOOD, "07a": GOOD | {"checks": 7}, "10a": GOOD | {"checks": 10}, "00a": GOOD}
    progress.file().write_text(json.dumps({"version": 1, "exercises": old}))
    found = progress.read()
    assert {name: entry.checks for name, entry in found.items()} == {
        "10a": GOOD["checks"],
        "02b": 7,
        "14a": 10,
        "00a": GOOD["checks"],
    }
    assert all(
        entry.passed == bool(GOOD["passed_at"]) and not entry.last for entry in found.values()
    )
    progress.note_hint("02b", 3)  # written anew, in this version
    assert (
        json.loads(progress.file().read_text())["version"] == 2
        and progress.read()["02b"].checks == 7
    )


# ---- hunts


def test_a_hunt_is_read_back_move_by_move():
    progress.note_hunt("07a-lusab", "07a-lusab", "blind")
    progress.note_hunt("07a-lusab", "07a-lusab", "seen", {"kind": "ask"})
    record = progress.note_hunt("07a-lusab", "07a-lusab", "seen", {"kind": "code"})
    assert progress.read_hunts() == {"07a-lusab": record}
    assert (record.level, record.moves) == ("blind", [{"kind": "ask"}, {"kind": "code"}])


def test_a_file_from_before_there_were_hunts_has_none_and_keeps_all_else(state):
    progress.note_verdict(verdict(PASS))
    progress.note_prediction("03-digits", "seven", surprised=True)
    file = progress.file()
    data = json.loads(file.read_text())
    del data["hunts"]
    file.write_text(json.dumps(data))
    assert progress.read_hunts() == {}
    progress.note_hunt("a", "a", "blind", {"kind": "code"})
    assert progress.record("07a").passed and progress.read_predictions()["03-digits"].surprised
    assert progress.read_hunts()["a"].moves == [{"kind": "code"}]


def test_two_at_once_lose_no_move():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: progress.note_hunt("a", "a", "blind", {"n": n}), range(24)))
    assert sorted(move["n"] for move in progress.read_hunts()["a"].moves) == list(range(24))


@pytest.mark.parametrize(
    "entry",
    [
        {"hunt": 3, "level": "blind"},
        {"hunt": "a", "level": "seen", "moves": ["ask"]},
        {"level": "seen"},
        [],
    ],
)
def test_a_hunt_that_is_none_moves_the_file_aside(entry):
    progress.note_hunt("a", "a", "blind")
    data = json.loads(progress.file().read_text())
    data["hunts"]["b"] = entry
    progress.file().write_text(json.dumps(data))
    with pytest.warns(UserWarning, match="moved to"):
        assert progress.read_hunts() == {}
    assert list((progress.file().parent / "kept").iterdir())
