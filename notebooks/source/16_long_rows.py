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
# # 16 Long rows and tiny batches
#
# All your kernels give a row to one program. Here a row is too long for its registers, or a batch has
# so few rows that most of the GPU has nothing to do. You share one row among many programs. Then
# they have to wait for one another, and you find out when such a wait ends and when it does not.
#
# *About 35 minutes, the exercise included. Needs: lessons 08, 12 and 13, and exercise 04b.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("16")

# %% [markdown]
# ## What if a row does not fit?
#
# In lesson 08 a row stayed in registers between its two uses, and rows ended at 32768 columns. At the
# next power of two 65536 numbers in fp32 take 64 registers of each of the 1024 threads. That is
# 65,536 registers, all that a multiprocessor has. Whatever else the kernel needs has no place, and
# the compiler spills. Liger-Kernel 0.8.5, which keeps rows in one program, takes {{liger}} times the
# **floor** at 1024 x 65536 (H100, stored 21 November 2026). The floor is the time of one elementwise
# kernel that moves the same bytes.

# %% [markdown]
# Ask the compiler, for an H100, 32 warps and four lengths.

# %% varies={"gpu": "the registers depend on the Triton of that machine"}
from course_lib.lessons.lesson16.split_rows import compile_row

for N in (16384, 32768, 65536, 131072):
    made = compile_row(N)
    print(f"N = {N}, per thread: {made.registers} registers, {made.spill_bytes} bytes spilled")

# %% tags=["check"]
from course_lib.lessons.lesson16 import split_rows
from course_lib.lessons.prediction import find

rows = {N: split_rows.compile_row(N) for N in (16384, 32768, 65536, 131072)}
assert 65536 // (32 * 32) == 64
assert rows[65536].registers == 64 and rows[16384].spill_bytes == 0 < rows[65536].spill_bytes < rows[131072].spill_bytes
assert rows[32768].spill_bytes < 4 * 32 < rows[65536].spill_bytes

# %% [markdown]
# The kernel of lesson 07 takes any row, but it reads each row three times.
#
# ## What if there are few rows?
#
# PyTorch 2.11 gives each row to one group of threads, on one multiprocessor. With 16 rows of 262144
# columns 16 of the 132 multiprocessors of an H100 are busy. If each moved only its even share of what
# the memory moves, LayerNorm would take 132/16 = 8.25 times the floor. A multiprocessor may take more
# than that share, so this is no bound. But PyTorch takes {{torch_few}} times the floor: one group of
# threads does not ask for enough bytes at a time (Little's law, lesson 15). The course's kernel with
# one program per row takes {{blocked_few}}.

# %% [markdown]
# Three shapes, with PyTorch and the course's kernel of lesson 07. Without a GPU the figure shows
# stored times.

# %%
from course_lib.lessons.lesson16 import figures
from course_lib.lessons.lesson16.split_rows import measure_long_rows

figures.show_long_rows(measure_long_rows("torch", "blocked"))

# %% tags=["check"]
from course_lib.bench import long_rows, measurement

stored = {(row["op"], row["provider"], row["N"]): row for row in measurement.stored(long_rows.KIND).rows}
few = {name: stored["layer_norm M=16", name, 262144] for name in ("torch", "blocked", "few_rows", "split")}
one = {name: stored["layer_norm M=1", name, 262144] for name in ("torch", "blocked", "few_rows", "split")}
many = {name: stored["layer_norm M=many", name, 65536] for name in ("torch", "blocked", "few_rows", "split")}
assert 132 / 16 == 8.25 < min(few[name]["over_floor"] for name in ("torch", "blocked"))
gbps = 3 * 262144 * 2 / one["torch"]["us"] / 1e3  # three sweeps over the row at most
assert round(gbps, 1) == 4.1 and round(gbps * 600 / 1e3, 1) == 2.5  # KB under way in 600 ns
assert round(few["blocked"]["over_floor"], 1) == 10.6 and many["split"]["M"] == 1024
assert [round(one[name]["over_floor"]) for name in ("torch", "blocked")] == [207, 31]

# %% tags=["check"]
assert abs(few["torch"]["us"] / one["torch"]["us"] - 1) < 0.05
liger, version = (
    stored["layer_norm M=many", "liger", 65536],
    measurement.stored(long_rows.KIND).versions["liger-kernel"],
)
assert version == "0.8.5" and round(liger["over_floor"], 1) == 6.5

# %% [markdown]
# ## How do many programs share one row?
#
# Cut the row into **chunks** of a fixed length, and give each chunk to a program. The last chunk
# has what is left.
#
# **Your step.** How many columns has each chunk? Return an array.


