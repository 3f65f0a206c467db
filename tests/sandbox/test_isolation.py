"""What confines the process that runs a learner's code, layer by layer, and the server that starts
it."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import remove_tree
from course_lib.base.worker import WorkerDied
from course_lib.doctor.isolation import examine_isolation
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.kind import find_mode
from course_lib.grading.plans import make_plans
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.sandbox import isolation, jobs, server, servers, syscalls
from course_lib.sandbox.jobs import ResourceLimits
from course_lib.sandbox.stage import Stage

EX = catalog.get("04b")  # its server starts in a tenth of a second: PyTorch is not imported
SOLUTION = paths.SOLUTIONS / f"{EX.file}.py"
(NAME,) = EX.entry_points
SHORT = dataclasses.replace(find_mode(EX.kind).limits, case=1.0, total=1.5, patience=1.0)
ATTACKS = Path(__file__).parent.parent / "attacks"

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu",
    reason="what a GPU's check permits is more, and told by test_attacks on a GPU",
)


def alone(code: str, **options) -> subprocess.CompletedProcess:
    """Python code in a process of its own, with the grading package at hand: confinement cannot be
    undone."""
    head = (
        "import ctypes, os, sys\nfrom pathlib import Path\nfrom course_lib.sandbox import"
        " isolation, syscalls\nfrom course_lib.sandbox.isolation import Needs\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), "COURSE_DEFER_CHOICE": "1"}
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=250,
        env=environment,
        check=False,
        **options,
    )


def past_the_list(
    monkeypatch,
    text: str,
    tmp_path: Path,
    limits: ResourceLimits = SHORT,
    exercise: catalog.Exercise = EX,
):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with monkeypatch.context() as past:
        past.setattr(
            reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points)
        )
        return check(exercise, file, limits=limits)


def hostile(body: str) -> str:
    return (
        f"import os\n\n\ndef {NAME}(*given):\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
        + "\n    return given\n"
    )


# uses no processor time until its time by the clock is over
WAITING = hostile("import time\ntime.sleep(600)")


def wait_for_descendants(pid: int, count: int) -> list[psutil.Process]:
    """Wait until a process has ``count`` descendants, and return them."""
    deadline = time.monotonic() + 120
    while len(descendants := psutil.Process(pid).children(recursive=True)) < count:
        assert time.monotonic() < deadline, (
            f"process {pid} has {len(descendants)} descendants and not {count}"
        )
        time.sleep(0.005)
    return descendants


@pytest.fixture
def other_server(tmp_path, monkeypatch):
    """Servers that run a patch before they serve: what another machine would refuse."""

    def start(patch: str) -> None:
        script = tmp_path / "server.py"
        script.write_text(
            f"import runpy, sys\nsys.path.insert(0, {str(paths.ROOT)!r})\nimport"
            " os\nos.environ['COURSE_DEFER_CHOICE'] = '1'\n"
            + textwrap.dedent(patch)
            + f"\nrunpy.run_path({str(servers.SCRIPT)!r}, run_name='__main__')\n"
        )
        monkeypatch.setattr(servers, "SCRIPT", script)

    yield start
    servers.stop_all()


NO_NAMESPACES = """
from course_lib.sandbox import isolation
def enter_namespaces(needs):
    raise PermissionError(1, "unshare: Operation not permitted")
isolation.enter_namespaces = enter_namespaces
"""
NO_PACKAGE = "import sys\nsys.modules['landlockpy'] = None\n"
NO_LANDLOCK = """
import errno, landlockpy
def refuse(*rest, **rights):
    raise landlockpy.UnsupportedError(errno.{}, "what the kernel says")
