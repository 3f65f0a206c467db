"""Hostile submissions: none passes, and none reaches what it wants, in every tier that shuts it in.

Every file of ``attacks/`` says in its first line which exercise it is handed in for, what stops it
or where it acts, and what it does. ``@NAMES@`` stand for what an attacker would find out: paths,
process ids, ports.

- "handed in": it must not pass as it is.
- "isolation": it must not pass, nor reach what it wants, and not past the check of kernels either.
  It prints BREACH if it does.
- "compile", "picture": statements for the process that compiles and for the one that interprets a
  picture's launch, around right code or, if the file defines ``copy_kernel``, a whole submission.
  Right code may pass; what they want they must not reach. They raise ``@MARK@``, which is BREACH
  spelt so that a quoted line does not show it.
- "reading": statements that make ``text``, a submission that is hard to read.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import importlib
import os
import re
import resource
import socket
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import torch

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import texts
from course_lib.compiler import CompileError, KernelSource, Pointer, compile_report, helper
from course_lib.grading.cases.plan import Plan
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.judging import compiled
from course_lib.grading.judging.judge import judge
from course_lib.grading.plans import make_plans
from course_lib.grading.submission import reader
from course_lib.grading.submission.source import Kernels
from course_lib.learner import progress
from course_lib.lessons import second_process
from course_lib.lessons.pictures.access_map.run import record
from course_lib.sandbox import isolation, jobs, servers
from course_lib.sandbox.jobs import ResourceLimits
from course_lib.sandbox.machine import ServerKind

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="the attacks are Python, which a compiled kernel is not"
)

HERE = Path(__file__).parent.parent / "attacks"
LIMIT = 0.6
LIMITS = dataclasses.replace(
    ResourceLimits(),
    case=LIMIT,
    total=LIMIT,
    patience=2.5,
    memory_bytes=256 << 20,
    resident_bytes=1 << 30,
)
KEY = 0x6E6F726D
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
BREACH = "BREACH"
HIDDEN = ("as it was", "a secret of the person's")  # what no message may hold
MEMORY_BYTES = 400 << 20  # by which this process may grow over an answer


class Attack(NamedTuple):
    name: str
    exercise: catalog.Exercise
    layer: str
    text: str


def attacks() -> list[Attack]:
    found = []
    for file in sorted(HERE.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        exercise, layer, _ = (
            part.strip() for part in text.partition("\n")[0].removeprefix("#").split("|")
        )
        found.append(Attack(file.stem, catalog.get(exercise), layer, text))
    return found


FOUND = attacks()
CONFINED = [attack for attack in FOUND if attack.layer == "isolation"]
# of a function all runs that a file holds: there is no check to get past, and CONFINED hands it in
ATTACKS = [
    a
    for a in FOUND
    if a.layer == "handed in" or (a.layer == "isolation" and a.exercise.kind == "kernel")
]
COMPILING, PICTURES, READING = (
    [attack for attack in FOUND if process in attack.layer.split("+")]
    for process in ("compile", "picture", "reading")
)
TIERS = (isolation.NAMESPACES, isolation.LANDLOCK)
# One attack of each kind. A test that gives the same files to a process that another test gives
# them to has these in `make test`, and all of them in `make sweep`.
OF_EACH_KIND = {
    "apart_calls_home", "apart_daemon", "apart_fills_the_disk", "apart_forbidden_calls",
    "apart_prints", "apart_reads_the_environment",
    "apart_reads_the_solution", "apart_signals_the_parent", "apart_takes_memory",
    "apart_writes_outside", "compile_answers_a_word",
    "compile_breaks_the_compiler", "compile_endless", "compile_forks",
}  # fmt: skip


def list_for_sweep(attacks: list[Attack]) -> list:
    """Return the attacks as cases of a test, with those outside OF_EACH_KIND left to `make
    sweep`."""
    marks = {
        attack.name: () if attack.name in OF_EACH_KIND else pytest.mark.sweep for attack in attacks
    }
    return [pytest.param(attack, id=attack.name, marks=marks[attack.name]) for attack in attacks]


class World(NamedTuple):
    """What an attack is after."""

    names: dict[str, str]
    untouched: dict[Path, tuple]
    calls: list[socket.socket]
    about_this_process: tuple


def look(file: Path) -> tuple:
    status = file.stat()
    names = tuple(os.listxattr(file))
    return (
        file.read_bytes(),
        status.st_mode,
        status.st_mtime_ns,
        status.st_nlink,
        status.st_uid,
        names,
    )


def look_at_this_process() -> tuple:
    limits = [
        resource.getrlimit(which)
        for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS)
    ]
    return (
        limits,
        os.sched_getaffinity(0),
        os.sched_getscheduler(0),
        os.getpriority(os.PRIO_PROCESS, 0),
    )


@pytest.fixture(autouse=True, scope="module")
def helpers_are_there():
    """The compiler's helper and the servers serve this whole process: start them before any trace
    is looked for."""
    for exercise in ("00a", "01a"):
        verdict = check(catalog.get(exercise), paths.SOLUTIONS / f"{catalog.get(exercise).file}.py")
        assert verdict.passed, f"{verdict.message}\n{verdict.printed}"


@pytest.fixture(scope="module")
def sockets():
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.socket())
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        local.bind(f"\0course-attack-{os.getpid()}")
        for listening in (tcp, local):
            listening.listen()
        for each in (tcp, udp, local):
            each.setblocking(False)
        yield [tcp, udp, local]


@pytest.fixture(scope="module")
def left_by_others():
    """A shared memory segment and a message queue of another program's."""
    libc = ctypes.CDLL(None)
    name = f"/course-attack-{os.getpid()}".encode()
    # one letter of one byte: a user may have few bytes of queues, and the workers of a test run are
    # one user
    size = (ctypes.c_long * 8)(0, 1, 1)
    segment = libc.shmget(0, 4096, 0o1600)
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, size)
    assert segment != -1 and queue != -1
    yield segment, name
    os.close(queue)
    assert libc.shmctl(segment, 0, None) == 0 and libc.mq_unlink(name) == 0, "an attack removed it"


