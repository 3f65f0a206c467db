"""Whatever a learner's file holds, a check says what is wrong in words, leaves nothing behind, and
the next one works."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from leftovers import kill_owner

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.worker import WorkerDied
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.kind import find_mode
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.learner import progress
from course_lib.sandbox import servers
from course_lib.sandbox.jobs import ResourceLimits

EX = catalog.get("00a")
RIGHT = texts.read_solution(EX)
IMPORT = "import triton\n"
STORE = "    tl.store(y_ptr + offsets, x, mask=mask)\n"
# a GPU's first case has to be compiled before it can hang
SHORT = dataclasses.replace(
    find_mode(course_lib.MODE).limits, case=0.5 if course_lib.MODE == "cpu" else 20.0
)
interpreted = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="a compiled kernel does this in another way"
)


def edited(old: str, new: str) -> str:
    assert RIGHT.count(old) == 1, old
    return RIGHT.replace(old, new)


@pytest.fixture(autouse=True, scope="module")
def compiler_is_warm():
    """The compiler's helper process serves this whole process and is no trace of a check: start it
    before any is looked for."""
    assert check(EX, paths.SOLUTIONS / f"{EX.file}.py").passed


@pytest.fixture(autouse=True)
def traces(own_exercises, tmp_path, monkeypatch, capfd):
    """After each check: no process, no temporary folder, no traceback, and progress as it was."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    jobs, stock = [], servers.ask

    def ask(*arguments):
        # every file is read in a process of its own, and most of these go no further
        if arguments[0] != reader.KIND:
            jobs.append(arguments)
        return stock(*arguments)

    monkeypatch.setattr(servers, "ask", ask)
    progress.note_hint("00a", 3)
    before = progress.file().read_bytes()
    # on a GPU the pictures have a process of their own, which another test may have started
    others = set(psutil.Process().children())
    yield jobs
    assert progress.file().read_bytes() == before
    assert list((tmp_path / "tmp").iterdir()) == []
    # what stays are helpers that serve this whole process, and nothing runs under them
    helpers = psutil.Process().children()
    assert all(
        helper in others or any(part.endswith("server.py") for part in helper.cmdline())
        for helper in helpers
    )
    assert [
        process
        for helper in helpers
        for process in helper.children(recursive=True)
        if helper not in others
    ] == []
    printed, said = capfd.readouterr()
    assert "Traceback" not in printed + said and "Error" not in said, said


@pytest.fixture
def file(tmp_path):
    texts.find_file(EX).parent.mkdir(exist_ok=True)
    return texts.find_file(EX)


def checked(file, text: str | bytes, limits: ResourceLimits | None = None):
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return check(EX, limits=limits)


# ---- files that are not run ----------------------------------------------------------------------

