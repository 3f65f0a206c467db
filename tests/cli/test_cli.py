"""The course command: what it prints, where it exits, and what it never does to a person's
files."""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import traceback
from pathlib import Path
from typing import NoReturn

import pytest
from rich.cells import cell_len

import course_command
import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.cli import app as cli
from course_lib.cli import status
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.execution import runner
from course_lib.grading.verdict import FAIL, PASS, CaseResult, Verdict
from course_lib.learner import progress, workspace
from course_lib.learner.following import find_next_exercise

EX = catalog.get("00a")


@pytest.fixture(autouse=True)
def learner(own_exercises, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for exercise in catalog.exercises().values():
        workspace.reset(exercise)
    return texts.find_file(EX)


@pytest.fixture
def command(capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        printed, said = capsys.readouterr()
        assert "Traceback" not in printed + said
        return code, printed, said

    return run


def solve(exercise=EX) -> None:
    texts.find_file(exercise).write_text(texts.read_solution(exercise))


def wrong() -> str:
    text = texts.read_solution(EX)
    assert text.count("tl.store(") == 1
    return text.replace("tl.store(y_ptr", "tl.store(1 + y_ptr")


# ---- the language --------------------------------------------------------------------------------


def test_an_option_chooses_the_language_of_one_call(monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "")
    english = run_forked("status", "00a")[1]
    chinese = run_forked("--lang", "zh", "status", "00a")[1]
    assert "your file" in english and "你的文件" in chinese and "your file" not in chinese


def test_a_language_that_the_course_lacks_is_wrong_use(command, monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "")  # given back afterwards
    code, printed, said = command("--lang", "fr", "status")
    assert code == cli.USAGE_ERROR and not printed and "--lang" in said and "en and zh_CN" in said


# ---- check ---------------------------------------------------------------------------------------


def test_exit_codes_of_the_five_verdicts(command, learner, monkeypatch):
    assert command("check", "00a")[0] == 2
    solve()
    assert command("check", "00a")[0] == 0
    learner.write_text(wrong())
    assert command("check", "00a")[0] == 1
    learner.write_text("def (")
    assert command("check", "00a")[0] == 3
    solve()

    def bug(*arguments):
        raise ZeroDivisionError("a bug of the grader's")

    monkeypatch.setattr(runner, "run", bug)
    code, printed, _ = command("check", "00a")
    assert code == 4 and "not your kernel" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("solution",),
        ("reset",),
        ("chekc", "00a"),
        ("check", "00a", "--nonsense"),
        ("hint", "00a", "00b"),
        ("check", "--file", "mine.py"),
        ("--nonsense",),
    ],
)
def test_a_usage_error_is_64_and_one_line(command, arguments):
    code, printed, said = command(*arguments)
    assert "--help` shows how it is used" in said
    assert code == 64 and not printed and said.startswith("course: ") and said.count("\n") == 1


@pytest.mark.parametrize("name", ["check", "hint", "solution", "reset", "watch"])
def test_an_unknown_exercise_names_those_there_are(command, name):
    code, _, said = command(name, "99z")
    assert code == 3 and "99z" in said and "00a" in said and said.count("\n") == 1


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_commands_in_groups(command, option):
    code, printed, _ = command(option)
    assert code == 0 and all(
        f"\n  {name} " in printed
        for name in (
            "check",
            "watch",
            "hint",
            "solution",
            "reset",
            "status",
            "bench",
            "doctor",
            "update",
        )
    )
    assert (
        printed.index("Work through")
        < printed.index("  check ")
        < printed.index("Measure:")
        < printed.index("  bench ")
        < printed.index("  doctor ")
    )
    assert command("check", option)[1].count("Exit codes: 0 pass, 1 fail, 2 not attempted, 3") == 1


@pytest.mark.parametrize("arguments", [(), ("check",), ("bench",), ("init",)])
def test_help_is_in_the_language_of_the_call_and_no_line_of_its_texts_is_too_wide(
    command, monkeypatch, arguments
):
    monkeypatch.setenv("COURSE_LANG", "en")  # the call sets it; so it is put back after the test
    english = command(*arguments, "--help")[1]
    printed = command("--lang", "zh", *arguments, "--help")[1]
    assert re.search("[\u4e00-\u9fff]", printed) and not re.search("[\u4e00-\u9fff]", english)
    assert [line for line in printed.splitlines() if cell_len(line) > 84] == [], (
        "a Chinese character takes two columns"
    )


