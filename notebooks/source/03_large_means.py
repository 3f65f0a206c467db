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
# # 03 Large means
#
# Here is the variance of lesson 01 in a shorter form. The kernel adds up x and x², and no lane past
# the end has to be cleared. The formula is right, and well-known libraries use it. In this lesson
# you find the rows on which the kernel fails, and the reason.
#
# *About 35 minutes, the exercise included. Needs: lesson 01.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("03")

# %%
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def one_pass_kernel(x_ptr, mean_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    mean = tl.sum(x, axis=0) / N
    mean_square = tl.sum(x * x) / N
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, mean_square - mean * mean)


# %% [markdown]
# Each program takes one row. Row 0 begins at `x_ptr`, and the next row `stride_x` elements later.
# With E for the mean over a row, the last line is a rule that you may know from school:
#
# $$\begin{aligned}\mathrm{var} = E[(x - E[x])^2] &= E[x^2] - 2\,E[x]\,E[x] + E[x]^2 \\ &= E[x^2] - E[x]^2\end{aligned}$$
#
# Take the row `1 3`: the mean square is 5, the squared mean is 4, and the variance is 1. Both sums
# come from one look at the row, so this formula is called **one-pass**. Run it on 64 rows of 1000
# random numbers with mean 1 and standard deviation 1.

# %%
from course_lib.lessons.statistics_rows import make_rows, run_on_rows

mean, var = run_on_rows(one_pass_kernel, make_rows(mean_over_std=1), BLOCK=1024)
print(f"64 variances, from {var.min():.3f} to {var.max():.3f}")

# %% tags=["check"]
import warnings
from fractions import Fraction

from course_lib.lessons.prediction import find
from course_lib.lessons.statistics_rows import find_error
from course_lib.norms import reference, statistics

assert Fraction(1 + 9, 2) - Fraction(1 + 3, 2) ** 2 == 1  # the row 1 3, exactly
assert make_rows(1).device.type == course_lib.DEVICE and find_error(var, make_rows(1)) < 1e-5
assert 0.9 < var.min() < var.max() < 1.15

# %% [markdown]
# All 64 are near 1, as they should be. Now add the same number to every element. That changes the
# mean, and not the variance.

# %%
from course_lib.lessons import predict

predict("03-ten-thousand")

# %% tags=["answer"] varies={"gpu": "a GPU adds up in another order"}
from course_lib.lessons.statistics_rows import find_error

for mean_over_std in (1, 10, 100, 1000, 10_000):
    x = make_rows(mean_over_std)
    mean, var = run_on_rows(one_pass_kernel, x, BLOCK=1024)
    below = (var < 0).sum().item()
    spread = f"{var.min():8.3f} to {var.max():7.3f}, {below} below 0"
    print(f"mean {mean_over_std:6}: {spread}, off by up to {find_error(var, x):.0e}")

# %% tags=["check"]
error, below = {}, {}
for ratio in (1, 10, 100, 1000, 10_000):
    _, var = run_on_rows(one_pass_kernel, make_rows(ratio), BLOCK=1024)
    error[ratio], below[ratio] = find_error(var, make_rows(ratio)), int((var < 0).sum())
assert error[10] < 2e-4 and 0.02 < error[1000] < 1 < error[10_000]
assert below[1] == below[10] == below[100] == below[1000] == 0 < 5 < below[10_000]
assert find("03-ten-thousand").answer == "numbers between about -30 and 30"
assert -40 < var.min() < -10 and 20 < var.max() < 40

# %% [markdown]
# ## Where did the digits go?
#
# Take the rows with mean 1000. The kernel squares, so its two terms are near 1,000,000. fp32 keeps
# 24 binary digits of a number.
#
# The first of the 24 digits stands for 2¹⁹, so the last one stands for 2⁻⁴: near 1,000,000 two
# neighbouring fp32 numbers are 1/16 apart. Both terms are multiples of 1/16, and so is their
# difference: a variance near 1 can only come out as 15/16, 16/16, 17/16 or another such number.

# %% varies={"gpu": "a GPU adds up in another order"}
x = make_rows(1000)[0]
mean_square, mean = (x * x).mean(), x.mean()
print(f"E[x²]  {mean_square:.4f}")
print(f"E[x]²  {mean * mean:.4f}")
print(f"var    {mean_square - mean * mean:.4f}")

# %%
from course_lib.lessons.lesson03 import figures

figures.draw_terms(x, mean_square, mean * mean)

