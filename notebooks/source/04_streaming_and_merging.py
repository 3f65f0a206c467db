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
# # 04 Streaming and merging
#
# Two-pass goes over a row twice, so it needs the whole row at hand. But a long row may be split
# between two programs, and each of them sees one half. Or the numbers come one at a time, and you
# cannot read them again. Which values do you have to keep, to compute the variance?
#
# *About 40 minutes, both exercises included. Needs: lesson 03. Everything here is NumPy.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("04")

# %% [markdown]
# ## What can two halves report?
#
# A row has eight numbers. One program has read four of them and reports: variance 0. Another has
# read the other four and reports: variance 0.

# %%
import numpy as np

from course_lib.lessons import predict

predict("04-halves")

# %% [markdown]
# So each part reports its mean. A row of four numbers has been split unevenly: `1 1 1` on the left with mean 1,
# and `5` on the right with mean 5.
#
# The mean of the two means is 3, and the mean of the four numbers is 2. The mean of the means is
# right only where both sides have as many numbers, and the last block of a row is often shorter
# than the others.

# %% [markdown]
# The mean of both lies between `mean_a` and `mean_b`. If b has half of all the numbers, it lies
# half of the way from `mean_a` to `mean_b`. If b has a quarter of them, it lies a quarter of the
# way. The function below always goes half of the way. Mend it.

# %%
from course_lib.lessons import step


# %% tags=["step"]
def mean_of_both(n_a, mean_a, n_b, mean_b):
    # BEGIN SOLUTION
    #: From mean_a towards mean_b, by the share of all numbers that b has.
    #| return mean_a + (mean_b - mean_a) / 2
    return mean_a + (mean_b - mean_a) * n_b / (n_a + n_b)
    # END SOLUTION


step("04-share")

# %% tags=["check"]
from course_lib.lessons.lesson04.merge_tree.model import DATA
from course_lib.lessons.prediction import find
from course_lib.norms import statistics

assert course_lib.MODE in {"cpu", "gpu"}  # this page needs neither
assert DATA["two levels"] == (1, 1, 1, 1, 5, 5, 5, 5) and np.var(DATA["two levels"]) == 4
assert np.var([1] * 4 + [99] * 4) == 2401 and np.var([1] * 8) == 0
assert find("04-halves").answer == "any number from 0 on"
assert 2 == np.mean([1, 1, 1, 5]) != (1 + 5) / 2
assert mean_of_both(3, 1.0, 1, 5.0) == 2 and mean_of_both(4, 1.0, 4, 5.0) == 3

# %% [markdown]
# ## What if b is one number?
#
# Then n_b is 1. Numbers come in one at a time. Let x be number k; before it there were k - 1. The
# mean moves 1/k of the way to x:
#
# $$\mathrm{mean}_k = \mathrm{mean}_{k-1} + \frac{x_k - \mathrm{mean}_{k-1}}{k}$$

# %% [markdown]
# Now write this as a loop. Two things go wrong easily. `count` can mean two things: how many
# numbers came before x, or how many there are with x. And when the first number comes, the 0.0 at
# which `mean` starts must have no influence.


# %% tags=["step"]
def list_running_means(x):
    mean, means = 0.0, []
    for count in range(len(x)):  # that many numbers are in mean already: 0, 1, 2 ...
        # BEGIN SOLUTION
        #: Move mean towards x[count]. How many numbers are in it afterwards?
        mean = mean + (x[count] - mean) / (count + 1)
        # END SOLUTION
        means.append(mean)
    return np.array(means)


step("04-stream")

# %% tags=["check"]
assert (5 * 9 + 15) / 10 == 6 == 5 + (15 - 5) / 10
assert np.allclose(list_running_means([2.0, 4.0, 9.0]), [2, 3, 5])

# %% [markdown]
# ### And the variance?
#
# Keep the sum of the squared deviations from the mean. Its usual name is M2. (It has nothing to do
# with M, the number of rows.) At the end the variance is M2 / N. By how much does M2 grow when x
# comes? Write $d = x_k - \mathrm{mean}_{k-1}$.
#
# - The mean moves by d/k, so each of the k - 1 earlier deviations e becomes e - d/k. Its square is
#   e² - 2e d/k + (d/k)². The sum of all e is 0, so the middle terms add up to 0. M2 grows by
#   (k - 1) (d/k)².
# - The distance of x from the new mean is d (k - 1)/k. M2 grows by its square, (d (k - 1)/k)².
#
# The sum of both is (k - 1) d²/k² + (k - 1)² d²/k² = d · d (k - 1)/k. The first factor is the
# distance of x from the old mean, the second one its distance from the *new* mean. This is
# **Welford's algorithm** (1962):
#
# $$M2_k = M2_{k-1} + (x_k - \mathrm{mean}_{k-1})\,(x_k - \mathrm{mean}_k)$$
#
# Do `2 4 9` by hand. After 2: mean 2, M2 0. After 4: mean 3, M2 = 0 + (4 - 2)(4 - 3) = 2.
#
# Then 9 comes, the mean becomes 5, and M2 = 2 + (9 - 3)(9 - 5) = 26. That is 3² + 1² + 4², the
# squared deviations from 5.

