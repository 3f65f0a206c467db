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
# # 06 LayerNorm forward
#
# A copy kernel moves each element and never looks at its neighbour. LayerNorm cannot do that: no element of `y` is known before every
# element of its row has been read. This lesson is about what that costs, and about four ways to get it wrong that a quick test does not
# notice.
#
# **You will be able to**
#
# - write a LayerNorm forward kernel for rows longer than a block, and one for rows that stay in registers;
# - say what the padded lanes hold at every line of such a kernel, and what they do to a variance;
# - say which bugs a test on a packed fp32 matrix with mean 0 lets through;
# - count the bytes a kernel asks for, and compare the count with measured time;
# - ask the compiler for registers, spills and load widths, without a GPU.
#
# **You need** lesson 00 with exercise 00a (program ids, lanes, masks), the formula of lesson 01, and the passes over memory of lesson 04.
#
# **Time** about 105 minutes: 40 to read and run, 35 for exercise 06a, 30 for 06b.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import access_map, block_stepper, kernel_explorer, picture
from course_lib.norms import reference

# %% [markdown]
# ## One row by hand
#
# The formula once more, since every line of the kernels below is one of its terms:
#
# $$\mathrm{mean} = \frac{1}{N}\sum_j x_j \qquad \mathrm{var} = \frac{1}{N}\sum_j (x_j - \mathrm{mean})^2$$
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\mathrm{var} + \mathrm{eps}}} \qquad \hat{x}_j = (x_j - \mathrm{mean})\,\mathrm{rstd}
# \qquad y_j = \hat{x}_j\, w_j + b_j$$
#
# Row 0 of the worked example is `2 -1 3 .5 -.5 1.5 -2 1`. Its eight numbers add up to 4.5. What is the
# mean, and what does the 3 become before `w` and `b`? *(Predict, then run.)*

# %%
x = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)
eps = 1e-5

row = x[0]
mean = row.sum() / row.size
deviation = row - mean
var = (deviation**2).sum() / row.size
rstd = 1 / np.sqrt(var + eps)
xhat = deviation * rstd
print(f"mean {mean}, var {var:.4f}, rstd {rstd:.4f}\nxhat {xhat.round(2)}")

assert row.sum() == 4.5 and mean == 0.5625 and var == row.var()
assert round(xhat[2], 2) == 1.57
assert abs(xhat.mean()) < 1e-15 and abs(xhat.std() - 1) < 1e-5

# %% [markdown]
# The mean is 0.5625, and the 3 becomes 1.57. You did this in lesson 01, and know which two details decide whether a kernel matches
# PyTorch: the variance divides by N, and `eps` stands inside the root.
#
# Here is the whole example with a weight and a bias. `reference.layer_norm` is the course's specification in float64, and what your
# kernels are graded against.

# %%
w, b = np.linspace(0.5, 1.5, 8), np.linspace(-1, 1, 8)
expected = reference.layer_norm(x, w, b, eps)
x_t, w_t, b_t = map(torch.from_numpy, (x, w, b))
by_torch = torch.nn.functional.layer_norm(x_t, (8,), w_t, b_t, eps)

print(f"y =\n{expected.y.round(2)}\nmean = {expected.mean}\nrstd = {expected.rstd.round(4)}")
assert np.allclose(expected.y[0], xhat * w + b, rtol=0, atol=1e-12)
assert np.allclose(expected.y, by_torch.numpy(), rtol=0, atol=1e-12)

# %% [markdown]
# ## One program, one row
#
# Rows do not need one another, so give each its own program: `row = tl.program_id(0)`, and a grid of M programs.
#
# ### How do four lanes add up eight numbers?
#
# A program works on BLOCK lanes at once, and BLOCK is fixed when the kernel is compiled. A row can be longer. So the program walks over
# the row, BLOCK columns a step. You could add up the lanes at every step. There is a cheaper order: let each lane keep its own running
# sum, and add up the lanes once, at the end.
#
# Row 0, BLOCK = 4. What do the four lanes hold after two steps? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
total = np.zeros(4)
for start in range(0, 8, 4):
    total += row[start : start + 4]  # four lanes, four additions, none between lanes
    print(f"after columns {start} to {start + 3}: lanes {total}")

print(f"the lanes together: {total.sum()}")
assert total.tolist() == [1.5, 0.5, 1.0, 1.5] and total.sum() == 4.5

# %% [markdown]
# Lane 0 has added columns 0 and 4, lane 1 columns 1 and 5. The sum over lanes, `tl.sum(total, axis=0)` in Triton, is the one step in
# which lanes exchange numbers, and it comes once a sweep. Lanes live in different threads of the GPU. An addition inside a lane is one
# instruction; an addition across lanes is a conversation. (Lesson 04 counts its words.)
#
# ### Why three sweeps?
#
# `y` needs `rstd`, `rstd` needs the variance, and the variance needs the mean. If the row is longer than BLOCK, its first columns are
# gone from the lanes by the time the mean is known. So the program reads the row again for the variance, and a third time to write `y`.
#
# There seems to be a short cut. The variance is also mean(x²) - mean(x)², and both sums fit into the first sweep. On paper it is the same
# number. Take a row with standard deviation 1 and mean 10000, in fp32. How many digits of the variance survive? *(Predict, then run.)*

# %%
far = (1e4 + np.random.default_rng(0).standard_normal(8192)).astype(np.float32)
true = far.astype(np.float64).var()
short_cut = np.mean(far * far) - np.mean(far) ** 2  # fp32 throughout
two_pass = np.mean((far - np.mean(far)) ** 2)