landlockpy.Ruleset = refuse
"""
NO_FILTER = """
from course_lib.sandbox import syscalls
syscalls.refuse = lambda *rest, **left: None
"""


# ---- tiers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def best() -> str:
    return check(EX, SOLUTION).tier


def test_the_tier_is_in_the_verdict(best):
    verdict = check(EX, SOLUTION)
    assert (
        verdict.passed
        and verdict.tier in isolation.TIERS
        and verdict.as_dict()["isolation"] == verdict.tier
    )


@pytest.mark.parametrize(
    ("patch", "tier"),
    [
        (NO_NAMESPACES, isolation.LANDLOCK),
        (NO_NAMESPACES + NO_PACKAGE, isolation.LIMITS),
        (NO_PACKAGE, isolation.LIMITS),
        (NO_LANDLOCK.format("ENOSYS"), isolation.LIMITS),
    ],
)
def test_a_machine_that_permits_less_is_graded_on_and_says_so(patch, tier, best, other_server):
    if best == isolation.LIMITS:
        pytest.skip("this machine has limits only")
    other_server(patch)
    for _ in range(2):
        verdict = check(EX, SOLUTION)
        assert verdict.passed and verdict.tier == tier


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (
            NO_PACKAGE,
            (
                "the package landlockpy cannot be loaded (import of landlockpy halted; None in"
                " sys.modules)"
            ),
        ),
        (NO_LANDLOCK.format("ENOSYS"), "this kernel has no Landlock, or a container hides it"),
        (NO_LANDLOCK.format("EOPNOTSUPP"), "Landlock is switched off"),
        (NO_LANDLOCK.format("EPERM"), "Landlock: what the kernel says"),
    ],
)
def test_the_probe_names_what_is_missing(patch, reason):
    run = (
        f"import runpy\nsys.argv = ['server.py', {str(paths.ROOT)!r},"
        f" 'probe']\nrunpy.run_path({str(servers.SCRIPT)!r}, run_name='__main__')"
    )
    facts = json.loads(alone(NO_NAMESPACES + patch + run).stdout)
    assert facts["tier"] == isolation.LIMITS
    assert (
        "unshare: Operation not permitted" in facts["why"][isolation.NAMESPACES]
        and facts["why"][isolation.LANDLOCK] == reason
    )


def test_a_reason_against_both_tiers_is_said_once():
    (finding,) = examine_isolation(
        {
            "tier": isolation.LIMITS,
            "why": dict.fromkeys(isolation.TIERS[:2], "Landlock is switched off"),
        }
    )
    assert "(no Landlock: Landlock is switched off)" in finding.what


@pytest.mark.parametrize(
    ("patch", "required", "reason"),
    [
        (NO_NAMESPACES, isolation.NAMESPACES, "unshare: Operation not permitted"),
        (
            NO_NAMESPACES + NO_LANDLOCK.format("ENOSYS"),
            isolation.LANDLOCK,
            "this kernel has no Landlock",
        ),
    ],
)
def test_a_machine_without_the_required_tier_runs_nothing(
    patch, required, reason, other_server, monkeypatch
):
    other_server(patch)
    asked = []
    monkeypatch.setattr(runner, "run", lambda *rest: asked.append(rest))
    with pytest.raises(
        EnvironmentFault,
        match=f"cannot shut a check in as well as was asked.*Nothing was run.*{reason}",
    ):
        check(EX, SOLUTION, required_tier=required)
    assert not asked


@pytest.mark.parametrize("required", isolation.TIERS)
def test_a_machine_with_the_required_tier_checks_as_ever(required, best):
    if isolation.TIERS.index(required) < isolation.TIERS.index(best):
        pytest.skip(f"this machine's best isolation is: {best}")
    assert check(EX, SOLUTION, required_tier=required).tier == best


def test_a_tier_that_does_not_exist_is_said():
    with pytest.raises(CourseError, match="there is no tier 'the best'"):
        check(EX, SOLUTION, required_tier="the best")


KILLED_BEFORE_READY = """
import os
from pathlib import Path
from course_lib.sandbox import isolation
enter = isolation.enter
def killed(tier, folder, limits, needs):
    enter(tier, folder, limits, needs)
    mark = Path(os.environ["TMPDIR"], "killed")  # the job's own folder, which is new for each job
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
isolation.enter = killed
"""
SHORT_OF_MEMORY = """
import os
from pathlib import Path
from course_lib.sandbox import isolation
enter_namespaces = isolation.enter_namespaces
def short(needs):
    mark = Path({marks!r})
    if len(mark.read_text()) < 2:
        with mark.open("a") as file:
            file.write("x")
        raise BlockingIOError(11, "unshare: Resource temporarily unavailable")
    enter_namespaces(needs)
