"""The schedule explorer: what is recorded of a run, the tables of what every order does, and the
picture that walks them."""

from __future__ import annotations

import os
import random
import threading
import time

import numpy as np
import psutil
import pytest
import torch
import triton
import triton.language as tl
from leftovers import kill_owner

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.compiler import KernelSource
from course_lib.lessons import interleaved, locks, schedule_explorer
from course_lib.lessons.kit.code import list_code
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson16 import split_rows
from course_lib.lessons.pictures.schedule import automaton
from course_lib.lessons.pictures.schedule import run as schedule_run
from course_lib.lessons.pictures.schedule.model import list_shown, make_data
from course_lib.lessons.pictures.schedule.run import Interleaving
from course_lib.lessons.pictures.schedule.widget import ScheduleLaunch, learners_file
from course_lib.sandbox import servers


@triton.jit
def kernel(
    part_ptr, buffer_ptr, lock_ptr, N, GROUP: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    part = tl.load(part_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    group = row % GROUP
    at = group * N + cols
    if KIND != "none":
        while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
            pass
    part += tl.load(buffer_ptr + at, mask=mask, other=0.0).to(tl.float32)
    if KIND == "early":
        tl.atomic_xchg(lock_ptr + group, 0)
    tl.store(buffer_ptr + at, part.to(buffer_ptr.dtype.element_ty), mask=mask)
    if KIND == "right":
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit
def every_atomic_kernel(x_ptr, y_ptr):
    program = tl.program_id(0)
    tl.atomic_add(x_ptr, program + 1)
    tl.atomic_max(x_ptr + 1, program)
    tl.atomic_min(x_ptr + 2, -program)
    tl.atomic_or(x_ptr + 3, 1 << program)
    tl.atomic_and(x_ptr + 4, ~(1 << program))
    tl.atomic_xor(x_ptr + 5, 3 + program)
    tl.atomic_xchg(x_ptr + 6, program)
    tl.atomic_cas(x_ptr + 7, 0, 5 + program)
    tl.atomic_add(y_ptr, 0.5 * program)


def arguments(M: int = 4, N: int = 3, GROUP: int = 2, dtype: torch.dtype = torch.float32):
    part = (10.0 ** torch.arange(M)[:, None]).expand(M, N).contiguous()
    return part, torch.zeros(GROUP, N, dtype=dtype), torch.zeros(GROUP, dtype=torch.int32), N


def runs(kind: str, seeds=range(6), *, M: int = 4, GROUP: int = 2, **options) -> list[Interleaving]:
    return interleaved(
        kernel,
        (M,),
        *arguments(M, GROUP=GROUP),
        GROUP=GROUP,
        KIND=kind,
        BLOCK=4,
        seeds=seeds,
        **options,
    )


def replayed(run: Interleaving, name: str) -> np.ndarray:
    values = run.first(name)
    for operation in run.operations:
        if operation.tensor == name:
            flat = values.reshape(-1)
            assert [float(flat[i]) for i in operation.elements] == list(operation.found)
            flat[list(operation.elements)] = operation.left
    return values


# ---- what is recorded


@pytest.mark.parametrize("kind", ["right", "early", "never", "none"])
def test_the_operations_alone_give_the_final_memory(kind):
    for run in runs(kind, range(10)):
        for name in ("part", "buffer", "lock"):
            assert np.array_equal(replayed(run, name), run.result(name))


@pytest.mark.parametrize("seed", range(4))
def test_every_atomic_is_replayed(seed):
    x, y = torch.tensor([0, 0, 0, 0, 255, 0, 9, 0], dtype=torch.int32), torch.zeros(1)
    (run,) = interleaved(every_atomic_kernel, (4,), x, y, seeds=[seed])
    assert np.array_equal(replayed(run, "x"), run.result("x")) and np.array_equal(
        replayed(run, "y"), run.result("y")
    )
    assert (
        run.result("x")[:6].tolist() == [10, 3, -3, 15, 240, 3 ^ 4 ^ 5 ^ 6]
        and run.result("y") == 3.0
    )
    assert x.tolist() == [0, 0, 0, 0, 255, 0, 9, 0], "the launch got copies"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    (run,) = interleaved(
        kernel, (4,), *arguments(dtype=dtype), GROUP=2, KIND="right", BLOCK=4, seeds=[1]
    )
    assert run.result("buffer")[:, 0].astype(float).tolist() == [
        101.0,
        float(torch.tensor(1010.0, dtype=dtype)),
    ]


def test_findings_point_at_their_operations():
    for run in runs("none"):
        assert run.races and run.complete
        for race in run.races:
            one, other = run.operations[race.first], run.operations[race.second]
            assert (
                race.first < race.second
                and one.program != other.program
                and "store" in (one.kind, other.kind)
            )
            assert {one.tensor, other.tensor} == {"buffer"} == {race.where.split("[")[0]} and set(
                one.elements
            ) & set(other.elements)
    for run in runs("never"):
        assert run.deadlock and not run.races and not run.complete
        assert {program for program, _, _ in run.waits} | set(run.finished) == {0, 1, 2, 3}
        assert all(
            holder in run.finished and where.startswith("lock[") for _, where, holder in run.waits
        )
    assert all(run.findings == () and run.complete for run in runs("right"))


@pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: every run is a second process's"
)
def test_a_second_process_says_the_same():
    here, there = runs("early", range(3)), runs("early", range(3), apart=True)
    assert there[0].apart and not here[0].apart
    for one, other in zip(here, there, strict=True):
        assert [_plain(operation) for operation in one.operations] == [
            _plain(operation) for operation in other.operations
        ]
        assert one.races == other.races and np.array_equal(
            one.result("buffer"), other.result("buffer")
        )


def _plain(operation):
    return (
        operation.program,
        operation.kind,
        operation.line,
        operation.tensor,
        [*operation.elements],
        [*operation.found],
        [*operation.left],
    )


def test_an_unsolved_or_solved_file_is_run_apart():
    text = (paths.SOLUTIONS / "ex12a_repair_the_lock.py").read_text()
    source = KernelSource(text, "add_to_buffers_kernel", "ex12a_repair_the_lock.py")
    M, N, G = 3, 5, 2
    dy, x = torch.ones(M, N), torch.arange(15.0).reshape(M, N)
    stats = torch.zeros(M), torch.ones(M)
    buffers = torch.full((G, N), float("nan")), torch.full((G, N), float("nan"))
    launch = (dy, x, *stats, *buffers, torch.zeros(2 * G, dtype=torch.int32), N, 1, N, N)
    for run in interleaved(source, (M,), *launch, GROUP=G, BLOCK=8, seeds=range(3)):
        assert run.apart and not run.findings
        assert np.array_equal(run.result("dw_buffer"), [x[0] + x[2], x[1]]) and run.result(
            "db_buffer"
        ).tolist() == [[2.0] * N, [1.0] * N]
    assert learners_file("12a")().name == "add_to_buffers_kernel"


def test_the_second_process_survives_a_file_that_ends_it():
    for text, words in (
        ("import os\nos._exit(3)\n", "ended with code 3"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("kernel = 1\n", "no @triton.jit function"),
    ):
        whole = "import triton\n@triton.jit\ndef kernel(x_ptr, n):\n    pass\n" + text
        source = KernelSource(whole, "kernel", "x.py")
        with pytest.raises(CourseError, match=words):
            interleaved(source, (1,), torch.zeros(1), 1, seeds=[0])
    assert runs("right", [0], apart=True)[0].complete


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 1.0) for seed in range(4)])
def test_a_second_process_killed_at_work_is_named_and_its_server_replaced(moment, monkeypatch):
    # what ends the process is to be the signal, on a busy machine too
    monkeypatch.setattr(schedule_run, "SECONDS", 600.0)
    text = (
        "import triton\nimport time\n@triton.jit\ndef kernel(x_ptr, n):\n    pass\nheld = b'x' *"
        " 200_000_000\ntime.sleep({})\n"
    )
    runs("right", [0], apart=True)  # now there is a server
    (server,) = [
        waiting
        for waiting in servers._idle
        if waiting.key[0].argument == "course_lib.lessons.pictures.schedule.run"
    ]
    process = psutil.Process(server.pid)

    def count_own_bytes(process: psutil.Process) -> int:
        memory = process.memory_info()
        return memory.rss - memory.shared

    # the last process of the chain runs the file, and is known by the memory that the file takes
    def kill_work() -> None:
        wanted, until = count_own_bytes(process) + 100_000_000, time.monotonic() + 240
        while (
            not (at_work := process.children(recursive=True))
            or count_own_bytes(at_work[-1]) < wanted
        ):
            assert time.monotonic() < until, "the file was not run"
            time.sleep(0.01)
        time.sleep(moment)
        at_work[-1].kill()

    killer = threading.Thread(target=kill_work)
    killer.start()
    with pytest.raises(CourseError, match="ended with code -9"):
        interleaved(
            KernelSource(text.format(600), "kernel", "x.py"), (1,), torch.zeros(1), 1, seeds=[0]
        )
    killer.join()
    # the server itself: another one does the work again
    killer = threading.Timer(moment, process.kill)
    killer.start()
    source = KernelSource(text.format(1.2), "kernel", "x.py")
    assert interleaved(source, (1,), torch.zeros(1), 1, seeds=[0])[0].complete
    killer.join()
    assert not process.is_running()


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 6.0) for seed in range(3)])
def test_a_killed_owner_leaves_no_second_process(moment, tmp_path):
    text = (
        "import triton\nimport os, subprocess, time\n@triton.jit\ndef kernel(x_ptr, n):\n    pass\n"
    )
    text += "subprocess.run(['sleep', '60'])\n"
    program = f"""
import course_lib, torch
from course_lib.compiler import KernelSource
from course_lib.lessons.pictures.schedule.run import interleaved
print("now", flush=True)
interleaved(KernelSource({text!r}, "kernel", "x.py"), (1,), torch.zeros(1), 1, seeds=[0])
"""
    environment = os.environ | {
        "PYTHONPATH": str(paths.ROOT),
        "COURSE_DEVICE": "cpu",
        "TMPDIR": str(tmp_path),
    }
    kill_owner(program, moment, tmp_path, environment)


