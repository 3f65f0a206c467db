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
# # 07 LayerNorm for any row
#
# Your first LayerNorm kernel, of lesson 01, is right for every row that you gave it. Here it meets four rows that break it: one too long,
# one cut out of a wider matrix, one in half precision, and one far from the start of its tensor. You see each of them fail, and mend it in
# about two minutes. Then you write the kernel that takes any row.
#
# *About 40 minutes, the exercise included. Needs: lessons 05 and 06.*

# %%
import course_lib

# %%
import torch
import triton
import triton.language as tl


@triton.jit
def one_block_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    deviation = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / N + eps)
    tl.store(y_ptr + cols, deviation * rstd, mask=mask)


# %% [markdown]
# This is the kernel of exercise 01b for a single row, without `w` and `b`. The row is `8 11 12 9 10`. The mean is 10, the variance 2.

# %%
DEVICE = course_lib.DEVICE


def normalise(row, BLOCK, dtype=torch.float32):
    x = torch.tensor(row, dtype=dtype, device=DEVICE)
    y = torch.full_like(x, float("nan"))
    one_block_kernel[(1,)](x, y, len(row), 1e-5, BLOCK=BLOCK)
    return [round(value, 3) + 0.0 for value in y.tolist()]  # + 0.0 makes 0.0 of a GPU's -0.0


print(normalise([8, 11, 12, 9, 10], BLOCK=8))

# %% tags=["check"]
import numpy as np

from course_lib.lessons.prediction import find
from course_lib.norms import reference

five = [8, 11, 12, 9, 10]
assert np.mean(five) == 10 and np.var(five) == 2
assert np.allclose(normalise(five, BLOCK=8), reference.layer_norm([five]).y[0], atol=1e-3)

# %% [markdown]
# ## What if the row is longer than the block?

# %%
from course_lib.lessons import predict, step

predict("07-longer")

# %% tags=["answer"]
print(normalise([8, 11, 12, 9, 10], BLOCK=4))

# %% tags=["check"]
short = np.array(normalise(five, BLOCK=4))
assert not np.isclose(short, reference.layer_norm([five]).y[0], atol=0.1).any() and np.isnan(short[4])
assert sum(five[:4]) / 5 == 8 and find("07-longer").answer == "none"

# %% [markdown]
# A larger BLOCK would do here. But a block has a largest size, and a row has none. So let the block walk along the row, as in lesson 05: a
# loop takes BLOCK columns at a time, each lane keeps a sum of its own, and `tl.sum` adds up the lanes once, after the loop.
#
# Lesson 05 needed two such loops, one for the mean and one for the variance. `y` needs a third. When the mean and `rstd` are known, the
# first columns have long left the lanes, so the program reads the row once more.
#
# Step through the three loops below. In the second one the mistake of lesson 01 is back: the box *mask the deviation* is off. At which step
# do you see the first wrong number? Then tick the box.

# %%
from course_lib.lessons import block_stepper

pair = [[8, 11, 12, 9, 10], [-2, 1, 2, -1, 0]]
block_stepper(kind="layer_norm", x=pair, block=4, mask_deviation=False)

# %% tags=["check"]
from course_lib.lessons.pictures.block_stepper.model import steps

spread = {}
for masked in (False, True):
    spread[masked] = [state.spread for state in steps(pair, 4, "layer_norm", mask_deviation=masked)[-1].rows]
assert spread == {False: [62, 2], True: [2, 2]}

# %% [markdown]
# Three lanes of the second block lie past column 4. They loaded 0, they hold 0 - 10 after the subtraction, and each adds 100 to a sum that
# should be 10. Program 1 has the same deviations around the mean 0. With the same mistake its variance is right: try it.
#
# How many lanes are padded depends on BLOCK. BLOCK is a setting of the launch, and people change it to make a kernel faster. Does that
# change the result?

# %%
predict("07-block")

# %% tags=["answer"]
from course_lib.lessons.figures import lesson07

lesson07.show_padded_variance()


# %% tags=["check"]
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
        deviation = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0) - mean
        squares += deviation * deviation
    tl.store(var_ptr + row, tl.sum(squares, axis=0) / N)


def measure_variance(x: np.ndarray, BLOCK: int) -> np.ndarray:
    M, N = x.shape
    var = torch.empty(M, device=DEVICE)
    unmasked_variance_kernel[(M,)](torch.tensor(x, dtype=torch.float32, device=DEVICE), var, N, BLOCK=BLOCK)
    return reference.float64(var)


