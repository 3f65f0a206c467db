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
# # 01 A first LayerNorm
#
# Here is a kernel that normalises a row of numbers. Many people write it like this. In this lesson
# you look for a row that it gets wrong. Then you mend it, and build a LayerNorm from it.
#
# *About 45 minutes, exercises included. Needs: lesson 00.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("01")

# %%
import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    d = x - mean
    var = tl.sum(d * d, axis=0) / N
    y = d / tl.sqrt(var)
    tl.store(y_ptr + cols, y, mask=mask)


# %%
import numpy as np


def normalise(row):
    x = torch.tensor(row, dtype=torch.float32, device=course_lib.DEVICE)
    y = torch.empty_like(x)
    norm_kernel[(1,)](x, y, len(row), BLOCK=8)
    return np.round(y.tolist(), 2)


print(normalise([2, 4, 4, 4, 5, 5, 7, 9]))

# %% tags=["check"]
from course_lib.lessons.prediction import find
from course_lib.norms import reference

EIGHT, FIVE = [2, 4, 4, 4, 5, 5, 7, 9], [11, 12, 14, 15, 16]
assert np.mean(EIGHT) == 5 and np.var(EIGHT) == 4
assert normalise(EIGHT).tolist() == [-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2]
xhat = reference.layer_norm([EIGHT], eps=0).y[0]
assert np.allclose(normalise(EIGHT), xhat) and xhat.mean() == 0 and (xhat**2).mean() == 1

# %% [markdown]
# All eight are right; the numbers are small enough to check by hand. The kernel computes three
# things from the row:
#
# - `mean`: the sum of the numbers divided by N, the number of columns. Here it is 5.
# - `d`: how far each number lies from the mean, its **deviation**.
# - `var`: the mean of the squared deviations, the **variance**. Here it is 4. Its square root is
#   the **standard deviation**, 2.
#
# So each result says how many standard deviations its number lies above the mean. In formulas, with
# `xhat` for $\hat{x}$ in code:
#
# $$\mathrm{mean} = \frac{1}{N}\sum_j x_j \qquad \mathrm{var} = \frac{1}{N}\sum_j (x_j - \mathrm{mean})^2$$
#
# $$\hat{x}_j = \frac{x_j - \mathrm{mean}}{\sqrt{\mathrm{var}}}$$
#
# Unless all numbers of the row are equal, `xhat` has mean 0 and mean square 1. Step through the
# kernel below. Then drag numbers of the row.

# %%
from course_lib.lessons.lesson01 import figures

figures.step_norm_kernel([2, 4, 4, 4, 5, 5, 7, 9])

# %% [markdown]
# ## Which changes of the row change the results?
#
# Add 100 to each number, and the mean grows by 100, too: no deviation changes. Multiply each number
# by 10, and the deviations and the standard deviation both become ten times as large. So neither
# change moves a result.

# %%
print(normalise([102, 104, 104, 104, 105, 105, 107, 109]))
print(normalise([20, 40, 40, 40, 50, 50, 70, 90]))

# %% tags=["check"]
assert normalise([v + 100 for v in EIGHT]).tolist() == normalise(EIGHT).tolist()
assert normalise([v * 10 for v in EIGHT]).tolist() == normalise(EIGHT).tolist()

# %% [markdown]
# Now make one number of the eight much larger than the others.

# %%
from course_lib.lessons import predict, step

predict("01-outlier")

# %% tags=["answer"]
for last in (9, 90, 900, 9000):
    print(f"{last:4}:", normalise([2, 4, 4, 4, 5, 5, 7, last]))

# %% tags=["check"]
seen = [normalise([2, 4, 4, 4, 5, 5, 7, last]) for last in (9, 90, 900, 9000)]
assert [y[-1] for y in seen] == [2.0, 2.64, 2.65, 2.65] and set(seen[-1][:-1]) == {-0.38}
assert round(7**0.5, 2) == 2.65 and find("01-outlier").answer == "up to 2.65"

# %% [markdown]
# ## And a row of five?
#
# Five numbers go into the same block of eight. In three lanes `mask` is false, and `other=0.0` says
# what they hold. They are the **lanes past the end** of the row.

# %%
predict("01-five")

# %% tags=["answer"]
from course_lib.norms import reference

