"""`course hunt`: from standard input and in a terminal of 80 columns; what is kept over a kill."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from course_lib.base import paths
from course_lib.cli import app as cli
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.verdict import PASS, Verdict
from course_lib.hunt import draw, game
from course_lib.hunt.collection import read_hunts
from course_lib.hunt.probe import find_options
from course_lib.learner import progress

FIRST = draw.draw(draw.list_open(set()), 0)
assert FIRST is not None
WINNING = f"{find_options('00a').write(FIRST.probe)}\nwrong\nline {FIRST.lines[0]}\n"


@pytest.fixture(autouse=True)
def learner(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def hunt(capsys, monkeypatch):
    def run(*arguments: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = cli.run(["hunt", *arguments])
        printed, said = capsys.readouterr()
        assert "Traceback" not in printed + said
        return code, printed, said

    return run


def passed(exercise: str) -> None:
    progress.note_verdict(Verdict(exercise, PASS, "none", "right"))


def test_a_hunt_is_won_from_standard_input_and_the_next_one_is_another(hunt):
    code, printed, _ = hunt(typed=WINNING)
    assert code == 0 and "The hunt is won" in printed and "You paid 1, with 1 question." in printed
    assert CAUSES[FIRST.cause].headline[1:] in printed and "Two hunts wait for you." in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert f"Hunt {FIRST.id}" not in hunt()[1]


def test_without_a_terminal_and_without_a_word_it_says_what_to_do(hunt):
    code, printed, _ = hunt()
    assert code == 1 and "One thing in this kernel is wrong" in printed and "standard input" in printed
    assert all(command in printed for command in ("expected", "wrong", "line 12", "give up"))
    assert max(map(len, printed.splitlines())) <= 80


def test_what_was_asked_is_there_again(hunt):
    hunt(typed="N=5\nN=6\n")
    code, printed, _ = hunt(typed="questions\n")
    assert code == 1 and printed.count("2. N=6") == 2 and "Paid so far: 2." in printed
    assert f"Hunt {FIRST.id}" in printed


def test_nothing_before_the_end_names_the_cause(hunt):
    headline, question = CAUSES[FIRST.cause].word_for("kernel")
    _, printed, _ = hunt("--seen", typed="N=5\nexpected\nhelp\ncode\nquestions\nline 1\n" + WINNING.splitlines()[0] + "\nexpected\n")
    for secret in (headline, question, FIRST.mutant, FIRST.cause):
        assert secret.lower() not in printed.lower()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("dance\n", "no command"),
        ("N=0\n", "between 1 and"),
        ("K=3\n", "no part of an input"),
        ("line 3\n", "when the code is there"),
        ("code\nline 99\n", "the code has lines 1 to"),
        ("code\nline 1\n", "as it should be. That costs 2"),
        ("code\ncode\n", "The code costs 2"),
    ],
)
def test_what_cannot_be_is_said_and_the_hunt_goes_on(hunt, typed, words):
    code, printed, _ = hunt(typed=typed)
    assert code == 1 and words in printed and printed.count("The code costs 2.") <= 1


def test_a_wrong_claim_costs(hunt):
    right = {"rounded_on_the_way": "N=1 BLOCK=1"}
    _, printed, _ = hunt(typed="expected\nwrong\nquestions\n")
    if "does not show" in printed:
        assert "Paid so far: 2." in printed and not right.get(FIRST.cause)


def test_giving_up_shows_the_answer_and_opens_the_next(hunt):
    code, printed, _ = hunt("--give-up")
    assert code == 1 and "given this hunt up" in printed and f"Line {FIRST.lines[0]}" in printed
    assert "You paid" not in printed and f"Hunt {FIRST.id}" not in hunt()[1]


def test_when_all_are_ended_it_says_so(hunt):
    for _ in draw.list_open(set()):
        hunt("--give-up")
    code, printed, _ = hunt()
    assert code == 2 and "No hunt waits" in printed and "--daily" in printed


def test_a_hunt_on_an_exercise_opens_with_its_pass(hunt):
    code, _, said = hunt("--exercise", "07a")
    assert code == 3 and "open when you have passed it" in said
    passed("07a")
    assert "(07a)" in hunt("--exercise", "7a")[1]
    assert "there are no hunts on 01a" in hunt("--exercise", "01a")[2]


def test_the_list_has_what_is_open_and_how_it_ended(hunt):
    hunt(typed=WINNING)
    passed("01b")
    code, printed, _ = hunt("--list")
    assert code == 0 and "won, paid 1" in printed and printed.count("waits") >= 5 and "01b-" in printed and "02b-" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_todays_hunt_warns_where_it_would_give_a_solution_away(hunt, monkeypatch):
    todays = next(h for h in read_hunts().values() if h.exercise_id == "02b" and h.level == 3)
    monkeypatch.setattr(draw, "draw_daily", lambda day: todays)
    code, _, said = hunt("--daily")
    assert code == 1 and "which you have not passed" in said and "--yes" in said and progress.read_hunts() == {}
    code, printed, _ = hunt("--daily", "--yes", typed="quit\n")
    assert code == 1 and "the hunt of" in printed and "blind" in printed and list(progress.read_hunts()) == [draw.name_day()]
    assert "neither --exercise nor --seen" in hunt("--daily", "--seen")[2]


def test_an_unfinished_hunt_keeps_its_level_and_says_so(hunt):
    hunt(typed="quit\n")
    assert "stays as it was begun: blind" in hunt("--seen", typed="quit\n")[2]


class Terminal:
    """`course hunt` in a terminal of 80 columns and 24 rows."""

    def __init__(self, *arguments: str) -> None:
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | {"TERM": "xterm-256color"}
        command = [sys.executable, paths.ROOT / "course_command.py", "hunt", *arguments]
        self.process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True)
        os.close(child)
        os.set_blocking(self.parent, False)
        self.shown = ""

    def wait_for(self, words: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while words not in self.shown:
            assert time.monotonic() < end, self.shown[-2000:]
            try:
                self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self.parent, 65536).decode())
            except (BlockingIOError, OSError):
                time.sleep(0.02)
        before, _, self.shown = self.shown.partition(words)
        return before + words

    def type(self, line: str) -> None:
        os.write(self.parent, (line + "\n").encode())


def test_in_a_terminal_a_kill_loses_nothing():
    terminal = Terminal("--seen")
    try:
        first = terminal.wait_for("hunt> ")
        assert "copy_kernel" in first and max(len(line) for line in first.splitlines()) <= 80
        terminal.type("N=5 BLOCK=4")
        assert max(len(line.rstrip()) for line in terminal.wait_for("hunt> ").splitlines()) <= 80
        os.kill(terminal.process.pid, signal.SIGKILL)
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.parent)
    (record,) = progress.read_hunts().values()
    played = game.replay(record.level, record.moves)
    assert played.level == game.SEEN and [q.probe.N for q in played.questions] == [5]
