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
# # 03 Statistics: six ways to a variance
#
# On paper there is one variance. In 24 bits there are several, and some are negative. Which way you compute it decides how often you read
# the row, and how many of its digits survive.
#
# **You will be able to**
#
# - tell a wrong formula from lost digits, and prove which of the two you have;
# - say from mean/std alone how many digits E[x²] - E[x]² leaves you;
# - read an error bound, derive one, and hold a measurement against it;
# - write one-pass, two-pass, Welford and Chan's merge, and say what each costs;
# - spot a LayerNorm output that looks right and is not.
#
# **You need** lesson 01: what LayerNorm computes, and that its variance is divided by N. NumPy. No Triton yet.
#
# **Time** about 105 minutes: 55 to read and run, 50 for exercises 03a, 03b and 03c.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

from fractions import Fraction

import ml_dtypes
import numpy as np
import torch

from course_lib import exercise
from course_lib.lessons import cancellation, merge_tree, picture
from course_lib.norms import reference, statistics

# %% [markdown]
# ## Why did their one-pass fail?
#
# A post about LayerNorm on WebGPU times three kernels. One-pass collects the sum and the sum of squares together: 126.5 µs. Two-pass reads
# the row twice: 159.4 µs. Welford: 113.9 µs. The last two agree with PyTorch. One-pass does not. Everybody knows that one-pass is
# numerically bad, so that seems to be that.
#
# Is it? First the formula. With E for the mean over a row,
#
# $$\mathrm{var} = E[(x - E[x])^2] = E[x^2] - 2\,E[x]\,E[x] + E[x]^2 = E[x^2] - E[x]^2$$
#
# Two means, and both can come from one read. The post's line is `sum(x * x) - mean * mean / N`, with `mean = sum(x) / N`. Take the row
# `1 3`: mean 2, variance 1. What does the line give? *(Work it out, then run.)*


# %%
def published(x):
    """The post's line, in whatever numbers x holds."""
    N = len(x)
    mean = sum(x) / N
    return sum(value * value for value in x) - mean * mean / N


row = [Fraction(1), Fraction(3)]  # exact: no rounding anywhere
mean = sum(row) / 2
print("E[x^2] - E[x]^2 =", sum(v * v for v in row) / 2 - mean**2, "   the published line:", published(row))
assert sum(v * v for v in row) / 2 - mean**2 == sum((v - mean) ** 2 for v in row) / 2 == 1
assert published(row) == 8

# %% [markdown]
# 10 - 4/2 = 8. Fractions round nothing, so no digit was lost here: the line computes something else. The N stands under the wrong term. Now
# a row as the post may have had it, 1024 normal numbers around 1. How far off is the line? *(Predict, then run.)*

# %%
x = np.random.default_rng(2755).normal(1, 1, 1024)
exact = [Fraction(v) for v in x]  # every float64 is a fraction
print(
    f"variance {x.var():.2f}, the published line {published(x):.0f}, the same line in exact fractions {float(published(exact)):.0f}"
)
assert round(x.var(), 2) == 1.06 and round(published(x)) == round(float(published(exact))) == 2099
assert abs(x.mean()) < 1.1 * x.std()  # the mean is no larger than the spread: nothing there to cancel
one_pass_exact = sum(v * v for v in exact) / 1024 - (sum(exact) / 1024) ** 2
assert abs(float(one_pass_exact) - x.var()) < 1e-12
assert abs(statistics.one_pass(x.astype(np.float32), np.float32, "pairwise").var - x.var()) < 1e-6

# %% [markdown]
# > **ERRATUM** (post "Layer Normalization as fast as possible", WebGPU). As printed, its one-pass line is `sum(x^2) - mean^2 / N`: 2099
# > where the variance is 1.06. That is a wrong formula. In exact arithmetic it is just as wrong, and the right one-pass formula has on this
# > row six right digits in fp32.
#
# A test that only says "does not match" cannot tell the two apart. You can: do it in fractions, or move the mean to 0 and look whether the
# error goes away.
#
# ## So is one-pass fine?
#
# On that row, yes. Now rows of 8192 numbers with std 1 and a mean of 10, 1000 and 10000. `statistics.one_pass` does every operation in
# fp32, one rounding each. How many digits of the variance are right? *(Predict for each of the three, then run.)*