NOT_RUN = {
    "a syntax error": (
        edited(STORE, "    tl.store(y_ptr + offsets, x, mask=mask\n"),
        "syntax_error",
        "line ",
    ),
    "mixed tabs": (
        edited(STORE, "\ttl.store(y_ptr + offsets, x, mask=mask)\n"),
        "syntax_error",
        "tabs",
    ),
    "an unfinished string": (edited(IMPORT, "'''\n" + IMPORT), "syntax_error", "unterminated"),
    "nested beyond reason": (
        edited(STORE, "    x = " + "-" * 3000 + "1\n" + STORE),
        "syntax_error",
        "nested too deeply",
    ),
    "a number of 5000 digits": (
        edited(STORE, f"    x = x * {'9' * 5000}\n" + STORE),
        "syntax_error",
        "line 26",
    ),
    "a number of 5000 hexadecimal digits": (
        edited(STORE, f"    x = x * 0x{'f' * 5000}\n" + STORE),
        "syntax_error",
        "line 26: a number of more than 4300 digits",
    ),
    "one outside the kernel": (
        RIGHT + f"\nX = -0x{'f' * 5000}\n",
        "syntax_error",
        "a number of more than 4300 digits",
    ),
    "one that is a constant": (
        edited("@triton.jit\n", f"X = tl.constexpr(0x{'f' * 5000})\n\n\n@triton.jit\n"),
        "syntax_error",
        "more than 4300 digits",
    ),
    "a thousand brackets": (
        edited(STORE, "    x = " + "(" * 1000 + "x" + ")" * 1000 + "\n" + STORE),
        "syntax_error",
        "line 26",
    ),
    "a sum of a thousand": (
        edited(STORE, "    x = " + "x + " * 1000 + "x\n" + STORE),
        "syntax_error",
        "nested too deeply",
    ),
    "an import that fails": (
        edited(IMPORT, IMPORT + "import numpyy\n"),
        "import_fails",
        "remove the line",
    ),
    "a renamed kernel": (edited("def copy_kernel", "def my_copy"), "no_kernel", "`my_copy`"),
    "no kernel": ("import triton\n", "no_kernel", "`course reset` the file"),
    "an empty file": ("", "no_kernel", "`course reset` the file"),
    "spaces only": (" \n\n", "no_kernel", "`course reset` the file"),
    "a lost decorator": (edited("@triton.jit\n", ""), "no_kernel", "Put `@triton.jit`"),
    "a misspelled name": (
        edited("x, mask=mask)\n    # END", "xx, mask=mask)\n    # END"),
        "undefined_name",
        "`xx`",
    ),
    "numpy in the kernel": (
        edited(STORE, "    x = np.zeros(1)\n" + STORE),
        "undefined_name",
        "`np`",
    ),
    "not utf-8": (edited(IMPORT, "# ü\n" + IMPORT).encode("latin-1"), "not_utf8", "encoding UTF-8"),
    "utf-16": (RIGHT.encode("utf-16"), "not_utf8", "saved as UTF-16, and Python reads UTF-8"),
    "a NUL byte": (RIGHT.encode() + b"\0", "not_text", "Save it as UTF-8"),
    "two megabytes": (RIGHT + "# filler\n" * 250_000, "too_large", "the right file?"),
    "a binary": (bytes(range(1, 256)) * 4, "not_utf8", "encoding UTF-8"),
    "a notebook": (
        '{"cells": [], "metadata": {"kernelspec": null}}',
        "not_text",
        "is a notebook, and no Python code",
    ),
    "conflict marks": (
        edited(STORE, "<<<<<<< HEAD\n" + STORE + "=======\n" + STORE + ">>>>>>> x\n"),
        "syntax_error",
        "line 2",
    ),
}


@pytest.mark.parametrize(("text", "cause", "says"), NOT_RUN.values(), ids=NOT_RUN)
def test_a_file_that_cannot_be_graded(file, traces, text, cause, says):
    verdict = checked(file, text)
    assert (verdict.status, verdict.cause, verdict.exit_code) == ("error", cause, 3), (
        verdict.message
    )
    assert says in verdict.message and file.name in verdict.message and len(verdict.message) < 700
    # names are looked up where the libraries are: in the process that would run the file
    assert not traces or cause == "undefined_name", "a process was started to run it"


def missing(file):
    pass


def a_folder(file):
    file.mkdir()


def a_dangling_link(file):
    file.symlink_to(file.parent / "nowhere.py")


def a_link_to_itself(file):
    file.symlink_to(file)


def a_link_to_the_solution(file):
    file.symlink_to(paths.SOLUTIONS / f"{EX.file}.py")


def a_link_to_a_device(file):
    file.symlink_to("/dev/zero")


def a_link_to_the_kernels_log(file):
    file.symlink_to("/proc/kmsg")


def a_pipe(file):
    os.mkfifo(file)


def unreadable(file):
    file.write_text(RIGHT)
    file.chmod(0)
    if os.geteuid() == 0:
        file.unlink()
        pytest.skip("root reads every file")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (missing, "`course reset 00a` writes it"),
        (a_folder, "is a folder"),
        (a_dangling_link, "`course reset 00a` writes it"),
        (a_link_to_itself, "cannot be read"),
        (
            a_link_to_the_solution,
            "is a symbolic link; it cannot be read through one. Name the file itself",
        ),
        (a_link_to_a_device, "is a symbolic link"),
        (a_link_to_the_kernels_log, "is a symbolic link"),
        (a_pipe, "no plain file"),
        (unreadable, "permissions"),
    ],
)
def test_no_file_to_read(file, traces, make, says):
    make(file)
    verdict = check(EX)
    assert (
        (verdict.status, verdict.cause) == ("error", "no_file")
        and says in verdict.message
        and file.name in verdict.message
    )
    assert not traces


def test_a_name_keeps_its_small_letter_at_the_beginning_of_a_sentence(tmp_path):
    (tmp_path / "exercises").mkdir()
    assert check(EX, tmp_path / "exercises").headline.startswith(
        "`exercises` is a folder; a file of Python code"
    )


