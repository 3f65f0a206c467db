"""Hostile submissions: each is refused by the list, and past the list by what confines the process that runs it.

Every file of ``attacks/`` says in its first line which exercise it is handed in for, what stops it ("list": it computes the
right values by means that only the list can refuse; "isolation": it must not pass, nor reach what it wants, without the
list either), and what it does. ``@NAMES@`` stand for what an attacker would find out: paths, process ids, ports. An attack
that gets what it wants prints BREACH.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import re
import socket
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import course_lib
from course_lib import catalog
from course_lib.base import paths
from course_lib.catalog import texts
from course_lib.grading.check import check
from course_lib.grading.execution import runner
from course_lib.grading.submission import reader
from course_lib.grading.submission.extract_kernels import Kernels
from course_lib.learner import progress
from course_lib.sandbox import isolation, jobs
from course_lib.sandbox.jobs import ResourceLimits

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="the attacks are Python, which a compiled kernel is not"
)

HERE = Path(__file__).parent.parent / "attacks"
LIMIT, GRACE = 1.5, 2.0
LIMITS = dataclasses.replace(ResourceLimits(), case=LIMIT, total=LIMIT, memory_bytes=256 << 20, resident_bytes=1 << 30)
KEY = 0x6E6F726D
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


class Attack(NamedTuple):
    name: str
    exercise: catalog.Exercise
    layer: str
    text: str


def attacks() -> list[Attack]:
    found = []
    for file in sorted(HERE.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        exercise, layer, _ = (part.strip() for part in text.partition("\n")[0].removeprefix("#").split("|"))
        found.append(Attack(file.stem, catalog.get(exercise), layer, text))
    return found


ATTACKS = attacks()
PAST_THE_LIST = [attack for attack in ATTACKS if attack.layer == "isolation"]


class World(NamedTuple):
    """What an attack is after."""

    names: dict[str, str]
    untouched: dict[Path, tuple]
    calls: list[socket.socket]


def look(file: Path) -> tuple:
    status = file.stat()
    return file.read_bytes(), status.st_mode, status.st_mtime_ns, status.st_nlink, status.st_uid


@pytest.fixture(autouse=True, scope="module")
def helpers_are_there():
    """The compiler's helper and the servers serve this whole process: start them before any trace is looked for."""
    for exercise in ("00a", "01a"):
        assert check(catalog.get(exercise), paths.SOLUTIONS / f"{catalog.get(exercise).file}.py").passed


@pytest.fixture(scope="module")
def sockets():
    with contextlib.ExitStack() as stack:
        tcp, local = stack.enter_context(socket.socket()), stack.enter_context(socket.socket(socket.AF_UNIX))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        local.bind(f"\0course-attack-{os.getpid()}")
        for listening in (tcp, local):
            listening.listen()
        for each in (tcp, udp, local):
            each.setblocking(False)
        yield [tcp, udp, local]


@pytest.fixture
def world(tmp_path, monkeypatch, sockets):
    monkeypatch.setenv("COURSE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COURSE_EXERCISES", str(tmp_path / "exercises"))
    monkeypatch.setenv("COURSE_TEST_TOKEN", "a secret of the person's")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    progress.note_hint("00a", 1)
    victim, other = tmp_path / "victim", tmp_path / "others" / "ex01a_layer_norm.py"
    other.parent.mkdir()
    for file in (victim, other):
        file.write_text("as it was")
    tcp, udp, _ = sockets
    names = {
        "ROOT": paths.ROOT, "STATE": paths.state(), "VICTIM": victim, "OTHER": other, "PARENT": os.getpid(), "KEY": KEY,
        "TCP": tcp.getsockname()[1], "UDP": udp.getsockname()[1], "ABSTRACT": f"course-attack-{os.getpid()}",
    }  # fmt: skip
    precious = [
        victim,
        other,
        progress.file(),
        *paths.SOLUTIONS.glob("*.py"),
        *(paths.ROOT / "course_lib").glob("*.py"),
    ]
    yield World({name: str(value) for name, value in names.items()}, {file: look(file) for file in precious}, sockets)