means, pad = np.arange(11), -1000 % 64
assert pad == 24 and -1000 % 8 == 0
for block, law in ((8, np.ones(11)), (64, 1 + pad * means**2 / 1000)):
    assert np.allclose(measure_variance(lesson07.make_rows(), block), law, rtol=1e-4)
    assert np.allclose(lesson07.find_unmasked_variance(lesson07.make_rows(), block), law, rtol=1e-9)
assert find("07-block").is_expected(law[10]) and round(law[10], 2) == find("07-block").answer
for N, mean, passes in ((1024, 10.0, True), (1000, 0.0, True), (1000, 10.0, False)):
    x = mean + np.random.default_rng(2).standard_normal((4, N))
    assert np.allclose(measure_variance(x, BLOCK=64), x.var(axis=1), rtol=1e-2) == passes

# %% [markdown]
# So a test with N = 1024 finds nothing, and neither does a test with mean 0. A test needs both: an N that BLOCK does not divide, such as
# 1000, and a mean away from 0, such as 10.
#
# **Your step.** `mean` and `rstd` are given. Write the body of the third loop.


# %% tags=["step"]
@triton.jit
def normalise_kernel(x_ptr, y_ptr, mean, rstd, N, BLOCK: tl.constexpr):
    for start in range(0, N, BLOCK):
        # BEGIN SOLUTION
        #: One block of the row: load, normalise, store.
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + cols, (x - mean) * rstd, mask=cols < N)
        # END SOLUTION


step("07-loop")

# %% [markdown]
# ## Where does row 1 begin?
#
# In exercise 01b you used two strides, because the file gave you two. `x` and `y` have the same shape. Would one stride do? Here is a
# kernel with one. It copies rows, so that each number tells where it comes from: `x[r, c]` is `10 r + c`.


# %%
@triton.jit
def one_stride_kernel(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < N)
    tl.store(y_ptr + row * stride + cols, x, mask=cols < N)


# %%
wide = 10.0 * torch.arange(3, device=DEVICE)[:, None] + torch.arange(6, device=DEVICE)
x = wide[:, :4]  # the first four columns: nothing is copied
memory = torch.full((18,), float("nan"), device=DEVICE)
y = memory[:12].view(3, 4)  # the first twelve elements, as three rows of four
print("elements from one row to the next: x", x.stride(0), "and y", y.stride(0))

# %%
predict("07-stride")

# %% tags=["answer"]
one_stride_kernel[(3,)](x, y, x.stride(0), 4, BLOCK=4)
print(y.cpu().numpy())
print("behind y:", memory[12:].tolist())

# %% tags=["check"]
memory.fill_(float("nan"))
one_stride_kernel[(3,)](x, y, x.stride(0), 4, BLOCK=4)
assert (y == x).nonzero().tolist() == [list(cell) for cell in find("07-stride").answer]
assert memory[12:16].tolist() == x[2].tolist() and memory[16:].isnan().all()
packed, out = x.contiguous(), torch.empty(3, 4, device=DEVICE)
one_stride_kernel[(3,)](packed, out, packed.stride(0), 4, BLOCK=4)
assert torch.equal(out, packed)

# %% [markdown]
# Two tensors of one shape can lie in memory in two ways, and the shape does not say how. `x.stride(0)` does.
#
# **Your step.** This kernel assumes packed rows, in both tensors. Make it right for any two strides.


# %% tags=["step"]
@triton.jit
def copy_kernel(x_ptr, y_ptr, stride_x, stride_y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: Move each pointer to the start of its own row.
    #| x_ptr += row * N
    #| y_ptr += row * N
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    # END SOLUTION
    x = tl.load(x_ptr + cols, mask=cols < N)
    tl.store(y_ptr + cols, x, mask=cols < N)


step("07-strides")

# %% [markdown]
# ## What does half precision hold?
#
# Models keep `x` in fp16 or bf16, because that halves the bytes. fp16 has 11 significant bits, and its largest number is 65504.

# %%
predict("07-2048")

# %% tags=["answer"]
print(torch.tensor(2048.0).half() + torch.tensor(1.0).half())

# %% [markdown]
# `tl.load` gives you what `x_ptr` points at. If that is fp16, `x` is a block of fp16 numbers, and `tl.sum` adds them in fp16.

# %%
predict("07-large")

# %% tags=["answer"]
row = [9984, 10000, 10016, 10000, 9984, 10000, 10016, 10000]
print("fp16:", normalise(row, BLOCK=8, dtype=torch.float16))
print("fp32:", normalise(row, BLOCK=8))

# %% tags=["check"]
assert (torch.tensor(2048.0).half() + torch.tensor(1.0).half()).item() == find("07-2048").answer
assert torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.float16).eps == 2.0**-10  # 11 bits
row = [9984, 10000, 10016, 10000, 9984, 10000, 10016, 10000]
assert torch.tensor(row).half().tolist() == row and sum(row) == 80000 and sum(row) / 8 == 10000
assert np.isnan(normalise(row, BLOCK=8, dtype=torch.float16)).all() and find("07-large").answer == "NaN eight times"
assert np.allclose(normalise(row, BLOCK=8), reference.layer_norm([row]).y[0], atol=1e-3)