SLOW_AND_WRONG = """
def layer_norm(x, w, b, eps):
    if x.shape[-1] == 16400:
        sum(range(30_000_000))
    return x * w
"""


def test_a_terminal_shows_the_first_wrong_case_while_others_still_run(command):
    exercise = catalog.get("01a")
    texts.find_file(exercise).write_text(f"import torch\n{SLOW_AND_WRONG}")
    code, text = in_terminal("check", "01a", columns=300)
    first, verdict = text.find("Case 1 of "), re.search(r": fail, \d+ of", text)
    assert (
        code == 1
        and verdict
        and 0 <= first < verdict.start()
        and re.search(r"Case 1 of \d+ is wrong \(M = .*\): y ", text)
    )
    assert text.count(" is wrong (") == 1
    _, piped, messages = command("check", "01a")
    assert "Case 1 of" not in piped + messages and ": fail, 0 of" in piped
    _, as_json, messages = command("check", "01a", "--json")
    assert json.loads(as_json)["status"] == "fail" and not messages


def test_json_has_every_field(command, learner):
    learner.write_text(wrong())
    code, printed, said = command("check", "00a", "--json")
    verdict = json.loads(printed)
    assert code == 1 and not said
    assert verdict.keys() >= {
        "exercise",
        "status",
        "cause",
        "message",
        "cases",
        "mode",
        "isolation",
        "seconds",
    }
    assert (verdict["exercise"], verdict["status"], verdict["mode"] in ("cpu", "gpu")) == (
        "00a",
        "fail",
        True,
    )
    assert (
        verdict["cause"]
        and verdict["message"]
        and verdict["isolation"] != "none"
        and verdict["seconds"] > 0
    )
    assert all(case.keys() >= {"name", "status", "error"} for case in verdict["cases"])
    assert {case["status"] for case in verdict["cases"]} >= {"fail"}


def test_a_pass_is_shown_with_what_was_avoided(command):
    solve()
    _, printed, _ = command("check", "00a")
    assert "What you avoided." in printed and "00a A masked copy: pass" in printed
    assert progress.record("00a").passed and progress.record("00a").checks == 1


def test_a_failure_says_what_and_points_to_the_hint(command, learner):
    learner.write_text(wrong())
    _, printed, _ = command("check", "00a")
    assert "fail" in printed and "course hint 00a" in printed and "What you avoided." not in printed


def test_another_file_leaves_progress_alone(command, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(texts.read_solution(EX))
    assert command("check", "00a", "--file", str(other))[0] == 0
    assert progress.read() == {}
    assert command("check", "00a", "--file", str(tmp_path / "none.py"))[0] == 3


def test_a_secret_file_grades_with_hidden_cases_and_leaves_progress_alone(command, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    solve()
    code, printed, said = command("check", "00a", "--secret-file", str(secret), "--json")
    verdict = json.loads(printed)
    assert (code, said, verdict["status"], len(verdict["hidden"])) == (0, "", "pass", 12)
    assert verdict["hidden"] == Secret(b"0123456789abcdef").fingerprint
    assert progress.read() == {}, "also of one's own file"
    assert verdict == {
        **json.loads(command("check", "00a", "--secret-file", str(secret), "--json")[1]),
        "seconds": verdict["seconds"],
    }
    texts.find_file(EX).write_text(wrong())
    code, printed, _ = command("check", "00a", "--secret-file", str(secret))
    assert (
        code == 1
        and "hidden cases" in printed
        and verdict["hidden"] in printed
        and "0123456789abcdef" not in printed
    )
    assert (
        json.loads(command("check", "00a", "--json")[1])["hidden"] == ""
        and progress.record("00a").checks == 1
    )


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), ("", "is empty"), ("guess me", "can be guessed")]
)
def test_a_file_that_holds_no_secret_is_one_line(command, tmp_path, content, words):
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_text(content)
    solve()
    code, printed, said = command("check", "00a", "--secret-file", str(secret))
    assert (
        code == 3
        and not printed
        and words in said
        and said.startswith("course: ")
        and said.count("\n") == 1
    )
    assert progress.read() == {}


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="a compiler's message is another")
def test_a_message_with_half_a_character_is_printed(command, learner):
    learner.write_text(
        texts.read_solution(EX).replace(
            "    tl.store(", '    tl.static_assert(BLOCK < 0, "half \\ud800")\n    tl.store('
        )
    )
    code, printed, _ = command("check", "00a", "--json")
    assert (code, json.loads(printed)["cause"]) == (1, "kernel_raised")
    assert command("check", "00a")[0] == 1