def test_nothing_of_what_a_link_leads_to_is_quoted(file, traces, tmp_path):
    """Its first line is no Python, which an error would quote."""
    secret = tmp_path / "roster"
    secret.write_text("jane doe: 1.3\n")
    file.symlink_to(secret)
    for path in (None, file):
        verdict = check(EX, path)
        assert verdict.cause == "no_file" and "jane" not in verdict.as_json() and not traces
    assert secret.read_text() == "jane doe: 1.3\n"


def test_a_folder_of_exercises_may_be_a_link(file, tmp_path, monkeypatch):
    file.write_text(RIGHT)
    (tmp_path / "linked").symlink_to(file.parent)
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "linked"))
    assert check(EX).passed and check(EX, tmp_path / "linked" / file.name).passed


def test_no_folder_to_read_from():
    assert check(EX).cause == "no_file"


# ---- files that are fine -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        RIGHT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode(),
        RIGHT.replace("    ", "\t").encode(),
        RIGHT.rstrip().removesuffix("# END SOLUTION").encode(),
        edited(IMPORT, "# Lösung \u2028 \x0c ☃\n" + IMPORT).encode(),
        edited(IMPORT, "raise SystemExit  # never run: only kernels are\n" + IMPORT).encode(),
        RIGHT.replace("\n", "\r").encode(),
        edited(IMPORT, "# \x00".replace("\x00", "\x1b[2J \u202e \u200b") + "\n" + IMPORT).encode(),
        edited(STORE, "    x = x * (1 + 1e-999 * 0x0)\n\x0c\n" + STORE).encode(),
        edited(STORE, "    '\\d is no escape'\n" + STORE).encode(),
    ],
    ids=[
        "CRLF",
        "BOM",
        "tabs",
        "no last newline",
        "odd characters",
        "code around it",
        "CR",
        "control characters",
        "a form feed",
        "an escape that is none",
    ],
)
def test_a_right_file_of_another_make_passes(file, data):
    verdict = checked(file, data)
    assert verdict.status == "pass", verdict.message


# ---- files that are run --------------------------------------------------------------------------


def and_the_next_check_passes(file) -> None:
    assert checked(file, RIGHT).status == "pass"


def test_an_endless_loop_is_stopped(file):
    verdict = checked(file, edited(STORE, "    while n > -1:\n        x = x + 0\n" + STORE), SHORT)
    assert (verdict.status, verdict.cause, verdict.exit_code) == ("fail", "time_limit", 1)
    assert "time limit" in verdict.message and "what ends it?" in verdict.message
    and_the_next_check_passes(file)


@interpreted
@pytest.mark.parametrize("address", ["y_ptr + 10**12", "y_ptr - 10**13 + offsets"])
def test_a_store_far_away_is_stopped_before_it_happens(file, address):
    verdict = checked(
        file,
        edited(
            STORE,
            (
                f"    tl.store({address}, 1.0)\n"
                if "offsets" not in address
                else f"    tl.store({address}, x)\n"
            ),
        ),
    )
    assert (verdict.status, verdict.cause) == ("fail", "store_outside")
    assert "stores outside y" in verdict.message and "line 26" in verdict.message
    and_the_next_check_passes(file)


@interpreted
def test_a_crash_ends_the_child_and_not_the_course(file, monkeypatch):
    """No kernel that the grader lets through can do this; the course must survive it all the
    same."""
    fatal = (
        "import os, triton; import triton.language as tl\n@triton.jit\ndef copy_kernel(x_ptr,"
        " y_ptr, n, BLOCK: tl.constexpr):\n    os.abort()\n"
    )
    with monkeypatch.context() as past_the_list:
        past_the_list.setattr(reader, "read", lambda *rest: Kernels(fatal, ("copy_kernel",)))
        verdict = checked(file, edited(STORE, STORE + STORE))
    assert (verdict.status, verdict.cause) == ("fail", "crash") and "signal 6" in verdict.message
    and_the_next_check_passes(file)


