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
# # 13 dw and db without locks
#
# A server gets your prompt at night, and the model answers. At noon it gets the same prompt, beside
# 300 others, and the answer has another end. Same input, same weights, other bits: who changed them?
#
# This lesson has two culprits. The first needs no race, no lock and no GPU. The second sits in the
# lock of lesson 12. You write two kernels that are free of both, and find out what each way costs.
#
# *About 60 minutes, both exercises included. Needs: lesson 12, and exercises 06a and 11a.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("13")

# %% [markdown]
# ## The same row in another batch
#
# Here is rstd of one row of 4096 numbers, by three RMSNorm kernels. Nothing in them is random, and
# no program reads another row than its own. Choose M, the number of rows in the batch. Which kernel
# gives this row the same bits in every batch?

# %%
from course_lib.lessons.lesson13 import figures

figures.show_row_in_batches(1, 16, 64, 255, 256, 4096)

# %% tags=["check"]
from course_lib.lessons.lesson13.sums import SPLITS, compute_rstd, draw_rows

by_split = [[compute_rstd(draw_rows(1), split, M)[0] for M in (1, 16, 64, 255, 256, 4096)] for split in SPLITS]
assert [len(set(found)) for found in by_split] == [2, 3, 1]
assert by_split[0][3] != by_split[0][4] and len({*by_split[0][:4]}) == 1
assert SPLITS[0].count_sums(255) == 1024 and SPLITS[0].count_sums(256) == 256

# %% [markdown]
# Addition of floating-point numbers is not associative: (a + b) + c and a + (b + c) round
# differently. So the bits of a sum depend on which numbers meet first. The first two kernels let M
# decide that: by the number of running sums, or by the number of parts of a row. Both have a good
# reason, which is speed.
#
# The first is vLLM's, in its *batch-invariant* mode: it promises that no bit of a row depends on
# the rows beside it. A user found that it did not hold ([issue
# 48271](https://github.com/vllm-project/vllm/issues/48271), 2026-07-10; mended in
# [48391](https://github.com/vllm-project/vllm/pull/48391)). SGLang had such a norm on AMD's GPUs
# ([28787](https://github.com/sgl-project/sglang/pull/28787), 2026-06-20). Why did no test see it?

# %%
from course_lib.lessons import predict

# %%
predict("13-rows")

# %% tags=["answer"]
import torch
from course_lib.lessons.lesson13.sums import SPLITS, compute_rstd, draw_rows

x = draw_rows(1000, seed=0)
alone, beside_299 = (compute_rstd(x, SPLITS[0], M) for M in (1, 300))
y, other_y = (torch.tensor(x * rstd[:, None]).bfloat16() for rstd in (alone, beside_299))
print((alone != beside_299).sum(), "of 1000 rows have another rstd in fp32")
print(int((y != other_y).any(dim=1).sum()), "of 1000 rows have another y in bf16")

# %% tags=["check"]
from course_lib.lessons.prediction import find

assert int((y != other_y).any(dim=1).sum()) == find("13-rows").answer
assert f"in {(alone != beside_299).sum()} of the 1000 rows" in find("13-rows").why

# %% [markdown]
# The remedy is the third kernel. M may decide how many programs run, how many loads are under way,
# and who takes which row. What is added to what may depend on N alone. Exercise 13d, at the end of
# the page, lets you try it.
#
# ## The same batch, twice
#
# Now dw, with the lock of lesson 12. M stays as it is.

# %%
import triton
import triton.language as tl


