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
# Everything in this museum was released by a library that people use, and passed the tests that it
# had. Each room has one bug, its story, and a small kernel of our own that has it, too. Read the
# kernels as a tester: on which inputs does the bug not show?
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
# ## Room 1: the lanes past the end
#
# **Liger-Kernel, LayerNorm, January 2025** ([issue
# 518](https://github.com/linkedin/Liger-Kernel/issues/518)); **unsloth, LayerNorm, March 2025**
# ([PR 1867](https://github.com/unslothai/unsloth/pull/1867)). Somebody read the kernel and noticed
# a missing mask. A maintainer asked when the block is larger than the row. Both projects tested
# with powers of two. A test with a row of another size would have shown the bug. You met it in
# lesson 01.


# %%
@triton.jit
def spare_lanes_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    d = x - tl.sum(x) / N  # no mask: a lane past the end holds -mean
    rstd = 1 / tl.sqrt(tl.sum(d * d) / N + eps)
    tl.store(y_ptr + row * N + cols, d * rstd, mask=mask)


# %% [markdown]
# `launch` gives the kernel a block of the next power of two. With four columns all is well:

# %%
print(launch(spare_lanes_kernel, torch.tensor([[1.0, 2, 3, 4]], device=course_lib.DEVICE)).cpu())

# %% [markdown]
# ## Room 2: one pass
#
# **Apache TVM, LayerNorm, May 2026** ([issue 19592](https://github.com/apache/tvm/issues/19592)).
# The row 80000, 80001, 80002, 80003 came back as NaN. The variance was computed as in lesson 03,
# mean of the squares less square of the mean. The [fix](https://github.com/apache/tvm/pull/19643)
# came with new tests. They only looked at the *form* of the generated code: are there two loops
# now? The reviewer asked for one more test, with the row from the issue, because the new ones ran
# nothing.


# %%
@triton.jit
def one_pass_kernel(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    var = tl.sum(x * x) / N - mean * mean
    tl.store(y_ptr + row * N + cols, (x - mean) / tl.sqrt(var + eps), mask=mask)


# %% [markdown]
# Find a row with smaller numbers.

# %% tags=["step"]
# BEGIN SOLUTION
#: Four numbers, none above 10,000, for which this kernel's y is off by more than 0.5.
#| row = [1, 2, 3, 4]
row = [8000, 8001, 8002, 8003]
# END SOLUTION
step("17-row")

# %% tags=["check"]
from course_lib.lessons.lesson17.museum import expect

for values in ([8000.0, 8001, 8002, 8003], [80000.0, 80001, 80002, 80003]):
    x = torch.tensor([values], device=course_lib.DEVICE)
    error = (launch(one_pass_kernel, x) - expect(x)).abs().max().item()
    print(values, error)
    assert not error <= 0.5

# %% [markdown]
# ## Room 3: the second read
#
# **LightLLM, RMSNorm, August 2026** ([issue
# 1467](https://github.com/ModelTC/LightLLM/issues/1467)). The kernel (ours is a LayerNorm) takes a
# column stride, and its first sweep uses it. The second sweep, a few lines below, has forgotten it.
# So the statistics are right, but they are applied to the wrong numbers. Every caller in the
# project passed rows without gaps, so no model was affected. The change that was proposed adds
# strided cases to the tests. With the old kernel these cases fail, and no others.


# %%
@triton.jit
def second_read_kernel(x_ptr, y_ptr, stride_row, stride_col, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    first_ptr = x_ptr + row * stride_row
    x = tl.load(first_ptr + cols * stride_col, mask=mask, other=0.0)
    mean = tl.sum(x) / N
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d) / N + eps)
    x = tl.load(first_ptr + cols, mask=mask, other=0.0)  # the second sweep
    tl.store(y_ptr + row * N + cols, (x - mean) * rstd, mask=mask)


# %% [markdown]
# Three bugs, and four inputs of six rows: A has 64 columns with the mean 10, B has 60 columns with
# the mean 10, C has 60 columns with the mean 3000. D is a transposed matrix with 64 columns and the
# mean 0. The standard deviation is 1 everywhere. `launch` makes a packed copy of x for a kernel
# that takes no strides (rooms 1 and 2).

# %%
predict("17-seen")

# %% tags=["answer"]
from course_lib.lessons.lesson17 import figures
from course_lib.lessons.lesson17.museum import tabulate

kernels = {
    "past the end": spare_lanes_kernel,
    "one pass": one_pass_kernel,
    "second read": second_read_kernel,
}
table = tabulate(kernels)
figures.show_errors(table)

# %% tags=["check"]
from course_lib.lessons.lesson17 import figures
from course_lib.lessons.lesson17.museum import INPUTS, find_error, norm_kernel, tabulate
from course_lib.lessons.prediction import find
from course_lib.norms import specimens