@pytest.fixture
def world(own_exercises, tmp_path, monkeypatch, sockets, left_by_others):
    monkeypatch.setenv("COURSE_TEST_TOKEN", "a secret of the person's")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    progress.note_hint("00a", 1)
    victim, other = tmp_path / "victim", tmp_path / "others" / "ex01a_layer_norm.py"
    other.parent.mkdir()
    for file in (victim, other):
        file.write_text("as it was")
    tcp, udp, _ = sockets
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(tmp_path / "door"))
    door.listen()
    door.setblocking(False)
    names = {
        "ROOT": paths.ROOT, "STATE": paths.state(), "VICTIM": victim, "OTHER": other,
        "PARENT": os.getpid(), "KEY": KEY,
        "TCP": tcp.getsockname()[1], "UDP": udp.getsockname()[1],
        "ABSTRACT": f"course-attack-{os.getpid()}",
        "DOOR": tmp_path / "door", "SEGMENT": left_by_others[0], "MARK": "'BREA' 'CH'",
    }  # fmt: skip
    precious = [
        victim,
        other,
        progress.file(),
        *paths.SOLUTIONS.glob("*.py"),
        *(paths.ROOT / "course_lib").glob("*.py"),
    ]
    with door:
        yield World(
            {name: str(value) for name, value in names.items()},
            {file: look(file) for file in precious},
            [*sockets, door],
            look_at_this_process(),
        )


def named(attack: Attack, world: World) -> str:
    text = attack.text
    for name, value in world.names.items():
        text = text.replace(f"@{name}@", value)
    return text