# %% tags=["check"]
assert 2**19 < 1_000_000 < 2**20 and np.spacing(np.float32(1_000_000)) == 0.0625 == 16 / 16 - 15 / 16
row = make_rows(1000)[0].cpu().numpy()
square, mean = (statistics.total(values, "pairwise") / np.float32(1000) for values in (row * row, row))
assert mean * mean > 2**19 and (square - mean * mean) % 0.0625 == 0  # what is left over is a whole number of steps
assert str(square)[:5] == str(mean * mean)[:5] and abs(square - mean * mean) < 2

import re

from course_lib.compiler import Pointer, compile_report

ptx = compile_report(one_pass_kernel, [Pointer("fp32")] * 3 + [1000, 1000], {"BLOCK": 1024}).ptx
assert re.search(r"neg\.f32\s+(%r\d+), (%r\d+);\s+fma\.rn\.f32\s+%r\d+, \1, \2,", ptx)  # mean² is not rounded
for ratio, largest in ((1000, 0.4), (10_000, 40)):
    square, mean = ((values.mean(1)).double() for values in (make_rows(ratio) ** 2, make_rows(ratio)))
    separate, joined = square.float() - (mean * mean).float(), (square - mean * mean).float()
    assert all(largest / 2 < abs(var - 1).max() < largest for var in (separate, joined))

# %% [markdown]
# Each term is right to seven digits. That is as good as fp32 gets. But the first six digits of the
# two terms are the same, and the subtraction removes them.
#
# This is **cancellation**. The subtraction itself is exact, as it always is for two numbers so near
# to each other. But the digits that are equal in both terms, the right ones, become 0. The digits
# that are left come from the rounding of the two terms. (On a GPU the compiler joins the product and
# the subtraction into one instruction, an FMA, which rounds once. Then mean² is not rounded. But
# mean and E[x²] are, and the error is as large.)
#
# ## How much is lost?
#
# Write u for the largest relative error of one rounding. In fp32 u is 2⁻²⁴. The term E[x²] is off
# by about u · E[x²]. (It is rounded many times, sometimes up and sometimes down, and most of these
# errors cancel. The last dive has the bound.) Divide this error by the variance: the relative error
# of the variance is about
#
# $$u\,\frac{E[x^2]}{\mathrm{var}} = u\,\kappa^2 \qquad\qquad \kappa = \sqrt{1 + \frac{\mathrm{mean}^2}{\mathrm{var}}}$$
#
# kappa is the **condition number** of the row. If the mean is far from 0, kappa is |mean|/std. Each
# factor of 10 in the mean costs two digits. At which kappa is nothing left?
#
# At kappa² = 1/u = 2²⁴: a mean of 4096 standard deviations leaves nothing of a one-pass variance.

# %% [markdown]
# Half of the digits are lost at a much smaller kappa. At which kappa has the kernel lost 12 of its
# 24 binary digits? Then the relative error is 2⁻¹². Write it as arithmetic, and run the cell.

# %%
from course_lib.lessons import step

# %% tags=["step"]
u = 2.0**-24  # fp32: the largest relative error of one rounding
# BEGIN SOLUTION
#: kappa, from u * kappa**2 == 2.0**-12.
kappa = (2.0**-12 / u) ** 0.5
# END SOLUTION
step("03-half")

# %% tags=["check"]
from course_lib.lessons.steps import find as find_step

u = 2.0**-24
assert statistics.unit_roundoff(np.float32) == u and u * 4096**2 == 1
assert find_step("03-half").accepts(64.0) == "" and u * 64**2 == 2.0**-12
for ratio in (10, 100, 1000, 10_000):
    kappa = float(statistics.condition_number(make_rows(ratio).cpu().numpy()).max())
    assert abs(kappa / ratio - 1) < 0.1 and 0.3 * u * kappa**2 < error[ratio] < 20 * u * kappa**2

# %% [markdown]
# ## What do real rows look like?
#
# The rows of this lesson were made up. What does a norm get in a model? The course ran three small
# models, which have ten norms in all, and measured each row that enters a norm:
#
# - the language model of lesson 14, trained, on its text;
# - [Magika](https://github.com/google/magika), which tells the type of a file from its bytes, on
#   text files of this course;
# - [PP-OCRv4](https://github.com/PaddlePaddle/PaddleOCR), which reads the words in an image, on
#   images of lines of text.
#
# Others trained the last two. Their weights come with Python packages.