kernels = {
    "past the end": spare_lanes_kernel,
    "one pass": one_pass_kernel,
    "second read": second_read_kernel,
}
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
# what exercise 17a tests does the same as these kernels
same = {
    "past the end": "padded row",
    "one pass": "one pass",
    "second read": "columns 1 apart again",
}
for bug, kernel in kernels.items():
    for x in INPUTS.values():
        w, b = torch.ones(x.shape[1]), torch.zeros(x.shape[1])
        emulated = specimens.make_plain(same[bug], backward=False)(x.cpu(), w, b, 1e-5)
        if bug == "one pass" and x.mean() > 100:
            continue  # what is left after cancellation depends on the order of the sums
        assert torch.allclose(launch(kernel, x).cpu(), emulated, atol=2e-3, equal_nan=True), bug

# %% [markdown]
# Try inputs of your own: with `x = normal(6, 60, mean=0.5)`, `launch(spare_lanes_kernel, x)` gives
# y, and `torch.nn.functional.layer_norm(x, (60,))` what it should be.
#
# ### A test that cannot see NaN
#
# In room 2 the variance can come out below 0, and then y is NaN. Many tests are written like the
# one below: they look for an error that is too large. Exercise 17a has a kernel whose y is NaN in
# every row with a large mean.


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
# ## Room 4: rows
#
# **FlagGems, LayerNorm's backward, August 2026** ([issue
# 5392](https://github.com/flagos-ai/FlagGems/issues/5392)). Forward took N from `normalized_shape`.
# Backward took M from `input.shape[0]`, and N from what was left. For a matrix the two agree. For a
# transformer's (batch, sequence, hidden) it saw a few very long rows: the gradients were wrong, and
# the kernel wrote behind `dw` and `db`. Some programs crashed later, in kernels that had nothing to
# do with it. Here is a milder slip of the same kind. This launch of lesson 01's kernel has the
# right N, and M is wrong.

# %%
from course_lib.lessons.lesson17.museum import norm_kernel


def normalise(x):
    y = torch.zeros_like(x)
    norm_kernel[(x.shape[0],)](x, y, x.shape[-1], 1e-5, BLOCK=8)
    return y


x = normal(2, 3, 8, mean=3.0)
y = normalise(x)

# %% [markdown]
# The grid is `(x.shape[0],)`, so two programs run, and each has one of the six rows. For a matrix
# x.shape[0] is the number of rows, and so it was in every test.

# %%
print((y != 0).any(-1))

# %% tags=["check"]
assert (y != 0).any(-1).sum() == 2
emulated = specimens.BACKWARD["first dimension"](normal(2, 3, 8).cpu(), x.cpu(), torch.ones(8), 1e-5)[0]
assert (emulated != 0).any(-1).tolist() == (y != 0).any(-1).tolist()

# %% [markdown]
# ## Room 5: whose memory is it?
#
# **Liger-Kernel, RMSNorm, November 2024** ([issue
# 370](https://github.com/linkedin/Liger-Kernel/issues/370)). To save memory, backward wrote `dx`
# over the `dy` that it was given. Gemma 2 has a residual path that reads the same `dy` afterwards,
# and it did not converge. A switch was added ([PR
# 376](https://github.com/linkedin/Liger-Kernel/pull/376)), and writing in place stayed the default.
# In July 2026 somebody looked at the tests ([PR
# 1305](https://github.com/linkedin/Liger-Kernel/pull/1305)): two of them handed one gradient to two
# backward passes, as here.

# %%
from course_lib.norms.launchers import launch_backward, launch_forward


def backward_in_place(dy, x, w):
    _, mean, rstd = launch_forward(x, w, None, 1e-5)
    dx, _, _ = launch_backward(dy, x, w, mean, rstd)
    return dy.copy_(dx)  # to save memory


x, g, w = normal(4, 8, seed=1), normal(4, 8, seed=2), normal(8, seed=3)
first = backward_in_place(g, x, w)
second = backward_in_place(g, x, 2 * w)

# %%
predict("17-itself")

# %% tags=["answer"]
print("equal:", torch.equal(first, second))
print("the same memory:", first.data_ptr() == second.data_ptr() == g.data_ptr())

# %% tags=["check"]
assert torch.equal(first, second) and first.data_ptr() == second.data_ptr() == g.data_ptr()
assert find("17-itself").answer == "they are equal to the last bit"
dy = normal(4, 8, seed=2).cpu()
assert torch.allclose(specimens.BACKWARD["dx over dy"](dy, x.cpu(), w.cpu(), 1e-5)[0], dy)
assert torch.allclose(backward_in_place(normal(4, 8, seed=2), x, w).cpu(), dy, atol=1e-5)

