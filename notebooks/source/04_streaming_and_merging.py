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
# # 04 Streaming and merging: where does the variance come from?
#
# Two halves of a row have the variance 1 each. The whole row has the variance 26. On a GPU several
# programs or lanes share a row, and each has seen only its part. Which numbers must it report?
#
# *About 35 minutes, both exercises included. Needs: lesson 03. Everything here is NumPy.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("04")

# %%
import numpy as np

from course_lib.lessons import predict, step

predict("04-halves")

# %% tags=["answer"]
for part in ([1, 3, 1, 3], [11, 13, 11, 13], [1, 3, 1, 3, 11, 13, 11, 13]):
    print(part, "mean", np.mean(part), "variance", np.var(part))

# %% tags=["check"]
from course_lib.lessons.lesson04.merge_tree.model import DATA
from course_lib.lessons.prediction import find
from course_lib.norms import statistics

assert course_lib.MODE in {"cpu", "gpu"}  # this page needs neither
row = np.array(DATA["two halves"])
assert row[:4].var() == row[4:].var() == 1 and row.var() == 26 and row.mean() == 7
assert row[4:].mean() - row[:4].mean() == find("04-halves").answer == 10
halves = statistics.partials(row, np.float32, block=4)
assert list(halves.M2) == [4, 4] and statistics.merged(halves).M2 == 208 == 4 + 4 + 8 * 5**2
assert statistics.partials(row[7:], np.float32).M2 == 0

# %%
from course_lib.lessons import merge_tree

merge_tree(block="split")

# %% [markdown]
# **M2** is the sum of the squared deviations from the mean: the variance before the division by n.
# The bar at the bottom of the picture shows what the M2 of the whole row is made of. Choose *two
# halves* beside *x*, and drag:
#
# 1. Move the border between the halves. Where does most of M2 lie inside them?
# 2. Put the border behind x[6], so that one number is left on the right. What is its own M2?
# 3. Reset, and drag 13 and 11 on the right down. What changes, and what stays?
#
# So a part reports three numbers: how many it has read, their mean, and their M2.
#
# ## Where is the mean of both?
#
# `1 1 1` has the mean 1, and `5` has the mean 5. The mean of all four is 2, and not the 3 in the
# middle. If b has a quarter of all numbers, the common mean lies a quarter of the way from `mean_a`
# to `mean_b`. The function below always goes half of the way. Mend it.


# %% tags=["step"]
def mean_of_both(n_a, mean_a, n_b, mean_b):
    # BEGIN SOLUTION
    #: From mean_a towards mean_b, by the share of all numbers that b has.
    #| return mean_a + (mean_b - mean_a) / 2
    return mean_a + (mean_b - mean_a) * n_b / (n_a + n_b)
    # END SOLUTION


step("04-share")

# %% tags=["check"]
assert 2 == np.mean([1, 1, 1, 5]) != (1 + 5) / 2
assert mean_of_both(3, 1.0, 1, 5.0) == 2 and mean_of_both(4, 2.0, 4, 12.0) == 7

# %% [markdown]
# ## How much lies between the means?
#
# Replace each number by the mean of its side: four times 2, four times 12. Now nothing varies inside
# the halves, and all eight numbers are 5 away from the common mean: 8 · 5² = 200. What is it for
# any two sides, whose means are d apart?


# %% tags=["step"]
def find_between(n_a, n_b, d):
    n = n_a + n_b
    # BEGIN SOLUTION
    #: How far is mean_a from the common mean, and how far is mean_b? Both are half of d here.
    #| from_a, from_b = d / 2, d / 2
    from_a, from_b = d * n_b / n, d * n_a / n
    # END SOLUTION
    return n_a * from_a**2 + n_b * from_b**2


step("04-between")

# %% [markdown]
# What you return is d² n_a n_b / n, if you write it out. So Chan, Golub and LeVeque (1979) merge
# two parts, with n = n_a + n_b and d = mean_b - mean_a:
#
# $$\begin{aligned}\mathrm{mean} &= \mathrm{mean}_a + d\,\frac{n_b}{n} \\ M2 &= M2_a + M2_b + d^2\,\frac{n_a n_b}{n}\end{aligned}$$
#
# ## What if b is one number?
#
# The numbers of a stream come one at a time. Let x be number k. Then n_b is 1, mean_b is x, M2_b is
# 0, and M2 grows by $d^2 (k - 1)/k$. Here d is the distance of x from the *old* mean. The mean
# moves by d/k towards x, so $d (k - 1)/k$ is the distance of x from the *new* mean. This is
# **Welford's algorithm** (1962):
#
# $$\begin{aligned}\mathrm{mean}_k &= \mathrm{mean}_{k-1} + \frac{x_k - \mathrm{mean}_{k-1}}{k} \\ M2_k &= M2_{k-1} + (x_k - \mathrm{mean}_{k-1})\,(x_k - \mathrm{mean}_k)\end{aligned}$$
#
# Do `2 4 9` by hand. After 4: mean 3, M2 = (4 - 2)(4 - 3) = 2. After 9: mean 5,
# M2 = 2 + (9 - 3)(9 - 5) = 26. That is 3² + 1² + 4², the squared deviations from 5.