# %%
import numpy as np
import triton
import triton.language as tl
from course_lib.lessons import predict, step


# %% tags=["step"]
def count_columns(N, length):
    begins = np.arange(0, N, length)  # the first column of each chunk
    # BEGIN SOLUTION
    #: The columns of each chunk. The last may have fewer than length.
    counts = np.minimum(N - begins, length)
    # END SOLUTION
    return counts


step("16-counts")

# %% [markdown]
# A program knows the mean and the M2 of its own chunk, and no program knows those of the row.
# Chan's formula of 04b merges them. But a program must not read what another has not written yet.
# The simplest way to be sure is to end the launch:
#
# 1. The first launch has one program per chunk. Each stores the mean and M2 of its chunk.
# 2. The second launch again has one program per chunk. Each merges the statistics of all chunks of
#    its row, loads its chunk once more, normalises it and stores it.
#
# That moves 3 M N elements, where the floor moves 2 M N. 1024 rows of 65536 columns are more than the L2 cache holds, so the two launches
# should take 1.5 times the floor. Measured on an H100: {{two_launches}}.

# %% tags=["check"]
assert 3 / 2 == 1.5 and abs(many["few_rows"]["over_floor"] - 1.5) < 0.1
assert round(many["few_rows"]["over_floor"], 2) == 1.54 and 1024 * 65536 * 2 > 50 * 2**20

# %% [markdown]
# That is better than one program per row at all three shapes of the figure.
#
# ## Your turn: many chunks, one row
#
# Write the merge of the second launch. In 04b two sides met. Here all chunks of a row meet at once:
# first the mean of the row, then what each chunk adds to M2. Lane k takes the statistics of chunk
# k. So every program of the row adds in the same order, and all find the same mean to the last bit.

# %%
from course_lib import exercise

exercise("16a")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("09a")

# %% [markdown]
# ## Can one launch do?
#
# In one launch a program could keep its chunk in registers, and x would be read once. Each program
# tells the others its part, waits for theirs, and goes on. From here on a part is one whole number
# above 0, and each program wants the total of its row. These lines tell a part and wait for part k:
#
# ```python
# tl.store(value_ptr + chunk, part)
# tl.atomic_xchg(flag_ptr + chunk, 1, sem="relaxed")
# ...
# while tl.load(flag_ptr + k, volatile=True) == 0:  # volatile: look again each time
#     pass
# total += tl.load(value_ptr + k)
# ```
#
# They are wrong. `relaxed` orders nothing but the flag itself, as in lesson 12. The flag may arrive
# before the value does, and the other program loads what stood there before. The search finds a race
# in every order, although every total is right: in the interpreter a store arrives before the
# program goes on. `acq_rel` on both sides would be right, and slower. At 65536 columns the course's
# LayerNorm took 1.27 times the floor with it, and 1.10 with what follows (H100; `docs/kernel-trials.md`).

# %%
from course_lib.lessons.lesson16.split_rows import run_flag_apart

runs = run_flag_apart()
print({int(total) for run in runs for total in run.result("total")}, "are the totals of 20 orders")
print("a race is found in", sum(bool(run.races) for run in runs), "of 20")

# %% tags=["check"]
apart = split_rows.run_flag_apart()
assert all(run.races and run.complete for run in apart)
assert {int(total) for run in apart for total in run.result("total")} == {111}

# %% [markdown]
# Now put value and flag into **one word**, which arrives as a whole. All parts are above 0. The
# host sets all words to 0 before each launch: old words would give wrong totals without an error. A
# program stores its part with a minus sign. So a word of 0 means "not there yet", and -7 means "the
# part is there, and it is 7".


# %% tags=["step"]
@triton.jit
def exchange_kernel(part_ptr, total_ptr, word_ptr, CHUNKS: tl.constexpr):
    chunk = tl.program_id(0)
    part = tl.load(part_ptr + chunk)
    # BEGIN SOLUTION
    #: Tell the others: one relaxed exchange at word_ptr + chunk.
    tl.atomic_xchg(word_ptr + chunk, -part, sem="relaxed")
    # END SOLUTION
    total = 0
    for k in range(CHUNKS):
        word = tl.load(word_ptr + k, volatile=True)
        # BEGIN SOLUTION
        #: Look again until the word is there.
        while word >= 0:
            word = tl.load(word_ptr + k, volatile=True)
        # END SOLUTION
        total -= word
    tl.store(total_ptr + chunk, total)


step("16-word")

# %% [markdown]
# ## Does the wait always end?
#
# With a lock you wait for a program that is running. With a word you wait for a program that may
# not have **started**. A GPU has room for a certain number of programs at a time. The others start
# when one of these ends.