print(f"true {true:.6f}   short cut {short_cut:.6f}   mean first {two_pass:.6f}")
assert far.dtype == short_cut.dtype == two_pass.dtype == np.float32
assert abs(short_cut - true) / true > 0.5
assert abs(two_pass - true) / true < 1e-5

# %% [markdown]
# None. Both terms are near 10⁸, where neighbouring fp32 numbers are 8 apart, and the difference you want is 1. Subtract the mean *before*
# you square. Lesson 03 makes this precise. Here it is the reason for the second sweep.

# %%
assert np.spacing(np.float32(1e8)) == 8

# %% [markdown]
# ### A first kernel
#
# Three sweeps, one program a row. It assumes much: fp32, rows that follow one another in memory, N a multiple of BLOCK, no `w` and `b`.
# Find the two places where lanes meet.


# %%
@triton.jit
def full_blocks_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + cols)
    mean = tl.sum(total, axis=0) / N

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        deviation = tl.load(x_ptr + row * N + cols) - mean
        squares += deviation * deviation
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols)
        tl.store(y_ptr + row * N + cols, (x - mean) * rstd)


# %%
x_dev = torch.tensor(x, dtype=torch.float32, device=DEVICE)
for BLOCK in (2, 4, 8):
    y = torch.full_like(x_dev, float("nan"))
    full_blocks_kernel[(3,)](x_dev, y, 8, eps, BLOCK=BLOCK)
    error = np.abs(reference.float64(y) - reference.layer_norm(x).y).max()
    print(f"BLOCK {BLOCK}: {8 // BLOCK} steps a sweep, largest error {error:.1e}")
    assert error < 1e-6

# %% [markdown]
# Lanes meet in the two `tl.sum`, and nowhere else. And the result does not depend on BLOCK, apart from rounding. Remember this sentence;
# it is about to fail.
#
# ## Where does the padding go?
#
# N is rarely a multiple of BLOCK. With N = 5 and BLOCK = 8, lanes 5, 6 and 7 have no column. Lesson 00 has the remedy for loads: a mask,
# and `other=0.0` for what the lanes without a column hold. Three zeros add nothing to the sum, so the mean is right.
#
# Now subtract the mean. The row is `8 11 12 9 10`, its mean is 10. What do lanes 5, 6 and 7 hold? *(Predict, then run.)*


