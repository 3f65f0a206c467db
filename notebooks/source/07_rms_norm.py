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
# # 07 RMSNorm forward, and a fused residual add
#
# RMSNorm is LayerNorm without the mean. The formula gets shorter, one bug disappears, and the others that you know stay. Then the norm
# kernel takes over the addition in front of it, and that saves bytes, which leaving out the mean does not.
#
# **You will be able to**
#
# - say what padded lanes do to RMSNorm, and which number they can still spoil;
# - say what a wrong place of eps leaves behind for the backward pass;
# - write the forward kernel for rows that stay in registers, in any dtype;
# - fuse the residual addition into it, with the same bits as two kernels and fewer bytes.
#
# **You need** lesson 01: the formula, eps inside the root, the 3 x 8 example. Lesson 06: lanes and `tl.sum`, padding in the variance,
# strides, fp32 at the load.
#
# **Time** about 70 minutes: 35 to read and run, 15 for exercise 07a, 20 for 07b.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import block_stepper, bytes_moved, picture
from course_lib.lessons.figures import lesson07
from course_lib.norms import reference

# %% [markdown]
# ## The formula once more
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\frac{1}{N}\sum_j x_j^2 + \mathrm{eps}}} \qquad y_j = x_j\,\mathrm{rstd}\; w_j$$
#
# Lesson 01 took it apart: no mean is subtracted and no bias is added, the scale of a row still does not matter, its shift now does. One sum
# is left, and `rstd` is the only statistic to save. What does that change for a kernel?
#
# ## Where does the padding go this time?
#
# In lesson 06 the row `8 11 12 9 10` lay in eight lanes. After `x - mean` three lanes without a column held -10, and the variance went from
# 2 to 62. Here nothing is subtracted before the square. What do the three lanes add to the sum of squares? *(Predict, then run.)*


# %%
@triton.jit
def padded_sums_kernel(x_ptr, sums_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    deviation = x - tl.sum(x, axis=0) / N  # padded lanes hold -mean from here on
    tl.store(sums_ptr, tl.sum(x * x, axis=0))
    tl.store(sums_ptr + 1, tl.sum(deviation * deviation, axis=0))


five = torch.tensor([8.0, 11, 12, 9, 10], device=DEVICE)
sums = torch.empty(2, device=DEVICE)
padded_sums_kernel[(1,)](five, sums, 5, BLOCK=8)
squares, deviations = sums.tolist()
print(f"sum of squares    {squares}, true {(five**2).sum().item()}")
print(f"squared deviations {deviations}, true {((five - five.mean()) ** 2).sum().item()}")
assert squares == 8**2 + 11**2 + 12**2 + 9**2 + 10**2 == 510
assert abs(deviations - 310) < 1e-2 and abs(deviations / 5 - 62) < 1e-2 and abs(five.var(correction=0) - 2) < 1e-5

# %% [markdown]
# Nothing. A padded lane holds 0 and 0 squared is 0, so `other=0.0` on the load is all the masking a sum of squares needs. The bug that
# three libraries shipped cannot happen here. That is luck, not a rule: it holds because the next operation maps 0 to 0.
#
# ### What can the padding still spoil?
#
# The sum is right. Then comes the division. A mean over a block wants to be divided by BLOCK, and `tl.sum(x * x, axis=0) / BLOCK` looks
# fine. By which factor is `y` off for N = 1000 in a block of 1024? For N = 1025? *(Predict, then run.)*


# %%
@triton.jit
def by_block_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / BLOCK + eps)  # wrong: N elements were added up, not BLOCK
    tl.store(y_ptr + cols, x * rstd, mask=cols < N)


rng = np.random.default_rng(0)
factors, mean_squares = {}, {}
for N in (17, 1000, 1020, 1024, 1025):
    row = rng.standard_normal((1, N)).astype(np.float32)
    BLOCK = triton.next_power_of_2(N)
    y = torch.empty(N, device=DEVICE)
    by_block_kernel[(1,)](torch.tensor(row, device=DEVICE), y, N, 1e-5, BLOCK=BLOCK)
    factors[N] = float(np.median(reference.float64(y) / reference.rms_norm(row).y[0]))
    mean_squares[N] = float((reference.float64(y) ** 2).mean())
    print(f"N {N:4} in {BLOCK:4}: y too large by a factor {factors[N]:.4f}, sqrt(BLOCK / N) = {(BLOCK / N) ** 0.5:.4f}")
    assert np.isclose(factors[N], (BLOCK / N) ** 0.5, rtol=1e-4)