# %%
N = 8192
noise = np.random.default_rng(0).standard_normal((64, N))


def relative_error(var, x):
    true = x.astype(np.float64).var(axis=-1)
    return np.abs(var.astype(np.float64) - true) / true


worst, negative = {}, {}
for mean in (10, 1000, 10000):
    x = (noise + mean).astype(np.float32)
    var = statistics.one_pass(x, np.float32, "pairwise").var
    worst[mean], negative[mean] = relative_error(var, x).max(), (var < 0).sum()
    print(
        f"mean/std {mean:5}: relative error up to {worst[mean]:.0e}, {negative[mean]} of 64 variances negative, the first: {var[0]:.4f}"
    )
assert 1e-5 < worst[10] < 1e-4
assert 0.05 < worst[1000] < 0.5 and negative[1000] == 0
assert worst[10000] > 1 and negative[10000] > 0

# %% [markdown]
# At 10 it is right to four digits, at 1000 one row is a fifth off, and at 10000 some variances are below zero. Every element of these rows
# is stored to seven digits. Where have the digits gone?
#
# ### Look at the subtraction
#
# Here are the two terms of the worst row at mean 1000, as fp32 holds them. Their difference should be about 1. Near a million, how far
# apart are two neighbouring fp32 numbers? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
x = (noise + 1000).astype(np.float32)
x = x[relative_error(statistics.one_pass(x, np.float32, "pairwise").var, x).argmax()]
mean = statistics.total(x, "pairwise") / np.float32(N)
mean_square = statistics.total(x * x, "pairwise") / np.float32(N)
print(f"E[x^2] = {mean_square:.4f}")
print(f"E[x]^2 = {mean * mean:.4f}")
print(f"difference {mean_square - mean * mean:.4f}, the variance is {x.astype(np.float64).var():.4f}")
print(f"neighbours there are {np.spacing(mean_square):.4f} apart")
assert np.spacing(mean_square) == 0.0625
assert (mean_square - mean * mean) % 0.0625 == 0

# %% [markdown]
# 0.0625 apart. Each term is right to about seven digits, as good as fp32 gets, and the first seven are the same in both. The subtraction is
# exact, it makes no error at all. It removes the digits that agree, and what remains is the rounding of the two terms. That is
# **cancellation**: no operation fails, an earlier loss comes to light.
#
# ## How much may it lose?
#
# Write u for the **unit roundoff**, the largest relative error of one rounding: 2⁻²⁴ in fp32. A term of the size E[x²] is wrong by about
# u E[x²], and the result has the size of var. So the relative error is about
#
# $$u\,\frac{E[x^2]}{\mathrm{var}} = u\,\kappa^2 \qquad \kappa = \sqrt{1 + \mathrm{mean}^2/\mathrm{var}}$$
#
# Chan, Golub and LeVeque (1983) call kappa the **condition number** of the row. For a mean far from zero it is |mean|/std. What is u kappa²
# at mean/std 10, 1000, 10000, and at which mean/std does it reach 1? *(Predict, then run.)*

# %%
u = statistics.unit_roundoff(np.float32)
assert u == 2.0**-24
for mean in (10, 1000, 10000):
    kappa = float(statistics.condition_number(noise[0] + mean))
    print(f"mean/std {mean:5}: kappa {kappa:8.1f}, u kappa^2 = {u * kappa**2:.0e}, measured up to {worst[mean]:.0e}")
    assert abs(kappa / mean - 1) < 0.02
    assert u * kappa**2 < worst[mean] < 10 * u * kappa**2
print("half of the 24 bits are gone at mean/std =", round(u**-0.25), "and all at", round(u**-0.5))
assert (round(u**-0.25), round(u**-0.5)) == (64, 4096)

# %% [markdown]
# Right to a factor of ten. In fp32 nothing is left from mean/std = 4096 on, the root of 2²⁴.
#
# ### Is it the row's fault?
#
# Perhaps such rows are hopeless for everybody. Move every element by one rounding, up if it lies above the mean and down if below: the
# worst there is for a variance. In float64 watch how far the variance moves. By u, by u kappa or by u kappa²? *(Predict, then run.)*