# %%
predict("16-deadlock")

# %% tags=["check"]
by_id = split_rows.two_rows(split_rows.by_program_id_kernel)
three = split_rows.run_two_rows(split_rows.by_program_id_kernel, 3)
stuck = [run for run in three if run.deadlock]
assert stuck and all(len(run.finished) == 0 for run in stuck) and len(stuck) < len(three)
assert all(run.complete for run in split_rows.run_two_rows(split_rows.by_program_id_kernel, 6))
import itertools

assert [list(parts) for parts in split_rows.PARTS] == [[1, 10, 100], [2, 20, 200]]
interleavings = split_rows.run_two_rows(split_rows.by_program_id_kernel, 3, range(400))
started = {tuple(sorted({step.program for step in run.operations})) for run in interleavings if run.deadlock}
choices = set(itertools.combinations(range(6), 3))
assert len(choices) == 20 and choices - started == {(0, 1, 2), (3, 4, 5)}  # the other 18 all get stuck
assert any(run.complete for run in interleavings) and find("16-deadlock").answer == len(choices - started) == 2

# %% [markdown]
# **Your step.** Let the chunk that a program takes follow from **when it started**, and not from
# its number: each program draws a **ticket** from a counter in memory, in one piece. Its ticket is
# its place among all chunks, and `place // CHUNKS * CHUNKS` is the first chunk of its row.
# (`tl.atomic_add` returns what it found before it added.)


