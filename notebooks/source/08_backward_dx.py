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
# # 08 Backward: dx
#
# Lesson 02 turned a Jacobian of 67 million numbers a row into two means and one line. This lesson makes a kernel of them. The formula is
# the easy part. A gradient that lacks a term still looks like a gradient, and the test that comes to mind first cannot tell it from the
# right one. And its input `dy` is not yours: autograd hands you whatever lies around.
#
# **You will be able to**
#
# - write the `dx` kernel of LayerNorm and of RMSNorm, for rows that stay in registers;
# - say why c1 and c2 need no `tl.where`, and rewrite them into something that does;
# - look at a wrong `dx` and say which term is missing;
# - say where statistics saved in bf16 show, and by how much;
# - give every matrix its own strides, and say what it costs to do without.
#
# **You need** lesson 02 (where `dx`, c1 and c2 come from, and what they take out), lesson 06 with exercise 06b (tiles, masks, strides), and
# lesson 07.
#
# **Time** about 85 minutes: 40 to read and run, 30 for exercise 08a, 15 for 08b.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import missing_term, picture
from course_lib.lessons.figures import lesson08
from course_lib.norms import reference

# %% [markdown]
# ## What has to be loaded?
#
# The formula once more. `wdy = w * dy`, and over the columns of a row
#
# $$c_1 = \mathrm{mean}(\hat{x} \cdot \mathit{wdy}) \qquad c_2 = \mathrm{mean}(\mathit{wdy}) \qquad
# dx = (\mathit{wdy} - (\hat{x}\, c_1 + c_2))\, \mathrm{rstd}$$
#
# Nothing in it looks at another row, so once more a row is a program's work. `xhat` was never stored: it is `(x - mean) * rstd`, from the
# `x` that is there anyway and the two numbers that the forward pass has saved. Here is the kernel for packed fp32 rows. Before you run it:
# how many times does it go over a matrix of M N elements, and how many times did the resident forward kernel? *(Predict, then run.)*


# %%
@triton.jit
def bare_dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0)
    wdy = tl.load(w_ptr + cols, mask=mask, other=0.0) * dy
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - mean) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=DEVICE)


eps = 1e-5
x = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)
rng = np.random.default_rng(0)
w, dy = np.linspace(0.5, 1.5, 8), rng.normal(0.5, size=(3, 8)).round(2)
saved = reference.layer_norm(x, eps=eps)  # stands for the forward kernel: mean, rstd, and xhat as y
true = reference.layer_norm_vjp(dy, x, w, eps)

dx = torch.full((3, 8), float("nan"), device=DEVICE)
arguments = (tensor(dy), tensor(x), tensor(w), tensor(saved.mean), tensor(saved.rstd), dx, 8)
bare_dx_kernel[(3,)](*arguments, BLOCK=8)
error = np.abs(reference.float64(dx) - true.dx).max()
print(f"dx of row 0: {dx[0].cpu().numpy().round(2)}\nlargest error {error:.0e}")
assert error < 1e-6

# %% tags=["nbval-check-output"]
from course_lib.lessons.access_map.model import model as access_model
from course_lib.lessons.access_map.run import record

launch = access_model(record(bare_dx_kernel, (3,), arguments, {"BLOCK": 8}))
passes = {name: launch.times(name, kind) for name, kind in (("dy", "read"), ("x", "read"), ("dx", "write"))}
print(*(f"times over {name}: {times:g}" for name, times in passes.items()), sep="\n")
assert set(passes.values()) == {1} and sum(passes.values()) == 3

# %% [markdown]
# Three: it reads `dy` and `x` and writes `dx`. 3 M N, where forward moved 2 M N. `w` is read by every program and stays in a cache; mean
# and rstd are two numbers a row.
#
# ### Which sum waits for which?
#
# In the forward pass the variance waits for the mean: two reductions, one after the other. In each of them all warps of the program wait
# for each other more than once, at an instruction named `BAR`. Here are two reductions again. Does one wait for the other? And what if the
# forward pass had saved nothing, so that mean and rstd were computed anew? *(Predict the order of the three lines below, then run.)*


# %%
@triton.jit
def add_pairs(a, b, other_a, other_b):
    return a + other_a, b + other_b


