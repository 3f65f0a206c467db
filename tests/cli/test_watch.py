"""`course watch`: the screen, its keys, which saves it checks, and that every way out gives the
terminal back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.cli import watch
from course_lib.grading.verdict import PASS, Verdict
from course_lib.learner import progress

IDS = list(catalog.exercises())
FIRST, SECOND = (catalog.get(name) for name in IDS[:2])
# a bound, for a machine that is busy with other work: what is waited for takes one or two
SECONDS = 120

# a grader that says what stands in the file, and waits while there is a file "hold"
GRADER = """
import sys, time, types
import course_command
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.base.errors import CourseError
from course_lib.grading.verdict import FAIL, PASS, Verdict

def check(exercise, tell_first_failure=None):
    with open(paths.state() / "checked", "a") as log:
        log.write(exercise.id + " ")
    if not texts.find_file(exercise).exists():
        return Verdict(exercise.id, FAIL, "no_file", "The file is gone.")
    text = texts.find_file(exercise).read_text()
    if "early" in text:
        tell_first_failure("Case 2 of 9 is wrong (M = 1): y[0, 0] is 1.")
    while (paths.state() / "hold").exists():
        time.sleep(0.02)
    text = texts.find_file(exercise).read_text()
    if "broken grader" in text:
        raise RuntimeError("a bug in the grader")
    if "no GPU" in text:
        raise CourseError("there is no GPU here.")
    long = " ".join(f"sentence {n}." for n in range(200)) if "long" in text else ""
    return Verdict(exercise.id, PASS if "right" in text else FAIL, "a_cause", f"The file says: {text[:20]!r}. {long}")

sys.modules["course_lib.grading.check"] = types.ModuleType("course_lib.grading.check")
sys.modules["course_lib.grading.check"].check = check
sys.argv = ["course", "watch", *sys.argv[1:]]
course_command.main()
"""  # noqa: E501


@pytest.fixture(autouse=True)
def learner(own_exercises, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "state").mkdir()
    for exercise in catalog.exercises().values():
        save(exercise, "wrong")
    return tmp_path


def save(exercise, text: str) -> None:
    texts.find_file(exercise).parent.mkdir(exist_ok=True)
    texts.find_file(exercise).write_text(text)


def checked() -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return (paths.state() / "checked").read_text().split()
    return []


def wait_for(condition, what: str = "") -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.02)


class Terminal:
    """A terminal with `course watch` in it. A frame is what was drawn since the cursor last went
    home."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24) -> None:
        self.received = b""
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", GRADER, *arguments], stdin=self._theirs, stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._ours, 65536):
                self.received += data

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def lines(self) -> list[str]:
        frame = self.received.decode("utf-8", "ignore").rpartition("\x1b[H")[2]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;.*?\x1b\\", "", frame).split("\r\n")

    @property
    def text(self) -> str:
        return " ".join("\n".join(self.lines).replace("│", " ").split())

    def until(self, *texts: str, without: str = "checking") -> str:
        wait_for(
            lambda: all(t in self.text for t in texts) and without not in self.text,
            lambda: f"no {texts} in:\n" + "\n".join(self.lines),
        )
        return self.text

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def ends(self) -> int:
        """The exit code. The terminal has to be as it was before."""
        code = self.process.wait(SECONDS)
        assert termios.tcgetattr(self._theirs) == self.before, (
            "echo or line editing is not as before"
        )
        wait_for(
            lambda: self.received.count(b"\x1b[?1049l") == self.received.count(b"\x1b[?1049h"),
            "the screen is not given back",
        )
        assert self.received.count(b"\x1b[?25h") == self.received.count(b"\x1b[?25l") > 0, (
            "the cursor is not given back"
        )
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)


@pytest.fixture
def terminal():
    opened = []

    def open_terminal(*arguments: str, **size: int) -> Terminal:
        opened.append(Terminal(*arguments, **size))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


# ---- the screen ----------------------------------------------------------------------------------