def test_what_cannot_be_run_is_said_in_words():
    with pytest.raises(CourseError, match="no parameter"):
        interleaved(kernel, (4,), *arguments(), GROUP=2, KIND="right", BLOC=4, seeds=[0])
    with pytest.raises(CourseError, match="a row for each of 8 programs"):
        schedule_explorer({"nine": launch("right", M=9)})
    with pytest.raises(CourseError, match="up to 64 elements"):
        schedule_explorer(
            {
                "wide": ScheduleLaunch(
                    kernel, (4,), arguments(N=64), {"GROUP": 2, "KIND": "none", "BLOCK": 64}
                )
            }
        )
    with pytest.raises(CourseError, match="seeds from 0"):
        schedule_explorer({"right": launch("right")}, seed=-1)
    with pytest.raises(CourseError, match="no tensor `nothing`"):
        runs("right", [0])[0].result("nothing")
    with pytest.raises(CourseError, match="was stopped"):
        interleaved(
            kernel, (4,), *arguments()[:3], 400, GROUP=2, KIND="right", BLOCK=512, seeds=[0]
        )
    with pytest.raises(CourseError, match="nothing to explore"):
        schedule_explorer({})


# ---- the tables

KINDS = ("right", "early", "never", "none")


def launch(kind: str, M: int = 4, GROUP: int = 2) -> ScheduleLaunch:
    return ScheduleLaunch(
        kernel, (M,), arguments(M, GROUP=GROUP), {"GROUP": GROUP, "KIND": kind, "BLOCK": 4}
    )


