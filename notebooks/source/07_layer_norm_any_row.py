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
# The kernel below passes its test, and is wrong in four ways. A launch chooses how long the rows
# are, where they lie in memory, which numbers they hold, and how large the matrix is. For each of
# the four there is a choice with which the kernel is wrong. Find it before the page tells you why.
#
# *About 35 minutes, the exercise included. Needs: lessons 05 and 06.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("07")

# %%
import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, y_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    deviation = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / N + eps)
    tl.store(y_ptr + row * stride + cols, deviation * rstd, mask=mask)


# %%
def compare(x):
    M, N = x.shape
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(course_lib.DEVICE)
    x = whole.as_strided(x.shape, x.stride(), x.storage_offset())  # the same strides on a GPU
    memory = torch.full((M * max(N, x.stride(0)) + 8,), float("nan")).to(x)
    y = memory[: M * N].view(M, N)  # packed
    norm_kernel[(M,)](x, y, x.stride(0), N, 1e-5, BLOCK=8)
    right = torch.nn.functional.layer_norm(x.double(), (N,))
    for name, result in (("kernel", y.double()), ("right ", right)):
        print(name, [[round(v, 2) + 0.0 for v in row] for row in result.tolist()])


compare(torch.tensor([[8.0, 11, 12, 9, 10], [-2, 1, 2, -1, 0]]))

# %% tags=["check"]
import contextlib
import io
import math

import numpy as np

from course_lib.lessons.prediction import find
from course_lib.lessons.steps import find as find_step
from course_lib.norms import reference