# %% tags=["check"]
state, history = statistics.empty((), np.float32), []
for value in (2, 4, 9):
    state = statistics.welford_update(state, np.float32(value))
    history.append((int(state.count), float(state.mean), float(state.M2)))
assert history == [(1, 2, 0), (2, 3, 2), (3, 5, 26)]
assert history[-1][2] == (2 - 5) ** 2 + (4 - 5) ** 2 + (9 - 5) ** 2

# %% [markdown]
# One-pass lost its digits when it subtracted one large square from another. Here there are no large
# squares. Only the running mean is large, and its roundings remain. Now an easy mistake: the new
# mean in both factors, `(x - new_mean) ** 2`.

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
# ### Many rows at once
#
# The exercise streams M rows side by side: mean and M2 are arrays of shape (M,), and the next
# numbers are a *column* of x. Practise the loop with something easier, the largest number of each
# row. Begin with minus infinity.


# %% tags=["step"]
def find_largest(x):
    M, N = x.shape
    # BEGIN SOLUTION
    #: at first -inf for each row; then np.maximum, column by column.
    known = np.full(M, -np.inf, np.float32)
    for column in range(N):
        known = np.maximum(known, x[:, column])
    # END SOLUTION
    return known


step("04-columns")

# %% tags=["check"]
assert (find_largest(noise.astype(np.float32)) == noise.astype(np.float32).max(axis=1)).all()

# %% [markdown]
# ## Your turn: Welford
#
# Watch two things: which mean each factor takes, and by which count you divide.

# %%
from course_lib import exercise

exercise("04a")

# %% [markdown]
# ## How do you merge two halves?
#
# Welford is a chain: each step waits for the one before. A GPU can do thousands of such steps at
# the same time, but in one chain only one. So let many short chains run side by side, and merge
# what they report: n, mean and M2.
#
# Go back to `1 1 1 1` and `5 5 5 5`. The common mean is 3.
#
# There are eight deviations of 2, so M2 of the eight numbers is 8 · 2² = 32, and all of it comes
# from the distance d = 4 between the two means.

# %% [markdown]
# In general n = n_a + n_b and d = mean_b - mean_a. The distance from mean_a to the common mean is d
# · n_b/n, and that from mean_b is d · n_a/n. So the squares grow by n_a (d n_b/n)² + n_b (d
# n_a/n)² = d² n_a n_b/n. Chan, Golub and LeVeque (1979):
#
# $$\begin{aligned}\mathrm{mean} &= \mathrm{mean}_a + d\,\frac{n_b}{n} \\ M2 &= M2_a + M2_b + d^2\,\frac{n_a n_b}{n}\end{aligned}$$
#
# With n_b = 1 this *is* Welford's update. The picture below merges a row of eight. Drag the border
# between the halves, and the numbers. The bar at the bottom shows what M2 is made of. Find
#
# 1. the border at which most of M2 lies inside the halves;
# 2. with *blocks of 1*: how many steps until the whole row is known;
# 3. with *mean 10000*: what the caption of the last step says of E[x²] - E[x]².

# %%
from course_lib.lessons import merge_tree

merge_tree(data="two levels", block=4)

# %% tags=["check"]
halves = statistics.partials(DATA["two levels"], np.float32, block=4)
assert list(halves.M2) == [0, 0] and statistics.merged(halves).M2 == 32 == 8 * 2**2
far = statistics.merged(statistics.partials(DATA["mean 10000"], np.float32, block=2))
assert abs(far.M2 / 8 / np.var(DATA["mean 10000"]) - 1) < 1e-6
assert statistics.one_pass(DATA["mean 10000"], np.float32, "pairwise").var == 0
four = statistics.Partial(np.array(4), np.float32(1), np.float32(0))
one = statistics.Partial(np.array(1), np.float32(9), np.float32(0))
merged, updated = statistics.merge(four, one), statistics.welford_update(four, np.float32(9))
assert all(np.isclose(p, q, rtol=1e-6) for p, q in zip(merged, updated, strict=True))