assert 1.011 < factors[1000] < 1.013 and 1.41 < factors[1025] < 1.42
assert 1.001 < factors[1020] < 1.003 and abs(factors[1024] - 1) < 1e-5

# %% [markdown]
# The factor is `sqrt(BLOCK / N)`: 1.2 % at 1000, and 1.41 at 1025, one column past a power of two. At 1024 it is exactly right, and at
# 1020 a test with a tolerance of 1e-2 lets 0.2 % through. You added up N numbers, so divide by N.
#
# Lesson 01 has a check that needs no reference: the mean square of `y` is about 1. Would it have caught this? *(Predict, then run.)*

# %%
for N, mean_square in mean_squares.items():
    print(f"N {N:4}: mean square of y {mean_square:.3f}, BLOCK / N {triton.next_power_of_2(N) / N:.3f}")
    assert np.isclose(mean_square, triton.next_power_of_2(N) / N, rtol=1e-4)
assert round(mean_squares[1025], 1) == 2 and round(mean_squares[1000], 3) == 1.024 and round(mean_squares[1024], 3) == 1

# %% [markdown]
# At 1025 it shouts: 2 instead of 1. At 1000 it says 1.024, which you would have to look for. At 1024 there is nothing to find.
#
# ## What does a wrong eps leave behind?
#
# Lesson 01 compared `1 / sqrt(mean square + eps)` with the `1 / (rms + eps)` of a blog post: no difference on ordinary rows, 29 times too
# loud at an rms of 0.0001. For a kernel there is one more thing at stake, because it also *saves* `rstd`. Take a row of zeros, and eps =
# 1e-5. What is `y`, and what does the backward pass find, for each of the two? *(Predict, then run.)*