# %%
x = noise[0] + 1000
kappa = float(statistics.condition_number(x))
moved = abs((x * (1 + u * np.sign(x - x.mean()))).var() / x.var() - 1)
print(
    f"u = {u:.1e}, 2 u kappa = {2 * u * kappa:.1e}, u kappa^2 = {u * kappa**2:.1e}; the variance moves by {moved:.1e}"
)
assert u * kappa < moved < 2 * u * kappa < 1e-2 * u * kappa**2

# %% [markdown]
# By less than 2 u kappa: four digits are there to be had. One-pass throws another factor kappa away, and nobody made it do so.
#
# ## Which algorithms stand it?
#
# Three that you can guess:
#
# - **naive, op by op**: mean, subtract, square, mean, as you type it with tensors. Four reads of the row, two writes.
# - **two-pass**: the mean, then the mean of (x - mean)², in a loop of its own. Two reads, no writes.
# - **shifted one-pass**: one-pass over x - x[0]. The variance of a row does not change if you subtract a number, but kappa does. One read.
#
# At mean/std = 10000, which of them is near 1e-7? *(Predict, then run.)*

# %%
x = (noise + 10000).astype(np.float32)
error = {
    name: relative_error(statistics.compute(name, x).var, x).max()
    for name in ("naive", "one_pass", "shifted", "two_pass")
}
for name, value in error.items():
    print(f"{name:9} relative error up to {value:.0e}")
assert error["one_pass"] > 1 and max(error["naive"], error["shifted"], error["two_pass"]) < 2e-6

# %% [markdown]
# All three, and shifted one-pass with a single read. They subtract *before* they square. x - mean is small, and small numbers have small
# roundings.
#
# ### Is a shift always safe?
#
# The element that you subtract stands for the mean. What if it is nothing like it? Set x[0] = 0 and leave the rest at 10000. Before you
# run: what is the largest kappa that x - x[0] can have, if (x[0] - mean)² is one of the N terms in N var? *(Predict, then run.)*

# %%
x[:, 0] = 0
kappa = statistics.condition_number(x, x[:, 0]).max()
unlucky = relative_error(statistics.compute("shifted", x).var, x).max()
print(f"kappa of x - x[0]: {kappa:.2f}, sqrt(1 + N) = {np.sqrt(1 + N):.2f}; relative error up to {unlucky:.0e}")
assert 90 < kappa < np.sqrt(1 + N)
assert 100 * error["shifted"] < unlucky < 1e-2
assert relative_error(statistics.compute("two_pass", x).var, x).max() < 2e-6

# %% [markdown]
# Since (x[0] - mean)² ≤ N var, kappa is at most sqrt(1 + N), here 90.5, whatever you do. One bad element costs four digits, never all of
# them.
#
# ## What do the roundings add up to?
#
# So far "about u kappa²". A bound says what cannot happen. Every rounding multiplies by (1 + d) with |d| ≤ u, and k of them by something
# within gamma(k) = k u / (1 - k u) of 1. Take two-pass, sums one element after the other:
#
# 1. The mean: N - 1 additions and a division meet an element, so the mean is off by at most gamma(N) times the mean of |x|, which is at
#    most gamma(N) kappa std.
# 2. About a mean that is off by e, the mean of the squared deviations is var + e². So far exact.
# 3. Each square has met at most N + 3 roundings: two from the difference (it is squared), one from the square, N - 1 from the sum, one from
#    the division. All terms are positive, nothing cancels.
#
# Together: relative error ≤ gamma(N + 3) + (1 + gamma(N + 3)) (gamma(N) kappa)². The first term knows nothing of the mean, and kappa comes
# with u *squared*. For one-pass, step 3 has E[x²] = kappa² var in place of var, and that is all the difference. Chan, Golub and LeVeque's
# table, constants left out:
#
# | | sums one after the other | sums pairwise |
# |---|---|---|
# | one-pass | N kappa² u | log N kappa² u |
# | two-pass | N u + (N kappa u)² | log N u + (log N kappa u)² |
# | Welford | N kappa u | |
# | Chan | | log N kappa u |
#
# Why log N? In `((a + b) + (c + d)) + ...` only log2 N additions lie on top of one another. What does the order do to a sum of 8192
# numbers? *(Predict, then run.)*