def test_a_store_just_outside_is_seen(file):
    verdict = checked(
        file,
        edited(
            "tl.store(y_ptr + offsets, x, mask=mask)",
            "tl.store(y_ptr + offsets, x, mask=offsets < n + 1)",
        ),
    )
    assert (verdict.status, verdict.cause) == (
        "fail",
        "store_outside",
    ) and "outside y" in verdict.message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("    x = x + tl.arange(0, 3)\n", "power of 2"),
        ("    tl.static_assert(BLOCK < 0, 'of my own')\n", "of my own"),
        ("    x = tl.load(x_ptr + offsets, maks=mask)\n", "maks"),
    ],
)
def test_an_exception_in_the_kernel_has_its_line(file, line, says):
    text = edited(STORE, line + STORE)
    number = text[: text.index(line)].count("\n") + 1
    verdict = checked(file, text)
    assert (verdict.status, verdict.cause) == ("fail", "kernel_raised"), verdict.message
    assert (
        f"{file.name}, line {number}" in verdict.message
        and says in verdict.message
        and verdict.message.rstrip().endswith("?")
    )


@interpreted
def test_an_exception_with_a_page_of_text_stays_readable(file):
    verdict = checked(
        file, edited(STORE, "    tl.static_assert(BLOCK < 0, 'long ' * 100_000)\n" + STORE)
    )
    assert verdict.cause == "kernel_raised" and len(verdict.message) < 1500


@interpreted
@pytest.mark.parametrize("kilobytes", [10, 50_000])
def test_a_kernel_that_prints_without_end_is_cut_short(file, kilobytes):
    verdict = checked(file, edited(STORE, f"    print('x' * {kilobytes}_000)\n" + STORE))
    assert (
        verdict.status in ("pass", "error", "fail")
        and len(verdict.printed) <= 4000
        and len(verdict.message) < 1500
    )
    if kilobytes == 10:
        assert verdict.status == "pass" and verdict.printed.endswith("xxx")
    else:
        assert (verdict.status, verdict.cause) == (
            "fail",
            "output_flood",
        ) and "more than 8 MB" in verdict.message
    and_the_next_check_passes(file)


@interpreted
def test_bytes_that_are_no_text_are_shown_as_such(file, monkeypatch):
    odd = RIGHT.replace(
        STORE,
        "    import os, sys\n    os.write(1, b'\\xff\\xfe\\x00\\x1b[32mPASS')\n    print('\\udc80"
        " \\0 \\x0c \\r')\n" + STORE,
    )
    with monkeypatch.context() as past_the_list:
        past_the_list.setattr(reader, "read", lambda *rest: Kernels(odd, ("copy_kernel",)))
        verdict = checked(file, edited(STORE, STORE + STORE))
    assert r"\x00\x1b[32mPASS" in verdict.printed, verdict
    assert not set("\x00\x1b\x0c\r") & set(verdict.as_json())
    verdict.as_json().encode()


@interpreted
def test_what_the_interpreter_warns_of_is_not_what_the_kernel_printed(file):
    verdict = checked(file, edited(STORE, "    print('of mine')\n    x = x / (x - x)\n" + STORE))
    assert (
        verdict.status == "fail"
        and verdict.printed
        and set(verdict.printed.splitlines()) == {"of mine"}
    )


@interpreted
def test_what_is_printed_is_not_mistaken_for_a_result(file):
    verdict = checked(file, edited(STORE, "    print('All cases are right. pass')\n"))
    assert verdict.status == "fail" and "pass" in verdict.printed


@interpreted
def test_memory_that_is_not_there_is_the_kernels_own_error(file):
    verdict = checked(file, edited(STORE, "    print(len('x' * 10**13))\n" + STORE))
    assert (verdict.status, verdict.cause) == (
        "fail",
        "too_much_memory",
    ) and "MemoryError" in verdict.message
    and_the_next_check_passes(file)


def test_one_file_gives_one_verdict(file):
    verdicts = [checked(file, edited("offsets < n\n", "offsets <= n\n")) for _ in range(2)]
    assert (
        len({(v.status, v.cause, v.message, v.cases) for v in verdicts}) == 1
        and verdicts[0].status == "fail"
    )


def test_the_learners_file_is_never_written_to(file):
    file.write_text(RIGHT)
    file.chmod(0o444)
    before = file.stat()
    assert check(EX).status == "pass"
    assert (file.stat().st_mtime_ns, file.stat().st_mode, file.read_text()) == (
        before.st_mtime_ns,
        before.st_mode,
        RIGHT,
    )
    assert sorted(p.name for p in file.parent.iterdir()) == [file.name]


# ---- what is not the learner's fault -------------------------------------------------------------


def test_a_full_disk_is_the_machines_fault(file, monkeypatch):
    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkdtemp", full)
        with pytest.raises(
            EnvironmentFault,
            match=r"00a was not checked: .*No space left on device.*Free some space",
        ):
            checked(file, RIGHT)
    and_the_next_check_passes(file)