isolation.enter_namespaces = short
"""


def test_a_process_killed_before_it_is_ready_is_started_again_in_the_same_tier(best, other_server):
    if best == isolation.LIMITS:
        pytest.skip("this machine has limits only")
    other_server(KILLED_BEFORE_READY)
    for _ in range(2):
        verdict = check(EX, SOLUTION)
        assert verdict.passed and verdict.tier == best


def test_a_moments_shortage_is_no_reason_for_a_lower_tier(best, other_server, tmp_path):
    if best != isolation.NAMESPACES:
        pytest.skip(f"no namespaces here: {best}")
    marks = tmp_path / "marks"
    marks.write_text("")
    other_server(SHORT_OF_MEMORY.format(marks=str(marks)))
    verdict = check(EX, SOLUTION)
    assert verdict.passed and verdict.tier == best and marks.read_text() == "xx"


@pytest.mark.parametrize("attack", ["reads_the_solution", "writes_outside"])
def test_limits_only_confine_nobody(attack, monkeypatch, tmp_path):
    """The reason why this tier is never called secure, and the proof that these attacks would
    work."""
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    text = (
        (ATTACKS / f"{attack}.py")
        .read_text()
        .replace("@ROOT@", str(paths.ROOT))
        .replace("@VICTIM@", str(victim))
    )
    monkeypatch.setattr(jobs, "BEST_TIER", isolation.LIMITS)
    verdict = past_the_list(monkeypatch, text, tmp_path, exercise=catalog.get("01a"))
    assert verdict.tier == isolation.LIMITS and "BREACH" in verdict.printed
    assert verdict.passed or victim.read_text() == "changed"


def test_a_hostile_submission_cannot_lower_the_tier_of_the_next_check(best, monkeypatch, tmp_path):
    past_the_list(
        monkeypatch,
        "import os\nfor name in os.listdir():\n    os.unlink(name)\nos._exit(70)\n"
        + hostile("pass"),
        tmp_path,
    )
    assert check(EX, SOLUTION).tier == best


# ---- layers --------------------------------------------------------------------------------------


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the numbers of system calls are of x86-64"
)
def test_the_filter_refuses_each_call_on_its_list():
    numbers = {
        name: both[0]
        for name, both in (
            syscalls._EVERYWHERE
            | syscalls._NEVER_NEEDED
            | syscalls._OF_A_DRIVER
            | syscalls._WITHOUT_PROGRAMS
        ).items()
        if both[0] is not None
    }
    result = alone(f"""
        import errno
        syscalls.refuse(programs=False)
        libc = ctypes.CDLL(None, use_errno=True)
        for name, number in {numbers!r}.items():
            ctypes.set_errno(0)
            if libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1 or ctypes.get_errno() != errno.EPERM:
                print(name, ctypes.get_errno())
        print("asked", libc.syscall(39) == os.getpid())
    """)  # noqa: E501
    assert result.stdout == "asked True\n" and result.returncode == 0, result.stdout + result.stderr


def test_the_filter_leaves_threads_and_signals_to_oneself():
    result = alone("""
        import signal, threading
        syscalls.refuse(programs=False)
        threads = [threading.Thread(target=lambda: None) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        os.kill(os.getpid(), 0)
        print("still here", flush=True)
        os.abort()
    """)
    assert (result.stdout, result.returncode) == ("still here\n", -signal.SIGABRT)


def test_the_lenient_filter_lets_a_compiler_start_and_nobody_call_home():
    result = alone("""
        import socket, subprocess
        syscalls.refuse(programs=True, lenient=True)
        print(subprocess.run([sys.executable, "-c", "print('compiled')"], capture_output=True, text=True).stdout.strip())
        socket.socketpair()
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                socket.socket(family)
            except PermissionError:
                print("refused")
    """)  # noqa: E501
    assert result.stdout.split() == ["compiled", "refused", "refused"], result.stderr


def test_the_filter_of_a_compiler_lets_it_start_and_opens_no_socket():
    result = alone("""
        import socket, subprocess
        syscalls.refuse(programs=True)
        print(subprocess.run([sys.executable, "-c", "print('compiled')"], capture_output=True, text=True).stdout.strip())
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_NETLINK):
            try:
                socket.socket(family)
            except PermissionError:
                print("refused")
    """)  # noqa: E501
    assert result.stdout.split() == ["compiled", "refused", "refused", "refused"], result.stderr


def test_the_filter_beside_a_gpu_leaves_a_local_socket_that_reaches_nobody(tmp_path):
    """CUDA's start fails without it, and the check would go on in the lowest tier."""
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(str(tmp_path / "outside"))
        outside.listen()
        result = alone(f"""
            import socket
            syscalls.refuse(programs=True, driver=True)
            own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            own.bind({f"{chr(0)}course-{tmp_path.name}"!r})
            own.listen()
            caller, letters = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            for wanted in (lambda: caller.connect({str(tmp_path / "outside")!r}), lambda: letters.sendto(b"x", {str(tmp_path / "outside")!r}),
                           lambda: letters.sendmsg([b"x"], [], 0, {str(tmp_path / "outside")!r}), own.accept, socket.socketpair,
                           lambda: socket.socket(socket.AF_INET), lambda: socket.socket(socket.AF_NETLINK)):
                try:
                    print("got", wanted())
                except PermissionError:
                    print("refused")
        """)  # noqa: E501
    assert result.stdout.split() == ["refused"] * 7, result.stdout + result.stderr


