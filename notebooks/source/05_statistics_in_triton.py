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
# # 05 Statistics in Triton
#
# You know four ways to a variance, and what each of them forgets. Now they become kernels. A thousand lanes work at once, so each keeps
# something of its own, and at the end the lanes have to agree. What a lane keeps, and how two lanes agree, is this lesson. Then you
# measure: digits here, and time on a GPU. The two do not have the same winner.
#
# **You will be able to**
#
# - write one-pass, shifted, two-pass and Welford as kernels with per-lane accumulators;
# - hand `tl.reduce` a combine function of your own, and say what the lanes without an element do to it;
# - predict from mean/std how many digits each kernel keeps, on your own kernels too;
# - say when Welford saves a sweep, and when there is none to save.
#
# **You need** lesson 03 (the algorithms, kappa, the merge of Chan) and lesson 04 with exercise 04a (row sums, trees, passes).
#
# **Time** about 105 minutes: 50 to read and run, 20 for exercise 05a, 35 for 05b.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import accuracy, picture
from course_lib.norms import statistics

# %% [markdown]
# ## What does a lane keep?
#
# In exercise 04a every lane added up its own columns, and the lanes met once, in one `tl.sum` after the loop. One-pass wants two sums, of
# `x` and of `x²`. So a lane keeps two numbers.
#
# Row 0 of the worked example is `2 -1 3 .5 -.5 1.5 -2 1`, BLOCK = 4. What are the two numbers of lane 0 after both blocks, and what do all
# lanes' squares add up to? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
row = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])
blocks = row.reshape(2, 4)  # two steps of four lanes: lane j sees columns j and j + 4
total, squares = blocks.sum(axis=0), (blocks**2).sum(axis=0)
print(f"total of each lane   {total}, together {total.sum()}")
print(f"squares of each lane {squares}, together {squares.sum()}")
assert (total[0], squares[0]) == (1.5, 4.25) and squares.sum() == 21.75
assert squares.sum() / 8 - (total.sum() / 8) ** 2 == row.var()

# %% [markdown]
# 1.5 and 4.25; 21.75 together. The kernel is that of 04a with a second accumulator. The last line subtracts.


# %%
@triton.jit
def one_pass_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / N
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N - mean * mean)


def run(kernel, x: np.ndarray, BLOCK: int, **constants) -> tuple[np.ndarray, np.ndarray]:
    x = torch.tensor(x, dtype=torch.float32, device=DEVICE)
    M, N = x.shape
    mean, var = torch.empty(M, device=DEVICE), torch.empty(M, device=DEVICE)
    kernel[(M,)](x, mean, var, x.stride(0), N, BLOCK=BLOCK, **constants)
    return mean.cpu().numpy(), var.cpu().numpy()


mean, var = run(one_pass_kernel, row[None], BLOCK=4)
print(f"mean {mean[0]}, var {var[0]}")
assert mean[0] == row.mean() and abs(var[0] - row.var()) < 1e-6

# %% [markdown]
# (`.to(tl.int64)` is there because `row * stride_x` can pass 2³¹; lesson 06 shows what happens then. Padded lanes load 0 and add nothing
# to either sum.)
#
# ### How many digits does it keep?
#
# Lesson 03 found one-pass off by kappa² roundings: about 6e-8 times (mean/std)², and a few times that. With 2000 columns and BLOCK = 256
# the kernel adds up 8 columns a lane and then 256 lanes in a tree: 15 additions on top of one another, where one after the other would be
# 1999. Does that save the digits at mean/std = 1000? *(Predict, then run.)*

