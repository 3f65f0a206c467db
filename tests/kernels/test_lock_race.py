"""A flag that each thread loads and one thread stores: what the compiler makes of it, and what a
GPU does.

The compiled text is that of the installed Triton, for an H100. The rule is the one of the
interleaved runs: between a load of a number by each thread and a write of it by one thread, all
threads have to meet.
"""

from __future__ import annotations

import re

import pytest
import torch

import course_lib
from course_lib.authoring.bench import lock_race
from course_lib.bench import measurement
from course_lib.catalog import get, mutants, texts
from course_lib.compiler import KernelSource, Pointer, compile_report
from course_lib.kernels.layer_norm_backward import layer_norm_backward_locked_kernel

needs_gpu = pytest.mark.skipif(course_lib.MODE != "gpu", reason="runs the kernels on a GPU")
WARPS = (1, 4, 8)
_BUFFERS = [Pointer("fp32")] * 6 + [Pointer("int32")]
_MEMORY_OR_BARRIER = re.compile(r"\b(?:ld|st|atom)\.(?:global|shared)|\bbar\.sync")
_SCALAR_LOAD = re.compile(r"^ld\.(?:volatile\.)?global\.b32 \{ %r\d+ \}, \[ (%rd\d+) ")
_SCALAR_WRITE = re.compile(r"^@%p\d+ (?:st\.global\.b32|atom\.global\S+ %r\d+,) \[ (%rd\d+) ")


def compile_exercise(exercise_id: str, num_warps: int, mutant: str = "") -> str:
    exercise = get(exercise_id)
    text = texts.read_solution(exercise)
    if mutant:
        (entry,) = [entry for entry in mutants.read_mutants(exercise) if entry["id"] == mutant]
        text = mutants.make_text(exercise, entry)
    source = KernelSource(text, "add_to_buffers_kernel", "ex.py")
    arguments = [*_BUFFERS, 1008, 1, 1008, 1008]
    return compile_report(
        source, arguments, {"GROUP": 2, "BLOCK": 1024}, num_warps=num_warps, disassemble=False
    ).ptx


def compile_locked_backward(num_warps: int) -> str:
    x, sums = Pointer("fp16"), Pointer("fp32")
    arguments = [x, x, x, sums, sums, x, sums, sums, Pointer("int32"), 1008, 1, 1008, 1, 1008, 1008]
    constexprs = {"HAS_W": True, "GROUP": 128, "BLOCK": 1024}
    return compile_report(
        layer_norm_backward_locked_kernel,
        arguments,
        constexprs,
        num_warps=num_warps,
        disassemble=False,
    ).ptx


def find_unguarded_writes(ptx: str) -> list[tuple[str, str]]:
    """List the loads of a number by every thread that a write of one thread to the same address
    follows without a barrier between."""
    loads: dict[str, str] = {}  # address register -> the load since the last barrier
    unguarded = []
    for line in (line.strip() for line in ptx.splitlines()):
        if line.startswith("bar.sync"):
            loads.clear()
        elif match := _SCALAR_LOAD.match(line):
            loads[match[1]] = line
        elif (match := _SCALAR_WRITE.match(line)) and match[1] in loads:
            unguarded.append((loads[match[1]], line))
    return unguarded


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("exercise_id", ["12a", "12c"])
def test_one_thread_asks_for_the_flag_and_all_threads_wait_for_its_answer(exercise_id, num_warps):
    ptx = compile_exercise(exercise_id, num_warps)
    assert not find_unguarded_writes(ptx)
    lines = [line.strip() for line in ptx.splitlines() if _MEMORY_OR_BARRIER.search(line)]
    atomics = [number for number, line in enumerate(lines) if "atom.global" in line]
    assert len(atomics) == 3, "the lock is taken, the flag is exchanged, the lock is given back"
    for number in atomics[:2]:
        steps = [_MEMORY_OR_BARRIER.search(line)[0] for line in lines[number : number + 4]]
        assert steps == ["atom.global", "st.shared", "bar.sync", "ld.shared"]
        # one thread asks, and hands on what it hears
        assert lines[number].startswith("@%p") and lines[number + 1].startswith("@%p")