# An older kernel's Landlock: the rights of that ABI are asked for, and no others
OLDER = "import landlockpy\nlandlockpy.abi_version = lambda: {}\n"
# A kernel that reports the newest ABI and takes the rights of an older one
OVERSTATED = """
import errno, landlockpy
kernels_own = landlockpy.Ruleset
def ruleset(handled_fs, handled_net, scoped):
    if handled_fs & ~landlockpy.fs_for_abi({0}) or handled_net & ~landlockpy.net_for_abi({0}) or scoped & ~landlockpy.scope_for_abi({0}):
        raise landlockpy.LandlockError(errno.EINVAL, "Invalid argument")
    return kernels_own(handled_fs=handled_fs, handled_net=handled_net, scoped=scoped)
landlockpy.Ruleset = ruleset
"""  # noqa: E501


@pytest.mark.parametrize(
    "kernel", ["", *map(OLDER.format, range(1, 7)), OVERSTATED.format(1), OVERSTATED.format(4)]
)
def test_landlock_alone_keeps_files(kernel, tmp_path, best):
    if best == isolation.LIMITS:
        pytest.skip("no Landlock here")
    (tmp_path / "own").mkdir()
    (tmp_path / "other").write_text("as it was")
    result = alone(
        kernel
        + textwrap.dedent(f"""
        import errno
        own, other = Path({str(tmp_path)!r}, "own"), Path({str(tmp_path)!r}, "other")
        isolation.confine_files(own, Needs.NOTHING)
        (own / "file").write_text("mine")
        (own / "file").write_text("mine again")
        Path("/dev/null").write_text("gone")
        import sqlite3, wsgiref  # a library not yet loaded
        for wanted in (other.read_text, lambda: other.open("r+"), other.unlink, lambda: list(other.parent.iterdir()),
                       (other.parent / "new").touch, lambda: os.link(own / "file", other.parent / "link"),
                       lambda: Path({str(SOLUTION)!r}).read_text(), lambda: Path("/etc/passwd").read_text(),
                       lambda: Path("/proc/self/environ").read_text()):
            try:
                wanted()
                print("got", wanted)
            except OSError as error:
                print("refused" if error.errno in (errno.EACCES, errno.EXDEV) else error)
    """)  # noqa: E501
    )
    assert result.stdout.split() == ["refused"] * 9, result.stdout + result.stderr
    assert (
        sorted(path.name for path in tmp_path.iterdir()) == ["other", "own"]
        and (tmp_path / "other").read_text() == "as it was"
    )


@pytest.mark.parametrize("abi", [1, 7])
def test_what_an_older_landlock_lacks_is_refused_by_the_filter(abi, tmp_path, best):
    if best == isolation.LIMITS:
        pytest.skip("no Landlock here")
    (tmp_path / "own").mkdir()
    for name in ("readable", "other"):
        (tmp_path / name).write_text("as it was")
    result = alone(
        OLDER.format(abi)
        + textwrap.dedent(f"""
        import errno, fcntl, signal, socket, struct
        own, readable, other = (Path({str(tmp_path)!r}, name) for name in ("own", "readable", "other"))
        libraries = isolation._readable(Needs.NOTHING)
        isolation._readable = lambda needs: [*libraries, str(readable)]
        neighbour = os.fork()
        if neighbour == 0:
            os.closerange(0, 3)
            signal.pause()
        (own / "neighbour").write_text(str(neighbour))
        isolation.confine_files(own, Needs.NOTHING)
        syscalls.refuse(programs=False)
        libc = ctypes.CDLL(None, use_errno=True)

        def open_by_structure():
            if libc.syscall(437, -100, str(readable).encode(), struct.pack("QQQ", os.O_TRUNC, 0, 0), 24) < 0:
                raise OSError(ctypes.get_errno(), "openat2")

        def signal_by_a_pipe():
            read, write = os.pipe()
            fcntl.fcntl(read, fcntl.F_SETOWN, neighbour)
            fcntl.fcntl(read, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
            os.write(write, b"x")

        for wanted in (lambda: os.truncate(readable, 0), lambda: os.open(readable, os.O_RDONLY | os.O_TRUNC), open_by_structure,
                       lambda: os.open(other, os.O_ACCMODE | os.O_TRUNC), lambda: os.open("/dev/full", os.O_ACCMODE),
                       lambda: os.kill(neighbour, 9), signal_by_a_pipe, lambda: socket.socket(socket.AF_UNIX)):
            try:
                wanted()
                print("got", wanted)
            except OSError as error:
                print("refused" if error.errno in (errno.EPERM, errno.ENOSYS) else error)
        (own / "file").write_text("mine")
        (own / "file").write_text("mine again")
        print(readable.read_text(), os.waitpid(neighbour, os.WNOHANG) == (0, 0))
    """)  # noqa: E501
    )
    # Its parent's end does not reach it: the kernel asks Landlock, too, before it sends that
    # signal.
    os.kill(int((tmp_path / "own" / "neighbour").read_text()), signal.SIGKILL)
    assert result.stdout.splitlines() == ["refused"] * 8 + ["as it was True"], (
        result.stdout + result.stderr
    )
    assert (tmp_path / "other").read_text() == "as it was"