# %%
rng = np.random.default_rng(0)
N = 2000
assert -(-N // 256) - 1 + 8 == 15 and 2**8 == 256  # in a lane, and between the lanes


def rows_at(ratio: float) -> np.ndarray:
    """Eight fp32 rows with standard deviation 1 and a mean of about `ratio`."""
    noise = rng.standard_normal((8, N))
    return (noise + ratio * (1 + 0.1 * rng.random((8, 1)))).astype(np.float32)


def off(var: np.ndarray, x: np.ndarray) -> float:
    true = x.astype(np.float64).var(axis=1)
    return (abs(var - true) / true).max()


x_at = {ratio: rows_at(ratio) for ratio in (1, 10, 100, 1000, 10000)}
one_pass = {}
for ratio, x in x_at.items():
    _, var = run(one_pass_kernel, x, BLOCK=256)
    one_pass[ratio] = off(var, x)
    print(f"mean/std {ratio:5}: variance off by {one_pass[ratio]:.0e}; {(var < 0).sum()} of 8 rows negative")
assert one_pass[1] < 1e-6 and 1e-3 < one_pass[1000] < 10 and one_pass[10000] > 1
assert 300 < one_pass[1000] / one_pass[10] < 1e6  # about 100 for each factor of 10
assert (var < 0).any()

# %% [markdown]
# No. Shallow sums keep a few digits of each *sum*. Then the subtraction takes away what the two have in common, and that is nearly all of
# it. Each factor of 10 in mean/std costs two digits, and at 10000 some variances are negative.
#
# ## Does a shift help, and what does it do to the padding?
#
# The variance of `x - shift` is that of `x`, and with a shift near the mean nothing is left to cancel. The row's first element will do:
# one load more, no sweep more.
#
# ```
# shift = tl.load(x_ptr + row * stride_x)
# ... x - shift in the place of x ...
# mean = shift + tl.sum(total, axis=0) / N
# ```
#
# Take rows of 1000 columns with BLOCK = 64, so that 24 lanes of the last block are padded. mean = 10, variance 1. In one-pass the padded
# lanes were harmless. Are they now? *(Predict, then run.)*


# %%
@triton.jit
def shifted_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr, MASK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    shift = tl.load(x_ptr + row * stride_x).to(tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32) - shift
        if MASK:
            x = tl.where(cols < N, x, 0.0)
        total += x
        squares += x * x
    offset = tl.sum(total, axis=0) / N
    tl.store(mean_ptr + row, shift + offset)
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N - offset * offset)


# %%
x = 10 + rng.standard_normal((4, 1000))
pad = -1000 % 64
offset = x.mean(axis=1) - x[:, 0]
law = x.var(axis=1) + offset**2 + pad / 1000 * x[:, 0] ** 2 - (offset - pad / 1000 * x[:, 0]) ** 2
for MASK in (False, True):
    mean, var = run(shifted_kernel, x, BLOCK=64, MASK=MASK)
    print(f"padded lanes cleared {MASK!s:5}: mean {mean.round(2)}, var {var.round(2)}")
    assert (
        np.allclose(var, x.var(axis=1) if MASK else law, rtol=1e-4)
        and np.allclose(mean, x.mean(axis=1), rtol=1e-5) == MASK
    )
assert pad == 24 and (law > 2 * x.var(axis=1)).all()

# %% [markdown]
# They load 0 and then hold `-shift`: 24 elements at -10 that the row does not have. Mean and variance are both wrong. `other=0.0` speaks
# of the load alone. After *any* subtraction, ask again what the padded lanes hold, and clear them with `tl.where(cols < N, ..., 0.0)`.
# (This is the commonest bug in norm kernels. Lesson 06 follows it through three libraries.)
#
# With the lanes cleared: how many digits does the shifted kernel keep at mean/std = 10000? *(Predict, then run.)*

# %%
shifted = {}
for ratio, x in x_at.items():
    shifted[ratio] = off(run(shifted_kernel, x, BLOCK=256, MASK=True)[1], x)
    print(f"mean/std {ratio:5}: one-pass {one_pass[ratio]:.0e}, shifted {shifted[ratio]:.0e}")
assert max(shifted.values()) < 1e-5