def handed_in(attack: Attack, world: World, tmp_path: Path) -> Path:
    text = attack.text
    for name, value in world.names.items():
        text = text.replace(f"@{name}@", value)
    file = tmp_path / f"{attack.exercise.file}.py"
    file.write_text(text, encoding="utf-8")
    return file


def after(world: World, tmp_path: Path) -> list[str]:
    """What an attack left behind, in words."""
    traces = [
        f"{file} changed" for file, before in world.untouched.items() if not file.exists() or look(file) != before
    ]
    traces += [f"{file} was left" for file in (tmp_path / "tmp").iterdir()]
    traces += [
        f"{file} is new"
        for file in tmp_path.iterdir()
        if file.name not in ("tmp", "state", "others", "victim") and file.suffix != ".py"
    ]
    helpers = psutil.Process().children()
    traces += [f"{process} still runs" for helper in helpers for process in helper.children(recursive=True)]
    for door in world.calls:
        with contextlib.suppress(BlockingIOError):
            traces.append(f"a call came: {door.recv(9) if door.type == socket.SOCK_DGRAM else door.accept()}")
    if ctypes.CDLL(None).shmget(KEY, 0, 0) != -1:
        traces.append("shared memory was left")
    return traces


def and_the_next_check_passes(attack: Attack) -> None:
    verdict = check(attack.exercise, paths.SOLUTIONS / f"{attack.exercise.file}.py")
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_list_refuses(attack, world, tmp_path):
    verdict = check(attack.exercise, handed_in(attack, world, tmp_path), limits=LIMITS)
    assert verdict.status in ("error", "fail"), verdict.message
    assert "BREACH" not in verdict.printed and after(world, tmp_path) == []


@pytest.fixture(scope="module")
def best_tier() -> str:
    return check(catalog.get("01a"), paths.SOLUTIONS / "ex01a_layer_norm.py").tier


@pytest.mark.parametrize("tier", [isolation.NAMESPACES, isolation.LANDLOCK])
@pytest.mark.parametrize("attack", PAST_THE_LIST, ids=lambda attack: attack.name)
def test_what_gets_past_the_list_is_confined(attack, tier, best_tier, world, tmp_path, monkeypatch, record_property):
    if isolation.TIERS.index(tier) < isolation.TIERS.index(best_tier):
        pytest.skip(f"this machine's best isolation is: {best_tier}")
    monkeypatch.setattr(jobs, "BEST_TIER", tier)
    file = handed_in(attack, world, tmp_path)
    runner.warm("cpu" if attack.exercise.kind == "kernel" else attack.exercise.kind)
    with monkeypatch.context() as past:
        past.setattr(reader, "read", lambda exercise, text, name: Kernels(text, exercise.entry_points))
        started = time.monotonic()
        verdict = check(attack.exercise, file, limits=LIMITS)
        seconds = time.monotonic() - started
    assert verdict.status in ("error", "fail"), f"{verdict.status}: {verdict.message}"
    assert verdict.tier == tier
    assert "BREACH" not in verdict.printed, verdict.printed
    assert seconds < LIMIT + GRACE
    assert after(world, tmp_path) == []
    assert len(verdict.message) < 2000 and len(verdict.printed) <= 4000
    assert not OBEYED.search(verdict.as_json()) and "\n✓" not in verdict.message
    and_the_next_check_passes(attack)


def test_there_are_enough_of_them(capsys):
    with capsys.disabled():
        print(
            f"\n{len(ATTACKS)} attacks handed in, {len(PAST_THE_LIST)} of them again past the list, under each tier that this machine has"
        )
    assert len(PAST_THE_LIST) >= 45 and {attack.exercise.kind for attack in PAST_THE_LIST} >= {"kernel", "torch"}
    assert all(texts.read_solution(attack.exercise) for attack in ATTACKS)