def test_it_begins_with_the_next_exercise_and_its_verdict(terminal):
    progress.note_verdict(Verdict(FIRST.id, PASS, "none", ""))
    screen = terminal()
    text = screen.until(
        f"1 of {len(catalog.required())} passed",
        f"{SECOND.id} {SECOND.title}",
        "The file says: 'wrong'",
        "q quit",
    )
    assert f"exercises/{SECOND.file}.py" in text and checked() == [SECOND.id]
    assert f"file://{texts.find_file(SECOND)}".encode() in screen.received, "the file is a link"


def test_after_a_pass_it_stays_until_n_is_pressed(terminal):
    screen = terminal()
    screen.until("The file says: 'wrong'")
    save(FIRST, "right")
    text = screen.until(
        "The file says: 'right'",
        f"Passed. n goes to {SECOND.id}",
        f"1 of {len(catalog.required())} passed",
    )
    assert FIRST.debrief.split(".")[0] in text, "the debrief"
    time.sleep(4 * watch.TICK)
    screen.until(FIRST.title)
    assert checked() == [FIRST.id, FIRST.id]
    screen.press("n")
    screen.until(f"{SECOND.id} {SECOND.title}", "The file says: 'wrong'")
    assert checked() == [FIRST.id, FIRST.id, SECOND.id]


def test_n_before_a_pass_says_what_is_missing_and_skips_when_pressed_again(terminal):
    screen = terminal()
    screen.until("'wrong'")
    screen.press("n")
    screen.until(f"{FIRST.id} is not passed yet (fail)", "n once more skips it")
    screen.press("h")
    screen.until("Hint 1 of")
    screen.press("n")
    # another key in between takes the first n back
    screen.until("n once more skips it", FIRST.title)
    screen.press("n")
    screen.until(f"{SECOND.id} {SECOND.title}")


def test_hints_come_one_a_press_and_escape_goes_back(terminal):
    screen = terminal()
    screen.until("'wrong'")
    screen.press("h")
    assert "Hint 2" not in screen.until("Hint 1 of")
    screen.press("h")
    screen.until("Hint 1 of", "Hint 2 of")
    assert progress.record(FIRST.id).hints == 2
    screen.press("\x1b")
    screen.until("The file says: 'wrong'")
    screen.press("h")
    screen.until("Hint 2 of", "h once more shows hint 3")
    assert progress.record(FIRST.id).hints == 2, "looking again takes none"
    screen.press("h")
    screen.until("Hint 3 of", "That was the last hint")


def test_the_solution_asks_first_when_not_passed(terminal):
    screen = terminal()
    screen.until("'wrong'")
    screen.press("s")
    screen.until("y or n")
    screen.press("n")
    screen.until("Save the file to check it")
    assert not progress.record(FIRST.id).solution_seen and "@triton.jit" not in screen.text
    screen.press("sy")
    screen.until('1 """')
    assert progress.record(FIRST.id).solution_seen
    for _ in range(20):
        screen.press(" ")
    screen.until("the end")


def test_the_list_goes_to_another_exercise(terminal):
    other = catalog.get(IDS[-1])
    screen = terminal()
    screen.until("'wrong'")
    screen.press("l")
    screen.until("Esc back", SECOND.title)
    screen.press("\x1b[B\n")
    screen.until(f"{SECOND.id} {SECOND.title}", "The file says")
    screen.press("l")
    screen.until("Esc back")
    screen.press(other.id + "\n")
    screen.until(f"{other.id} {other.title}", "The file says")
    screen.press("l")
    screen.until("Esc back")
    screen.press("q")
    screen.until("q quit", other.title)
    assert screen.process.poll() is None, "q leaves the list, not the program"


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 15)])
def test_a_long_verdict_shows_its_beginning_and_scrolls(terminal, columns, rows):
    save(FIRST, "wrong, and long")
    screen = terminal(columns=columns, rows=rows)
    screen.until("The file says: 'wrong, and", "more lines", "quit")
    assert len(screen.lines) == rows and max(map(len, screen.lines)) <= columns
    for _ in range(40):
        screen.press(" ")
    screen.until("sentence 199", "the end")
    for _ in range(40):
        screen.press("b")
    screen.until("The file says: 'wrong, and")