# %%
predict("03-real-rows")

# %% tags=["answer"]
figures.show_real_rows()

# %% tags=["check"]
from course_lib.lessons.figures.norm_inputs import TRAINED, UNTRAINED, read_norm_inputs

looked_at = [norm for norm in read_norm_inputs().norms if norm.model != UNTRAINED]
farthest = max(looked_at, key=lambda norm: norm.mean_over_std[-1])
assert len(looked_at) == 10 and len({norm.model for norm in looked_at}) == 3
assert (farthest.model, farthest.norm, farthest.N, farthest.mean_over_std[-1]) == (
    "Magika",
    "norm 2",
    512,
    4.25,
)
assert find("03-real-rows").answer == "about 4" and u * (1 + 4.25**2) < 2e-6
own, others = ([norm for norm in looked_at if (norm.model == TRAINED) == flag] for flag in (True, False))
assert max(norm.mean_over_std[-1] for norm in own) == 0.44 and max(norm.mean_over_std[3] for norm in own) < 0.1
assert min(norm.mean_over_std[-1] for norm in others) > 0.5
years, lone = np.arange(2000, 2027), np.eye(1, 512)
assert round(years.mean() / years.std()) == 258 and round(u * 258**2, 3) == 0.004 and lone.mean() / lone.std() < 0.05

# %% [markdown]
# The buttons above the chart also show how large the rows are, and whether one column is far larger
# than the others. Such a column does not make mean/std large, because it makes std large, too.
#
# Rows that no layer has changed can have a larger mean/std. Take the years 2000 to 2026, one in each
# column: mean/std is 258, and u · kappa² is 0.004.

# %% [markdown]
# ## What does y look like?
#
# The output of LayerNorm is `y = (x - mean) / sqrt(var + eps)`. Take the rows with mean 1000 again.

# %%
predict("03-shows")

# %% tags=["answer"] varies={"gpu": "a GPU adds up in another order"}
x = make_rows(1000)
mean, var = run_on_rows(one_pass_kernel, x, BLOCK=1024)
y = (x - mean[:, None]) / torch.sqrt(var[:, None] + 1e-5)
print(f"y from {y.min():.2f} to {y.max():.2f}; means of its rows up to {y.mean(1).abs().max():.4f}")
squares = (y * y).mean(1)
print(f"mean squares of its rows from {squares.min():.2f} to {squares.max():.2f}")
true = torch.nn.functional.layer_norm(x, (1000,))
print(f"largest error of y: {(y - true).abs().max():.2f}")

# %% tags=["check"]
x = make_rows(1000)
mean, var = run_on_rows(one_pass_kernel, x, BLOCK=1024)
y = reference.float64((x - mean[:, None]) / torch.sqrt(var[:, None] + 1e-5))
right = reference.layer_norm(x.cpu().numpy()).y
assert np.isfinite(y).all() and abs(y).max() < 7 and abs(y.mean(axis=1)).max() < 1e-2
assert np.median(abs(y - right).max(axis=1)) > 0.03 and abs(y - right).max() > 0.1
assert abs(reference.float64(torch.nn.functional.layer_norm(x, (1000,))) - right).max() < 5e-3
squares, of_torch = ((v**2).mean(axis=1) for v in (y, reference.float64(torch.nn.functional.layer_norm(x, (1000,)))))
assert (abs(squares - 1) > 0.01).sum() >= 10 and abs(of_torch - 1).max() < 1e-4
assert course_lib.MODE == "gpu" or [round(v, 2) for v in (squares.min(), squares.max())] == [0.83, 1.17]
assert course_lib.MODE == "gpu" or (abs(squares - 1) > 0.02).sum() == 53
assert find("03-shows").answer == "the mean square of each row of y"

# %% [markdown]
# Most tests take rows from `torch.randn`. There kappa is about 1, and they see nothing of this.
#
# At 10,000 the variance can be negative, and then y is NaN. Flax is a library for neural networks
# in JAX. Its LayerNorm takes the one-pass formula by default, and replaces a negative variance by
# 0: `max(0, var)` ([commit
# 018c99b](https://github.com/google/flax/blob/018c99bac74693be2790f98b80b7177043110ade/flax/linen/normalization.py)).
# Magika's two norms do the same: the graph in its package (version 1.0.3) adds up x and x²,
# subtracts, and takes `max(0, var)`.
#
# The clamp takes away the NaN, which was a warning. Where the variance should be 1 and the clamp
# makes it 0, only eps is left under the root, and y comes out 316 times too large.