# %% tags=["check"]
assert find_between(4, 4, 10) == 200 and np.isclose(find_between(3, 1, 4.0), 4**2 * 3 * 1 / 4)
four = statistics.Partial(np.array(4), np.float32(1), np.float32(0))
single = statistics.Partial(np.array(1), np.float32(9), np.float32(0))
merged, updated = statistics.merge(four, single), statistics.welford_update(four, np.float32(9))
assert all(np.isclose(p, q, rtol=1e-6) for p, q in zip(merged, updated, strict=True))
state, history = statistics.empty((), np.float32), []
for value in (2, 4, 9):
    state = statistics.welford_update(state, np.float32(value))
    history.append((int(state.count), float(state.mean), float(state.M2)))
assert history == [(1, 2, 0), (2, 3, 2), (3, 5, 26)]
assert history[-1][2] == (2 - 5) ** 2 + (4 - 5) ** 2 + (9 - 5) ** 2

# %% [markdown]
# Here no large square is subtracted from another. Only the running mean is large, and rounded in each
# step. A mistake is easily made: the new mean in both factors, `(x - new_mean) ** 2`.

# %%
predict("04-new-mean")


# %% tags=["check"]
def slip(x, which):
    mean, M2 = np.zeros(len(x)), np.zeros(len(x))
    for k in range(x.shape[1]):
        old = x[:, k] - mean
        mean = mean + old / (k + 1)
        new = x[:, k] - mean
        M2 = M2 + {"old": old * old, "new": new * new, "both": old * new}[which]
    return M2 / x.shape[1]


noise = np.random.default_rng(0).standard_normal((64, 1000))
low = {mean: (slip(noise + mean, "new") / noise.var(axis=1) - 1).mean() for mean in (0, 10)}
assert (
    -0.009 < low[0] < -0.004
    and abs(low[10] - low[0]) < 1e-9
    and abs(slip(noise, "new") / noise.var(axis=1) - 1).max() < 0.03
)
assert abs(slip(noise, "both") / noise.var(axis=1) - 1).max() < 1e-12
assert 0.08 < (slip(noise + 10, "old") / noise.var(axis=1) - 1).mean() < 0.15
assert find("04-new-mean").answer == "0.6 % too small" and round(sum(1 / k for k in range(2, 1001)), 1) == 6.5

# %% [markdown]
# ## Your turn: Welford
#
# The exercise streams M rows side by side: mean and M2 are arrays of shape (M,), and the next
# numbers are a *column* of x. Watch which mean each factor takes, and whether `count` has x in it.

# %%
from course_lib import exercise

exercise("04a")

# %% [markdown]
# ## What if a side is empty?
#
# Welford is a chain: each step waits for the one before. A GPU runs many short chains instead, one
# in each lane, and merges what they report. Five numbers in eight lanes leave three lanes empty: n,
# mean and M2 are 0 there. If two of these are merged, n_b / n is 0/0, and the NaN spoils the row.
#
# Suppose that a row of N numbers lies in BLOCK lanes, N rounded up to a power of two. First lane i
# is merged with lane i + BLOCK / 2, then lane i with lane i + BLOCK / 4, and so on, without a guard.

# %%
predict("04-hidden")

# %% [markdown]
# Mend the share of b. If both sides are empty, any finite share will do: it is multiplied by d, the
# distance of two means that are both 0.


# %% tags=["step"]
def find_share(n_a, n_b):  # counts of many merges at once; both may be 0
    n = n_a + n_b
    # BEGIN SOLUTION
    #: b's share of the numbers. Change the divisor, so that two empty sides give 0.
    #| return n_b / n
    return n_b / np.maximum(n, 1)
    # END SOLUTION


step("04-empty-sides")

# %% tags=["check"]
with np.errstate(invalid="ignore"):
    zero = np.float32(0)
    assert np.isnan(zero / (zero + zero))


def has_nan(N: int, BLOCK: int, neighbours: bool) -> bool:
    """Whether a tree without a guard merges two empty lanes, so that a NaN is at its top."""
    counts = [1] * N + [0] * (BLOCK - N)
    while len(counts) > 1:
        half = len(counts) // 2
        sides = (counts[::2], counts[1::2]) if neighbours else (counts[:half], counts[half:])
        pairs = list(zip(*sides, strict=True))
        if (0, 0) in pairs:
            return True
        counts = [a + b for a, b in pairs]
    return False


