"""A worker: what it answers, what is said when it does not, and that nothing of it stays, whoever
is killed and when."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from course_lib.base import paths, worker
from course_lib.base.worker import Worker, WorkerCommand, WorkerDied, WorkerTimeout

# answers with its question; a few questions have it do something else first
CHILD = f"""
import os, signal, subprocess, sys, time
sys.path.insert(0, {str(paths.ROOT)!r})
os.environ["COURSE_DEFER_CHOICE"] = "1"
from course_lib.base.worker import take_stdout
answers = take_stdout()
if "ready" in sys.argv:
    print("ready", file=answers)
try:
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "pid":
            rest = str(os.getpid())
        elif verb == "exit":
            print("going", file=sys.stderr)
            os._exit(int(rest))
        elif verb == "signal":
            os.kill(os.getpid(), int(rest))
        elif verb == "sleep":
            time.sleep(float(rest))
        elif verb == "print":
            print("x" * int(rest), flush=True)
        elif verb == "log":
            print(rest)
        elif verb == "twice":
            print("unasked", file=answers)
        elif verb == "grandchild":
            rest = str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
        elif verb == "heir":  # holds this process's answers open
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=[answers.fileno()])
            os._exit(5)
        elif verb == "closes":
            answers.close()
            time.sleep(600)
        print(rest, file=answers)
finally:
    if "clears" in sys.argv:
        time.sleep(0.2)
        open(sys.argv[-1], "w").write("cleared")