@pytest.mark.parametrize("num_warps", WARPS)
def test_the_courses_kernel_has_a_barrier_between_the_load_of_the_flag_and_its_store(num_warps):
    ptx = compile_locked_backward(num_warps)
    assert not find_unguarded_writes(ptx)
    lines = [line.strip() for line in ptx.splitlines()]
    store = next(
        number
        for number, line in enumerate(lines)
        if _SCALAR_WRITE.match(line) and "st.global" in line
    )
    flag = _SCALAR_WRITE.match(lines[store])[1]
    loads = [
        number
        for number, line in enumerate(lines)
        if (match := _SCALAR_LOAD.match(line)) and match[1] == flag
    ]
    assert len(loads) == 1 and any(line.startswith("bar.sync") for line in lines[loads[0] : store])


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize(
    ("exercise_id", "mutant"),
    [
        ("12a", "flag_loaded_and_stored"),
        ("12a", "flag_loaded_and_exchanged"),
        ("12c", "flag_loaded_and_stored"),
    ],
)
def test_the_old_forms_have_no_barrier_there(exercise_id, mutant, num_warps):
    ((load, write),) = find_unguarded_writes(compile_exercise(exercise_id, num_warps, mutant))
    # every thread loads, one thread writes
    assert not load.startswith("@") and write.startswith("@")


@pytest.mark.parametrize("num_warps", WARPS)
def test_an_atomic_whose_result_is_dropped_has_no_barrier_behind_it(num_warps):
    """Triton 3.6 and 3.7 even leave out an acquire that adds 0, if nothing reads what it
    returns."""
    ptx = compile_exercise("12d", num_warps, "acquire_without_its_result")
    waited = ptx.index("bra", ptx.index("ld.volatile.global"))
    between = ptx[waited : ptx.index("st.global", waited)]
    assert "bar.sync" not in between


@needs_gpu
@pytest.mark.parametrize(("N", "num_warps"), lock_race.SHAPES)
def test_with_late_warps_only_the_tutorials_form_is_wrong(N, num_warps):
    wrong, *repaired = (
        lock_race.count_wrong(form, N, num_warps, wait=True, runs=40) for form in lock_race.FORMS
    )
    assert wrong > 20  # a sleep may be short, and then the late warps are not late
    assert repaired == [0, 0]


@needs_gpu
@pytest.mark.parametrize(("N", "num_warps"), lock_race.SHAPES)
def test_without_the_wait_every_form_is_right(N, num_warps):
    assert all(
        lock_race.count_wrong(form, N, num_warps, wait=False, runs=100) == 0
        for form in lock_race.FORMS[1:]
    )


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="interprets the kernel")
@pytest.mark.parametrize("form", lock_race.FORMS)
def test_the_measured_forms_add_up_the_same_rows(form):
    x = torch.arange(5 * 3, dtype=torch.float32).view(5, 3)
    buffers = torch.full((2, 3), float("nan"))
    lock_race.add_rows(x, buffers, form, num_warps=1)
    assert torch.equal(buffers, torch.stack([x[0::2].sum(0), x[1::2].sum(0)]))


def test_the_stored_measurement_says_how_often_each_form_was_wrong():
    stored = measurement.stored(lock_race.KIND)
    late = [row for row in stored.rows if row["wait_us"]]
    assert {(row["N"], row["num_warps"]) for row in late} == set(lock_race.SHAPES)
    for row in late:
        assert (
            row["wrong"] > row["runs"] / 2
            if row["form"] == lock_race.FORMS[0]
            else row["wrong"] == 0
        )
    ordinary = [row for row in stored.rows if not row["wait_us"]]
    assert len(ordinary) == len(late) and all(
        row["wrong"] == 0 and row["us"] > 0 for row in ordinary
    )
    assert lock_race.table(stored).count("wrong in 0 of 40") == 2 * len(lock_race.SHAPES)