# %% [markdown]
# Now move the mean yourself. Drag the point, or use the arrow keys. Find
#
# 1. the smallest mean/std at which even the first digit of the variance is wrong;
# 2. a row whose variance is negative, and what *clamp at 0* does to its y;
# 3. an algorithm that is as exact at 10,000 as at 1.
#
# (*naive, op by op* rounds each result to the dtype, as separate operations do. Welford and Chan's
# merge come in lesson 04, shifted one-pass in 05.)

# %%
from course_lib.lessons import cancellation

cancellation(mean_over_std=1, N=1024)

# %% tags=["check"]
from course_lib.lessons.lesson03.cancellation.model import EPS, RATIOS, compute_curve

assert abs(EPS**-0.5 / 316 - 1) < 1e-2
assert min(compute_curve("one_pass", "pairwise", "fp32", 1024, RATIOS)["var"]) < 0
assert abs(compute_curve("two_pass", "pairwise", "fp32", 1024, RATIOS)["var"][RATIOS.index(10_000.0)] - 1) < 0.2

# %% [markdown]
# ## What is the way out?
#
# Subtract *before* you square. `x - mean` is small, and small numbers have small rounding errors.
# This is **two-pass**: first the mean, then the mean of `(x - mean)²`. The second sum can only begin
# when the mean is known.
#
# Suppose that you rewrite the kernel at the top of this page as two-pass.

# %%
predict("03-loads")

# %% [markdown]
# Now rewrite it. From lesson 01 you know what the lanes past the end hold after a subtraction.


# %% tags=["step"]
@triton.jit
def two_pass_kernel(x_ptr, var_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    mean = tl.sum(x, axis=0) / N
    # BEGIN SOLUTION
    #: Subtract before you square, and keep the lanes past the end out.
    #| var = tl.sum(x * x) / N - mean * mean
    deviation = tl.where(cols < N, x - mean, 0.0)
    var = tl.sum(deviation * deviation) / N
    # END SOLUTION
    tl.store(var_ptr + row, var)


step("03-mend")

# %% tags=["check"]
for ratio in (1, 1000, 10_000):  # the kernel above, without the mean
    x = make_rows(ratio, M=16)
    var = torch.empty(16, device=x.device)
    two_pass_kernel[(16,)](x, var, x.stride(0), 1000, BLOCK=1024)
    assert find_error(var, x) < 1e-5
assert find("03-loads").answer == 1

# %% [markdown]
# At mean 10,000 this kernel is right to five digits and more. One-pass had none.
#
# In NumPy you do the same for all rows at once. `np.mean(x, axis=1)` has the shape (M,): one mean per
# row. With it `x - mean` has the fault of `largest` in lesson 01. If M and N differ, and both are
# above 1, you get an error. If M equals N you get wrong numbers. `mean[:, None]` has the shape
# (M, 1), a column.


# %% tags=["step"]
def subtract_mean(x):
    mean = np.mean(x, axis=1)
    # BEGIN SOLUTION
    #: Subtract from each row its own mean.
    #| return x - mean
    return x - mean[:, None]
    # END SOLUTION


step("03-column")

# %% [markdown]
# ## And in half precision?
#
# So far x was fp32. In fp16 something else breaks. Add up ones in fp16, one after the other: the sum
# grows to 2048 and stops. From there on neighbouring fp16 numbers are 2 apart. 2048 + 1 lies exactly
# between two of them, and it is rounded to the one whose last binary digit is 0. That is 2048, each
# time. (In bf16 the sum stops at 256.)

# %%
total = np.float16(0)
for _ in range(4096):
    total = total + np.float16(1)
print(int(total))

# %% [markdown]
# Now let a kernel add them up.


# %%
@triton.jit
def total_kernel(x_ptr, total_ptr, BLOCK: tl.constexpr):
    tl.store(total_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))


# %%
predict("03-ones")

# %% tags=["answer"]
ones = torch.ones(4096, dtype=torch.float16, device=course_lib.DEVICE)
total = torch.empty(1, dtype=torch.float16, device=course_lib.DEVICE)
total_kernel[(1,)](ones, total, BLOCK=4096)
print(total.item())

# %% tags=["check"]
total = np.float16(0)
for _ in range(4096):
    total = total + np.float16(1)