# ---- hint, solution, reset, status ---------------------------------------------------------------


def test_hints_come_one_at_a_time_and_stop_at_the_last(command):
    printed = [command("hint", "00a")[1] for _ in range(4)]
    assert [text.count("Hint ") for text in printed] == [1, 2, 3, 3]
    assert ["no more hints" in text for text in printed] == [False, False, True, True]
    assert "Compare" in printed[3] and "`course solution 00a`" in printed[3]


def test_a_hint_is_shown_as_it_is_written(command):
    for _ in range(3):
        # it holds [:, None], which rich would take for markup
        _, printed, _ = command("hint", "08a")
    assert all(hint in " ".join(printed.split()) for hint in catalog.get("08a").hints)


def test_the_solution_waits_for_a_pass_or_a_yes(command):
    code, printed, said = command("solution", "00a")
    assert (
        code == 1
        and "--yes" in said
        and "tl.store" not in printed
        and not progress.record("00a").solution_seen
    )
    code, printed, _ = command("solution", "00a", "--yes")
    assert code == 0 and "tl.store" in printed and progress.record("00a").solution_seen


def test_the_question_before_the_solution_stays_out_of_the_file(tmp_path):
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"y\n")
    with (tmp_path / "solution.py").open("w") as file:
        command = [sys.executable, str(paths.ROOT / "course_command.py"), "solution", "00a"]
        done = subprocess.run(
            command, stdin=terminal, stdout=file, stderr=subprocess.PIPE, text=True
        )
    os.close(terminal)
    os.close(keyboard)
    assert done.returncode == 0 and "Show the solution all the same?" in done.stderr
    assert (tmp_path / "solution.py").read_text() == texts.make_plain_solution(EX)


@pytest.mark.parametrize(
    "name",
    [
        "0a",
        "00A",
        "ex00a",
        "ex00a_masked_copy.py",
        "exercises/ex00a_masked_copy.py",
        "./exercises/ex00a_masked_copy",
    ],
)
def test_an_exercise_goes_by_its_id_or_its_file(name):
    assert catalog.get(name) == EX


def test_after_a_pass_the_solution_is_shown_unasked(command):
    progress.note_verdict(Verdict("07a", PASS, "none", ""))
    code, printed, said = command("solution", "7a")
    assert code == 0 and "tl.store" in printed and not said


def test_reset_says_where_the_work_went(command, learner, tmp_path):
    learner.write_text("my work")
    progress.note_verdict(Verdict("00a", FAIL, "cause", "text"))
    code, printed, _ = command("reset", "00a")
    (copy,) = (tmp_path / "state" / "kept").iterdir()
    assert code == 0 and f".course/kept/{copy.name}" in printed and copy.read_text() == "my work"
    assert learner.read_text() == texts.make_unsolved_text(EX) and progress.record("00a").last == {}
    assert "no work of yours" in command("reset", "00a")[1]


def test_status_shows_every_exercise(command):
    progress.note_verdict(Verdict("00a", PASS, "none", ""))
    progress.note_reset("00a")
    progress.note_verdict(Verdict("07a", FAIL, "cause", "", (CaseResult("one", "fail", None, ""),)))
    progress.note_hint("07a", 3)
    code, printed, _ = command("status")
    rows = {
        name: line
        for line in printed.splitlines()
        for name in catalog.exercises()
        if f" {name} " in line
    }
    assert code == 0 and rows.keys() == catalog.exercises().keys()
    assert "pass" in rows["00a"] and "fail" in rows["07a"] and "not attempted" in rows["09a"]
    assert f"1 of {len(catalog.required())} passed" in printed
    listed = json.loads(command("status", "--json")[1])
    assert listed["00a"] == {"status": "pass", "hints": 0} and listed["07a"] == {
        "status": "fail",
        "hints": 1,
    }
    assert listed.keys() == catalog.exercises().keys()


def test_a_broken_progress_file_is_one_line(command, tmp_path):
    progress.note_hint("00a", 3)
    progress.file().write_text("{ torn")
    code, printed, said = command("status")
    assert (
        code == 0
        and f"0 of {len(catalog.required())}" in printed
        and "moved to .course/kept/" in said
        and said.count("\n") == 1
    )