@triton.jit
def counting_kernel(x_ptr, tries: tl.constexpr):
    """A wait that gives up: it goes round a loop, but not for ever."""
    count = 0
    while (tl.atomic_cas(x_ptr, 0, 1) == 1) & (count < tries):
        count += 1
    tl.store(x_ptr + 1, count)


def test_all_ends_are_found():
    assert make_data(launch("right"), [0], [8])["outcomes"] == [[101, 1010]]
    # each program may be the last to store, over what any others left
    totals = {row[0] for row in make_data(launch("none", M=3, GROUP=1), [0], [8])["outcomes"]}
    assert totals == {1, 10, 11, 100, 101, 110, 111}
    assert (
        make_data(launch("never"), [0], [8])["outcomes"] == []
        and make_data(launch("never"), [0], [8])["deadlock"]
    )
    assert not make_data(launch("early"), [0], [8])["deadlock"]
    ends = {tuple(run.result("buffer")[:, 0]) for run in runs("early", range(60))}
    assert ends <= {tuple(row) for row in make_data(launch("early"), [0], [8])["outcomes"]}


def test_a_wait_that_gives_up_is_no_deadlock():
    data = make_data(
        ScheduleLaunch(counting_kernel, (2,), (torch.zeros(2, dtype=torch.int32),), {"tries": 3}),
        [0],
        [8],
    )
    assert not data["deadlock"] and len(data["nodes"][0]) > 4