assert total == 2048 == np.float16(2048) + np.float16(1) and np.spacing(np.float16(2048)) == 2
assert torch.tensor(256.0).bfloat16() + 1 == 256
ones = torch.ones(4096, dtype=torch.float16, device=course_lib.DEVICE)
total = torch.empty(1, dtype=torch.float16, device=course_lib.DEVICE)
total_kernel[(1,)](ones, total, BLOCK=4096)
tree = np.ones(4096, np.float16)
while len(tree) > 1:
    tree = tree[::2] + tree[1::2]  # each sum is rounded to fp16
assert find("03-ones").answer == str(int(total.item())) and total.item() == tree[0] == 4096 and tree.dtype == np.float16

# %% [markdown]
# No order of the additions saves squares: 300² is infinite in fp16 before anything is added. One
# rule covers both: **convert to fp32 first, round at the end.**


# %% tags=["step"]
def mean_square(x):  # x has shape (M, N) and may be fp16
    # BEGIN SOLUTION
    #: the mean square of each row. What has to come first, so that it is fp32?
    #| return np.mean(x * x, axis=1)
    x = x.astype(np.float32)
    return np.mean(x * x, axis=1)
    # END SOLUTION


step("03-widen")

# %% tags=["check"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert np.isinf(np.float16(300) * np.float16(300)) and np.finfo(np.float16).max == 65504 < 300**2 == 90000

# %% [markdown]
# ## Your turn
#
# Write both variances in NumPy, for all rows of a matrix. The check allows one-pass an error of a few
# roundings of E[x²], and no more.

# %%
from course_lib import exercise

exercise("03a")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("02b")

# %% [markdown]
# ## Without rails
#
# An optional task. The variance stays as it is if you subtract one number from a whole row, so one-pass
# on x - x[0] should be right where one-pass on x fails. Mostly it is. Write it, and then find a row
# for which it is not: the check measures the error on your row. The task gives no points.