# %%
x = (noise + 10).astype(np.float32)
for order in statistics.ORDERS:
    off = relative_error(statistics.two_pass(x, np.float32, order).var, x).max()
    print(f"{order:10}: {statistics.depth(N, order):4} additions on top of one another, two-pass error up to {off:.1e}")
    assert off < statistics.bound("two_pass", N, 10.2, u, order)
    assert (off > 1e-6) == (order == "sequential") and (off < 2e-7) == (order != "sequential")

# %% [markdown]
# Twenty times the error, for the same number of additions. A GPU adds up in a tree anyway: here that is the accurate order, too.
#
# Now hold everything against its bound: six algorithms, eleven means, eight rows each. Where will the dashed line be crossed?
# *(Predict, then run.)*

# %%
from course_lib.lessons.figures import lesson03

ratios = np.array([0.1, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000])
x = (noise[:8] + ratios[:, None, None]).astype(np.float32)
kappa = statistics.condition_number(x)
kappa_shifted = statistics.condition_number(x, x[..., 0])
measured, bounds, holds = {}, {}, {}
for name in statistics.ALGORITHMS:
    measured[name] = relative_error(statistics.compute(name, x).var, x)
    conditions = kappa_shifted if name == "shifted" else kappa
    limit = np.vectorize(lambda k, name=name: statistics.bound(name, N, k, u))(conditions)
    bounds[name], holds[name] = limit.max(axis=1), bool((measured[name] <= limit).all())
    print(f"{name:9} worst {measured[name].max():.0e}, never above its bound: {holds[name]}")
assert all(holds.values())
decade = {name: limit[9] / limit[7] for name, limit in bounds.items()}  # from mean/std 1000 to 10000
assert 90 < decade["one_pass"] < 110 and 9 < decade["chan"] < 13 and 0.5 < decade["shifted"] < 2
assert measured["two_pass"].max() < 1e-5 and measured["shifted"].max() < 1e-5 and measured["one_pass"].max() > 10

# %%
picture(
    lesson03.errors_and_bounds(ratios, measured, bounds, "N = 8192, fp32; sums pairwise, Welford element by element"),
    alt="Six panels, relative error of the variance against mean/std on logarithmic axes, measured points below dashed bounds. Naive, "
    "two-pass and shifted one-pass stay near 1e-7 far to the right. One-pass rises with the square of mean/std and passes 1 near 3000. "
    "Welford and Chan rise slowly, to 1e-3 and 1e-4 at 30000.",
)

# %% [markdown]
# Nowhere. And the slopes are the table's: one-pass two decades a decade, Welford and Chan one, two-pass flat until its second term wakes.
# The measured errors lie well below. A bound counts every rounding as if all leaned the same way.
#
# ## Would you notice?
#
# A variance is not what you look at. You look at y. Here is LayerNorm with one-pass statistics on a row at mean/std = 300, next to the
# right one. The variance is up to 2 % off. Does a test with `atol=1e-2` see it? And at 1000? *(Predict, then run.)*

# %%
eps = 1e-5


def layer_norm(x, statistic):
    x64 = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return (x64 - np.float64(statistic.mean)[:, None]) / np.sqrt(np.float64(statistic.var)[:, None] + eps)


seen = {}
for mean in (10, 300, 1000, 10000):
    x = (noise + mean).astype(np.float32)
    y = layer_norm(x, statistics.compute("one_pass", x))
    off = np.abs(y - reference.layer_norm(x).y).max(axis=1)
    median = np.sort(np.nan_to_num(off, nan=np.inf))[32]
    seen[mean] = (median, int(np.isnan(y).any(axis=1).sum()))
    print(
        f"mean/std {mean:5}: half of the rows have y off by more than {median:.0e}, {seen[mean][1]} of 64 rows are NaN"
    )
assert seen[10][0] < 1e-4 and 1e-3 < seen[300][0] < 3e-2 and 0.03 < seen[1000][0] < 0.3
assert [seen[mean][1] for mean in (10, 300, 1000)] == [0, 0, 0] and seen[10000][1] > 0