def is_right(x) -> bool:
    """Return whether the page's own kernel is right on x: what the hunts' checks say without it."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        compare(x)
    kernel, right = (line[7:] for line in printed.getvalue().splitlines())
    numbers = [np.array(eval(line, {"nan": math.nan, "inf": math.inf})) for line in (kernel, right)]
    return bool(np.allclose(*numbers, atol=0.05))


assert is_right(torch.tensor([[8.0, 11, 12, 9, 10], [-2, 1, 2, -1, 0]]))

# %% [markdown]
# ## Hunt 1: how long?
#
# BLOCK is 8. **Your step:** choose N, the number of columns, from 1 to 32, so that the kernel is
# wrong.

# %%
from course_lib.lessons import predict, step

# %% tags=["step"]
# BEGIN SOLUTION
#: N: a number of columns with which the kernel is wrong.
#| N = 5
N = 9
# END SOLUTION

step("07-length")

# %% varies={"always": "it shows the input that the step before it chose"}
compare((3.0 * torch.arange(2 * N) % 7).reshape(2, N))

# %%
predict("07-nine")

# %% tags=["answer"]
eight = [-3.0, -1, 1, 3, -2, 2, -4, 4]
near_5 = [number + 5 for number in eight]
for numbers in ([*near_5, 0], [*near_5, 5], [*eight, 0]):
    compare(torch.tensor([numbers]))

# %% tags=["check"]
for columns in (1, 2, 5, 7, 8, 9, 10, 16, 32):
    x = (3.0 * torch.arange(2 * columns) % 7).reshape(2, columns)
    assert is_right(x) == bool(find_step("07-length").accepts(columns))

nine = (3.0 * torch.arange(9) % 7)[None].to(course_lib.DEVICE)
got, right = torch.full((1, 9), float("nan"), device=course_lib.DEVICE), torch.nn.functional.layer_norm(nine, (9,))
norm_kernel[(1,)](nine, got, 9, 9, 1e-5, BLOCK=8)
assert got[0, 8].isnan() and (abs(got - right)[0, :8] > 1e-2).all()
for front, last, finds in (
    (near_5, 0, False), (near_5, 5, False), (eight, 0, True), (eight, 1, False), (8 * [4.0], 0, False),
):  # fmt: skip
    row = torch.tensor([[*front, last]], device=course_lib.DEVICE)
    norm_kernel[(1,)](row, got, 9, 9, 1e-5, BLOCK=8)
    right = torch.nn.functional.layer_norm(row, (9,))
    assert torch.allclose(got[0, :8], right[0, :8], atol=1e-3) == finds
assert np.mean(near_5) == 5 and find("07-nine").answer.endswith("number and the mean are 0")

# %% [markdown]
# A block of Triton has at most 2²⁰ numbers, and a row may have more. So let the block walk along the
# row in a loop, as in lesson 05. By the time the program knows `mean` and `rstd`, the first columns
# have left the lanes, and it has to read them again.

# %% [markdown]
# Step through three loops: for the mean, for the variance, and for `y`. The second one has the
# mistake of lesson 01: the box *mask the deviation* is off. At which step do you see the first wrong
# number? Then tick the box.

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
# BLOCK is a setting of the launch, and people change it to make a kernel faster. Does it change the
# result?

# %%
predict("07-tuned")

# %% tags=["answer"]
from course_lib.lessons.lesson07 import figures

figures.show_unmasked_variance()


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
    var = torch.empty(M, device=course_lib.DEVICE)
    unmasked_variance_kernel[(M,)](torch.tensor(x, dtype=torch.float32, device=course_lib.DEVICE), var, N, BLOCK=BLOCK)
    return reference.float64(var)


means, pad = np.arange(11), -1000 % 64
assert pad == 24 and -1000 % 8 == 0
for block, law in ((8, np.ones(11)), (64, 1 + pad * means**2 / 1000)):
    assert np.allclose(measure_variance(figures.make_rows(), block), law, rtol=1e-4)
    assert np.allclose(figures.find_unmasked_variance(figures.make_rows(), block), law, rtol=1e-9)
assert round(law[5], 2) == 1.6 and find("07-tuned").answer == "1.6, as with 64"
assert np.allclose(measure_variance(figures.make_rows(), 512), law, rtol=1e-4)
assert triton.language.core.TRITON_MAX_TENSOR_NUMEL == 2**20
for N, mean, passes in ((1024, 10.0, True), (1000, 0.0, True), (1000, 10.0, False)):
    x = mean + np.random.default_rng(2).standard_normal((4, N))
    assert np.allclose(measure_variance(x, BLOCK=64), x.var(axis=1), rtol=1e-2) == passes

# %% [markdown]
# ## Hunt 2: where in memory?
#
# `x` has three rows of four numbers, and so has `y`. The rows of `y` lie one behind the other,
# without gaps. Make a tensor `x` of shape (3, 4) for which the kernel is wrong.


# %% tags=["step"]
import torch

# BEGIN SOLUTION
#: x: three rows of four numbers, made in one or two lines.
#| x = torch.arange(12.0).reshape(3, 4)
x = torch.arange(18.0).reshape(3, 6)[:, :4]
# END SOLUTION

step("07-layout")

# %% varies={"always": "it shows the input that the step before it chose"}
compare(x)

# %% tags=["check"]
accepts = find_step("07-layout").accepts
for tried in (
    torch.arange(12.0).reshape(3, 4), torch.arange(18.0).reshape(3, 6)[:, :4],
    torch.arange(24.0).reshape(6, 4)[::2],
    torch.arange(4.0).expand(3, 4), torch.arange(12.0).reshape(4, 3).t(),
    torch.arange(14.0)[2:].reshape(3, 4),
):  # fmt: skip
    assert is_right(tried) == bool(accepts(tried))

# %%
predict("07-empty-like")

# %% tags=["answer"]
x = torch.arange(18.0).reshape(3, 6)[:, :4]
print("strides of x:", x.stride(), "and of y:", torch.empty_like(x).stride())

# %% tags=["check"]
memory = torch.full((24,), float("nan"), device=course_lib.DEVICE)
x = (torch.arange(18.0, device=course_lib.DEVICE) ** 2).reshape(3, 6)[:, :4]
y = torch.empty_like(x)
assert (x.stride(), y.stride()) == ((6, 1), (4, 1))
assert torch.empty_like(torch.empty(4, 3).t()).stride() == (1, 3)  # no gaps: the strides are kept
norm_kernel[(3,)](x, memory, x.stride(0), 4, 1e-5, BLOCK=8)
in_y, right = memory[: y.numel()].view(3, 4).cpu(), torch.nn.functional.layer_norm(x, (4,)).cpu()
assert torch.isclose(in_y, right, atol=1e-3).all(1).tolist() == [True, False, False]
assert find("07-empty-like").answer == "row 0 alone" and not memory[12:16].isnan().any()  # row 2, behind y

# %% [markdown]
# So a kernel takes a stride for each tensor: `x_ptr += row * stride_x` and `y_ptr += row *
# stride_y`.
#
# ## Hunt 3: which numbers?
#
# Models keep `x` in fp16 or bf16, because that halves the bytes. If `x` is fp16, `tl.load` returns
# fp16 numbers, and the first `tl.sum` adds them in fp16. Choose eight numbers, each between -65504
# and 65504, on which the kernel is wrong.

# %% tags=["step"]
# BEGIN SOLUTION
#: row: eight numbers.
#| row = [8, 11, 12, 9, 10, 8, 12, 10]
row = [4100, 4096, 4096, 4096, 4096, 4096, 4096, 4096]
# END SOLUTION

step("07-half")

# %% varies={"always": "it shows the input that the step before it chose"}
compare(torch.tensor([row]).half())

# %% [markdown]
# In lesson 02 one number near 300 ruined a row: 90000, its square, is infinite in fp16. Here are
# eight of them, and the kernel is right. Triton divides fp16 numbers in fp32, so `mean` is fp32,
# and so are `x - mean` and its square.

# %%
compare(torch.tensor([[300, -300, 300, -300, 300, -300, 300, -300]]).half())

# %% tags=["check"]
accepts = find_step("07-half").accepts
for tried in (
    [8, 11, 12, 9, 10, 8, 12, 10], [300, -300] * 4, [2048, 2050] * 4, [4100] + 7 * [4096],
    [0.5, -0.5] * 4, [100, 900] * 4,
    [10000] * 8, [9984, 10000, 10016, 10000] * 2, [60000, -60000] * 4,
    [60000, 60000, -60000, -60000] * 2,
):  # fmt: skip
    assert is_right(torch.tensor([tried]).half()) == bool(accepts(tried)), tried
from course_lib.compiler import Pointer, compile_report


@triton.jit
def half_by_half_kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.static_assert(x.dtype == tl.float16)
    tl.static_assert((x * x).dtype == tl.float16)
    tl.static_assert((x / x).dtype == tl.float32)  # Triton divides fp16 numbers in fp32


compile_report(half_by_half_kernel, [Pointer("fp16")])
assert is_right(torch.tensor([[300.0, -300] * 4]).half())
assert 300**2 == 90000 > torch.finfo(torch.float16).max == 65504 and np.spacing(np.float16(2048)) == 2

# %% [markdown]
# The kernel that you are about to write adds up in `tl.zeros([BLOCK], dtype=tl.float32)`, as in
# lesson 05.

# %%
predict("07-casts")


# %% tags=["check"]
@triton.jit
def cast_kernel(x_ptr, y_ptr, w_ptr, b_ptr, stride, N, eps, CAST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total, squares = tl.zeros([BLOCK], dtype=tl.float32), tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)
        total += x.to(tl.float32) if CAST else x
    mean = tl.sum(total, axis=0) / N
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)
        x = x.to(tl.float32) if CAST else x
        deviation = tl.where(cols < N, x - mean, 0.0)
        squares += deviation * deviation
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)
        w, b = tl.load(w_ptr + cols, mask=cols < N, other=0.0), tl.load(b_ptr + cols, mask=cols < N, other=0.0)
        if CAST:
            x, w, b = x.to(tl.float32), w.to(tl.float32), b.to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(y_ptr + row * stride + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)


drawn = np.random.default_rng(3)
rows, w, b = (
    torch.tensor(values).half().to(course_lib.DEVICE)
    for values in (300 + 3 * drawn.standard_normal((4, 1000)), drawn.random(1000), drawn.random(1000))
)
both = []
for cast in (True, False):
    y = torch.empty_like(rows)
    cast_kernel[(4,)](rows, y, w, b, 1000, 1000, 1e-5, CAST=cast, BLOCK=64)
    both.append(y)
assert torch.equal(*both) and both[0].isfinite().all() and find("07-casts").answer.startswith("nothing")
assert rows.double().sum(1).min() > 65504

# %% [markdown]
# A line does not show the dtype of its numbers: fp16 times fp16 is fp16, fp16 divided by fp16 is
# fp32. So the course follows two rules that are always right, and from here on its exercises give
# you these lines:
#
# - **fp32 at the load.** `.to(tl.float32)` stands right behind every `tl.load`, of `x`, `w` and
#   `b`.
# - **One rounding at the store.** `y.to(y_ptr.dtype.element_ty)` rounds to the dtype that `y_ptr`
#   points to.
#
# `mean` and `rstd` are stored in fp32, whatever `x` is.
#
# ## Hunt 4: how large?
#
# This one needs no launch, only a pencil. Choose the shape of a packed fp16 matrix for which the
# kernel looks for the last row in a wrong place. It must fit into the 80 GB of an H100, and its rows
# may have at most 65,536 columns.

# %% tags=["step"]
# BEGIN SOLUTION
#: shape: rows and columns.
#| shape = (4096, 8192)
shape = (32769, 65536)
# END SOLUTION

step("07-size")


# %% varies={"always": "it shows the input that the step before it chose"}
@triton.jit
def where_kernel(where_ptr, row, stride):
    tl.store(where_ptr, (row * stride).to(tl.int64))


where = torch.empty(1, dtype=torch.int64, device=course_lib.DEVICE)
where_kernel[(1,)](where, shape[0] - 1, shape[1])
print("the kernel looks for the last row at element", where.item(), "of", shape[0] * shape[1])

# %% tags=["check"]
for tried in (
    (4096, 8192),
    (32768, 65536),
    (32769, 65536),
    (40000, 60000),
    (300_000, 8192),
    (262_145, 8192),
    (262_144, 8192),
):
    where_kernel[(1,)](where, tried[0] - 1, tried[1])
    assert (where.item() == (tried[0] - 1) * tried[1]) == bool(find_step("07-size").accepts(tried)), tried
assert 32769 * 65536 * 2 / 2**30 < 4.001 and 32769 * 65536 * 2 < 80 * 10**9

# %% [markdown]
# Lesson 05 has the repair: `.to(tl.int64)`. PyTorch's own LayerNorm was found to be wrong [beyond 2³²
# elements](https://github.com/pytorch/pytorch/issues/181555) (April 2026). In CUDA C++ the number
# of a program (`blockIdx.x`) is unsigned, so there 2³² is the border. Liger-Kernel widened its row
# numbers in [pull request 804](https://github.com/linkedin/Liger-Kernel/pull/804), and had the same
# mistake in another kernel in [September
# 2026](https://github.com/linkedin/Liger-Kernel/issues/1483).

# %% [markdown]
# ## Your turn: LayerNorm for any row
#
# Your kernel has to be right on all that broke the page's kernel. Strides, casts and wide rows are
# given. You write the statistics, and so you decide how often a row is read. Each check counts
# these reads, and shows the course's count and the fewest possible beside yours.

# %%
from course_lib import exercise

exercise("07a")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("06a")

# %% [markdown]
# ## Where does the kernel jump back?
#
# The map below records every access of the course's kernel. Each row of the map is a program, and
# each strip is one sweep over a tensor. Step through program 1. Where does it jump back to the start of its
# row? When 07a passes, choose *yours, 07a* and press **Run it**.

# %%
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
assert asked.times("w", "read") == 4 == M
assert (asked.times("x", "read"), asked.times("y", "write")) == (3, 1)
assert asked.bytes("x") + asked.bytes("y") == 4 * M * N * 2

# %% [markdown]
# The kernel reads `x` three times and writes `y` once: 4 M N elements. If the row stayed in
# registers between the loops, half of that would be saved: lesson 08.

# %% [markdown]
# ## Without rails
#
# The course's 07a reads x three times. Two reads are enough for any row, and lose no digits. This
# optional task allows no third.

# %%
exercise("07b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("07")

# %% [markdown]
# **The ladder.** Run this cell again after each kernel that you pass.

# %%
from course_lib.lessons import ladder

ladder("07")

# %% [markdown]
# **Where to read on**
#
# - [Layer Normalization](https://arxiv.org/abs/1607.06450) by Ba, Kiros and Hinton, 2016: the
#   paper. Its formulas are your three loops.
# - Triton's tutorial [Layer
#   Normalization](https://github.com/triton-lang/triton/blob/545699290b851e70231ee3017481851170f1583d/python/tutorials/05-layer-norm.py)
#   (commit 5456992): the same three loops. It fails in hunts 2 and 4: it has one stride, and its
#   row offsets are products of 32 bits.
# - `course_lib/kernels/layer_norm.py`: the course's kernel. It takes a column stride as well, for a
#   transposed matrix.
#
# **Next:** lesson 08, where each row is read once.

# %% [markdown] tags=["dive"]
# ## Dive: what does an fp16 accumulator lose?
#
# A row with mean 8, N = 16384, BLOCK = 64: each lane adds about 8, 256 times, and its sum ends
# near 2048. From 1024 on fp16 has only whole numbers, and from 2048 on only even ones. In this
# kernel you choose the dtype of the accumulator.


# %%
@triton.jit
def mean_kernel(x_ptr, mean_ptr, N, BLOCK: tl.constexpr, ACC: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=ACC)
    for start in range(0, N, BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK)).to(ACC)
    tl.store(mean_ptr, tl.sum(total.to(tl.float32), axis=0) / N)


# %%
noise = torch.randn(16384, generator=torch.Generator().manual_seed(0))
x_half = (8 + 0.5 * noise).half().to(course_lib.DEVICE)
mean = torch.empty(1, device=course_lib.DEVICE)
shift = {}
for name, ACC in (("fp16", tl.float16), ("fp32", tl.float32)):
    mean_kernel[(1,)](x_half, mean, 16384, BLOCK=64, ACC=ACC)
    shift[name] = abs(mean.item() - x_half.double().mean().item()) / x_half.double().std().item()
    print(f"{name} accumulator: every y is shifted by {shift[name]:.1e}")
print("one rounding of a y near 1 to fp16: at most", 2.0**-11)

# %% tags=["check"]
assert 16384 // 64 == 256 and 256 * 8 == 2048 and [np.spacing(np.float16(n)) for n in (1023, 1024, 2048)] == [0.5, 1, 2]
assert shift["fp16"] > 4 * 2.0**-11 and shift["fp32"] < 2.0**-11 / 100

# %% [markdown]
# The fp16 accumulator shifts the whole row in one direction. With this seed the shift is several
# times the largest rounding error of storing `y` in fp16. Other seeds give other shifts.