print("kernel:", normalise([11, 12, 14, 15, 16]))
print("right: ", reference.layer_norm([[11, 12, 14, 15, 16]], eps=0).y[0].round(2))

# %% tags=["answer"]
figures.step_norm_kernel([11, 12, 14, 15, 16])

# %% tags=["check"]
wrong, right = normalise(FIVE), reference.layer_norm([FIVE], eps=0)
assert wrong.tolist() == [-0.24, -0.15, 0.04, 0.13, 0.22]
assert right.y[0].round(2).tolist() == [-1.4, -0.86, 0.22, 0.75, 1.29]
assert right.mean[0] == 13.6 and np.isclose(np.var(FIVE), 3.44)
assert np.isclose((5 * 3.44 + 3 * 13.6**2) / 5, 114.416) and round(13.6**2) == 185 and round(114.416) == 114
assert np.allclose(wrong, right.y[0] * (3.44 / 114.416) ** 0.5, atol=0.005)
assert find("01-five").answer == "the mean is right, and no result is"

# %% [markdown]
# ### Mend it
#
# `tl.where(condition, a, b)` is NumPy's `where`: it takes `a` in the lanes where the condition is
# true, and `b` in the others.


# %% tags=["step"]
@triton.jit
def mended_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    # BEGIN SOLUTION
    #: Make the lanes past the end add nothing to the variance. This line changes.
    #| d = x - mean
    d = tl.where(mask, x - mean, 0.0)
    # END SOLUTION
    var = tl.sum(d * d, axis=0) / N
    tl.store(y_ptr + cols, d / tl.sqrt(var), mask=mask)


step("01-mend")

# %% [markdown]
# ### Why did their tests not find it?
#
# This bug was in libraries that many people use:
# [Liger-Kernel](https://github.com/linkedin/Liger-Kernel/issues/518) (January 2025) and
# [unsloth](https://github.com/unslothai/unsloth/pull/1867) (March 2025). According to the report,
# unsloth's tests had only rows whose length is a power of two. Then no lane is past the end.
# Whether a test finds the bug also depends on the mean of the row.
#
# Take a row of 1000 numbers with mean 10 and variance 1, in a block of 1024. The 24 lanes past the
# end add 10 squared each: the kernel finds a variance of 3.4. With a mean of exactly 0 they add
# nothing. Numbers from `torch.randn` have a mean near 0, so they hide most of this bug. A test of a
# norm needs a length that is no power of two *and* a mean far from zero.

# %% tags=["check"]
noise = np.random.default_rng(0).standard_normal(1000)
noise = (noise - noise.mean()) / noise.std()


def find_variance(row: np.ndarray) -> float:
    """The variance that the broken kernel divides by, from its results."""
    x = torch.tensor(row, dtype=torch.float32, device=course_lib.DEVICE)
    y = torch.empty_like(x)
    norm_kernel[(1,)](x, y, 1000, BLOCK=1024)
    return float((row.std() / reference.float64(y).std()) ** 2)


assert abs(find_variance(noise + 10) - 3.4) < 1e-3 and abs(find_variance(noise) - 1) < 1e-4

# %% [markdown]
# ## A row of equal numbers
#
# A row may hold the same number in all its columns, for example where a part of a network is
# switched off. Take 0.1, seven times, and a kernel whose lanes past the end add nothing.

# %%
predict("01-tenths")


# %% tags=["answer"] varies={"gpu": "a GPU's division rounds in another way"}
@triton.jit
def right_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / N
    tl.store(y_ptr + cols, d / tl.sqrt(var), mask=mask)


x = torch.full((7,), 0.1, device=course_lib.DEVICE)
y = torch.empty_like(x)
right_kernel[(1,)](x, y, 7, BLOCK=8)
print(y.tolist())

# %% [markdown]
# Not all equal rows end like that. With 3, eight times, the deviations are exactly 0, and the
# kernel computes 0 / 0, which is NaN, not a number. A NaN spreads to everything that it is added to
# or multiplied with, so one such row can ruin the training of a network.

# %%
print(normalise([3, 3, 3, 3, 3, 3, 3, 3]))

# %% tags=["check"]
assert torch.nn.LayerNorm(8).eps == 1e-5
assert np.isnan(normalise([3] * 8)).all() and find("01-tenths").answer == "-1, seven times"