x = (noise + 1000).astype(np.float32)
y = layer_norm(x, statistics.compute("one_pass", x))
print(
    f"at 1000: y lies in {y.min():.1f} .. {y.max():.1f}, the means of its rows within {abs(y.mean(axis=1)).max():.0e} of 0"
)
assert np.isfinite(y).all() and abs(y).max() < 6 and abs(y.mean(axis=1)).max() < 1e-3

by_torch = torch.nn.functional.layer_norm(torch.from_numpy(x).to(DEVICE), (N,))
assert abs(reference.float64(by_torch) - reference.layer_norm(x).y).max() < 5e-3  # the row is not hopeless

# %% [markdown]
# At 300 every other row passes `atol=1e-2`. At 1000 y is finite, centred, of ordinary size, and off by more than 0.1 in every other row.
# Nothing warns you. NaN only comes with a negative variance, and then some libraries clamp it at 0. What does y become then? Turn the
# knobs. Four things to find:
#
# 1. the mean/std from which y is 1 % off;
# 2. a row on which the variance is negative, and what `clamp at 0` makes of y;
# 3. an algorithm that makes 1000 look like 10;
# 4. a dtype in which even two-pass fails, if its sums are sequential.

# %%
cancellation(mean_over_std=1000, N=4096, dtype="fp32", algorithm="one_pass")

# %%
from course_lib.lessons.cancellation.model import model

lost = model("one_pass", 10000, 8192, "fp32").row
clamped = model("one_pass", 10000, 8192, "fp32", clamp=True).row
half = model("two_pass", 10, 4096, "bf16", "sequential").row
print(
    f"one-pass at 10000: var {lost.computed:g}, y NaN; clamped: var {clamped.computed:g}, y {clamped.scale:.0f} times too large"
)
print(f"two-pass in bf16, sums sequential: var {half.computed:.1f}, it should be {half.true:.1f}")
assert lost.computed < 0 and np.isnan(lost.y).all() and clamped.computed == 0 and 310 < clamped.scale < 320
assert model("one_pass", 1000, 4096, "fp32").row.error > 1e4 * model("two_pass", 1000, 4096, "fp32").row.error
assert half.error > 1

# %% [markdown]
# Clamped to 0, only eps is left under the root, and y is 1/sqrt(eps) = 316 times too large. And in bf16 the best formula gives nonsense.
# That is a different failure.
#
# ## What if the accumulator is half?
#
# Add up 4096 ones, one after the other, in fp16. And in bf16. What comes out? *(Predict both, then run.)*

# %%
sums = {}
for name, dtype in (("fp16", np.float16), ("bf16", ml_dtypes.bfloat16), ("fp32", np.float32)):
    running = np.zeros((), dtype)
    sums[name] = []
    for _ in range(4096):
        running = running + np.ones((), dtype)
        sums[name].append(float(running))
    print(f"{name}: {sums[name][-1]:g}, u = 2^{int(np.log2(statistics.unit_roundoff(dtype)))}")
assert (sums["fp16"][-1], sums["bf16"][-1], sums["fp32"][-1]) == (2048, 256, 4096)
assert np.float16(2048) + np.float16(1) == 2048

# %%
picture(
    lesson03.stalled_sums({name: np.array(values) for name, values in sums.items()}),
    alt="The running sum of up to 4096 ones by dtype of the accumulator. fp32 rises to 4096. fp16 rises to 2048 and stays there, "
    "bf16 to 256.",
)

# %% [markdown]
# 2048 + 1 lies between two fp16 numbers, 2048 and 2050, in the middle, and a tie goes to the even one. From then on every 1 is lost. The
# sum does not overflow, it stops. In the language of the bound: N u is 2 here, and gamma(N) is infinite. The bound promises nothing, and
# nothing is what you get.
#
# In a tree only 12 additions lie on top of one another, and partial sums are as small as their neighbours. Does that rescue fp16?
# And what else can go wrong in fp16, on rows with a std of 300? *(Predict, then run.)*

# %%
ones = np.ones(4096, np.float16)
assert statistics.total(ones, "tree") == 4096 and statistics.total(ones, "sequential") == 2048
assert statistics.bound("two_pass", 4096, 1.0, 2.0**-11, "sequential") == np.inf
assert statistics.bound("two_pass", 4096, 1.0, 2.0**-11, "tree") < 0.02