# %% [markdown]
# The rule has two halves:
#
# - **fp32 at the load.** `.to(tl.float32)` stands right behind every `tl.load`, of `x`, `w` and `b`.
# - **One rounding at the store.** Everything between is fp32. `y.to(y_ptr.dtype.element_ty)` rounds once, to the dtype that `y_ptr` points
#   at. (`tl.store` would convert anyway. Written out, the line says where digits are lost.)
#
# `mean` and `rstd` are stored in fp32, whatever `x` is: they are one number per row, and every gradient of the row needs them.
#
# **Your step.** Make the kernel compute in fp32, whatever it is given.


# %% tags=["step"]
@triton.jit
def norm_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    # BEGIN SOLUTION
    #: Compute in fp32, whatever x_ptr points at.
    #| x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # END SOLUTION
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / N + eps)
    tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


step("07-half")

# %% [markdown]
# ## How far do 32 bits reach?
#
# `tl.program_id(0)` is a 32-bit integer. So is a stride below 2³¹. What is their product? You need no large memory to find out: this kernel
# stores where each row would begin, and loads nothing from there.


# %%
@triton.jit
def where_kernel(where_ptr, stride):
    row = tl.program_id(0)
    tl.store(where_ptr + row, (row * stride).to(tl.int64))


# %%
predict("07-row-2")

# %% tags=["answer"]
where = torch.empty(4, dtype=torch.int64, device=DEVICE)
where_kernel[(4,)](where, 2**30)
print(where.tolist())

# %%
predict("07-first-wrong")

# %% tags=["check"]
where = torch.empty(4, dtype=torch.int64, device=DEVICE)
where_kernel[(4,)](where, 2**30)
assert where.tolist() == [0, 2**30, -(2**31), -(2**30)] and "in front" in find("07-row-2").answer
first = find("07-first-wrong").answer
assert (first - 1) * 65536 < 2**31 == first * 65536 and (first + 1) * 65536 * 2 / 2**30 < 4.001

# %% [markdown]
# This cast is forgotten often. PyTorch's own LayerNorm gave wrong results
# [beyond 2³² elements](https://github.com/pytorch/pytorch/issues/181555) (April 2026). Liger-Kernel widened its row numbers in
# [pull request 804](https://github.com/linkedin/Liger-Kernel/pull/804), and had the same mistake in another kernel in
# [September 2026](https://github.com/linkedin/Liger-Kernel/issues/1483).
#
# **Your step.** In this kernel the cast comes too late. Move it.


# %% tags=["step"]
@triton.jit
def offset_kernel(offset_ptr, stride):
    row = tl.program_id(0)
    # BEGIN SOLUTION
    #: Where does this row begin? It has to be right beyond 2^31.
    #| offset = (row * stride).to(tl.int64)
    offset = row.to(tl.int64) * stride
    # END SOLUTION
    tl.store(offset_ptr + row, offset)


step("07-far")

# %% [markdown]
# ## Your turn: LayerNorm for any row
#
# You have every piece: three loops, a mask at the load and again after the subtraction, two strides, fp32 at the load, 64 bits before the
# product. `w` and `b` are loaded in the third loop, by column. Save `mean` and `rstd`, one number per row.

# %%
from course_lib import exercise

exercise("07a")

# %% [markdown]
# ## Which reads and writes does such a kernel ask for?

# %%
predict("07-asks")

# %% [markdown]
# The map below runs the course's kernel once, and records every access. Each row of it is a program, and each strip a pass over a tensor.
# Step through program 1. Where does it jump back to the start of its row? Which lanes are masked? When 07a passes, choose *yours, 07a* and
# press **Run it**.

# %% tags=["answer"]
from course_lib.lessons.pictures.access_map.forward import forward_map

forward_map("blocked", "yours, 07a")

# %% tags=["check"]
from course_lib.kernels.layer_norm import layer_norm_blocked_kernel
from course_lib.lessons.pictures.access_map.model import model
from course_lib.lessons.pictures.access_map.run import record

