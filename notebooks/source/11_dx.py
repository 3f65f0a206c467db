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
# # 11 dx: which term is missing?
#
# Somebody's `dx` kernel runs, returns the right shape, and fails its test. Its error is dx minus
# the true dx, here for one row of 16 columns. Plotted by column it looks like noise. It is not:
# plotted against another number, the same sixteen errors tell you which term the author forgot.
#
# *About 60 minutes, 35 of them for two exercises. Needs: lesson 10, and lesson 08 for tiles of
# rows.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("11")

# %%
import numpy as np
import triton
import triton.language as tl

from course_lib.lessons import missing_term, predict, step

missing_term(mystery=1)

# %% [markdown]
# Each diamond is a column: across, its number; upwards, its error. Nothing in the error of column 3
# lets you guess that of column 4. Now choose *xhat* beside *across*. The true `dx`, as in your
# exercise 10a, is `(wdy - xhat * c1 - c2) * rstd`.
#
# Now all points lie on one straight line through the origin. So what is missing is in proportion to
# xhat: it is `xhat * c1 * rstd`, and the author forgot c1. The slope of the line is c1 * rstd, here
# -0.12. By column it looked like noise because xhat does. Choose *c1* in the picture: the title
# agrees.

# %% tags=["check"]
from course_lib.lessons.lesson11.missing_term.model import TERMS, name_cause, size
from course_lib.lessons.lesson11.missing_term.model import model as mistake
from course_lib.lessons.prediction import find

from course_lib.lessons.lesson11.missing_term.model import MYSTERIES

state = mistake("layer_norm", MYSTERIES[0])
assert np.allclose(state.error, state.c1 * state.rstd * state.xhat) and MYSTERIES[0] == "c1"
assert "c1 is missing" in name_cause(state) and state.N == 16
assert abs(np.corrcoef(np.arange(16), state.error)[0, 1]) < 0.2  # by column: noise
assert f"{state.c1 * state.rstd:.2f}" == "-0.12"

# %% [markdown]
# ## What do the other mistakes leave?
#
# If only c2 is forgotten, the error is c2 * rstd in every column: the points lie on a horizontal
# line that is not at 0. If only w is forgotten, so that dy stands where wdy should, they lie on no
# line at all.

# %%
predict("11-why-no-line")

# %% tags=["check"]
for term, wanted in {"c1": (0, 1, 0), "c2": (1, 0, 0), "rstd": (0, 0, 1), "w": (0, 0, 1)}.items():
    state = mistake("layer_norm", term)
    parts = [size(part) / size(state.error) for part in (state.along_one, state.along_xhat, state.rest)]
    assert np.allclose(parts, wanted, atol=1e-5), term
state = mistake("layer_norm", "both")
assert np.isclose(state.intercept, state.c2 * state.rstd) and np.isclose(state.slope, state.c1 * state.rstd)
assert size(state.rest) < 1e-9 * size(state.error)
assert find("11-why-no-line").answer.startswith("c1 and c2 come from the same wrong wdy")

# %% [markdown]
# A line of points has a **height**, which is its error at xhat = 0, and a **slope**. Now practise
# reading it. In the picture at the top press *Hide a mistake*, name it from the points, and do that
# three times. Then set dy and w to all 1, as `y.sum()` with a fresh layer has them, and hide
# another one. (Lesson 10 says what happens then.)
#
# Height and slope tell more than which term is missing: they tell c1 and c2 themselves. Here are four
# columns of another kernel's error. Write down the two numbers.

# %% tags=["step"]
rstd = 0.5
xhat = [-1.4, -0.2, 0.2, 1.4]
error = [-0.22, 0.14, 0.26, 0.62]  # dx minus the true dx
# BEGIN SOLUTION
#: c1 and c2 were both forgotten. Which numbers were they?
#| missing = {"c1": 0.0, "c2": 0.0}
missing = {"c1": 0.6, "c2": 0.4}
# END SOLUTION

step("11-read-the-line")

