"""Interleaved runs: what they find, what they do not call wrong, and that they repeat and end
cleanly."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import signal
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.runtime.errors import InterpreterError

import course_lib
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.interpreter.schedule import explore, run

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu", reason="this process compiles: the interpreter is not in use"
)


def line(kernel, text: str, which: int = 0) -> int:
    """The line in this file of the ``which``-th line of ``kernel`` that holds ``text``."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return [first + i for i, code in enumerate(lines) if text in code][which]


def zeros(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def locks(n: int = 1) -> torch.Tensor:
    return zeros(n, dtype=torch.int32)


# ---- accumulation into one place -----------------------------------------------------------------


@triton.jit
def racy_sum_kernel(total_ptr):
    old = tl.load(total_ptr)
    tl.store(total_ptr, old + 1.0)


@triton.jit
def locked_sum_kernel(x_ptr, total_ptr, lock_ptr, N, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + program * N + cols, mask=mask, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr + cols, tl.load(total_ptr + cols, mask=mask) + x, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def early_release_kernel(total_ptr, lock_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    old = tl.load(total_ptr)
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(total_ptr, old + 1.0)


@triton.jit
def wrong_lock_kernel(total_ptr, lock_ptr, SLOTS: tl.constexpr):
    program = tl.program_id(0)
    lock = lock_ptr + program // SLOTS  # the slot is program % SLOTS
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    slot = total_ptr + program % SLOTS
    tl.store(slot, tl.load(slot) + 1.0)
    tl.atomic_xchg(lock, 0)


@triton.jit
def atomic_sum_kernel(total_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(total_ptr + tl.arange(0, BLOCK), 1.0)


@triton.jit
def mixed_sum_kernel(total_ptr):
    if tl.program_id(0) == 0:
        tl.store(total_ptr, tl.load(total_ptr) + 1.0)
    else:
        tl.atomic_add(total_ptr, 1.0)


def test_a_racy_sum_is_a_race_with_both_lines_and_loses_additions():
    result = run(racy_sum_kernel, (8,), zeros(1), seed=3)
    assert result.complete and result.deadlock is None
    store = line(racy_sum_kernel, "tl.store")
    pairs = {(race.first.kind, race.second.kind) for race in result.races}
    assert pairs == {("load", "store"), ("store", "load"), ("store", "store")}
    for race in result.races:
        assert race.first.program != race.second.program and race.where == "total_ptr[0]"
        for step in (race.first, race.second):
            assert step.line == (store if step.kind == "store" else store - 1)
            assert f"program {step.program} at line {step.line}" in race.message
    found = explore(racy_sum_kernel, (8,), lambda: [zeros(1)], seeds=range(6))
    assert found.schedule.seed == 0 and found.differing is not None and found.complete == 6


def test_a_race_is_found_when_the_schedule_hides_it():
    total = zeros(1)
    result = run(racy_sum_kernel, (8,), total, resident=1)  # one after the other: the sum is right
    assert total.item() == 8 and result.races


@pytest.mark.parametrize("seed", range(20))
def test_a_locked_sum_is_right_and_no_race(seed):
    x, total = torch.arange(6 * 5, dtype=torch.float32).view(6, 5), zeros(5)
    result = run(locked_sum_kernel, (6,), x, total, locks(), 5, BLOCK=8, seed=seed, resident=4)
    assert result.complete and not result.findings
    assert torch.equal(total, x.sum(0))


def test_a_block_of_1024_under_a_lock_is_no_race():
    x, total = torch.ones(4, 1000), zeros(1000)
    assert not run(locked_sum_kernel, (4,), x, total, locks(), 1000, BLOCK=1024).findings
    assert (total == 4).all()


def test_a_lock_released_before_the_store_is_a_race():
    result = run(early_release_kernel, (4,), zeros(1), locks())
    late = line(early_release_kernel, "tl.store")
    assert result.races and all(
        late in (race.first.line, race.second.line) for race in result.races
    )
    # lock and release stay unblamed
    assert {race.where for race in result.races} == {"total_ptr[0]"}


def test_a_lock_with_the_wrong_index_is_a_race():
    assert run(wrong_lock_kernel, (4,), zeros(2), locks(2), SLOTS=2).races


def test_atomics_on_both_sides_are_no_race():
    total = zeros(1024)
    assert not run(atomic_sum_kernel, (5,), total, BLOCK=1024).findings
    assert (total == 5).all()


def test_an_atomic_against_a_plain_store_is_a_race():
    result = run(mixed_sum_kernel, (3,), zeros(1))
    assert {kind for race in result.races for kind in (race.first.kind, race.second.kind)} == {
        "load",
        "store",
        "fadd",
    }
    assert any("atomic_add" in race.message for race in result.races)


# ---- who wrote last ------------------------------------------------------------------------------


@triton.jit
def message_kernel(word_ptr, y_ptr, VOLATILE: tl.constexpr, BLOCK: tl.constexpr):
    """Program 0 sends a number that is never 0 by a relaxed exchange; the others wait for it, each
    lane by itself."""
    if tl.program_id(0) == 0:
        tl.atomic_xchg(word_ptr, 7, sem="relaxed")
    else:
        lanes = tl.zeros([BLOCK], dtype=tl.int32)
        word = tl.load(word_ptr + lanes, volatile=VOLATILE)
        while tl.sum((word == 0).to(tl.int32), axis=0) > 0:
            word = tl.load(word_ptr + lanes, volatile=VOLATILE)
        tl.store(y_ptr + tl.program_id(0), tl.max(word, axis=0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("volatile", [True, False])
def test_a_volatile_load_is_a_relaxed_atomic_and_a_plain_one_races_with_the_exchange(
    volatile, seed
):
    word, y = torch.zeros(1, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    schedule = run(message_kernel, (4,), word, y, VOLATILE=volatile, BLOCK=4, seed=seed)
    assert schedule.complete and y.tolist() == [0, 7, 7, 7] and not schedule.no_barrier
    assert bool(schedule.races) is not volatile, schedule.findings


@triton.jit
def message_and_data_kernel(word_ptr, data_ptr, y_ptr):
    """The number is only a flag here, and what it stands for is stored before it: a relaxed
    exchange does not order the two."""
    if tl.program_id(0) == 0:
        tl.store(data_ptr, 5.0)
        tl.atomic_xchg(word_ptr, 1, sem="relaxed")
    else:
        while tl.load(word_ptr, volatile=True) == 0:
            pass
        tl.store(y_ptr + tl.program_id(0), tl.load(data_ptr))


def test_a_relaxed_flag_does_not_order_the_data_behind_it():
    schedule = run(
        message_and_data_kernel,
        (3,),
        torch.zeros(1, dtype=torch.int32),
        torch.zeros(1),
        torch.zeros(3),
    )
    assert {race.where for race in schedule.races} == {"data_ptr[0]"}


@triton.jit
def last_writer_kernel(y_ptr, VALUE: tl.constexpr):
    tl.store(y_ptr, tl.program_id(0) if VALUE < 0 else VALUE)


@triton.jit
def own_slot_kernel(x_ptr, partial_ptr, M, ROWS: tl.constexpr):
    program = tl.program_id(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows, mask=rows < M, other=0.0)
    tl.store(partial_ptr + program, tl.sum(x, axis=0))


@triton.jit
def last_one_sums_kernel(
    x_ptr, partial_ptr, count_ptr, y_ptr, SEM: tl.constexpr, BLOCK: tl.constexpr
):
    """Two stages in one launch: whoever is last to count sums what all have stored."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    tl.store(partial_ptr + program, tl.load(x_ptr + program) * 2.0)
    if tl.atomic_add(count_ptr, 1, sem=SEM) == programs - 1:
        slots = tl.arange(0, BLOCK)
        tl.store(
            y_ptr, tl.sum(tl.load(partial_ptr + slots, mask=slots < programs, other=0.0), axis=0)
        )


@triton.jit
def bytes_kernel(y_ptr, STRIDE: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(y_ptr + tl.arange(0, 4) * STRIDE, 1)
    else:
        tl.store(y_ptr + tl.arange(0, 4) * STRIDE + 1, 1)


@triton.jit
def neighbours_kernel(y_ptr, APART, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * APART + tl.arange(0, BLOCK)
    tl.store(y_ptr + lanes * STRIDE, 1.0)


@triton.jit
def two_widths_kernel(byte_ptr, word_ptr, OFFSET: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(byte_ptr + OFFSET, 1)
    else:
        tl.store(word_ptr, 1)


def test_the_last_writer_wins_and_it_is_a_race():
    found = explore(last_writer_kernel, (4,), lambda: [locks()], VALUE=-1)
    (race,) = found.schedule.races
    assert found.differing and not race.same_value and race.times == 6  # every pair of four
    y = locks()
    assert run(last_writer_kernel, (4,), y, VALUE=-1).steps[-1].program == y.item()


def test_equal_values_are_a_race_all_the_same():
    found = explore(last_writer_kernel, (4,), lambda: [locks()], VALUE=7)
    assert found.differing is None
    assert found.schedule.races[0].same_value and "same value" in found.schedule.races[0].message


@pytest.mark.parametrize("m", [1, 8, 17])
def test_slots_of_their_own_are_no_race(m):
    x, partial = torch.randn(m), zeros(3)
    assert not run(own_slot_kernel, (3,), x, partial, m, ROWS=8).findings
    torch.testing.assert_close(partial.sum(), x.sum())


@pytest.mark.parametrize(
    ("sem", "race"), [("acq_rel", False), ("relaxed", True), ("release", True), ("acquire", True)]
)
def test_the_memory_order_of_an_atomic_decides(sem, race):
    y = zeros(1)
    result = run(
        last_one_sums_kernel, (5,), torch.ones(5), zeros(5), locks(), y, SEM=sem, BLOCK=8, seed=1
    )
    assert y.item() == 10 and bool(result.races) == race


@triton.jit
def count_kernel(count_ptr, SCOPE: tl.constexpr, OTHER: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.atomic_add(count_ptr, 1, scope=SCOPE)
    else:
        tl.atomic_add(count_ptr, 1, scope=OTHER)


@pytest.mark.parametrize(
    "scopes", list(itertools.product(["cta", "gpu", "sys"], repeat=2)), ids="-".join
)
def test_an_atomic_whose_scope_leaves_out_other_programs_races_with_theirs(scopes):
    count = locks()
    result = run(count_kernel, (3,), count, SCOPE=scopes[0], OTHER=scopes[1])
    assert count[0] == 3 and bool(result.races) == ("cta" in scopes)
    for race in result.races:
        assert 'has the scope "cta": it orders nothing for other programs.' in race.message
        (line,) = re.findall(r"The atomic at line (\d+) has the scope", race.message)
        assert int(line) in (race.first.line, race.second.line)


@pytest.mark.parametrize(("stride", "race"), [(1, True), (2, False), (3000, False)])
def test_neighbouring_bytes_are_told_apart(stride, race):
    result = run(bytes_kernel, (2,), zeros(3 * stride + 2, dtype=torch.int8), STRIDE=stride)
    assert bool(result.races) == race


@pytest.mark.parametrize("stride", [1, 3, 700])
@pytest.mark.parametrize("block", [1, 4, 1024])
def test_blocks_that_share_one_lane_race_there_and_nowhere_else(block, stride):
    if block > 4 and stride > 3:
        block = 64  # a page each, and less of them
    y = zeros(2 * block * stride)
    (race,) = run(neighbours_kernel, (2,), y, block - 1, STRIDE=stride, BLOCK=block).races
    assert race.where == f"y_ptr[{(block - 1) * stride}]" and race.same_value
    assert not run(neighbours_kernel, (2,), y, block, STRIDE=stride, BLOCK=block).races


@pytest.mark.parametrize(("offset", "race"), [(3, True), (4, False)])
def test_overlap_counts_whatever_the_width(offset, race):
    y = zeros(8, dtype=torch.int8)
    assert bool(run(two_widths_kernel, (2,), y, y.view(torch.int32), OFFSET=offset).races) == race


# ---- the threads of one program ------------------------------------------------------------------


@triton.jit
def first_adds_kernel(x_ptr, total_ptr, lock_ptr, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """Each program adds its row to a row of totals. The first one finds nothing there: a flag
    beside the lock says so."""
    cols = tl.arange(0, BLOCK)
    row = tl.load(x_ptr + tl.program_id(0) * BLOCK + cols)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if FORM == "load and store":
        written = tl.load(lock_ptr + 1)
        if written == 0:
            tl.store(lock_ptr + 1, 1)
    elif FORM == "volatile load and exchange":
        written = tl.load(lock_ptr + 1, volatile=True)
        if written == 0:
            tl.atomic_xchg(lock_ptr + 1, 1)
    elif FORM == "exchange and load":
        tl.atomic_xchg(lock_ptr + 1, 1)
        written = tl.load(lock_ptr + 1)
    elif FORM == "another atomic between":
        written = tl.load(lock_ptr + 1)
        tl.atomic_add(lock_ptr + 2, 1)
        tl.store(lock_ptr + 1, 1)
    elif FORM == "a name that is not read":
        written = tl.load(lock_ptr + 1)
        _count = tl.atomic_add(lock_ptr + 2, 1)
        tl.store(lock_ptr + 1, 1)
    elif FORM == "an answer between":
        written = tl.load(lock_ptr + 1)
        count = tl.atomic_add(lock_ptr + 2, 1)
        tl.store(lock_ptr + 1, count + 1)
    elif FORM == "barrier":
        written = tl.load(lock_ptr + 1)
        tl.debug_barrier()
        if written == 0:
            tl.store(lock_ptr + 1, 1)
    else:
        written = tl.atomic_xchg(lock_ptr + 1, 1)
    if written != 0:
        row += tl.load(total_ptr + cols)
    tl.store(total_ptr + cols, row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def run_first_adds(form: str, seed: int = 0, block: int = 4):
    total = torch.full((block,), float("nan"))
    return (
        run(
            first_adds_kernel,
            (3,),
            torch.ones(3, block),
            total,
            locks(3),
            FORM=form,
            BLOCK=block,
            seed=seed,
        ),
        total,
    )


@pytest.mark.parametrize(
    ("form", "load", "write", "late"),
    [
        ("load and store", 0, 0, True),
        ("volatile load and exchange", 1, 0, True),
        ("exchange and load", 2, 1, False),
        ("another atomic between", 3, 1, True),
        ("a name that is not read", 4, 2, True),
    ],
)
def test_a_number_that_each_thread_loads_and_one_writes_needs_a_barrier_between(
    form, load, write, late
):
    load = line(first_adds_kernel, "written = tl.load", load)
    write = line(
        first_adds_kernel,
        "tl.atomic_xchg(lock_ptr + 1" if "exchange" in form else "tl.store(lock_ptr + 1",
        write,
    )
    for seed in range(5):
        result, total = run_first_adds(form, seed)
        assert result.complete and not result.races
        # in order, one operation after the other, the sum is right
        assert form == "exchange and load" or total.tolist() == [3] * 4
        finding = result.no_barrier[0]
        assert (
            finding.first.program == finding.second.program
            and finding.line == load
            and finding.where == "lock_ptr[1]"
        )
        assert {finding.first.line, finding.second.line} == {load, write}
        assert f"at line {load}" in finding.message and f"at line {write}" in finding.message
        assert (
            "loads late finds the new value" if late else "loads early finds the old value"
        ) in finding.message


@pytest.mark.parametrize("form", ["barrier", "exchange", "an answer between"])
def test_a_barrier_or_one_answer_for_all_threads_lies_between(form):
    for seed in range(5):
        result, total = run_first_adds(form, seed)
        assert result.complete and not result.findings and total.tolist() == [3] * 4


def test_one_thread_alone_may_load_and_store_a_number():
    """Other threads load it as well. What they find reaches no memory, because only one of them
    stores a single number."""
    for form in ("load and store", "another atomic between", "exchange and load"):
        assert not run_first_adds(form, block=1)[0].findings


@triton.jit
def rests_kernel(x_ptr, flag_ptr, AFTER: tl.constexpr):
    cols = tl.arange(0, 4) + 4 * tl.program_id(0)
    if not AFTER:
        tl.store(x_ptr + cols, 1.0)
    flag = tl.load(flag_ptr + tl.program_id(0))
    tl.store(flag_ptr + tl.program_id(0), flag + 1)
    if AFTER:
        tl.store(x_ptr + cols, 1.0 * flag)


@pytest.mark.parametrize("after", [True, False])
def test_a_number_matters_where_all_threads_store_after_it(after):
    found = run(rests_kernel, (2,), zeros(8), locks(2), AFTER=after)
    assert len(found.no_barrier) == int(after) and not found.races
    assert not after or found.no_barrier[0].times == 2  # once in each program


@triton.jit
def asks_in_the_lock_kernel(x_ptr, turn_ptr, lock_ptr):
    """A program takes the lock, looks whether it is its turn, and if not gives the lock back
    without a barrier."""
    cols = tl.arange(0, 4)
    mine = False
    while not mine:
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
        mine = tl.load(turn_ptr) == tl.program_id(0)
        if not mine:
            tl.atomic_xchg(lock_ptr, 0)
    tl.store(x_ptr + cols, tl.load(x_ptr + cols) + 1.0)
    tl.debug_barrier()
    tl.store(turn_ptr, tl.program_id(0) + 1)
    tl.atomic_xchg(lock_ptr, 0)


def test_a_lock_given_back_before_each_thread_has_loaded_is_a_missing_barrier():
    findings = [
        run(asks_in_the_lock_kernel, (3,), zeros(4), locks(), locks(), seed=seed).no_barrier
        for seed in range(5)
    ]
    assert all(findings)
    release = line(asks_in_the_lock_kernel, "tl.atomic_xchg")
    for finding, *_others in findings:
        assert finding.first.program != finding.second.program
        assert (finding.first.line, finding.line) == (
            line(asks_in_the_lock_kernel, "mine = tl.load"),
            release,
        )
        assert f"one of them does the atomic_xchg at line {release}" in finding.message


@triton.jit
def acquires_kernel(x_ptr, lock_ptr, USED: tl.constexpr, BLOCK: tl.constexpr):
    """The lock is taken relaxed; an atomic without effect then acquires."""
    cols = tl.arange(0, BLOCK)
    while tl.atomic_xchg(lock_ptr, 1, sem="relaxed") == 1:
        pass
    if USED:
        held = tl.atomic_add(lock_ptr, 0, sem="acquire")
        tl.store(x_ptr + cols, tl.load(x_ptr + cols) + held)
    else:
        tl.atomic_add(lock_ptr, 0, sem="acquire")
        tl.store(x_ptr + cols, tl.load(x_ptr + cols) + 1.0)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release")


@pytest.mark.parametrize(
    ("used", "block", "missing"), [(True, 4, False), (False, 4, True), (False, 1, False)]
)
def test_an_acquire_whose_result_is_dropped_is_one_of_one_thread(used, block, missing):
    for seed in range(4):
        found = run(acquires_kernel, (3,), zeros(block), locks(), USED=used, BLOCK=block, seed=seed)
        assert found.complete and not found.races and bool(found.no_barrier) == missing
        for finding in found.no_barrier:
            assert finding.line == line(acquires_kernel, "tl.atomic_add", 1)
            assert (
                "nothing reads its result, and no barrier makes the other threads wait for it"
                in finding.message
            )


# ---- waiting -------------------------------------------------------------------------------------


@triton.jit
def never_released_kernel(lock_ptr):
    while tl.atomic_cas(lock_ptr + 2, 0, 1) == 1:
        pass


@triton.jit
def exchange_lock_kernel(lock_ptr, total_ptr, GIVE: tl.constexpr):
    taken = 1
    while taken == 1:
        taken = tl.atomic_xchg(lock_ptr, 1)
    tl.store(total_ptr, tl.load(total_ptr) + 1.0)
    if GIVE:
        tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def ticket_kernel(ticket_ptr, turn_ptr, total_ptr):
    ticket = tl.atomic_add(ticket_ptr, 1)
    turn = tl.atomic_add(turn_ptr, 0)
    while turn != ticket:
        tl.debug_barrier()
        turn = tl.atomic_add(turn_ptr, 0)
    tl.store(total_ptr, tl.load(total_ptr) + 1.0)
    tl.atomic_add(turn_ptr, 1)


@triton.jit
def waits_for_the_last_kernel(flag_ptr):
    program = tl.program_id(0)
    if program == tl.num_programs(0) - 1:
        tl.atomic_xchg(flag_ptr, 1)
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass


@triton.jit
def flag_kernel(x_ptr, flag_ptr, y_ptr, ATOMIC: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(x_ptr, 42.0)
        if ATOMIC:
            tl.atomic_xchg(flag_ptr, 1)
        else:
            tl.store(flag_ptr, 1)
    else:
        if ATOMIC:
            while tl.atomic_add(flag_ptr, 0) == 0:
                pass
        else:
            while tl.load(flag_ptr, volatile=True) == 0:
                pass
        tl.store(y_ptr, tl.load(x_ptr))


@triton.jit
def gives_up_kernel(lock_ptr, tries_ptr, TRIES: tl.constexpr):
    program = tl.program_id(0)
    tries = 0
    while (tl.atomic_cas(lock_ptr, 0, 1) == 1) & (tries < TRIES):
        tries += 1
    tl.store(tries_ptr + program, tries)


@triton.jit
def rereads_kernel(x_ptr, y_ptr, TURNS: tl.constexpr):
    total = 0.0
    for _ in range(TURNS):
        total += tl.load(x_ptr)
    tl.store(y_ptr + tl.program_id(0), total)


@triton.jit
def two_locks_kernel(lock_ptr, meet_ptr):
    mine = tl.program_id(0)
    while tl.atomic_cas(lock_ptr + mine, 0, 1) == 1:
        pass
    tl.atomic_add(meet_ptr, 1)
    while tl.atomic_add(meet_ptr, 0) < 2:
        pass
    while tl.atomic_cas(lock_ptr + 1 - mine, 0, 1) == 1:
        pass


@pytest.mark.parametrize("seed", range(5))
def test_a_lock_that_is_never_released_is_a_deadlock_that_names_its_holder(seed):
    result = run(never_released_kernel, (5,), locks(4), seed=seed, resident=3)
    (holder,) = result.finished
    waits = result.deadlock.waits
    assert len(waits) == 3 and len(result.deadlock.not_started) == 1 and not result.complete
    for wait in waits:
        assert wait.holder.program == holder and wait.holder.changed and wait.step.program != holder
        assert (
            wait.step.line == line(never_released_kernel, "atomic_cas")
            and wait.where == "lock_ptr[2]"
        )
        assert (
            f"program {holder} changed it last" in wait.message and "has finished" in wait.message
        )
    told = result.deadlock.message
    assert (
        waits[0].message[1:] in told
        and told.startswith("Deadlock in ")
        and "find the line that should change" in told
    )
    assert told.count(". ") <= 2 and len(told) <= 350
    assert len(result.steps) < 50 and not result.races


def test_a_lock_by_exchange_is_understood_too():
    total = zeros(1)
    assert (
        not run(exchange_lock_kernel, (4,), locks(), total, GIVE=True).findings
        and total.item() == 4
    )
    stuck = run(exchange_lock_kernel, (4,), locks(), total, GIVE=False)
    (holder,) = stuck.finished
    # not a spinner's exchange of 1 for 1
    assert {wait.holder.program for wait in stuck.deadlock.waits} == {holder}


@pytest.mark.parametrize("seed", range(10))
def test_waiting_on_earlier_tickets_ends_in_any_order(seed):
    total = zeros(1)
    result = run(ticket_kernel, (7,), locks(), locks(), total, seed=seed, resident=1 + seed % 4)
    assert result.complete and not result.findings and total.item() == 7


def test_waiting_for_a_program_that_has_no_slot_is_a_deadlock():
    stuck = next(
        s
        for s in (
            run(waits_for_the_last_kernel, (6,), locks(), seed=n, resident=2) for n in range(9)
        )
        if s.deadlock
    )
    assert 5 in stuck.deadlock.not_started and "cannot start" in stuck.deadlock.message
    assert all(
        wait.holder is None and "no program has changed" in wait.message
        for wait in stuck.deadlock.waits
    )
    assert run(waits_for_the_last_kernel, (6,), locks(), resident=6).complete


def test_locks_taken_crosswise_are_a_deadlock():
    result = run(two_locks_kernel, (2,), locks(2), locks())
    assert {(wait.step.program, wait.holder.program) for wait in result.deadlock.waits} == {
        (0, 1),
        (1, 0),
    }
    assert "waits too" in result.deadlock.message


@pytest.mark.parametrize("atomic", [True, False], ids=["atomic", "plain"])
def test_a_flag_has_to_be_atomic(atomic):
    y = zeros(1)
    found = explore(
        flag_kernel, (2,), lambda: [zeros(1), locks(), y], seeds=range(8), ATOMIC=atomic
    )
    assert y.item() == 42 and found.complete == 8
    if atomic:
        assert found.schedule is None
    else:
        assert {race.where for race in found.schedule.races} == {"flag_ptr[0]", "x_ptr[0]"}


def test_a_wait_that_gives_up_is_no_deadlock():
    tries = locks(3)
    result = run(gives_up_kernel, (3,), locks(), tries, TRIES=60)
    assert result.complete and not result.findings and sorted(tries.tolist()) == [0, 60, 60]


def test_patience_lets_a_long_wait_give_up_and_says_so():
    tries = locks(3)
    result = run(gives_up_kernel, (3,), locks(), tries, TRIES=700, patience=2000)
    assert result.complete and not result.findings and sorted(tries.tolist()) == [0, 700, 700]
    assert [given_up.tries for given_up in result.given_up] == [701, 701]
    first = result.given_up[0]
    assert (
        first.message
        == f"program {first.step.program} tried 701 times at line {first.step.line} (atomic_cas on"
        " lock_ptr[0]), never got it, and went on"
    )


def test_patience_costs_a_proved_wait_a_few_steps_and_changes_no_result():
    for seed in range(4):
        steps = []
        for patience in (0, 5000):
            x, total = torch.arange(30, dtype=torch.float32).reshape(6, 5), zeros(5)
            result = run(
                locked_sum_kernel, (6,), x, total, locks(), 5, BLOCK=8, seed=seed, patience=patience
            )
            assert result.complete and not result.findings and not result.given_up
            assert torch.equal(total, x.sum(dim=0))
            steps.append(len(result.steps))
        assert steps[1] < 2 * steps[0]


@triton.jit
def takes_turns_kernel(turn_ptr, total_ptr):
    program = tl.program_id(0)
    while tl.atomic_add(turn_ptr, 0) != program:  # it never changes the turn
        pass
    tl.store(total_ptr, tl.load(total_ptr) + 1)
    tl.atomic_xchg(turn_ptr, program + 1)


def test_a_wait_by_an_atomic_without_any_effect_is_not_given_up_when_it_is_over():
    for seed in range(8):
        total = zeros(1)
        result = run(takes_turns_kernel, (4,), locks(), total, seed=seed)
        assert result.complete and not result.findings and total.item() == 4
        assert all(given_up.tries == 1 for given_up in result.given_up)


@triton.jit
def looks_kernel(word_ptr, out_ptr, TRIES: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.atomic_xchg(word_ptr, 1, sem="relaxed")
    else:
        tries = 0
        word = tl.load(word_ptr, volatile=True)
        while (word == 0) & (tries < TRIES):
            word = tl.load(word_ptr, volatile=True)
            tries += 1
        tl.store(out_ptr + tl.program_id(0), word)


def test_a_wait_by_volatile_loads_gives_up_only_if_the_word_has_not_come():
    gave_up = {}
    for seed in range(12):
        out = locks(2)
        result = run(looks_kernel, (2,), locks(), out, seed=seed, patience=1000, TRIES=300)
        assert result.complete and not result.findings
        gave_up[seed] = [given_up.tries for given_up in result.given_up if given_up.tries > 1]
        assert gave_up[seed] == ([] if out[1] else [300])
    assert any(gave_up.values()) and not all(gave_up.values())


def test_reading_the_same_place_again_is_no_wait():
    y = zeros(2)
    assert run(rereads_kernel, (2,), torch.ones(1), y, TURNS=40).complete and y.tolist() == [40, 40]


def test_the_step_limit_says_what_it_is():
    result = run(rereads_kernel, (2,), torch.ones(1), zeros(2), TURNS=1000, max_steps=100)
    assert len(result.steps) == 100 and not result.complete and result.deadlock is None
    assert "max_steps" in result.limit and result.findings == (result.limit,)


@triton.jit
def goes_on_after_the_flag_kernel(x_ptr, flag_ptr, y_ptr):
    cols = tl.arange(0, 4)
    if tl.program_id(0) == 0:
        tl.store(x_ptr + 1 + cols, 42.0)
        tl.atomic_xchg(flag_ptr, 1)
        tl.store(x_ptr, 1.0)
        tl.store(x_ptr + 5, 1.0)
    else:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        tl.store(y_ptr + cols, tl.load(x_ptr + 1 + cols))


@triton.jit
def failed_cas_kernel(x_ptr, flag_ptr):
    if tl.program_id(0) == 0:
        tl.store(x_ptr, 1.0)
        tl.atomic_cas(flag_ptr, 0, 1)
    else:
        tl.atomic_cas(flag_ptr, 0, 1)
        tl.load(x_ptr)


@triton.jit
def store_or_add_kernel(x_ptr):
    if tl.program_id(0) == 0:
        tl.store(x_ptr, 1.0)
    else:
        tl.atomic_add(x_ptr, 1.0)


@triton.jit
def block_or_byte_kernel(y_ptr, at, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(y_ptr + tl.arange(0, BLOCK), 1)
    else:
        tl.store(y_ptr + at, 1)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_program_does_after_its_release_leaves_what_it_did_before_ordered(seed):
    y = zeros(4)
    assert not run(goes_on_after_the_flag_kernel, (2,), zeros(6), locks(), y, seed=seed).races
    assert y.tolist() == [42] * 4


@pytest.mark.parametrize("seed", range(6))
def test_a_failed_compare_and_swap_releases_nothing(seed):
    assert run(failed_cas_kernel, (2,), zeros(1), torch.ones(1, dtype=torch.int32), seed=seed).races


@pytest.mark.parametrize("seed", range(6))
def test_a_store_races_with_an_atomic_whichever_is_first(seed):
    assert run(store_or_add_kernel, (2,), zeros(1), seed=seed).races


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_no_byte_is_lost_where_memory_pages_meet(beside):
    y = zeros(16384, dtype=torch.int8)
    edge = -y.data_ptr() % 4096 + 4096 + beside
    for seed in range(4):
        assert (
            run(block_or_byte_kernel, (2,), y, edge, BLOCK=16384, seed=seed).races[0].where
            == f"y_ptr[{edge}]"
        )


# ---- repeating, and ending -----------------------------------------------------------------------


@triton.jit
def names_kernel(y_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.debug_barrier()
    tl.store(y_ptr + slot, tl.program_id(0) * 100 + tl.program_id(1) * 10 + tl.program_id(2))


@triton.jit
def failing_kernel(y_ptr, lock_ptr):
    program = tl.program_id(0)
    tl.store(y_ptr + program, 1.0)
    if program == 2:
        tl.static_assert(False, "from inside")
    while tl.atomic_add(lock_ptr, 0) == 0:
        pass


@triton.jit
def add_one(at_ptr):
    tl.store(at_ptr, tl.load(at_ptr) + 1.0)


@triton.jit
def calls_a_function_kernel(total_ptr):
    add_one(total_ptr)


def test_a_seed_repeats_its_schedule_and_its_bits():
    def once(seed: int):
        y = zeros(1)
        result = run(racy_sum_kernel, (8,), y, seed=seed)
        return (
            [(s.program, s.kind, s.line) for s in result.steps],
            y.item(),
            result.started,
            result.finished,
        )

    seen = [once(seed) for seed in range(8)]
    assert seen == [once(seed) for seed in range(8)]
    assert len({str(order) for order, *_ in seen}) == 8
    # a GPU promises no order of starting
    assert len({tuple(started) for _, _, started, _ in seen}) > 4


def test_no_more_programs_than_slots():
    result = run(racy_sum_kernel, (12,), zeros(1), resident=3)
    steps = [step.program for step in result.steps]
    for i in range(len(steps)):
        assert len(set(steps[: i + 1]) & set(steps[i:])) <= 3


def test_program_ids_survive_the_switches_on_a_grid_of_three_dimensions():
    y = locks(24)
    result = run(names_kernel, lambda meta: (2, 3, 4), y, seed=5)
    assert y.tolist() == [
        100 * a + 10 * b + c for a in range(2) for b in range(3) for c in range(4)
    ]
    assert result.name(23) == "program (1, 2, 3)" and result.complete


@pytest.mark.parametrize("resident", [1, 8])
def test_a_kernel_that_raises(resident):
    with pytest.raises(triton.runtime.errors.InterpreterError, match="from inside") as raised:
        # with one slot nobody may wait for program 2: the flag is up
        flag = torch.ones(1, dtype=torch.int32) if resident == 1 else locks()
        run(failing_kernel, (4,), zeros(4), flag, seed=2, resident=resident)
    assert isinstance(raised.value.__cause__, AssertionError)
    assert "program 2 of failing_kernel, seed 2" in raised.value.__notes__[0]
    total = zeros(1)
    calls_a_function_kernel[(3,)](total)  # the interpreter is as it was
    assert total.item() == 3


@triton.jit
def endless_kernel(y_ptr):
    i = 0
    while tl.program_id(0) >= 0:
        i += 1
    tl.store(y_ptr, i)


@pytest.mark.parametrize("kernel", [rereads_kernel, endless_kernel])
def test_an_interrupt_ends_a_run_also_where_no_memory_is_used(kernel):
    arguments = (torch.ones(1), zeros(4)) if kernel is rereads_kernel else (zeros(1),)
    options = {"TURNS": 10**6} if kernel is rereads_kernel else {}
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(KeyboardInterrupt):
        run(kernel, (4,), *arguments, **options)
    total = zeros(1)
    calls_a_function_kernel[(3,)](total)  # the interpreter is as it was
    assert total.item() == 3


@triton.jit
def load_twice(x_ptr, PAIR: tl.constexpr):
    return tl.load(x_ptr) + (tl.load(x_ptr + 1) if PAIR else 0.0)


@triton.jit
def operands_kernel(x_ptr, y_ptr, N):
    row = tl.program_id(0)
    if row < N and tl.load(x_ptr) > 0.0:
        value = load_twice(x_ptr, True) if not (tl.load(x_ptr) < 0.0 or row < 0) else 0.0
        for i in range(tl.load(x_ptr).to(tl.int32), tl.cdiv(N, 2) + 1):
            value += tl.load(x_ptr + tl.load(x_ptr + i).to(tl.int32))
        tl.store(y_ptr + row, value)


def test_programs_change_wherever_memory_is_used():
    """In an operand of ``and``, ``or`` and a conditional expression, in a bound of a loop, in an
    address and in a helper."""
    x, y = torch.tensor([1.0, 2.0, 3.0, 0.0]), zeros(3)
    sequential = zeros(3)
    operands_kernel[(3,)](x, sequential, 3)
    turns = [0, 1, 2] * 50
    steps = run(operands_kernel, (3,), x, y, 3, resident=3, order=turns).steps
    assert [step.program for step in steps] == turns[: len(steps)]
    assert y.tolist() == sequential.tolist()


@triton.jit
def nothing_kernel(x_ptr):
    pass


def test_a_kernel_without_a_call():
    assert run(nothing_kernel, (3,), zeros(1)).complete


def test_a_line_inside_a_function_that_the_kernel_calls():
    race = run(calls_a_function_kernel, (2,), zeros(1)).races[0]
    assert race.first.line == race.second.line == line(add_one, "tl.store")


def test_an_empty_grid():
    assert run(racy_sum_kernel, (0,), zeros(1)).complete


def test_what_cannot_be_run_is_refused_in_words():
    with pytest.raises(CourseError, match="interpreted kernel"):
        run(racy_sum_kernel.fn, (1,), zeros(1))
    with pytest.raises(CourseError, match="at least one"):
        run(racy_sum_kernel, (1,), zeros(1), resident=0)
    with pytest.raises(CourseError, match=r"\.cpu\(\)"):
        run(racy_sum_kernel, (1,), torch.zeros(1, device="meta"))
    with pytest.raises(CourseError, match="read="):
        explore(racy_sum_kernel, (0,), lambda: [1])


@triton.jit
def waits_for_the_next_kernel(done_ptr, y_ptr, last, PROGRAMS: tl.constexpr):
    """Each program waits until program + 1 is done, and program ``last`` for nobody."""
    program = tl.program_id(0)
    if program != last:
        while tl.atomic_add(done_ptr + program + 1, 0) == 0:
            pass
    tl.store(y_ptr + program, program + 1)
    tl.debug_barrier()
    tl.atomic_xchg(done_ptr + program, 1)


waits_for_the_next_kernel.resident_programs = "PROGRAMS"


def test_an_ordinary_launch_interleaves_the_programs_of_a_kernel_that_asks_for_it():
    y = zeros(4)
    waits_for_the_next_kernel[(4,)](locks(5), y, 3, PROGRAMS=4, num_warps=4)
    assert y.tolist() == [1, 2, 3, 4]


def test_an_ordinary_launch_whose_programs_wait_forever_ends_in_words():
    with pytest.raises(InterpreterError, match="Deadlock in waits_for_the_next_kernel"):
        waits_for_the_next_kernel[(4,)](locks(5), zeros(4), -1, PROGRAMS=4)


def test_it_runs_on_bare_memory_without_pytorch(tmp_path):
    (tmp_path / "kernels.py").write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(y_ptr, n):\n   "
        " tl.store(y_ptr, tl.load(y_ptr) + n)\n"
    )
    (tmp_path / "main.py").write_text(
        "import sys, numpy as np\nimport course_lib, kernels\nfrom course_lib.interpreter import"
        " launch, schedule\ny = np.zeros(4, np.float32)\nfound = schedule.explore(kernels.k, (4,),"
        " lambda: [y.fill(0), launch.pointer(y.ctypes.data, 'fp32'), launch.integer(2)][1:],\n     "
        "                    read=lambda _: y.tobytes())\nprint(len(found.schedule.races),"
        " found.differing is not None, 'torch' in sys.modules)\n"
    )
    environment = {**os.environ, "COURSE_DEVICE": "cpu", "PYTHONPATH": f"{paths.ROOT}:{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["3", "True", "False"], done.stderr


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), resident=st.integers(1, 6), m=st.integers(1, 7), n=st.integers(1, 9)
)
def test_a_kernel_without_races_gives_the_sequential_result(seed, resident, m, n):
    x = torch.arange(m * n, dtype=torch.float32)  # small integers: any order of adding is exact
    one_by_one, interleaved = zeros(n), zeros(n)
    locked_sum_kernel[(m,)](x, one_by_one, locks(), n, BLOCK=16)
    result = run(
        locked_sum_kernel, (m,), x, interleaved, locks(), n, BLOCK=16, seed=seed, resident=resident
    )
    assert not result.findings and torch.equal(one_by_one, interleaved)


@settings(max_examples=15, deadline=None)
@given(order=st.lists(st.integers(0, 2), max_size=12), seed=st.integers(0, 9))
def test_the_first_steps_are_made_in_the_order_given(order, seed):
    n = 3
    result = run(
        locked_sum_kernel,
        (3,),
        torch.ones(3 * n),
        zeros(n),
        locks(),
        n,
        BLOCK=4,
        seed=seed,
        order=order,
    )
    again = run(
        locked_sum_kernel,
        (3,),
        torch.ones(3 * n),
        zeros(n),
        locks(),
        n,
        BLOCK=4,
        order=[s.program for s in result.steps],
    )
    assert result.complete and [step[:3] for step in result.steps] == [
        step[:3] for step in again.steps
    ]
    done = set()  # who is done is passed over
    left = [sum(step.program == p for step in result.steps) for p in range(3)]
    for wanted, step in zip(order, result.steps, strict=False):
        assert step.program == wanted or wanted in done
        left[step.program] -= 1
        done |= {p for p in range(3) if not left[p]}


@triton.jit
def two_buffers_kernel(x_ptr, y_ptr):
    program = tl.program_id(0)
    tl.store(x_ptr + program, 1.0)
    tl.store(y_ptr, tl.load(y_ptr) + 1.0)


def test_a_race_has_the_same_words_wherever_the_tensors_lie():
    """One page of memory may hold both tensors, or each may have its own."""
    said = set()
    for apart in (16, 8192):
        memory = zeros(16384)
        memory = memory[-memory.data_ptr() % 4096 // 4 :]
        for seed in range(12):
            memory.zero_()
            found = run(two_buffers_kernel, (6,), memory, memory[apart:], seed=seed)
            said.add((seed, tuple(race.message for race in found.races)))
    assert len(said) == 12