blocks = {N: 1 << (N - 1).bit_length() for N in range(1, 1025)}
assert (
    not any(has_nan(N, BLOCK, neighbours=False) for N, BLOCK in blocks.items()) and find("04-hidden").answer == "none"
)
assert has_nan(5, 8, neighbours=True) and has_nan(5, 16, neighbours=False)
with np.errstate(invalid="ignore"):
    a, b = zero, zero  # mean and M2 of an empty side
    assert np.isnan(a + (b - a) * (zero / (zero + zero))) and a + (b - a) * (np.float32(1) / np.float32(1)) == 0
assert find_share(np.zeros(1), np.zeros(1)) == 0 and find_share(np.array([3.0]), np.array([1.0])) == 0.25
short = statistics.partials(DATA["worked example"][:5], np.float32)
assert statistics.merged(short).count == 5 and np.isclose(
    statistics.merged(short).M2 / 5, np.var(DATA["worked example"][:5])
)

# %% [markdown]
# ## Your turn: Chan's merge
#
# The function gets six numbers, n, mean and M2 of each side, and returns three. Either side may be
# empty.

# %%
exercise("04b")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("01b")

# %% [markdown]
# ## Does a merge cost digits?
#
# Cut a row of 8192 numbers into 256 chains of 32. Then 255 merges come on top, and each of them
# rounds.

# %%
predict("04-chains")

# %% tags=["answer"]
from course_lib.lessons.statistics_rows import find_error
from course_lib.norms import statistics

rows = (np.random.default_rng(0).standard_normal((16, 8192)) + 1000).astype(np.float32)
for length in (8192, 512, 32, 4, 1):
    error = find_error(statistics.welford_blocked(rows, np.float32, length).var, rows)
    print(f"chains of {length:4}: relative error up to {error:.0e}")

# %% tags=["check"]
assert rows.shape[1] == 256 * 32 and 256 - 1 == 255
one_chain, short = (find_error(statistics.welford_blocked(rows, np.float32, length).var, rows) for length in (8192, 32))
assert 5 < one_chain / short < 20 and find("04-chains").answer == "that of the 256 chains"
kappa, u = statistics.condition_number(rows).max(), 2.0**-24
for length in (8192, 512, 32, 4, 1):
    error = find_error(statistics.welford_blocked(rows, np.float32, length).var, rows)
    assert error < statistics.bound("chan", 8192, kappa, u, block=length) and (length > 32 or error < 1e-5)

# %% [markdown]
# ## Which one do you take?
#
# | algorithm | reads of x | relative error, fp32, N = 8192, mean/std = 1000 | its price |
# |---|---|---|---|
# | one-pass | 1 | 1e-1 | it loses digits at large means |
# | two-pass | 2, or 1 if the row stays in the lanes | 1e-7 | it needs the row twice |
# | Welford, one chain | 1 | 4e-5 | a division per number, one after the other |
# | Welford in blocks of 32, merged | 1 | 4e-6 | a tree of merges |
#
# How you group the parts changes only the last digits, so group them as it suits the hardware. But a
# merge costs more than a step of a chain: very short chains are slow again (lesson 05).

# %% tags=["check"]
x = (np.random.default_rng(0).standard_normal((16, 8192)) + 1000).astype(np.float32)
table = {name: find_error(statistics.compute(name, x).var, x) for name in ("one_pass", "two_pass", "welford")}
blocks = find_error(statistics.welford_blocked(x, np.float32, 32).var, x)
for error, printed in zip((*table.values(), blocks), (1e-1, 1e-7, 4e-5, 4e-6), strict=True):
    assert printed / 2 < error < 2 * printed

# %% [markdown]
# ## Without rails
#
# An optional task, without points. One call of your merge takes arrays, so it merges many pairs side
# by side. How few calls make one group of 1,024? And of 1,000? The grader counts them.

# %%
exercise("04c")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("04")

# %% [markdown]
# **Where to read on**
#
# - Welford 1962, [Note on a Method for Calculating Corrected Sums of Squares and
#   Products](https://doi.org/10.1080/00401706.1962.10490022): two pages.
# - Chan, Golub and LeVeque 1983, [Algorithms for Computing the Sample
#   Variance](https://doi.org/10.1080/00031305.1983.10483115): the merge, its bound, and the tree.
#
# **Next:** lesson 05. All of this as kernels, with a thousand lanes that each run a Welford of
# their own.