def test_a_gpu_needs_a_landlock_that_lets_files_change_their_folder(tmp_path):
    result = alone(
        OLDER.format(1) + f"isolation.confine_files(Path({str(tmp_path)!r}), Needs.PROGRAMS)"
    )
    assert "Linux 5.19" in result.stderr and "Triton" in result.stderr


def test_namespaces_alone_hide_processes_and_the_network(best):
    if best != isolation.NAMESPACES:
        pytest.skip(f"no namespaces here: {best}")
    result = alone("""
        import socket
        outside = os.getpid()
        isolation.enter_namespaces(Needs.NOTHING)
        if os.fork() == 0:
            print(os.getpid(), os.geteuid() == os.stat("/proc/self").st_uid or "uid", socket.if_nameindex(), flush=True)
            try:
                os.kill(outside, 0)
                print("seen")
            except ProcessLookupError:
                print("alone")
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    """)  # noqa: E501
    assert (
        result.stdout.startswith("1 ")
        and "'lo')]" in result.stdout
        and result.stdout.split()[-1] == "alone"
    ), result.stdout + result.stderr


DAEMON = """
mark = "course_daemon_{}"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        os.execv("/bin/sh", [mark, "-c", "sleep 61; exit # " + mark])
    os._exit(0)
import time
time.sleep(0.3)
print("BREACH", flush=True)
"""


@pytest.mark.parametrize("tier", isolation.TIERS)
def test_a_daemon_that_could_be_started_is_ended_all_the_same(
    tier, best, other_server, monkeypatch, tmp_path
):
    """The filter, which lets nobody fork, is off: the PID namespace ends the daemon, or the server
    that adopts it."""
    if isolation.TIERS.index(tier) < isolation.TIERS.index(best):
        pytest.skip(f"this machine's best isolation is: {best}")
    # Landlock would keep the shell from being started
    other_server(
        NO_FILTER
        + "from course_lib.sandbox import isolation\nisolation.confine_files = lambda *rest: None\n"
    )
    monkeypatch.setattr(jobs, "BEST_TIER", tier)
    mark = f"{os.getpid()}_{isolation.TIERS.index(tier)}"
    verdict = past_the_list(monkeypatch, hostile(DAEMON.format(mark)), tmp_path)
    assert "BREACH" in verdict.printed, f"no daemon was started: {verdict.message}"
    assert [
        p.pid
        for p in psutil.process_iter(["cmdline"])
        if f"course_daemon_{mark}" in " ".join(p.info["cmdline"] or ())
    ] == []


# ---- limits --------------------------------------------------------------------------------------


def test_all_cases_together_have_a_limit(monkeypatch, tmp_path):
    slow = (
        f"\n\nright = {NAME}\n\n\ndef {NAME}(*given):\n    __import__('time').sleep(0.4)\n   "
        " return right(*given)\n"
    )
    verdict = past_the_list(monkeypatch, SOLUTION.read_text() + slow, tmp_path)
    assert (verdict.status, verdict.cause) == ("fail", "time_limit"), verdict.message
    states = [case.status for case in verdict.cases]
    # the cases after the one that was stopped have as much time once more
    assert (
        set(states) == {"pass", "fail", "not run"} and 0.4 * states.count("pass") <= 2 * SHORT.total
    )


def end_after(
    folder: Path,
    *,
    clock: float,
    processor: float,
    queued: float = 0.0,
    load: float = 0.0,
    case: int | None = 0,
) -> str:
    limits = {"start": 60.0, "load": load, "case": 10.0, "total": 60.0, "patience": 6.0}
    stage = Stage.IMPORTING if case is None else Stage.RUNNING
    outcome = server.JobOutcome(
        stage=stage, case=case, begin=server.Moment(0.0), since=server.Moment(0.0)
    )
    return outcome.find_passed_time(folder, limits, server.Moment(clock, processor, queued))


def test_a_limit_counts_processor_time_and_the_clock_ends_only_what_waits(tmp_path):
    # other programs had the processor
    assert end_after(tmp_path, clock=1000.0, processor=9.9, queued=980.0) == ""
    assert end_after(tmp_path, clock=11.0, processor=10.1) == "timed out"
    assert end_after(tmp_path, clock=59.0, processor=0.1) == ""
    assert end_after(tmp_path, clock=61.0, processor=0.1) == "waited"