# %% [markdown]
# Six digits, wherever the mean is. What can go wrong is the shift: what counts is now kappa of `x - shift`, and the first element may be
# the worst of the row. How bad can the worst be? The largest element of a row of N numbers, in standard deviations from the mean: is
# there a limit? *(Predict, then run.)*

# %%
lone = np.zeros((1, N))
lone[0, 0] = 1  # all alike but one: nothing stands out more
farthest = (lone[0, 0] - lone.mean()) / lone.std()
print(f"{farthest:.2f} standard deviations out; sqrt(N - 1) = {(N - 1) ** 0.5:.2f}")
assert np.isclose(farthest, (N - 1) ** 0.5)

loud = x_at[1].copy()
loud[:, 0] += 1000
kappa = statistics.condition_number(loud, loud[:, 0]).max()
error = off(run(shifted_kernel, loud, BLOCK=256, MASK=True)[1], loud)
print(
    f"first element far out: kappa {kappa:.0f}, shifted off by {error:.0e}; its limit {kappa**2 * 2**-24:.0e} times a few"
)
assert kappa <= 1.01 * N**0.5 and 20 * max(shifted.values()) < error < 100 * kappa**2 * 2**-24

# %% [markdown]
# sqrt(N - 1), and no more: an element that is far out widens the row, too. So kappa² of the shifted row is at most N, and with 2000
# columns you keep three digits at the very worst. Not a lottery, then, but not a promise of six digits either.
#
# ## What does the second sweep buy?
#
# The best shift is the mean itself. It is not known until the row has been read, and a row longer than BLOCK has left the lanes by then.
# So the program reads it a second time:
#
# | | sweep 1 | sweep 2 |
# |---|---|---|
# | a lane keeps | the sum of its columns | the sum of its squared deviations |
# | the lanes meet for | mean | var |
# | a padded lane holds | 0 | `0 - mean`, unless you clear it |
#
# Two questions before you write it. How many accumulators does a lane need at a time? And how often does each kernel ask for `x`? The
# tracer of lesson 04 counts, on the course's own kernels. *(Predict, then run.)*

# %%
from course_lib.bench import row_statistics as bench
from course_lib.interpreter.bounds import Region
from course_lib.interpreter.trace import tracing
from course_lib.kernels.row_statistics import row_statistics

x = torch.tensor(x_at[10], device=DEVICE)


def passes(algorithm: str) -> float:
    """How often the course's kernel asks for x. The tracer watches the interpreter; a compiled kernel is taken at its word."""
    if course_lib.MODE == "gpu":
        return bench.SWEEPS[algorithm]
    with tracing([Region.of("x", x)]) as trace:
        row_statistics(x, algorithm)
    return trace.passes("x", "load")


asked = {algorithm: passes(algorithm) for algorithm in ("one_pass", "shifted", "two_pass", "welford", "resident")}
print({algorithm: round(count, 3) for algorithm, count in asked.items()})
assert all(abs(count - bench.SWEEPS[algorithm]) < 0.001 for algorithm, count in asked.items())
assert asked["two_pass"] == 2 and round(asked["shifted"] * N) in (N, N + 1)  # its first element a second time

# %% [markdown]
# One accumulator at a time: the first is done with when the second begins. And two passes over `x`, where everything else makes one. Keep
# the last two columns in mind, `welford` and `resident`. They are two different ways out.
#
# ## Exercise 05a: two sweeps
#
# Now write it. Rows of any length, a row stride, fp16 and bf16 in, fp32 inside. You have all the pieces: the loop of `one_pass_kernel`,
# twice.

# %%
exercise("05a")