M, N = 4, 100
x, y = torch.randn(M, N).half(), torch.empty(M, N).half()
tensors = (x, y, torch.ones(N), torch.zeros(N), torch.empty(M), torch.empty(M))
constants = {"HAS_W": True, "HAS_B": True, "BLOCK": 64}
asked = model(record(layer_norm_blocked_kernel, (M,), (*tensors, N, 1, N, 1, N, 1e-5), constants))
assert asked.times("w", "read") == find("07-asks").answer == M
assert (asked.times("x", "read"), asked.times("y", "write")) == (3, 1)
assert asked.bytes("x") + asked.bytes("y") == 4 * M * N * 2

# %% [markdown]
# The kernel asks for `x` three times and writes `y` once: 4 M N elements. Nothing can normalise a matrix with less than one read and one
# write, 2 M N. So half of what you ask for could be saved, if the row stayed somewhere between the loops. Where could it stay? That is
# lesson 08.

# %% [markdown]
# ## Without rails
#
# An optional task. 07a reads x three times. Two reads are enough for any row, and cost no digits. The file says what is asked, and not which of the
# ways to a variance you take. Nobody asks for it, and it counts nowhere.

# %%
exercise("07b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("07")

# %% [markdown]
# **Where to read on**
#
# - [Layer Normalization](https://arxiv.org/abs/1607.06450) by Ba, Kiros and Hinton, 2016: the paper. Its formulas are your three loops.
# - Triton's tutorial [Layer Normalization](https://github.com/triton-lang/triton/blob/545699290b851e70231ee3017481851170f1583d/python/tutorials/05-layer-norm.py)
#   (as of commit 5456992): the same three loops. Find the two places where it would fail in this lesson. The first dive below names them.
# - `course_lib/kernels/layer_norm.py`: the course's kernel. It takes a column stride as well, for a transposed matrix.
#
# **Next:** lesson 08, where each row is read once.

# %% [markdown] tags=["dive"]
# ## Dive: one stride, and a gradient whose stride is 0
#
# > **ERRATUM** (Triton's tutorial, commit 5456992). It passes `x_arg.stride(0)` and uses it for `x`, `y`, `dy` and `dx`. Its row offsets
# > are 32-bit products.
#
# You need no sliced `x` to make one stride fail. In a backward pass `y.sum().backward()` is enough. The gradient of a sum is 1 for every
# element, and PyTorch does not write M N ones. It stores a single one, and strides that never move.

# %%
leaf, seen = torch.zeros(4, 8, requires_grad=True), []
y = leaf * 1
y.register_hook(lambda dy: seen.append((tuple(dy.shape), dy.stride())))
y.sum().backward()
print("shape and strides of dy:", *seen)

# %% tags=["check"]
assert seen == [((4, 8), (0, 0))]

# %% [markdown]
# Shape 4 x 8, strides 0 and 0: all 32 elements are the same one. A kernel that walks over it with `x`'s stride leaves the tensor at once.

# %% [markdown] tags=["dive"]
# ## Dive: what does an fp16 accumulator lose?
#
# A row with mean 8, N = 16384, BLOCK = 64: each lane adds about 8, 256 times, and its sum ends near 2048. There fp16 has only every second
# whole number. This kernel computes the mean with an accumulator of a dtype that you choose.


# %%
@triton.jit
def mean_kernel(x_ptr, mean_ptr, N, BLOCK: tl.constexpr, ACC: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK)).to(ACC)
    tl.store(mean_ptr, tl.sum(total.to(tl.float32), axis=0) / N)


# %%
noise = torch.randn(16384, generator=torch.Generator().manual_seed(0))
x_half, mean = (8 + 0.5 * noise).half().to(DEVICE), torch.empty(1, device=DEVICE)
shift = {}
for name, ACC in (("fp16", tl.float16), ("fp32", tl.float32)):
    mean_kernel[(1,)](x_half, mean, 16384, BLOCK=64, ACC=ACC)
    shift[name] = abs(mean.item() - x_half.double().mean().item()) / x_half.double().std().item()
    print(f"{name} accumulator: every y is shifted by {shift[name]:.1e}")
print("one rounding of a y near 1 to fp16: at most", 2.0**-11)

# %% tags=["check"]
assert 16384 // 64 == 256 and 256 * 8 == 2048
assert shift["fp16"] > 4 * 2.0**-11 and shift["fp32"] < 2.0**-11 / 100

# %% [markdown]
# The fp16 accumulator shifts the whole row in one direction, by several times what storing `y` in fp16 can cost an element.