@triton.jit
def dw_kernel(dy_ptr, xhat_ptr, dw_ptr, lock_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + cols  # one program per row
    part = tl.load(dy_ptr + at) * tl.load(xhat_ptr + at)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:  # take the lock: one program at a time gets past
        pass
    dw = tl.load(dw_ptr + cols)
    tl.store(dw_ptr + cols, dw + part)
    tl.debug_barrier()  # wait until all threads have stored
    tl.atomic_xchg(lock_ptr, 0)  # give the lock back


# %% [markdown]
# Six rows, and two orders in which the six programs may run. The first three numbers of `dw` from
# each:

# %%
from course_lib.lessons.lesson13.sums import run_dw

first, second = (run.result("dw") for run in run_dw(dw_kernel, seeds=[0, 1]))
print([f"{value:.7f}" for value in first[:3]])
print([f"{value:.7f}" for value in second[:3]])
print((first != second).sum(), "of", len(first), "numbers differ")

# %% tags=["check"]
from course_lib.lessons.lesson13.sums import COLUMNS, count_results, draw

import numpy as np

twice = run_dw(dw_kernel, seeds=[0, 1])
assert not any(run.findings for run in twice) and 0 < (first != second).sum() < COLUMNS
exact = np.prod([t.double().numpy() for t in draw(6, COLUMNS)], axis=0).sum(axis=0)
assert all(np.abs(run.result("dw") - exact).max() < 2e-6 for run in twice)

# %% [markdown]
# No race, no missing barrier, and both are right to the seventh digit. But the order in which the
# programs get the lock decides which numbers meet first, and nothing fixes that order.
# `tl.atomic_add` has no lock, and the same fault.

# %%
predict("13-orders")

# %% tags=["check"]
assert count_results(run_dw(dw_kernel), "dw") == find("13-orders").answer
import itertools

from course_lib.lessons.lesson13.sums import COLUMNS, draw

products = np.multiply(*(part.numpy() for part in draw(6, COLUMNS)))
sums = {
    np.add.accumulate(products[list(order)], dtype=np.float32)[-1].tobytes()
    for order in itertools.permutations(range(6))
}
assert 200 < len(sums) <= 720 // 2 == 360 and "360 sums" in find("13-orders").why


@triton.jit
def atomic_kernel(dy_ptr, xhat_ptr, dw_ptr, lock_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(dw_ptr + tl.arange(0, BLOCK), tl.load(dy_ptr + at) * tl.load(xhat_ptr + at))


assert count_results(run_dw(atomic_kernel), "dw") > 5

# %% [markdown]
# Would more digits help? Let `dw` be fp64 while the programs add, and round it to fp32 at the end.

# %%
predict("13-wider")

# %% tags=["answer"]
from itertools import permutations

import numpy as np
from course_lib.lessons.lesson13.sums import COLUMNS, draw

products = np.multiply(*(part.numpy() for part in draw(6, COLUMNS)))  # six rows of dy * xhat
for dtype in (np.float32, np.float64):
    sums = {
        np.add.accumulate(products[list(order)].astype(dtype))[-1].astype(np.float32).tobytes()
        for order in permutations(range(6))
    }
    print(f"{np.dtype(dtype)}: {len(sums)} different dw in 720 orders")

# %% tags=["check"]
assert len(sums) == 1 and find("13-wider").answer == "1"

# %% [markdown]
# No result is wrong. But train twice from the same seed, and the two models drift apart, so a
# training whose loss went up at night cannot be repeated.
#
# ## What if each program had a place of its own?
#
# Let each program store its part in a row of its own. A second kernel then adds up the rows, always
# from the first to the last.

# %%
from course_lib.lessons import step


# %% tags=["step"]
@triton.jit
def own_place_kernel(dy_ptr, xhat_ptr, partial_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    part = tl.load(dy_ptr + row * BLOCK + cols) * tl.load(xhat_ptr + row * BLOCK + cols)
    # BEGIN SOLUTION
    #: Everybody stores to one row. Give each program a row of its own in the partial sums.
    #| tl.store(partial_ptr + cols, part)
    tl.store(partial_ptr + row * BLOCK + cols, part)
    # END SOLUTION


step("13-slot")

# %% [markdown]
# No lock, no barrier, nobody waits, and no order can change a bit. But this is much to write. Where x
# has 2 bytes in fp16, its partial sums have 4 bytes of `dw` and 4 of `db`: 4 times as many.

# %% tags=["check"]
bytes_of_x, bytes_of_partials = (
    2,
    2 * 4,
)  # an element of x; a number of dw's and one of db's partial sums
assert bytes_of_partials / bytes_of_x == 4

# %% [markdown]
# ## How many places are enough?
#
# Far fewer than rows. Let a program take a **chunk** of rows and some columns. It walks down the
# rows, keeps its sums in registers, and stores them once, at the end. That is the *two-stage*
# design. In the picture (j, c) is the program of column block j and chunk c.

# %%
figures.show_chunks()

# %% [markdown]
# A program walks in steps of BLOCK_M rows, a tile at a time. Take chunks of 5 rows and BLOCK_M = 4.
# The program of chunk 0 makes two steps. Its lanes stand at rows 0 to 3, and then at rows 4 to 7.
#
# Rows 5 to 7 exist, so `rows < M` lets their lanes in. But they belong to chunk 1, whose program
# adds them, too.

# %% tags=["check"]
within = np.arange(8).reshape(2, 4)  # two steps of four lanes
assert np.argwhere(within < 5).tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0]]

# %% [markdown]
# "Is it in this chunk?" and "does it exist?" are two questions. The next step adds up `db` over
# chunks; one line is wrong.


# %% tags=["step"]
@triton.jit
def chunk_kernel(dy_ptr, db_ptr, M, rows_a_chunk, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    chunk = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)[None, :]
    db = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)  # a running sum for each place of the tile
    for start in range(0, rows_a_chunk, BLOCK_M):
        within = (start + tl.arange(0, BLOCK_M))[:, None]  # a column, and so are rows and masks
        rows = chunk * rows_a_chunk + within
        # BEGIN SOLUTION
        #: A row counts if it exists and belongs to this chunk.
        #| mask = rows < M
        mask = (rows < M) & (within < rows_a_chunk)
        # END SOLUTION
        db += tl.load(dy_ptr + rows * BLOCK_N + cols, mask=mask, other=0.0)
    tl.store(db_ptr + chunk * BLOCK_N + cols, tl.sum(db, axis=0)[None, :])