# %% [markdown]
# ## Can a lane run Welford?
#
# Welford keeps count, mean and M2, and takes in one number at a time. It is a sequential algorithm, and here are BLOCK lanes. So let
# there be BLOCK Welfords: each lane runs its own, over its own columns, and knows nothing of its neighbours.
#
# $$\mathrm{count} \mathrel{+}= 1 \qquad d = x - \mathrm{mean} \qquad \mathrm{mean} \mathrel{+}= d / \mathrm{count} \qquad
# \mathrm{M2} \mathrel{+}= d\,(x - \mathrm{mean})$$
#
# The worked row again, four lanes, two steps. What are mean and M2 of lane 0, which sees 2 and -0.5? And the four M2 together: is that the
# M2 of the row? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
count, mean, M2 = np.zeros(4), np.zeros(4), np.zeros(4)
for block in blocks:
    count += 1
    deviation = block - mean
    mean += deviation / count
    M2 += deviation * (block - mean)  # the second factor uses the new mean
print(f"count {count}\nmean  {mean}\nM2    {M2}, together {M2.sum()}")
true_M2 = ((row - row.mean()) ** 2).sum()
print(f"M2 of the row {true_M2}, short by {true_M2 - M2.sum()}")
assert (mean[0], M2[0]) == (0.75, 3.125) and M2.sum() == 18.875 and true_M2 == 19.21875

# %% [markdown]
# 0.75 and 3.125. And no: 0.34375 is missing. Every M2 is taken around the mean *of its lane*, and the lanes have different means. Where
# is the rest? *(Predict, then run.)*

# %%
between = (count * (mean - row.mean()) ** 2).sum()
print(f"2 numbers a lane, times the squared distance of its mean from the row's: {between}")
assert between == true_M2 - M2.sum() == 0.34375

# %% [markdown]
# In the distances between the lanes' means. Chan's merge adds it, two lanes at a time:
#
# $$n = n_a + n_b \qquad \delta = \mathrm{mean}_b - \mathrm{mean}_a \qquad \mathrm{mean} = \mathrm{mean}_a + \delta\,\frac{n_b}{n} \qquad
# \mathrm{M2} = \mathrm{M2}_a + \mathrm{M2}_b + \delta^2\,\frac{n_a n_b}{n}$$
#
# You wrote it in 03c. What is new is the question who calls it.
#
# ## How do the lanes agree?
#
# `tl.sum` adds lanes up. `tl.reduce` is the same tree with *your* function at its nodes:
#
# ```
# n, mean = tl.reduce((count, mean), 0, combine)      # axis 0; a tuple of blocks in, a tuple of numbers out
# ```
#
# `combine` is a second `@triton.jit` function. For k blocks it takes 2k values, first all of side a, then all of side b, and returns k.
# It is called for whole groups of lanes at a time, in an order that the compiler chooses. So it must be associative: ((a b) c) and (a (b
# c)) have to be the same, up to rounding. Chan's merge is.
#
# Here is half of it, counts and means. Five columns in 16 lanes, so that 11 lanes have seen nothing: count 0, mean 0. What is the mean of
# the row? And for 16 columns? *(Predict, then run.)*


# %%
@triton.jit
def merge_means(n_a, mean_a, n_b, mean_b):
    n = n_a + n_b
    return n, mean_a + (mean_b - mean_a) * (n_b / n)


@triton.jit
def guarded_merge_means(n_a, mean_a, n_b, mean_b):
    n = n_a + n_b
    return n, mean_a + (mean_b - mean_a) * (n_b / tl.maximum(n, 1.0))