x = (300 * noise[:8, :1024]).astype(np.float16)
true = x.astype(np.float64).var(axis=1)
with np.errstate(over="ignore", invalid="ignore"):
    narrow = statistics.two_pass(x, np.float16, "tree").var
    typed = statistics.naive(x, np.float16).var
wide = statistics.two_pass(x, np.float32, "tree").var
print(
    f"variance {true[0]:.0f}; two-pass in fp16 {narrow[0]}, op by op with fp16 results {typed[0]}, two-pass in fp32 {wide[0]:.0f}"
)
assert np.isinf(narrow).all() and np.isinf(typed).all() and np.allclose(wide, true, rtol=1e-6)
half = torch.from_numpy(x)
deviation = half - half.mean(dim=1, keepdim=True)
assert torch.isinf((deviation * deviation).mean(dim=1)).all()  # PyTorch, typed op by op

# %% [markdown]
# The tree does rescue the sum. It cannot rescue the square: 300² = 90000 is no fp16 number, the largest is 65504. `naive`, your two lines
# of PyTorch, keeps fp32 accumulators and overflows all the same, because the squares are *stored* in fp16.
#
# One rule covers both: convert to fp32 at the load, round once at the store. It is free, since a kernel waits for bytes and not for
# arithmetic.
#
# ## Can one read be enough, without a lucky shift?
#
# Two-pass needs the mean before it can start. Welford (1962) carries a mean along and corrects it with every number:
#
# $$\mathrm{mean}_k = \mathrm{mean}_{k-1} + \frac{x_k - \mathrm{mean}_{k-1}}{k}$$
#
# That is the old mean, moved 1/k of the way to x. Let M2 be the sum of squared deviations. What does it grow by? Write
# $d = x_k - \mathrm{mean}_{k-1}$.
#
# - The mean moves by d/k, so each of the k - 1 earlier deviations changes by -d/k. They add up to 0, so in their squares the mixed terms
#   cancel, and M2 grows by (k - 1) (d/k)².
# - x_k itself lies d (k - 1)/k from the new mean, and adds the square of that.
#
# Together d² (k - 1)/k, and that is a product of two deviations:
#
# $$M2_k = M2_{k-1} + (x_k - \mathrm{mean}_{k-1})\,(x_k - \mathrm{mean}_k) \qquad \mathrm{var} = M2_N / N$$
#
# One from the old mean, one from the new. Do `2 4 9` by hand: mean and M2 after each number. *(By hand, then run.)*

# %%
state = statistics.empty((), np.float32)
history = []
for value in (2, 4, 9):
    state = statistics.welford_update(state, np.float32(value))
    history.append((int(state.count), float(state.mean), float(state.M2)))
    print(f"after {value}: n = {state.count}, mean = {state.mean:g}, M2 = {state.M2:g}")
assert history == [(1, 2, 0), (2, 3, 2), (3, 5, 26)]
assert 26 == (2 - 5) ** 2 + (4 - 5) ** 2 + (9 - 5) ** 2

# %% [markdown]
# 2 and 0, 3 and 2, 5 and 26. At every moment the state is right for the numbers seen so far.
#
# ### What if you take the same mean twice?
#
# `(x - mean_old)**2` or `(x - mean_new)**2` is quickly typed. On rows of 1000 normal numbers, mean 0, in float64: how far off is the
# variance? And if the mean is 10? *(Predict, then run.)*


# %%
def slipped(x, which):
    mean, M2 = np.zeros(len(x)), np.zeros(len(x))
    for k in range(x.shape[1]):
        old = x[:, k] - mean
        mean = mean + old / (k + 1)
        new = x[:, k] - mean
        M2 = M2 + {"old": old * old, "new": new * new, "both": old * new}[which]
    return M2 / x.shape[1]


slips = {}
for mean in (0, 10):
    x = noise[:, :1000] + mean
    for which in ("both", "old", "new"):
        slips[which, mean] = (slipped(x, which) / x.var(axis=1) - 1).mean()
        print(f"mean {mean:2}, {which:4}: {100 * slips[which, mean]:+.2f} %")
assert abs(slips["both", 0]) < 1e-12 and 0.004 < -slips["new", 0] < 0.009 and 0.004 < slips["old", 0] < 0.012
assert abs(slips["new", 10] - slips["new", 0]) < 1e-9 and 0.08 < slips["old", 10] < 0.15