# %% tags=["check"]
from course_lib.lessons.steps import find as find_step

xhat_4 = np.array([-1.4, -0.2, 0.2, 1.4])
assert np.isclose((xhat_4**2).mean(), 1) and np.isclose(xhat_4.sum(), 0)
assert np.allclose((0.4 + 0.6 * xhat_4) * 0.5, [-0.22, 0.14, 0.26, 0.62])
assert find_step("11-read-the-line").accepts({"c1": 0.6, "c2": 0.4}) == ""

# %% [markdown]
# ## What has to be loaded?
#
# `dx` of a row needs no other row, so again one program takes one row. The forward pass did not
# store xhat. The kernel computes it again, as `(x - mean) * rstd`: mean and rstd are two numbers
# per row that the forward pass has saved.
#
# So a `dx` kernel that keeps its row in registers makes three sweeps over a matrix of M N elements:
# it reads x and dy, and writes dx.

# %% [markdown]
# Here is the kernel for one row that fits into a block. You write its two sums. (w is 1 here, and
# the host passes mean and rstd as numbers.)


# %% tags=["step"]
@triton.jit
def dx_kernel(dy_ptr, x_ptr, dx_ptr, mean, rstd, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    xhat = (tl.load(x_ptr + cols, mask=mask, other=0.0) - mean) * rstd
    wdy = tl.load(dy_ptr + cols, mask=mask, other=0.0)
    # BEGIN SOLUTION
    #: c1 and c2 of this row.
    c1 = tl.sum(xhat * wdy) / N
    c2 = tl.sum(wdy) / N
    # END SOLUTION
    tl.store(dx_ptr + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


step("11-two-sums")

# %% tags=["check"]
import torch

from course_lib.lessons.pictures.access_map.model import model as access_model
from course_lib.lessons.pictures.access_map.run import record
from course_lib.norms import reference

DEVICE, eps = course_lib.DEVICE, 1e-5


@triton.jit
def bare_dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    wdy = tl.load(w_ptr + cols, mask=mask, other=0.0) * tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - tl.load(mean_ptr + row)) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=DEVICE)


rng = np.random.default_rng(0)
x, w, dy = 3 + rng.standard_normal((3, 8)), np.linspace(0.5, 1.5, 8), rng.normal(0.5, size=(3, 8))
saved = reference.layer_norm(x, eps=eps)
dx = torch.full((3, 8), float("nan"), device=DEVICE)
arguments = (tensor(dy), tensor(x), tensor(w), tensor(saved.mean), tensor(saved.rstd), dx, 8)
bare_dx_kernel[(3,)](*arguments, BLOCK=8)
assert np.abs(reference.float64(dx) - reference.layer_norm_vjp(dy, x, w, eps).dx).max() < 1e-5
launch = access_model(record(bare_dx_kernel, (3,), arguments, {"BLOCK": 8}))
passes = [launch.times(name, kind) for name, kind in (("dy", "read"), ("x", "read"), ("dx", "write"))]
assert passes == [1, 1, 1] and sum(passes) == 3

# %% [markdown]
# In the forward pass the variance waits for the mean. Here neither sum waits for the other: both
# need only what has been loaded.
#
# ## What does a lane past the end hold now?
#
# The row `8 11 12 9 10` lies in a block of eight. Its mean is 10 and its rstd 0.71. Both loads say
# `other=0.0`. In lesson 01 three lanes past the end were enough to ruin the variance, and it took a
# `tl.where` to keep them out. The kernel above has none, and its sums are right.

# %%
predict("11-five")

# %% tags=["check"]