step("13-chunk")

# %% [markdown]
# Are the bits the same every time? `run_two_stage` runs the course's kernel for `dw` and `db` in 20
# orders of its programs, on 10 rows in chunks of 5 and of 4.

# %%
from course_lib.lessons.lesson13.sums import count_results, run_two_stage, sum_partials

for rows_a_chunk in (5, 4):
    runs = run_two_stage(rows_a_chunk)
    print(count_results(runs, "dw_partial", "db_partial"), "result in 20 orders")
of_five, of_four = (sum_partials(run_two_stage(rows, seeds=[0])[0]) for rows in (5, 4))
print((of_five != of_four).sum(), "of", len(of_five), "numbers of dw differ between them")

# %% tags=["check"]
from course_lib.lessons.lesson13.sums import compute_gradients

want = compute_gradients()
assert count_results(run_two_stage(5), "dw_partial", "db_partial") == 1
assert count_results(run_two_stage(4), "dw_partial", "db_partial") == 1
assert 0 < np.abs(of_five - of_four).max() < 1e-5 and np.abs(of_five - want.dw).max() < 1e-5

# %% [markdown]
# For the same bits every time, the cut may depend on the shape, and not on a measured time. (An
# *autotuner* takes the launch that was fastest, so its choice can change.)
#
# The price is in the reads. The kernel of `dx` reads x and dy and writes dx, 3 M N elements, and the
# first stage reads x and dy again: 5 M N together. The least that is possible is 3.

# %% tags=["check"]
dx_kernel = {"x read": 1, "dy read": 1, "dx written": 1}
first_stage = {"x read": 1, "dy read": 1}
assert sum(dx_kernel.values()) + sum(first_stage.values()) == 5

# %% [markdown]
# ## Your turn: two stages
#
# The first kernel is the step above with `dw` beside `db`, with `mean` and `rstd` for xhat, and
# with strides and a mask for the columns, as in 11a. The second is the same walk over the rows of
# partial sums, with one rounding at its end.

# %%
from course_lib import exercise

exercise("13a")

# %% [markdown]
# ## Is one read of x and dy enough for all three gradients?
#
# For `dx` a program has a tile of x and dy in its registers anyway. Two more lines add the tile to
# `dw` and `db`. But a row of partial sums per tile is too much to write: per row it was 4 times the
# bytes of x. So let a program do **many tiles**. The grid has P programs, one or a few for each
# multiprocessor. Program p takes tiles p, p + P, p + 2 P, ... of the `tl.cdiv(M, ROWS)` tiles, and
# keeps its two sums in registers all the while. This is a **persistent** kernel: the programs stay,
# and the rows pass through them.

# %%
from course_lib.lessons import persistent_walk

persistent_walk(M=11, P=3, ROWS=2)

# %% tags=["check"]
from course_lib.lessons.lesson13.persistent_walk.model import MOST_ROWS

