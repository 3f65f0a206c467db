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
# # 02 RMSNorm: a number that silences a thousand
#
# A row has 1000 numbers, and one of them is 300. A kernel normalises the row and stores a thousand
# zeros: no error, no warning, no NaN. On the same row in fp32 the same kernel is right. Which of
# its five lines does it, and how small must the 300 be to do no harm?
#
# *About 40 minutes, exercises included. Needs: lesson 01.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("02")

# %%
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    squares = x * x
    total = tl.sum(squares.to(tl.float32), axis=0)
    rms = tl.sqrt(total / N)
    tl.store(y_ptr + cols, x / rms, mask=mask)


# %%
def rms_normalise(row, dtype=torch.float32):
    x = torch.tensor([float(v) for v in row], dtype=dtype, device=course_lib.DEVICE)
    y = torch.empty_like(x)
    rms_kernel[(1,)](x, y, len(x), BLOCK=triton.next_power_of_2(len(x)))
    return y


row = torch.randn(1000, generator=torch.Generator().manual_seed(0))
row[7] = 300
for dtype in (torch.float32, torch.float16):
    y = rms_normalise(row, dtype)
    print(dtype, y[6:9].tolist(), "and", torch.count_nonzero(y).item(), "of 1000 are not 0")

# %% tags=["check"]
from course_lib.lessons.prediction import find
from course_lib.norms import reference

with np.errstate(over="ignore"):
    silent = rms_normalise(row, torch.float16)
assert (silent == 0).all() and torch.isfinite(row.half()).all()
single = rms_normalise(row)
assert np.allclose(reference.float64(single), reference.rms_norm(row[None], eps=0).y[0], rtol=1e-5)
assert rms_normalise([1, 1, 1, 1, 4]).tolist() == [0.5, 0.5, 0.5, 0.5, 2]

# %% [markdown]
# The kernel divides each number by the **root mean square** of the row, or rms: the root of the
# mean of the squares. The row itself fits into fp16, whose largest number is 65504. Sum, root and
# division are in fp32. Before you look inside the kernel:

# %%
from course_lib.lessons import predict, step

predict("02-limit")

# %% tags=["check"]
with np.errstate(over="ignore"):
    for N in (8, 1000, 100_000):
        for loud, kept in ((255, True), (255.5, True), (256, False), (300, False)):
            long_row = torch.ones(N)
            long_row[0] = loud
            assert (rms_normalise(long_row, torch.float16) != 0).all() == kept, (N, loud)
    every = np.arange(0x7C00, dtype=np.uint16).view(np.float16)  # every finite fp16 number from 0 up
    assert every[np.isfinite(every * every)].max() == 255.875
assert every[np.isfinite(every)].max() == 65504
assert 300**2 == 90000 > 65504
assert find("02-limit").answer == "256, in a row of any length" and round(65504**0.5 * 1000**0.5, -2) == 8100

# %% [markdown]
# Here are seven numbers in eight lanes. Three things to do:
#
# 1. Step through the kernel. In which box does it go wrong, and what does the 2 of column 0 become?
# 2. Go back to the first step, and drag the 300 down until the squares are finite.
# 3. Reset, and choose fp32.

# %%
from course_lib.lessons import block_stepper

loud = [[2, -1, 3, 0.5, -0.5, 1.5, 300]]
block_stepper("rms_norm", loud, block=8, one_block=True, eps=0, dtype="fp16")

# %% [markdown]
# 300 squared is 90000, and that is infinity in fp16. From then on no operation is wrong: the sum is
# infinite, the rms is infinite, and a finite number divided by infinity is 0. So no NaN appears,
# and a test that looks for NaN passes.
#
# bf16 has the range of fp32, but few digits: 256 + 1 is 256 there, so a long sum stops growing. One
# rule helps with both: **fp32 at the load, one rounding at the store.** `.to(tl.float32)` after
# `tl.load` does the first. `.to(y_ptr.dtype.element_ty)` before `tl.store` does the second: it is
# the dtype that `y_ptr` points to.

# %% tags=["check"]
assert torch.tensor(256.0).bfloat16() + 1 == 256