@triton.jit
def mean_of_lanes_kernel(x_ptr, mean_ptr, N, BLOCK: tl.constexpr, GUARD: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    count = (lanes < N).to(tl.float32)
    x = tl.load(x_ptr + lanes, mask=lanes < N, other=0.0)
    if GUARD:
        _, mean = tl.reduce((count, x), 0, guarded_merge_means)
    else:
        _, mean = tl.reduce((count, x), 0, merge_means)
    tl.store(mean_ptr, mean)


means = {}
for columns in (5, 16):
    x = torch.arange(columns, dtype=torch.float32, device=DEVICE)
    out = torch.empty(1, device=DEVICE)
    for GUARD in (False, True):
        with np.errstate(invalid="ignore"):  # NumPy would warn of 0 / 0 in the interpreter; a GPU does not
            mean_of_lanes_kernel[(1,)](x, out, columns, BLOCK=16, GUARD=GUARD)
        means[columns, GUARD] = out.item()
        print(f"{columns:2} columns in 16 lanes, guarded {GUARD!s:5}: mean {out.item()}")
assert np.isnan(means[5, False]) and means[5, True] == 2.0
assert means[16, False] == means[16, True] == 7.5

# %% [markdown]
# NaN. Of 16 lanes 11 are empty, so in the first step of any tree some two of them meet: n = 0, and `n_b / n` is 0/0. From there the NaN
# climbs to the top. With 16 columns no lane is empty, and the kernel is right. A test with N at least BLOCK never sees this bug.
#
# Look at the guard. It need not be right for n = 0. It needs to be *finite*: the difference of two empty lanes is 0, and 0 times anything
# finite is 0.
#
# ### What does a padded lane do in the loop?
#
# The other place is the last block, in which some lanes have no element while all have a past. Such a lane must come out as it went in.
# What has to be true of `d` and of `count`? Here are three of the four possibilities; the rows have mean 3 and variance 1. Which one is
# right? *(Predict, then run.)*


# %%
@triton.jit
def careless_means_kernel(
    x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr, CLEAR: tl.constexpr, COUNT_ALL: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    count = tl.zeros([BLOCK], dtype=tl.float32)
    mean = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        deviation = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0) - mean
        if CLEAR:
            deviation = tl.where(mask, deviation, 0.0)
        if COUNT_ALL:
            count += 1.0
        else:
            count += mask.to(tl.float32)
        mean += deviation / tl.maximum(count, 1.0)
    n, mean = tl.reduce((count, mean), 0, guarded_merge_means)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, n)


x = 3 + rng.standard_normal((1, 40))
errors = {}
for CLEAR, COUNT_ALL in ((False, False), (True, True), (True, False)):
    mean, n = run(careless_means_kernel, x, BLOCK=16, CLEAR=CLEAR, COUNT_ALL=COUNT_ALL)
    errors[CLEAR, COUNT_ALL] = abs(mean[0] - x.mean())
    print(
        f"deviation cleared {CLEAR!s:5}, padding counted {COUNT_ALL!s:5}: n = {n[0]:.0f}, mean off by {errors[CLEAR, COUNT_ALL]:.0e}"
    )
assert errors[True, False] < 1e-6 < 1e-3 < min(errors[False, False], errors[True, True])

# %% [markdown]
# Only the last: the deviation cleared *and* the lane not counted. With `d` = 0 the mean does not move and M2 gets `0 * (x - mean)`. One
# `tl.where` covers both.
#
# ### Whose order?
#
# You do not choose the tree, and BLOCK changes which columns share a lane. So the result depends on BLOCK. By how much, for rows with
# mean/std = 10? *(Predict, then run.)*

# %%
x = torch.tensor(x_at[10], device=DEVICE)
by_block = {BLOCK: row_statistics(x, "welford", block=BLOCK)[1].cpu().numpy() for BLOCK in (128, 512, 2048)}
apart = max(abs(var / by_block[128] - 1).max() for var in by_block.values())
print(f"variances for BLOCK 128, 512 and 2048 differ by up to {apart:.0e} of themselves")
assert N <= 2048 and apart < 1e-5

# %% [markdown]
# By a few roundings. With BLOCK = 2048 every lane has one column at most, no Welford step does anything, and the merge does all of the
# work. It is right at that end too.
#
# ## Exercise 05b: Welford in the lanes
#
# Three numbers a lane, a step with a mask, and a merge of six arguments. You have seen each of them alone.

# %%
exercise("05b")