# ---- a folder that cannot be written -------------------------------------------------------------


@pytest.fixture
def unwritable(tmp_path, monkeypatch):
    """A state folder that cannot be made, for root as well."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "file" / "state"))


@pytest.mark.parametrize("arguments", [("hint", "00a"), ("solution", "00a", "--yes"), ("status",)])
def test_an_unwritable_state_folder_is_one_line(command, unwritable, arguments):
    code, _, said = command(*arguments)
    assert code == 3 and said.startswith("course: Not a directory") and said.count("\n") == 1


def test_a_verdict_is_shown_even_where_it_cannot_be_saved(command, unwritable):
    solve()
    code, printed, said = command("check", "00a")
    assert code == 0 and "00a A masked copy: pass" in printed
    assert said.count("\n") == 1 and "could not be saved" in said and "Not a directory" in said


def test_reset_without_a_place_for_the_copy_changes_nothing(command, learner, unwritable):
    learner.write_text("my work")
    code, _, said = command("reset", "00a")
    assert code == 3 and said.count("\n") == 1 and learner.read_text() == "my work"


def test_reset_without_a_solution_is_one_line(command, learner, tmp_path, monkeypatch):
    learner.write_text("my work")
    monkeypatch.setattr(paths, "SOLUTIONS", tmp_path / "none")
    code, _, said = command("reset", "00a")
    assert (
        code == 3
        and "No such file" in said
        and said.count("\n") == 1
        and learner.read_text() == "my work"
    )


@pytest.mark.parametrize(
    ("raised", "code"), [(CourseError("what to do."), 3), (OSError(28, "No space left"), 3)]
)
def test_what_a_command_raises_is_one_line(command, monkeypatch, raised, code):
    def fails(name):
        raise raised

    monkeypatch.setattr(workspace, "reset", fails)
    got, _, said = command("reset", "00a")
    assert got == code and said.startswith("course: ") and said.count("\n") == 1


def test_ctrl_c_ends_without_a_traceback(command, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace, "reset", interrupted)
    code, _, said = command("reset", "00a")
    assert (code, said) == (130, "course: stopped.\n")


# ---- where you are -------------------------------------------------------------------------------


def passed(*names: str) -> None:
    for name in names:
        progress.note_verdict(Verdict(name, PASS, "none", ""))


def test_the_next_exercise_is_the_first_not_passed():
    order = list(catalog.required())
    assert find_next_exercise(progress.read()).id == order[0]
    passed(order[0], order[2])
    progress.note_verdict(Verdict(order[1], FAIL, "cause", "text"))
    assert find_next_exercise(progress.read()).id == order[1]
    assert find_next_exercise(progress.read(), catalog.get(order[1])).id == order[3]
    passed(*order[1:-1])
    assert find_next_exercise(progress.read(), catalog.get(order[-1])).id == order[-1], (
        "it goes round"
    )
    passed(order[-1])
    assert find_next_exercise(progress.read()) is None


def test_the_path_of_six_hours_is_gone_on_with_once_it_is_taken():
    path = [exercise.id for exercise in catalog.required().values() if exercise.short_path]
    passed("00a", "01a", "01b")
    upcoming = find_next_exercise(progress.read())
    assert upcoming.id == "02a" and "On the path of six hours comes 06a." in status.next_line(
        upcoming
    )
    passed("06a")
    assert find_next_exercise(
        progress.read()
    ).id == "08a" and "path of six" not in status.next_line(catalog.get("08a"))
    assert find_next_exercise(progress.read(), catalog.get("06a")).id == "07a", (
        "the key for the next one goes through all"
    )
    passed(*path)
    assert find_next_exercise(progress.read()).id == "02a"


def test_an_exercise_off_the_path_leaves_the_path():
    passed("00a", "01a", "01b", "06a", "07a")
    upcoming = find_next_exercise(progress.read())
    assert upcoming.id == "02a" and "path" not in status.next_line(upcoming)


def test_who_began_with_a_later_exercise_goes_on_behind_it():
    passed("13a")
    upcoming = find_next_exercise(progress.read())
    assert upcoming.id == "13b" and "comes 00a" not in status.next_line(upcoming)
    later = [name for name in catalog.required() if name >= "13a"]
    passed(*later)
    assert find_next_exercise(progress.read()).id == "00a", "the earlier ones come last"


def test_an_optional_task_is_never_next_and_is_counted_apart(command):
    task = next(exercise for exercise in catalog.exercises().values() if exercise.optional)
    earlier = [name for name in catalog.required() if name < task.id]
    passed(*earlier)
    upcoming = find_next_exercise(progress.read())
    assert (
        upcoming.id > task.id
        and not upcoming.optional
        and find_next_exercise(progress.read(), task) == upcoming
    )
    tasks = len(catalog.exercises()) - len(catalog.required())
    assert f"0 of {tasks} optional tasks passed" in " ".join(command("status")[1].split())
    passed(task.id)
    printed = " ".join(command("status")[1].split())
    assert (
        f"1 of {tasks} optional tasks passed" in printed
        and f"{len(earlier)} of {len(catalog.required())} passed" in printed
    )
    assert task not in catalog.find([task.lesson]) and catalog.find([task.id]) == [task]
    assert "optional" in command("status", task.id)[1]


def test_course_alone_says_where_you_are_and_how_to_go_on(command):
    passed("00a")
    code, printed, said = command()
    assert code == 0 and not said
    assert f"1 of {len(catalog.required())} passed" in printed and "Next: 01a" in printed
    assert (
        catalog.get("01a").title in printed and f"{catalog.get('01a').minutes} minutes" in printed
    )
    assert "exercises/ex01a" in printed and "notebooks/01_" in printed
    assert all(
        way in printed for way in ("course check", "course watch", "course hint", "course --help")
    )


def test_course_alone_says_which_prerequisites_are_passed(command):
    before = {name for name in catalog.required() if name < "08a"} - {"07a"}
    passed(*before)
    exercise = catalog.get("07a")
    _, printed, _ = command()
    asked = [catalog.get(need) for need in exercise.prerequisites if need in catalog.exercises()]
    assert asked and all(f"{need.id} {need.title} (✓ passed)" in printed for need in asked)
    assert all(need in printed for need in exercise.prerequisites)
    passed("07a")
    # 01a is not passed any more
    progress.file().write_text(progress.file().read_text().replace('"01a"', '"xxx"'))
    assert "Next: 01a" in command()[1]


def test_after_the_last_pass_there_is_no_next(command):
    passed(*catalog.required())
    assert "every exercise" in command()[1] and "every exercise" in command("status")[1]
    code, _, said = command("check")
    assert code == 3 and "course status" in said


def test_check_without_an_id_takes_the_next_one(command):
    assert json.loads(command("check", "--json")[1])["exercise"] == "00a"
    solve()
    code, printed, _ = command("check")
    assert code == 0 and "Next: 01a" in printed
    assert json.loads(command("check", "--json")[1])["exercise"] == "01a"


def test_hint_without_an_id_is_about_the_next_one(command):
    passed("00a")
    code, printed, _ = command("hint")
    assert (
        code == 0
        and "01a" in printed
        and "Hint 1 of 3" in printed
        and progress.record("01a").hints == 1
    )


# ---- the command as a process, in a terminal of 80 columns and into a pipe -----------------------


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "COLUMNS": ""} | environment,
    )


COURSE = str(paths.ROOT / "course_command.py")


def run_forked(*arguments: str, columns: int = 0) -> tuple[int, str, str]:
    """Run the command in a fork of this process, which has imported the course already: a new
    process takes a second for that.

    It is for commands that start no process of their own: a fork shares this process's connections
    to the servers of checks.

    Args:
        columns: the width of the terminal that is its input and output; 0 gives it a pipe for each.

    Returns: the exit code, the output, and the messages, which a terminal has among the output; a
    terminal's colours and links are left out.
    """
    if columns:
        reader, writer = open_terminal(columns)
        error_reader, error_writer = os.open(os.devnull, os.O_RDONLY), os.dup(writer)
    else:
        (reader, writer), (error_reader, error_writer) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _become_command(arguments, writer, error_writer, in_terminal=bool(columns))
    os.close(writer)
    os.close(error_writer)
    output, messages = _read_whole(reader), _read_whole(error_reader)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, _drop_colours(output) if columns else output, messages


def _become_command(
    arguments: tuple[str, ...], output: int, messages: int, *, in_terminal: bool
) -> NoReturn:
    code = 70  # of an error that is no SystemExit; its traceback is among the messages
    try:
        os.environ.pop("COLUMNS", None)
        os.environ["TERM"] = "xterm-256color"
        os.dup2(output if in_terminal else os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(messages, 2)
        streams = [open(number, "r" if number == 0 else "w", closefd=False) for number in range(3)]  # noqa: SIM115
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.argv = ["course", *arguments]
        try:
            course_command.main()
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def open_terminal(columns: int) -> tuple[int, int]:
    """Return both ends of a terminal of that width: what reads it, and what a command has for its
    input and output."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return controller, terminal