# %% tags=["step"]
@triton.jit
def square_scale_kernel(x_ptr, w_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    # BEGIN SOLUTION
    #: 300 * 300 * 0.001 is 90. In fp16 the result is infinity. Convert early enough.
    #| x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    #| w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # END SOLUTION
    y = x * x * w
    tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


step("02-half")

# %% [markdown]
# ## What is RMSNorm?
#
# The norm of [T5](https://arxiv.org/abs/1910.10683) (2019) and
# [Llama](https://arxiv.org/abs/2302.13971) (2023): the kernel above, with eps and with a weight `w`
# for each column.
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\frac{1}{N}\sum_j x_j^2 + \mathrm{eps}}} \qquad y_j = x_j \cdot \mathrm{rstd} \cdot w_j$$
#
# LayerNorm's mean and its bias `b` are left out. So no lane subtracts a mean from the 0 that it
# holds past the end of the row, and the kernel needs no `tl.where`: in the picture lane 7 adds 0.
#
# But divide by N, not by BLOCK. With 1025 columns in a block of 2048 the mean square would be half
# as large, and the results 1.41 times as large. At N = 1000 in a block of 1024 they are 1.2 % too
# large, and at N = 1024 nothing is wrong.


# %% tags=["check"]
@triton.jit
def by_block_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + cols, x * tl.rsqrt(tl.sum(x * x, axis=0) / BLOCK), mask=cols < N)


factors = {}
for N in (1000, 1024, 1025):
    some_row = np.random.default_rng(N).standard_normal((1, N)).astype(np.float32)
    y = torch.empty(N, device=course_lib.DEVICE)
    by_block_kernel[(1,)](torch.tensor(some_row, device=course_lib.DEVICE), y, N, BLOCK=triton.next_power_of_2(N))
    factors[N] = float(np.median(reference.float64(y) / reference.rms_norm(some_row, eps=0).y[0]))
    assert np.isclose(factors[N], (triton.next_power_of_2(N) / N) ** 0.5, rtol=1e-4)
assert abs(factors[1025] - 1.41) < 5e-3 and abs(factors[1024] - 1) < 1e-4
assert round(100 * (factors[1000] - 1), 1) == 1.2

# %% [markdown]
# ## What does it cost to leave the mean in?
#
# LayerNorm gives 1 2 6 and 101 102 106 the same result. RMSNorm does not.

# %%
from course_lib.norms import reference

rows = [[1, 2, 6], [101, 102, 106]]
print("RMSNorm  ", *(rms_normalise(some_row).cpu().numpy().round(2) for some_row in rows))
print("LayerNorm", *reference.layer_norm(rows).y.round(2))

# %% [markdown]
# The rms of 101 102 106 is 103, so all three results are near 1: what set the columns apart is
# nearly gone. Zhang and Sennrich, who proposed RMSNorm, [report](https://arxiv.org/abs/1910.07467)
# (2019) that their models trained as well without subtracting the mean, and faster. At each norm of
# the language model of lesson 14, |mean|/std is at most {{typical}} for half of the rows. For such
# rows the two norms give nearly the same.

# %% tags=["check"]
first, second = (rms_normalise(some_row).cpu().numpy().round(2) for some_row in rows)
assert np.allclose(first, [0.27, 0.54, 1.62]) and np.allclose(second, [0.98, 0.99, 1.03])
layer = reference.layer_norm(rows).y
assert round(np.mean(np.square([101, 102, 106])) ** 0.5) == 103
assert np.allclose(layer[0], layer[1], atol=1e-5)

# %% [markdown]
# ## How do you check a norm without another norm?
#
# Suppose that you have nothing to compare your kernel with. One property of a right result you know:
# its mean square is 1. (That holds before `w` is applied, for rows whose squares are large beside
# eps.) Write a function that finds the mean square of each row of a NumPy array.


# %% tags=["step"]
def mean_squares(y):
    # BEGIN SOLUTION
    #: For y of shape (M, N): the mean square of each row, an array of M numbers.
    result = (y * y).mean(axis=1)
    # END SOLUTION
    return result


step("02-check")

# %% [markdown]
# The property has to be worth something, so try it on kernels that are wrong.

# %%
predict("02-passes")

# %% tags=["answer"]
x = np.random.default_rng(0).normal(0.5, 3.0, (4, 1024))
square = (x * x).mean(axis=1, keepdims=True)
wrong = {
    "without the root": x / square,
    "|x| in the place of x": np.abs(x) / np.sqrt(square),
    "each row stored backwards": (x / np.sqrt(square))[:, ::-1],
    "every program takes row 0": np.tile(x[:1] / np.sqrt(square[:1]), (4, 1)),
    "divides by BLOCK": x / np.sqrt(square * 1024 / 1024),
}
for name, y in wrong.items():
    print(f"{name:26}", (y * y).mean(axis=1).round(3))

# %% tags=["check"]
off = {name: abs((y * y).mean(axis=1) - 1).max() for name, y in wrong.items()}
passing = [name for name in off if off[name] < 1e-6]
assert len(passing) == find("02-passes").answer == 4 and off["without the root"] > 0.5
assert abs(factors[1024] - 1) < 1e-4 and round(factors[1000] ** 2, 3) == 1.024
assert np.isclose((rms_normalise([1, 1, 1, 1, 4]) ** 2).mean().item(), 1)
assert np.isclose(((np.array([1, 1, 1, 1, 4]) / (20 / 8) ** 0.5) ** 2).mean(), 8 / 5)