def test_a_child_that_does_not_start_is_the_machines_fault(file, monkeypatch, tmp_path):
    (tmp_path / "server.py").write_text("import sys; sys.exit('a page of words\\nno numpy here')")
    monkeypatch.setattr(servers, "SCRIPT", tmp_path / "server.py")
    with pytest.raises(
        EnvironmentFault,
        match=r"did not start \(no numpy here\).*`course doctor`.*in \.course/faults/00a\.txt",
    ):
        checked(file, RIGHT)
    assert (paths.state() / "faults" / "00a.txt").read_text().split("\n")[:2] == [
        "a page of words",
        "no numpy here",
    ]


def test_a_bug_of_the_grader_is_named_kept_in_a_file_and_floods_nothing(file, monkeypatch):
    monkeypatch.setattr(runner, "run", lambda *rest: 1 / 0)
    verdict = checked(file, RIGHT)
    assert (verdict.status, verdict.cause, verdict.exit_code, verdict.printed) == (
        "grader fault",
        "grader_fault",
        4,
        "",
    )
    assert (
        "ZeroDivisionError" in verdict.message
        and "not your kernel" in verdict.message
        and "\n" not in verdict.message
    )
    assert (
        ".course/faults/00a.txt" in verdict.message
        and "Traceback" in (paths.state() / "faults" / "00a.txt").read_text()
    )


def test_a_bug_that_cannot_be_kept_shows_its_last_lines(file, monkeypatch):
    monkeypatch.setattr(runner, "run", lambda *rest: 1 / 0)
    (paths.state() / "faults").write_text("a file where the folder belongs")
    verdict = checked(file, RIGHT)
    assert (
        "the lines below" in verdict.message
        and 1 < verdict.printed.count("\n") < 12
        and verdict.printed.endswith("division by zero")
    )


def test_the_environment_of_the_course_does_not_reach_the_child(file, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT / "no-such-folder"))
    monkeypatch.setenv("PYTHONSTARTUP", "/no/such/file")
    monkeypatch.setenv("TRITON_INTERPRET", "nonsense")
    and_the_next_check_passes(file)


def test_what_is_kept_of_a_fault_is_bounded_and_no_terminal_obeys_it(file, monkeypatch):
    def fault(*rest):
        raise ValueError("\x1b[2J\ud800" + "x" * 1_000_000)

    monkeypatch.setattr(runner, "run", fault)
    for _ in range(3):
        verdict = checked(file, RIGHT)
    assert (
        verdict.status == "grader fault"
        and len(verdict.message) <= 3000
        and "\x1b" not in verdict.message
    )
    (kept,) = (paths.state() / "faults").iterdir()
    assert (
        kept.stat().st_size < 70_000
        and b"\x1b" not in kept.read_bytes()
        and rb"\x1b[2J\ud800" in kept.read_bytes()
    )


@interpreted
@pytest.mark.parametrize("moment", [0.0, 0.7])
def test_a_check_that_was_killed_leaves_nothing_after_the_next_one(file, tmp_path, moment):
    """Between its start and its end: as it writes the job, and while the kernel runs."""
    place = tmp_path / "killed"
    place.mkdir()
    file.write_text(edited(STORE, "    while n > -1:\n        x = x + 0\n" + STORE))
    program = f"""
import os, sys
sys.path.insert(0, {str(paths.ROOT)!r})
import course_lib
from course_lib import catalog
from course_lib.grading.check import check
from course_lib.grading.kind import find_mode
from course_lib.sandbox import jobs
jobs.warm(find_mode("cpu").server)
print("now", flush=True)
check(catalog.get("00a"))
"""
    environment = os.environ | {"TMPDIR": str(place), "COURSE_EXERCISES": str(file.parent)}
    kill_owner(program, moment, place, environment)
    file.write_text(RIGHT)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0 and list(place.iterdir()) == [], done.stderr


# ---- a process that somebody else ends -----------------------------------------------------------

SLOW = edited(STORE, "    for _ in range(700):\n        x = x * 1.0\n" + STORE)


