# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 Backward: dw and db
#
# `dx` asks nothing of its neighbours: each row has its own. `dw` and `db` are one vector for the whole matrix, and every row has a say in
# them. For the first time in this course programs write to the same memory. This lesson is about what can happen then, and about three
# designs, of which the most famous is the slowest.
#
# **You will be able to**
#
# - say what a race and a deadlock are, find both on a laptop, and read the two lines that make them;
# - repair a spin lock, and say which of its parts no test run can check;
# - add up columns over rows without a lock, in two stages and in one persistent kernel;
# - test whether a kernel gives the same bits in every order of its programs.
#
# **You need** lessons 02 and 08 with exercise 08a, and exercise 04a.
#
# **Time** about 155 minutes: 50 to read and run, 30 for exercise 09a, 35 for 09b, 40 for 09c.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import re

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import interleaved, picture, schedule_explorer
from course_lib.norms import reference

# %% [markdown]
# ## A sum down the columns
#
# Lesson 02 derived both gradients. With `xhat` from the forward pass,
#
# $$dw_j = \sum_{r} dy_{rj}\, \hat{x}_{rj} \qquad\qquad db_j = \sum_{r} dy_{rj}$$
#
# and both sums run over the rows. Take the worked example, 3 rows of 8, and a `dy` of ones. What is `db`, and what is `dw` if you add the
# elements of `dw` up? *(Predict, then run.)*

# %%
x = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)
forward = reference.layer_norm(x)
xhat = (x - forward.mean[:, None]) * forward.rstd[:, None]
dw, db = xhat.sum(axis=0), np.ones_like(x).sum(axis=0)  # dy is 1 everywhere
want = reference.layer_norm_vjp(np.ones_like(x), x)

print(f"db = {db}\ndw = {dw.round(2)}, all together {dw.sum():.1e}")
assert np.allclose(dw, want.dw, rtol=0, atol=1e-12) and np.array_equal(db, want.db) and (db == 3).all()
assert abs(dw.sum()) < 1e-12  # every row of xhat adds up to 0

# %% [markdown]
# `db` counts the rows, and `dw` adds up to 0, because each row of xhat does. (Lesson 02's erratum: derivation notes in print have `x` in
# place of xhat, and forget the sum over the rows.)
#
# In NumPy that is one line. In lesson 08 each row, or tile of rows, belongs to a program, and `dw[j]` needs all of them. A program cannot
# hand a number to another program. Memory is all they share.
#
# ## Everybody adds
#
# Let each program add its row to `dw` in memory. To see who was there, row r brings 10 to the power r: row 0 brings 1, row 1 brings 10,
# row 2 brings 100. If all four have their say, `dw` is 1111.


