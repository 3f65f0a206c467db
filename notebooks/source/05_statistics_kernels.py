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
# # 05 Statistics as kernels
#
# You have rows of 65,536 fp32 numbers. They come from one normal distribution whose mean/std is
# 10,000. Five digits of the variance must be right, and the kernel may take 1.1 times as long as
# one read of the rows. Which algorithm do you take? You know one-pass, two-pass and Welford. Here
# you write two of them as kernels, and two charts show the digits and the times.
#
# *About 50 minutes, 25 of them for both exercises. Needs: lesson 04.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("05")

# %% [markdown]
# First a measured time. An H100 computed the variance of short rows: 2²⁸ numbers, 1024 in each
# row. One-pass and Welford go over a row once, two-pass twice.

# %%
from course_lib.lessons import predict

predict("05-short-rows")

# %% tags=["answer"]
from course_lib.lessons.lesson05 import figures

cost = figures.read_stored_cost("fp32")
for name in ("one_pass", "two_pass", "welford"):
    print(f"{name:8}: {cost[name, 1024]:.2f} times as long as one read")

# %% tags=["check"]
from course_lib.bench import measurement
from course_lib.bench.row_statistics import KIND
from course_lib.lessons.prediction import find

over = figures.read_stored_cost()
short = {name: over[name, 1024] for name in ("one_pass", "shifted", "two_pass", "welford", "resident")}
assert max(short, key=lambda name: short[name]) == "welford" and short["welford"] > 1.5 > 1 > short["two_pass"]
assert f"{short['welford']:.2f} times" in find("05-short-rows").why
assert f"the others {short['one_pass']:.2f}." in find("05-short-rows").why
assert f"{short['one_pass']:.2f}" == f"{short['two_pass']:.2f}" and find("05-short-rows").answer == "Welford"

# %% [markdown]
# ## What if a row is longer than a block?
#
# So far a row fitted into one block. A block cannot grow without limit: its numbers are kept in
# registers, the small storage of each thread (lesson 06). So the program goes through the row block
# by block, and every lane adds up the columns that it meets.

# %%
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mean_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)  # an accumulator per lane
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    tl.store(mean_ptr + row, tl.sum(total, axis=0) / N)  # here the lanes meet, once


# %%
row = torch.tensor([[2, -1, 3, 0.5, -0.5, 1.5, -2, 1]], device=course_lib.DEVICE)
mean = torch.empty(1, device=course_lib.DEVICE)
mean_kernel[(1,)](row, mean, row.stride(0), 8, BLOCK=4)
print(mean.item())

# %% [markdown]
# Lane 0 meets columns 0 and 4, and holds 2 + (-0.5) = 1.5 after the loop.

# %% tags=["check"]
from course_lib.kernels.row_statistics import row_statistics, streamed_launch
from course_lib.lessons.statistics_rows import find_error, make_rows
from course_lib.norms import statistics

worked = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])
blocks = worked.reshape(2, 4)  # two steps of four lanes
assert mean.item() == worked.mean() == 0.5625 and blocks.sum(axis=0)[0] == 1.5

# %% [markdown]
# Zeros before the loop, an addition in the loop, one `tl.sum` after it. Only the last block needs the
# mask. Now write the same for the mean *square* of a row.

# %%
from course_lib.lessons import step