@pytest.fixture
def killer(monkeypatch):
    """Ends the innermost process of a job with a signal, as its first case begins: as often as
    told."""

    def kill(times: int, number: int = signal.SIGKILL, depth: int = -1) -> list[int]:
        killed: list[int] = []

        def watch(folder: Path) -> None:
            deadline = time.monotonic() + 120
            while not (folder / "00.begin").exists() and time.monotonic() < deadline:
                time.sleep(0.002)
            servers_here = [
                p
                for p in psutil.Process().children()
                if "sandbox/server.py" in " ".join(p.cmdline())
            ]
            # the others wait
            chain = [next(server for server in servers_here if server.children())]
            while below := chain[-1].children():
                chain.append(below[0])
            killed.append(chain[depth].pid)
            chain[depth].send_signal(number)

        asked = servers.ask

        def ask(kind, job, seconds, look):
            if kind == find_mode("cpu").server and len(killed) < times:
                threading.Thread(target=watch, args=(Path(job["folder"]),), daemon=True).start()
            return asked(kind, job, seconds, look)

        monkeypatch.setattr(servers, "ask", ask)
        return killed

    return kill


@interpreted
@pytest.mark.parametrize("depth", [-1, 1], ids=["the runner", "the keeper"])
def test_a_right_file_whose_process_is_killed_once_passes(file, killer, depth):
    killed = killer(1, depth=depth)
    verdict = checked(file, SLOW)
    assert verdict.status == "pass", verdict.message
    assert len(killed) == 1


@interpreted
@pytest.mark.parametrize("depth", [-1, 1], ids=["the runner", "the keeper"])
def test_a_right_file_whose_process_is_killed_twice_is_not_the_learners_fault(file, killer, depth):
    killed = killer(2, depth=depth)
    with pytest.raises(
        EnvironmentFault,
        match=r"00a was not checked: .*killed from outside, twice.*nothing about your code",
    ):
        checked(file, SLOW)
    assert len(killed) == 2
    and_the_next_check_passes(file)


@interpreted
def test_a_server_that_dies_twice_is_not_the_learners_fault(file, monkeypatch):
    stock = servers.ask

    def die(kind, job, seconds, look):
        if kind == reader.KIND:
            return stock(kind, job, seconds, look)
        Path(job["folder"], "00.begin").touch()
        raise WorkerDied(-9, "its last words")

    with monkeypatch.context() as patch:
        patch.setattr(servers, "ask", die)
        with pytest.raises(
            EnvironmentFault, match="the process that watches your code run ended, twice"
        ):
            checked(file, RIGHT)


@interpreted
@pytest.mark.parametrize(
    ("number", "says", "address"),
    [
        (signal.SIGSEGV, "signal 11 (SIGSEGV)", True),
        (signal.SIGBUS, "signal 7 (SIGBUS)", True),
        (signal.SIGABRT, "signal 6 (SIGABRT)", False),
        (signal.SIGTERM, "signal 15 (SIGTERM)", False),
    ],
)
def test_the_words_fit_the_signal(file, killer, number, says, address):
    killer(1, number)
    verdict = checked(file, SLOW)
    assert (verdict.status, verdict.cause) == (
        "fail",
        "crash",
    ) and f"It ended with {says}." in verdict.message
    assert ("address far outside a tensor" in verdict.message) == address == bool(verdict.question)


@interpreted
def test_a_process_that_leaves_by_itself_is_said_to(file, monkeypatch):
    leaves = (
        "import os, triton\n@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK):\n   "
        " os._exit(3)\n"
    )
    with monkeypatch.context() as past_the_list:
        past_the_list.setattr(reader, "read", lambda *rest: Kernels(leaves, ("copy_kernel",)))
        verdict = checked(file, edited(STORE, STORE + STORE))
    assert (verdict.status, verdict.cause) == (
        "fail",
        "crash",
    ) and "It ended by itself" in verdict.message
    assert "address" not in verdict.message


@interpreted
def test_a_file_that_kills_itself_gets_no_pass(file, monkeypatch):
    """Nobody can tell it from one that was killed: it gets no verdict, where the system lets it."""
    kills = (
        "import os, triton\n@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK):\n   "
        " os.kill(os.getpid(), 9)\n"
    )
    with monkeypatch.context() as past_the_list:
        past_the_list.setattr(reader, "read", lambda *rest: Kernels(kills, ("copy_kernel",)))
        try:
            verdict = checked(file, edited(STORE, STORE + STORE))
        except EnvironmentFault as fault:
            assert "killed from outside, twice" in str(fault)
        else:
            assert verdict.status in ("fail", "error"), verdict.message
    and_the_next_check_passes(file)