@triton.jit
def keeping_out_kernel(x_ptr, y_ptr, eps, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    d = tl.where(cols < N, x - tl.sum(x, axis=0) / N, 0.0)
    tl.store(y_ptr + cols, d / tl.sqrt(tl.sum(d * d, axis=0) / N + eps), mask=cols < N)


tenths = torch.full((7,), 0.1, device=course_lib.DEVICE)
without_eps, with_eps = torch.empty_like(tenths), torch.empty_like(tenths)
keeping_out_kernel[(1,)](tenths, without_eps, 0.0, 7, BLOCK=8)
keeping_out_kernel[(1,)](tenths, with_eps, 1e-5, 7, BLOCK=8)
assert course_lib.MODE == "gpu" or without_eps.tolist() == [-1.0] * 7
assert 0 <= with_eps.abs().max() < 1e-5
tenth = np.float32(0.1)
assert ((4 * tenth + 3 * tenth) / np.float32(7) - tenth) == np.spacing(tenth)  # the mean is one step too large

# %% [markdown]
# So LayerNorm adds a small number **eps**, usually 1e-5, to the variance, inside the root. Then both
# rows come out as 0, or very near to 0. A kernel computes 1 / sqrt(var + eps) once per row. This
# number is called `rstd` (reciprocal standard deviation). The kernel multiplies by it, because a GPU
# multiplies faster than it divides:
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\mathrm{var} + \mathrm{eps}}} \qquad \hat{x}_j = (x_j - \mathrm{mean}) \cdot \mathrm{rstd}$$
#
# In a kernel `tl.rsqrt(v)` is 1 over the root of `v`. Try it on eight variances at once, one in
# each lane.