# %%
exercise("03b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("03")

# %% [markdown]
# **Where to read on**
#
# - Chan, Golub and LeVeque 1983, [Algorithms for Computing the Sample
#   Variance](https://doi.org/10.1080/00031305.1983.10483115): six pages, with a table of bounds and
#   advice on which algorithm to take.
# - [`layernorm_forward.cu` of
#   llm.c](https://github.com/karpathy/llm.c/blob/023b2d3d3e8acda287c99e12934c82bea0085c02/dev/cuda/layernorm_forward.cu)
#   (commit 023b2d3): kernels 4 to 6 are one-pass, kernels 1 to 3 two-pass.
# - [`normalization.py` of
#   Flax](https://github.com/google/flax/blob/018c99bac74693be2790f98b80b7177043110ade/flax/linen/normalization.py)
#   (commit 018c99b): `use_fast_variance` is this lesson's choice, and its comment says what may go
#   wrong.
# - `course_lib/norms/statistics.py`: all algorithms of this course, and their bounds, in NumPy.
#
# **Next:** lesson 04. What if the numbers come one at a time, and you cannot read them twice?

# %% [markdown] tags=["dive"]
# ## Dive: a wrong formula, or lost digits?
#
# A published kernel does not match PyTorch. Which of the two is it?

# %% [markdown]
# The post [Layer Normalization as fast as
# possible](https://fleetwood.dev/posts/layernorm-as-fast-as-possible) (read in November 2026) times
# three WebGPU kernels. One-pass takes 126.5 µs and does not match PyTorch. Two-pass takes 159.4 µs,
# Welford 113.9 µs, and both match. One-pass is numerically bad, and that seems to explain it.
#
# But look at the line as printed: `sum(x * x) - mean * mean / N`. Fractions round nothing. What
# does the line give for the row `1 3`, whose variance is 1?

# %%
from fractions import Fraction


def published(x):
    mean = sum(x) / len(x)
    return sum(value * value for value in x) - mean * mean / len(x)


print(published([Fraction(1), Fraction(3)]))

# %% tags=["check"]
assert published([Fraction(1), Fraction(3)]) == 8
x = np.random.default_rng(2755).normal(1, 1, 1024)
exact = [Fraction(v) for v in x]  # every float64 is a fraction
assert round(x.var(), 2) == 1.06 and round(float(published(exact))) == 2099 and abs(x.mean()) < 1.1 * x.std()
assert abs(statistics.one_pass(x.astype(np.float32), np.float32, "pairwise").var - x.var()) < 1e-6

# %% [markdown]
# It gives 8. The line is a wrong formula: the N stands under the wrong term. On 1024 normal numbers
# around 1 it gives 2099 where the variance is 1.06, in exact arithmetic too. The right one-pass
# formula has six right digits on that row, in fp32.
#
# A result that does not match does not tell the two faults apart. Two tests do. Compute in
# fractions, or move the mean to 0: a wrong formula stays wrong, and lost digits come back.

# %% [markdown] tags=["dive"]
# ## Dive: is it the fault of the row?
#
# Perhaps rows with a large mean are hopeless for everybody.

# %% [markdown]
# Change every element by as much as one rounding can: up if it lies above the mean, down if below.
# That is the worst case for a variance. Then compute the variance in float64. How far does it move?

# %%
noise = np.random.default_rng(0).standard_normal(8192)
x = noise + 1000
moved = (x * (1 + 2.0**-24 * np.sign(x - x.mean()))).var() / x.var() - 1
print(f"u = {2.0**-24:.0e}, u kappa = {2.0**-24 * 1000:.0e}, u kappa² = {2.0**-24 * 1000**2:.0e}")
print(f"the variance moves by {moved:.0e}")

# %% tags=["check"]
kappa = float(statistics.condition_number(x))
assert u * kappa < abs(moved) < 2 * u * kappa < 1e-2 * u * kappa**2

# %% [markdown]
# The variance moves by less than 2 u kappa. So if the stored numbers are themselves rounded, their
# variance is known to four digits at most at mean/std = 1000. Two-pass finds the variance of the
# *stored* numbers to seven digits, and the last three mean nothing. The error of one-pass is larger
# than this by a factor of kappa.

# %% [markdown] tags=["dive"]
# ## Dive: what do the roundings add up to?
#
# So far "about u kappa²". A bound says what cannot happen.

# %% [markdown]
# Each rounding multiplies by (1 + d) with |d| ≤ u. k roundings together multiply by a factor
# between 1 - gamma(k) and 1 + gamma(k), with gamma(k) = k u / (1 - k u). Take two-pass, with sums
# one element after the other.
#
# 1. Each element goes through at most N - 1 additions and one division, so N roundings. So the
#    error e of the mean is at most gamma(N) · mean of |x|, and that is at most gamma(N) kappa std.
# 2. If the mean is off by e, the mean of the squared deviations is var + e². That is at most var
#    (1 + (gamma(N) kappa)²).
# 3. Each squared deviation goes through at most N + 3 roundings: two from the difference (it is
#    squared), one from the square, N - 1 from the sum and one from the division. All terms are
#    positive, so the relative error of their sum is at most gamma(N + 3).
#
# Together: relative error ≤ gamma(N + 3) + (1 + gamma(N + 3)) (gamma(N) kappa)². The first term
# does not depend on the mean, and kappa² is multiplied by u². For one-pass, step 3 has E[x²] =
# kappa² var in the place of var. The table of Chan, Golub and LeVeque, constants left out (lesson
# 04 has the last two):
#
# | algorithm | sums one after the other | sums in pairs |
# |---|---|---|
# | one-pass | N kappa² u | log N kappa² u |
# | two-pass | N u + (N kappa u)² | log N u + (log N kappa u)² |
# | Welford | N kappa u | |
# | Chan | | log N kappa u |
#
# In pairs means ((a + b) + (c + d)) + ...: only log2 N additions lie on top of one another. A GPU
# adds up in such a tree anyway. Now hold measurements against the bounds: eleven means, eight rows
# each.

# %%
from course_lib.lessons.lesson03 import figures

figures.show_against_bounds()

# %% tags=["check"]
ratios, measured, bounds, holds = figures.measure()
assert all(holds.values()) and measured["two_pass"].max() < 1e-5 and measured["one_pass"].max() > 10
decade = {name: limit[9] / limit[7] for name, limit in bounds.items()}  # from mean/std 1000 to 10000
assert 90 < decade["one_pass"] < 110 and 9 < decade["chan"] < 13
rows = (np.random.default_rng(0).standard_normal((64, 8192)) + 10).astype(np.float32)
for order in statistics.ORDERS:
    off = find_error(statistics.two_pass(rows, np.float32, order).var, rows)
    assert off < statistics.bound("two_pass", 8192, 10.2, u, order) and (off > 1e-6) == (order == "sequential")

# %% [markdown]
# No point lies above its dashed line, and the slopes are those of the table. The measured errors
# lie well below: a bound counts every rounding as if all of them had the same sign.