def test_what_comes_before_the_first_case_has_a_limit_of_its_own(tmp_path):
    """On a GPU all kernels are compiled there: a right sum over 260 buffers by `tl.static_range`
    takes a minute."""
    assert end_after(tmp_path, clock=50.0, processor=50.0, load=55.0, case=None) == ""
    assert end_after(tmp_path, clock=56.0, processor=56.0, load=55.0, case=None) == "timed out"
    assert end_after(tmp_path, clock=11.0, processor=11.0, load=55.0, case=0) == "timed out"
    assert end_after(tmp_path, clock=11.0, processor=11.0, load=0.0, case=None) == "timed out"


@pytest.mark.parametrize(
    ("body", "ended"),
    [("while True: pass", "timed out"), ("import time; time.sleep(600)", "waited")],
)
def test_a_job_ends_by_its_processor_time_or_by_the_clock(body, ended):
    kernels = Kernels(f"def {NAME}(*given):\n    {body}\n", EX.entry_points)
    limits = dataclasses.replace(find_mode(EX.kind).limits, case=0.5, patience=2.0)
    assert runner.run(kernels, make_plans(EX)[:1], EX.kind, limits).ended == ended


def test_processor_time_of_ended_children_counts():
    before = server._measure_processor_seconds(os.getpid())
    subprocess.run(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3:\n    pass"],
        check=True,
    )
    assert server._measure_processor_seconds(os.getpid()) - before >= 0.25


def test_memory_is_the_functions_own_error(monkeypatch, tmp_path):
    limits = dataclasses.replace(SHORT, case=5.0, total=5.0, memory_bytes=100 << 20)
    verdict = past_the_list(monkeypatch, hostile("y = bytearray(200 << 20)"), tmp_path, limits)
    assert (verdict.status, verdict.cause) == (
        "fail",
        "too_much_memory",
    ) and "MemoryError" in verdict.message


def test_rows_far_apart_fit_under_the_limit_of_memory():
    limits = dataclasses.replace(ResourceLimits(), memory_bytes=200 << 20)
    verdict = check(
        catalog.get("08a"), paths.SOLUTIONS / "ex08a_layer_norm_resident.py", limits=limits
    )
    assert verdict.passed and all(case.status == "pass" for case in verdict.cases), verdict.message


# ---- the server ----------------------------------------------------------------------------------


def serving() -> servers.WarmServer:
    (server,) = [server for server in servers._idle if server.key[0] == find_mode(EX.kind).server]
    return server


def test_one_server_serves_many_checks():
    servers.stop_all()
    pids = {(check(EX, SOLUTION).passed, serving().process.pid) for _ in range(3)}
    assert len(pids) == 1 and next(iter(pids))[0]


def test_a_start_that_failed_earlier_is_tried_again(monkeypatch):
    servers.stop_all()

    def refuse(*arguments):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    kind = find_mode(EX.kind).server
    with monkeypatch.context() as past:
        past.setattr(servers, "WarmServer", refuse)
        servers.prepare(kind)
        (futures,) = servers._starting.values()
        assert isinstance(futures[0].exception(), OSError)
    assert check(EX, SOLUTION).passed


def test_a_dead_server_costs_time_only():
    assert check(EX, SOLUTION).passed
    dead = serving().process
    dead.kill()
    verdict = check(EX, SOLUTION)
    assert verdict.passed and serving().process.pid != dead.pid, (
        f"{verdict.message}\n{verdict.printed}"
    )


def test_a_server_killed_over_a_job_is_replaced_and_its_job_ends_with_it(monkeypatch, tmp_path):
    jobs.warm(find_mode(EX.kind).server)
    victim = psutil.Process(serving().process.pid)
    below = []

    def kill() -> None:
        below.extend(wait_for_descendants(victim.pid, 2))
        victim.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    verdict = past_the_list(monkeypatch, WAITING, tmp_path)
    killer.join()
    assert (verdict.status, verdict.cause) == ("fail", "time_limit"), (
        f"{verdict.message}\n{verdict.printed}"
    )
    assert below
    wait_until_gone(below)


def processes_of(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=60)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