def test_lines_are_shown_without_comments_and_docstring():
    text = {
        4: '    """A',
        5: '    docstring"""',
        6: "    x = 1  # a '#'",
        7: "",
        8: "    # only",
        9: "        y = '#'",
        10: "    z",
    }
    assert list_code({3: "def f():", **text}, {3, 9}) == [
        (3, 0, "def f():"),
        (6, 4, "x = 1"),
        (9, 8, "y = '#'"),
    ]
    assert list_code(text, {6, 9}) == [(6, 0, "x = 1"), (9, 4, "y = '#'")]


# ---- the picture


@pytest.fixture(scope="module")
def picture():
    return schedule_explorer({kind: launch(kind) for kind in KINDS})


def test_the_browser_walks_as_the_interpreter_runs(picture, show):
    shown = show(picture)
    for kind in KINDS:
        for run in runs(kind, range(12)):
            kept = list_shown(run)
            seen = shown.call("follow", kind, [run.operations[i].program for i in kept])
            assert len(seen["steps"]) == len(kept)
            for step, number in zip(seen["steps"], kept, strict=True):
                real = run.operations[number]
                assert (step["kind"], step["line"], step["tensor"]) == (
                    real.kind,
                    real.line,
                    real.tensor,
                )
                assert step["elements"] == list(real.elements) and step["left"] == list(real.left)
            for name, values in seen["memory"].items():
                assert values == run.result(name).ravel().tolist()
            assert seen["deadlock"] == bool(run.deadlock)
            assert {program for program, at in enumerate(seen["at"]) if at == -1} == set(
                run.finished
            )
            assert {(race["first"], race["second"], race["where"]) for race in seen["races"]} == {
                (kept.index(race.first) + 1, kept.index(race.second) + 1, race.where)
                for race in run.races
            }


def test_an_order_that_nobody_has_run_is_walked_by_hand(picture, show):
    shown = show(picture)
    shown.set(launch="none")
    shown.page.get_by_role("button", name="By hand from the start").click()
    assert (
        "which program moves first?" in shown.title
        and "Can you find an order that ends with 1 | 10?" in shown.caption
    )
    for program in (0, 1, 2, 2, 3, 3, 0, 1):  # 0 and 1 load zeros, and store last
        shown.grip(f"move-{program}").click()
    assert "memory holds 1 | 10" in shown.caption and "You have reached 1 | 10." in shown.caption
    shown.drag("at", dx=-500)
    assert shown.state["at"] == 0
    shown.grip("move-1").press("Enter")  # another way from here on: what came after is gone
    assert shown.state["hand"] == [1] and shown.state["at"] == 1
    shown.page.get_by_role("button", name="Let the rest run").click()
    assert shown.state["at"] == len(shown.state["hand"]) == 8 and "The end:" in shown.caption
    shown.page.get_by_role("button", name="Reset").click()
    assert shown.state["hand"] is None and shown.state["reached"] == {}