# %% [markdown]
# ## Where is eps added?
#
# [A blog post](https://www.kapilsharma.dev/posts/triton-kernels-rms-norm) (read in November 2026)
# has RMSNorm in two ways. Its text computes `1 / (rms + eps)`. Its full kernel computes `1 /
# sqrt(mean square + eps)`, as PyTorch does and as the formula above. Both avoid a division by zero.
# Take eps = 1e-5, and a quiet row, whose rms is 0.001.

# %%
predict("02-eps")

# %% tags=["answer"]
from course_lib.lessons.lesson02 import figures

figures.small_rows(eps=1e-5)

# %% tags=["check"]
ratio = {}
for rms in (1, 1e-3, 1e-4):
    quiet = rms * np.array([[1.0, -1, 1, -1]])
    inside, outside = quiet / np.sqrt(rms**2 + 1e-5), quiet / (rms + 1e-5)
    by_torch = torch.nn.functional.rms_norm(torch.from_numpy(quiet), (4,), eps=1e-5).numpy()
    assert np.allclose(inside, by_torch, rtol=1e-12, atol=0) and np.allclose(
        reference.rms_norm(quiet).y, by_torch, rtol=1e-12
    )
    ratio[rms] = (outside / inside).max()
assert abs(ratio[1] - 1) < 1e-5 and 3.2 < ratio[1e-3] < 3.4 and 28 < ratio[1e-4] < 30
assert find("02-eps").answer == "3 times as large"

# %% [markdown]
# ### Find a row that shows the difference
#
# On most rows the two formulas agree. Choose four numbers for which the two results differ by a
# factor of 2 or more.

# %% tags=["step"]
# BEGIN SOLUTION
#: row: four numbers. The step computes both results, with eps = 1e-5.
#| row = [2, -1, 3, 0.5]
row = [0.001, -0.001, 0.001, 0.001]
# END SOLUTION

step("02-quiet")

# %% [markdown]
# ## RMSNorm in PyTorch operations
#
# Now write it. The statistics belong to the last dimension, as in 01a. `x` and `w` may have
# different dtypes: an fp16 tensor times an fp32 tensor is fp32, so the result is converted once, at
# the end. (Llama's own code rounds before `w`, too. In bf16 a quarter of the results then differ in
# the last digit.)

# %% tags=["check"]
assert (torch.ones(2).half() * torch.ones(2)).dtype == torch.float32 and round(1e-5**0.5, 3) == 0.003
drawn = torch.Generator().manual_seed(1)
x16, w16 = (torch.randn(shape, generator=drawn).bfloat16() for shape in ((64, 1024), (1024,)))
xhat = x16.float() * torch.rsqrt((x16.float() ** 2).mean(-1, keepdim=True) + 1e-5)
assert 0.2 < ((xhat * w16).bfloat16() != xhat.bfloat16() * w16).float().mean() < 0.3

# %%
from course_lib import exercise

exercise("02a")

# %% [markdown]
# ## One number for each row
#
# Training needs `rstd` again, in the backward pass. So the kernel saves it: one number for each
# row. Practise such a store with another number of a row: its largest absolute value. `tl.abs` and
# `tl.max` find it, and `tl.store` also takes one address and one number.


