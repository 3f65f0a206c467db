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
# # 17 The bug museum
#
# Every bug in this museum was released in a library that people use. You see the code first, with a
# test that it passes. Find the input on which it fails. The signs, with the library and the story,
# come after the last room.
#
# *About 45 minutes, exercise included. Needs: lesson 14.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("17")

# %%
import torch
import triton
import triton.language as tl
from course_lib.lessons import predict, step
from course_lib.lessons.lesson17.museum import launch, normal

# %% [markdown]
# ## Room 1: three kernels
#
# We wrote each kernel, with the bug of a library in it.


# %%
@triton.jit
def kernel_1(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    d = x - tl.sum(x) / N
    rstd = 1 / tl.sqrt(tl.sum(d * d) / N + eps)
    tl.store(y_ptr + row * N + cols, d * rstd, mask=mask)


# %%
@triton.jit
def kernel_2(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    var = tl.sum(x * x) / N - mean * mean
    tl.store(y_ptr + row * N + cols, (x - mean) / tl.sqrt(var + eps), mask=mask)


# %%
@triton.jit
def kernel_3(x_ptr, y_ptr, stride_row, stride_col, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    first_ptr = x_ptr + row * stride_row
    x = tl.load(first_ptr + cols * stride_col, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d) / N + eps)
    x = tl.load(first_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * N + cols, (x - mean) * rstd, mask=mask)


# %% [markdown]
# `launch` takes the next power of two as the block. A kernel without strides (1 and 2) gets a
# packed copy of x.

# %%
x = normal(6, 64, mean=10.0)
expected = torch.nn.functional.layer_norm(x, (64,))
for kernel in (kernel_1, kernel_2, kernel_3):
    off = (launch(kernel, x) - expected).abs().max()
    print(kernel.__name__, "passes" if off < 1e-3 else "fails")

# %% [markdown]
# That was input A. All four have six rows and a standard deviation of 1:
#
# | input | columns | mean | memory |
# |---|---|---|---|
# | A | 64 | 10 | packed |
# | B | 60 | 10 | packed |
# | C | 60 | 3000 | packed |
# | D | 64 | 0 | a transposed matrix |

# %%
predict("17-seen")

# %% tags=["answer"]
from course_lib.lessons.lesson17 import figures
from course_lib.lessons.lesson17.museum import tabulate

kernels = {"kernel 1": kernel_1, "kernel 2": kernel_2, "kernel 3": kernel_3}
figures.show_errors(tabulate(kernels))

# %% tags=["check"]
from course_lib.lessons.lesson17 import figures
from course_lib.lessons.lesson17.museum import INPUTS, find_error, norm_kernel, tabulate
from course_lib.lessons.prediction import find
from course_lib.norms import specimens

kernels = {"kernel 1": kernel_1, "kernel 2": kernel_2, "kernel 3": kernel_3}
table = tabulate(kernels)
shown = [[r, c] for r, row in enumerate(table.values()) for c, e in enumerate(row.values()) if not e <= figures.SHOWS]
assert (
    shown == [list(cell) for cell in find("17-seen").answer] and len(shown) == 4 and all(column for _, column in shown)
)
assert all(find_error(norm_kernel, x) < 1e-3 for x in INPUTS.values())
assert [(len(x), x.shape[1], round(x.mean().item(), -1)) for x in INPUTS.values()] == [
    (6, 64, 10),
    (6, 60, 10),
    (6, 60, 3000),
    (6, 64, 0),
]
assert torch.equal(normal(6, 64, mean=10.0), next(iter(INPUTS.values())))  # the input of the test that passes
# what exercise 17a tests does the same as these kernels
same = {"kernel 1": "padded row", "kernel 2": "one pass", "kernel 3": "columns 1 apart again"}
for bug, kernel in kernels.items():
    for x in INPUTS.values():
        w, b = torch.ones(x.shape[1]), torch.zeros(x.shape[1])
        emulated = specimens.make_plain(same[bug], backward=False)(x.cpu(), w, b, 1e-5)
        if bug == "kernel 2" and x.mean() > 100:
            continue  # what is left after cancellation depends on the order of the sums
        assert torch.allclose(launch(kernel, x).cpu(), emulated, atol=2e-3, equal_nan=True), bug

# %% [markdown]
# The row in the report of kernel 2's bug was 80000, 80001, 80002, 80003. Find one with smaller
# numbers.

# %% tags=["step"]
# BEGIN SOLUTION
#: Four numbers, none above 10,000, for which the y of kernel_2 is off by more than 0.5.
#| row = [1, 2, 3, 4]
row = [8000, 8001, 8002, 8003]
# END SOLUTION
step("17-row")

# %% tags=["check"]
from course_lib.lessons.lesson17.museum import expect

for values in ([8000.0, 8001, 8002, 8003], [80000.0, 80001, 80002, 80003]):
    x = torch.tensor([values], device=course_lib.DEVICE)
    error = (launch(kernel_2, x) - expect(x)).abs().max().item()
    print(values, error)
    assert not error <= 0.5

# %% [markdown]
# ### A test that cannot see NaN
#
# The variance of kernel 2 can come out below 0, and then y is NaN. Like many tests, this one looks
# for an error that is too large.


# %% tags=["step"]
# BEGIN SOLUTION
#: NaN passes this. Return True only if every number is within 0.001.
#| def is_near(got, want):
#|     return ~((got - want).abs().max() > 0.001)
def is_near(got, want):
    return ((got - want).abs() <= 0.001).all()


# END SOLUTION


step("17-nan")

# %% [markdown]
# ## Room 2: a backward pass that saves memory

# %%
import numpy as np
from course_lib.norms import reference
from course_lib.norms.launchers import launch_backward, launch_forward


def backward_in_place(dy, x, w):
    _, mean, rstd = launch_forward(x, w, None, 1e-5)
    dx, _, _ = launch_backward(dy, x, w, mean, rstd)
    return dy.copy_(dx)  # to save memory


x, g, w = normal(4, 8, seed=1), normal(4, 8, seed=2), normal(8, seed=3)
expected = reference.layer_norm_vjp(g.cpu(), x.cpu(), w.cpu(), 1e-5).dx
np.testing.assert_allclose(backward_in_place(g.clone(), x, w).cpu(), expected, atol=1e-5)
print("passes")

# %% [markdown]
# Another test calls it twice.

# %%
first = backward_in_place(g, x, w)
second = backward_in_place(g, x, 2 * w)

# %%
predict("17-twice")

# %% tags=["answer"]
print("equal:", torch.equal(first, second))
print("the same memory:", first.data_ptr() == second.data_ptr() == g.data_ptr())

# %% tags=["check"]
assert torch.equal(first, second) and first.data_ptr() == second.data_ptr() == g.data_ptr()
assert find("17-twice").answer == "they are equal to the last bit"
dy = normal(4, 8, seed=2).cpu()
assert torch.allclose(specimens.BACKWARD["dx over dy"](dy, x.cpu(), w.cpu(), 1e-5)[0], dy)
assert torch.allclose(backward_in_place(normal(4, 8, seed=2), x, w).cpu(), dy, atol=1e-5)

# %% [markdown]
# ## Room 3: partial sums
#
# `db` is the sum of the rows of `dy`. A program adds up `ROWS` rows and stores a row of partial sums.


# %%
@triton.jit
def add_rows_kernel(dy_ptr, partial_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    program, cols = tl.program_id(0), tl.arange(0, BLOCK)
    rows = program * ROWS + tl.arange(0, ROWS)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    dy = tl.load(dy_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(partial_ptr + program * N + cols, tl.sum(dy, axis=0), mask=cols < N)


# %%
def add_rows(dy):
    M, N = dy.shape
    ROWS = 8 if M >= 1024 and N < 64 else 1
    # the last row is a neighbour's
    memory = torch.zeros(M // ROWS + 1, N, device=dy.device)
    BLOCK = triton.next_power_of_2(N)
    add_rows_kernel[(triton.cdiv(M, ROWS),)](dy, memory, M, N, ROWS, BLOCK)
    return memory[: M // ROWS].sum(0), memory[-1]


for shape in ((1024, 20), (1027, 64), (37, 20)):
    db, neighbour = add_rows(torch.ones(shape, device=course_lib.DEVICE))
    off = (db - shape[0]).abs().max()
    print(shape, "passes" if off < 1e-3 else "fails")

# %% tags=["step"]
# BEGIN SOLUTION
#: M and N for which db is wrong.
#| shape = (1024, 20)
shape = (1027, 20)
# END SOLUTION
step("17-shape")

# %% varies={"always": "it shows the shape of the step above"}
db, neighbour = add_rows(torch.ones(shape, device=course_lib.DEVICE))
print(f"db: {db[0]:.0f} of {shape[0]}; behind the buffer: {neighbour[0]:.0f}")

# %% tags=["check"]
db, neighbour = add_rows(torch.ones(1027, 20, device=course_lib.DEVICE))
assert (db == 1024).all() and (neighbour == 3).all()
assert (specimens.lose_last_partial(torch.ones(1027, 20), 8) == db.cpu()).all()

# %% [markdown]
# With ones a lost row shows at once. A real `dy` is more like noise around 0.

# %%
predict("17-noisy")

# %% tags=["answer"]
noise = normal(1000, 256, seed=8)
whole, kept = noise.sum(0), noise[:997].sum(0)
off = (((kept - whole) ** 2).sum() / (whole**2).sum()).item() ** 0.5
print(f"db is off by {off:.1%} of its size")

# %% tags=["check"]
assert abs(off - (3 / 1000) ** 0.5) < 0.01 and find("17-noisy").answer == "about 5 %"
assert not torch.allclose(kept, whole, rtol=1e-2, atol=1e-2)

# %% [markdown]
# ## Room 4: another batch
#
# A program computes rstd of one row, for an RMSNorm. If there are few rows, it has more running
# sums.


# %%
@triton.jit
def rstd_kernel(x_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + cols, mask=start + cols < N, other=0.0)
        squares += x * x
    tl.store(rstd_ptr + row, tl.rsqrt(tl.sum(squares) / N + eps))


# %%
def compute_rstd(x):
    M, N = x.shape
    rstd = torch.empty(M, device=x.device)
    rstd_kernel[(M,)](x, rstd, N, 1e-5, BLOCK=1024 if M < 256 else 256)
    return rstd


def same_bits(x, rows):
    """Do the first rows have the same bits as a batch of their own?"""
    return torch.equal(compute_rstd(x)[:rows], compute_rstd(x[:rows]))


# %% [markdown]
# Lesson 13 has met this bug: the bits of a row depend on how many others are there.

# %%
predict("17-batch")

# %% tags=["answer"]
x, ones = normal(300, 2048, seed=6), torch.ones(300, 2048, device=course_lib.DEVICE)
rstd, exact = compute_rstd(x), torch.rsqrt(x.double().square().mean(1) + 1e-5)
tests = {
    "close to fp64": bool(((rstd - exact).abs() < 1e-6).all()),
    "called twice": torch.equal(rstd, compute_rstd(x)),
    "50 alone and 200": same_bits(x[:200], 50),
    "50 alone and 300": same_bits(x, 50),
    "50 ones alone and 300": same_bits(ones, 50),
}
for name, passed in tests.items():
    print(name, "passes" if passed else "fails")

# %% tags=["check"]
assert list(tests.values()) == [True, True, True, False, True]
failing = [[number, 0] for number, passed in enumerate(tests.values()) if not passed]
assert [list(cell) for cell in find("17-batch").answer] == failing

# %% [markdown]
# Even there the test is lucky: most of the 50 rows have the same bits in both. A test with one
# random row would probably have passed.

# %% tags=["step"]
# BEGIN SOLUTION
#: 2048 whole numbers between 0 and 5000, for which rstd has other bits beside 299 rows than alone.
#| whole_row = [1] * 2048
whole_row = [4096] + [1] * 2047
# END SOLUTION
step("17-order")

# %% tags=["check"]
rows = torch.ones(300, 2048, device=course_lib.DEVICE)
rows[0, 0] = 4096
assert not same_bits(rows, 1)
alone = torch.cat([compute_rstd(x[:150]), compute_rstd(x[150:])])
assert 0.6 < (rstd == alone).double().mean().item() < 1  # of random rows

# %% [markdown]
# ## Room 5: None
#
# Lesson 14 has met this one.


# %%
class NoDw(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, *statistics = launch_forward(x, w, None, 1e-5)
        ctx.save_for_backward(x, w, *statistics)
        return y

    @staticmethod
    def backward(ctx, dy):
        return launch_backward(dy, *ctx.saved_tensors)[0], None


# %%
predict("17-none")

# %% tags=["answer"]
x, g = normal(4, 8, seed=4).double().requires_grad_(), normal(4, 8, seed=5)
w = torch.ones_like(x[0]).requires_grad_()
limits = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2, "raise_exception": False}
for name, inputs in {"x": (x, w.detach()), "x and w": (x, w)}.items():
    print(f"gradcheck of {name} passes:", torch.autograd.gradcheck(NoDw.apply, inputs, **limits))
optimiser = torch.optim.SGD([x, w], lr=0.1)
losses = [(NoDw.apply(x, w) - g).square().mean()]
losses[0].backward()
optimiser.step()
losses.append((NoDw.apply(x, w) - g).square().mean())
print("the loss falls:", bool(losses[1] < losses[0]), "  w.grad:", w.grad)
print("w is finite:", bool(w.isfinite().all()), "  w has changed:", bool((w != 1).any()))

# %% tags=["check"]
assert losses[1] < losses[0] and w.grad is None and (w == 1).all()
assert torch.autograd.gradcheck(NoDw.apply, (x, w.detach()), **limits)
assert not torch.autograd.gradcheck(NoDw.apply, (x, w), **limits)
try:
    torch.testing.assert_close(w.grad, torch.zeros_like(w))
    compared = True
except AssertionError:
    compared = False
assert not compared and [list(cell) for cell in find("17-none").answer] == [[2, 0], [3, 0], [4, 0]]

# %% [markdown]
# ## The signs on the doors
#
# - **Kernel 1**: Liger-Kernel and unsloth, 2025. Lesson [01](01_first_layer_norm.ipynb) has both.
# - **Kernel 2**: Apache TVM, LayerNorm, May 2026 ([issue
#   19592](https://github.com/apache/tvm/issues/19592)). The variance is that of lesson
#   [03](03_large_means.ipynb). The tests of the [fix](https://github.com/apache/tvm/pull/19643) only
#   looked at the *form* of the generated code: are there two loops now? The reviewer asked for one
#   that runs the row from the issue.
# - **Kernel 3**: LightLLM, RMSNorm, August 2026 ([issue
#   1467](https://github.com/ModelTC/LightLLM/issues/1467)). The second load forgets the column
#   stride. Every caller in the project passed rows without gaps, so no model was affected. Only the
#   strided tests that were proposed fail with the old kernel.
# - **Room 2**: Liger-Kernel, RMSNorm, November 2024 ([issue
#   370](https://github.com/linkedin/Liger-Kernel/issues/370)). Gemma 2 reads the same `dy`
#   afterwards, in a residual path, and did not converge. A switch was added ([PR
#   376](https://github.com/linkedin/Liger-Kernel/pull/376)); writing in place stayed the default.
#   In July 2026 somebody noticed that two tests called it twice, as here ([PR
#   1305](https://github.com/linkedin/Liger-Kernel/pull/1305)).
# - **Room 3**: attorch, August 2026 ([issue 18](https://github.com/BobMcDear/attorch/issues/18)).
#   `cdiv(M, ROWS)` programs ran, and the buffer had `M // ROWS` rows. Its tests had 8096 rows in
#   blocks of 8, 12288 in blocks of 16 and 131072 in blocks of 128: nothing is left over.
# - **Room 4**: vLLM, RMSNorm in the mode that promises the same bits in every batch, July 2026
#   ([issue 48271](https://github.com/vllm-project/vllm/issues/48271), lesson
#   [13](13_without_locks.ipynb)).
# - **Room 5**: unsloth, RMSNorm, March 2026 ([issue
#   4533](https://github.com/unslothai/unsloth/issues/4533)). In 2023 the library did not train
#   norms ([issue 45](https://github.com/unslothai/unsloth/issues/45)). Then came full fine-tuning.
#
# Three more you know from other lessons, and 17a has two of them:
#
# - **M is `x.shape[0]`** (lesson [01](01_first_layer_norm.ipynb)): FlagGems, LayerNorm's backward,
#   August 2026 ([issue 5392](https://github.com/flagos-ai/FlagGems/issues/5392)), right for
#   matrices alone.
# - **mean and rstd in bf16** (lesson [11](11_dx.ipynb)): Liger-Kernel, LayerNorm, found by a
#   benchmark's accuracy check in October 2025 ([PR
#   166005](https://github.com/pytorch/pytorch/pull/166005)).
# - **`row * stride` in 32 bits** (lesson [07](07_layer_norm_any_row.ipynb)): Liger-Kernel and
#   PyTorch.

# %% tags=["check"]
assert 8096 % 8 == 12288 % 16 == 131072 % 128 == 0
x = normal(2, 3, 8, mean=3.0)
y = torch.zeros_like(x)
norm_kernel[(x.shape[0],)](x, y, x.shape[-1], 1e-5, BLOCK=8)
assert (y != 0).any(-1).sum() == 2  # of six rows
emulated = specimens.BACKWARD["first dimension"](normal(2, 3, 8).cpu(), x.cpu(), torch.ones(8), 1e-5)[0]
assert (emulated != 0).any(-1).tolist() == (y != 0).any(-1).tolist()
x, dy, w = (
    normal(6, 32, mean=50.0).bfloat16().cpu(),
    normal(6, 32, seed=1).bfloat16().cpu(),
    torch.ones(32),
)
_, mean, rstd = launch_forward(x.to(course_lib.DEVICE), None, None, 1e-5)
rounded = launch_backward(dy.to(mean.device), x.to(mean.device), None, mean.bfloat16().float(), rstd.bfloat16().float())
emulated = specimens.BACKWARD["saved as x"](dy, x, w, 1e-5)
right = specimens.BACKWARD["right"](dy, x, w, 1e-5)
assert torch.allclose(rounded[1].cpu(), emulated[1], atol=1e-3) and not torch.allclose(emulated[1], right[1], atol=1e-2)

# %% [markdown]
# ## Your turn: seven tests
#
# The signs say who found the bugs: readers, users, a benchmark, a model that did not converge.
# Write the tests that would have found them first. Each of yours is run on several wrong kernels,
# which it must reject, and on right ones, which it must pass. Choose the input for the bug, and the
# tolerance for the right kernels. Here is a test for another bug, `dw` and `db` in each other's
# place:
#
# ```python
# def catch_swapped(layer_norm_backward):
#     x, dy, w = torch.randn(6, 20) + 1, torch.randn(6, 20), torch.randn(20)
#     _, dw, _ = layer_norm_backward(dy, x, w, 1e-5)
#     want = compute_gradients(dy, x, w, 1e-5)[1]  # your file has it, in fp64
#     torch.testing.assert_close(dw.double(), want, atol=1e-3, rtol=1e-3)
# ```
#
# In fp32 a right `dw` is off by less than 1e-5, and the wrong one by more than 1: the tolerance
# lies far from both. You get a point for each bug, and you may begin with any of them.

# %%
from course_lib.lessons.panel import exercise

exercise("17a")

# %% tags=["check"]
x, dy, w = normal(6, 20, mean=1.0).cpu(), normal(6, 20, seed=1).cpu(), normal(20, seed=2).cpu()
_, dw, db = specimens.BACKWARD["right"](dy, x, w, 1e-5)
want = torch.tensor(reference.layer_norm_vjp(dy, x, w, 1e-5).dw)
assert (dw.double() - want).abs().max() < 1e-5 < 1 < (db.double() - want).abs().max()
torch.testing.assert_close(dw.double(), want, atol=1e-3, rtol=1e-3)

# %% [markdown]
# The next cell checks your file and shows each kernel that your tests met: wrong ones on the left,
# right ones on the right.

# %%
from course_lib.lessons.lesson17 import figures
from course_lib.lessons.lesson17.museum import list_met

met = list_met("17a")
figures.show_met(met)

# %% tags=["check"]
from course_lib.grading.public import list_cases

assert sum(len(kernels) for kernels in met.values()) == len(list_cases("17a")) and len(met) == 7

# %% [markdown]
# ## The hunt
#
# `course hunt` in a terminal opens a page with one kernel after the other, without a sign. One thing
# is wrong in each. Find an input that shows the bug, and the line that causes it.
#
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("17")

# %% [markdown]
# **Where to read on**
#
# - PyTorch, [torch.testing](https://docs.pytorch.org/docs/stable/testing.html): `assert_close`, and
#   how its tolerances depend on the dtype.
# - David MacIver and others, [Hypothesis](https://hypothesis.readthedocs.io/): draws the inputs,
#   and finds the smallest one that fails.
# - NVIDIA, [Compute
#   Sanitizer](https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html): `memcheck`
#   finds accesses outside of allocated memory, on a GPU.
# - [gradcheck](https://docs.pytorch.org/docs/stable/notes/gradcheck.html), and lesson 14 on what it
#   cannot see.
#
# **Next:** lesson 18, which is optional. It has a loss and its gradient, from a contract alone. Then
# one training with all that you wrote, and a page of it to keep: that part is for you also if you
# skip the tasks.

# %% [markdown] tags=["dive"]
# ## Dive: who tests the tests?
#
# A test that cannot fail looks like a good test of right code. To tell them apart, break the code
# on purpose, and look which tests notice. This is *mutation testing*. Every exercise of this course
# was made like that: its folder in `course_lib/exercises/` has wrong solutions, each made by one
# small edit of the right one, and the grader has to refuse them all, for the right reason. It has
# right solutions that look different, too, and the grader has to pass them. In 17a you were the
# grader, and the course had the mutants.
#
# The two directions pull against each other. A wider tolerance lets bugs through. A narrower one
# accuses a kernel that adds in another order. No tolerance solves this if the input is a poor one.
# A good input makes the bug so large that nearly any tolerance will do.