# %% tags=["step"]
@triton.jit
def split_kernel(part_ptr, total_ptr, word_ptr, ticket_ptr, CHUNKS: tl.constexpr):
    # BEGIN SOLUTION
    #: Draw a ticket: the counter at ticket_ptr is 0 at the start.
    #| place = tl.program_id(0)
    place = tl.atomic_add(ticket_ptr, 1)
    # END SOLUTION
    tl.atomic_xchg(word_ptr + place, -tl.load(part_ptr + place), sem="relaxed")
    total = 0
    for chunk in range(CHUNKS):
        word = tl.load(word_ptr + place // CHUNKS * CHUNKS + chunk, volatile=True)
        while word >= 0:
            word = tl.load(word_ptr + place // CHUNKS * CHUNKS + chunk, volatile=True)
        total -= word
    tl.store(total_ptr + place, total)


step("16-ticket")

# %%
predict("16-room")

# %% [markdown]
# Now compare both ways in the picture. Each row of boxes is a program. The chunks of row 0 bring 1,
# 10 and 100, those of row 1 bring 2, 20 and 200. Choose the kernel, how many programs there is
# **room for**, and a seed. A seed draws the order in which programs start and move.
#
# With *program_id* and room for 3, drag *operation* to its end, and read who waits for which word.
# Then press **By hand from the start**. Can you start three programs so that nobody gets stuck? And
# with *tickets*, can you still make a deadlock?

# %%
from course_lib.lessons import schedule_explorer
from course_lib.lessons.lesson16 import split_rows

kernels = {
    "program_id": split_rows.two_rows(split_rows.by_program_id_kernel),
    "tickets": split_rows.two_rows(split_rows.by_ticket_kernel),
}
schedule_explorer(kernels, resident=split_rows.ROOM)

# %% tags=["check"]
for room in split_rows.ROOM:
    tickets = split_rows.run_two_rows(split_rows.by_ticket_kernel, room)
    enough = room >= find("16-room").answer == split_rows.CHUNKS
    assert all(run.complete if enough else run.deadlock for run in tickets) and not any(run.races for run in tickets)
    assert not enough or all(run.result("total").tolist() == [[111] * 3, [222] * 3] for run in tickets)

# %% [markdown]
# ## In which order are the parts added?
#
# Tickets decide which program takes which chunk. They must not change the bits of the result, as
# `tl.atomic_add` of floats would (lesson 13). So each program loads all words and adds them up
# itself. Is that enough?

# %%
predict("16-own")

# %% tags=["answer"]
from course_lib.lessons.lesson16.split_rows import add_up, own_chunk_first_kernel

for _ in range(3):
    print(add_up(own_chunk_first_kernel, [1e8, 1.0, -1e8, 0.5]))

# %% tags=["check"]
totals = [tuple(split_rows.add_up(split_rows.own_chunk_first_kernel, [1e8, 1.0, -1e8, 0.5])) for _ in range(3)]
assert len(set(totals)) == 1 and totals[0] == (0.5, 0.0, 1.0, 0.0) and len(set(totals[0])) == 3
assert find("16-own").answer == "no, but every run gives the same four totals"


# %% tags=["step"]
@triton.jit
def add_kernel(part_ptr, total_ptr, CHUNKS: tl.constexpr):
    chunk = tl.program_id(0)
    total = 0.0
    for i in range(CHUNKS):
        # BEGIN SOLUTION
        #: Let all programs find the same bits: those of the order from chunk 0 on.
        #| total += tl.load(part_ptr + (chunk + i) % CHUNKS)
        total += tl.load(part_ptr + i)
        # END SOLUTION
    tl.store(total_ptr + chunk, total)


step("16-order")

# %% [markdown]
# The course makes sure of one more thing, in the forward pass. The length of a chunk depends on N
# and the dtype, and never on M. So a row of y has the same bits alone, in a batch of 16 and in a
# batch of 1000. The backward pass has two kernels, one for few rows and one for many. At 16384
# columns of fp16 a batch of 32 rows runs the first and a batch of 33 the second, and the last bits of
# a row of dx may differ.
#
# ## Two launches or one?

# %%
predict("16-tiny")

# %% tags=["answer"]
figures.show_long_rows(measure_long_rows("torch", "blocked", "few_rows", "split"))

# %% tags=["check"]
assert round(one["few_rows"]["us"], 1) == 4.2 < round(one["split"]["us"], 2) == 5.55 and 262144 * 2 == 512 * 2**10
assert find("16-tiny").answer == "two launches"
costs = {name: [f"{shape[name]['over_floor']:.1f}" for shape in (many, few, one)] for name in ("split", "few_rows")}
assert "words take {}, {} and {} times the floor".format(*costs["split"]) in find("16-tiny").why
assert "two launches {}, {} and {} (stored".format(*costs["few_rows"]) in find("16-tiny").why
assert all(
    times[name]["over_floor"] < times["blocked"]["over_floor"]
    for times in (many, few, one)
    for name in ("few_rows", "split")
)

# %% [markdown]
# With 1024 rows x does not fit the L2 cache, so a second read costs time. With one row it comes from
# the cache, and the floor itself is mostly the cost of a launch.

# %% tags=["check"]
import torch

from course_lib.kernels.launch import choice, tables
from course_lib.kernels.launch.device_classes import H100

assert H100.few_rows_bytes == 4 * 2**20
assert [
    choice.choose_backward(torch.empty(rows, 16384, dtype=torch.float16), centred=True, tuned=H100) for rows in (32, 33)
] == ["columns", "split"]  # other kernels, which add in other orders
assert tables.split(262144, torch.float16, centred=True, add=False).chunks == 64

# %% [markdown]
# ## Without rails
#
# Optional: one launch with words, tickets and the merge, for mean and M2 of real rows. The file holds
# the contract and the names. Find a way to put two numbers and a "ready" mark into one word. In the
# check only the programs of one row fit at a time.

# %%
exercise("16b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("16")

# %% [markdown]
# **Where to read on**
#
# - Merrill and Garland 2016, [Single-pass Parallel Prefix Scan with Decoupled
#   Look-back](https://research.nvidia.com/publication/single-pass-parallel-prefix-scan-decoupled-look-back):
#   tickets, and words that hold value and flag.
# - Chan, Golub and LeVeque 1983, [Algorithms for Computing the Sample
#   Variance](https://doi.org/10.1080/00031305.1983.10483115): the merge.
# - `course_lib/kernels/few_rows.py` and `course_lib/kernels/split_row.py`: both designs, forward.
#   `docs/kernel-trials.md` says what each idea in them was worth.
# - From Triton 3.8 on, a launch with `num_ctas` spreads one program over several multiprocessors,
#   and `tl.sum` does the exchange. On an H100 this was slower than words at every length: forward
#   at 32768 columns it took 1.61 times the floor, where words took 1.07 ("Clusters" in
#   `docs/kernel-trials.md`).
#
# **Next:** lesson 17. Bugs that were published, and how they were found.

# %% [markdown] tags=["dive"]
# ## Dive: a word of the course's kernel
#
# It has two numbers to tell, a mean and an M2, both fp32: 64 bits, one word. M2 is a sum of squares
# and never below 0, so its sign bit is free. Set, it says that the word is there. Here is the word
# of a chunk with mean -2.5 and M2 0, in binary.

# %%
mean, M2 = np.array([-2.5, 0.0], dtype=np.float32).view(np.uint32)
word = (int(M2) | 1 << 31) << 32 | int(mean)
print(f"{word:064b}")

# %% tags=["check"]
from course_lib.kernels.split_row import pack


@triton.jit
def pack_kernel(two_ptr, word_ptr):
    tl.store(word_ptr, pack(tl.load(two_ptr), tl.load(two_ptr + 1)))


packed = torch.zeros(1, dtype=torch.int64, device=course_lib.DEVICE)
pack_kernel[(1,)](torch.tensor([-2.5, 0.0], device=course_lib.DEVICE), packed)
assert packed.item() % 2**64 == word and packed.item() < 0

# %% [markdown]
# A word of 0 means *not there yet*. If "ready" meant "M2 is not 0", this chunk would never be ready.
# The sign bit is set even then: -0.0 and 0.0 have different bits. The kernel tests it with `words >= 0` on 64-bit integers, not on floats: as a float, -0.0 is
# not below 0.

# %% [markdown] tags=["dive"]
# ## Dive: is the GPU yours alone?
#
# A row with tickets needs room for its own programs. The course's kernel counts multiprocessors, and
# assumes that no other kernel holds the room for ever. Three things share a GPU:
#
# - **Another kernel of yours**, in a second stream. It takes places and gives them back when its
#   programs end. If that kernel ends by itself, your row only waits longer. But two kernels with
#   tickets can each hold places that a row of the other needs, and then neither ends. A kernel of
#   NCCL, which exchanges data between GPUs, ends only when the *other* GPU's does. If on both GPUs
#   NCCL holds the places that a row waits for, nobody ends.
# - **Another process under MPS**. Its kernels run beside yours, as those of a second stream do, and
#   you cannot see them. MPS can also limit a process to a part of the multiprocessors ([CUDA
#   Multi-Process Service](https://docs.nvidia.com/deploy/mps/)).
# - **MIG** cuts the GPU into slices with fewer multiprocessors each ([user
#   guide](https://docs.nvidia.com/datacenter/tesla/mig-user-guide/), read November 2026). A row
#   with more chunks than the slice has multiprocessors must not be split by tickets there.
#
# CUDA has a launch that asks instead of assuming: a *cooperative launch* fails with an error if the
# whole grid does not fit at once. In Triton it is `kernel[grid](..., launch_cooperative_grid=True)`
# ([PR 5381](https://github.com/triton-lang/triton/pull/5381), December 2024). It asks for more than
# tickets need: 1024 rows of 16 chunks would all have to fit, where tickets need room for one row.

# %% tags=["check"]
from triton.backends.nvidia.compiler import CUDAOptions

assert CUDAOptions().launch_cooperative_grid is False  # the option has this name
assert tables.split(65536, torch.float16, centred=True, add=False).chunks == 16

# %% [markdown] tags=["dive"]
# ## Dive: how the wait is hidden
#
# A program of the course's kernel walks down the rows with its chunk. It tells its part of the
# **next** row before it waits for the words of this one, and the row after that is on its way from
# memory. So the words that it waits for were mostly written some time ago.
#
# Here are trials on an H100 at 1024 x 65536, fp16, in times the floor (November 2026;
# `docs/kernel-trials.md` has them all). With one row there is no next row, and nothing is hidden.
#
# | trial | RMSNorm | LayerNorm |
# |---|---|---|
# | a counter with release and acquire, one row per program | 1.25 | 1.39 |
# | programs walk down the rows, a wait in each row | 1.48 | 1.61 |
# | the same, told one row ahead | 1.16 | 1.27 |
# | words instead of the counter | 1.05 | 1.10 |

# %% tags=["check"]
from course_lib.base import paths

trials = (paths.ROOT / "docs" / "kernel-trials.md").read_text(encoding="utf-8")
for idea, layer, rms in (
    ("A counter with release and acquire, one chunk of one row", "1.39", "1.25"),
    ("Programs walk down the rows", "1.61", "1.48"),
    ("The same, statistics published one row ahead", "1.27", "1.16"),
    ("Value and flag in one 64-bit word", "1.10", "1.05"),
):
    (line,) = (line for line in trials.splitlines() if line.startswith(f"| {idea}"))
    assert f"| {layer}, {rms}" in line

# %% tags=["values"]
from course_lib.bench import long_rows, measurement

over = {(row["op"], row["provider"], row["N"]): row["over_floor"] for row in measurement.stored(long_rows.KIND).rows}
values = {
    "liger": f"{over['layer_norm M=many', 'liger', 65536]:.1f}",
    "torch_few": f"{over['layer_norm M=16', 'torch', 262144]:.0f}",
    "blocked_few": f"{over['layer_norm M=16', 'blocked', 262144]:.1f}",
    "two_launches": f"{over['layer_norm M=many', 'few_rows', 65536]:.2f}",
}
