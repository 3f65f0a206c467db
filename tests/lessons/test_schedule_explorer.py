"""The schedule explorer: what it records of a run, its frames, its words, and the widget on top."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from leftovers import kill_owner

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.compiler import KernelSource
from course_lib.lessons import interleaved, schedule_explorer
from course_lib.lessons.schedule.model import MARKS, caption, find_telling_frame, frames, mark, shared_tensors, title
from course_lib.lessons.schedule.run import Interleaving
from course_lib.lessons.schedule.widget import ScheduleLaunch, draw, learners_file
from course_lib.sandbox import servers


@triton.jit
def kernel(part_ptr, buffer_ptr, lock_ptr, N, GROUP: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
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
        kernel, (M,), *arguments(M, GROUP=GROUP), GROUP=GROUP, KIND=kind, BLOCK=4, seeds=seeds, **options
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
    assert np.array_equal(replayed(run, "x"), run.result("x")) and np.array_equal(replayed(run, "y"), run.result("y"))
    assert run.result("x")[:6].tolist() == [10, 3, -3, 15, 240, 3 ^ 4 ^ 5 ^ 6] and run.result("y") == 3.0
    assert x.tolist() == [0, 0, 0, 0, 255, 0, 9, 0], "the launch got copies"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    (run,) = interleaved(kernel, (4,), *arguments(dtype=dtype), GROUP=2, KIND="right", BLOCK=4, seeds=[1])
    assert run.result("buffer")[:, 0].astype(float).tolist() == [101.0, float(torch.tensor(1010.0, dtype=dtype))]


def test_findings_point_at_their_operations():
    for run in runs("none"):
        assert run.races and run.complete
        for race in run.races:
            one, other = run.operations[race.first], run.operations[race.second]
            assert race.first < race.second and one.program != other.program and "store" in (one.kind, other.kind)
            assert {one.tensor, other.tensor} == {"buffer"} == {race.where.split("[")[0]} and set(one.elements) & set(
                other.elements
            )
    for run in runs("never"):
        assert run.deadlock and not run.races and not run.complete
        assert {program for program, _, _ in run.waits} | set(run.finished) == {0, 1, 2, 3}
        assert all(holder in run.finished and where.startswith("lock[") for _, where, holder in run.waits)
    assert all(run.findings == () and run.complete for run in runs("right"))


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="this process compiles: every run is a second process's")
def test_a_second_process_says_the_same():
    here, there = runs("early", range(3)), runs("early", range(3), apart=True)
    assert there[0].apart and not here[0].apart
    for one, other in zip(here, there, strict=True):
        assert [_plain(operation) for operation in one.operations] == [
            _plain(operation) for operation in other.operations
        ]
        assert one.races == other.races and np.array_equal(one.result("buffer"), other.result("buffer"))


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
    text = (paths.SOLUTIONS / "ex09a_repair_the_lock.py").read_text()
    source = KernelSource(text, "add_to_buffers_kernel", "ex09a_repair_the_lock.py")
    M, N, G = 3, 5, 2
    dy, x = torch.ones(M, N), torch.arange(15.0).reshape(M, N)
    stats = torch.zeros(M), torch.ones(M)
    buffers = torch.full((G, N), float("nan")), torch.full((G, N), float("nan"))
    launch = (dy, x, *stats, *buffers, torch.zeros(2 * G, dtype=torch.int32), N, 1, N, N)
    for run in interleaved(source, (M,), *launch, GROUP=G, BLOCK=8, seeds=range(3)):
        assert run.apart and not run.findings
        assert np.array_equal(run.result("dw_buffer"), [x[0] + x[2], x[1]]) and run.result("db_buffer").tolist() == [
            [2.0] * N,
            [1.0] * N,
        ]
    assert learners_file("09a")().name == "add_to_buffers_kernel"


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
def test_a_second_process_killed_at_work_is_named_and_its_server_replaced(moment):
    text = "import triton\nimport time\n@triton.jit\ndef kernel(x_ptr, n):\n    pass\ntime.sleep({})\n"
    runs("right", [0], apart=True)  # now there is a server
    (server,) = [waiting for waiting in servers._idle if waiting.key[0].argument == "course_lib.lessons.schedule.run"]
    process = psutil.Process(server.pid)

    def kill_work() -> None:  # the last process of the chain runs the file
        time.sleep(moment)
        process.children(recursive=True)[-1].kill()

    killer = threading.Thread(target=kill_work)
    killer.start()
    with pytest.raises(CourseError, match="ended with code -9"):
        interleaved(KernelSource(text.format(60), "kernel", "x.py"), (1,), torch.zeros(1), 1, seeds=[0])
    killer.join()
    killer = threading.Timer(moment, process.kill)  # the server itself: another one does the work again
    killer.start()
    source = KernelSource(text.format(1.2), "kernel", "x.py")
    assert interleaved(source, (1,), torch.zeros(1), 1, seeds=[0])[0].complete
    killer.join()
    assert not process.is_running()


@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0.0, 6.0) for seed in range(3)])
def test_a_killed_owner_leaves_no_second_process(moment, tmp_path):
    text = "import triton\nimport os, subprocess, time\n@triton.jit\ndef kernel(x_ptr, n):\n    pass\n"
    text += "subprocess.run(['sleep', '60'])\n"
    program = f"""