# %%
@triton.jit
def eps_kernel(x_ptr, y_ptr, rstd_ptr, N, eps, OUTSIDE: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    mean_square = tl.sum(x * x, axis=0) / N
    rstd = tl.rsqrt(mean_square + eps)
    if OUTSIDE:
        rstd = 1 / (tl.sqrt(mean_square) + eps)
    tl.store(rstd_ptr, rstd)
    tl.store(y_ptr + cols, x * rstd, mask=cols < N)


eps = 1e-5
zeros, saved = torch.zeros(8, device=DEVICE), {}
for OUTSIDE in (False, True):
    y, rstd = torch.empty(8, device=DEVICE), torch.empty(1, device=DEVICE)
    eps_kernel[(1,)](zeros, y, rstd, 8, eps, OUTSIDE=OUTSIDE, BLOCK=8)
    saved[OUTSIDE] = rstd.item()
    print(f"eps {'outside' if OUTSIDE else 'inside':7}: y all 0: {bool((y == 0).all())}, rstd {saved[OUTSIDE]:.0f}")
    assert (y == 0).all()
assert np.isclose(saved[False], reference.rms_norm(np.zeros((1, 8)), eps=eps).rstd[0]) and round(saved[False]) == 316
assert np.isclose(saved[True], 1e5)

# %% [markdown]
# `y` is 0 both times, and a test of the forward pass is content. The saved numbers are 316 and 100000, and every gradient of that row is
# multiplied by one of them. So test the saved statistic as well as `y`.
#
# ## What does a kernel make of the table?
#
# In lesson 01 you found two wrong rows in the post's 3 x 8 example. A kernel can do your pencil's work: one program a row, and it stores
# the sum of squares of each block.


# %% tags=["nbval-check-output"]
@triton.jit
def block_squares_kernel(x_ptr, squares_ptr, blocks, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        tl.store(squares_ptr + row * blocks + start // BLOCK, tl.sum(x * x, axis=0))


x = np.array(
    [[2, -1, 3, 0.5, -0.5, 1.5, -2, 1], [4, -3, 2.5, 1, -1.5, 0, -0.5, 2], [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5]]
)
published = np.array([21.75, 44.25, 50.00])
x_dev = torch.tensor(x, dtype=torch.float32, device=DEVICE)
squares = torch.empty(3, 2, device=DEVICE)
block_squares_kernel[(3,)](x_dev, squares, 2, 8, BLOCK=4)
true = reference.float64(squares)

wrong = [row for row in range(3) if true[row].sum() != published[row]]
for row, (first, second) in enumerate(true):
    print(f"row {row}: {first:5.2f} + {second:5.2f} = {first + second:5.2f}, published {published[row]:5.2f}")
print("wrong rows:", wrong)
assert wrong == [1, 2]
assert true.tolist() == [[14.25, 7.50], [32.25, 6.50], [21.75, 15.50]]
assert true.sum(axis=1).tolist() == [21.75, 38.75, 37.25]

# %% [markdown]
# Rows 1 and 2, as in lesson 01.
#
# ### Step through it
#
# A kernel does not keep block sums. It keeps one partial sum a lane and adds up the lanes at the end. After the second block of row 1,
# what do the four lanes hold? Step until you see it. *(Predict first.)*

# %%
block_stepper(kind="rms_norm", block=4)

# %%
from course_lib.lessons.block_stepper.model import steps

frames = [f for f in steps(x, 4, "rms_norm") if f.row == 1 and f.phase == "squares"]
print("lanes after each block of row 1:", *(f.accumulator for f in frames))
assert frames[-1].accumulator == (18.25, 9.0, 6.5, 5.0) and frames[-1].running == 38.75
assert len(steps(x, 4, "rms_norm")) == 3 * 2 * 2 and len(steps(x, 4, "layer_norm")) == 3 * 3 * 2

# %% [markdown]
# 18.25, 9, 6.5 and 5: other parts, the same 38.75. And count the frames: a row takes two sweeps of two blocks. LayerNorm takes three.
#
# ## The blocked kernel
#
# From lesson 06 you can write it down. One sweep adds up squares, lane by lane; one `tl.sum`; one sweep writes `y`. Read it for what is
# *not* there: no mean, no `tl.where`, no third sweep.


# %%
@triton.jit
def blocked_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * stride can pass 2^31
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * stride_y + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=cols < N)


# %%
def blocked(x: torch.Tensor, w: torch.Tensor, BLOCK: int) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    y, rstd = torch.empty_like(x), torch.empty(M, device=x.device)
    blocked_kernel[(M,)](x, y, w, rstd, x.stride(0), y.stride(0), N, eps, BLOCK=BLOCK)
    return y, rstd


noise = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
x_test = (3 + noise).to(DEVICE)
w_test = (torch.arange(1000) / 1000 + 0.5).to(DEVICE)
expected = reference.rms_norm(x_test, w_test, eps)
for BLOCK in (16, 64, 1024):
    y, rstd = blocked(x_test, w_test, BLOCK)
    errors = [np.abs(reference.float64(got) - want).max() for got, want in ((y, expected.y), (rstd, expected.rstd))]
    print(f"BLOCK {BLOCK:4}, {-1000 % BLOCK:2} padded lanes: y off by {errors[0]:.0e}, rstd by {errors[1]:.0e}")
    assert max(errors) < 2e-6

# %% [markdown]
# Mean 3, up to 24 padded lanes, and right. The sentence that failed in lesson 06 holds here: the result does not depend on BLOCK, apart
# from rounding.
#
# ### Why save rstd?
#
# The backward pass needs `xhat = x * rstd`. It reads `x` anyway. Without `rstd` it would have to read the whole row once more before it
# can begin. For an fp16 row of 8192 columns: how many bytes does the saved number cost, and how many does it spare? *(Predict, then
# run.)*

# %%
y, rstd = blocked(x_test, w_test, 64)
saved, spared = rstd.element_size(), 8192 * 2  # one fp32 number a row; one more sweep over the row
print(f"{saved} bytes written to spare {spared}: 1 for {spared // saved}")
assert saved == 4 and spared // saved == 4096
assert torch.allclose(x_test * rstd[:, None] * w_test, y, rtol=1e-6, atol=0)  # what the backward pass can rebuild

# %% [markdown]
# ## The resident kernel
#
# If BLOCK is at least N, the row is in the lanes after one load. Start from the blocked kernel and take away:
#
# 1. both loops: there is one block;
# 2. the lanes' running sums: `x * x` is all there is to add up;
# 3. the second load of `x`: the variable still holds it.
#
# What remains is short. Here it is for packed fp32 rows and w = 1.


# %%
@triton.jit
def bare_resident_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, x * rstd, mask=cols < N)


y_resident = torch.empty_like(x_test)
bare_resident_kernel[(4,)](x_test, y_resident, 1000, eps, BLOCK=1024)
y_blocked, _ = blocked(x_test, torch.ones_like(w_test), 64)
apart = (y_resident - y_blocked).abs().max().item()
print(f"resident and blocked differ by at most {apart:.0e}")
assert apart < 1e-6

# %% [markdown]
# Each element is read once and written once: 2 M N, where the blocked kernel asks for 3 M N and LayerNorm's for 4 M N. Resident LayerNorm
# moves 2 M N as well. Keep that in mind for the end of the lesson.
#
# Five things are missing before this kernel is worth anything: `w`, the saved `rstd`, strides, 64-bit rows, and half precision. You know
# four of them. The fifth has a new edge.
#
# ## How large may x be in fp16?
#
# The largest fp16 number is 65504. RMSNorm squares. What is the largest fp16 number whose square is still finite in fp16? *(Predict, then
# run.)*

# %%
numbers = np.arange(0x7C00, dtype=np.uint16).view(np.float16)  # every finite fp16 number from 0 up
with np.errstate(over="ignore"):
    finite = numbers[np.isfinite(numbers * numbers)]
print(
    f"largest: {finite.max()}, its square {finite.max() ** 2}; the next number is {np.nextafter(finite.max(), np.float16(np.inf))}"
)
assert (
    np.finfo(np.float16).max == 65504
    and finite.max() == 255.875
    and np.nextafter(finite.max(), np.float16(np.inf)) == 256
)

# %% [markdown]
# 255.875. From 256 on the square is infinite. In lesson 06 it took a row with standard deviation 100; one loud element is enough. Take a
# row of 1000 ordinary numbers and set one of them to 300. What are `rstd` and `y`, if the squares are taken in fp16? *(Predict, then run.)*


# %%
@triton.jit
def squares_in_kernel(x_ptr, y_ptr, rstd_ptr, N, eps, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(DTYPE)
    squares = (x * x).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(rstd_ptr, rstd)
    tl.store(y_ptr + cols, (x.to(tl.float32) * rstd).to(y_ptr.dtype.element_ty), mask=cols < N)


loud = noise[0].half().to(DEVICE)
loud[7] = 300
y, rstd = torch.empty_like(loud), torch.empty(1, device=DEVICE)
right = reference.rms_norm(loud[None])
for name, DTYPE in (("fp16", tl.float16), ("fp32", tl.float32)):
    with np.errstate(over="ignore"):
        squares_in_kernel[(1,)](loud, y, rstd, 1000, eps, DTYPE=DTYPE, BLOCK=1024)
    print(
        f"squares in {name}: rstd {rstd.item():.5f}, y[7] {y[7].item():.3f}, {torch.count_nonzero(y).item()} of 1000 elements not 0"
    )
    assert (
        (rstd.item() == 0 and (y == 0).all()) if name == "fp16" else np.isclose(rstd.item(), right.rstd[0], rtol=1e-5)
    )
assert torch.tensor(256.0, dtype=torch.bfloat16) + 1 == 256

# %% [markdown]
# One infinite square, and the whole row is 0. No NaN, no warning.
#
# bf16 has the range of fp32, so nothing overflows. It lacks the digits: 256 + 1 is 256, and a sum of squares stops growing. The rule is the
# one you know, for both: fp32 at the load, one rounding at the store.
#
# ## Exercise 07a: RMSNorm forward
#
# The resident kernel with everything that is missing above. Decide two things before you type: which number do you divide by, and where
# does eps go?

# %%
exercise("07a")

# %% [markdown]
# ## Where does x come from?
#
# In a transformer a norm rarely stands alone. Each part of a block adds its output to a running sum, the residual stream, and the next part
# normalises that sum:
#
# ```
# total = x + residual          x: what the last part computed
# y = rms_norm(total)           y: what the next part reads
# ```
#
# Two kernels. Count the elements, as in lesson 06. The addition reads `x` and `residual` and writes `total`: 3 M N. The norm reads `total`
# and writes `y`: 2 M N. In one kernel `total` need not be read back, because it is in the lanes: 4 M N.
#
# ### Why write it at all?
#
# Without `total` it would be 3 M N. But the next part adds to `total`, not to `y`. Could it not be worked out from `y`? Here are two
# streams, one twice the other. Compare their `y`, and what becomes of them one addition later. *(Predict, then run.)*

# %%
total = rng.standard_normal((2, 64))
part = rng.standard_normal((2, 64))
y_one, y_two = reference.rms_norm(total).y, reference.rms_norm(2 * total).y
next_one, next_two = reference.rms_norm(total + part).y, reference.rms_norm(2 * total + part).y
print(f"y differs by at most {abs(y_one - y_two).max():.0e}, the next y by up to {abs(next_one - next_two).max():.1f}")
assert abs(y_one - y_two).max() < 1e-4 and abs(next_one - next_two).max() > 0.5

# %% [markdown]
# The norm has thrown the length of the row away, and the next addition needs it. So `total` is stored: 5 M N become 4 M N, no less.
#
# ### Which sum do you normalise?
#
# In bf16 `total` is rounded when it is stored. The fused kernel has the exact sum in fp32, right there in its lanes. Normalising that one
# saves a rounding. It should be better. Is it the same? How many of 8192 elements of `y` come out different from the two kernels: none, a
# few, one in five, most? *(Predict, then run.)*

# %%
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_forward

generator = torch.Generator().manual_seed(0)
x_half, residual = (torch.randn(8, 1024, generator=generator).bfloat16().to(DEVICE) for _ in range(2))
w_half = (torch.rand(1024, generator=generator) + 0.5).bfloat16().to(DEVICE)

total = x_half + residual  # first kernel: computed in fp32, rounded to bf16
y_two_kernels, _ = rms_norm_forward(total, w_half, eps)  # second kernel
exact_sum = x_half.float() + residual.float()
y_exact_sum = rms_norm_forward(exact_sum, w_half, eps)[0].bfloat16()
fused_total, y_fused, rstd = add_rms_norm_forward(x_half, residual, w_half, eps)  # the course's kernel

differ = (y_exact_sum != y_two_kernels).sum().item()
print(
    f"exact sum normalised: {differ} of {y_two_kernels.numel()} elements differ, {100 * differ / y_two_kernels.numel():.0f} %"
)
print(f"rounded sum normalised: {(y_fused != y_two_kernels).sum().item()} differ")
assert 0.15 < differ / y_two_kernels.numel() < 0.25
assert torch.equal(fused_total, total) and torch.equal(y_fused, y_two_kernels)

# %% [markdown]
# One in five. Round first, go on with the rounded sum in fp32, and every bit agrees.
#
# Why should that matter, if the exact sum is nearer the truth? Because `y` has to be the norm of *the total that is stored*. The next part
# adds to that one, and the backward pass rebuilds `xhat` from it. Compare both with the norm of the stored total, in units of what one
# rounding to bf16 may cost. How far off is each? *(Predict, then run.)*

# %%
want = reference.rms_norm(total, w_half, eps).y
one_rounding = 2.0**-8 * np.abs(want) + 1e-30
off = {}
for name, y in (("exact sum", y_exact_sum), ("rounded sum", y_fused)):
    off[name] = (np.abs(reference.float64(y) - want) / one_rounding)[want != 0].max()
    print(f"{name:11} normalised: {off[name]:.2f} roundings from the norm of the stored total")
assert off["rounded sum"] < 1.01 < 1.2 < off["exact sum"]

# %% [markdown]
# The rounded sum stays within one rounding. The exact sum does not: it is the right norm of a row that nobody has. And a fused kernel that
# changes the bits cannot be switched on in a trained model without a question; one that does not, can.
#
# ## How many bytes does it save?
#
# 5 M N become 4 M N, so at best a fifth of the time. For M = N = 4096 in fp16: how many megabytes (10^6) by two kernels, and by one? Then
# choose "rms_norm, op by op" in the widget (which calls the residual `r` and the total `s`). It is the formula as you would type it in
# PyTorch: cast to fp32, square, mean, add eps, rsqrt, multiply, cast back, multiply by `w`. How many times the bytes of one kernel?
# *(Predict, then run.)*

# %%
bytes_moved(M=4096, N=4096, dtype="fp16")

# %%
from course_lib.lessons.bytes_moved.model import model

add = model("add", 4096, 4096, "fp16")
typed = model("eager", 4096, 4096, "fp16")
print(
    f"add, then norm: {add.unfused_bytes / 1e6:.0f} MB; in one kernel {add.fused_bytes / 1e6:.0f} MB, {add.ratio:.2f} of it"
)
print(f"op by op: {len(typed.unfused)} launches, {typed.unfused_bytes / typed.fused_bytes:.1f} times the bytes of one")
assert (round(add.unfused_bytes / 1e6), round(add.fused_bytes / 1e6), add.ratio) == (168, 134, 0.8)
assert add.unfused_bytes == 5 * 4096 * 4096 * 2 and add.fused_bytes == 4 * 4096 * 4096 * 2
assert len(typed.unfused) == 8 and round(typed.unfused_bytes / typed.fused_bytes, 1) == 9.0

# %% [markdown]
# 168 MB against 134, a fifth less. Op by op the norm alone is eight launches and nine times the bytes of one kernel. So most is won by
# having a norm kernel at all, and the fused addition comes on top.
#
# ## Is the time saved, too?
#
# Bytes asked for are not time. Lesson 06 said so, and here is the measurement: on this machine if it has a GPU, else on the one that the
# figure names. 1 is the time in which a plain elementwise pass moves 4 M N elements, 1.25 is that for 5 M N. Where do you expect the two
# kernels, and where the one? *(Predict, then run.)*

# %%
from course_lib.bench import forward

measured = forward.latest((1024, 4096, 8192, 16384))
fused_rows = [row for row in measured.rows if row["op"] == "add_rms_norm"]
picture(
    lesson07.fused_cost(fused_rows, measured.label()),
    alt="Time of the residual addition and RMSNorm, in one kernel and in two, over the time of an elementwise pass that moves 4 M N "
    f"elements, by row length. {measured.label()}. The next cell prints the numbers.",
)

# %%
us = {(row["op"], row["provider"], row["N"]): row["us"] for row in measured.rows}
lengths = sorted({row["N"] for row in fused_rows})
print(measured.label(), "\n     N   one kernel us   two kernels us   two / one")
for N in lengths:
    one, two = us["add_rms_norm", "resident", N], us["add_rms_norm", "unfused", N]
    print(f"{N:6} {one:15.1f} {two:16.1f} {two / one:11.2f}")

long = [N for N in lengths if N >= 4096]
assert long and sum(us["add_rms_norm", "resident", N] for N in long) < sum(
    us["add_rms_norm", "unfused", N] for N in long
)

# %% [markdown]
# Over the rows of 4096 columns and more, one kernel takes less time than two. How near is the last column to 1.25? Below it, part of
# `total` was still in a cache when the second kernel read it. Above it, bytes are no explanation: two launches start, fill and drain the
# GPU twice.
#
# ### And RMSNorm against LayerNorm?
#
# RMSNorm needs one sum instead of two, and no subtraction. Here are the two resident kernels. How much faster is RMSNorm? Think of the
# bytes before you answer. *(Predict, then run.)*

# %%
print(measured.label(), "\n     N   LayerNorm us   RMSNorm us   RMSNorm / LayerNorm")
for N in lengths:
    layer, rms = us["layer_norm", "resident", N], us["rms_norm", "resident", N]
    print(f"{N:6} {layer:14.1f} {rms:12.1f} {rms / layer:15.2f}")
totals = {op: sum(us[op, "resident", N] for N in lengths) for op in ("layer_norm", "rms_norm")}
print(f"all together: {totals['rms_norm'] / totals['layer_norm']:.2f}")
assert totals["rms_norm"] < 1.1 * totals["layer_norm"]

# %% [markdown]
# Both read `x` once and write `y` once. Where a kernel waits for memory, arithmetic that it does in the meantime is free, and leaving it
# out gains nothing. Where the ratio is well below 1, something other than bytes was in LayerNorm's way. Look at the long rows first: it
# has two `tl.sum`, one after the other, and each waits for every lane of the row.
#
# Typed op by op, each step that RMSNorm leaves out is a sweep over memory saved. In one kernel it is a little arithmetic in the lanes.
#
# ## Exercise 07b: residual addition and RMSNorm
#
# From the point where `total` is in the lanes, it is 07a. Four matrices, four strides.

# %%
exercise("07b")

# %% [markdown]
# ## Summary
#
# - A padded lane holds 0 and adds nothing to a sum of squares. Divide by N all the same: by BLOCK, `y` is off by `sqrt(BLOCK / N)`.
# - A wrong place of eps shows in the saved `rstd` even where `y` is right. Test what you save.
# - Squares leave fp16 from 256 on, and one of them makes the row 0. fp32 at the load.
# - Fused with the addition: 4 M N instead of 5 M N. Store the total, and normalise the *rounded* one: then the bits are those of two
#   kernels.
#
# After each pass the panel tells you what the bug you avoided did elsewhere.
#
# **Where to read on**
#
# - Zhang and Sennrich 2019, "Root Mean Square Layer Normalization": the paper, and why the shift may go.
# - The blog post "Triton Kernels - RMS Norm": two phases, drawn step by step. Read it with the two errata of lesson 01 at hand.
# - Liger-Kernel's fused add and RMSNorm, and flash-attention's Triton norm: both round the sum first.
# - `course_lib/kernels/rms_norm.py`: blocked, resident and fused as the course ships them. After the exercises.
#
# **Next: lesson 08, backward: dx.** You have saved `rstd`. There you find out what for, and which term of the gradient people leave out.