@triton.jit
def three_ways_kernel(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, dx_ptr, N, eps, SAVED: tl.constexpr, PAIR: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)  # w is 1
    if SAVED:
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
    else:
        mean = tl.sum(x, axis=0) / N
        deviation = tl.where(mask, x - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / N + eps)
    xhat = (x - mean) * rstd
    if PAIR:
        products, total = tl.reduce((xhat * dy, dy), 0, add_pairs)
    else:
        products = tl.sum(xhat * dy, axis=0)
        total = tl.sum(dy, axis=0)
    dx = (dy - (xhat * (products / N) + total / N)) * rstd
    tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


WAYS = {
    "computed anew": {"SAVED": False, "PAIR": False},
    "saved": {"SAVED": True, "PAIR": False},
    "saved, in one reduction": {"SAVED": True, "PAIR": True},
}
true_for_ones = reference.layer_norm_vjp(dy, x, np.ones(8), eps).dx
for way in WAYS.values():  # all three are right
    dx = torch.empty(3, 8, device=DEVICE)
    three_ways_kernel[(3,)](*arguments[:2], *arguments[3:5], dx, 8, eps, **way, BLOCK=8)
    assert np.abs(reference.float64(dx) - true_for_ones).max() < 1e-6

# %%
from course_lib.compiler import Pointer, compile_report

half, single = Pointer("fp16"), Pointer("fp32")
passed = [half, half, single, single, half, 4096, eps]
waits, exchanges = {}, {}
for name, way in WAYS.items():
    report = compile_report(three_ways_kernel, passed, {**way, "BLOCK": 4096}, num_warps=8, arch="sm_90")
    waits[name], exchanges[name] = report.sass.count("BAR.SYNC"), report.sass.count("SHFL")
    print(f"{name:>23}: {waits[name]:2} waits of all warps, {exchanges[name]} exchanges between lanes")
anew, twice, once = waits.values()
assert once > 1 and 2 * once < twice and 2 * twice < anew
assert exchanges["computed anew"] == 2 * exchanges["saved"] == 2 * exchanges["saved, in one reduction"]

# %% [markdown]
# Neither waits for the other: c1 needs xhat and wdy, c2 needs wdy, and both are there as soon as the loads are. So the two sums can share
# one conversation: `tl.reduce` takes a pair of blocks and a function that adds pairs, and saves more than half of the waits. The exchanges
# stay, for there are still two sums. Computing the statistics anew more than doubles the waits, and these do stand in a queue. That is what
# eight saved bytes a row buy.
#
# Two `tl.sum` are easier to read, and the exercise takes either.
#
# ## Masks again: what does a padded lane hold?
#
# In lesson 06 the row `8 11 12 9 10` lay in eight lanes, and after `x - mean` three of them held -10. It took a `tl.where` to keep them out
# of the variance. In `bare_dx_kernel` there is none. What does xhat hold in the three padded lanes, and why is c1 right all the same?
# *(Predict, then run.)*
#
# The last two lines are about an idea. Take c2 out of wdy first, then sum: `mean(xhat * (wdy - c2))`. On paper that is c1 again, because
# xhat adds up to 0, and numbers nearer to 0 make for better sums. What do you expect of it?