def test_the_focus_stays_in_the_picture_when_its_button_goes(picture, show):
    shown = show(picture)
    shown.set(launch="none")
    shown.page.get_by_role("button", name="By hand from the start").click()
    find_focus = (
        "document.querySelector('[data-picture]').stage.root.activeElement?.dataset.key ?? null"
    )
    for program, heir in ((2, "move-3"), (3, "at"), (0, "move-1"), (1, "at")):
        for _ in range(2):
            shown.grip(f"move-{program}").press("Enter")
        assert shown.grip(f"move-{program}").count() == 0, "it has ended"
        assert shown.page.evaluate(find_focus) == heir


def test_it_can_open_at_a_fault_or_inside_a_program(show):
    (run,) = runs("none", [3])
    shown = show(
        schedule_explorer({"none": launch("none"), "right": launch("right")}, seed=3, at_fault=True)
    )
    assert (
        shown.state["seed"] == 3
        and shown.state["at"] == list_shown(run).index(run.races[0].second) + 1
    )
    assert "A race" in shown.title and "in a race: the arrow joins the latest two" in shown.drawn
    assert "Deadlock" in show(schedule_explorer({"never": launch("never")}, at_fault=True)).title
    assert show(schedule_explorer({"right": launch("right")}, at_fault=True)).state["at"] == 0
    assert "inside" in show(schedule_explorer({"right": launch("right")}, view="threads")).title


def test_the_timeline_is_scrubbed_by_hand_and_keys(picture, show):
    shown = show(picture)
    assert "Nothing has happened yet" in shown.caption
    shown.drag("at", dx=100)
    moved = shown.state["at"]
    assert moved > 2
    shown.grip("at").press("ArrowLeft")
    shown.grip("at").press("ArrowLeft")
    assert shown.state["at"] == moved - 2 and f"operation {moved - 2} of" in shown.caption
    shown.set(launch="early")
    shown.page.locator('[data-control="seed"] input').fill("3")
    assert shown.state["at"] == 0 and "seed 3" in shown.caption


def test_findings_are_said_in_words(picture, show):
    shown = show(picture)
    shown.set(launch="never", at=99)
    end = len(picture.data["launches"]["never"]["orders"][0])
    shown.set(at=end)
    assert (
        shown.title == "Deadlock: no move of any program can end a wait"
        and "waits for lock[0], changed last by program" in shown.caption
    )
    seed = next(run.seed for run in runs("early", range(20)) if run.races)
    kept = list_shown(runs("early", [seed])[0])
    race = runs("early", [seed])[0].races[0]
    second = kept.index(race.second) + 1
    shown.set(launch="early", seed=seed, at=second - 1)
    assert "race" not in shown.title and "Race" not in shown.caption
    shown.set(at=second)
    assert (
        shown.title.startswith(f"A race on {race.where}")
        and "nothing orders these two operations" in shown.caption
    )
    shown.set(launch="right", seed=0, at=len(picture.data["launches"]["right"]["orders"][0]))
    assert (
        shown.title == "Every program is done, and no race was found"
        and "no race, no deadlock" in shown.caption
    )


def test_a_lock_given_back_too_early_shows_between_the_threads_too(picture, show):
    shown = show(picture)
    seen = shown.call(
        "threads", "early", picture.data["launches"]["early"]["orders"][0], 0, [0, 0, 0]
    )
    assert seen["open"] and seen["late"] == [0, 1, 2]  # N = 3: nobody has stored yet