# %%
@triton.jit
def lanes_kernel(x_ptr, lanes_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    tl.store(lanes_ptr + cols, x)
    tl.store(lanes_ptr + BLOCK + cols, x - mean)
    tl.store(lanes_ptr + 2 * BLOCK + cols, tl.where(mask, x - mean, 0.0))


five = torch.tensor([8.0, 11, 12, 9, 10], device=DEVICE)
lanes = torch.empty(3, 8, device=DEVICE)
lanes_kernel[(1,)](five, lanes, 5, BLOCK=8)
loaded, unmasked, cleared = lanes.cpu().numpy()
for name, values in (("x", loaded), ("x - mean", unmasked), ("where(mask, x - mean, 0)", cleared)):
    print(f"{name:>25}: {values}")
assert (loaded[5:] == 0).all() and (unmasked[5:] == -10).all() and (cleared[5:] == 0).all()
assert (cleared**2).sum() / 5 == five.cpu().numpy().var() == 2
assert (unmasked**2).sum() / 5 == 2 + 3 * 10**2 / 5

# %% [markdown]
# They hold `-mean`, here -10. Squared and summed, three lanes add 300 to a sum that should be 10. Divided by N, the variance is 62
# instead of 2.
#
# The third line of the output is the way out. `tl.where(mask, a, c)` takes `a` where the mask is true and `c` elsewhere, as `np.where`
# does. A mask on a load is not enough: it says what a lane holds *then*, and every operation after it works on all lanes.
#
# ### How bad is it?
#
# Each padded lane adds mean² to the sum, so the variance should grow by
#
# $$\frac{\mathrm{pad} \cdot \mathrm{mean}^2}{N}$$
#
# where pad counts the padded lanes of all blocks. Take N = 1000 and BLOCK = 64: 16 blocks, 1024 lanes, 24 of them padded. Eleven rows,
# all with variance 1, with means 0, 1, ... 10. Which row is the first whose variance is wrong by more than a percent, and what is the
# last one's? *(Predict, then run.)*


# %%
@triton.jit
def unmasked_variance_kernel(x_ptr, var_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        deviation = x - mean  # wrong: a padded lane holds -mean
        squares += deviation * deviation
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N)


def unmasked_variance(x: np.ndarray, BLOCK: int) -> np.ndarray:
    M, N = x.shape
    var = torch.empty(M, device=DEVICE)
    unmasked_variance_kernel[(M,)](torch.tensor(x, dtype=torch.float32, device=DEVICE), var, N, BLOCK=BLOCK)
    return reference.float64(var)


# %%
N, pad, means = 1000, 24, np.arange(11)
shape = np.random.default_rng(1).standard_normal(N)
shape = (shape - shape.mean()) / shape.std()
x_means = shape + means[:, None]  # row r has mean r and variance 1

wrong = unmasked_variance(x_means, BLOCK=64)
law = 1 + pad * means**2 / N
for r in (0, 1, 3, 10):
    print(f"mean {r:2}: variance {wrong[r]:.3f}, predicted {law[r]:.3f}")
assert pad == -N % 64
assert np.allclose(wrong, law, rtol=1e-4, atol=0)
assert abs(wrong[0] - 1) < 1e-4 and wrong[1] > 1.01 and wrong[10] > 3.39
assert round(float(np.sqrt(wrong[10])), 2) == 1.84

# %% [markdown]
# At mean 0 nothing happens. At mean 1 the variance is 2.4 % off. At mean 10 it is 3.4, and every element of `y` is too small by
# `sqrt(3.4)` = 1.84.
#
# The same data, the same kernel, another BLOCK: 1000 = 125 × 8. What do you expect for BLOCK = 8? *(Predict, then run.)*

# %%
right = unmasked_variance(x_means, BLOCK=8)
print("BLOCK 64:", wrong.round(2), "\nBLOCK  8:", right.round(2))
assert -N % 8 == 0 and np.allclose(right, 1, rtol=1e-4)

# %%
from course_lib.lessons.figures import lesson06

picture(
    lesson06.padded_variance(means, wrong, right, N, pad),
    alt="Variance computed for rows of true variance 1, against their mean. With 24 padded lanes the "
    "points lie on 1 + 0.024 mean^2 and reach 3.4 at mean 10. With no padded lane they stay at 1.",
)

# %% [markdown]
# A launch setting decides whether the answer is right. That is why this bug is hard to find by its symptom: somebody changes BLOCK to
# make a kernel faster, and a model gets worse.
#
# ### Which tests miss it?
#
# It shipped in Liger-Kernel (#518), in unsloth (PR 1867) and in apex's openfold kernel. All three had tests. Below are three tests of the
# kernel you have just broken, on random data. Which pass? *(Predict, then run.)*


# %%
def passes(N: int, mean: float) -> bool:
    x = mean + np.random.default_rng(2).standard_normal((4, N))
    return np.allclose(unmasked_variance(x, BLOCK=64), x.var(axis=1), rtol=1e-2)


outcome = {(N, mean): passes(N, mean) for N, mean in ((1024, 10.0), (1000, 0.0), (1000, 10.0))}
for (N, mean), ok in outcome.items():
    print(f"N = {N}, mean {mean:4}: {'pass' if ok else 'FAIL, as it should'}")
assert outcome == {(1024, 10.0): True, (1000, 0.0): True, (1000, 10.0): False}

# %% [markdown]
# A power of two has no padding. A mean of 0 makes the padding harmless. Only the third test, with both taken away, sees the bug.
# `torch.randn` on a 1024-wide matrix takes away neither.
#
# ### Watch it happen
#
# Two rows with the same deviations: the first has mean 10, the second mean 0. N = 5, BLOCK = 4, so the second block has three padded
# lanes. The box *mask the deviation* is off. Step through the second sweep of row 0, then of row 1. Then tick the box. Which numbers
# change, and which do not?

# %%
pair = np.array([[8.0, 11, 12, 9, 10], [-2, 1, 2, -1, 0]])
stepper = block_stepper(kind="layer_norm", x=pair, block=4)
stepper.controls["mask_deviation"].value = False
stepper

# %% [markdown]
# Only row 0 changes. Its variance goes from 62 to 2. Row 1 was right all along, with the same mistake in its kernel. The cell below reads
# the same numbers from the widget's own model.

# %%
from course_lib.lessons.block_stepper.model import steps

spread = {}
for masked in (False, True):
    last = steps(pair, 4, "layer_norm", mask_deviation=masked)[-1]
    spread[masked] = [state.spread for state in last.rows]
    print(f"mask the deviation {masked!s:5}: variance of rows 0 and 1 {spread[masked]}")
assert spread == {False: [62, 2], True: [2, 2]}

# %% [markdown]
# So ask at every line: *what do the padded lanes hold now, and does anything add them up or write them out?* For LayerNorm:
#
# | line | padded lanes hold | harmful? |
# |---|---|---|
# | after the load | 0 | no: 0 adds nothing to a sum |
# | `tl.sum(total) / N` | - | no, as long as you divide by N and not by the number of lanes |
# | after `x - mean` | `-mean` | yes: it is squared and summed |
# | after `(x - mean) * rstd` | `-mean * rstd` | only if it is stored: the store needs its mask |

# %% [markdown]
# ## Two things the shape does not show
#
# A test that looks at `x.shape` sees M and N. It does not see how the rows lie in memory, nor how many bits a number has.
#
# ### Strides: is row 1 really at N?
#
# `row * N` is the start of a row only if rows follow one another. Cut a slice out of a wider matrix and they do not: `wide[:, :8]` of a
# 12-column matrix has rows 12 elements apart. `x.stride(0)` says so, and the kernel takes it as an argument. And `y` is another tensor. A
# fresh one is packed: its rows are 8 apart.
#
# The kernel below moves rows from `x` to `y` with *one* stride for both, x's. `x[r, c]` holds `10 r + c`, so each number says where it
# came from. `y` is the front of a larger buffer, so that nothing else is hurt. Which elements of `y` come out right? *(Predict, then
# run.)*


# %%
@triton.jit
def one_stride_kernel(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask)
    tl.store(y_ptr + row * stride + cols, x, mask=mask)


wide = 10.0 * torch.arange(4, device=DEVICE)[:, None] + torch.arange(12, device=DEVICE)
x_slice = wide[:, :8]
buffer = torch.full((4 * 12,), float("nan"), device=DEVICE)
y = buffer[: 4 * 8].view(4, 8)
print("strides of x and y between rows:", x_slice.stride(0), y.stride(0))
one_stride_kernel[(4,)](x_slice, y, x_slice.stride(0), 8, BLOCK=8)
print(y.cpu().numpy())
print("behind y:", buffer[32:].cpu().numpy())

# %%
same = y == x_slice
assert (x_slice.stride(0), y.stride(0)) == (12, 8)
assert same[0].all() and not same[1:].any()
assert y.isnan().sum() == 8
assert buffer[36:44].tolist() == x_slice[3].tolist()  # row 3 of x, past the end of y

packed, out = x_slice.contiguous(), torch.empty(4, 8, device=DEVICE)
one_stride_kernel[(4,)](packed, out, packed.stride(0), 8, BLOCK=8)
assert torch.equal(out, packed)  # and this is all that most tests try

# %% [markdown]
# Row 0 is right, because 0 times any stride is 0. In rows 1 to 3 not one element is right: some were never written, the others belong
# elsewhere. The last row landed behind `y`, in memory that belongs to somebody else. And with a packed `x` you would have seen none of
# it.
#
# > **ERRATUM** (Triton tutorial "Layer Normalization", English and Chinese edition). One `stride`, that of `x`, is used for `x`, `y`,
# > `dy` and `dx`. The cell above is what happens to a sliced `x`. In the backward pass `y.sum().backward()` is enough: its `dy` is an
# > expanded scalar with stride 0.

# %%
leaf = torch.zeros(4, 8, requires_grad=True)
seen = []
output = leaf * 1
output.register_hook(lambda dy: seen.append((tuple(dy.shape), dy.stride())))
output.sum().backward()
print("shape and strides of dy:", *seen)
assert seen == [((4, 8), (0, 0))]

# %% [markdown]
# Two tensors, two strides. In exercise 06a they are called `stride_x` and `stride_y`, and count elements between rows. There, columns lie
# next to one another. In general they need not (think of a transposed matrix); the course's own kernels take a column stride as well.
#
# ### Dtypes: how many digits does an accumulator have?
#
# Models keep `x` in fp16 or bf16. fp16 has 11 significant bits. Between 1024 and 2048 it can hold whole numbers and nothing between them;
# from 2048 on, every second whole number. What is 2048 + 1 in fp16? And 300 squared? *(Predict, then run.)*

# %%
half = np.float16
with np.errstate(over="ignore"):
    print("2048 + 1 =", float(half(2048) + half(1)), "   300 * 300 =", float(half(300) * half(300)))
    assert half(2048) + half(1) == 2048
    assert np.isinf(half(300) * half(300))
at_1024, at_2048, largest = np.spacing(half(1024)), np.spacing(half(2048)), np.finfo(half).max
print(f"step at 1024: {at_1024:g}   step at 2048: {at_2048:g}   largest: {largest:g}")
assert (at_1024, at_2048, largest) == (1, 2, 65504)

# %% [markdown]
# An accumulator grows while the things added to it do not. A row with mean 8, N = 16384, BLOCK = 64: each lane adds about 8, 256 times,
# and ends near 2048. The kernel below computes `mean` and `rstd` with accumulators of a dtype you choose. The same fp16 numbers go in
# both times. A mean that is off shifts every `y` of its row. Does fp16 accumulation shift them by more or by less than storing `y` in
# fp16 rounds them? *(Predict, then run.)*


# %%
@triton.jit
def statistics_kernel(x_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr, ACC: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        total += tl.load(x_ptr + row * N + start + tl.arange(0, BLOCK)).to(ACC)
    mean = tl.sum(total.to(tl.float32), axis=0) / N
    squares = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        deviation = tl.load(x_ptr + row * N + start + tl.arange(0, BLOCK)).to(tl.float32) - mean
        squares += (deviation * deviation).to(ACC)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, tl.rsqrt(tl.sum(squares.to(tl.float32), axis=0) / N + eps))


def statistics(x: torch.Tensor, ACC: tl.dtype) -> tuple[np.ndarray, np.ndarray]:
    M, N = x.shape
    mean, rstd = torch.empty(M, device=DEVICE), torch.empty(M, device=DEVICE)
    statistics_kernel[(M,)](x, mean, rstd, N, 1e-5, BLOCK=64, ACC=ACC)
    return reference.float64(mean), reference.float64(rstd)


# %%
noise = torch.randn(4, 16384, generator=torch.Generator().manual_seed(0))
x_half = (8 + 0.5 * noise).half().to(DEVICE)
truth = reference.layer_norm(x_half)
off = {}
for name, ACC in (("fp16", tl.float16), ("fp32", tl.float32)):
    mean, rstd = statistics(x_half, ACC)
    off[name] = np.abs((mean - truth.mean) * truth.rstd).max()  # how far every y of a row is shifted
    off_rstd = np.abs(rstd / truth.rstd - 1).max()
    print(f"{name} accumulators: y shifted by up to {off[name]:.1e}, rstd off by {off_rstd:.1e}")
step = np.spacing(half(1)) / 2  # storing a y near 1 in fp16 costs at most this
print(f"one rounding of a y near 1 to fp16: {step:.1e}")
assert off["fp16"] > 4 * step and off["fp32"] < step / 100

# %% [markdown]
# More: several times as much, and for the whole row in the same direction. The inputs had their 11 bits either way. What is lost is lost
# in the sum.
#
# Now a row with standard deviation 100. Squares near 10000, 16 blocks, the largest fp16 number is 65504. What is `rstd`, and what is `y`
# then? *(Predict, then run.)*

# %%
x_loud = (100 * noise[:1, :1024]).half().to(DEVICE)
with np.errstate(over="ignore"):
    loud = {"fp16": statistics(x_loud, tl.float16), "fp32": statistics(x_loud, tl.float32)}
for name, (mean, rstd) in loud.items():
    y = (reference.float64(x_loud) - mean) * rstd * 1.7 + 0.3  # w is 1.7 and b is 0.3 in every column
    print(f"{name} accumulators: rstd {rstd[0]:.6f}, y from {y.min():.2f} to {y.max():.2f}")
    assert (y == 0.3).all() if name == "fp16" else y.std() > 1
assert loud["fp16"][1] == 0
assert np.isclose(loud["fp32"][1], reference.layer_norm(x_loud).rstd, rtol=1e-5)

# %% [markdown]
# The sum overflows to infinity, `rstd` is 0, and `y` is `b` in every column. No NaN, no warning.
#
# The rule has two halves. **fp32 at the load:** `.to(tl.float32)` right behind every `tl.load`, of `x`, `w` and `b`. **One rounding at
# the store:** compute `y` in fp32 to the end, then `.to(y_ptr.dtype.element_ty)`, which is the dtype `y` points at. What does it cost to
# round after every step instead? *(Predict, then run.)*

# %%
exact_x, exact_mean, exact_rstd = reference.float64(x_half), truth.mean[:, None], truth.rstd[:, None]
w16, b16 = half(1.7), half(0.3)
exact = (exact_x - exact_mean) * exact_rstd * float(w16) + float(b16)

x16, mean16, rstd16 = (value.astype(half) for value in (exact_x, exact_mean, exact_rstd))
every_step = (x16 - mean16) * rstd16 * w16 + b16  # NumPy rounds each of these to fp16
one_rounding = exact.astype(np.float32).astype(half)

errors = [np.abs(y.astype(np.float64) - exact).mean() for y in (every_step, one_rounding)]
print(f"mean error: every step {errors[0]:.1e}, once {errors[1]:.1e}, ratio {errors[0] / errors[1]:.1f}")
assert every_step.dtype == one_rounding.dtype == half and errors[0] > 3 * errors[1]

# %% [markdown]
# `mean` and `rstd` are saved for the backward pass, and they stay fp32 whatever the dtype of `x`: they are one number a row, and every
# gradient of the row goes through them.
#
# ## How far does 32 bits reach?
#
# `tl.program_id(0)` is a 32-bit integer. So is a stride below 2³¹. Their product is computed in 32 bits too. Rows 2³⁰ elements apart:
# what are the offsets of rows 0 to 3? *(Predict, then run.)*


# %%
@triton.jit
def offsets_kernel(narrow_ptr, wide_ptr, stride):
    row = tl.program_id(0)
    tl.store(narrow_ptr + row, (row * stride).to(tl.int64))  # multiplied first, widened too late
    tl.store(wide_ptr + row, row.to(tl.int64) * stride)  # widened first


narrow, wider = (torch.empty(4, dtype=torch.int64, device=DEVICE) for _ in range(2))
offsets_kernel[(4,)](narrow, wider, 2**30)
print("32 bits:", narrow.tolist(), "\n64 bits:", wider.tolist())
assert narrow.tolist() == [0, 2**30, -(2**31), -(2**30)]
assert wider.tolist() == [r * 2**30 for r in range(4)]

# %% [markdown]
# Row 2 starts at -2147483648: 2³¹ elements *in front of* the tensor. No large memory was needed to show it; the offsets alone are wrong.
#
# Is it far-fetched? Take fp16 rows of N = 65536. Which row is the first with a wrong offset, and how large is a matrix that has it?
# *(Predict, then run.)*

# %%
N = 65536
first_wrong = 2**31 // N
gibibytes = (first_wrong + 1) * N * 2 / 2**30
print(f"row {first_wrong}; the matrix takes {gibibytes:.2f} GiB in fp16")
with np.errstate(over="ignore"):
    at = np.array([first_wrong - 1, first_wrong], dtype=np.int32) * np.int32(N)
assert at[0] == (first_wrong - 1) * N and at[1] == -(2**31)
assert first_wrong == 32768 and 4 < gibibytes < 4.001

# %% [markdown]
# Row 32768, in a matrix of 4 GiB, which fits the GPU of many a laptop. A sliced `x` with a large row stride gets there sooner. The cure
# is one cast, *before* the product: `row = tl.program_id(0).to(tl.int64)`.
#
# > **ERRATUM** (Triton tutorial "Layer Normalization", both editions). Its row offsets are 32-bit products. The same defect shipped in
# > PyTorch (issue #181555, from 2³² elements) and in Liger-Kernel (#803).

# %% [markdown]
# ## Exercise 06a: block by block
#
# You have every piece: lane sums, three sweeps, the mask at the load and again after the subtraction, two strides, fp32 in the middle, 64
# bits in front. `w` and `b` are loaded in the third sweep, by column. Put them together. Begin with `mean`, and check: the verdict says
# whether it is right even before `y` is there.

# %%
exercise("06a")

# %% [markdown]
# ## What does the kernel cost?
#
# A norm does few operations an element, so moving the bytes is most of its time. Count them for the course's blocked kernel, which does
# what yours does. Four rows of 100 columns in fp16, BLOCK 64. How often does the launch go over `x`, over `y`, over `w`? *(Predict, then
# run.)*
#
# The map runs the kernel once, on copies, and records each access. Rows are programs, the strips in them are passes. Step through program
# 1: where does it jump back to the start of its row, and which lanes are masked? (For your own kernel: `learners_kernel("06a")` from
# `course_lib.lessons` in place of the first argument, and two strides in place of four.)

# %%
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel, layer_norm_resident_kernel

M, N = 4, 100
x_half = torch.randn(M, N, generator=torch.Generator().manual_seed(0)).half().to(DEVICE)
y_half = torch.empty_like(x_half)
weight, bias = torch.ones(N, device=DEVICE), torch.zeros(N, device=DEVICE)
mean, rstd = torch.empty(M, device=DEVICE), torch.empty(M, device=DEVICE)
tensors, strides = (x_half, y_half, weight, bias, mean, rstd), (N, 1, N, 1)
both = {"HAS_W": True, "HAS_B": True}

blocked_map = access_map(layer_norm_blocked_kernel, (M,), *tensors, *strides, N, eps, **both, BLOCK=64)
blocked_map

# %%
from course_lib.lessons.access_map.model import model
from course_lib.lessons.access_map.run import record

asked = blocked_map.map
constants = {**both, "ROWS": 1, "BLOCK": 128}
once = model(record(layer_norm_resident_kernel, (M,), (*tensors, *strides, M, N, eps), constants))
for name, launch in (("blocked", asked), ("resident", once)):
    x_reads, y_writes, w_reads = launch.times("x", "read"), launch.times("y", "write"), launch.times("w", "read")
    print(f"{name:>8}: times over x {x_reads:g}, over y {y_writes:g}, over w {w_reads:g}")
assert (asked.times("x", "read"), asked.times("y", "write"), asked.times("w", "read")) == (3, 1, M)
assert (once.times("x", "read"), once.times("y", "write")) == (1, 1)
assert asked.bytes("x") + asked.bytes("y") == 4 * M * N * 2

# %% [markdown]
# Each program goes over its row three times, and writes it once. And each of the M programs reads all of `w` and `b`: asked for M times,
# but so small that a cache keeps them. With itemsize bytes an element,
#
# - **blocked** asks for 4 M N itemsize;
# - nothing can do with less than reading `x` once and writing `y` once: 2 M N itemsize. That is also what a copy moves.
#
# The count leaves out `mean`, `rstd`, `w` and `b`, once each. Is that fair at M = 4096, N = 8192? *(Predict, then run.)*


# %%
def count(M: int, N: int, itemsize: int, reads: int) -> int:
    return (reads + 1) * M * N * itemsize


M, N, itemsize = 4096, 8192, 2
blocked, resident = count(M, N, itemsize, reads=3), count(M, N, itemsize, reads=1)
rest = 2 * M * 4 + 2 * N * itemsize  # mean and rstd in fp32, w and b once
for name, size in (("blocked", blocked), ("resident", resident), ("the rest", rest)):
    print(f"{name}: {size / 2**20:.2f} MiB")
assert blocked == 2 * resident == 256 * 2**20 and rest < resident / 1000

# %% [markdown]
# ### Where could the row stay?
#
# If BLOCK is at least N, the whole row is in the lanes after one load. Keep the variable, and the second and third sweep need no load at
# all. Lanes are registers, spread over the threads of the program: `num_warps` warps of 32 threads. An fp32 row takes
#
# $$\frac{\mathrm{BLOCK}}{32 \cdot \mathrm{num\_warps}} \text{ registers a thread}$$
#
# for `x` alone. A thread has 255 at most. A row of 8192 columns: how many registers a thread with 1 warp, with 4, with 16? *(Predict,
# then run.)*

# %%
from course_lib.kernels.launch import tables

for warps in (1, 4, 16):
    print(f"BLOCK 8192, {warps:2} warps: {8192 // (32 * warps)} registers a thread for x")

used = {}
for N in (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768):
    ROWS, BLOCK, num_warps = tables.resident(N)
    used[N] = ROWS * BLOCK / (32 * num_warps)
    tile = f"ROWS {ROWS:2} x BLOCK {BLOCK:5} on {num_warps:2} warps"
    print(f"N {N:5}: {tile} = {used[N]:.0f} registers a thread")
assert 8192 // 32 > 255 and 8192 // (32 * 4) == 64 and 8192 // (32 * 16) == 16
assert set(used.values()) == {16, 32} and tables.resident(32768).num_warps == 32

# %% [markdown]
# With one warp the row does not fit. With 4 it does by this count, but `x` is not alone in there. What does not fit is spilled: the
# compiler parks it in memory, and the bytes you meant to save move after all. After exercise 06b you ask the compiler itself. The table is
# the one the course's own kernel uses. It keeps `x` at 16 or 32 registers a thread. A program has at most 32 warps, so the table ends at
# 32768 columns. (Lesson 12 splits longer rows over programs.)
#
# ### Half the bytes: half the time?
#
# The resident kernel moves 2 M N, the blocked one asks for 4 M N. How much slower is the blocked one: 2 times, more, less? Think about
# where a row is when the program reads it for the second time, a few microseconds after the first. Write a number down. *(Predict, then
# run.)*
#
# The times below are measured on this machine if it has a GPU. If not, they were measured on the GPU named in the figure. Each is divided
# by the time of a copy of the same bytes in the same run, so 1 is the floor.

# %%
from course_lib.bench import forward

measured = forward.latest()
rows = [r for r in measured.rows if r["op"] == "layer_norm" and r["dtype"] == "fp16"]
rows = [r for r in rows if r["provider"] in lesson06.PROVIDERS]
source = measured.label()  # device and date

figure = lesson06.forward_cost(rows, source)
message = figure.axes[0].get_title(loc="left")
alt = f"{message}. Time of LayerNorm forward over that of a copy of the same bytes, by row length, {source}."
picture(figure, alt=f"{alt} The next cell prints the numbers.")

# %%
times = {(r["provider"], r["N"], r["M"]): r for r in rows}
shapes = sorted((N, M) for name, N, M in times if name == "blocked" and ("resident", N, M) in times)
print(f"{source}\n{'M x N':>15}  resident us  blocked us  blocked/resident  passes in blocked's time")
for N, M in shapes:
    once, thrice = times["resident", N, M], times["blocked", N, M]
    ratio, passes = thrice["us"] / once["us"], 2 * thrice["over_floor"]
    print(f"{M:6} x {N:<6}  {once['us']:11.1f}  {thrice['us']:10.1f}  {ratio:16.2f}  {passes:24.1f}")
resident_us, blocked_us = (sum(times[name, N, M]["us"] for N, M in shapes) for name in ("resident", "blocked"))
print(f"all together: resident {resident_us:.0f} us, blocked {blocked_us:.0f} us")
assert resident_us < blocked_us

# %% [markdown]
# Over all row lengths together the resident kernel is the faster one. Compare the ratios with your number. Half the bytes buy far less than
# half the time, and at a single length the resident kernel can even lose: look at the longest rows. Lesson 12 comes back to them.
#
# The last column asks: a copy makes two passes over the data, one read and one write. How many passes at copy speed fit into the blocked
# kernel's time? The kernel asked for four. Where the column stays well below 4, memory did not answer all of them: much of the second and
# third read came from a cache, where the row still lay. Where it says more than 4, or where rows are short, something other than bytes
# costs the time, and the next section is about it.
#
# So a count of bytes *asked for* is not a time. It is a question to put to a measurement. Lesson 11 does that with care.
#
# ### What is wrong with one short row a program?
#
# A row of 256 columns on 4 warps is 2 elements a thread. The program is set up, waits for one small load, and is over. So give it several
# rows: a tile of shape (ROWS, BLOCK). Triton broadcasts as NumPy does. `rows[:, None]` is a column, `cols[None, :]` is a row, and their
# sum is a table of offsets. What are the offsets of rows 4 and 5 of a packed matrix with N = 3, BLOCK = 4? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
rows_of_tile, cols = np.arange(4, 6), np.arange(4)
print(rows_of_tile[:, None] * 3 + cols[None, :])
assert (rows_of_tile[:, None] * 3 + cols[None, :]).tolist() == [[12, 13, 14, 15], [15, 16, 17, 18]]
assert 256 // (32 * 4) == 2

# %% [markdown]
# 15 appears twice: once as column 3 of row 4, which does not exist, once as column 0 of row 5. Column 3 has to be masked.
#
# A reduction over a tile takes one axis away. `tl.sum(tile, axis=1)` adds along the row and leaves ROWS numbers, one a row:


# %%
@triton.jit
def row_sums_kernel(x_ptr, sum_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    tile = tl.load(x_ptr + rows[:, None] * BLOCK + cols[None, :])
    tl.store(sum_ptr + rows, tl.sum(tile, axis=1))


tall = torch.arange(8 * 16, dtype=torch.float32, device=DEVICE).view(8, 16)
sums = torch.empty(8, device=DEVICE)
row_sums_kernel[(2,)](tall, sums, ROWS=4, BLOCK=16)
print(sums.tolist())
assert torch.equal(sums, tall.sum(dim=1))

# %% [markdown]
# Eight rows are two full tiles of four, and N equals BLOCK, so nothing had to be masked. Now let M be 5 and look at the statistics. There
# are still two programs. The kernel below stores one number a row without a mask. `mean` is the front of a longer buffer of zeros. What
# happens to the rest? *(Predict, then run.)*


# %%
@triton.jit
def no_row_mask_kernel(mean_ptr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tl.store(mean_ptr + rows, rows.to(tl.float32))


M, ROWS = 5, 4
buffer = torch.zeros(10, device=DEVICE)
no_row_mask_kernel[(triton.cdiv(M, ROWS),)](buffer, ROWS=ROWS)
print("mean:", buffer[:M].tolist(), " behind it:", buffer[M:].tolist())
assert triton.cdiv(M, ROWS) == 2 and buffer[M:].tolist() == [5, 6, 7, 0, 0]

# %% [markdown]
# Rows 5, 6 and 7 do not exist, and three numbers behind `mean` are gone. So the tile needs two conditions: a row below M, and a column
# below N. In the load and the store of the tile both count. Where only rows are addressed, the row condition is enough.
#
# And the variance? A padded *column* still holds `-mean` of a row that exists. What does a padded *row* hold, and does it need clearing
# too?
#
# ## Exercise 06b: rows that stay in registers

# %%
exercise("06b")

# %% [markdown]
# ## What did the compiler make of it?
#
# You have counted 64 registers a thread for a row of 8192 columns on 4 warps. The compiler has to fit the rest as well: `w` and `b`,
# addresses, masks, the deviation. How many registers a thread does it take on 1 warp, on 4, on 16, and which of the three spills? Write
# down three numbers. *(Predict, then run.)*
#
# No GPU is needed for the answer. The same compiler works here, for an H100 (`sm_90`), on the course's resident kernel with one row a
# program.

# %%
from course_lib.compiler import Pointer, compile_report, occupancy


def made(num_warps: int, N: int = 8192, stride: int = 8192, aligned: bool = True):
    x, statistic = Pointer("fp16", aligned), Pointer("fp32")
    arguments = [x, x, x, x, statistic, statistic, stride, 1, stride, 1, 4096, N, eps]
    constants = {**both, "ROWS": 1, "BLOCK": 8192}
    return compile_report(layer_norm_resident_kernel, arguments, constants, num_warps=num_warps, arch="sm_90")


reports = {warps: made(warps) for warps in (1, 4, 16)}
in_flight = {}
for warps, report in reports.items():
    in_flight[warps] = occupancy("sm_90", report.registers, report.shared_bytes, warps)
    head = f"{warps:2} warps, x alone {8192 // (32 * warps):3} registers: {report.registers:3} taken"
    print(f"{head}, {report.spill_bytes:4} bytes spilled, {in_flight[warps]} of 64 warps at a time")

assert reports[1].spill_bytes > 0 == reports[4].spill_bytes == reports[16].spill_bytes
assert reports[4].registers > 1.5 * 64 and reports[16].registers > 1.5 * 16
assert in_flight[16] > 2 * in_flight[4]

# %% [markdown]
# On 1 warp it spills, as it had to. On 4 and 16 warps nothing is spilled, and yet it takes more than half as many registers again as `x`
# alone: addresses, masks, and `w` and `b` on their way in. Registers are shared by all warps of a multiprocessor, so few registers a
# thread mean many warps at a time, and while one waits for memory another can run.
#
# ### Which line costs what?
#
# `tl.sum` over a row is half a line of Python. In it lanes exchange numbers by an instruction named `SHFL`. How many of them does the
# line become on 1 warp, on 4, on 16? *(Predict, then select the line in the listing.)* Then turn `kernel` to *yours, 06b*, once that is
# done.

# %%
kernel_explorer("resident", BLOCK=8192, num_warps=4)

# %%
from course_lib.compiler import source_text

source = source_text(layer_norm_resident_kernel)
numbered = enumerate(source.text.splitlines(), source.first_line)
line = next(number for number, text in numbered if "tl.sum(x, axis=1)" in text)
shuffles, additions = {}, {}
for warps, report in reports.items():
    sass = [report.sass.splitlines()[number - 1] for number in report.lines[line].sass]
    shuffles[warps], additions[warps] = (sum(name in text for text in sass) for name in ("SHFL", "FADD"))
    print(
        f"{warps:2} warps: {additions[warps]:3} additions, {shuffles[warps]} exchanges, {len(sass)} instructions in all"
    )
assert shuffles == {warps: 5 + np.log2(warps) for warps in (1, 4, 16)}
assert additions[1] > 3 * additions[4] > 6 * additions[16]

# %% [markdown]
# Five inside a warp of 32 lanes, which is log2 of 32. Two more for 4 warps, four more for 16: through shared memory, because other warps'
# registers are out of reach. Additions inside a thread shrink as warps grow, the conversation grows. Neither is free, and both come once
# a sweep, as promised above.
#
# ### How much does one load move?
#
# A thread asks for 8192 / 128 = 64 numbers of two bytes. How many load instructions is that for `x`? And if the tensors are slices that
# begin at an odd element? And if N is 8191, with the rows packed, or still 8192 apart? *(Predict, then run.)*

# %%
cases = {
    "aligned": made(4),
    "odd start": made(4, aligned=False),
    "N 8191, packed": made(4, N=8191, stride=8191),
    "N 8191, 8192 apart": made(4, N=8191),
}
for name, report in cases.items():
    print(f"{name:>18}: loads of x, w and b, by bytes a thread: {report.loads}")
for listing, word in ((cases["aligned"].ptx, "ld.global"), (cases["aligned"].sass, "LDG")):
    print(next(line.strip() for line in listing.splitlines() if word in line))

assert 8192 // (32 * 4) == 64 and 64 * 2 // 16 == 8
assert cases.pop("aligned").loads == {16: 3 * 8}
assert all(report.loads == {2: 3 * 64} for report in cases.values())

# %% [markdown]
# Eight, of 16 bytes each, the most that a thread of an H100 loads at once. `w` and `b` take eight each, too. In the other three cases it
# is one load a number: eight times the instructions for the same bytes. From an odd start nothing is aligned. With N = 8191 the mask
# `cols < N` may end between two lanes of a wide load, so the compiler gives up on wide loads, and rows 8192 apart do not help. It knows
# about an integer argument only whether 16 divides it.

# %% [markdown]
# ## Summary
#
# - One program a row. Lanes keep partial sums; `tl.sum` adds up the lanes once a sweep. Three sweeps when the row is longer than BLOCK,
#   one load when it is not.
# - Padded lanes hold 0 after the load and `-mean` after the subtraction. Unmasked, they add pad · mean² / N to the variance. A test with
#   a power of two or mean 0 does not see it.
# - The shape does not show strides and dtypes. Every tensor has its own stride. fp32 at the load, one rounding at the store; `mean` and
#   `rstd` stay fp32.
# - Row offsets in 64 bits, widened *before* the product.
# - Blocked asks for 4 M N, resident for 2 M N. What memory really moved, only a measurement says. `BLOCK / (32 * num_warps)` registers a
#   thread set the limit of the resident kernel, and short rows want several a program.
# - The compiler's report says what it really took: registers, spills, and wide loads only where 16 divides N, the row stride and the addresses.
#
# After each pass the panel shows a debrief: what the bug you have avoided did elsewhere.
#
# **Where to read on**
#
# - Ba, Kiros and Hinton 2016, "Layer Normalization": the paper, five equations to the point.
# - Triton tutorial "Layer Normalization": the three sweeps, and a backward pass. Read it with the errata of this lesson at hand.
# - llm.c, the page on LayerNorm: the same forward pass in plain Python and C, with memory and recomputation weighed aloud.
# - `course_lib/kernels/layer_norm.py`: both kernels as the course ships them, with column strides and cache hints. After the exercises.
#
# **Next: lesson 07, RMSNorm.** It leaves out the mean. Which of today's bugs goes away with it, and which stay?