@triton.jit
def lanes_kernel(dy_ptr, x_ptr, mean, rstd, lanes_ptr, sums_ptr, N, BLOCK: tl.constexpr, x_other=0.0, dy_other=0.0):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=x_other)
    xhat = (x - mean) * rstd
    wdy = tl.load(dy_ptr + cols, mask=mask, other=dy_other)
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(lanes_ptr + cols, x)
    tl.store(lanes_ptr + BLOCK + cols, xhat)
    tl.store(lanes_ptr + 2 * BLOCK + cols, wdy)
    tl.store(lanes_ptr + 3 * BLOCK + cols, xhat * wdy)
    tl.store(sums_ptr, tl.sum(xhat * wdy, axis=0) / N)
    tl.store(sums_ptr + 1, tl.sum(xhat * (wdy - c2), axis=0) / N)
    tl.store(sums_ptr + 2, c2)


five, dy_five = np.array([8.0, 11, 12, 9, 10]), np.array([1.0, 3, 2, 2, 4])
mean_5, rstd_5 = five.mean(), 1 / np.sqrt(five.var() + eps)
lanes, sums = torch.empty(4, 8, device=DEVICE), torch.empty(3, device=DEVICE)
found = {}
for x_other, dy_other in ((5.0, 0.0), (1e6, 0.0), (0.0, 5.0), (5.0, 5.0), (0.0, 0.0)):
    lanes_kernel[(1,)](
        tensor(dy_five), tensor(five), mean_5, rstd_5, lanes, sums, 5, BLOCK=8, x_other=x_other, dy_other=dy_other
    )
    found[x_other, dy_other] = [sums[0].item(), sums[2].item()]  # c1 and c2
lanes, (c1, c1_idea, _) = reference.float64(lanes), sums.tolist()
assert found[5.0, 0.0] == found[1e6, 0.0] == found[0.0, 0.0] and find("11-five").answer == "at that of x"
for wrong in ((0.0, 5.0), (5.0, 5.0)):
    assert all(abs(a - b) > 0.1 for a, b in zip(found[wrong], found[0.0, 0.0], strict=True))
assert round(rstd_5, 2) == 0.71
assert np.allclose(lanes[1, 5:], -mean_5 * rstd_5, rtol=1e-5) and round(-mean_5 * rstd_5, 2) == -7.07
c2, true_c1 = dy_five.mean(), ((five - mean_5) * rstd_5 * dy_five).mean()
assert abs(c1 - true_c1) < 1e-6 and round(c1_idea / true_c1) == 25
assert np.isclose(((five - mean_5) * rstd_5 * (dy_five - c2)).mean(), true_c1)  # on paper
assert np.isclose(c1_idea - true_c1, 3 / 5 * mean_5 * rstd_5 * c2, rtol=1e-5)

# %% [markdown]
# Somebody takes `mean(xhat * (wdy - c2))` for c1. On paper that is the same, because xhat adds up
# to 0. The numbers are smaller, so the sum should be more exact. But in the block of eight, with the
# row above and the `dy` `1 3 2 2 4`, this kernel gives 25 times the right c1. Find the reason and
# repair the kernel.