def test_another_size_draws_everything_again(terminal):
    screen = terminal()
    screen.until("'wrong'")
    screen.resize(40, 15)
    wait_for(
        lambda: len(screen.lines) == 15 and max(map(len, screen.lines)) <= 40, "not drawn again"
    )
    screen.until(FIRST.title, "The file says", "quit")


@pytest.mark.parametrize(
    "colourless", [{"NO_COLOR": "1"}, {"TERM": "vt100"}, {"COLUMNS": "132", "LINES": "50"}]
)
def test_without_colour_and_with_an_outdated_size_in_the_environment_the_screen_is_the_same(
    terminal, monkeypatch, colourless
):
    for name, value in colourless.items():
        monkeypatch.setenv(name, value)
    screen = terminal(columns=40, rows=15)
    screen.until(FIRST.title, "The file says: 'wrong'", "quit")
    assert len(screen.lines) == 15 and max(map(len, screen.lines)) <= 40
    assert "NO_COLOR" not in colourless or not re.search(rb"\x1b\[[0-9;]*3[0-7]m", screen.received)


def test_a_file_that_vanishes_has_a_verdict_and_its_return_another(terminal):
    screen = terminal()
    screen.until("'wrong'")
    texts.find_file(FIRST).unlink()
    screen.until("is gone")
    save(FIRST, "right")
    screen.until("Passed")


# ---- what is checked, and when -------------------------------------------------------------------


def test_a_save_of_another_exercise_is_said_in_one_line_and_does_not_jump(terminal):
    screen = terminal()
    screen.until("'wrong'")
    save(SECOND, "right")
    screen.until(f"You saved {SECOND.id}, which is not the exercise watched here")
    time.sleep(4 * watch.TICK)
    screen.until(FIRST.title)
    assert checked() == [FIRST.id]


def test_saves_during_a_check_bring_exactly_one_more(terminal):
    hold = paths.state() / "hold"
    hold.touch()
    screen = terminal()
    wait_for(lambda: checked() == [FIRST.id], "no check")
    screen.until(f"checking {FIRST.id}", without="Traceback")
    save(FIRST, "wrong again")
    time.sleep(4 * watch.TICK)
    save(FIRST, "right at last")
    time.sleep(4 * watch.TICK)
    assert checked() == [FIRST.id]
    hold.unlink()
    screen.until("The file says: 'right at last'", "Passed")
    time.sleep(4 * watch.TICK)
    assert checked() == [FIRST.id, FIRST.id]


def test_the_first_wrong_case_is_shown_while_others_still_run(terminal):
    hold = paths.state() / "hold"
    hold.touch()
    save(FIRST, "early")
    screen = terminal()
    screen.until(
        f"checking {FIRST.id}",
        "Case 2 of 9 is wrong (M = 1): y[0, 0] is 1.",
        without="The file says",
    )
    hold.unlink()
    screen.until("The file says: 'early'", without="Case 2 of 9")


def test_what_the_grader_cannot_do_is_shown_and_watching_goes_on(terminal):
    save(FIRST, "no GPU")
    screen = terminal()
    screen.until("there is no GPU here.")
    assert progress.record(FIRST.id).last == {}
    save(FIRST, "right")
    screen.until("Passed")


def test_a_file_counts_as_saved_once_it_stays_the_same(monkeypatch):
    monkeypatch.setattr(watch, "TICK", 0)
    saves = watch.Saves([FIRST, SECOND])
    file = texts.find_file(FIRST)
    assert saves.poll() == [] == saves.poll()
    save(FIRST, "half")
    assert saves.poll() == []
    save(FIRST, "half and half")
    assert saves.poll() == [], "it changed since the last look"
    assert saves.poll() == [FIRST] and saves.poll() == []
    file.chmod(0)
    assert saves.poll() == [] and saves.poll() == [FIRST], (
        "a file that cannot be read any more has another verdict"
    )
    file.unlink()
    assert saves.poll() == [] and saves.poll() == [FIRST] and saves.poll() == [], (
        "and so has one that is gone"
    )
    (file.parent / "new").write_text("as vim saves")
    os.replace(file.parent / "new", file)
    (file.parent / "notes.txt").write_text("no exercise")
    saves.poll()
    assert saves.poll() == [FIRST]