# %% [markdown]
# ## Which kernel keeps its digits?
#
# Two-pass subtracts the mean before it squares. So does Welford, only that its mean is still moving. Lesson 03 gave bounds: one-pass loses
# kappa² roundings, Welford kappa, and two-pass next to none until (kappa u)² shows. On logarithmic axes kappa² is a line of slope 2.
#
# Before you touch the widget, write down for mean/std = 10000: how many digits of the variance are left in one-pass, two-pass and
# Welford? Then move the slider. Choose another bound. Choose rows whose first element is far out. And when you have solved 05a and 05b,
# tick *your* kernels: they run on the same rows. (A first run of long rows takes seconds on a CPU.)

# %%
accuracy()

# %%
from course_lib.lessons.accuracy.model import RATIOS, model

state = model("var", n=512)
at = {round(ratio): index for index, ratio in enumerate(RATIOS)}
for ratio in (10, 1000, 10000):
    print(f"mean/std {ratio:5}:", {curve.key: f"{curve.errors[at[ratio]]:.0e}" for curve in state.curves})
curves = {curve.key: curve.errors for curve in state.curves}
assert (
    300 < curves["one_pass"][at[1000]] / curves["one_pass"][at[10]] < 1e6
)  # two decades of mean/std: four of the error
assert 10 < curves["welford"][at[10000]] / curves["welford"][at[10]] < 1e5  # three decades: three
assert curves["one_pass"][at[10000]] > 1 and 1e-6 < curves["welford"][at[10000]] < 1e-2
assert max(curves["two_pass"][: at[10000]]) < 1e-6 and curves["two_pass"][at[10000]] < 1e-5
assert (
    curves["one_pass"][at[10000]] > 1e4 * curves["welford"][at[10000]]
    and curves["welford"][at[10000]] > 10 * curves["two_pass"][at[10000]]
)
assert all(error <= limit for error, limit in zip(curves["one_pass"], state.bound, strict=True))

# %% [markdown]
# None, about six, about four. So Welford is no free lunch: there it is tens of times as far off as two-pass. But it is more than ten
# thousand times nearer than one-pass, in one sweep, and needs no luck with the first element. That is what it is for.
#
# ### Does y care?
#
# A norm does not hand out its variance. It hands out `y = (x - mean) * rstd`. Set *error of* to LayerNorm output. In the variance
# two-pass keeps more than a digit more than Welford at mean/std = 10000. How many more in y? *(Predict, then run.)*

# %%
y_error = {curve.key: curve.errors for curve in model("y", n=512).curves}
print({key: f"{errors[at[10000]]:.0e}" for key, errors in y_error.items()})
two_pass, welford = y_error["two_pass"][at[10000]], y_error["welford"][at[10000]]
print(
    f"Welford / two-pass: variance {curves['welford'][at[10000]] / curves['two_pass'][at[10000]]:.0f}, y {welford / two_pass:.1f}"
)
assert 1 / 10 < welford / two_pass < 10 and two_pass > 10 * curves["two_pass"][at[10000]]
assert not y_error["one_pass"][at[10000]] < 1  # NaN, or far too large

# %% [markdown]
# None to speak of. A mean of 10000 is a fp32 number, and its neighbours are 0.001 away. So the mean that you subtract is off by up to
# half of that, whatever computed it, and so is every y. The rounding of the mean hides the rest. Two-pass, shifted and Welford all give
# the y that fp32 can give; one-pass does not.

# %%
assert 0.0009 < np.spacing(np.float32(10000)) < 0.001