def test_a_barrier_acts_between_the_threads_of_one_program(show):
    both = {
        name: ScheduleLaunch(
            kernel_with_flag, (4,), arguments(N=4), {"GROUP": 2, "BARRIER": barrier, "BLOCK": 4}
        )
        for name, barrier in (("with", True), ("without", False))
    }
    picture = schedule_explorer(both)
    shown = show(picture)
    for name, barrier in (("with", True), ("without", False)):
        launch = picture.data["launches"][name]
        alone = shown.call("threads", name, launch["orders"][0], 0, [0] * 20)
        assert bool(alone["late"]) == bool(launch["barriers"]) == (not barrier)
        in_turn = shown.call("threads", name, launch["orders"][0], 0, [0, 1, 2, 3] * 8)
        assert in_turn["open"] and not in_turn["late"]
    shown.set(launch="with", view="threads")
    for _ in range(4):
        shown.grip("thread-0").click() if shown.grip("thread-0").count() else None
    assert "Thread 0 waits at the barrier" in shown.caption and shown.grip("thread-0").count() == 0
    shown.set(launch="without", moves=[0] * 9)
    assert shown.title == "The lock is open, and threads 1, 2 and 3 have not stored"
    assert "no barrier makes it wait" in shown.caption
    shown.shoot("schedule-threads")
    shown.page.get_by_role("button", name="By hand from the start").click()
    assert (shown.state["view"], shown.state["moves"]) == ("threads", [])
    shown.set(view="programs", launch="with", at=4, hand=None)
    assert shown.title.startswith("Program ")
    assert shown.list_overlaps() == []


@triton.jit
def kernel_with_flag(
    part_ptr, buffer_ptr, lock_ptr, N, GROUP: tl.constexpr, BARRIER: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    at = row % GROUP * N + cols
    while tl.atomic_cas(lock_ptr + row % GROUP, 0, 1) == 1:
        pass
    part = tl.load(part_ptr + row * N + cols, mask=mask, other=0.0) + tl.load(
        buffer_ptr + at, mask=mask, other=0.0
    )
    tl.store(buffer_ptr + at, part, mask=mask)
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row % GROUP, 0)