# ---- the ways out --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["q", "Ctrl-C", "SIGTERM", "a bug", "q during a check"])
def test_every_way_out_gives_the_terminal_back(terminal, way):
    if way == "a bug":
        save(FIRST, "broken grader")
    if way == "q during a check":
        (paths.state() / "hold").touch()
    screen = terminal()
    if way == "a bug":
        assert screen.ends() == 1
        # from Python 3.13 on a traceback has colours
        wait_for(
            lambda: (
                b"RuntimeError: a bug in the grader"
                in re.sub(rb"\x1b\[[\d;]*m", b"", screen.received)
            ),
            "the traceback is lost",
        )
        return
    if way == "q during a check":
        screen.until("checking", without="Traceback")
    else:
        screen.until("'wrong'")
    if way == "SIGTERM":
        screen.process.terminate()
    else:
        screen.press("\x03" if way == "Ctrl-C" else "q")
    assert screen.ends() == {"Ctrl-C": 130, "SIGTERM": 143}.get(way, 0)
    last = screen.received.rpartition(b"\x1b[?1049l")[2].decode()
    assert "Traceback" not in last and "KeyboardInterrupt" not in last
    if way == "Ctrl-C":
        assert "course: stopped." in last
    if way.startswith("q"):
        assert f"0 of {len(catalog.required())} passed" in last


def test_ctrl_z_gives_the_terminal_back_until_the_process_goes_on(terminal):
    """A shell's job control: the process has a parent in its session, else the kernel would not
    stop it."""
    screen = terminal()
    screen.until("'wrong'")
    home = screen.received.count(b"\x1b[H")
    screen.process.send_signal(signal.SIGTSTP)
    # without a shell the kernel lets it go on at once: given back once, taken once more, drawn
    # again
    wait_for(
        lambda: (
            screen.received.count(b"\x1b[?1049h") == 2 and screen.received.count(b"\x1b[H") > home
        ),
        "not drawn again",
    )
    screen.press("q")
    assert screen.ends() == 0


# ---- without a terminal --------------------------------------------------------------------------


@pytest.fixture
def piped(tmp_path):
    """`course watch` into a file, as in CI; ended at the latest with the test."""
    started = []

    def start(*arguments: str) -> tuple[subprocess.Popen, Path]:
        out = tmp_path / "out"
        with out.open("w") as file, (tmp_path / "err").open("w") as errors:
            command = [sys.executable, "-c", GRADER, *arguments]
            started.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=errors)
            )
        wait_for(lambda: "Ctrl-C ends" in " ".join(out.read_text().split()), "it does not begin")
        return started[0], out

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_in_a_pipe_one_verdict_follows_another(piped, tmp_path):
    process, out = piped()
    assert checked() == []
    save(FIRST, "right")
    wait_for(lambda: "'right'" in out.read_text(), "no verdict")
    save(SECOND, "wrong still")
    wait_for(lambda: "'wrong still'" in out.read_text(), "no verdict")
    assert checked() == [FIRST.id, SECOND.id] and progress.record(FIRST.id).passed
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 130 and (tmp_path / "err").read_text() == "course: stopped.\n"
    assert "\x1b" not in out.read_text() and max(map(len, out.read_text().splitlines())) <= 80


def test_in_a_pipe_the_exercise_named_is_the_only_one(piped):
    _, out = piped(SECOND.id)
    save(FIRST, "right")
    save(SECOND, "right, too")
    wait_for(lambda: "'right, too'" in out.read_text(), "no verdict")
    time.sleep(4 * watch.TICK)
    assert checked() == [SECOND.id]


def test_in_a_pipe_what_the_grader_cannot_do_is_said_and_watching_goes_on(piped, tmp_path):
    _, out = piped()
    save(FIRST, "no GPU")
    wait_for(lambda: "there is no GPU here." in (tmp_path / "err").read_text(), "no word of it")
    save(FIRST, "right")
    wait_for(lambda: "'right'" in out.read_text(), "no verdict")