# %% tags=["step"]
@triton.jit
def c1_kernel(dy_ptr, x_ptr, c1_ptr, mean, rstd, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    xhat = (tl.load(x_ptr + cols, mask=mask, other=0.0) - mean) * rstd
    wdy = tl.load(dy_ptr + cols, mask=mask, other=0.0)
    c2 = tl.sum(wdy) / N
    # BEGIN SOLUTION
    #: Keep the idea, and make it right for lanes past the end.
    #| wdy = wdy - c2
    wdy = tl.where(mask, wdy - c2, 0.0)
    # END SOLUTION
    tl.store(c1_ptr, tl.sum(xhat * wdy) / N)


step("11-taken-out-first")

# %% [markdown]
# ## Two numbers per row: why in fp32?
#
# A row of 4096 columns has two statistics. Saved in bf16, as x and y are, they would take four
# bytes instead of eight. Suppose that the saved mean is off a little, so that every xhat of the row
# is off by the same number. Then `xhat * c1` is off, and the error is one of those that look like a
# missing term.
#
# Take x in fp32 with mean/std = 100, and save its statistics in bf16. To compare: storing `dx`
# itself in bf16 costs 0.2 % of its norm.

# %%
predict("11-bf16")

# %% tags=["answer"]
from course_lib.lessons.lesson11 import figures

figures.show_saved_statistics()

# %% tags=["check"]
from course_lib.lessons.lesson11 import figures

ratios, cost, one_rounding = figures.measure_saved_statistics()
at = {name: dict(zip(ratios, values, strict=True)) for name, values in cost.items()}
assert find("11-bf16").answer == 8 and 0.06 < at["bf16"][100] < 0.10 and 0.0015 < one_rounding < 0.0025
assert max(cost["fp32"]) < one_rounding / 10 and min(cost["bf16"]) > one_rounding / 2
assert all(error > 2 * one_rounding for ratio, error in at["bf16"].items() if ratio >= 10)
assert 2 < at["bf16"][1000] < 3  # more than twice as large as dx
assert 1e-6 < at["fp32"][100] < 1.2e-6 and 1.2e-5 < at["fp32"][1000] < 1.4e-5

# one row at mean/std = 100: nearly all of the error is on the line, where the algebra says
rows, dy_rows = figures.make_far_rows(100)
exact = reference.layer_norm(rows, eps=eps)
shift = (exact.mean - reference.float64(torch.tensor(exact.mean).bfloat16())) * exact.rstd  # of xhat
r = int(np.abs(shift).argmax())
error = (figures.compute_dx(rows, dy_rows, torch.bfloat16) - reference.layer_norm_vjp(dy_rows, rows, eps=eps).dx)[r]
slope, height = (exact.y[r] * error).mean() / (exact.y[r] ** 2).mean(), error.mean()
c1, c2, s = (exact.y[r] * dy_rows[r]).mean(), dy_rows[r].mean(), shift[r]
assert np.isclose(slope, -s * c2 * exact.rstd[r], rtol=0.05, atol=2e-3)
assert np.isclose(height, -(s * c1 + s * s * c2) * exact.rstd[r], rtol=0.05, atol=2e-3)
assert abs(s) > 0.2 and ((error - height - slope * exact.y[r]) ** 2).mean() < 0.01 * (error**2).mean()

# %% [markdown]
# ## Who says where dy lies?
#
# x is yours or your caller's. Autograd computes `dy` from the operations that come after the norm.
# `y.sum().backward()` sends a matrix of ones that is *one* number in memory, read M N times: its
# strides are (0, 0).
#
# A well-known kernel has one `stride`, that of x, for x, dy and dx: `tl.load(dy_ptr + row *
# stride + cols, ...)`. With this dy already row 0 reads numbers behind the end of dy. They reach c1
# and c2, and all of `dx` is wrong.

# %%
predict("11-mean")

# %% tags=["check"]


@triton.jit
def one_stride_dx_kernel(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    wdy = tl.load(w_ptr + cols, mask=mask, other=0.0) * tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - tl.load(mean_ptr + row)) * rstd
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


def count_right(dx: torch.Tensor, dy: torch.Tensor, x: torch.Tensor) -> int:
    return int((np.abs(reference.float64(dx) - reference.layer_norm_vjp(dy, x, w_8, eps).dx) < 1e-5).sum())


memory = torch.full((64,), float("nan"), device=DEVICE)
memory[0] = 1.25
dy_expanded = memory[:1].expand(4, 8)
x_slice = tensor(3 + rng.standard_normal((4, 12)))[:, :8]
x_packed, w_8 = x_slice.contiguous(), tensor(rng.uniform(0.5, 2, 8))
forward = reference.layer_norm(x_packed, w_8, eps=eps)
statistics = tensor(forward.mean), tensor(forward.rstd)
dx = torch.empty(4, 8, device=DEVICE)
one_stride_dx_kernel[(4,)](dy_expanded, x_packed, w_8, *statistics, dx, 8, 8, BLOCK=8)
assert dy_expanded.stride() == (0, 0) and count_right(dx, dy_expanded, x_packed) == 0

behind_dy = torch.full((64,), float("nan"), device=DEVICE)
dy_packed = behind_dy[:32].view(4, 8)
dy_packed[:] = tensor(rng.standard_normal((4, 8)))
buffer = torch.full((48,), 7.0, device=DEVICE)
dx = buffer[:32].view(4, 8)
one_stride_dx_kernel[(4,)](dy_packed, x_slice, w_8, *statistics, dx, 12, 8, BLOCK=8)
assert count_right(dx, dy_packed, x_slice) == 8 and int((buffer[32:] != 7).sum()) == 8

sent = []
for loss in (torch.sum, torch.mean):
    y = tensor(np.ones((4, 8))).requires_grad_() * 1
    y.register_hook(sent.append)
    loss(y).backward()
assert [dy.stride() for dy in sent] == [(0, 0), (8, 1)]
one_stride_dx_kernel[(4,)](sent[1], x_packed, w_8, *statistics, dx, 8, 8, BLOCK=8)
assert count_right(dx, sent[1], x_packed) == 32 and dx.abs().max() > 1e-3
assert find("11-mean").answer == "all 32"

# %% [markdown]
# > **ERRATUM** ([Triton tutorial "Layer Normalization"](https://github.com/triton-lang/triton/blob/545699290b851e70231ee3017481851170f1583d/python/tutorials/05-layer-norm.py),
# > commit 5456992, read 2026-11-22). Its backward kernel has one `stride`, that of `x`, for `x`, `dy` and `dx`. It is right as long as all three are packed,
# > and its own test uses only packed tensors. `y.sum().backward()` is enough to make it read past the end of `dy`.
#
# The host could call `dy.contiguous()` first: then a matrix of M N numbers is written and read, and
# all of them are the same number. Or dy keeps its strides, and the kernel takes both of them: 0 and 0
# work as well as N and 1.


# %% tags=["step"]
@triton.jit
def dot_kernel(dy_ptr, x_ptr, dot_ptr, dy_row, dy_col, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    # BEGIN SOLUTION
    #: dy_row and dy_col are the strides of dy. Use them.
    #| dy = tl.load(dy_ptr + row * stride_x + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask=mask, other=0.0)
    # END SOLUTION
    tl.store(dot_ptr + row, tl.sum(x * dy))  # one number per row


step("11-own-strides")

# %% [markdown]
# A transposed dy has a column stride of M, so column times stride can pass 2³¹, as row times stride
# can (lesson 07). In the exercise `wide` has the column numbers in 64 bits.
#
# ## Your turn: dx of LayerNorm
#
# A tile of ROWS rows, as in 08a. Before you type, write down for each of the six tensors which
# strides it gets, and which mask: that of the tile, of the rows or of the columns.

# %%
from course_lib import exercise

exercise("11a")

# %% [markdown]
# ## What is left of it for RMSNorm?
#
# In 10b you removed a term. Suppose that somebody turns 11a into a kernel for RMSNorm, computes xhat
# as `x * rstd`, and still subtracts c2.

# %%
predict("11-habit")

# %% tags=["check"]
from course_lib.kernels.norm_backward import norm_dx_kernel

x_rms, dy_rms = tensor(3 + rng.standard_normal((4, 50))), tensor(rng.normal(0.5, size=(4, 50)))
w_rms = tensor(rng.uniform(0.5, 2, 50))
rstd_rms = tensor(reference.rms_norm(x_rms, w_rms, eps).rstd)
dx = torch.empty(4, 50, device=DEVICE)
arguments = (
    dy_rms,
    x_rms,
    w_rms,
    rstd_rms,
    rstd_rms,
    dx,
    50,
    1,
    50,
    1,
    50,
    4,
    50,
)  # no mean: that pointer is never read
norm_dx_kernel[(4,)](*arguments, CENTRED=False, HAS_W=True, ROWS=1, BLOCK=64)
want = reference.rms_norm_vjp(dy_rms, x_rms, w_rms, eps).dx
rstd = reference.float64(rstd_rms)[:, None]
xhat = reference.float64(x_rms) * rstd
wdy = reference.float64(w_rms) * reference.float64(dy_rms)
assert np.abs(reference.float64(dx) - want).max() < 1e-5
assert np.abs((want * xhat).mean(axis=1)).max() < 1e-5 and np.abs(want.mean(axis=1)).min() > 1e-3
c1, c2 = (xhat * wdy).mean(axis=1, keepdims=True), wdy.mean(axis=1, keepdims=True)
habit = (wdy - xhat * c1 - c2) * rstd
assert np.allclose(habit.mean(axis=1, keepdims=True), -c1 * xhat.mean(axis=1, keepdims=True) * rstd)
assert (
    (habit.mean(axis=1) < -0.03).all()
    and np.abs((habit * xhat).mean(axis=1)).min() > 0.01
    and np.allclose(habit - want, -c2 * rstd, atol=1e-6)
)
assert find("11-habit").answer == "to something else, and the error is a horizontal line"
state = mistake("rms_norm", "c2")
assert np.isclose(state.intercept, -state.c2 * state.rstd) and abs(state.slope) < 1e-9 and size(state.rest) < 1e-9

# %% [markdown]
# This page gives you two tests that need no reference. LayerNorm: the rows of `dx` add up to 0, and
# so do the rows of `dx * xhat`, except for what eps lets through. RMSNorm: only the second. These
# tests find a c1 or c2 that is missing, and a c2 too many. They do not find a missing w, or a
# kernel that writes zeros.

# %%
exercise("11b")

# %% tags=["check"]
mean_8, rstd_8 = saved.mean[:, None], saved.rstd[:, None]
xhat_8, wdy_8 = (x - mean_8) * rstd_8, w * dy
c1, c2 = (xhat_8 * wdy_8).mean(axis=1, keepdims=True), wdy_8.mean(axis=1, keepdims=True)
d1, d2 = (xhat_8 * dy).mean(axis=1, keepdims=True), dy.mean(axis=1, keepdims=True)
forms = {
    "c1": (wdy_8 - c2) * rstd_8,
    "c2": (wdy_8 - xhat_8 * c1) * rstd_8,
    "w": (dy - xhat_8 * d1 - d2) * rstd_8,
}
found = {
    name: bool(max(abs(wrong.mean(axis=1)).max(), abs((wrong * xhat_8).mean(axis=1)).max()) > 1e-3)
    for name, wrong in forms.items()
}
assert found == {"c1": True, "c2": True, "w": False}

# %%
from course_lib.lessons import offer_hunt

offer_hunt("05b")

# %% [markdown]
# ## Without rails
#
# The layer after the norm keeps y for its own backward pass. If the norm needs no more than y,
# nobody has to keep x, a matrix of M N elements for every norm of a model. This task asks for that
# dx kernel. The file says what comes in and what must come out. The task is optional.

# %%
exercise("11c")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("11")

# %% [markdown]
# **The ladder.** Run this cell again after each kernel that you pass.

# %%
from course_lib.lessons import ladder

ladder("11")

# %% [markdown]
# **Where to read on**
#
# - [Layer
#   Normalization](https://triton-lang.org/main/getting-started/tutorials/05-layer-norm.html), the
#   tutorial of Triton: its backward pass has this `dx`, with one stride for all, and sums up dw and
#   db in a way that lesson 12 is about.
# - [Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html): how a `backward`
#   is written, and what it is handed.
# - `course_lib/kernels/norm_backward.py`: the kernel as the course ships it. After the exercises.
#
# **Next:** lesson 12. dw and db are sums over rows, and rows belong to different programs. Who adds
# first?

# %% [markdown] tags=["dive"]
# ## Dive: where seven mistakes leave their mark
#
# For each mistake, the shares of its squared error along 1, along xhat and in neither.

# %%
from course_lib.lessons.lesson11 import figures

figures.show_marks()

# %% tags=["check"]
for term, shares in figures.measure_marks().items():
    assert np.isclose(sum(shares), 1), term
    off_line = term in (TERMS["layer_norm"]["rstd"], TERMS["layer_norm"]["w"])
    assert (shares[2] > 0.999) if off_line else (shares[2] < 1e-9), term

# %% [markdown]
# Why do a lost w and a lost rstd leave no line? The formula ends by taking out whatever lies along
# 1 and along xhat, also from a wrong wdy. So neither the wrong `dx` nor the true one has such a
# part (eps leaves a little), and their difference has none. For RMSNorm only xhat is taken out, so
# there a lost w leaves something along 1.

# %% [markdown] tags=["dive"]
# ## Dive: which test sees what?
#
# `y.sum().backward()` with w = 1 sees hardly anything (lesson 10). With a random w it finds more.

# %%
from course_lib.lessons.gradients import list_seen

for test in ("y.sum(), w = 1", "y.sum(), random w", "random dy and w"):
    print(f"{test:>17} sees", ", ".join(list_seen(test)))

# %% tags=["check"]
everything = ["c1 forgotten", "c2 forgotten", "rstd forgotten", "w forgotten", "dy never read"]
assert list_seen("y.sum(), w = 1") == ["c2 forgotten"] and list_seen("random dy and w") == everything
assert list_seen("y.sum(), random w") == everything[:4]

# %% [markdown]
# It sees every term, and it sends a dy with strides (0, 0), which breaks kernels that pass all
# other tests. What it cannot see is a kernel that takes dy for 1.

# %% [markdown] tags=["dive"]
# ## Dive: which sum waits for which?
#
# In a reduction the warps of a program wait for each other, at an instruction named `BAR`. Below,
# three kernels compiled for an H100, in fp16 with BLOCK 4096 and 8 warps: mean and rstd computed
# anew, loaded, and loaded with c1 and c2 in one `tl.reduce` over a pair.

# %%
from course_lib.lessons.lesson11.dx_compiled import count_waits

for name, (waits, exchanges) in count_waits().items():
    print(f"{name:>23}: {waits:2} waits of all warps, {exchanges} exchanges between threads")

# %% tags=["check"]
(anew, anew_exchanges), (twice, twice_exchanges), (once, once_exchanges) = count_waits().values()
assert once > 1 and 2 * once < twice and 2 * twice < anew
assert anew_exchanges == 2 * twice_exchanges == 2 * once_exchanges

# %% [markdown]
# c1 and c2 do not depend on each other, so they can share one reduction and save more than half of
# the waits. Computing the statistics anew more than doubles the waits, and eight saved bytes per
# row avoid that. (Waits are not time: while one program waits, another one runs.)

# %% [markdown] tags=["dive"]
# ## Dive: what does a column stride cost?
#
# A load of 16 bytes for each thread needs neighbours that the compiler knows to be neighbours. Now
# the distance between columns is an argument. How many loads of which size does the kernel have,
# for three kinds of dy? After 11a, say `yours=True` to see your own kernel.

# %%
from course_lib.lessons.lesson11.dx_compiled import count_loads

for name, (row, col) in {"packed": (8192, 1), "expanded": (0, 0), "transposed": (1, 4096)}.items():
    print(f"{name:>10} dy: loads by bytes for each thread {count_loads(row, col, yours=False)}")

# %% tags=["check"]
each = 8192 // (32 * 8)  # elements of a thread
assert count_loads(8192, 1) == {4: 2, 16: 3 * each * 2 // 16}  # mean and rstd; dy, x and w
assert count_loads(0, 0) == count_loads(1, 4096) == {4: 2, 16: 2 * each * 2 // 16, 2: each}

# %% [markdown]
# Nothing is lost where dy is packed. Triton compiles a version of its own for an integer argument
# that is 1. There the argument is a constant, so columns are neighbours. Only an expanded or
# transposed dy is loaded element by element, and that one would otherwise have been copied first.
