"""The course command: what it prints, where it exits, and what it never does to a person's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import course_lib
from course_lib import catalog, paths, progress, workspace
from course_lib.cli import app as cli
from course_lib.errors import CourseError
from course_lib.grading import runner
from course_lib.grading.hidden import Secret
from course_lib.grading.verdict import FAIL, PASS, CaseResult, Verdict

EX = catalog.get("00a")


@pytest.fixture(autouse=True)
def learner(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "exercises"))
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(cli.out, "width", 200)
    for exercise in catalog.exercises().values():
        workspace.reset(exercise)
    return workspace.file_of(EX)


@pytest.fixture
def command(capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        printed, said = capsys.readouterr()
        assert "Traceback" not in printed + said
        return code, printed, said

    return run


def solve(exercise=EX) -> None:
    workspace.file_of(exercise).write_text(workspace.solution_text(exercise))


def wrong() -> str:
    text = workspace.solution_text(EX)
    assert text.count("tl.store(") == 1
    return text.replace("tl.store(y_ptr", "tl.store(1 + y_ptr")


# ---- check -------------------------------------------------------------------------------------------------------------


def test_exit_codes_of_the_five_verdicts(command, learner, monkeypatch):
    assert command("check", "00a")[0] == 2
    solve()
    assert command("check", "00a")[0] == 0
    learner.write_text(wrong())
    assert command("check", "00a")[0] == 1
    learner.write_text("def (")
    assert command("check", "00a")[0] == 3
    solve()

    def no_process(*arguments):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(runner, "run", no_process)
    code, printed, _ = command("check", "00a")
    assert code == 4 and "not your kernel" in printed


@pytest.mark.parametrize("arguments", [("check",), ("chekc", "00a"), ("check", "00a", "--nonsense"), ("check", "00a", "00b")])
def test_a_usage_error_is_64_and_one_line(command, arguments):
    code, printed, said = command(*arguments)
    assert code == 64 and not printed and said.startswith("course: ") and said.count("\n") == 1


@pytest.mark.parametrize("name", ["check", "hint", "solution", "reset", "watch"])
def test_an_unknown_exercise_names_those_there_are(command, name):
    code, _, said = command(name, "99z")
    assert code == 3 and "99z" in said and "00a" in said and said.count("\n") == 1


def test_without_a_command_there_is_help(command):
    code, printed, _ = command()
    assert code == 0 and all(name in printed for name in ("check", "hint", "solution", "reset", "status", "watch", "doctor", "update"))


def test_json_has_every_field(command, learner):
    learner.write_text(wrong())
    code, printed, said = command("check", "00a", "--json")
    verdict = json.loads(printed)
    assert code == 1 and not said
    assert verdict.keys() >= {"exercise", "status", "cause", "message", "cases", "mode", "isolation", "seconds"}
    assert (verdict["exercise"], verdict["status"], verdict["mode"] in ("cpu", "gpu")) == ("00a", "fail", True)
    assert verdict["cause"] and verdict["message"] and verdict["isolation"] != "none" and verdict["seconds"] > 0
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
    other.write_text(workspace.solution_text(EX))
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
    assert verdict == {**json.loads(command("check", "00a", "--secret-file", str(secret), "--json")[1]), "seconds": verdict["seconds"]}
    workspace.file_of(EX).write_text(wrong())
    code, printed, _ = command("check", "00a", "--secret-file", str(secret))
    assert code == 1 and "hidden cases" in printed and verdict["hidden"] in printed and "0123456789abcdef" not in printed
    assert json.loads(command("check", "00a", "--json")[1])["hidden"] == "" and progress.record("00a").checks == 1


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), ("", "is empty"), ("guess me", "can be guessed")])
def test_a_file_that_holds_no_secret_is_one_line(command, tmp_path, content, words):
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_text(content)
    solve()
    code, printed, said = command("check", "00a", "--secret-file", str(secret))
    assert code == 3 and not printed and words in said and said.startswith("course: ") and said.count("\n") == 1
    assert progress.read() == {}


def test_a_message_with_half_a_character_is_printed(command, learner):
    learner.write_text(workspace.solution_text(EX).replace("    tl.store(", '    assert n < 0, "half \\ud800"\n    tl.store('))
    code, printed, _ = command("check", "00a", "--json")
    assert (code, json.loads(printed)["cause"]) == (3, "kernel_raised")
    assert command("check", "00a")[0] == 3


# ---- hint, solution, reset, status -------------------------------------------------------------------------------------


def test_hints_come_one_at_a_time_and_stop_at_the_last(command):
    shown = [command("hint", "00a")[1].count("Hint ") for _ in range(4)]
    assert shown == [1, 2, 3, 3]


def test_a_hint_is_shown_as_it_is_written(command):
    for _ in range(3):
        _, printed, _ = command("hint", "06b")  # it holds [:, None], which rich would take for markup
    assert all(hint in " ".join(printed.split()) for hint in catalog.get("06b").hints)


def test_the_solution_waits_for_a_pass_or_a_yes(command):
    code, printed, said = command("solution", "00a")
    assert code == 1 and "--yes" in said and "tl.store" not in printed and not progress.record("00a").solution_seen
    code, printed, _ = command("solution", "00a", "--yes")
    assert code == 0 and "tl.store" in printed and progress.record("00a").solution_seen


def test_after_a_pass_the_solution_is_shown_unasked(command):
    progress.note_verdict(Verdict("06a", PASS, "none", ""))
    code, printed, said = command("solution", "6a")
    assert code == 0 and "tl.store" in printed and not said


def test_reset_says_where_the_work_went(command, learner, tmp_path):
    learner.write_text("my work")
    progress.note_verdict(Verdict("00a", FAIL, "cause", "text"))
    code, printed, _ = command("reset", "00a")
    (copy,) = (tmp_path / "state" / "kept").iterdir()
    assert code == 0 and f".course/kept/{copy.name}" in printed and copy.read_text() == "my work"
    assert learner.read_text() == workspace.generated_text(EX) and progress.record("00a").last == {}
    assert "no work of yours" in command("reset", "00a")[1]


def test_status_shows_every_exercise(command):
    progress.note_verdict(Verdict("00a", PASS, "none", ""))
    progress.note_reset("00a")
    progress.note_verdict(Verdict("06a", FAIL, "cause", "", (CaseResult("one", "fail", None, ""),)))
    progress.note_hint("06a", 3)
    code, printed, _ = command("status")
    rows = {name: line for line in printed.splitlines() for name in catalog.exercises() if f" {name} " in line}
    assert code == 0 and rows.keys() == catalog.exercises().keys()
    assert "pass" in rows["00a"] and "fail" in rows["06a"] and "not attempted" in rows["07b"]
    assert f"1 of {len(catalog.exercises())} passed" in printed
    listed = json.loads(command("status", "--json")[1])
    assert listed["00a"] == {"status": "pass", "hints": 0} and listed["06a"] == {"status": "fail", "hints": 1}
    assert listed.keys() == catalog.exercises().keys()


def test_a_broken_progress_file_is_one_line(command, tmp_path):
    progress.note_hint("00a", 3)
    progress.file().write_text("{ torn")
    code, printed, said = command("status")
    assert code == 0 and "0 of" in printed and "moved to .course/kept/" in said and said.count("\n") == 1


# ---- a folder that cannot be written -----------------------------------------------------------------------------------


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
    assert code == 3 and "No such file" in said and said.count("\n") == 1 and learner.read_text() == "my work"


@pytest.mark.parametrize(("raised", "code"), [(CourseError("what to do."), 3), (OSError(28, "No space left"), 3)])
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
    assert command("reset", "00a")[0] == 130


# ---- watch -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def watching(monkeypatch):
    """Run `course watch` in a thread; the returned function waits until the given number of verdicts was given."""
    import watchfiles

    ready, stop, verdicts = threading.Event(), threading.Event(), []
    stock = watchfiles.watch

    def watch(*arguments, **named):
        # yield_on_timeout tells this fixture that the watcher runs
        for batch in stock(*arguments, **named, stop_event=stop, debounce=50, step=10, rust_timeout=50, yield_on_timeout=True):
            ready.set()
            if batch:
                yield batch

    def check(exercise, *rest):
        verdicts.append(exercise.id)
        return Verdict(exercise.id, FAIL, "a_cause", f"checked {exercise.id}")

    monkeypatch.setattr(watchfiles, "watch", watch)
    monkeypatch.setattr(cli, "run_check", check)
    threads = []

    def start(*arguments: str):
        threads.append(threading.Thread(target=cli.run, args=(["watch", *arguments],), daemon=True))
        threads[0].start()
        assert ready.wait(10)

        def until(count: int) -> list[str]:
            deadline = time.monotonic() + 10
            while len(verdicts) < count and time.monotonic() < deadline:
                time.sleep(0.02)
            return verdicts

        return until

    yield start
    stop.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_watch_checks_what_is_saved_and_nothing_else(watching, learner, capsys):
    until = watching()
    (learner.parent / "notes.txt").write_text("not an exercise")
    learner.write_text("saved")
    assert until(1) == ["00a"]
    # as vim saves: a new file renamed over the old one
    other = workspace.file_of(catalog.get("06a"))
    (other.parent / ".06a.new").write_text("saved")
    os.replace(other.parent / ".06a.new", other)
    assert until(2) == ["00a", "06a"]
    assert progress.record("06a").checks == 1
    printed = capsys.readouterr().out
    assert "checked 00a" in printed and "Ctrl-C ends" in printed


def test_watch_of_one_exercise_leaves_the_others_alone(watching, learner):
    until = watching("06a")
    learner.write_text("saved")
    workspace.file_of(catalog.get("06a")).write_text("saved")
    assert until(1) == ["06a"]


# ---- the command as a process ------------------------------------------------------------------------------------------


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)} | environment,
        timeout=60,
    )


def test_the_command_checks_a_file_as_a_process(tmp_path):
    solve()
    done = process(str(paths.ROOT / "course_command.py"), "check", "00a", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"], done.stderr) == (0, "pass", "")


def test_status_imports_neither_torch_nor_triton():
    script = "import sys, course_command\nsys.argv = ['course', 'status']\ntry:\n    course_command.main()\nexcept SystemExit as end:\n"
    script += "    print(end.code, sorted({'torch', 'triton', 'numpy.testing', 'matplotlib'} & sys.modules.keys()))"
    # a terminal that knows no "●" is no reason to fail either
    done = process("-c", script, PYTHONIOENCODING="ascii")
    assert done.stdout.splitlines()[-1] == "0 []" and not done.stderr


def test_the_entry_point_is_the_one_that_pyproject_installs():
    text = (Path(paths.ROOT) / "pyproject.toml").read_text()
    assert 'course = "course_command:main"' in text


# ---- bench -------------------------------------------------------------------------------------------------------------


def test_bench_shows_and_draws_what_is_stored(command, tmp_path):
    code, printed, _ = command("bench", "backward", "--stored", "--plot", str(tmp_path / "out" / "b.png"))
    assert code == 0 and "layer_norm_backward persistent" in printed and "time over floor" in printed
    assert (tmp_path / "out" / "b.png").read_bytes().startswith(b"\x89PNG")


def test_bench_refuses_in_words(command):
    code, _, said = command("bench", "sideways")
    assert code == cli.BAD_REQUEST and "There are: forward, backward, long_rows, statistics, host, training, counters, all." in said


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="there is a GPU to measure on")
def test_bench_without_a_gpu_measures_nothing(command):
    code, printed, said = command("bench", "forward")
    assert code == cli.BAD_REQUEST and not printed and "measuring needs a GPU" in said