"""  # noqa: E501


def launch(*arguments: str) -> WorkerCommand:
    return WorkerCommand([sys.executable, "-c", CHILD, *arguments], dict(os.environ))


@pytest.fixture
def echo():
    with Worker(launch) as made:
        yield made


def members(group: int) -> list[int]:
    """The processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def wait_until_gone(group: int, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while members(group):
        assert time.monotonic() < deadline, f"still there: {members(group)}"
        time.sleep(0.02)


def pid_of(worker: Worker) -> int:
    assert worker.pid is not None
    return worker.pid


# ---- answers


def test_it_answers_and_stays(echo):
    assert [echo.ask(f"say {n}", 30) for n in range(3)] == [b"0", b"1", b"2"]
    assert echo.ask("pid", 30) == str(echo.pid).encode() and echo.alive


def test_a_question_and_its_answer_may_be_far_larger_than_a_pipe(echo):
    assert echo.ask("say " + "x" * 5_000_000, 60) == b"x" * 5_000_000


def test_what_it_prints_is_no_answer(echo):
    assert echo.ask("print 3", 30) == b"3"


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_one(echo):
    assert echo.ask("twice a", 30) == b"unasked"
    time.sleep(0.2)
    assert echo.ask("say b", 30) == b"b"


def test_threads_get_their_own_answers(echo):
    got = {}
    threads = [
        threading.Thread(target=lambda n=n: got.update({n: echo.ask(f"say {n}", 60)}))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {n: str(n).encode() for n in range(8)}


def test_a_worker_that_says_when_it_is_ready():
    with Worker(lambda: launch("ready"), ready_seconds=30) as made:
        made.start()
        assert made.hello == b"ready" and made.ask("say x", 30) == b"x"


def test_its_folder_is_its_own_and_ends_with_it():
    with Worker(launch, temporary_folder="course-test-") as made:
        made.start()
        folder = made.folder
        assert folder is not None and os.readlink(f"/proc/{made.pid}/cwd") == str(folder)
    assert not folder.exists() and made.folder is None


# ---- no answer


def test_an_exit_is_named_with_the_last_words_and_the_next_question_is_answered(echo):
    echo.ask("log an earlier question's", 30)
    with pytest.raises(WorkerDied, match="ended with exit code 7") as caught:
        echo.ask("exit 7", 30)
    assert (caught.value.code, caught.value.printed, caught.value.last_line) == (
        7,
        "going\n",
        "going",
    )
    assert not echo.alive and echo.ask("say on", 30) == b"on"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_signal_is_named(echo, number):
    with pytest.raises(WorkerDied, match=f"was ended by {number.name}") as caught:
        echo.ask(f"signal {number}", 30)
    assert caught.value.code == -number


def test_a_limit_ends_the_whole_group(echo):
    echo.ask("grandchild", 30)
    group = pid_of(echo)
    with pytest.raises(WorkerTimeout, match=r"within 0.3 s"):
        echo.ask("sleep 600", 0.3)
    wait_until_gone(group)
    assert echo.ask("say on", 30) == b"on"


def test_a_question_that_nobody_reads_has_a_limit_too(echo):
    echo.ask("say x", 30)
    os.kill(pid_of(echo), signal.SIGSTOP)
    with pytest.raises(WorkerTimeout):
        echo.ask("say " + "x" * 5_000_000, 0.5)


def test_a_worker_that_never_stops_talking_has_a_limit():
    endless = WorkerCommand(
        [sys.executable, "-c", "while True: print('x' * 1000, end='')"], dict(os.environ)
    )
    with Worker(lambda: endless) as made, pytest.raises(WorkerTimeout):
        made.ask("say x", 1.0)


def test_an_heir_of_its_output_does_not_hide_its_end(echo):
    echo.ask("say x", 30)
    group = pid_of(echo)
    with pytest.raises(WorkerDied, match="exit code 5"):
        echo.ask("heir", 600)  # longer than a test may take
    wait_until_gone(group)


def test_a_closed_output_is_an_end(echo, monkeypatch):
    monkeypatch.setattr(worker, "_LAST_SECONDS", 0.2)
    echo.ask("say x", 30)
    group = pid_of(echo)
    with pytest.raises(WorkerDied, match="closed its output"):
        echo.ask("closes", 30)
    wait_until_gone(group)


def test_a_worker_that_does_not_get_ready_says_why():
    broken = Worker(
        lambda: WorkerCommand(
            [sys.executable, "-c", "import nothing_of_that_name"], dict(os.environ)
        ),
        ready_seconds=30,
    )
    with pytest.raises(WorkerDied, match="exit code 1") as caught:
        broken.start()
    assert "nothing_of_that_name" in caught.value.last_line and not broken.alive


def test_a_command_that_does_not_exist_is_an_error_of_the_machine():
    missing = Worker(
        lambda: WorkerCommand(["/nowhere/python"], {}), temporary_folder="course-test-"
    )
    with pytest.raises(FileNotFoundError, match="nowhere"):
        missing.ask("say x", 5)
    assert missing.folder is None and missing not in worker._running


def test_an_interrupt_ends_it(echo):
    echo.ask("grandchild", 30)
    group = pid_of(echo)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        echo.ask("sleep 60", 60)
    wait_until_gone(group)
    assert echo.ask("say on", 30) == b"on"


def test_a_long_log_starts_again(echo, monkeypatch):
    monkeypatch.setattr(worker, "_LOG_BYTES", 1 << 20)
    echo.ask("say x", 30)

    def chatter() -> None:
        for _ in range(4):
            time.sleep(0.3)
            echo._log.write(b"y" * (2 << 20))
            echo._log.flush()

    thread = threading.Thread(target=chatter)
    thread.start()
    echo.ask("sleep 1.6", 30)
    thread.join()
    assert echo._log_size() <= 2 << 20
    with pytest.raises(WorkerDied) as caught:
        echo.ask("exit 1", 30)
    assert caught.value.printed == "going\n"


# ---- a fork, and the end of its owner


def test_a_fork_leaves_it_alone_and_starts_its_own(echo):
    first = int(echo.ask("pid", 30))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            other = int(echo.ask("pid", 30)) if not echo.alive else 0
            os.write(write, f"{other}".encode())
            echo.end()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    other = int(os.read(read, 100))
    os.close(read)
    os.close(write)
    assert status == 0 and other not in (0, first)
    wait_until_gone(other)
    assert int(echo.ask("pid", 30)) == first


def test_a_fork_that_lives_on_does_not_keep_it_alive():
    owner = Owner("time.sleep(600) if os.fork() == 0 else None")
    try:
        os.kill(owner.pid, signal.SIGKILL)
        wait_until_gone(owner.group)
    finally:
        owner.end()


def test_a_thread_that_started_it_may_end(echo):
    thread = threading.Thread(target=echo.start)
    thread.start()
    thread.join()
    first = echo.pid
    time.sleep(0.2)
    assert echo.alive and int(echo.ask("pid", 30)) == first


def test_a_polite_end_lets_it_clear_away(tmp_path):
    mark = tmp_path / "mark"
    with Worker(lambda: launch("clears", str(mark)), grace=10.0) as made:
        made.ask("say x", 30)
    assert mark.read_text() == "cleared"
    impolite = tmp_path / "other"
    with Worker(lambda: launch("clears", str(impolite))) as made:
        made.ask("say x", 30)
    assert not impolite.exists()


def test_grace_has_an_end(tmp_path):
    polite = Worker(launch, grace=0.2)
    polite.ask("say x", 30)
    group = pid_of(polite)
    os.kill(group, signal.SIGSTOP)
    polite.end()
    wait_until_gone(group)


class Owner:
    """Another process with a worker that has a grandchild, and is at work."""

    def __init__(
        self, body: str = "", options: str = "", arguments: str = "()", question: str = "sleep 600"
    ):
        code = f"""
            import json, os, sys, threading, time
            sys.path.insert(0, {str(paths.ROOT)!r})
            os.environ["COURSE_DEFER_CHOICE"] = "1"
            from course_lib.base.worker import WorkerCommand, Worker
            child = {CHILD!r}
            made = Worker(lambda: WorkerCommand([sys.executable, "-c", child, *{arguments}], dict(os.environ)){options})
            grandchild = int(made.ask("grandchild", 60))
            print(json.dumps([made.pid, grandchild]), flush=True)
            {body}
            made.ask({question!r}, 600)
        """  # noqa: E501
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.group, self.grandchild = json.loads(self.process.stdout.readline())
        self.pid = self.process.pid

    def end(self) -> None:
        for group in (self.pid, self.group):
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate()


# before the question, while it is asked, while it is worked on
MOMENTS = [random.Random(seed).uniform(0.0, 0.3) for seed in range(6)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_owner_leaves_nothing(moment):
    owner = Owner()
    try:
        time.sleep(moment)
        os.kill(owner.pid, signal.SIGKILL)
        wait_until_gone(owner.group)
        assert (
            not psutil.pid_exists(owner.grandchild)
            or psutil.Process(owner.grandchild).status() == psutil.STATUS_ZOMBIE
        )
    finally:
        owner.end()


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 0.15) for seed in range(6)])
def test_an_owner_killed_while_it_starts_one_leaves_nothing(moment):
    mark = f"course_worker_{os.getpid()}_{moment}"
    code = f"""
        import os, sys, time
        sys.path.insert(0, {str(paths.ROOT)!r})
        os.environ["COURSE_DEFER_CHOICE"] = "1"
        from course_lib.base.worker import WorkerCommand, Worker
        print("now", flush=True)
        made = Worker(lambda: WorkerCommand([sys.executable, "-c", {CHILD!r}, {mark!r}], dict(os.environ)))
        made.ask("say x", 60)
        made.ask("sleep 600", 600)
    """  # noqa: E501
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert owner.stdout is not None and owner.stdout.readline() == b"now\n"
    time.sleep(moment)
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 60
    while found := [
        p.pid for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or ())
    ]:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_a_worker_that_clears_away_is_not_killed_with_its_owner(tmp_path):
    mark = tmp_path / "mark"
    owner = Owner(
        options=", on_owner_death=None, grace=10.0",
        arguments=f"('clears', {str(mark)!r})",
        question="sleep 0.5",
    )
    try:
        os.kill(owner.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not mark.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        owner.end()


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(3)",
        "raise ValueError",
        (
            "threading.Thread(target=lambda: made.ask('sleep 600', 600), daemon=True).start();"
            " sys.exit(0)"
        ),
    ],
)
def test_an_owner_that_ends_takes_it_along(end):
    owner = Owner(end)
    try:
        owner.process.wait(120)
        wait_until_gone(owner.group)
    finally:
        owner.end()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_worker_is_noticed_at_once_and_replaced(echo, moment):
    echo.ask("grandchild", 30)
    group = pid_of(echo)
    threading.Timer(moment, lambda: os.kill(group, signal.SIGKILL)).start()
    with pytest.raises(WorkerDied, match="SIGKILL"):
        echo.ask("sleep 600", 600)  # longer than a test may take
    wait_until_gone(group)
    assert echo.ask("say on", 30) == b"on"


def test_one_killed_while_nobody_asks_is_replaced_with_all_it_had_started(echo):
    echo.ask("grandchild", 30)
    group = pid_of(echo)
    os.kill(group, signal.SIGKILL)
    while echo.alive:
        time.sleep(0.01)
    assert echo.ask("say on", 30) == b"on"
    wait_until_gone(group)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_grandchild_changes_nothing(echo, moment):
    grandchild = int(echo.ask("grandchild", 30))
    first = echo.pid
    threading.Timer(moment, lambda: os.kill(grandchild, signal.SIGKILL)).start()
    assert echo.ask("sleep 0.4", 30) == b"0.4" and echo.pid == first


def test_a_process_that_ends_does_not_wait_for_a_worker_that_still_starts(tmp_path):
    """A check that needs no worker after all ends at once, whatever the worker still imports."""
    script = """
        import sys, time
        from course_lib.base import background
        from course_lib.base.worker import Worker, WorkerCommand

        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        worker = Worker(lambda: WorkerCommand(command, {}), ready_seconds=600, grace=600)
        starting = background.start(worker.start)
        while worker.process is None:
            time.sleep(0.01)
        print(worker.pid)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=paths.ROOT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not psutil.pid_exists(int(done.stdout))