# %% tags=["step"]
@triton.jit
def mean_square_kernel(x_ptr, out_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # BEGIN SOLUTION
    #: squares begins as zeros, one per lane. Then the loop adds to it.
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
        squares += x * x
    # END SOLUTION
    tl.store(out_ptr + row, tl.sum(squares, axis=0) / N)


step("05-loop")

# %% [markdown]
# ### A fault that raises no error
#
# `tl.program_id(0)` has 32 bits, and `stride_x` too, unless its value needs 64. A matrix of more
# than 2³¹ elements, 4.3 GB in fp16, has offsets that do not fit into a signed number of 32 bits.
# They wrap around: with rows 2³⁰ elements apart row 3 should begin at 3 · 2³⁰, and the program
# computes 3 · 2³⁰ - 2³² = -2³⁰. It reads in front of x. If no memory is there, the launch fails
# with an illegal memory access. If there is, the result is wrong, and no error tells you.
#
# One conversion helps: `tl.program_id(0).to(tl.int64)`. A product has 64 bits if one factor has 64.
# In the kernel below each program squares one number and stores where its row would begin. Mend
# that, and the fault of lesson 02: it squares in fp16.


# %% tags=["step"]
@triton.jit
def square_kernel(x_ptr, square_ptr, begin_ptr, stride_x):
    # BEGIN SOLUTION
    #: a row number of 64 bits.
    #| row = tl.program_id(0)
    row = tl.program_id(0).to(tl.int64)
    # END SOLUTION
    tl.store(begin_ptr + row, (row * stride_x).to(tl.float32))
    # BEGIN SOLUTION
    #: fp32 at the load.
    #| x = tl.load(x_ptr + row)
    x = tl.load(x_ptr + row).to(tl.float32)
    # END SOLUTION
    tl.store(square_ptr + row, x * x)


step("05-wide")

# %% tags=["check"]
square, x = torch.empty(3, device=course_lib.DEVICE), make_rows(3, M=3, N=1000)
mean_square_kernel[(3,)](x, square, 1000, 1000, BLOCK=64)
assert np.allclose(square.cpu(), (x.double() ** 2).mean(1).cpu(), rtol=1e-5)
assert round(2**31 * 2 / 1e9, 1) == 4.3

import re

from course_lib.compiler import Pointer, compile_report

for stride, bits in ((2**31 - 1, 32), (2**31, 64)):  # the third argument is stride_x
    ptx = compile_report(mean_kernel, [Pointer("fp32")] * 2 + [stride, 1000], {"BLOCK": 64}).ptx
    assert re.findall(r"\.param \.(u\d+)", ptx)[2] == f"u{bits}"
assert np.array(3 * 2**30, np.int64).astype(np.int32) == -(2**30)

# %% [markdown]
# ## Your turn: two sweeps
#
# A **sweep** reads or writes every element once. Two-pass reads in two sweeps: the second one needs
# the mean, and by then the first columns have left the lanes. So the program loads the row again, in
# the same loop, and takes `x - mean`. What does a lane past column N hold then (lesson 01)?

# %%
from course_lib import exercise

exercise("05a")

# %% [markdown]
# ## Can you save the second sweep by a shift?
#
# The variance of `x - shift` is the variance of x. With a shift near the mean there is nothing
# large to cancel, and one sweep is enough. The row's first element is at hand:
#
# ```python
# shift = tl.load(x_ptr + row * stride_x).to(tl.float32)
# ...             # in the loop x becomes tl.where(cols < N, x - shift, 0.0)
# mean = shift + tl.sum(total, axis=0) / N
# ```
#
# This is **shifted one-pass**. How many digits it keeps depends on one element.

# %%
predict("05-worst-shift")

# %% tags=["check"]
lone = np.zeros((1, 2000))
lone[0, 0] = 1  # all alike but one: nothing can stand out more
assert np.isclose((lone[0, 0] - lone.mean()) / lone.std(), 1999**0.5) and round(1999**0.5) == 45
for far_out in (1e2, 1e4, 1e6):
    x = make_rows(10_000, M=8, N=2000)
    assert find_error(row_statistics(x, "one_pass", block=256)[1], x) > 1
    x[:, 0] += far_out
    assert 1e-5 < find_error(row_statistics(x, "shifted", block=256)[1], x) < 2e-3
assert find("05-worst-shift").answer == "about 3"
assert np.isclose(statistics.condition_number(lone, lone[:, 0])[0], 2000**0.5) and 1e-4 < 2.0**-24 * 2000 < 2e-4
x = make_rows(10_000, M=8, N=2000)
assert find_error(row_statistics(x, "shifted", block=256)[1], x) < 2e-5
x[:, 0] = 0
assert find_error(row_statistics(x, "shifted", block=256)[1], x) < 100 * 2.0**-24 * 2000

# %% [markdown]
# ## Can a lane run Welford?
#
# Welford takes one number at a time, and a block has BLOCK lanes. So let each lane run a Welford of
# its own: count, mean and M2 of its own columns. For the row `2 -1 3 .5 -.5 1.5 -2 1` in four lanes
# the four M2 add up to 18.875, and M2 of the row is 19.21875. The rest comes from the different
# means of the lanes, and Chan's merge (lesson 04) adds it.
#
# In the last block some lanes get no element: they must keep count, mean and M2. In a short row some
# lanes never get one. Their count stays 0, and 0/0 would make their mean NaN. So divide by
# `tl.maximum(count, 1.0)`.


# %% tags=["step"]
@triton.jit
def lanes_kernel(x_ptr, count_ptr, mean_ptr, N, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    count, mean = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
        # BEGIN SOLUTION
        #: a lane without an element keeps its count and its mean.
        #| count += 1.0
        #| mean += (x - mean) / count
        count += mask.to(tl.float32)
        mean += tl.where(mask, x - mean, 0.0) / tl.maximum(count, 1.0)
        # END SOLUTION
    tl.store(count_ptr + lanes, count)
    tl.store(mean_ptr + lanes, mean)


step("05-count")

# %% tags=["check"]
count, mean, M2 = np.zeros(4), np.zeros(4), np.zeros(4)
for block in blocks:
    count += 1
    deviation = block - mean
    mean += deviation / count
    M2 += deviation * (block - mean)
assert M2.sum() == 18.875 < worked.var() * 8 == 19.21875
assert (count * (mean - worked.mean()) ** 2).sum() == 19.21875 - 18.875

# %% [markdown]
# ## How are the lanes merged?
#
# `tl.sum` adds up the lanes in a tree: half of the lanes meet the other half, then half of those,
# until one is left. `tl.reduce` builds such a tree with *your* function where two lanes meet:
#
# ```python
# a_result, b_result = tl.reduce((a_block, b_block), 0, combine)
# ```
#
# `combine` is a second `@triton.jit` function. For k blocks it takes 2k values, first those of
# side a, then those of side b, and returns k. Write one that finds the smallest and the largest
# number at the same time.


# %% tags=["step"]
@triton.jit
def combine(low_a, high_a, low_b, high_b):
    # BEGIN SOLUTION
    #: low and high of both sides: tl.minimum, tl.maximum.
    low, high = tl.minimum(low_a, low_b), tl.maximum(high_a, high_b)
    # END SOLUTION
    return low, high


@triton.jit
def range_kernel(x_ptr, low_ptr, high_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    low, high = tl.reduce((x, x), 0, combine)
    tl.store(low_ptr, low)
    tl.store(high_ptr, high)


step("05-reduce")

# %% [markdown]
# The compiler chooses the tree: which two lanes meet, and which of them is side a.

# %%
predict("05-larger")

# %% tags=["answer"]


@triton.jit
def keep_larger(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@triton.jit
def larger_kernel(x_ptr, larger_ptr, BLOCK: tl.constexpr):
    tl.store(larger_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, BLOCK)), 0, keep_larger))


# %% tags=["answer"] varies={"gpu": "a GPU may build another tree"}
numbers, larger = [1.0, -3, 3, 0], torch.empty(1, device=course_lib.DEVICE)
larger_kernel[(1,)](torch.tensor(numbers, device=course_lib.DEVICE), larger, BLOCK=4)
left = numbers[0]
for number in numbers[1:]:
    left = left if abs(left) >= abs(number) else number
print("tl.reduce", larger.item(), "from left to right", left)

# %% [markdown]
# So two things must not matter: how the lanes are grouped (the function is **associative**), and
# which side is which (it is **commutative**). Triton's manual does not say so
# ([#4962](https://github.com/triton-lang/triton/issues/4962), open in November 2026). A maintainer
# wrote there in 2024 that both are needed, the second one only because of the present
# implementation.
#
# Chan's merge is both, up to rounding. If neither side has seen an element, n is 0: the guard of
# exercise 04b is `tl.maximum(n, 1.0)` in Triton.


# %% tags=["check"]
def keep(a, b):
    return a if abs(a) >= abs(b) else b


left_to_right = {
    numbers: keep(keep(keep(*numbers[:2]), numbers[2]), numbers[3]) for numbers in ((3, -3, 1, 0), (1, -3, 3, 0))
}
halves = {n: keep(keep(n[0], n[2]), keep(n[1], n[3])) for n in left_to_right}  # lane i meets lane i + 2
assert left_to_right[1, -3, 3, 0] == -3 and halves[1, -3, 3, 0] == 3
assert {abs(value) for value in (*left_to_right.values(), *halves.values())} == {3}
assert find("05-larger").answer == "no: in one tree 3 comes out, in another -3"
low, high = (torch.empty(1, device=course_lib.DEVICE) for _ in range(2))
range_kernel[(1,)](row, low, high, BLOCK=8)
assert (low.item(), high.item()) == (-2, 3)

# %% [markdown]
# ## Your turn: Welford in the lanes
#
# Three numbers per lane, a step with a mask, and your merge of exercise 04b make one kernel.

# %%
exercise("05b")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("02b")

# %% [markdown]
# ## Which kernel keeps its digits?
#
# The chart shows the error of each kernel at each mean. Drag the line. When your kernels pass, tick
# *your 05a* and *your 05b* and press *Run the kernels*: they get the same rows. Find
#
# 1. how many digits your own kernels keep at mean/std = 10,000;
# 2. how far your Welford stays below its bound;
# 3. with *first element far out*: which kernel falls behind at small means.

# %%
from course_lib.lessons import accuracy

accuracy()

# %% tags=["check"]
from course_lib.lessons.lesson05.accuracy.model import RATIOS, model

at = {round(ratio): index for index, ratio in enumerate(RATIOS)}
state = model("var", n=512)
curves = {curve.key: curve.errors for curve in state.curves}
far = {key: errors[at[10_000]] for key, errors in curves.items()}
assert far["one_pass"] > 1 and max(far["shifted"], far["two_pass"]) < 5e-6 < far["welford"] < 1e-2
assert (
    300 < curves["one_pass"][at[1000]] / curves["one_pass"][at[10]] < 1e6
)  # two decades of mean/std: four of the error
assert all(error <= limit for error, limit in zip(curves["one_pass"], state.bound, strict=True))
loud = {curve.key: curve.errors[at[1]] for curve in model("var", n=512, rows="loud").curves}
assert loud["shifted"] > 10 * max(loud["two_pass"], loud["welford"])
assert all(
    error < 2e-4 for error in next(c for c in model("var", n=512, rows="loud").curves if c.key == "shifted").errors
)

# %% [markdown]
# Welford subtracts a mean that is still moving, and its error grows with kappa. Two-pass subtracts
# the mean itself. Shifted one-pass depends on the first element: the worst one makes the error up to
# about N times as large, at *any* mean.

# %%
predict("05-output")

# %% tags=["check"]
y_error = {curve.key: curve.errors[at[10_000]] for curve in model("y", n=512).curves}
assert 10 < far["welford"] / far["two_pass"] < 1000 and 0.1 < y_error["welford"] / y_error["two_pass"] < 10
assert y_error["two_pass"] > 10 * far["two_pass"] and not y_error["one_pass"] < 1  # NaN, or far too large
assert 0.0009 < np.spacing(np.float32(10_000)) < 0.001
assert find("05-output").answer == "almost none"
far_out = {curve.key: curve.errors[at[1]] for curve in model("y", n=512, rows="loud").curves}
assert far_out["shifted"] > 50 * max(far_out["two_pass"], far_out["welford"])

# %% [markdown]
# ## How long do they take?
#
# Times of an H100 again (2026-11-21), for 2²⁸ elements of fp32. The unit is **one read**, about
# {{read}} µs: PyTorch's sum of x, or half of a copy, whichever is faster. At 262,144 columns two-pass
# takes {{two_pass_long}} reads, because its second sweep is a second read. All others take between
# {{others_low}} and {{others_high}}. On short rows Welford was the slow one.

# %%
predict("05-half")

# %% tags=["answer"]
from course_lib.lessons.lesson05 import figures

figures.show_stored_cost()

# %% tags=["check"]
longest = {name: value for (name, N), value in over.items() if N == 262_144}
assert longest["two_pass"] == max(longest.values()) > 1.9
assert all(0.98 < value < 1.08 for name, value in longest.items() if name != "two_pass")
us = {(row["dtype"], row["provider"]): row["us"] for row in measurement.stored(KIND).rows if row["N"] == 1024}
assert streamed_launch(1024, None).block == 1024  # a lane has one number
half, read = find("05-half"), [r["us"] / r["over_floor"] for r in measurement.stored(KIND).rows if r["dtype"] == "fp32"]
assert f"one read takes {np.mean(read):.0f} µs" in half.question
assert half.answer.startswith(f"about {round(us['fp16', 'welford'], -1):.0f} µs")
assert f"took {us['fp32', 'welford']:.0f} µs" in half.question
assert f"from {us['fp32', 'resident']:.0f} to {us['fp16', 'resident']:.0f} µs" in half.why
assert all(abs(over["shifted", N] - over["welford", N]) < 0.05 for N in (16_384, 65_536, 262_144))
assert over["two_pass", 4096] < 1 < 1.9 < over["two_pass", 16_384]
assert all(over["resident", N] < 1 for N in (1024, 4096, 16_384))

# %% [markdown]
# ## Decide
#
# Back to the rows of the beginning, too long for the lanes of one program.

# %%
predict("05-decide")

# %% tags=["check"]
x, off = make_rows(10_000, M=4, N=65_536), {}
off["shifted, ordinary first element"] = find_error(row_statistics(x, "shifted", block=2048)[1], x)
for name in ("one_pass", "two_pass", "welford"):
    off[name] = find_error(row_statistics(x, name, block=2048)[1], x)
assert off["shifted, ordinary first element"] < 1e-6 and off["two_pass"] < 1e-6
assert off["one_pass"] > 1 and 1e-5 < off["welford"] < 1e-4
x[:, 0] += 200  # far less than sqrt(N - 1) standard deviations
for name in ("shifted", "welford"):
    off[name] = find_error(row_statistics(x, name, block=2048)[1], x)
assert 1e-3 < off["shifted"] < 1e-2 and off["welford"] < 1e-4
assert all(over[name, 65_536] < 1.1 < over["two_pass", 65_536] for name in ("one_pass", "shifted", "welford"))
decide = find("05-decide")
assert decide.answer == "shifted one-pass" and f"takes {over['shifted', 65_536]:.2f} reads" in decide.why
assert f"takes {over['two_pass', 65_536]:.2f} reads" in decide.others["two-pass"]

# %% [markdown]
# ## Without rails
#
# An optional task. In 05b every lane carries a count, and a function of yours merges the lanes in
# an order that the compiler chooses. Neither is needed. Write the kernel with one sweep, the same
# digits, and no `tl.reduce`. The task gives no points.

# %%
exercise("05c")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("05")

# %% [markdown]
# **Where to read on**
#
# - [`triton.language.reduce`](https://triton-lang.org/main/python-api/generated/triton.language.reduce.html),
#   and issue [#4962](https://github.com/triton-lang/triton/issues/4962) for what it leaves out.
# - Chan, Golub and LeVeque 1983, [Algorithms for Computing the Sample
#   Variance](https://doi.org/10.1080/00031305.1983.10483115): the shift, Welford, the merge, and
#   when to take which.
# - `course_lib/kernels/row_statistics.py`, after the exercises: all five kernels.
#
# **Next:** lesson 06. What a reduction costs, and why bytes come before arithmetic.

# %% [markdown] tags=["dive"]
# ## Dive: when does the second sweep cost nothing?
#
# The cost of the second sweep does not depend on the algorithm. It depends on where the row is when
# it is needed again.

# %% [markdown]
# If all rows that are being worked on fit a cache, the second sweep reads from there. An H100 has
# 132 multiprocessors, which run the programs, and 50 MB of L2, a cache that all of them share. Say
# each works on 8 programs at a time. How long may an fp32 row be?

# %%
programs = 132 * 8
print("columns that fill 50 MB:", round(50e6 / (4 * programs)))
for columns in (4096, 16_384, 262_144):
    print(f"N {columns:7}: {programs * columns * 4 / 1e6:5.0f} MB at work")

# %% tags=["check"]
assert round(50e6 / (4 * programs), -3) == 12_000
fp16 = figures.read_stored_cost("fp16")  # half the bytes per column: the step comes later
assert fp16["two_pass", 16_384] < 1.2 < 1.8 < fp16["two_pass", 65_536]

# %% [markdown]
# By 12,000 columns the cache is full. In the picture streamed two-pass takes {{two_pass_short}}
# reads at 4096 columns and {{two_pass_16384}} at 16,384: the step lies between. In fp16 a row has
# half the bytes, and the step comes later, as the choice above the picture shows:
# {{two_pass_fp16_16384}} at 16,384 columns, {{two_pass_fp16_65536}} at 65,536.

# %% [markdown] tags=["dive"]
# ## Dive: what do three numbers per lane cost?
#
# If Welford holds the whole row in one block, it has no pass to save. Does it do any harm?

# %% [markdown]
# Every lane comes to the first merge with a count, a mean and an M2. The compiler tells what that
# takes, without a GPU. With 32,768 columns on 32 warps, which are 1024 threads (lesson 06), a
# thread has 64 registers.

# %% varies={"gpu": "the registers depend on the Triton of that machine"}
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.row_statistics import resident_kernel, welford_kernel

N, pointers, tile = 32_768, [Pointer("fp32")] * 3, {"ROWS": 1, "BLOCK": 32_768}
two_pass = compile_report(resident_kernel, [*pointers, N, 1, 1024, N], tile, num_warps=32)
welford = compile_report(welford_kernel, [*pointers, N, 1, N], {"BLOCK": N}, num_warps=32)
for name, report in (("two-pass", two_pass), ("Welford", welford)):
    print(f"{name}: {report.registers} registers per thread, {report.spill_bytes} bytes spilled")

# %% tags=["check"]
assert two_pass.spill_bytes == 0 < welford.spill_bytes and N // (32 * 32) == 32 and 65_536 // (32 * 32) == 64
streamed = compile_report(welford_kernel, [*pointers, N, 1, N], {"BLOCK": 2048}, num_warps=8)
assert streamed.spill_bytes == 0
assert figures.read_stored_cost()["resident_welford", 16_384] > 1.5 > 1 > figures.read_stored_cost()["resident", 16_384]

# %% [markdown]
# Welford spills: registers are written out to memory and read back. Streamed, with a block of 2048,
# the same kernel is far from any limit. Take Welford where the row does not stay.

# %% [markdown] tags=["dive"]
# ## Dive: a function that is associative and not commutative
#
# What does `tl.reduce` do with it?

# %% [markdown]
# `x -> s x + t` is a map of two numbers, s and t. Two such maps, one after the other, are such a
# map again. The grouping does not matter, the order does. Here are eight maps, combined in order by
# Python, and then by `tl.reduce`.


# %%
@triton.jit
def one_after_another(s_a, t_a, s_b, t_b):
    return s_a * s_b, t_a * s_b + t_b


@triton.jit
def maps_kernel(s_ptr, t_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    _, t = tl.reduce((tl.load(s_ptr + lanes), tl.load(t_ptr + lanes)), 0, one_after_another)
    tl.store(out_ptr, t)


# %%
s = torch.tensor([2.0, 1, 3, 1, 2, 1, 1, 3], device=course_lib.DEVICE)
t = torch.arange(8.0, device=course_lib.DEVICE)
out, in_order = torch.empty(1, device=course_lib.DEVICE), 0.0
for index in range(8):
    in_order = in_order * s[index].item() + t[index].item()
maps_kernel[(1,)](s, t, out, BLOCK=8)
print("in order", in_order, "tl.reduce", out.item())

# %% tags=["check"]
assert in_order == 100
if course_lib.MODE == "cpu":  # what a compiler makes of it is its own affair
    assert out.item() != in_order

# %% [markdown]
# On the CPU the two differ: the course's interpreter lets lane i meet lane i + 4, then i + 2, then
# i + 1, as the shuffles of a warp may. On a GPU the number depends on the layout that the compiler
# chose. For such functions there is `tl.associative_scan`, which takes care of the order since
# September 2023 ([#2362](https://github.com/triton-lang/triton/pull/2362)).

# %% tags=["values"]
import numpy as np
from course_lib.bench import measurement
from course_lib.bench.row_statistics import KIND
from course_lib.lessons.lesson05 import figures

fp32, fp16 = (figures.read_stored_cost(dtype) for dtype in ("fp32", "fp16"))


others = [over for (provider, N), over in fp32.items() if N == 262_144 and provider != "two_pass"]
values = {
    "read": round(
        np.mean([row["us"] / row["over_floor"] for row in measurement.stored(KIND).rows if row["dtype"] == "fp32"])
    ),
    "two_pass_long": f"{fp32['two_pass', 262_144]:.2f}",
    "others_low": f"{min(others):.2f}",
    "others_high": f"{max(others):.2f}",
    "two_pass_short": f"{fp32['two_pass', 4096]:.2f}",
    "two_pass_16384": f"{fp32['two_pass', 16_384]:.2f}",
    "two_pass_fp16_16384": f"{fp16['two_pass', 16_384]:.2f}",
    "two_pass_fp16_65536": f"{fp16['two_pass', 65_536]:.2f}",
}