# %% [markdown]
# The new mean twice: 0.6 % low at any mean, and a tolerance of 1e-2 lets it through. The old mean twice: the first number adds its whole
# square, since the mean before it is 0, so a mean of 10 adds a tenth.
#
# ### What does Welford cost?
#
# A division a number, and a chain: each step waits for the one before. A GPU has thousands of lanes, and a chain of 8192 steps keeps one of
# them busy. Could two half rows be done side by side, and then put together?
#
# ## How do you merge two halves?
#
# Part a has n_a numbers with mean_a and M2_a, part b likewise. With d = mean_b - mean_a and n = n_a + n_b, Chan, Golub and LeVeque (1979):
#
# $$\mathrm{mean} = \mathrm{mean}_a + d\,\frac{n_b}{n} \qquad M2 = M2_a + M2_b + d^2\,\frac{n_a n_b}{n}$$
#
# The last term is what the numbers gain by being measured from the common mean: a's lie d n_b/n off it, b's d n_a/n, and
# n_a (d n_b/n)² + n_b (d n_a/n)² = d² n_a n_b/n. Try it on `1 1 1 1` and `5 5 5 5`: M2 is 0 on both sides. What
# is it together? Then b = a single number x. What do the two formulas turn into? *(By hand, then run.)*

# %%
a = statistics.Partial(np.array(4), np.float32(1), np.float32(0))
b = statistics.Partial(np.array(4), np.float32(5), np.float32(0))
both = statistics.merge(a, b)
print(f"n = {both.count}, mean = {both.mean:g}, M2 = {both.M2:g}")
assert (both.count, both.mean, both.M2) == (8, 3, 32) and 32 == 8 * 2**2

x = np.float32(9)
one = statistics.Partial(np.array(1), x, np.float32(0))
merged, updated = statistics.merge(a, one), statistics.welford_update(a, x)
print("merged with one number:", *(float(v) for v in merged), "  Welford's update:", *(float(v) for v in updated))
assert all(np.isclose(p, q, rtol=1e-6) for p, q in zip(merged, updated, strict=True))

# %% [markdown]
# 32, all of it from the distance. And with n_b = 1 the merge *is* Welford's update: (x - mean_old)² (k - 1)/k is the product of the two
# deviations. So Welford is the merge with one number at a time, and Chan's is the merge in any grouping you like.
#
# Start from N partials of one number each and merge neighbours: log2 N rounds. Or let each block of a row do Welford and merge only the
# blocks. Step through both (block 1, then block 4). Three things to find:
#
# 1. in which merge most of M2 comes in, for the row "two levels";
# 2. what happens to the lanes past the end, with N = 5;
# 3. for "mean 10000", what E[x²] - E[x]² gives in fp32. The caption at the root says it.

# %%
merge_tree(data="worked example", block=1)

# %%
from course_lib.lessons.merge_tree.model import DATA, steps

last = steps(DATA["two levels"], 1)[-1]
print("two levels:", [node.M2 for node in last.levels[-2]], "become", last.root.M2, "in the last merge")
assert [node.M2 for node in last.levels[-2]] == [0, 0] and last.root.M2 == 32
short = steps(DATA["worked example"][:5], 1)[-1]
assert [node.count for node in short.levels[0]] == [1] * 5 + [0] * 3 and short.root.count == 5
assert np.isclose(short.root.M2 / 5, np.var(DATA["worked example"][:5]))
far = steps(DATA["mean 10000"], 2)[-1]
print(f"mean 10000: by merges {far.root.M2 / 8:.3f}, E[x^2] - E[x]^2 in fp32 {far.direct:g}, true {far.true:.3f}")
assert abs(far.root.M2 / 8 / far.true - 1) < 1e-6 and far.direct == 0

# %% [markdown]
# The empty lanes matter. A partial of no numbers is (0, 0, 0), and n_b / n with n = 0 is 0/0. One NaN would travel down to the root. So a
# merge has to say what nothing merged with nothing is.
#
# ### Does the grouping matter?
#
# On paper a merge is associative. In fp32 at mean/std = 1000, how do the results of five block sizes differ, from sequential Welford (one
# block) to pairwise? Which is best? *(Predict, then run.)*