assert MOST_ROWS >= 11
tiles = list(range(1, -(-11 // 2), 3))
assert [row for tile in tiles for row in (2 * tile, 2 * tile + 1) if row < 11] == [2, 3, 8, 9]

# %% [markdown]
# In the picture press **Step**, or drag the slider, and watch the partial sums: a program stores
# them only after its last tile. Then choose 4 rows and 4 rows per tile: what do programs 1 and 2
# store?
#
# Practise this on `db` alone, with one row per tile. `tl.num_programs(0)` is P.


# %% tags=["step"]
@triton.jit
def persistent_db_kernel(dy_ptr, partial_ptr, M, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    # BEGIN SOLUTION
    #: Add up rows program, program + P, ... as long as there are any.
    for row in range(program, M, tl.num_programs(0)):
        db += tl.load(dy_ptr + row * BLOCK + cols)
    # END SOLUTION
    tl.store(partial_ptr + program * BLOCK + cols, db)


step("13-walk")

# %% [markdown]
# The store stands after the loop, and not in it. A program that has no row must store its zeros,
# too: nobody has set its place to 0 before, and stage two adds up all P rows.

# %% tags=["check"]
from course_lib.lessons.lesson13.sums import run_persistent

spare = run_persistent(7, seeds=[0])[0].result("dw_partial")  # 10 rows are 5 tiles, so two programs have none
assert (spare[5:] == 0).all() and np.isfinite(spare).all()

# %% [markdown]
# How much are the partial sums now? Take P = 132, one program on each multiprocessor of an H100,
# M = 4096, N = 8192 and fp16. They are 17 MB beside the 201 MB of x, dy and dx, 9 percent. One row of
# partial sums for every row of x would be 267 percent.

# %% tags=["check"]
share = 100 * 16 * 132 * 8192 / (3 * 4096 * 8192 * 2)
assert round(share) == 9 and round(16 * 132 * 8192 / 1e6) == 17 and round(3 * 4096 * 8192 * 2 / 1e6) == 201
assert round(100 * 16 * 4096 * 8192 / (3 * 4096 * 8192 * 2)) == 267

# %% [markdown]
# And the bits? They are the same in every order. With another P, as on another kind of GPU, `dx` keeps
# its bits, since a row of `dx` needs no other row. `dw` does not: other rows are added up together.

# %%
from course_lib.lessons.lesson13.sums import run_persistent, sum_partials

two, three = run_persistent(2), run_persistent(3)
print("P = 2:", count_results(two, "dx", "dw_partial", "db_partial"), "result in 20 orders")
print("P = 3: dx the same:", (two[0].result("dx") == three[0].result("dx")).all())
print("P = 3: dw the same:", (sum_partials(two[0]) == sum_partials(three[0])).all())

# %% tags=["check"]
assert (
    count_results(two, "dx", "dw_partial", "db_partial") == count_results(three, "dx", "dw_partial", "db_partial") == 1
)
assert np.array_equal(two[0].result("dx"), three[0].result("dx")) and np.abs(two[0].result("dx") - want.dx).max() < 1e-5
assert 0 < np.abs(sum_partials(two[0]) - sum_partials(three[0])).max() < 1e-5
assert np.abs(sum_partials(two[0]) - want.dw).max() < 1e-5

# %% [markdown]
# ## What do the three designs cost?
#
# Count bytes first. 3 M N is the least: read x and dy, write dx. The persistent kernel is near it,
# two stages move 5/3 of it. The lock is near it, too: its buffers stay in the cache. But it is the
# slowest of the three: at 4096 columns it takes 3.2 times the floor, and persistent 1.1.

# %%
predict("13-waits")

# %% tags=["answer"]
from course_lib.lessons.lesson13.sums import measure_designs

measured = measure_designs()
figures.show_designs(measured)

# %% tags=["check"]
from course_lib.bench import measurement
from course_lib.kernels.launch import tables

over = {
    (row["provider"], row["N"]): row["over_floor"]
    for row in measurement.stored("backward").rows
    if row["op"] == "layer_norm_backward"
}
lengths = (256, 1024, 4096, 8192)
assert all(max((over[p, n], p) for p in ("locked", "two-stage", "persistent", "torch"))[1] == "locked" for n in lengths)
locks_of = {n: tables.lock_group(n) for n in (256, 4096)}
held = {n: over["locked", n] / (2**25 / n / locks_of[n]) for n in locks_of}
assert locks_of[256] > locks_of[4096] and held[256] < held[4096] and round(16 * 3.2) == 51
assert [round(over[name, 4096], 1) for name in ("locked", "persistent")] == [3.2, 1.1]
assert all(over["persistent", n] < 1.2 and 1.8 < over["two-stage", n] < 2.4 for n in lengths)
assert (
    all(round(over["two-stage", n], 1) in (1.8, 1.9) for n in lengths[:-1]) and round(over["two-stage", 8192], 1) == 2.4
)
assert "1.8 to 1.9 times the floor, and 2.4 at 8192 columns" in find("13-waits").why
(at_256,) = (
    row
    for row in measurement.stored("backward").rows
    if (row["op"], row["provider"], row["N"]) == ("layer_norm_backward", "locked", 256)
)
holders = at_256["M"] / tables.lock_group(256)  # programs that take one lock, one after the other
assert holders == 512 and f"{at_256['us'] / holders:.1f} µs each" in find("13-waits").why
assert sorted(lengths, key=lambda n: -over["locked", n]) == list(lengths)
assert "{:.1f}, {:.1f}, {:.1f} and {:.1f} times".format(*(over["locked", n] for n in lengths)) in find("13-waits").why
assert (
    find("13-waits").answer == round(over["locked", 256], 1)
    and max(lengths, key=lambda n: over["locked", n]) == 256
    and (course_lib.MODE == "gpu" or not measured.live)
)
assert {row["M"] * row["N"] for row in measurement.stored("backward").rows if row["N"] in lengths} == {2**25}

# %% [markdown]
# ## Your turn: the persistent kernel
#
# Put the tile of 11a into the walk of the step above. The arithmetic of `dx` is given. Load before
# the loop what is the same for all tiles. Store the two sums after the loop. A loop variable has 32
# bits: `(tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)` gives the rows in 64.

# %%
exercise("13b")

# %% [markdown]
# The lock of the figure is the design of [Triton's
# tutorial](https://github.com/triton-lang/triton/blob/545699290b851e70231ee3017481851170f1583d/python/tutorials/05-layer-norm.py)
# (commit 5456992), with its mistakes mended. It saves bytes, and its programs wait for a lock.

# %% [markdown]
# ## Without rails
#
# A batch of texts has rows of padding, which must not count in dw. And in 13b each program has a
# sum of its own. So dw has other bits on a GPU with another number of multiprocessors. This task
# asks for a kernel with neither fault. Its file says what a padding row may hold, and to what each
# partial sum belongs. The task is optional.

# %%
exercise("13c")

# %% [markdown]
# The culprit from the top of the page: a server launches RMSNorm with as many rows as it has at that
# moment, and wants more loads under way where there are few rows. Write the norm so that no bit of a row
# changes. The check launches the first rows of a batch once more, as a batch of their own. The task
# is optional, too.

# %%
exercise("13d")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import offer_hunt

offer_hunt("11b")

# %%
from course_lib.lessons import review_predictions

review_predictions("13")

# %% [markdown]
# **The ladder.** Run this cell again after each kernel that you pass.

# %%
from course_lib.lessons import ladder

ladder("13")

# %% [markdown]
# **Where to read on**
#
# - [Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html), in PyTorch's
#   documentation: which of its operations give other bits from run to run.
# - [RL-Kernel, issue 145](https://github.com/RL-Align/RL-Kernel/issues/145) (2026-06-17): a
#   batch-invariant RMSNorm, forward and backward, as a specification.
# - [flash-attention](https://github.com/Dao-AILab/flash-attention/blob/main/flash_attn/ops/triton/layer_norm.py)
#   and [quack](https://github.com/Dao-AILab/quack): persistent backward kernels of norms. Ours is
#   `course_lib/kernels/norm_backward.py`. Read them after 13b.
#
# **Next:** lesson 14. Your three kernels become one function that PyTorch can differentiate, and a
# model is trained with it.

# %% [markdown] tags=["dive"]
# ## Dive: what must fit into the registers
#
# x, dy, `dw` and `db` of a tile, all in fp32, all at once. Where they do not fit, the compiler
# moves them to memory and back in every turn of the loop: a *spill*. Ask it, for an H100 and the
# launches that the course uses. Once you have begun 13b, your kernel stands beside the course's.

# %% varies={"gpu": "the registers depend on the Triton of that machine", "solved": "your kernel stands beside the course's"}
from course_lib.lessons.lesson13.sums import list_registers

for columns in (1024, 4096, 8192):
    for name, (registers, spilled) in list_registers(columns).items():
        print(f"N = {columns}, {name}: {registers} registers per thread, {spilled} bytes spilled")

# %% tags=["check"]
assert all(list_registers(columns)["the course's"][1] == 0 for columns in (1024, 4096, 8192))
from course_lib.kernels.launch import tables

tiles = [tables.persistent(columns) for columns in (4096, 8192)]
assert [(tile.rows, tile.num_warps) for tile in tiles] == [(2, 8), (1, 16)]
assert [tile.rows * tile.block // (32 * tile.num_warps) for tile in tiles] == [32, 16]

# %% [markdown]
# Why do longer rows need fewer registers? The launch is another one. At 4096 columns a program has
# tiles of 2 rows and 8 warps, so a thread holds 32 numbers each of x, dy, dw and db. At 8192 it has
# tiles of 1 row and 16 warps, so a thread holds 16.

# %% [markdown] tags=["dive"]
# ## Dive: all designs on this machine
#
# The same gradients by each design, against the reference in float64. In CPU mode this says that
# they agree, and nothing about time.

# %%
from course_lib.lessons.lesson13.sums import compare_designs

for design, error in compare_designs().items():
    print(f"{design:10}: largest error {error:.0e}")

# %% tags=["check"]
assert set(compare_designs()) == {"locked", "two-stage", "persistent"} and max(compare_designs().values()) < 2e-5