# %% [markdown]
# ## When is there a sweep to save?
#
# So far two-pass is the most exact, and Welford reads once. Which of the two is faster? That depends on a question that has nothing to do
# with statistics: *where is the row when it is needed again?*
#
# - **In registers.** If BLOCK is at least N, the row is in the lanes after one load. Two-pass then sweeps over registers. Both kernels
#   read `x` once from memory.
# - **In a cache.** A streamed row comes back from L1 or L2 in the second sweep, as long as the rows of all running programs fit in there.
# - **In memory.** Otherwise the second sweep is a second read.
#
# Do the sum for an H100: 132 multiprocessors, 50 MB of L2, and say 8 programs at a time on each multiprocessor. How long may an fp32 row
# be, so that all rows at work fit the L2? *(Predict, then run.)*

# %%
programs = 132 * 8
limit = 50e6 / (4 * programs)
print(f"{programs} rows at work: {limit:.0f} columns each fill 50 MB")
for columns in (4096, 16384, 65536, 262144):
    print(f"N {columns:6}: {programs * columns * 4 / 1e6:6.0f} MB at work")
assert 11000 < limit < 12000 and programs * 262144 * 4 > 20 * 50e6

# %% [markdown]
# About 12000. At 262144 columns the rows at work are 1.1 GB, and nothing of a row is left in any cache when its second sweep begins. There
# two-pass has to cost a sweep more than Welford. On short rows it has not. Between the two, only a measurement tells.
#
# Here are the kernels themselves: the times of this machine if it has a GPU, else of the GPU that the figure names. 1 is the time in
# which `x` can be read once. Where do you expect streamed two-pass at 4096 columns, and where at 262144? And the resident kernels?
# *(Predict, then run.)*

# %%
from course_lib.lessons.figures import lesson05

measured = bench.latest()
if measured is None:
    print("There is no measurement yet. On a machine with a GPU this cell takes one.")
    shown = picture(
        lesson05.sweeps(),
        alt="How often each kernel reads x from memory: two-pass twice if streamed from memory, all others once.",
    )
else:
    fp32 = [r for r in measured.rows if r["dtype"] == "fp32"]
    shown = picture(
        lesson05.sweep_cost(fp32, measured.label()),
        alt="Time of the statistics kernels over the time in which x is read once, by row length, fp32, "
        f"{measured.label()}. The next cell prints the numbers.",
    )
shown

# %%
SHOWN = ("one_pass", "shifted", "two_pass", "welford", "resident", "resident_welford", "torch")
if measured is not None:
    times = {(r["dtype"], r["provider"], r["N"]): r for r in measured.rows}
    lengths = sorted({r["N"] for r in measured.rows})
    for dtype in ("fp32", "fp16"):
        print(
            f"{measured.label()}, {dtype}: time over one read of x\n{'N':>18}"
            + "".join(f"{columns:9}" for columns in lengths)
        )
        for name in SHOWN:
            line = [times.get((dtype, name, columns)) for columns in lengths]
            print(f"{name:>18}" + "".join(f"{'-':>9}" if r is None else f"{r['over_floor']:9.2f}" for r in line))
    us = {key: r["us"] for key, r in times.items()}
    longest = lengths[-1]
    held = [columns for columns in lengths if ("fp32", "resident", columns) in us]
    both = {name: sum(us["fp32", name, columns] for columns in held) for name in ("resident", "resident_welford")}
    if not measured.live:  # a GPU that others use at the same time proves nothing
        assert us["fp32", "two_pass", longest] > 1.3 * us["fp32", "one_pass", longest]
        assert us["fp32", "two_pass", longest] > 1.3 * us["fp32", "welford", longest]
        assert both["resident"] < 1.1 * both["resident_welford"]
assert bench.SWEEPS["two_pass"] == 2 * bench.SWEEPS["welford"] == 2 * bench.SWEEPS["resident"]