# %%
x = (noise[:16] + 1000).astype(np.float32)
off = {}
for block in (8192, 512, 32, 4, 1):
    off[block] = relative_error(statistics.welford_blocked(x, np.float32, block).var, x).max()
    kappa = statistics.condition_number(x).max()
    print(
        f"blocks of {block:4}: error up to {off[block]:.0e}, bound {statistics.bound('chan', N, kappa, u, block=block):.0e}"
    )
    assert off[block] < statistics.bound("chan", N, kappa, u, block=block)
assert off[8192] == relative_error(statistics.welford(x).var, x).max() > 5 * off[32]
assert max(off.values()) < 1e-4 and off[1] < 1e-5

# %% [markdown]
# All of them are good, the shorter chains better, each below its bound. One-pass was at 1e-1 here. So you may group as the hardware likes:
# a block a program, a lane a column, a tree over the lanes. The result moves in its last digits.
#
# ## Which one do you take?
#
# | | reads of x | error (fp32, mean/std = 1000) | extra arithmetic |
# |---|---|---|---|
# | naive, op by op | 4, and 2 writes | 1e-7 | none; squares stored in x's dtype |
# | one-pass | 1 | 1e-1 | none |
# | shifted one-pass | 1 | 3e-7, up to 2e-3 with an unlucky shift | a subtraction |
# | two-pass | 2 | 1e-7 | none |
# | Welford | 1 | 4e-5 | a division a number, one after the other |
# | Chan | 1 | 2e-6 | a tree of merges |
#
# The post's Welford was its fastest kernel: 113.9 µs against 159.4. What it saved was a sweep over memory. But a row that fits in registers
# is read *once* anyhow, and both passes of two-pass run on registers. Then Welford has no sweep left to save. Lessons 05 and 06
# measure it. Check the table's numbers before you believe them.

# %%
x = (noise[:16] + 1000).astype(np.float32)
table = {name: relative_error(statistics.compute(name, x).var, x).max() for name in statistics.ALGORITHMS}
print({name: f"{value:.0e}" for name, value in table.items()})
assert table["one_pass"] > 3e-2
assert table["naive"] < 2e-7 and table["two_pass"] < 2e-7 and table["shifted"] < 1e-6
assert table["chan"] < 1e-5 < table["welford"] < 1e-4

# %% [markdown]
# ## Exercise 03a: one pass and two passes
#
# Both formulas, for rows of a matrix. One of them may lose digits, and the grader knows how many.

# %%
exercise("03a")

# %% [markdown]
# ## Exercise 03b: Welford
#
# First the step, then the loop. Mind which mean, and by which count you divide when the first number arrives.

# %%
exercise("03b")

# %% [markdown]
# ## Exercise 03c: Chan's merge
#
# Six numbers in, three out. Sides may be empty.

# %%
exercise("03c")

# %% [markdown]
# ## Summary
#
# - A mismatch has two possible reasons. A wrong formula is wrong in exact fractions too; lost digits are not.
# - E[x²] - E[x]² loses kappa² roundings, with kappa about |mean|/std. In fp32 that is half of the digits at mean/std = 64, and all at 4096.
# - The variance itself is only kappa-sensitive. What subtracts before it squares keeps its digits.
# - A bound is a count of roundings. In sums the count is N one after the other, log2 N in a tree.
# - y from a lost variance looks ordinary until the variance is negative. A clamp turns NaN into a y that is 316 times too large.
# - Accumulators in fp16 stop growing at 2048 for ones, in bf16 at 256, and fp16 squares overflow from 256 on. fp32 at the load.
# - Welford is Chan's merge with one number. A partial is (n, mean, M2), an empty one is (0, 0, 0), and the grouping is yours.
#
# **Where to read on**
#
# - Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance: Analysis and Recommendations": six pages, the table, and
#   which algorithm to take when.
# - Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 1.9 and problem 1.10: the same in his notation. Section 4.2 on
#   the order of sums.
# - Welford 1962, two pages in Technometrics.
# - `course_lib/norms/statistics.py`: all of it, in the order of this lesson. `bound` is at the end.
#
# **Next: lesson 04, reductions and memory.** You know what a tree does for the digits. There you see what it does for the time.