# %% [markdown]
# ## Room 6: what is left over
#
# **attorch, LayerNorm and RMSNorm, August 2026** ([issue
# 18](https://github.com/BobMcDear/attorch/issues/18)). A program adds several rows up, and writes
# one row of partial sums. There were `cdiv(M, ROWS)` programs, and `M // ROWS` rows for them to
# write to. Below, the buffer has `M // ROWS` rows, and a neighbour lies behind it, as in a GPU's
# memory.


# %%
@triton.jit
def add_rows_kernel(dy_ptr, partial_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    program, cols = tl.program_id(0), tl.arange(0, BLOCK)
    rows = program * ROWS + tl.arange(0, ROWS)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    dy = tl.load(dy_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(partial_ptr + program * N + cols, tl.sum(dy, axis=0), mask=cols < N)


M, N, ROWS = 1027, 4, 8
memory = torch.zeros(M // ROWS + 1, N, device=course_lib.DEVICE)
ones = torch.ones(M, N, device=course_lib.DEVICE)
add_rows_kernel[(triton.cdiv(M, ROWS),)](ones, memory, M, N, ROWS, BLOCK=4)
partial, neighbour = memory[: M // ROWS], memory[M // ROWS]

# %% [markdown]
# 1027 // 8 is 128, and 129 programs run. The last of them has the three rows that are left over, and
# writes their sum behind the buffer, where nobody adds it.

# %%
print("db:       ", partial.sum(0).tolist())
print("neighbour:", neighbour.tolist())

# %% tags=["check"]
assert triton.cdiv(1027, 8) == 129
assert 8096 % 8 == 12288 % 16 == 131072 % 128 == 0
assert (partial.sum(0) == 1024).all() and (neighbour == 3).all()
assert (specimens.lose_last_partial(ones.cpu(), ROWS) == partial.sum(0).cpu()).all()

# %% [markdown]
# With ones you see it at once. A real `dy` is more like noise around 0.

# %%
predict("17-noisy")

# %% tags=["answer"]
noise = normal(M, 256, seed=8)
whole, kept = noise.sum(0), noise[: M // ROWS * ROWS].sum(0)
off = (((kept - whole) ** 2).sum() / (whole**2).sum()).item() ** 0.5
print(f"db is off by {off:.1%} of its size")

# %% tags=["check"]
assert abs(off - (3 / 1027) ** 0.5) < 0.01 and find("17-noisy").answer == "about 5 %"
assert not torch.allclose(kept, whole, rtol=1e-2, atol=1e-2)

# %% [markdown]
# attorch's programs took more than one row only for `N < 64` and `M >= 1024`. Its tests had three
# shapes of that kind: 8096 rows in blocks of 8, 12288 in blocks of 16, 131072 in blocks of 128. In
# each of the three the rows are a multiple of the block. For this step, a program takes 8 rows if
# `N < 64` and `M >= 1024`, and one row otherwise.

# %% tags=["step"]
# BEGIN SOLUTION
#: M and N of a test that finds this bug.
#| shape = (4096, 64)
shape = (1027, 20)
# END SOLUTION
step("17-shape")

# %% [markdown]
# ## Room 7: rounded on the way
#
# **Liger-Kernel, LayerNorm, seen in PyTorch's benchmarks in October 2025** ([PR
# 166005](https://github.com/pytorch/pytorch/pull/166005)). Forward saves mean and rstd for
# backward. They were saved in the dtype of x. In fp32 that loses nothing. In half precision the
# gradients could fail the benchmark's accuracy check. The benchmark worked around it: it computed
# the statistics in fp32 and gave these to the backward kernel.

# %%
predict("17-saved")

# %% tags=["answer"]
g, w = normal(6, 256, mean=0.5, seed=2), normal(256, seed=3)
for mean in (50.1, 0.1):
    x = normal(6, 256, mean=mean, seed=1)
    _, saved, rstd = launch_forward(x, w, None, 1e-5)
    kept = (saved, saved.bfloat16().float())
    right, rounded = (launch_backward(g, x, w, m, rstd)[0] for m in kept)
    off = ((rounded - right).square().sum() / right.square().sum()).sqrt()
    print(f"mean {mean:4}: with the mean in bf16 dx is off by {off:.2%}")

# %% tags=["check"]
assert torch.tensor(50.1).bfloat16().item() == find("17-saved").answer
assert round(abs(torch.tensor(0.1).bfloat16().item() - 0.1), 4) == 1e-4
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
# ## Room 8: None
#
# **unsloth, RMSNorm** ([issue 4533](https://github.com/unslothai/unsloth/issues/4533), March 2026).
# Backward returned None for the weight. When somebody asked in December 2023 ([issue
# 45](https://github.com/unslothai/unsloth/issues/45)), a maintainer answered that the library
# fine-tuned attention and MLP layers only, and that norms would follow. Then came full fine-tuning,
# in which the norms have to learn, too. The weights of the norms stayed as they were.
#
# None is a legal gradient: it says that nothing depends on this argument. The optimiser leaves such
# a parameter as it is, without a word, and all the other parameters go on learning. So the loss
# goes down, dx is right, and w is finite. The only check that finds it asks whether w is *another*
# one after a step of the optimiser.


# %%
class NoDw(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, *statistics = launch_forward(x, w, None, 1e-5)
        ctx.save_for_backward(x, w, *statistics)
        return y

    @staticmethod
    def backward(ctx, dy):
        return launch_backward(dy, *ctx.saved_tensors)[0], None  # None in the place of dw


# %%
w = torch.nn.Parameter(torch.ones(8, device=course_lib.DEVICE))
torch.manual_seed(0)
layer = torch.nn.Linear(8, 8).to(w.device)
optimiser = torch.optim.SGD([w, *layer.parameters()], lr=0.1)
x, target = normal(16, 8, seed=4), normal(16, 8, seed=5)
for step_number in range(40):
    optimiser.zero_grad()
    loss = (NoDw.apply(layer(x), w) - target).square().mean()
    loss.backward()
    optimiser.step()
    if step_number in (0, 39):
        print(f"step {step_number:2}: loss {loss:.3f}, w still all ones: {bool((w == 1).all())}")

# %% tags=["check"]
assert (w == 1).all() and loss < 2
layer = torch.nn.Parameter(torch.ones(8))
before = layer.detach().clone()
optimiser = torch.optim.SGD([layer], lr=0.1)
optimiser.step()  # its grad is None
assert torch.equal(before, layer)

# %% [markdown]
# ## Room 9: the row that begins too late
#
# **Liger-Kernel, RMSNorm, July 2025** ([issue
# 803](https://github.com/linkedin/Liger-Kernel/issues/803)); **PyTorch on CUDA, April 2026**
# ([issue 181555](https://github.com/pytorch/pytorch/issues/181555)). `tl.program_id(0)` has 32
# bits, and so has `row * stride`, unless you widen it first, as lesson 07 does. (PyTorch's kernel
# is C++. Its number has no sign, and wraps at 2³².) Liger repaired the kernel that crashed. A
# comment on the repair ([PR 804](https://github.com/linkedin/Liger-Kernel/pull/804), July 2025)
# names the same line in the kernel beside it, which is used for at least 32768 rows of at most 256
# columns. In September 2026 that line was reported as a bug ([issue
# 1483](https://github.com/linkedin/Liger-Kernel/issues/1483)).

# %% tags=["step"]
# BEGIN SOLUTION
#: How many rows of 256 columns are needed before one begins past 2**31 - 1?
#| rows = 2**31
rows = 2**23 + 1
# END SOLUTION
step("17-last-row")

# %% [markdown]
# How did the course test your kernel of 07a without 8 GB? It put a few rows very far apart in a
# tensor. On a CPU the system gives memory only to what is touched, so the gaps cost nothing.
#
# ## Your turn: seven tests
#
# The bugs of rooms 1 to 7 were found by readers, by users, by a benchmark, and by a model that did
# not converge. Write the tests that would have found them first. Each of yours meets kernels with
# the bug in several forms, and right kernels that you must not accuse. The bug decides your input,
# and the right kernels decide your tolerance. Here is a test for another bug, `dw` and `db` in each
# other's place:
#
# ```python
# def catch_swapped(layer_norm_backward):
#     x, dy, w = normal(6, 20, mean=1.0), normal(6, 20, seed=1), normal(20, seed=2)
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
from course_lib.norms import reference

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
# In this museum a sign told you each bug. In the hunt there is no sign: `course hunt` in a terminal
# opens a page with one kernel after the other, and one thing is wrong in each. Find an input that
# shows the bug, and the line that causes it.
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

# %% [markdown] tags=["dive"]
# ## Dive: a bug that no test meets
#
# **Triton's tutorial "Layer Normalization", commit 5456992** ([lines 179 to
# 182](https://github.com/triton-lang/triton/blob/545699290b851e70231ee3017481851170f1583d/python/tutorials/05-layer-norm.py#L179-L182)).
# Each thread of a program loads a flag, one thread sets it, and no barrier lies between (lesson
# 12). A warp that loads late adds what lies in a buffer. On an H200 that happened in 0 of 300
# launches: no warp was late enough. With a wait put in by hand, 39 of 40 were wrong. Since June
# 2024 the buffers hold zeros, and a late warp adds 0: the bug is asleep. A copy that allocates with
# `torch.empty` wakes it.
#
# No test of results finds it. What finds it is a rule, who waits for whom, held against the code,
# or a race check that knows what each thread does. The course's `docs/kernels.md` has a report that
# could be sent.