import course_lib, torch
from course_lib.compiler import KernelSource
from course_lib.lessons.schedule.run import interleaved
print("now", flush=True)
interleaved(KernelSource({text!r}, "kernel", "x.py"), (1,), torch.zeros(1), 1, seeds=[0])
"""
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT), "COURSE_DEVICE": "cpu", "TMPDIR": str(tmp_path)}
    kill_owner(program, moment, tmp_path, environment)


def test_what_cannot_be_run_is_said_in_words():
    with pytest.raises(CourseError, match="no parameter"):
        interleaved(kernel, (4,), *arguments(), GROUP=2, KIND="right", BLOC=4, seeds=[0])
    with pytest.raises(CourseError, match="has 8 lanes"):
        frames(runs("right", [0], M=9)[0])
    with pytest.raises(CourseError, match="no tensor `nothing`"):
        runs("right", [0])[0].result("nothing")
    with pytest.raises(CourseError, match="was stopped"):
        interleaved(kernel, (4,), *arguments()[:3], 400, GROUP=2, KIND="right", BLOCK=512, seeds=[0])
    with pytest.raises(CourseError, match="nothing to explore"):
        schedule_explorer({})


# ---- frames


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["right", "early", "never", "none"]),
    M=st.integers(1, 5),
    GROUP=st.integers(1, 3),
)
def test_frames_hold_together(seed, kind, M, GROUP):
    (run,) = runs(kind, [seed], M=M, GROUP=GROUP)
    all_frames = frames(run)
    assert [frame.number for frame in all_frames] == list(range(all_frames[0].total + 1))
    for frame in all_frames:
        assert sum(len(lane.marks) for lane in frame.lanes) == frame.number
        assert all(letter in MARKS for lane in frame.lanes for _, letter in lane.marks)
        for lane in frame.lanes:
            assert (lane.status == "waits") == bool(lane.waits_on)
            if lane.status == "waits":
                element = int(lane.waits_on.split("[")[1].rstrip("]"))
                lock = next(memory for memory in frame.memory if memory.name == "lock")
                assert lock.values[element] == 1 or frame.operation.tensor == "lock" or not frame.last
    last = all_frames[-1]
    for memory in last.memory:
        assert list(memory.values) == run.result(memory.name).ravel().tolist()
    assert {lane.program for lane in last.lanes if lane.status == "done"} == set(run.finished)
    assert {lane.program for lane in last.lanes if lane.status == "waits"} == {program for program, _, _ in run.waits}


def test_who_waits_for_whom():
    run = runs("never", [0])[0]
    last = frames(run)[-1]
    stated = {(lane.program, lane.waits_on, lane.waits_for) for lane in last.lanes if lane.status == "waits"}
    assert stated == {tuple(wait) for wait in run.waits}
    words = caption(last)
    assert (
        "waits for lock[" in words
        and "changed last by program" in words
        and "Deadlock" in words
        and title(last).startswith("Deadlock")
    )


def test_a_race_is_marked_from_its_second_operation_on():
    run = next(run for run in runs("early", range(10)) if run.races)
    all_frames = frames(run)
    first, second, race = all_frames[-1].races[0]
    assert not all_frames[second - 1].races or all_frames[second - 1].races[-1][2] != race
    assert race in [r for _, _, r in all_frames[second].races] and first < second
    assert find_telling_frame(all_frames) <= second and race.message in caption(all_frames[second])


def test_private_memory_is_left_out_unless_asked_for():
    run = runs("right", [0])[0]
    assert shared_tensors(run) == ("lock", "buffer")
    few, all_ = frames(run), frames(run, everything=True)
    assert all_[0].total == len(run.operations) == few[0].total + few[0].left_out and few[0].left_out == 4
    assert not any(frame.operation and frame.operation.tensor == "part" for frame in few)


def test_marks_tell_taking_from_trying():
    letters = {mark(operation) for run in runs("right", range(5), GROUP=1) for operation in run.operations}
    assert letters == {"L", "S", "T", "w", "F", "B"}


# ---- the picture and the widget


def test_every_frame_can_be_drawn_and_says_what_it_shows():
    for kind in ("early", "never"):
        all_frames = frames(runs(kind, [2])[0])
        for index in range(0, len(all_frames), 7):
            shown = draw(all_frames, index)
            assert (
                shown.png.startswith(b"\x89PNG")
                and shown.caption in shown.alt
                and title(all_frames[index]) in shown.alt
            )


def test_the_widget_steps_reseeds_and_survives_a_bad_file():
    launches = {
        "right": ScheduleLaunch(kernel, (4,), arguments(), {"GROUP": 2, "KIND": "right", "BLOCK": 4}),
        "never": ScheduleLaunch(kernel, (4,), arguments(), {"GROUP": 2, "KIND": "never", "BLOCK": 4}),
        "broken": ScheduleLaunch(
            lambda: KernelSource("def (", "kernel", "x.py"),
            (4,),
            arguments(),
            {"GROUP": 2, "KIND": "right", "BLOCK": 4},
        ),
    }
    widget = schedule_explorer(launches)
    before = widget.caption
    widget.step.click()
    assert widget.caption != before and "operation 1 of" in widget.caption
    widget.controls["seed"].value = 5
    assert "Seed 5, operation 0" in widget.caption
    widget.controls["kernel"].value = "never"
    widget.slider.value = widget.slider.max
    assert "Deadlock" in widget.caption
    widget.controls["kernel"].value = "broken"
    assert widget.error is not None and "not valid Python" in widget.caption
    widget.reset()
    assert widget.error is None and widget.caption == before