def handed_in(attack: Attack, world: World, tmp_path: Path, text: str | None = None) -> Path:
    file = tmp_path / f"{attack.exercise.file}.py"
    file.write_text(named(attack, world) if text is None else text, encoding="utf-8")
    return file


def is_of_the_course(process: psutil.Process) -> bool:
    """Whether the process runs code of the course. One that ended, and nobody has waited for,
    runs nothing."""
    try:
        return any("course_lib" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def after(world: World, tmp_path: Path) -> list[str]:
    """What an attack left behind, in words."""
    traces = [
        f"{file} changed"
        for file, before in world.untouched.items()
        if not file.exists() or look(file) != before
    ]
    traces += [f"{file} was left" for file in (tmp_path / "tmp").iterdir()]
    traces += [str(file) for file in (Path("/dev/shm", world.names["ABSTRACT"]),) if file.exists()]
    traces += [
        f"{file} is new"
        for file in tmp_path.iterdir()
        if file.name not in ("tmp", "state", "others", "victim", "door") and file.suffix != ".py"
    ]
    # a worker's Chromium is a child, too
    helpers = [child for child in psutil.Process().children() if is_of_the_course(child)]
    traces += [
        f"{process} still runs" for helper in helpers for process in helper.children(recursive=True)
    ]
    for door in world.calls:
        with contextlib.suppress(BlockingIOError):
            traces.append(
                f"a call came: {door.recv(9) if door.type == socket.SOCK_DGRAM else door.accept()}"
            )
    if ctypes.CDLL(None).shmget(KEY, 0, 0) != -1:
        traces.append("shared memory was left")
    if look_at_this_process() != world.about_this_process:
        traces.append(
            f"this process was changed: {world.about_this_process}, {look_at_this_process()}"
        )
    return traces


def and_the_next_run_is_right(attack: Attack) -> None:
    """The next submission, which the same server runs, is right in its first case. That later cases
    are is the same server's work."""
    exercise = attack.exercise
    plan = first_plan(exercise.id)
    run = runner.run(
        Kernels(texts.read_solution(exercise), exercise.entry_points), [plan], find_mode(attack)
    )
    assert run.ended == "finished" and judge(plan, run.data[0]).right, f"{run.ended}\n{run.printed}"


@functools.cache
def first_plan(exercise_id: str) -> Plan:
    return make_plans(catalog.get(exercise_id))[0]


def find_mode(attack: Attack) -> str:
    return "cpu" if attack.exercise.kind == "kernel" else attack.exercise.kind


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_it_does_not_pass(attack, world, tmp_path):
    verdict = check(attack.exercise, handed_in(attack, world, tmp_path), limits=LIMITS)
    assert verdict.status in ("error", "fail"), verdict.message
    assert "BREACH" not in verdict.printed and after(world, tmp_path) == []


@pytest.fixture(scope="module")
def best_tier() -> str:
    return check(catalog.get("01a"), paths.SOLUTIONS / "ex01a_layer_norm.py").tier


@pytest.mark.parametrize("tier", [isolation.NAMESPACES, isolation.LANDLOCK])
@pytest.mark.parametrize("attack", CONFINED, ids=lambda attack: attack.name)
def test_what_it_runs_is_confined(attack, tier, best_tier, world, tmp_path, monkeypatch):
    if isolation.TIERS.index(tier) < isolation.TIERS.index(best_tier):
        pytest.skip(f"this machine's best isolation is: {best_tier}")
    monkeypatch.setattr(jobs, "BEST_TIER", tier)
    file = handed_in(attack, world, tmp_path)
    with monkeypatch.context() as past:
        past.setattr(
            reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points)
        )
        verdict = check(attack.exercise, file, limits=LIMITS)
    assert verdict.status in ("error", "fail"), f"{verdict.status}: {verdict.message}"
    assert verdict.tier == tier
    assert "BREACH" not in verdict.printed, verdict.printed
    assert after(world, tmp_path) == []
    assert len(verdict.message) < 2000 and len(verdict.printed) <= 4000
    assert not OBEYED.search(verdict.as_json()) and "\n✓" not in verdict.message
    and_the_next_run_is_right(attack)