# None: as soon as the process to kill, or the whole chain, is there. Otherwise: after so many
# seconds, whatever is there then.
MOMENTS = [
    None,
    *(
        pytest.param(random.Random(seed).uniform(0.0, 1.0), marks=pytest.mark.sweep)
        for seed in range(4)
    ),
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_checker_takes_server_and_job_along(moment, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(WAITING)
    code = f"""
        import sys
        from pathlib import Path
        from course_lib import catalog
        from course_lib.grading.check import check
        from course_lib.grading.kind import find_mode
        from course_lib.grading.submission import reader
        from course_lib.grading.submission.source import Kernels
        from course_lib.sandbox import jobs
        exercise = catalog.get("{EX.id}")
        reader.read = lambda exercise, text, name: Kernels(text, exercise.entry_points)
        jobs.warm(find_mode("{EX.kind}").server)
        print("warm", flush=True)
        check(exercise, Path({str(file)!r}))
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.ROOT),
        "TMPDIR": str(tmp_path),
        "COURSE_STATE": str(tmp_path / "state"),
    }
    checker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, env=environment
    )
    assert checker.stdout.readline() == b"warm\n"
    if moment is None:
        wait_for_descendants(checker.pid, 3)  # server, keeper and the next of the chain
    else:
        time.sleep(moment)
    _, *below = processes_of(checker.pid)
    assert below
    checker.kill()
    checker.communicate()
    wait_until_gone(below)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("below", [0, 1, 2, 3])
def test_whoever_of_the_chain_is_killed_nothing_stays_and_the_next_check_passes(
    moment, below, monkeypatch, tmp_path
):
    """Server, keeper, init or runner (two of them where there are no namespaces): the check ends
    with a verdict all the same."""
    length = 3 if check(EX, SOLUTION).tier == isolation.NAMESPACES else 2
    server = serving().pid
    chain: list[psutil.Process] = []

    def kill() -> None:
        if moment is None:
            wait_for_descendants(server, min(below, length))
        else:
            time.sleep(moment)
        # the job has not begun, or is over: then nobody is killed
        with contextlib.suppress(psutil.NoSuchProcess):
            chain.extend(processes_of(server))
            chain[min(below, len(chain) - 1)].kill()

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killer = threading.Thread(target=kill)
    killer.start()
    verdict = past_the_list(monkeypatch, WAITING, tmp_path)
    killer.join()
    assert verdict.status in ("fail", "grader fault") and chain
    wait_until_gone([process for process in chain[1:] if process.is_running()])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("course-check-")] == []
    assert check(EX, SOLUTION).passed


@pytest.mark.parametrize(("begun", "ended"), [(True, "died"), (False, "not started")])
def test_a_server_that_dies_over_a_job_is_no_check_that_finished(begun, ended, monkeypatch):
    def die(kind, job, seconds, look):
        if begun:
            Path(job["folder"], "00.begin").touch()
        raise WorkerDied(-signal.SIGKILL, "its last words")

    monkeypatch.setattr(servers, "ask", die)
    concrete = make_plans(EX, 0, None)
    run = runner.run(Kernels(SOLUTION.read_text(), EX.entry_points), concrete, EX.kind)
    assert (run.ended, run.case, run.printed) == (
        ended,
        0 if begun else None,
        "its last words",
    ) and not run.data


def test_a_change_of_the_environment_replaces_the_server(monkeypatch):
    assert check(EX, SOLUTION).passed
    old = serving().process
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert (
        check(EX, SOLUTION).passed and serving().process.pid != old.pid and old.poll() is not None
    )


def test_a_warm_check_lists_no_folder_of_the_course(monkeypatch):
    assert check(EX, SOLUTION).passed
    looked_at = []
    for name in ("scandir", "listdir"):
        stock = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda path=".", stock=stock: (looked_at.append(str(path)), stock(path))[1]
        )
    assert check(EX, SOLUTION).passed
    assert not [path for path in looked_at if path.startswith(str(paths.PACKAGE))]


def test_a_job_takes_the_server_that_is_being_started():
    servers.stop_all()
    jobs.prepare(find_mode(EX.kind).server)
    jobs.prepare(find_mode(EX.kind).server)
    jobs.warm(find_mode(EX.kind).server)
    server = serving()
    assert check(EX, SOLUTION).passed and serving() is server
    assert not any(servers._starting.values())


def test_a_server_that_nobody_asked_for_ends_with_the_others():
    servers.stop_all()
    jobs.prepare(find_mode(EX.kind).server)
    ((future,),) = servers._starting.values()
    servers.stop_all()
    assert not future.result().alive and not servers._starting


def test_a_server_that_does_not_start_is_told_by_the_job(monkeypatch, tmp_path):
    servers.stop_all()
    (tmp_path / "server.py").write_text("import sys; sys.exit('no words')")
    monkeypatch.setattr(servers, "SCRIPT", tmp_path / "server.py")
    jobs.prepare(find_mode(EX.kind).server)
    with pytest.raises(WorkerDied):
        jobs.warm(find_mode(EX.kind).server)


@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_servers_end_with_the_process_that_started_them(end):
    result = alone(
        "from course_lib.grading.kind import find_mode\n"
        "from course_lib.sandbox import jobs, servers\n"
        "jobs.warm(find_mode('numpy').server)\n"
        f"print(servers._idle[0].process.pid, flush=True)\n{end}"
    )
    pid = int(result.stdout)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(pid)


def test_checks_in_threads_have_servers_of_their_own():
    servers.stop_all()
    verdicts = []
    threads = [
        threading.Thread(target=lambda: verdicts.append(check(EX, SOLUTION))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.status for verdict in verdicts] == ["pass"] * 3
    servers.stop_all()
    assert not servers._idle


def test_an_interrupted_check_leaves_nothing(monkeypatch, tmp_path):
    jobs.warm(find_mode(EX.kind).server)
    pid = serving().process.pid

    def interrupt() -> None:
        wait_for_descendants(pid, 1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        past_the_list(
            monkeypatch, WAITING, tmp_path, dataclasses.replace(SHORT, case=60.0, total=60.0)
        )
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert check(EX, SOLUTION).passed


# ---- what the child leaves -----------------------------------------------------------------------


def test_what_is_no_plain_file_is_no_result(tmp_path):
    (tmp_path / "real").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    assert jobs.read_file(tmp_path / "real", 5) == b"1234"
    assert [jobs.read_file(tmp_path / name, 4) for name in ("link", "pipe", "nothing")] == [
        None
    ] * 3


@pytest.mark.parametrize("wrong", [-1, 1], ids=["too short", "too long"])
def test_a_result_of_another_size_is_no_result(wrong):
    (plan,) = make_plans(EX)[:1]
    answer = jobs.JobAnswer(
        isolation.NAMESPACES, "finished", Stage.RUNNING, 0, "", {}, frozenset(),
        {"00.out": bytes(plan.nbytes)},
    )  # fmt: skip
    assert runner._collect([plan], answer).data == {0: bytes(plan.nbytes)}
    answer = dataclasses.replace(answer, outputs={"00.out": bytes(plan.nbytes + wrong)})
    assert not runner._collect([plan], answer).data


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "[" * 10_000, '{"type": 1}',
        '{"type": "A", "text": "", "line": "1", "lost": false, "fault": null}',
        '{"type": "A", "text": "", "line": 1, "lost": false, "fault": {"kind": "load"}}',
        '{"type": "A", "text": "", "line": 1, "lost": false, "fault": null, "more": 1}', "\udcff",
        "1" * 100_000,
    ],
)  # fmt: skip
def test_a_malformed_report_is_no_report(text):
    answer = jobs.JobAnswer(
        isolation.NAMESPACES, "finished", Stage.RUNNING, 0, "", {}, frozenset(),
        {"00.error": text.encode("utf-8", "surrogateescape")},
    )  # fmt: skip
    assert runner._read_raised(answer, "00.error") is None


def test_folders_made_to_stay_are_removed(tmp_path):
    deep = tmp_path / "job"
    deep.mkdir()
    here = os.getcwd()
    os.chdir(deep)
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        os.chmod(".", 0)
    finally:
        os.chdir(here)
    remove_tree(deep)
    assert not deep.exists()


def test_a_folder_that_cannot_be_looked_into_is_too_much(monkeypatch, tmp_path):
    """A submission that may make folders makes one that may be written and not listed. Root lists
    it all the same."""
    limits = {
        "processes": 99,
        "threads": 10_000,
        "resident_bytes": 1 << 40,
        "disk_bytes": 1 << 30,
        "files": 2000,
    }
    list_entries, hidden = os.scandir, tmp_path / "hidden"
    hidden.mkdir()
    assert server._find_passed_limit([os.getpid()], tmp_path, limits) == ""

    def refuse(folder):
        if folder == str(hidden):
            raise PermissionError(13, "Permission denied")
        return list_entries(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert server._find_passed_limit([os.getpid()], tmp_path, limits) == "too many files"


def test_packages_that_an_environment_takes_from_another_one_are_readable(tmp_path, monkeypatch):
    """`tools/bundle.py install` makes such an environment: torch and Triton, with the compiler's
    programs, lie in the packages of the Python beneath. Other places on the path stay closed, and
    so does the folder of the course."""
    for name in ("site-packages", "dist-packages", "private"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(
        sys, "path", [*sys.path, *(str(path) for path in tmp_path.iterdir()), str(paths.ROOT)]
    )
    opened = set(isolation._readable(isolation.Needs.PROGRAMS))
    assert {str(tmp_path / "site-packages"), str(tmp_path / "dist-packages")} <= opened
    assert not {str(tmp_path), str(tmp_path / "private"), str(paths.ROOT)} & opened