# %%
@triton.jit
def everybody_adds_kernel(part_ptr, dw_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    part = tl.load(part_ptr + tl.program_id(0) * N + cols, mask=mask, other=0.0)  # the row's dy * xhat
    dw = tl.load(dw_ptr + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw + part, mask=mask)


M, N = 4, 4
part = (10.0 ** torch.arange(M)[:, None]).expand(M, N).contiguous().to(DEVICE)
launch = ((M,), part, torch.zeros(N, device=DEVICE), N)
runs = interleaved(everybody_adds_kernel, *launch, BLOCK=4, resident=1)
print([int(run.result("dw")[0]) for run in runs])
assert all((run.result("dw") == 1111).all() for run in runs)

# %% [markdown]
# `interleaved` runs a kernel in the interpreter, once for each seed, on copies of your tensors. The seed draws which program makes the
# next step. With `resident=1` there is only ever one program that has begun and not ended, and ten runs give 1111 ten times. That is how
# the interpreter runs kernels if you do not ask otherwise, and how most tests of such kernels pass.
#
# A GPU has room for hundreds of programs at a time. Let all four be under way at once. Which values can `dw` take? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
runs = interleaved(everybody_adds_kernel, *launch, BLOCK=4, seeds=range(20))
totals = [int(run.result("dw")[0]) for run in runs]
print("values:", sorted(set(totals)))
print(f"{totals.count(1111)} of {len(totals)} orders are right; race found in {sum(bool(run.races) for run in runs)}")
assert set("".join(map(str, totals))) <= set("01") and totals.count(1111) < 10
assert all(run.races for run in runs)

# %% [markdown]
# Digits are missing, and with them rows. Two programs load the same `dw`, each adds its own part, and the second to store wipes out the
# first. That is a **race**: two programs touch the same bytes, at least one of them writes, and nothing orders them.
#
# Look at the two counts again. Some runs are right by luck. The race is found in every one of them, also in those, because the scheduler
# does not compare values. It asks of each pair of accesses whether something ordered them. What it found, with both lines:

# %%
lucky = next((run for run in runs if (run.result("dw") == 1111).all()), runs[0])
for race in lucky.races:
    print(race.message)
assert {lucky.operations[i].kind for race in lucky.races for i in (race.first, race.second)} == {"load", "store"}

# %% [markdown]
# ## One at a time
#
# Two ways out. `tl.atomic_add` adds in one piece, so nobody can come between load and store. And a **lock** lets one program at a time
# into a stretch of code.
#
# The Triton tutorial takes locks, and enough of them that the programs do not all queue at one: GROUP buffers with a lock each, and row r
# adds into buffer r % GROUP. (It calls GROUP `GROUP_SIZE_M`.) A second kernel adds up the buffers.

# %%
from course_lib.lessons.figures import lesson09

picture(
    lesson09.shared_buffers(4, 2),
    alt="Four programs with a row each, two buffers, one sum. Rows 0 and 2 add into buffer 0, rows 1 and 3 into buffer 1; the two buffers "
    "are then added into dw.",
)

# %% [markdown]
# `tl.atomic_cas(lock, 0, 1)`, compare and swap, looks at the lock and, if it holds 0, sets it to 1, in one piece. It returns what it saw.
# So 0 means: the lock was free, and now it is mine. A program that sees 1 tries again. `tl.atomic_xchg(lock, 0)` gives the lock back.
#
# The buffers are not zeroed before the launch; that would cost a sweep over them. A flag beside each lock says whether anybody has
# written to the buffer. The first to come stores, the others add. Everything between taking and giving back is done by one program at a
# time:


# %%
@triton.jit
def locked_kernel(part_ptr, buffer_ptr, lock_ptr, N, GROUP: tl.constexpr, BARRIER: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    part = tl.load(part_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    group = row % GROUP
    buffer = buffer_ptr + group * N + cols
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    if tl.load(lock_ptr + GROUP + group) == 0:  # the flag: nobody has written yet
        tl.store(lock_ptr + GROUP + group, 1)
    else:
        part += tl.load(buffer, mask=mask, other=0.0).to(tl.float32)
    tl.store(buffer, part.to(buffer_ptr.dtype.element_ty), mask=mask)
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


def scratch(GROUP: int, N: int, dtype=torch.float32, left: float = float("nan")) -> tuple[torch.Tensor, torch.Tensor]:
    """GROUP buffers that hold ``left``, and GROUP locks and flags, all 0."""
    return torch.full((GROUP, N), left, dtype=dtype, device=DEVICE), torch.zeros(
        2 * GROUP, dtype=torch.int32, device=DEVICE
    )


# %% [markdown]
# The buffers start as NaN here, so that a sum with what stood there before would show. Four rows, two buffers. What do the buffers hold
# at the end, in which of the 20 orders? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
locked = ((M,), part, *scratch(2, N), N)
runs = interleaved(locked_kernel, *locked, GROUP=2, BARRIER=True, BLOCK=4, seeds=range(20))
held = {tuple(run.result("buffer")[:, 0].astype(int).tolist()) for run in runs}
print("buffers:", held, "\nfindings:", sum(len(run.findings) for run in runs))
assert held == {(101, 1010)} and not any(run.findings for run in runs)

# %% [markdown]
# 101 and 1010 in every order: rows 0 and 2, rows 1 and 3, as in the picture. No finding. This is the tutorial's design with its mistakes
# mended. Now take the parts away, one after another.
#
# ### The lock is never given back
#
# Which programs come to their end, and what do the others do? *(Predict, then run.)*


# %%
@triton.jit
def wrong_release_kernel(
    part_ptr, buffer_ptr, lock_ptr, N, GROUP: tl.constexpr, EARLY: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    part = tl.load(part_ptr + row * N + cols, mask=mask, other=0.0)
    group = row % GROUP
    buffer = buffer_ptr + group * N + cols
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    if tl.load(lock_ptr + GROUP + group) == 0:
        tl.store(lock_ptr + GROUP + group, 1)
    else:
        part += tl.load(buffer, mask=mask, other=0.0)
    if EARLY:
        tl.atomic_xchg(lock_ptr + group, 0)  # wrong: the store below is outside. Without EARLY nobody gives it back
    tl.store(buffer, part, mask=mask)


runs = interleaved(wrong_release_kernel, *locked, GROUP=2, EARLY=False, BLOCK=4)
print(runs[0].deadlock)
for run in runs:
    assert run.deadlock and len(run.finished) == 2 and len(run.waits) == 2 and not run.races
    assert {program % 2 for program in run.finished} == {0, 1}  # the first to come at each of the two locks

# %% [markdown]
# The first program at each lock finishes, and takes the lock with it. The other waits for somebody who is gone: a **deadlock**. On a GPU
# the launch would never end and nothing would say why. The scheduler can *prove* it: the waiting program comes back to the same operation
# with the same variables, nobody has touched what it reads, and nobody is left who could.
#
# ### The lock is given back too early
#
# Now `EARLY=True`: the release stands one line above the store. Only one line is outside the lock. In how many of 40 orders will the
# buffers be wrong? In how many will the race be found? *(Predict, then run.)*

# %%
runs = interleaved(wrong_release_kernel, *locked, GROUP=2, EARLY=True, BLOCK=4, seeds=range(40))
right = [np.array_equal(run.result("buffer")[:, 0], (101, 1010)) for run in runs]
raced = [bool(run.races) for run in runs]
print(
    f"right sums {sum(right)} of {len(runs)}; race found in {sum(raced)}; right and a race: {sum(map(np.logical_and, right, raced))}"
)
print(next(race.message for run in runs for race in run.races))
assert 0 < sum(right) < len(runs)
assert sum(raced) > len(runs) - sum(right) and all(found for ok, found in zip(right, raced, strict=True) if not ok)

# %% [markdown]
# Most orders give the right sums all the same, and a test that compares values would have to be lucky to fail. That is why this lesson's
# exercises are graded by what orders the accesses, and not by values alone.
#
# ### The barrier that no run can miss
#
# `locked_kernel` calls `tl.debug_barrier()` before it gives the lock back. Leave it out (`BARRIER=False`). What will 40 seeds find?
# *(Predict, then run.)*

# %%
runs = interleaved(locked_kernel, *locked, GROUP=2, BARRIER=False, BLOCK=4, seeds=range(40))
print(sum(len(run.findings) for run in runs), "findings")
assert not any(run.findings for run in runs) and {tuple(run.result("buffer")[:, 0]) for run in runs} == {
    (101.0, 1010.0)
}

# %% [markdown]
# Nothing: no order of the programs shows it, and it is better to know that than to trust a run. In a run a program does one operation after
# the other, each one whole. On a GPU a program is many threads: 128 for four warps, and each of them stores its own columns. The release,
# however, is one number, and **one** thread writes it. Nothing makes that thread wait until the others have stored.
#
# What the GPU is told stands in the compiled code, and that you can read without a GPU. Below is the end of it, from the last store to
# the buffer on: `st.global` is a store, `atom ... exch` the atomic exchange that gives the lock back, and `bar.sync` the place where all
# threads of the program wait for one another.

# %%
from course_lib.compiler import Pointer, compile_report


def ending(BARRIER: bool) -> list[str]:
    """The last store and the atomics and barriers after it, as the compiler wrote them."""
    arguments = [Pointer("fp32"), Pointer("fp32"), Pointer("int32"), 1024]
    constexprs = {"GROUP": 1, "BARRIER": BARRIER, "BLOCK": 1024}
    ptx = compile_report(locked_kernel, arguments, constexprs, num_warps=4, arch="sm_90", disassemble=False).ptx
    steps = re.findall(r"st\.global|bar\.sync|atom\.\S*(?:exch|cas)", ptx)
    return [
        re.sub(r"atom\..*\.", "atom ... ", step) for step in steps[len(steps) - 1 - steps[::-1].index("st.global") :]
    ]


for BARRIER in (True, False):
    print(f"BARRIER = {BARRIER!s:5}:  {'  ->  '.join(ending(BARRIER))}")
assert ending(True) == ["st.global", "bar.sync", "atom ... exch"]
assert ending(False) == ["st.global", "atom ... exch"]

# %% [markdown]
# Without the barrier a `st.global` is followed by the release at once, with no `bar.sync` between. The thread that releases may be done
# while another warp has yet to store. The next program then takes the lock, loads old columns, and stores a sum without this row.
#
# The check of exercise 09a finds it without a GPU all the same, because it does not go by what happened. It keeps account of what is
# ordered before what, for the one thread that does a single number's store or atomic and for all threads of a program apart. Nothing but
# a barrier carries the order from all of them to the one.
#
# > **ERRATUM** (Triton tutorial "Layer Normalization", as long published) There is no barrier before the release. tritonbench measured a
# > copy of that kernel and found dw and db corrupted once in a while (#1266).
#
# ### Buffers that nobody wrote
#
# GROUP is 256 for N up to 1024, by the tutorial's table. Take a batch of 3 rows and 8 buffers. Each row is the first of its buffer, and
# stores. What stands in the other five, and what comes of adding up all eight? *(Predict, then run.)*

# %%
buffers, locks = scratch(8, N, left=7.0)  # whatever stood in that memory before
from course_lib.kernels.launch import tables

assert tables.lock_group(1024) == 256
(run,) = interleaved(locked_kernel, (3,), part[:3], buffers, locks, N, GROUP=8, BARRIER=True, BLOCK=4, seeds=[0])
left = run.result("buffer")
every, written = left[:, 0].sum(), left[: min(3, 8), 0].sum()
print(f"column 0 of the buffers: {left[:, 0]}\nall eight {every:.0f}, the first min(M, GROUP) {written:.0f}")
assert written == 111 and every == 111 + 5 * 7

# %% [markdown]
# > **ERRATUM** (Triton tutorial, English edition, as captured) Buffers are allocated uninitialised, and stage two adds up all
# > GROUP_SIZE_M of them, also when M is smaller. The Chinese edition zeroes them and passes min(GROUP_SIZE_M, M). Fresh GPU memory is often
# > 0, so the bug waits for a process that has used the memory before.
#
# ### Buffers in half precision
#
# The tutorial's buffers have the dtype of `w`. In fp16, each addition into a buffer rounds to 11 bits. Add up rows for three shapes, with
# the tutorial's GROUP: its own test (1151 rows, 96 buffers), 4096 rows in 128, and 32768 rows in 256. `dw` is rounded to fp16 at the end
# either way. How much larger is the error with fp16 buffers? *(Predict, then run.)*


# %%
def error(M: int, GROUP: int, dtype: type, columns: int = 96) -> float:
    """Root-mean-square error of dw in fp16, its parts added into GROUP buffers of ``dtype`` row by row."""
    rng = np.random.default_rng(0)
    parts = (0.1 * rng.standard_normal((M, columns)) * rng.standard_normal((M, columns))).astype(np.float32)
    buffers = np.zeros((GROUP, columns), dtype)
    for first in range(0, M, GROUP):
        rows = parts[first : first + GROUP]
        buffers[: len(rows)] = (buffers[: len(rows)].astype(np.float32) + rows).astype(dtype)
    dw = buffers.astype(np.float32).sum(axis=0).astype(np.float16)
    return float(np.sqrt(((dw - parts.sum(axis=0, dtype=np.float64)) ** 2).mean()))


times = {}
for M_rows, GROUP in ((1151, 96), (4096, 128), (32768, 256)):
    times[M_rows] = error(M_rows, GROUP, np.float16) / error(M_rows, GROUP, np.float32)
    print(
        f"{M_rows:6} rows, {M_rows / GROUP:5.0f} a buffer: fp16 buffers {times[M_rows]:.1f} times the error of fp32 buffers"
    )
assert [round(value) for value in times.values()] == [2, 4, 9]

# %% [markdown]
# Twice, four times, nine times: it grows with the rows that share a buffer.
#
# > **ERRATUM** (Triton tutorial, both editions) Partial sums are kept in the weights' dtype: in fp16 about five times the error of fp32
# > partial sums, more or less by shape. Its test, with a tolerance of 1e-2, does not see it. Keep them in fp32 and round once, at the end.
#
# ## The same bits twice?
#
# Repair all of that, and one thing is left. Six rows of ordinary numbers, one buffer, 20 orders, no race. How many different results are
# there, bit for bit? And with `tl.atomic_add`, which needs no lock? *(Predict, then run.)*


# %%
@triton.jit
def atomic_kernel(part_ptr, dw_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + tl.program_id(0) * N + cols, mask=cols < N, other=0.0)
    tl.atomic_add(dw_ptr + cols, part, mask=cols < N)


def results(runs, *names: str) -> set[bytes]:
    """The different results of ``runs``, bit by bit."""
    assert all(run.complete and not run.findings for run in runs)
    return {b"".join(run.result(name).tobytes() for name in names) for run in runs}


generator = torch.Generator().manual_seed(0)
parts = torch.randn(6, 16, generator=generator).to(DEVICE)
by_lock = interleaved(locked_kernel, (6,), parts, *scratch(1, 16), 16, GROUP=1, BARRIER=True, BLOCK=16, seeds=range(20))
by_atomic = interleaved(atomic_kernel, (6,), parts, torch.zeros(16, device=DEVICE), 16, BLOCK=16, seeds=range(20))
spread = np.ptp([run.result("buffer") for run in by_lock], axis=0).max()
print(
    f"lock: {len(results(by_lock, 'buffer'))} different results of 20, {spread:.0e} apart; atomic_add: {len(results(by_atomic, 'dw'))}"
)
assert len(results(by_lock, "buffer")) > 5 and len(results(by_atomic, "dw")) > 5
assert 0 < spread < 1e-5

# %% [markdown]
# Addition of floating-point numbers is not associative. (a + b) + c and a + (b + c) round differently, and whoever comes first decides
# which it is. No result is wrong: they lie a few units of 2⁻²⁴ apart. But train twice from the same seed, and the two models drift apart;
# a loss that rose overnight cannot be run again. A lock cannot mend that, because waiting is not taking turns.
#
# The function `results` above is the test: many orders, one set of bits. You will want a 1 there.
#
# ## Watch it happen
#
# Each lane is a program, each letter an operation in the order in which they happened. Below are the locks (the first GROUP integers),
# the flags (the others) and the buffers. Start with "released early", seed 0, and press Step until the first thick edges: two operations
# that nothing orders. Then choose the kernel that is right, and look for a program that waits: for which lock, and who has it? `09a, your
# file` is the kernel of the exercise below, as your file stands at the moment of the choice.

# %%
from course_lib.lessons.schedule.widget import ScheduleLaunch, learners_file

buffers, locks = scratch(2, N)
dy = torch.ones(M, N, device=DEVICE)
zeros, ones = torch.zeros(M, device=DEVICE), torch.ones(M, device=DEVICE)
yours = (
    dy,
    part,
    zeros,
    ones,
    buffers,
    torch.full_like(buffers, float("nan")),
    locks,
    N,
    1,
    N,
    N,
)  # xhat is part, so dw is as above
explorer = schedule_explorer(
    {
        "released early": ScheduleLaunch(
            wrong_release_kernel, (M,), locked[1:], {"GROUP": 2, "EARLY": True, "BLOCK": 4}
        ),
        "never released": ScheduleLaunch(
            wrong_release_kernel, (M,), locked[1:], {"GROUP": 2, "EARLY": False, "BLOCK": 4}
        ),
        "right": ScheduleLaunch(locked_kernel, (M,), locked[1:], {"GROUP": 2, "BARRIER": True, "BLOCK": 4}),
        "no lock": ScheduleLaunch(everybody_adds_kernel, (M,), launch[1:], {"BLOCK": 4}),
        "09a, your file": ScheduleLaunch(learners_file("09a"), (M,), yours, {"GROUP": 2, "BLOCK": 4}),
    }
)
explorer

# %%
from course_lib.lessons.schedule.model import frames

run = next(run for run in interleaved(wrong_release_kernel, *locked, GROUP=2, EARLY=True, BLOCK=4) if run.races)
shown = frames(run)
first, second, race = shown[-1].races[0]
print(f"seed {run.seed}: operations {first} and {second} of {len(shown) - 1} meet on {race.where}")
assert first < second and shown[second].races and not shown[second - 1].races

# %% [markdown]
# ## Exercise 09a: repair the lock
#
# The kernel as somebody might bring it to you: it runs, and most of the time it is right. Three orders of lines are wrong, the barrier is
# missing, and the second kernel adds up too much. Repair one thing at a time and check in between.

# %%
exercise("09a")

# %% [markdown]
# ## Is it worth it?
#
# The tutorial says that rows which share a buffer stay in the L2 cache, and that this makes the kernel fast. Here are six LayerNorm
# backward kernels. 1 is the time of one elementwise pass over x, dy and dx. Where do you expect the tutorial? *(Predict, then run.)*

# %%
print(lesson09.PEERS_DEVICE)
for columns, figures in lesson09.PEERS.items():
    print(f"N = {columns:5}  " + "  ".join(f"{name} {value:.2f}" for name, value in figures.items()))
slowest = {columns: max(figures, key=figures.get) for columns, figures in lesson09.PEERS.items()}
assert slowest[256] == slowest[1024] == "tutorial" and "tutorial" not in (slowest[4096], slowest[8192])

# %% [markdown]
# > **ERRATUM** (Triton tutorial) "What makes it fast" is not the shared buffers. For N up to 1024 it is the slowest of the six; the fast
# > ones take no locks.
#
# Short rows mean many programs, and every one of them queues for a lock, does two round trips to memory while it holds it, and leaves. At
# N = 8192 there are few rows, and the queue is short.
#
# ## Two stages, nobody waits
#
# Why share a buffer at all? Cut the rows into chunks and give **each chunk a buffer of its own**. A program takes some columns of a
# chunk, walks down its rows, and keeps the sums in registers; at the end it stores one row of partial sums, in the place that is its own.
# A second kernel adds up the few rows of partial sums. Nobody writes where anybody else does.
#
# Here is the course's kernel, on 10 rows in 2 chunks of 5. How many different results do 20 orders give? And what if the chunks have 4
# rows instead? *(Predict, then run.)*

# %%
from course_lib.kernels.norm_backward import norm_column_partials_kernel

M, N = 10, 40
x_dev, dy_dev = (torch.randn(M, N, generator=generator).to(DEVICE) for _ in range(2))
saved = reference.layer_norm(x_dev)
mean, rstd = (torch.tensor(values, dtype=torch.float32, device=DEVICE) for values in (saved.mean, saved.rstd))
want = reference.layer_norm_vjp(dy_dev, x_dev)


def two_stage(rows_a_chunk: int, **options) -> list:
    chunks = -(-M // rows_a_chunk)
    partial = torch.full((2, chunks, N), float("nan"), device=DEVICE)
    arguments = (dy_dev, x_dev, mean, rstd, partial[0], partial[1], N, 1, N, 1, M, N, rows_a_chunk)
    return interleaved(
        norm_column_partials_kernel, (2, chunks), *arguments, CENTRED=True, BLOCK_M=2, BLOCK_N=32, **options
    )


of_five, of_four = two_stage(5, seeds=range(20)), two_stage(4, seeds=range(3))
dw_five, dw_four = (runs[0].result("dw_partial").sum(axis=0) for runs in (of_five, of_four))
print(
    f"{len(results(of_five, 'dw_partial', 'db_partial'))} result of 20 orders; other chunks: {abs(dw_five - dw_four).max():.0e} apart"
)
assert len(results(of_five, "dw_partial", "db_partial")) == len(results(of_four, "dw_partial", "db_partial")) == 1
assert np.allclose(dw_five, want.dw, atol=1e-5) and 0 < abs(dw_five - dw_four).max() < 1e-5

# %% [markdown]
# One. There is nothing left to arrive first. The bits still depend on how the rows are cut: a sum in another order is another sum. So the
# cut may depend on the shape, and must not depend on timing, on a tuner, or on what else runs on the GPU.
#
# The price: `dx` has read x and dy already, in its own kernel. Now they are read again. How many times M N elements move in all?
# *(Predict, then run.)*

# %% tags=["nbval-check-output"]
dx_kernel = {"dy read": 1, "x read": 1, "dx written": 1}
partials_kernel = {"dy read": 1, "x read": 1}
passes = sum(dx_kernel.values()) + sum(partials_kernel.values())
print(f"two stages: {passes} M N, at best {passes / 3:.2f} times the least that is possible")
assert passes == 5

# %% [markdown]
# ## Exercise 09b: two stages
#
# Two kernels. In the first, ask of every row whether it belongs to this chunk *and* whether it exists: they are two questions.

# %%
exercise("09b")

# %% [markdown]
# ## Read once
#
# 3 M N needs `dx`, `dw` and `db` from one read. A tile of rows is in registers for `dx` anyway; its part of dw and db is two more lines.
# Only, one partial row for each tile would be as much to write as `dx` itself. So let a program do **many tiles**: a grid of P programs
# that fits the GPU at once, each taking tiles p, p + P, p + 2 P, ... with dw and db in its registers all the while. At its end it stores
# one row of partial sums. It is called a **persistent** kernel: the programs stay, the work passes through them.
#
# The partial sums cost a write and a read of two fp32 rows a program: 16 P N bytes. An H100 has 132 multiprocessors. With one program on
# each, M = 4096, N = 8192 and fp16, how much is that beside 3 M N? *(Predict, then run.)*

# %%
P, rows_h100, columns_h100 = 132, 4096, 8192
least, extra = 3 * rows_h100 * columns_h100 * 2, 16 * P * columns_h100
row_each = 16 * rows_h100 * columns_h100  # a partial row for every row
print(
    f"{least / 1e6:.0f} MB and {extra / 1e6:.0f} MB more: {extra / least:.0%}; a partial row for every row: {row_each / least:.0%}"
)
assert round(least / 1e6) == 201 and round(100 * extra / least) == 9 and row_each > 2 * least

# %% [markdown]
# 9 %, and much of it never leaves the L2 cache. Had every row its own partial row in fp32, it would be more than twice the rest.
#
# Are the bits the same? The slot of a partial sum is the program's number, and which tiles it takes follows from M and P. Run the
# course's kernel in 20 orders, and with 3 programs instead of 2. *(Predict, then run.)*


# %%
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel


def persistent(P: int, **options) -> list:
    partial = torch.full((2, P, N), float("nan"), device=DEVICE)
    arguments = (
        dy_dev,
        x_dev,
        x_dev,
        mean,
        rstd,
        torch.full_like(x_dev, float("nan")),
        partial[0],
        partial[1],
        N,
        1,
        N,
        1,
        N,
        M,
        N,
    )
    constants = {"CENTRED": True, "HAS_W": False, "FULL": False, "ROWS": 2, "BLOCK": 64, "STAGES": 1}
    return interleaved(norm_backward_persistent_kernel, (P,), *arguments, **constants, **options)


two, three = persistent(2, seeds=range(20)), persistent(3, seeds=range(3))
dw_two, dw_three = (runs[0].result("dw_partial").sum(axis=0) for runs in (two, three))
of_two, of_three = (results(runs, "dx", "dw_partial", "db_partial") for runs in (two, three))
print(f"{len(of_two)} result of 20 orders; P = 3 instead of 2: dw {abs(dw_two - dw_three).max():.0e} apart")
assert len(of_two) == len(of_three) == 1
assert np.allclose(two[0].result("dx"), want.dx, atol=1e-5) and np.allclose(dw_two, want.dw, atol=1e-5)
assert 0 < abs(dw_two - dw_three).max() < 1e-5 and np.array_equal(two[0].result("dx"), three[0].result("dx"))

# %% [markdown]
# One, for a given P. `dx` has the same bits for any P, because no row looks at another. `dw` on a GPU with more multiprocessors may have
# other bits: the same machine repeats itself, two kinds of machine agree to rounding. A person who needs more fixes P, and pays.
#
# ### What must fit
#
# x, dy, dw and db of a tile in fp32, in registers, all at once. Where they do not fit, the compiler moves them to memory and back in
# every turn of the loop: a spill. Ask it, for the launches that the course uses.

# %%
for columns in (1024, 4096, 8192):
    settings = tables.persistent(columns)
    pointers = [Pointer("fp16")] * 3 + [Pointer("fp32")] * 2 + [Pointer("fp16")] + [Pointer("fp32")] * 2
    constants = {
        "CENTRED": True,
        "HAS_W": True,
        "FULL": True,
        "ROWS": settings.rows,
        "BLOCK": settings.block,
        "STAGES": settings.stages,
    }
    arguments = [*pointers, columns, 1, columns, 1, columns, 32768, columns]
    report = compile_report(
        norm_backward_persistent_kernel,
        arguments,
        constants,
        num_warps=settings.num_warps,
        arch="sm_90",
        disassemble=False,
    )
    print(
        f"N = {columns:5}: {settings.rows} row(s), {settings.num_warps:2} warps, {report.registers} registers a thread, "
        f"{report.spill_bytes} bytes spilled"
    )
    assert report.spill_bytes == 0

# %% [markdown]
# ### And the time?
#
# On this machine if it has a GPU, else on the one that the figure names. Bytes say: persistent near 1, two stages at 5/3, the lock near
# 1, too, since its buffers stay in the cache. Which of the three is wrong? *(Predict, then run.)*

# %%
from course_lib.bench import backward

measured = backward.latest((256, 1024, 4096, 8192))
chosen = [r for r in measured.rows if r["op"] == "layer_norm_backward" and r["N"] <= 8192]
picture(
    lesson09.designs(chosen, measured.label()),
    alt="Time of the LayerNorm backward pass over the time of an elementwise pass, by row length, for the lock, PyTorch, two stages and "
    f"the persistent kernel. {measured.label()}. The next cell prints the numbers.",
)

# %%
over = {(row["provider"], row["N"]): row["over_floor"] for row in chosen}
lengths = sorted({row["N"] for row in chosen})
print(measured.label(), "\n     N      locked   two-stage  persistent       torch")
for n in lengths:
    print(f"{n:6}" + "".join(f"{over[design, n]:12.2f}" for design in ("locked", "two-stage", "persistent", "torch")))
if not measured.live:  # a GPU that others use at the same time proves nothing
    assert all(
        over["persistent", n] < over["two-stage", n] and over["persistent", n] < over["locked", n] for n in lengths
    )
    assert all(over["locked", n] > over["torch", n] for n in lengths if n <= 1024)

# %% [markdown]
# The lock's bytes are few and its time is long. Bytes do not count waiting. The same kernels on this machine, against the reference:

# %%
from course_lib.kernels.layer_norm_backward import layer_norm_backward

for algorithm in ("locked", "two-stage", "persistent"):
    gradients = layer_norm_backward(dy_dev, x_dev, None, mean, rstd, algorithm=algorithm)
    worst = max(
        np.abs(reference.float64(got) - right).max()
        for got, right in zip(gradients, (want.dx, want.dw, want.db), strict=True)
    )
    print(f"{algorithm:10}: largest error {worst:.0e}")
    assert worst < 2e-5

# %% [markdown]
# ## Exercise 09c: the persistent kernel
#
# 08a in a loop, with two sums that outlive it. `dx`'s arithmetic is given.

# %%
exercise("09c")

# %% [markdown]
# ## Summary
#
# - A race is two accesses to the same bytes, one a write, with nothing that orders them. Right values in a run prove nothing.
# - A lock protects what stands between taking and giving back: the flag, the load, every store. Nothing that belongs there may stand
#   outside.
# - One thread gives the lock back for all. A barrier before it makes the others' stores come first. No order of the programs shows that
#   it is missing; PTX does, and so does an account of what orders the threads.
# - Buffers that nobody wrote hold anything. Partial sums belong in fp32.
# - Whoever comes first decides the last bits, with a lock and with atomics. Give each program a slot of its own and add up in a fixed
#   order.
# - Two stages: 5 M N, no waiting. Persistent: 3 M N and 16 P N bytes, as long as a tile and two sums fit the registers.
#
# After each pass the panel tells you what the bug you avoided did elsewhere.
#
# **Where to read on**
#
# - Triton tutorial "Layer Normalization", the backward pass: the locked design. Read it with the four errata above at hand.
# - Flanagan and Freund 2009, "FastTrack": how a tool can tell a race from luck. `course_lib/interpreter/schedule.py` does it here.
# - PyTorch, "Reproducibility": which of its own operations give other bits from run to run.
# - flash-attention's and quack's norms: persistent backward kernels. `course_lib/kernels/norm_backward.py`: ours. After the
#   exercises.
#
# **Next: lesson 10, autograd.** Three kernels become one function that PyTorch can differentiate, compile and train with.