# %% [markdown]
# ### What if a side is empty?
#
# Five numbers in eight lanes leave three lanes with no number: n is 0 there, and so are mean and
# M2. If two such lanes are merged, n_b / n is 0/0, which is NaN, and no error is raised. It climbs
# to the top of the tree and spoils the row.
#
# Suppose that a row of N numbers lies in BLOCK lanes, N rounded up to a power of two. The first
# merges put lane i and lane i + BLOCK / 2 together, the next ones lane i and lane i + BLOCK / 4,
# and so on, without a guard.

# %%
predict("04-hidden")

# %% [markdown]
# Mend the share of b. For n = 0 any finite share is right: both means are 0 there, so d is 0, and 0
# times a finite number is 0.


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
# Welford in one chain rounds once for each number. If you cut the row into 256 chains of 32
# numbers, there are 255 merges on top, and each of them rounds, too.

# %%
predict("04-chains")

# %% tags=["answer"]
from course_lib.lessons.statistics_rows import find_error
from course_lib.norms import statistics

rows = (np.random.default_rng(0).standard_normal((16, 8192)) + 1000).astype(np.float32)
for length in (8192, 32):
    error = find_error(statistics.welford_blocked(rows, np.float32, length).var, rows)
    print(f"chains of {length:4}: relative error up to {error:.0e}")

# %% tags=["check"]
assert rows.shape[1] == 256 * 32 and 256 - 1 == 255
one_chain, short = (find_error(statistics.welford_blocked(rows, np.float32, length).var, rows) for length in (8192, 32))
assert 5 < one_chain / short < 20 and find("04-chains").answer == "that of the 256 chains"

# %% [markdown]
# ## Which one do you take?
#
# Chan's merge puts parts together, whichever way each was computed.
#
# | algorithm | reads of x | relative error, fp32, N = 8192, mean/std = 1000 | its price |
# |---|---|---|---|
# | one-pass | 1 | 1e-1 | it loses digits at large means |
# | two-pass | 2, or 1 if the row stays in the lanes | 1e-7 | it needs the row twice |
# | Welford, one chain | 1 | 4e-5 | a division per number, one after the other |
# | Welford in blocks of 32, merged | 1 | 4e-6 | a tree of merges |
#
# Shorter chains are more exact, and give a GPU more to do at the same time. But a merge costs more
# than a step of a chain, so very short chains are slow again (lesson 05).

# %% tags=["check"]
x = (np.random.default_rng(0).standard_normal((16, 8192)) + 1000).astype(np.float32)
table = {name: find_error(statistics.compute(name, x).var, x) for name in ("one_pass", "two_pass", "welford")}
blocks = find_error(statistics.welford_blocked(x, np.float32, 32).var, x)
for error, printed in zip((*table.values(), blocks), (1e-1, 1e-7, 4e-5, 4e-6), strict=True):
    assert printed / 2 < error < 2 * printed

# %% [markdown]
# ## Without rails
#
# An optional task. One call of your merge takes arrays, so it merges many pairs side by side. How
# few calls make one group of 1,024? And of 1,000? The grader counts them. A GPU's reduction makes
# the same steps. The task gives no points.

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
# - [Algorithms for calculating
#   variance](https://en.wikipedia.org/wiki/Algorithms_for_calculating_variance): the same with
#   code, and with higher moments.
#
# **Next:** lesson 05. All of this as kernels, with a thousand lanes that each run a Welford of
# their own.

# %% [markdown] tags=["dive"]
# ## Dive: does the grouping matter?
#
# On paper a merge may be grouped in any way. In fp32 the last digits depend on it.

# %% [markdown]
# Here are rows of 8192 numbers at mean/std = 1000, with chains of different lengths: from one chain
# of 8192 down to 8192 chains of one number, which is a tree of merges only.

# %%
from course_lib.lessons.statistics_rows import find_error
from course_lib.norms import statistics

rows = (np.random.default_rng(0).standard_normal((16, 8192)) + 1000).astype(np.float32)
for block in (8192, 512, 32, 4, 1):
    error = find_error(statistics.welford_blocked(rows, np.float32, block).var, rows)
    print(f"chains of {block:4}: relative error up to {error:.0e}")

# %% tags=["check"]
kappa, u = statistics.condition_number(rows).max(), 2.0**-24
off = {}
for block in (8192, 512, 32, 4, 1):
    off[block] = find_error(statistics.welford_blocked(rows, np.float32, block).var, rows)
    assert off[block] < statistics.bound("chan", 8192, kappa, u, block=block)
assert off[8192] == find_error(statistics.welford(rows).var, rows) > 5 * off[32] and off[1] < 1e-5

# %% [markdown]
# All of them are good, the short chains better. One-pass keeps one digit here. So you may group as
# it suits the hardware: a block per program, a column per lane, a tree over the lanes. The result
# changes in its last digits. A bound for Welford is N kappa u, and for the tree of merges log2(N)
# kappa u; the dive of lesson 03 shows how such bounds are made.