def test_it_looks_right_everywhere(picture, show):
    shown = show(picture)
    assert len(picture.make_html()) < 150_000
    lengths = {kind: len(picture.data["launches"][kind]["orders"][0]) for kind in KINDS}
    shown.assert_clear(
        [
            {"launch": kind, "at": at, "hand": None}
            for kind, last in lengths.items()
            for at in (0, last // 3, 2 * last // 3, last)
        ]
    )
    shown.set(launch="never", at=len(picture.data["launches"]["never"]["orders"][0]))
    shown.shoot("schedule-deadlock")
    shown.set(launch="none", at=8)
    shown.shoot("schedule-race")


def test_the_learners_file_is_run_on_a_button_and_a_failure_leaves_the_picture():
    whole = (paths.SOLUTIONS / "ex12a_repair_the_lock.py").read_text()
    texts = {"now": whole}
    M, N, G = 3, 4, 2
    buffers = torch.zeros(G, N), torch.zeros(G, N)
    stats = torch.zeros(M), torch.ones(M)
    given = (
        torch.ones(M, N),
        torch.ones(M, N),
        *stats,
        *buffers,
        torch.zeros(2 * G, dtype=torch.int32),
        N,
        1,
        N,
        N,
    )
    own = ScheduleLaunch(
        lambda: KernelSource(texts["now"], "add_to_buffers_kernel", "x.py"),
        (M,),
        given,
        {"GROUP": G, "BLOCK": 4},
    )
    asking = schedule_explorer({"right": launch("right"), "yours": own})
    assert isinstance(asking.picture, MovingPicture) and list(asking.picture.data["launches"]) == [
        "right"
    ]
    asking.ask()
    assert asking.error is None and asking.picture.data["chosen"] == "yours"
    first = asking.picture
    assert (
        first.data["launches"]["yours"]["outcomes"] == [[2, 1, 2, 1]]
        and not first.data["launches"]["yours"]["barriers"]
    )
    for text, words in (
        ("def (", "not valid Python"),
        (whole.replace("group = program % GROUP", "group = program + 50"), "was stopped"),
    ):
        texts["now"] = text
        asking.ask()
        assert words in str(asking.error) and words in asking.said.value and asking.picture is first


# ---- programs that wait for words


@pytest.fixture(scope="module")
def shared_rows():
    kernels = {"ticket": split_rows.by_ticket_kernel, "id": split_rows.by_program_id_kernel}
    return schedule_explorer(
        {name: split_rows.two_rows(of) for name, of in kernels.items()},
        resident=split_rows.ROOM,
        seed=3,
    )


def test_who_waits_for_a_word_is_told_which(shared_rows, show):
    shown = show(shared_rows)
    assert shown.page.locator('[data-control="view"]').count() == 0, (
        "no lock, no barrier: nothing to see in a program"
    )
    shown.page.get_by_role("button", name="By hand from the start").click()
    for _ in range(4):  # its ticket, its word, what it finds there, and a look at the next
        shown.grip("move-4").click()
    assert shown.title == "Program 4 waits for word[1]"
    assert "Program 4 waits for word[1], which no program has written." in shown.caption
    for program in (0, 0):
        shown.grip(f"move-{program}").click()
    assert "waits" not in shown.title, "the word is there now"
    shown.page.get_by_role("button", name="Let the rest run").click()
    assert "no race, no deadlock; memory holds 111 | 222" in shown.caption
    shown.shoot("schedule-words")


def test_too_little_room_is_a_deadlock(shared_rows, show):
    shown = show(shared_rows)
    for name, kernel in (
        ("ticket", split_rows.by_ticket_kernel),
        ("id", split_rows.by_program_id_kernel),
    ):
        for room in split_rows.ROOM:
            runs_here = split_rows.run_two_rows(kernel, room, shared_rows.data["seeds"])
            for run in runs_here[:4]:
                kept = list_shown(run)
                shown.set(launch=name, room=room, seed=run.seed, at=len(kept), hand=None)
                assert ("Deadlock" in shown.title) == bool(run.deadlock), (name, room, run.seed)
    stuck = next(
        run.seed
        for run in split_rows.run_two_rows(split_rows.by_program_id_kernel, 3, range(3, 23))
        if run.deadlock
    )
    shown.set(
        launch="id",
        room=3,
        seed=stuck,
        at=len(shared_rows.data["launches"]["id"]["orders"][20 + stuck - 3]),
    )
    assert "cannot start: there is room for 3 programs at a time" in shown.caption
    shown.shoot("schedule-no-room")


def walk_at_random(data, drawn) -> bool:
    """Drive by hand, as the browser does, to the end or for 100 moves; False where nobody knows
    what comes."""
    memory = {tensor["name"]: list(tensor["values"]) for tensor in data["tensors"]}
    at = [0] * data["programs"]
    for _ in range(100):
        able = [program for program, node in enumerate(at) if node != -1]
        if not able:
            break
        program = drawn.choice(able)
        node = data["nodes"][program][at[program]]
        found = [memory[node[2]][element] for element in node[3]] if node else None
        known = [row for row in node[6] if list(row[0]) == found] if node else []
        if not known:
            return False
        _, left, at[program], _ = known[0]
        for element, value in zip(node[3], left or found, strict=True):
            memory[node[2]][element] = value
    return True


@pytest.mark.parametrize("kernel", [split_rows.by_ticket_kernel, split_rows.by_program_id_kernel])
def test_where_no_search_sees_all_states_a_reader_still_meets_known_ones(kernel):
    data = make_data(split_rows.two_rows(kernel), range(3), [6])
    assert data["outcomes"] is None, "all states were seen: this is no test of that"
    drawn = random.Random(7)
    assert sum(walk_at_random(data, drawn) for _ in range(100)) >= 95


def test_programs_are_alike_only_where_nothing_tells_them_apart():
    lines = (
        "def kernel(x_ptr):",
        "    place = tl.atomic_add(x_ptr, 1)",
        "    for k in range(3):",
        "        tl.load(x_ptr + k)",
    )
    assert not automaton.may_tell_programs_apart(dict(enumerate(lines)))
    for more in (
        "    tl.store(x_ptr, tl.program_id(0))",
        "    find_place(x_ptr)",
        "    helpers.find_place(x_ptr)",
    ):
        assert automaton.may_tell_programs_apart(dict(enumerate((*lines, more)))), more


# ---- a number that each thread loads


@pytest.fixture(scope="module")
def flags():
    kernels = {
        "each": locks.each_asks_kernel,
        "barrier": locks.barrier_between_kernel,
        "one": locks.one_asks_kernel,
    }
    return schedule_explorer(
        {name: locks.four_programs(kernel, 7.0) for name, kernel in kernels.items()},
        seed=2,
        view="threads",
    )


def test_a_late_thread_finds_what_its_own_program_has_left(flags, show):
    shown = show(flags)
    order = flags.data["launches"]["each"]["orders"][0]
    together = shown.call("threads", "each", order, 0, [0, 1, 2, 3] * 8)
    assert together["strays"] == [] and together["late"] == []
    ahead = [0, 0, 0]  # thread 0 takes the lock for all, loads the flag, and stores 1
    late = shown.call("threads", "each", order, 0, [*ahead, 1, 2, 3] + [1, 2, 3] * 3)
    for number, stray in enumerate(late["strays"], 1):
        thread, value, extra, (total,) = stray
        assert (thread, value, [kind for kind, _line in extra], total) == (
            number,
            1,
            ["load"],
            [8.0] * 4,
        )
    assert len(late["strays"]) == 3
    for name in ("barrier", "one"):
        seen = shown.call("threads", name, flags.data["launches"][name]["orders"][0], 0, [0] * 6)
        assert seen["strays"] == [] and "waits" in seen["blocked"][0]
        for moves in ([0] * 6 + [1, 2, 3] * 6 + [0] * 6, [3] * 6 + [0] * 6 + [2, 1] * 6):
            assert (
                shown.call("threads", name, flags.data["launches"][name]["orders"][0], 0, moves)[
                    "strays"
                ]
                == []
            )


def test_a_late_thread_is_told_and_drawn(flags, show):
    shown = show(flags)
    assert "Each thread loads a single number for itself." in shown.caption
    assert shown.caption.endswith("Can a thread find another number than thread 0?")
    for thread in (0, 0, 0, 3, 3):
        shown.grip(f"thread-{thread}").click()
    assert shown.title == "Thread 3 found 1 in flag[0], and thread 0 did not"
    assert "Thread 3 loaded late: it found 1 where thread 0 had found 0." in shown.caption
    assert "a thread that loads late finds the new value" in shown.caption
    for thread in (1, 2, 0, 1, 2, 3):
        shown.grip(f"thread-{thread}").click()
    assert shown.title == "Threads 1, 2 and 3 found 1 in flag[0], and thread 0 did not"
    assert (
        "Threads 1, 2 and 3 loaded late: they found 1 where thread 0 had found 0." in shown.caption
    )
    assert "8" in shown.drawn  # what was there, and the row
    assert shown.list_overlaps() == []
    shown.shoot("schedule-flag")
    shown.set(launch="one", moves=[0, 0])
    assert (
        "Thread 1 waits for thread 0's" not in shown.caption
        and "Thread 0 waits until all threads have the answer." in shown.caption
    )
    shown.set(launch="one", moves=[1])
    assert "Thread 1 waits for thread 0's lock." in shown.caption
    shown.set(launch="one", moves=[0, 1])
    assert "Thread 1 waits for thread 0's answer." in shown.caption