# %% tags=["step"]
@triton.jit
def peak_kernel(x_ptr, peak_ptr, stride_x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    # BEGIN SOLUTION
    #: peak: the largest |x| of this row. Store it as element `row`.
    peak = tl.max(tl.abs(x), axis=0)
    tl.store(peak_ptr + row, peak)
    # END SOLUTION


step("02-save")

# %% [markdown]
# How large may `rstd` become? Take a row that is nearly empty, such as padding with one number in
# it.

# %%
predict("02-push")

# %% tags=["answer"]
print(reference.rms_norm([[0, 0, 0, 0, 0, 0, 0, 0.001]], eps=1e-5).y.round(2))

# %% [markdown]
# On a row of zeros `y` is 0, wherever eps stands. But with eps = 1e-5 `rstd` is 316 if eps is
# inside the root, and 100,000 if it is outside. So a test has to check the saved `rstd`, too.

# %% tags=["check"]
zeros = reference.rms_norm(np.zeros((1, 8)), eps=1e-5)
assert (zeros.y == 0).all() and round(zeros.rstd[0]) == 316 and round(1 / (0 + 1e-5)) == 100_000
pushed = np.array([[0.0] * 7 + [0.001]])
results = {how: pushed[0, -1] / divisor for how, divisor in {
    "inside": ((pushed**2).mean() + 1e-5) ** 0.5, "outside": (pushed**2).mean() ** 0.5 + 1e-5,
    "none": (pushed**2).mean() ** 0.5}.items()}  # fmt: skip
assert np.isclose(results["inside"], reference.rms_norm(pushed, eps=1e-5).y[0, -1])
assert [round(value, 2) for value in results.values()] == [0.31, 2.75, 2.83] and round(8**0.5, 2) == 2.83
assert find("02-push").answer == "0.31" and round(1e-5 / (pushed**2).mean()) == 80

# %% [markdown]
# ## Your RMSNorm kernel
#
# Put it together: one program for each row, `w` in a dtype of its own, `rstd` saved. Decide two
# things before you type: which number do you divide by, and where does eps go? The exercise gives
# you `row` with 64 bits, because `row * stride_x` may be a large number; lesson 05 shows how large.

# %%
exercise("02b")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("01b")

# %% [markdown] tags=["dive"]
# ## Dive: which eps does PyTorch take?
#
# `torch.nn.functional.layer_norm` takes 1e-5 if you name none. `rms_norm` takes a machine epsilon,
# and on a quiet row the result is more than twice as large. (The machine epsilon of a dtype is the
# distance from 1 to the next number.) Of which dtype is it? Until [January
# 2026](https://github.com/pytorch/pytorch/pull/173039) PyTorch's manual said: of the dtype of x.
# Try it with fp16, where the epsilon is 0.00098.

# %%
quiet = torch.tensor([[1e-3, 2e-3, -1e-3, 5e-4]])
for eps in (None, 1e-5):
    print("fp32, eps", eps, torch.nn.functional.rms_norm(quiet, (4,), eps=eps))
for eps in (None, torch.finfo(torch.float16).eps, torch.finfo(torch.float32).eps):
    print("fp16, eps", eps, torch.nn.functional.rms_norm(quiet.half(), (4,), eps=eps))

# %% tags=["check"]
unnamed, machine, usual = (
    torch.nn.functional.rms_norm(quiet, (4,), eps=e) for e in (None, torch.finfo(torch.float32).eps, 1e-5)
)
assert (
    torch.equal(unnamed, machine)
    and unnamed[0, 0] > 2 * usual[0, 0]
    and round(torch.finfo(torch.float32).eps, 8) == 1.2e-7
)
told = "fp16/bf16 and fp32 inputs use ``torch.finfo(torch.float32).eps``"
assert told in torch.nn.RMSNorm.__doc__ or not torch.__version__.startswith("2.13.")
assert round(torch.finfo(torch.float16).eps, 5) == 0.00098
for dtype in (torch.float16, torch.bfloat16):  # on a CPU
    unnamed, single = (
        torch.nn.functional.rms_norm(quiet.to(dtype), (4,), eps=e) for e in (None, torch.finfo(torch.float32).eps)
    )
    assert torch.equal(unnamed, single)
named = torch.nn.functional.layer_norm(quiet, (4,), eps=1e-5)
assert torch.equal(torch.nn.functional.layer_norm(quiet, (4,)), named)

# %% [markdown]
# PyTorch 2.13 on a CPU takes the 1.2e-7 of fp32 for fp16, too, because it computes in fp32. [Its
# manual](https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html) now says so. The
# configuration of a model names its eps. Pass that to the norm, and you need not know any of this.

# %% [markdown]
# ## Without rails
#
# An optional task. 02b holds a whole row in its lanes, so its longest row is its BLOCK. Some rows
# are longer than a block that a program can hold: the kernel needs a loop. Lesson 05 shows loops in
# kernels, so you may do this task after it. The file says what has to come out, and not how. The
# task gives no points.

# %%
exercise("02c")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("02")

# %% [markdown]
# **Where to read on**
#
# - Zhang and Sennrich 2019, [Root Mean Square Layer
#   Normalization](https://arxiv.org/abs/1910.07467): why the mean may stay in.
# - PyTorch's [RMSNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html): look
#   for the default of eps.
# - The [blog post](https://www.kapilsharma.dev/posts/triton-kernels-rms-norm), whose pictures step
#   through a kernel. Look for its two places of eps.
#
# **Next:** lesson 03, large means. The kernel of lesson 01 is correct, and it meets a row whose
# variance it cannot find.

# %% tags=["values"]
from course_lib.lessons.figures.norm_inputs import TRAINED, read_norm_inputs

values = {"typical": f"{max(norm.mean_over_std[3] for norm in read_norm_inputs().of(TRAINED)):.2f}"}