# %%
@triton.jit
def dx_lanes_kernel(dy_ptr, x_ptr, mean, rstd, lanes_ptr, sums_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    xhat = (tl.load(x_ptr + cols, mask=mask, other=0.0) - mean) * rstd
    wdy = tl.load(dy_ptr + cols, mask=mask, other=0.0)  # w is 1
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(lanes_ptr + cols, xhat)
    tl.store(lanes_ptr + BLOCK + cols, wdy)
    tl.store(lanes_ptr + 2 * BLOCK + cols, xhat * wdy)
    tl.store(lanes_ptr + 3 * BLOCK + cols, xhat * (wdy - c2))
    tl.store(sums_ptr, tl.sum(xhat * wdy, axis=0) / N)
    tl.store(sums_ptr + 1, tl.sum(xhat * (wdy - c2), axis=0) / N)


five, dy_five = np.array([8.0, 11, 12, 9, 10]), np.array([1.0, 3, 2, 2, 4])
mean_5, rstd_5 = five.mean(), 1 / np.sqrt(five.var() + eps)
lanes, sums = torch.empty(4, 8, device=DEVICE), torch.empty(2, device=DEVICE)
dx_lanes_kernel[(1,)](tensor(dy_five), tensor(five), mean_5, rstd_5, lanes, sums, 5, BLOCK=8)
lanes, (c1, c1_idea) = reference.float64(lanes), sums.tolist()
for name, values in zip(("xhat", "wdy", "xhat * wdy", "xhat * (wdy - c2)"), lanes, strict=True):
    print(f"{name:>18}: {values.round(2)}")
true_c1, c2 = ((five - mean_5) * rstd_5 * dy_five).mean(), dy_five.mean()
print(f"c1 {c1:.3f}, true {true_c1:.3f}; with c2 taken out first {c1_idea:.3f}")
assert np.allclose(lanes[0, 5:], -mean_5 * rstd_5, rtol=1e-5) and (lanes[1:3, 5:] == 0).all()
assert abs(c1 - true_c1) < 1e-6 and c1_idea > 20 * true_c1 > 0
assert np.isclose(((five - mean_5) * rstd_5 * (dy_five - c2)).mean(), true_c1)  # on paper
assert np.isclose(c1_idea - true_c1, 3 / 5 * mean_5 * rstd_5 * c2, rtol=1e-5)

# %% [markdown]
# xhat is -7.07 there: no less wrong than in the forward pass. But wdy is 0, because dy was loaded with `other=0.0`, and **every sum is a
# sum of wdy times something**. The 0 of one factor covers for the other.
#
# `wdy - c2` gives the 0 away. Each padded lane then adds $\mathrm{mean} \cdot \mathrm{rstd} \cdot c_2$, and c1 is more than twenty times
# what it should be. On paper the two are the same number. In lanes they are not: the step that used "xhat adds up to 0" holds for N
# columns, and the block has more. (With a `tl.where` behind the subtraction it is right.)
#
# | line | padded lanes hold | harmful? |
# |---|---|---|
# | after the loads | x: 0, dy: 0, w: 0 | no |
# | `(x - mean) * rstd` | `-mean * rstd` | only if nothing multiplies it by 0 |
# | `w * dy` | 0 | no, and it shields the sums |
# | `xhat * wdy` | 0 | no |
# | `wdy - (xhat * c1 + c2)` | anything | only if it is stored: the store needs its mask |
#
# Padded *rows* of a tile are tamer: with `other=0.0` on mean and rstd, their xhat is 0.

# %% [markdown]
# ## Which term is missing?
#
# Your first `dx` kernel runs, returns the right shape, and is wrong. You subtract the true `dx` and get a table of small numbers. They look
# like noise. They are not. Work out what each mistake leaves:
#
# - c2 forgotten: the difference is $c_2\,\mathrm{rstd}$, the same in every column. In the picture of lesson 02 it lies **along 1**.
# - c1 forgotten: it is $c_1\,\mathrm{rstd}\,\hat{x}$, a multiple of xhat. It lies **along xhat**.
#
# So draw the error of each column against the xhat of that column. Along 1 is a horizontal line, along xhat a line through the origin. The
# **height** of the line at xhat = 0 is c2's business, its **slope** is c1's.
#
# What do you expect if both are forgotten? If `w` is? If the last rstd is? Choose *nothing* first, then one mistake after the other.
# *(Predict before each.)* Then set dy and w to all 1, as `y.sum()` with a fresh layer has it, and go through them once more.

# %%
missing_term()

# %%
from course_lib.lessons.missing_term.model import TERMS, name_cause, size
from course_lib.lessons.missing_term.model import model as mistake

for term in ("c1", "c2", "both", "rstd", "w"):
    state = mistake("layer_norm", term)
    parts = [size(part) / size(state.error) for part in (state.along_one, state.along_xhat, state.rest)]
    one, hat, rest = (f"{part:.2f}" for part in parts)
    print(f"{TERMS['layer_norm'][term]:>22}: along 1 {one}, along xhat {hat}, in neither {rest}")
    print(f"{'':24}{name_cause(state)}")
    wanted = {"c1": (0, 1, 0), "c2": (1, 0, 0), "rstd": (0, 0, 1), "w": (0, 0, 1)}
    assert term == "both" or np.allclose(parts, wanted[term], atol=1e-5)

state = mistake("layer_norm", "both")
assert np.isclose(state.intercept, state.c2 * state.rstd) and np.isclose(state.slope, state.c1 * state.rstd)
assert size(state.rest) < 1e-9 * size(state.error)

# %% [markdown]
# Both: a line with a height and a slope, and they are the two numbers that are missing. `w` and the last rstd leave no line at all. Why?
# The formula ends by taking out whatever lies along 1 and along xhat. If it got the wrong wdy, or a factor too little, the outcome has
# still been through that: it has nothing along either, the true `dx` has nothing along either (but for eps), and neither has their
# difference.
#
# Put the other way round: **an error on the line is a mistake in the row sums or in xhat; an error off the line is a mistake in wdy or a
# factor.** Seven mistakes, and where each shows:

# %%
shares = {}
for term in ("c2", "c1", "both", "divisor", "mean", "rstd", "w"):
    state = mistake("layer_norm", term)
    squares = [size(part) ** 2 for part in (state.along_one, state.along_xhat, state.rest)]
    shares[TERMS["layer_norm"][term]] = [square / size(state.error) ** 2 for square in squares]
    assert np.isclose(sum(squares), size(state.error) ** 2)
    assert (squares[2] > 0.999 * sum(squares)) if term in ("rstd", "w") else (squares[2] < 1e-9 * sum(squares))

picture(
    lesson08.marks(shares),
    alt="For seven mistakes in dx the shares of the squared error along 1, along xhat and in neither. c2 left out: all "
    "along 1. c1 left out: all along xhat. Both, 1/N left out, and the mean not subtracted: shared between the two. rstd or "
    "w left out: all in neither.",
)

# %% [markdown]
# The verdict of an exercise goes one step further. It computes a few dozen wrong formulas in float64, each with its mistake, and looks for
# the one that gives what your kernel gave in every case. For that it does not read your code.
#
# ### Which test sees what?
#
# Lesson 02 showed that `y.sum().backward()` with `w` still 1 sends a `dy` of ones, and that nearly everything passes then. Here is its
# table again, with one column more: the same `y.sum()`, but `w` random. And one row more: a kernel that never reads `dy`. Which mistakes
# does the middle test let through? *(Predict, then run.)*


# %%
def wrong_dx(name: str, dy: np.ndarray, w: np.ndarray) -> np.ndarray:
    mean, rstd = saved.mean[:, None], saved.rstd[:, None]
    xhat = (x - mean) * rstd
    dy = np.ones_like(dy) if name == "dy never read" else dy
    wdy = dy if name == "w forgotten" else w * dy
    c1 = 0 if name == "c1 forgotten" else (xhat * wdy).mean(axis=1, keepdims=True)
    c2 = 0 if name == "c2 forgotten" else wdy.mean(axis=1, keepdims=True)
    return (wdy - (xhat * c1 + c2)) * (1 if name == "rstd forgotten" else rstd)


NAMES = ("c1 forgotten", "c2 forgotten", "rstd forgotten", "w forgotten", "dy never read")
ones = np.ones((3, 8))
TESTS = {"y.sum(), w = 1": (ones, ones[0]), "y.sum(), random w": (ones, w), "random dy and w": (dy, w)}
seen = {}
for test, (dy_sent, w_used) in TESTS.items():
    right = reference.layer_norm_vjp(dy_sent, x, w_used, eps).dx
    seen[test] = [name for name in NAMES if np.abs(wrong_dx(name, dy_sent, w_used) - right).max() > 1e-3]
    print(f"{test:>17}: dx up to {np.abs(right).max():.1f}; sees {', '.join(seen[test])}")
assert seen["y.sum(), w = 1"] == ["c2 forgotten"] and seen["random dy and w"] == list(NAMES)
assert seen["y.sum(), random w"] == list(NAMES[:4])
assert np.abs(reference.layer_norm_vjp(ones, x, ones[0], eps).dx).max() < 1e-14

# %% [markdown]
# With a random `w` it sees every term, and still not a kernel that takes `dy` for 1. Use a random `dy`. But do not throw `y.sum()` away: it
# is about to break a kernel that passes every other test.
#
# ## Two numbers a row: why fp32?
#
# Lesson 02 saved mean and rstd in bf16 and found xhat off by 0.2, at mean/std = 100. What does that do to `dx`? Say the saved mean is off,
# so that every xhat of the row is off by the same $s$. Put $\hat{x} + s$ into the formula:
#
# - c1 becomes $c_1 + s\,c_2$, and c2 stays;
# - `dx` is off by $-\left(s\,c_1 + s^2 c_2 + s\,c_2\,\hat{x}\right) \mathrm{rstd}$.
#
# A height and a slope: by the last section this error looks as if c1 and c2 had been computed wrongly. Below are 64 rows of 256 columns, x
# in fp32, with mean/std near 100, and a dy with mean 0.5. The kernel gets the statistics once in fp32 and once as bf16 numbers. How far off
# is `dx`, next to the 0.2 % that it costs to store `dx` itself in bf16? And what do the rows of `dx` add up to, which should be 0?
# *(Predict, then run.)*


# %%
def dx_with(rows: np.ndarray, dy: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """dx of our kernel, w = 1, from statistics that went through ``dtype``."""
    M, N = rows.shape
    forward = reference.layer_norm(rows, eps=eps)
    mean, rstd = (tensor(torch.tensor(values).to(dtype).float()) for values in (forward.mean, forward.rstd))
    dx, w = torch.empty(M, N, device=DEVICE), torch.ones(N, device=DEVICE)
    bare_dx_kernel[(M,)](tensor(dy), tensor(rows), w, mean, rstd, dx, N, BLOCK=triton.next_power_of_2(N))
    return reference.float64(dx)


def relative(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


spread = rng.standard_normal((64, 256))
offsets = rng.uniform(0.95, 1.05, (64, 1))
dy_rows = rng.normal(0.5, size=(64, 256)).astype(np.float32)
far = (100 * offsets + spread).astype(np.float32)
want = reference.layer_norm_vjp(dy_rows, far, eps=eps).dx
one_rounding = relative(reference.float64(torch.tensor(want).bfloat16()), want)
off, push = {}, {}
for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
    got = dx_with(far, dy_rows, dtype)
    off[name], push[name] = relative(got, want), np.abs(got.mean(axis=1)).max()
    print(f"statistics in {name}: dx off by {off[name]:.1e} of its size, a row's mean up to {push[name]:.0e}")
print(f"storing dx in bf16: {one_rounding:.1e}")
assert off["fp32"] < 1e-5 and push["fp32"] < 1e-4
assert off["bf16"] > 20 * one_rounding and 0.0015 < one_rounding < 0.0025 and push["bf16"] > 0.02

# %% [markdown]
# By several percent, more than twenty times the cost of storing `dx`. And not at random: the rows of `dx` no longer add up to 0, so the
# gradient pushes on the mean of a row, which LayerNorm cannot feel. Is the error where the algebra says? Take one row, fit the line, and
# compare. *(Predict how much is off the line, then run.)*

# %%
exact = reference.layer_norm(far, eps=eps)
xhat = exact.y
shift = (exact.mean - reference.float64(torch.tensor(exact.mean).bfloat16())) * exact.rstd  # s, one a row
r = int(np.abs(shift).argmax())
error = dx_with(far, dy_rows, torch.bfloat16)[r] - want[r]
slope, height = (xhat[r] * error).mean() / (xhat[r] ** 2).mean(), error.mean()
c1, c2, s = (xhat[r] * dy_rows[r]).mean(), dy_rows[r].mean(), shift[r]
by_algebra = {"slope": -s * c2 * exact.rstd[r], "height": -(s * c1 + s * s * c2) * exact.rstd[r]}
rest = np.sqrt(((error - height - slope * xhat[r]) ** 2).mean() / (error**2).mean())
print(f"row {r}, every xhat off by s = {s:.3f}")
for name, value in (("slope", slope), ("height", height)):
    print(f"{name:>6} {value:.4f}, by the algebra {by_algebra[name]:.4f}")
    assert np.isclose(value, by_algebra[name], rtol=0.05, atol=2e-3)
print(f"off the line: {rest:.0%}")
assert abs(s) > 0.2 and rest < 0.1

# %% [markdown]
# Nearly all of it is on the line. What is off it comes from rstd, which bf16 rounds too, and which stands in front of everything.
#
# How far from 0 does a row have to be? From mean/std 0.1 to 1000, each time with both dtypes. *(Predict where the cost of bf16 statistics
# leaves that of storing `dx`, then run.)*

# %%
ratios = (0.1, 1, 3, 10, 30, 100, 300, 1000)
cost = {"fp32": [], "bf16": []}
for ratio in ratios:
    rows = (ratio * offsets + spread).astype(np.float32)
    true_dx = reference.layer_norm_vjp(dy_rows, rows, eps=eps).dx
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        cost[name].append(relative(dx_with(rows, dy_rows, dtype), true_dx))
print("mean/std", *(f"{ratio:8g}" for ratio in ratios))
for name, values in cost.items():
    print(f"{name:8}", *(f"{value:8.0e}" for value in values))
assert max(cost["fp32"]) < one_rounding / 10 and min(cost["bf16"]) > one_rounding / 2
assert all(value > 2 * one_rounding for value in cost["bf16"][ratios.index(10) :]) and cost["bf16"][-1] > 0.5

picture(
    lesson08.saved_statistics(ratios, cost, one_rounding),
    alt="Error of dx over its size against mean over standard deviation, both axes logarithmic. Statistics in bf16 cost "
    "about what storing dx in bf16 costs up to mean/std 1, and far more from 10 on. Statistics in fp32 stay below a "
    "tenth of it up to 1000.",
)

# %% [markdown]
# From 10 on it is more than twice the cost of a rounding. At 1000 the error is as large as `dx`. fp32 never gets near, and costs four bytes
# a row more.
#
# ## Three matrices, three strides
#
# The forward kernel read `x` and wrote `y`, both made by you or your caller. `dy` is made by autograd, out of whatever comes behind the
# norm. Lesson 06 looked at the one that `y.sum().backward()` sends: shape (4, 8), strides (0, 0). It is one number, shown 32 times.
#
# Here is our kernel with *one* stride, x's, for all three matrices. `dy` is one number, 1.25, and behind it in memory lies NaN. (There it
# could be anything; NaN makes it visible.) `w` is random, so `dx` is not 0. How many of the 32 elements of `dx` come out right? *(Predict,
# then run.)*


# %%
@triton.jit
def one_stride_dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0)
    wdy = tl.load(w_ptr + cols, mask=mask, other=0.0) * dy
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - mean) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def right(dx: torch.Tensor, dy: torch.Tensor, x: torch.Tensor) -> int:
    """How many elements of dx agree with the reference."""
    want = reference.layer_norm_vjp(dy, x, w_8, eps).dx
    return int((np.abs(reference.float64(dx) - want) < 1e-5).sum())


memory = torch.full((64,), float("nan"), device=DEVICE)
memory[0] = 1.25
dy_expanded = memory[:1].expand(4, 8)

wide = tensor(3 + rng.standard_normal((4, 12)))
x_slice, x_packed = wide[:, :8], wide[:, :8].contiguous()
w_8 = tensor(rng.uniform(0.5, 2, 8))
forward = reference.layer_norm(x_packed, w_8, eps=eps)
statistics = tensor(forward.mean), tensor(forward.rstd)

dx = torch.empty(4, 8, device=DEVICE)
one_stride_dx_kernel[(4,)](dy_expanded, x_packed, w_8, *statistics, dx, x_packed.stride(0), 8, BLOCK=8)
good = right(dx, dy_expanded, x_packed)
print(f"strides of dy {dy_expanded.stride()}, of x {x_packed.stride()}: {good} of 32 elements of dx are right")
assert dy_expanded.stride() == (0, 0) and good == 0 and dx.isnan().all()

# %% [markdown]
# None. The one number is followed by memory of somebody else's. Row 0 reads seven elements of it, and c1 and c2 carry them through the
# whole row.
#
# And the other way round: `dy` packed, `x` a slice with 12 elements between rows, `dx` the front of a longer buffer of sevens? *(Predict
# how many elements are right, and what happens behind `dx`, then run.)*

# %%
behind_dy = torch.full((64,), float("nan"), device=DEVICE)
dy_packed = behind_dy[:32].view(4, 8)
dy_packed[:] = tensor(rng.standard_normal((4, 8)))
buffer = torch.full((48,), 7.0, device=DEVICE)
dx = buffer[:32].view(4, 8)
one_stride_dx_kernel[(4,)](dy_packed, x_slice, w_8, *statistics, dx, x_slice.stride(0), 8, BLOCK=8)
good, lost = right(dx, dy_packed, x_slice), int((buffer[32:] != 7).sum())
print(f"{good} of 32 right, {lost} elements behind dx overwritten")
assert x_slice.stride(0) == 12 and good == 8 and lost == 8

# %% [markdown]
# Only row 0 is right, and eight elements behind `dx` are gone.
#
# > **ERRATUM** (Triton tutorial "Layer Normalization", English and Chinese edition). Its backward kernel has one `stride`, that of `x`, for
# > `x`, `dy` and `dx`. It is right as long as all three are packed, which its own test sees to. `y.sum().backward()` is enough to make it
# > read past the end of `dy`. quack ignored dy's strides, too (#88).
#
# Two ways out. The host calls `dy.contiguous()` in front of the kernel. Or the kernel takes dy's strides, row *and* column: 0 and 0 are as
# good as N and 1. What does the first cost for an expanded `dy`, in passes over M N? *(Predict, then run.)*


# %%
from course_lib.kernels.norm_backward import norm_dx_kernel

strides = (*dy_expanded.stride(), *x_slice.stride(), 8)
dx = torch.empty(4, 8, device=DEVICE)
arguments = (dy_expanded, x_slice, w_8, *statistics, dx, *strides, 4, 8)
norm_dx_kernel[(2,)](*arguments, CENTRED=True, HAS_W=True, ROWS=2, BLOCK=8)  # the course's own kernel
good = right(dx, dy_expanded, x_slice)
print(f"every matrix with its own strides: {good} of 32 right")
assert good == 32

M, N = 4096, 4096
kernel_alone = 2 * M * N + 1  # x and dx, and one number
made_packed = (M * N + 1) + 3 * M * N  # contiguous() writes a matrix, then the kernel reads it
print(f"strides: {kernel_alone / (M * N):.1f} passes over M N; contiguous() first: {made_packed / (M * N):.1f}")
assert round(made_packed / kernel_alone, 6) == 2

# %% [markdown]
# Twice the bytes, for a matrix that says one number.
#
# But a column stride as an argument? Lesson 06 showed loads of 16 bytes a thread, which need neighbours that the compiler knows to be
# neighbours. Now the distance between columns is a variable. What happens to the loads of a packed `dy`, with stride 1? And with an
# expanded or a transposed one? *(Predict, then run.)*

# %%
constants = {"CENTRED": True, "HAS_W": True, "ROWS": 1, "BLOCK": 8192}
loads = {}
for name, of_dy in (("packed", (8192, 1)), ("expanded", (0, 0)), ("transposed", (1, 4096))):
    passed = [half, half, half, single, single, half, *of_dy, 8192, 1, 8192, 4096, 8192]
    loads[name] = compile_report(norm_dx_kernel, passed, constants, num_warps=8, arch="sm_90").loads
    print(f"{name:>10} dy: loads by bytes a thread {loads[name]}")
each = 8192 // (32 * 8)  # elements a thread
assert loads["packed"] == {4: 2, 16: 3 * each * 2 // 16}  # mean and rstd; dy, x and w
assert loads["expanded"] == loads["transposed"] == {4: 2, 16: 2 * each * 2 // 16, 2: each}

# %% [markdown]
# Nothing is lost. Triton looks at integer arguments when a kernel is launched, and compiles a version of its own where one of them is 1. In
# that version the columns are neighbours. Only an expanded or transposed `dy` loads its elements one by one, and that one would otherwise
# have been copied first.
#
# One more thing about a transposed `dy`: its column stride is M, so column times stride can pass 2³¹ as row times stride can. Widen both.
#
# ## Exercise 08a: dx of LayerNorm
#
# A tile of ROWS rows, as in 06b. Before you type, write down for each of the six tensors which strides it gets, and which mask: that of the
# tile, of the rows or of the columns.

# %%
exercise("08a")

# %% [markdown]
# ## What is left of it for RMSNorm?
#
# No mean is subtracted, so the path through the mean is gone, and c2 with it (lesson 02): `dx = (wdy - xhat * c1) * rstd` with `xhat = x *
# rstd`. For the kernel:
#
# - what do padded lanes of xhat hold now?
# - what do the rows of `dx` add up to?
# - if a c2 is left in out of habit, where does the error show?
#
# *(Predict all three, then run.)*

# %%
x_rms, dy_rms = tensor(3 + rng.standard_normal((4, 50))), tensor(rng.normal(0.5, size=(4, 50)))
w_rms = tensor(rng.uniform(0.5, 2, 50))
rstd = tensor(reference.rms_norm(x_rms, w_rms, eps).rstd)
dx = torch.empty(4, 50, device=DEVICE)
arguments = (dy_rms, x_rms, w_rms, rstd, rstd, dx, 50, 1, 50, 1, 50, 4, 50)  # no mean: that pointer is never read
norm_dx_kernel[(4,)](*arguments, CENTRED=False, HAS_W=True, ROWS=1, BLOCK=64)
want = reference.rms_norm_vjp(dy_rms, x_rms, w_rms, eps).dx
xhat = reference.float64(x_rms) * reference.float64(rstd)[:, None]
layer = reference.layer_norm_vjp(dy_rms, x_rms, w_rms, eps).dx
error = np.abs(reference.float64(dx) - want).max()
means, layer_means, along = (np.abs(values.mean(axis=1)) for values in (want, layer, want * xhat))
print(f"error of the kernel {error:.0e}")
print(f"mean of a row of dx: RMSNorm {means.min():.1e} and more, LayerNorm {layer_means.max():.0e} at most")
print(f"mean of dx * xhat, RMSNorm: {along.max():.0e} at most")
assert error < 1e-6 and along.max() < 1e-5 and means.min() > 1e-3 > 1e-12 > layer_means.max()

xhat = saved.y  # LayerNorm's, of the worked example
fails = {}
for name in (*NAMES[:2], "w forgotten"):
    wrong = wrong_dx(name, dy, w)
    fails[name] = bool(max(np.abs(wrong.mean(axis=1)).max(), np.abs((wrong * xhat).mean(axis=1)).max()) > 1e-3)
print("LayerNorm, rows of dx and of dx * xhat add up to 0; fails:", fails)
assert fails == {"c1 forgotten": True, "c2 forgotten": True, "w forgotten": False}

habit = mistake("rms_norm", "c2")
print(f"a c2 put in: {name_cause(habit)}")
assert np.isclose(habit.intercept, -habit.c2 * habit.rstd) and abs(habit.slope) < 1e-9 and size(habit.rest) < 1e-9

# %% [markdown]
# A padded lane of xhat is 0 · rstd = 0, and so is wdy: nothing to shield. The rows of `dx` add up to something, as they should. And a c2
# left in shows along 1, as a c2 left out does in LayerNorm, with the other sign.
#
# That gives you two tests which need no reference. LayerNorm: rows of `dx` add up to 0, and so do rows of `dx * xhat`, but for eps.
# RMSNorm: only the second. A missing c1 or c2 fails them; a missing w, and a kernel that writes zeros, do not.
#
# ## Exercise 08b: dx of RMSNorm
#
# One row a program, one sum. The file does not show you the formula.

# %%
exercise("08b")

# %% [markdown]
# ## Summary
#
# - `dx` reads `dy` and `x` and writes `dx`: 3 M N. mean and rstd are loaded, so c1 and c2 wait for the loads and not for each other.
# - In padded lanes xhat is `-mean * rstd` and wdy is 0. Every sum must keep wdy as a factor. `wdy - c2` gives that up.
# - Error against xhat: height is c2, slope is c1. On the line: row sums or xhat. Off the line: wdy or a factor.
# - `y.sum()` with w = 1 has a `dx` of 0. With a random w it tests the formula, and, with strides (0, 0), the addressing. It never tests dy.
# - Statistics in bf16 put `dx` off by several percent at mean/std = 100, on the line, as a missing term would. fp32 costs four bytes a row.
# - Every matrix has its own strides, and `dy` a column stride as well. Where that is 1, the loads stay wide.
#
# After each pass the panel tells you what the bug you avoided did elsewhere.
#
# **Where to read on**
#
# - Triton tutorial "Layer Normalization", backward pass: `dx` as here, with one stride for all. Its dw and db are the next lesson.
# - llm.c, the page on LayerNorm: the same three lines in C, two sums in one loop.
# - PyTorch, notes on "Extending PyTorch": what `backward` may assume of the gradient it is handed, which is next to nothing.
# - `course_lib/kernels/norm_backward.py`: the kernel as the course ships it. After the exercises.
#
# **Next: lesson 09, dw and db.** They add up over rows, and rows belong to different programs. Who adds first?