# ---- the processes that compile, interpret for a picture, and read -------------------------------

RIGHT = """import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.store(y_ptr + cols, x, mask=cols < n)
"""
# right in the interpreter, and refused by the compiler
REFUSED = RIGHT.replace(
    "    tl.store", "    for i in range(2):\n        if i == 1:\n            break\n    tl.store"
)


@pytest.fixture
def short_limits(monkeypatch):
    """The limits of the case in each process that an attack can aim at."""
    monkeypatch.setattr(compiled, "_LIMIT", LIMIT)
    monkeypatch.setattr(compiled, "_TRIES", 1)
    smaller = {"resident_bytes": 1 << 30, "address_bytes": 6 << 30}
    monkeypatch.setattr(helper, "_LIMITS", dataclasses.replace(helper._LIMITS, **smaller))
    smaller |= {"memory_bytes": 512 << 20}
    monkeypatch.setattr(
        second_process, "_LIMITS", dataclasses.replace(second_process._LIMITS, **smaller)
    )
    monkeypatch.setattr(
        importlib.import_module("course_lib.lessons.pictures.access_map.run"), "SECONDS", LIMIT
    )
    helper.warm()
    servers.warm(
        ServerKind(
            "course_lib.lessons.second_process:make_machine", record.__module__, device="cpu"
        )
    )


def skip_unless_here(tier: str, best_tier: str) -> None:
    if isolation.TIERS.index(tier) < isolation.TIERS.index(best_tier):
        pytest.skip(f"this machine's best isolation is: {best_tier}")


def while_compiling(text: str) -> str:
    """Right code, which does ``text`` in the process that compiles, as soon as it is imported
    there."""
    if "def copy_kernel" in text:
        return text
    return (
        "import os\nif os.environ.get('TRITON_INTERPRET') !="
        f" '1':\n{textwrap.indent(text, '    ')}\n{RIGHT}"
    )


def in_a_kernel(text: str) -> str:
    """Right code, whose kernel has the code generator do ``text``, by names that the generator
    knows and the check takes for its own."""
    if "def copy_kernel" in text:
        return text
    run = f'getattr(getattr(getattr(tl, "core"), "builtins"), "exec")({text!r}.value)'
    return f"{RIGHT}    if n < 0:\n        {run}\n        getattr = 0\n"


def peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@contextlib.contextmanager
def little_memory():
    """This process may not take much for what another one answered."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = peak_bytes()
    yield
    assert peak_bytes() - before < MEMORY_BYTES


def and_nothing_was_told(said: str) -> None:
    assert not [word for word in (BREACH, *HIDDEN) if word in said], said


def and_the_compiler_still_refuses() -> None:
    with pytest.raises(CompileError) as refused:
        compile_copy(REFUSED)
    assert refused.value.cause == "unsupported_statement", str(refused.value)


def compile_copy(text: str) -> None:
    source = KernelSource(text, "copy_kernel", "ex.py")
    compile_report(
        source, [Pointer("fp32"), Pointer("fp32"), 5], {"BLOCK": 8}, disassemble=False, limit=LIMIT
    )


def check_within_limits(attack: Attack, file: Path, tier: str):
    """The verdict on a file that acts where a kernel is compiled. It may be right, so the verdict
    may be a pass."""
    with little_memory():
        verdict = check(attack.exercise, file, limits=LIMITS)
    assert "grader itself failed" not in verdict.message, verdict.message
    assert verdict.tier in (tier, "none", "")
    assert len(verdict.message) < 2000 and len(verdict.printed) <= 4000
    and_nothing_was_told(verdict.message + verdict.printed + verdict.headline)
    return verdict


@pytest.mark.parametrize("attack", list_for_sweep(COMPILING))
def test_a_kernel_reaches_nothing_while_it_is_compiled_though_the_check_lets_it_pass(
    attack, best_tier, world, tmp_path, short_limits
):
    """The process is that of the next test, and another text gets there."""
    file = handed_in(attack, world, tmp_path, in_a_kernel(named(attack, world)))
    check_within_limits(attack, file, best_tier)
    assert after(world, tmp_path) == []
    and_the_compiler_still_refuses()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("attack", COMPILING, ids=lambda attack: attack.name)
def test_what_is_compiled_is_confined(
    attack, tier, best_tier, world, tmp_path, monkeypatch, short_limits
):
    skip_unless_here(tier, best_tier)
    monkeypatch.setattr(jobs, "BEST_TIER", tier)
    file = handed_in(attack, world, tmp_path, while_compiling(named(attack, world)))
    with monkeypatch.context() as past:
        past.setattr(
            reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points)
        )
        check_within_limits(attack, file, tier)
    assert after(world, tmp_path) == []
    and_the_compiler_still_refuses()


@pytest.mark.parametrize("attack", COMPILING, ids=lambda attack: attack.name)
def test_a_report_of_the_explorer_is_confined(attack, world, tmp_path, short_limits):
    """The learner's own file, in the picture of what the compiler makes of a kernel."""
    said = ""
    with little_memory():
        try:
            compile_copy(while_compiling(named(attack, world)))
        except CourseError as refused:
            said = str(refused)
    assert len(said) < 2000
    and_nothing_was_told(said)
    assert after(world, tmp_path) == []


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("attack", PICTURES, ids=lambda attack: attack.name)
def test_what_is_interpreted_for_a_picture_is_confined(
    attack, tier, best_tier, world, tmp_path, monkeypatch, short_limits
):
    skip_unless_here(tier, best_tier)
    monkeypatch.setattr(jobs, "BEST_TIER", tier)

    def map_accesses(text: str) -> int:
        source = KernelSource(text, "copy_kernel", "exercises/ex.py")
        return len(record(source, 1, (torch.zeros(5), torch.zeros(5), 5), {"BLOCK": 8}).accesses)

    said = ""
    with little_memory():
        try:
            map_accesses(f"{named(attack, world)}\n{RIGHT}")
        except CourseError as refused:
            said = str(refused)
    assert len(said) < 2000
    and_nothing_was_told(said)
    assert after(world, tmp_path) == []
    assert map_accesses(RIGHT) == 2


@pytest.mark.parametrize("attack", READING, ids=lambda attack: attack.name)
def test_what_is_hard_to_read_is_said_to_be(attack, world, tmp_path):
    made: dict[str, str] = {}
    exec(attack.text, made)
    assert len(made["text"]) <= 1_000_000
    verdict = check(
        attack.exercise, handed_in(attack, world, tmp_path, made["text"]), limits=LIMITS
    )
    assert verdict.status == "error" and verdict.cause != "grader_fault", verdict.message
    assert 0 < len(verdict.message) < 2000
    assert after(world, tmp_path) == []
    # its text is read by the same server
    verdict = check(attack.exercise, paths.SOLUTIONS / f"{attack.exercise.file}.py")
    assert verdict.passed, verdict.message


def test_there_are_enough_of_them(capsys):
    with capsys.disabled():
        print(
            f"\n{len(ATTACKS)} attacks handed in, {len(CONFINED)} without any check, under each"
            " tier that this machine has"
        )
    assert len(COMPILING) >= 60 and len(PICTURES) >= 40 and len(READING) >= 15
    assert len(CONFINED) >= 45 and {attack.exercise.kind for attack in CONFINED} >= {
        "kernel",
        "torch",
    }
    assert {attack.name for attack in COMPILING} >= OF_EACH_KIND
    assert all(texts.read_solution(attack.exercise) for attack in FOUND)