def _read_whole(source: int) -> str:
    """Read what a terminal or a pipe received, and close it."""
    received = b""
    with contextlib.suppress(OSError):  # EIO: nobody holds the terminal any more
        while data := os.read(source, 4096):
            received += data
    os.close(source)
    return received.decode()


def _drop_colours(received: str) -> str:
    """Return what a terminal shows: without colours, links and the carriage returns of its
    lines."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;.*?\x1b\\", "", received.replace("\r\n", "\n"))


def in_terminal(*arguments: str, columns: int) -> tuple[int, str]:
    """Run the command as a process. Return its exit code and what a terminal of that width
    received, without colours and links."""
    controller, terminal = open_terminal(columns)
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT), "TERM": "xterm-256color"}
    environment.pop("COLUMNS")
    running = subprocess.Popen(
        [sys.executable, COURSE, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
    )
    os.close(terminal)
    text = _drop_colours(_read_whole(controller))
    return running.wait(), text


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("check", "--help"),
        ("bench", "-h"),
        ("status",),
        ("hint", "07a"),
        ("bench", "--stored"),
    ],
)
def test_what_is_printed_fits_80_columns(arguments):
    code, text, _ = run_forked(*arguments, columns=80)
    assert code == 0 and max(map(len, text.splitlines())) <= 80
    code, piped, messages = run_forked(*arguments)
    assert (
        code == 0
        and not messages
        and "\x1b" not in piped
        and max(map(len, piped.splitlines())) <= 80
    )


def test_the_version_names_what_matters_and_imports_none_of_it():
    done = process("-X", "importtime", COURSE, "--version")
    assert (
        done.stdout.startswith(f"course {course_lib.__version__}, Python 3.")
        and "torch " in done.stdout
        and "triton " in done.stdout
    )
    assert not re.search(r"\| +(torch|triton|numpy|rich)$", done.stderr, re.MULTILINE)


def test_help_loads_neither_the_grader_nor_what_draws():
    done = process("-X", "importtime", COURSE, "--help")
    assert not re.search(
        r"\| +(torch|triton|numpy|rich|course_lib\.grading.*|course_lib\.catalog)$",
        done.stderr,
        re.MULTILINE,
    )


def test_ids_are_completed(monkeypatch):
    with monkeypatch.context() as asked:
        for name, value in {
            "_COURSE_COMPLETE": "complete_bash",
            "COMP_WORDS": "course check 06",
            "COMP_CWORD": "2",
        }.items():
            asked.setenv(name, value)
        assert run_forked()[1].split() == [
            name for name in catalog.exercises() if name.startswith("06")
        ]
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_COURSE_COMPLETE=complete_bash" in run_forked("--show-completion", "bash")[1]


def test_the_solution_comes_without_the_authors_marks_and_loses_nothing():
    source = texts.make_plain_solution(catalog.get("07a"))
    whole = texts.read_solution(catalog.get("07a"))
    assert "BEGIN SOLUTION" in whole and ast.dump(ast.parse(whole)) == ast.dump(ast.parse(source))
    assert run_forked("solution", "07a", "--yes")[1] == source, (
        "into a pipe it is the text, byte for byte"
    )
    assert "SOLUTION" not in source and "#:" not in source
    code, text, _ = run_forked("solution", "07a", "--yes", columns=80)
    shown = "".join(re.sub(r"^ *\d* ", "", line.removesuffix("\n")) for line in text.splitlines())
    assert code == 0 and "".join(shown.split()) == "".join(source.split())
    assert max(map(len, text.splitlines())) <= 80


def test_a_message_is_one_line_in_a_pipe_and_wrapped_at_words_in_a_terminal():
    code, _, message = run_forked("check", "99z")
    assert code == 3 and message.count("\n") == 1 and len(message) > 80
    code, text, _ = run_forked("check", "99z", columns=80)
    assert code == 3 and max(map(len, text.splitlines())) <= 80 and text.split() == message.split()


def test_a_full_device_is_blamed_and_not_the_work(capsys):
    solve()
    with open("/dev/full", "w") as device, contextlib.redirect_stdout(device):
        code = cli.run(["check", "00a", "--json"])
    message = capsys.readouterr().err
    assert code == cli.OUTPUT_ERROR and message.count("\n") == 1
    assert (
        "the output could not be written (No space left on device)" in message
        and "saved" in message
    )
    assert progress.record("00a").passed


COMMANDS = ("check 03a", "check 03a --json", "status", "hint 03a")
REDIRECTIONS = {
    ">/dev/full": 74,
    ">/dev/full 2>/dev/full": 74,
    ">&-": 74,
    ">&- 2>&-": 74,
    "2>&-": 0,
    "| true": 0,
}
NOT_IN_TURN = [  # each redirection has one command; the others are those of a sweep
    pytest.param(command, redirection, marks=pytest.mark.sweep)
    for number, redirection in enumerate(REDIRECTIONS)
    for command in COMMANDS
    if command != COMMANDS[number % len(COMMANDS)]
]


@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [
        *(
            (COMMANDS[number % len(COMMANDS)], redirection)
            for number, redirection in enumerate(REDIRECTIONS)
        ),
        *NOT_IN_TURN,
    ],
)
def test_the_exit_code_is_true_wherever_the_output_goes(arguments, redirection):
    solve(catalog.get("03a"))  # a NumPy exercise: nothing imports PyTorch or compiles
    line = f"{sys.executable} {COURSE} {arguments} {redirection}; echo ${{PIPESTATUS[0]}} >&3"
    done = subprocess.run(
        ["bash", "-c", f"exec 3>&1; {{ {line}; }} 3>&1 >/dev/null"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.split()[-1] in (
        (str(REDIRECTIONS[redirection]),) if "|" not in redirection else ("0", "141")
    )
    if arguments.startswith("check"):
        assert progress.record("03a").passed, "what was checked is saved"


def test_nothing_is_said_to_be_saved_that_is_not(tmp_path, capsys):
    other = tmp_path / "other.py"
    other.write_text(texts.read_solution(EX))
    with open("/dev/full", "w") as device, contextlib.redirect_stdout(device):
        code = cli.run(["check", "00a", "--file", str(other)])
    message = capsys.readouterr().err
    assert code == cli.OUTPUT_ERROR and "`course status` shows what is saved." in message
    assert "verdict" not in message and progress.read() == {}


def test_a_message_that_cannot_be_written_stays_out_of_the_results():
    line = f"{sys.executable} {COURSE} check 99z --json 2>&-"
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
    )
    assert (done.returncode, done.stdout) == (3, "")


def test_what_python_thinks_of_the_code_is_no_message(command, learner):
    learner.write_text(texts.read_solution(EX) + "\nX = 1 if 1 is 1 else '\\d'\n")
    code, printed, said = command("check", "00a", "--json")
    assert (code, said, json.loads(printed)["status"]) == (0, "", "pass")


HOSTILE_NAMES = [
    "ex00a\x1b[2J.py",
    "two\n✓ 00a A masked copy: pass\n.py",
    "right\u202eyp.evil",
    "[bold red]x[red].py",
    "caf\udce9.py",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
@pytest.mark.parametrize("make", ["missing", "link", "folder", "syntax", "wrong", "unsolved"])
def test_no_files_name_draws_on_the_terminal(command, tmp_path, name, make):
    file = tmp_path / name
    match make:
        case "link":
            file.symlink_to("/etc/passwd")
        case "folder":
            file.mkdir()
        case "syntax":
            file.write_text("def (")
        case "wrong":
            file.write_text(wrong())
        case "unsolved":
            file.write_text(texts.make_unsolved_text(EX))
    for extra in ((), ("--json",)):
        code, printed, said = command("check", "00a", "--file", str(file), *extra)
        assert code == {"wrong": 1, "unsolved": 2}.get(make, 3)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udc00-\udfff]", printed + said)
        assert "\n✓ 00a" not in printed + said


@pytest.mark.parametrize(
    "arguments",
    [
        "--help", "solution 07a --yes",
        *(pytest.param(arguments, marks=pytest.mark.sweep) for arguments in ("", "status",
            "status --json", "bench forward --stored")),
    ],
)  # fmt: skip
def test_a_reader_that_leaves_is_no_error(arguments):
    line = f"{sys.executable} {COURSE} {arguments} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
    )
    assert done.stdout.strip() in ("0", "141") and not done.stderr


def test_the_command_checks_a_file_as_a_process(tmp_path):
    solve()
    done = process(COURSE, "check", "00a", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"], done.stderr) == (0, "pass", "")


def test_status_imports_neither_torch_nor_triton():
    script = (
        "import sys, course_command\nsys.argv = ['course', 'status']\ntry:\n   "
        " course_command.main()\nexcept SystemExit as end:\n"
    )
    script += (
        "    print(end.code, sorted({'torch', 'triton', 'numpy.testing', 'matplotlib'} &"
        " sys.modules.keys()))"
    )
    # a terminal that knows no "●" is no reason to fail either
    done = process("-c", script, PYTHONIOENCODING="ascii")
    assert done.stdout.splitlines()[-1] == "0 []" and not done.stderr


def test_the_entry_point_is_the_one_that_pyproject_installs():
    text = (Path(paths.ROOT) / "pyproject.toml").read_text()
    assert 'course = "course_command:main"' in text


# ---- bench ---------------------------------------------------------------------------------------


def test_bench_shows_and_draws_what_is_stored(command, tmp_path):
    code, printed, _ = command(
        "bench", "backward", "--stored", "--plot", str(tmp_path / "out" / "b.html")
    )
    assert (
        code == 0 and "layer_norm_backward persistent" in printed and "time over floor" in printed
    )
    assert "layer norm backward, fp16" in (tmp_path / "out" / "b.html").read_text()
    code, _, said = command("bench", "backward", "--stored", "--plot", str(tmp_path / "b.png"))
    assert code == cli.BAD_REQUEST and "ends in .html" in said


def test_bench_refuses_in_words(command):
    code, _, said = command("bench", "sideways")
    assert (
        code == cli.BAD_REQUEST
        and "There are: forward, backward, long_rows, statistics, host, training, all." in said
    )


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="there is a GPU to measure on")
def test_bench_without_a_gpu_measures_nothing(command):
    code, printed, said = command("bench", "forward")
    assert code == cli.BAD_REQUEST and not printed and "measuring needs a GPU" in said


def test_a_lessons_number_checks_all_of_its_exercises(command):
    code, printed, _ = command("check", "01")
    assert code == 2 and "01a" in printed and "01b" in printed and "00a" not in printed
    code, printed, said = command("check", "01", "--json")
    assert code == 64 and not printed and "01a, 01b" in said
    assert command("check", "99")[0] == 3


def test_several_exercises_are_checked_one_after_the_other_and_the_worst_counts(command):
    solve()
    code, printed, _ = command("check", "00a", "01a")
    assert code == 2 and 0 <= printed.index("00a A masked copy: pass") < printed.index("01a")
    code, printed, said = command("check", "00a", "99z")
    assert code == 3 and not printed and "99z" in said, (
        "a wrong name is told before anything is checked"
    )
    for option in ("--json", "--file=x.py"):
        code, printed, said = command("check", "00a", "01a", option)
        assert code == 64 and not printed and "name one" in said


def test_status_of_one_exercise_says_what_it_asks_for_and_where_it_stands(command):
    progress.note_verdict(Verdict("07a", FAIL, "cause", "", (CaseResult("one", "fail", None, ""),)))
    code, printed, _ = command("status", "07a")
    assert code == 0 and catalog.get("07a").objective in printed and "fail" in printed
    assert "exercises/ex07a_" in printed and "00a" not in printed
    code, printed, _ = command("status", "01", "00a")
    titles = [catalog.get(name).title for name in ("01a", "01b", "00a")]
    assert code == 0 and sorted(titles, key=printed.index) == titles
    assert list(json.loads(command("status", "00a", "--json")[1])) == ["00a"]
    progress.note_verdict(Verdict("00a", PASS, "none", ""))
    progress.note_verdict(Verdict("00a", FAIL, "cause", ""))
    told = command("status", "00a")[1]
    assert re.search(r"last check +✗ fail", told) and re.search(r"before +✓ pass", told)
    assert command("status", "99z")[0] == 3