# %% [markdown]
# Read the table in this order.
#
# 1. **The longest rows.** Streamed two-pass takes well over the time of one-pass and of Welford, which sweep once. This is the sweep that
#    Welford saves.
# 2. **The rows that fit registers.** `resident` is two passes, `resident_welford` is the Welford kernel with the row in one block. Both
#    read once, so Welford has nothing left to save. And its merge carries three numbers through the tree, where a sum carries one. Does
#    it win anywhere?
# 3. **In between.** Where does streamed two-pass leave the others? Compare with the 12000 columns you worked out.
# 4. **fp16.** An element has 2 bytes, so rows twice as long fit the cache: the step should come twice as late. And half the bytes leave half
#    the time for the same arithmetic. Where Welford stands higher than in fp32, its arithmetic shows.
#
# ### What do three numbers a lane cost?
#
# The compiler tells without a GPU. A resident fp32 row of 32768 columns on 32 warps is 32 registers a thread for `x` alone; a thread of
# such a program has 64. Two passes, or the merge of Welford: which of them does not fit? *(Predict, then run.)*

# %%
from course_lib.compiler import Pointer, compile_report
from course_lib.kernels.row_statistics import resident_kernel, welford_kernel

columns, pointers = 32768, [Pointer("fp32")] * 3
reports = {
    "two passes": compile_report(
        resident_kernel, [*pointers, columns, 1, 1024, columns], {"ROWS": 1, "BLOCK": columns}, num_warps=32
    ),
    "Welford": compile_report(welford_kernel, [*pointers, columns, 1, columns], {"BLOCK": columns}, num_warps=32),
    "Welford, streamed": compile_report(welford_kernel, [*pointers, columns, 1, columns], {"BLOCK": 2048}, num_warps=8),
}
for name, report in reports.items():
    print(f"{name:>18}: {report.registers} registers a thread, {report.spill_bytes} bytes spilled")
assert columns // (32 * 32) == 32 and 65536 // (32 * 32) == 64
assert (
    reports["two passes"].spill_bytes == 0 < reports["Welford"].spill_bytes
    and reports["Welford, streamed"].spill_bytes == 0
)

# %% [markdown]
# Welford spills. Every lane comes to the first merge with a count, a mean and an M2, and not all of them fit. Streamed, the same kernel
# holds two accumulators of 8 elements a thread and is far from any limit. Welford belongs where the row does not stay.
#
# ## Which one do you take?
#
# | the row | take | because |
# |---|---|---|
# | stays in registers | two passes | one read, most digits, cheapest merge |
# | is streamed, and comes back from a cache | two passes, or measure | the second sweep is cheap |
# | is streamed from memory | Welford | one sweep, kappa roundings, no luck needed |
# | is split over programs (lesson 12) | Chan's merge | the pieces meet anyhow |
# | whatever it is | not one-pass | two digits lost for each factor of 10 in mean/std |
#
# LayerNorm rows are mostly of the first kind: 32768 columns fit one program. That is why the kernels of lesson 06 make two passes in
# registers, and why a post that streams its rows finds Welford the fastest. Both are right.
#
# ## Summary
#
# - A lane keeps accumulators of its own; the lanes meet once, after the loop.
# - After a subtraction a padded lane holds minus what you subtracted. Clear it before it is added up or squared.
# - M2 of the lanes do not add up to M2 of the row: what is missing lies between their means, and Chan's merge adds it.
# - `tl.reduce` takes a tuple of blocks and an associative combine function. Empty lanes meet empty lanes: guard the 0/0.
# - Digits at mean/std = 10000: one-pass none, Welford about four, two-pass about six. In y the rounding of the mean evens the last two
#   out.
# - Welford saves a sweep. A row in registers has none to save.
#
# **Where to read on**
#
# - Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance": the bounds behind the widget, with a table of which to
#   take.
# - `aten/src/ATen/native/cuda/layer_norm_kernel.cu` in PyTorch: Welford in the threads, then a merge through shuffles and shared memory.
# - `course_lib/kernels/row_statistics.py`: all five kernels. Its Welford keeps no count and divides once a step. After the exercises.
#
# **Next: lesson 06, LayerNorm forward.** You have mean and variance of any row. There they become y, and every byte counts.