# %% tags=["step"]
@triton.jit
def rstd_kernel(var_ptr, rstd_ptr, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    var = tl.load(var_ptr + lanes)
    # BEGIN SOLUTION
    #: rstd of each variance. eps goes where the formula has it.
    rstd = tl.rsqrt(var + eps)
    # END SOLUTION
    tl.store(rstd_ptr + lanes, rstd)


step("01-eps")

# %% [markdown]
# ## What do w and b do?
#
# After the norm every row has a mean square of about 1. The next layer may need larger numbers in
# column 5 than in the others. So LayerNorm ends with a **weight** `w` and a **bias** `b`. Both are
# learned in training. They have one number for each *column*, and all rows share them:
#
# $$y_j = \hat{x}_j \, w_j + b_j$$


# %% tags=["step"]
@triton.jit
def scale_shift_kernel(xhat_ptr, y_ptr, w_ptr, b_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    xhat = tl.load(xhat_ptr + cols, mask=mask, other=0.0)
    # BEGIN SOLUTION
    #: Load w and b as xhat was loaded. Store y.
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + cols, xhat * w + b, mask=mask)
    # END SOLUTION


step("01-columns")

# %% [markdown]
# ## Why one kernel?
#
# Now you know all that a LayerNorm does. PyTorch can do it in seven operations: the mean of each
# row, subtract it, square, the mean again, divide by the standard deviation, multiply by `w`, add
# `b`. Each reads its input from the GPU's memory and writes its result there. One kernel does all
# seven between one read and one write of a matrix.
#
# Five of the operations read a matrix and write a matrix. The two means read a matrix and write one
# number per row. That is 12 matrices moved. The one kernel moves 2, a sixth of that.

# %%
figures.show_traffic()

# %% tags=["check"]
import torch
from course_lib.lessons.prediction import find
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):
    """Counts the elements that PyTorch's operations read and write, those of a tensor once per operation."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = {id(leaf): leaf for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor)}
        self.elements += sum(tensor.numel() for tensor in tensors.values())
        return result


x, w, b = torch.randn(256, 512), torch.rand(512), torch.rand(512)
with Traffic() as traffic:
    deviation = x - x.mean(-1, keepdim=True)
    y = deviation / torch.sqrt((deviation * deviation).mean(-1, keepdim=True) + 1e-5) * w + b
assert torch.allclose(y, torch.nn.functional.layer_norm(x, (512,), w, b), atol=1e-5)
moved = traffic.elements / x.numel()
assert abs(moved - 12) < 0.1 and round(moved / 2, 1) == 6 == figures.count_traffic("operations") / 2
assert figures.count_traffic("one kernel") == 2

# %% [markdown]
# ## Why normalise at all?
#
# A network is a long chain of layers. If each layer makes its numbers a tenth larger, they are
# almost 14,000 times as large after a hundred layers. If each makes them a tenth smaller, almost
# nothing is left. A norm after each layer sets the size back to 1.

# %%
figures.through_layers()

# %% tags=["check"]
sizes = figures.measure_sizes()
assert 13_500 < 1.1**100 < 14_000
assert np.isclose(sizes["each layer 1.1 times"][-1], 1.1**100) and sizes["each layer 0.9 times"][-1] < 1e-4
assert np.allclose(sizes["1.1 times, then x / rms(x)"][1:], 1)

# %% [markdown]
# ## Which elements share a mean?
#
# A language model cuts its texts into tokens, which are words or parts of words. `x` has the shape
# (B, T, C): B texts, called sequences, of T tokens each, and for each token C numbers, its
# channels. LayerNorm takes each token by itself, over its channels.

# %%
figures.shared_means(B=2, T=3, C=4)

# %% tags=["check"]
some = np.random.default_rng(1).standard_normal((2, 3, 4))
louder = some.copy()
louder[1, 2, 0] += 100
touched = {}
for name, axis in figures.NORMS.items():
    before, after = ((v - v.mean(axis=axis, keepdims=True)) / v.std(axis=axis, keepdims=True) for v in (some, louder))
    touched[name] = int((~np.isclose(before, after)).sum())
    assert figures.count_means(name, 2, 3, 4) == some.mean(axis=axis).size
assert touched == {"LayerNorm": 4, "BatchNorm": 6, "InstanceNorm": 3}
as_torch = torch.from_numpy(some)
ours = (some - some.mean(axis=-1, keepdims=True)) / some.std(axis=-1, keepdims=True)
assert np.allclose(ours, torch.nn.functional.layer_norm(as_torch, (4,), eps=0))

# %% [markdown]
# **BatchNorm** takes one mean per channel, over all tokens of the batch. So in training the result
# of a token depends on the other tokens. **InstanceNorm** takes one per channel and sequence.
# **RMSNorm**, lesson 02, takes each token by itself, as LayerNorm does.
#
# With LayerNorm the shape in front of the channels does not matter: flatten it. **M rows, one for
# each token, and N columns, the channels.** Nearly all matrices of this course are M x N.
#
# A model that sends `x` of shape (8, 128, 768) has M = 8 · 128 = 1024 rows, and LayerNorm takes
# 1024 means. M is the product of all dimensions but the last, and not `x.shape[0]`. For a matrix
# the two are the same, so a test with matrices does not see the difference.

# %% tags=["check"]
sent = torch.zeros(8, 128, 768)
assert sent.reshape(-1, 768).shape[0] == sent.mean(dim=-1).numel() == 1024 and sent.shape[0] == 8

# %% [markdown]
# ## The same in PyTorch operations
#
# Before you write a fast norm, write a plain one to compare it with. It works on all rows at once.
# An example: divide each of three rows by its largest number.

# %%
x = torch.tensor([[1.0, 2, 4], [1, 5, 10], [1, 50, 100]])
largest = x.amax(dim=-1)  # over the last dimension: 4, 10, 100
scaled = x / largest

# %%
predict("01-largest")

# %% tags=["answer"]
print(scaled)
print(largest.shape, x.amax(dim=-1, keepdim=True).shape)

# %% tags=["check"]
right = x / x.amax(dim=-1, keepdim=True)
assert (scaled == right).sum() == find("01-largest").answer and scaled.max() == 5
assert torch.equal(scaled.diagonal(), right.diagonal())
assert (x / x.amax(dim=-1, keepdim=True)).amax(dim=-1).tolist() == [1, 1, 1]
assert largest.shape == (3,) and x.amax(dim=-1, keepdim=True).shape == (3, 1)

# %% [markdown]
# You need four more facts for LayerNorm.
#
# - LayerNorm divides by N. `torch.var` divides by N - 1 unless you write `correction=0`: for 11 12
#   14 15 16 it gives 4.3, not 3.44.
# - `x` may be fp32, with 32 bits per number, or fp16 or bf16, with 16. fp16 ends at 65504, so there
#   the square of 300 is infinite. Convert with `x.float()` before you add or square.
# - Round once, at the end, with `.to(x.dtype)`.
# - A NaN or an infinity in a row may spoil that row, but no other.
#
# Now write it in PyTorch operations: exercise 01a.

# %% tags=["check"]
row = torch.tensor([11.0, 12, 14, 15, 16])
assert round(row.var().item(), 2) == 4.3 and round(row.var(correction=0).item(), 2) == 3.44
assert torch.isinf(torch.tensor(300.0).half() ** 2) and torch.finfo(torch.float16).max == 65504

# %%
from course_lib import exercise

exercise("01a")

# %% [markdown]
# ## One program per row
#
# Back to the kernel. It does one row, and it has the whole row in its lanes. For M rows launch M
# programs. Program `row` needs the address of its row. If the rows lie without gaps, row `r` begins
# `r * N` elements after row 0. Often they do not: the rows of a slice lie as far apart as the rows
# of the matrix that it was cut from. PyTorch calls this distance the **stride**.

# %%
wide = torch.arange(24.0).reshape(3, 8)
x = wide[:, :5]  # three rows of five columns, the same memory

# %% [markdown]
# `x` is no copy: its rows are still 8 elements apart, though N is 5. A kernel that steps by N looks
# for row 2 at element 10.

# %%
print(x.stride(0), "elements between rows; row 2 begins with", x[2, 0].item())

# %% tags=["check"]
assert x.stride(0) == 8 and x[2, 0] == 16 == wide.flatten()[2 * 8]

# %% [markdown]
# So a kernel is told the distance: `x_ptr + row * stride_x + cols`. `y` may have another one,
# `stride_y`. Write a kernel that subtracts from each row its mean, and no more.


# %% tags=["step"]
@triton.jit
def centre_kernel(x_ptr, y_ptr, stride_x, stride_y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    # BEGIN SOLUTION
    #: Load x, the row of this program.
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    # END SOLUTION
    mean = tl.sum(x, axis=0) / N
    # BEGIN SOLUTION
    #: Store x - mean in the same row of y.
    tl.store(y_ptr + row * stride_y + cols, x - mean, mask=mask)
    # END SOLUTION


step("01-rows")

# %% [markdown]
# ## Your LayerNorm
#
# You have all the parts: a mean that lanes past the end do not change, a variance that you mended,
# `rstd`, `w` and `b`, and the address of a row. Put them together. One program takes one row. The
# kernel works in fp32.

# %%
exercise("01b")

# %% [markdown] tags=["dive"]
# ## Dive: what can w and b give back?
#
# A dive goes deeper. No later lesson needs it.
#
# Training can choose `w` and `b` freely. Can it undo the norm? Take three rows, and choose `w` and
# `b` so that row 0 comes out as it went in: `w` is the standard deviation of row 0, and `b` its
# mean.

# %%
row = np.array([2.0, 4, 4, 4, 5, 5, 7, 9])
rows = np.stack([row, row[::-1], 10 * row])
y = reference.layer_norm(rows, w=np.full(8, 2.0), b=np.full(8, 5.0)).y
print(y.round(2))

# %% tags=["check"]
assert np.allclose(y[:2], rows[:2], atol=1e-4)
assert np.allclose(y[2], rows[0], atol=1e-4) and not np.allclose(y[2], rows[2])

# %% [markdown]
# Row 0 is back, and so is row 1, which has the same mean and standard deviation. Row 2 was ten times
# as large, and it comes out as row 0. `w` and `b` give each column a size, the same in all rows. So
# they cannot bring back by how much one row was larger than another.

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("01")

# %% [markdown]
# **Where to read on**
#
# - Ba, Kiros and Hinton 2016, [Layer Normalization](https://arxiv.org/abs/1607.06450). Section 5
#   sorts norms by what leaves them unchanged.
# - PyTorch's [LayerNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html):
#   look for "biased", and for the picture.
# - Triton's [layer norm
#   tutorial](https://triton-lang.org/main/getting-started/tutorials/05-layer-norm.html): the kernel
#   of lesson 07.
#
# **Next:** lesson 02, RMSNorm: a norm that leaves the mean in, and a check that needs no second
# norm.
