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
# # 00 Start here: your first kernel
#
# A line of NumPy runs a loop that somebody else wrote, over a whole array. Code that a GPU runs
# over an array is called a **kernel**. In this course you write kernels yourself. In this lesson
# you write a small one, and you learn to stop a kernel where your data stops.
#
# *About 30 minutes, the exercise included. You need Python functions and NumPy slices. You need no
# GPU, and no knowledge of one.*
#
# ![Two programs with eight lanes each write eleven numbers together. Each of the first eleven lanes
# has an arrow to its own number. The last five lanes of program 1 are masked off: behind the eleven
# numbers lies memory that is not yours, and it is left alone.](images/programs.svg)
#
# Run the cells from top to bottom with Shift+Enter. Before something new runs, the page asks what
# you expect. Answer first. You learn something from a wrong answer, too.

# %%
import course_lib

# %%
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr):
    lanes = tl.arange(0, 8)  # 0 1 2 3 4 5 6 7
    x = tl.load(x_ptr + lanes)  # eight numbers, one for each lane
    y = tl.load(y_ptr + lanes)
    tl.store(z_ptr + lanes, x + y)  # eight additions, no loop


# %%
DEVICE = course_lib.DEVICE  # where tensors go: "cuda" or "cpu"
x = torch.arange(8.0, device=DEVICE)
y = torch.full((8,), 100.0, device=DEVICE)
z = torch.empty(8, device=DEVICE)
add_kernel[(1,)](x, y, z)  # (1,): launch one program
print(z.tolist())

# %% tags=["check"]
from course_lib.base import runtime
from course_lib.lessons.prediction import find

assert torch.equal(z, x + y)
assert (course_lib.MODE, DEVICE) in {("gpu", "cuda"), ("cpu", "cpu")}
assert runtime.triton_imported_as() == course_lib.MODE  # how Triton stands, not how it was asked to

# %% [markdown]
# That was a kernel, written in **Triton**. Triton is a language inside Python: `@triton.jit` marks
# a kernel. Inside a kernel you can use only a part of Python, mainly arithmetic, loops, and
# functions that begin with `tl.`. A kernel differs from a function in four ways.
#
# - It describes one **program**, and a program works on blocks of numbers. `tl.arange(0, 8)` is a
#   block of eight. Each position of a block is a **lane**. `x + y` adds in all eight lanes. (A lane
#   is not a thread of the GPU. Lesson 06 says how many lanes a thread has.)
# - You launch it with tensors, and it gets **pointers**: `x_ptr` is the address of element 0 of
#   `x`, and `x_ptr + lanes` is eight addresses, one for each lane.
# - It returns nothing. Its result stays in memory, at the addresses that you gave it.
# - `[(1,)]` at the launch is the **grid**: it says how many programs run, here one.
#
# The first cell told you where your kernels run. On a GPU Triton compiles them. Without one
# Triton's interpreter runs the same code on the CPU, slowly, and one program after the other. (If
# something does not work, `course doctor` in a terminal says what is wrong.)
#
# ## Which number does each lane read?
#
# The next kernel stores as the first one did. It loads from other addresses.


# %%
@triton.jit
def backwards_kernel(x_ptr, z_ptr):
    lanes = tl.arange(0, 8)
    tl.store(z_ptr + lanes, tl.load(x_ptr + 7 - lanes))


# %% [markdown]
# Lane 0 reads element 7 and writes element 0, and lane 7 reads element 0 and writes element 7.
# Offsets count elements, and any whole numbers will do: they may run backwards, jump or repeat.

# %%
backwards_kernel[(1,)](x, z)
print(z.tolist())

# %% tags=["check"]
assert z.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]

# %% [markdown]
# ## Which program am I?
#
# One program of eight lanes handles eight numbers. For more numbers you launch more programs, here
# three. All of them run the same code, and the only difference between them is `tl.program_id(0)`:
# 0 in the first, 1 in the second, 2 in the third. From it each program finds its own elements:
#
# $$\mathrm{offsets} = \mathrm{program} \cdot \mathrm{BLOCK} + \mathrm{lanes}$$
#
# BLOCK is the number of lanes. It is a `tl.constexpr`, a number that is fixed when the kernel is
# compiled, and it is a power of two: `tl.arange` takes no other. The kernel below writes down, for
# every element, which program and which lane wrote it.


# %%
@triton.jit
def who_kernel(program_ptr, lane_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    offsets = program * BLOCK + lanes
    tl.store(program_ptr + offsets, program)  # one number, stored by every lane
    tl.store(lane_ptr + offsets, lanes)


# %% [markdown]
# In general lane `e % BLOCK` of program `e // BLOCK` writes element `e`. Look for element 6: it is
# 1 * 4 + 2.

# %%
by_program, by_lane = (torch.empty(12, dtype=torch.int32, device=DEVICE) for _ in range(2))
who_kernel[(3,)](by_program, by_lane, BLOCK=4)
print("element", list(range(12)))
print("program", by_program.tolist())
print("lane   ", by_lane.tolist())

# %% tags=["check"]
programs, lanes = (torch.full((12,), -1, dtype=torch.int32, device=DEVICE) for _ in range(2))
who_kernel[(3,)](programs, lanes, BLOCK=4)
assert programs.tolist() == [e // 4 for e in range(12)] and lanes.tolist() == [e % 4 for e in range(12)]

# %% [markdown]
# Here no two programs write the same element. Now let each of the three store its number at one and
# the same address.


# %%
@triton.jit
def last_kernel(z_ptr):
    tl.store(z_ptr, tl.program_id(0))


# %%
from course_lib.lessons import predict, step

predict("00-last")

# %% tags=["answer"] varies={"gpu": "a GPU promises no order"}
last = torch.full((1,), -1, dtype=torch.int32, device=DEVICE)
last_kernel[(3,)](last)
print(last.tolist(), "this time")

# %% tags=["check"]
from course_lib.lessons.locks import four_programs, list_totals, run_orders


@triton.jit
def last_of_four_kernel(part_ptr, total_ptr):
    tl.store(total_ptr, tl.load(part_ptr + tl.program_id(0)))


assert set(list_totals(run_orders(four_programs(last_of_four_kernel)))) == {1, 10, 100, 1000}  # any may be the last
assert find("00-last").answer.startswith("0, 1 or 2") and (course_lib.MODE == "gpu" or last.item() == 2)

# %% [markdown]
# So the order must not matter. It does not if each program writes to places of its own, and no other
# program reads or writes there.
#
# ### Give the elements out in turn
#
# The next cell is a **step**: a line is missing. Write it below its comment and run the cell; it is
# checked at once. A step is practice. No later cell needs it, and you may run it as often as you
# like.
#
# Nothing forces a program to take *neighbouring* elements. With three programs, let program 0 take
# the elements 0, 3, 6 and 9, program 1 take 1, 4, 7 and 10, and program 2 the rest. Each lane then
# writes the number of its program.


# %% tags=["step"]
@triton.jit
def deal_kernel(who_ptr, programs, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: offsets: from one lane to the next, the element number grows by `programs`.
    offsets = lanes * programs + program
    # END SOLUTION
    tl.store(who_ptr + offsets, program)


step("00-deal")

# %% [markdown]
# ## How many programs for 13 numbers?
#
# Sixteen numbers are two blocks of 8. Here are 13. `y` starts full of NaN, so that an element that
# no program writes stays visible.


# %%
@triton.jit
def double_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets))


n, BLOCK = 13, 8
sixteen = torch.arange(16.0, device=DEVICE)
x = sixteen[:n]  # the first 13 of 16 numbers in memory
y = torch.full((n,), float("nan"), device=DEVICE)

# %% [markdown]
# Take a grid of `n // BLOCK` programs. Python's `//` rounds down, so that is one program, and
# elements 8 to 12 belong to nobody. A grid that is too small raises no error.

# %%
double_kernel[(n // BLOCK,)](x, y, BLOCK=BLOCK)
print(y.tolist())

# %% tags=["check"]
y = torch.full((n,), float("nan"), device=DEVICE)
double_kernel[(n // BLOCK,)](x, y, BLOCK=BLOCK)
assert torch.isnan(y).nonzero().flatten().tolist() == [8, 9, 10, 11, 12]

# %% [markdown]
# So round up. `triton.cdiv(n, BLOCK)` is n / BLOCK, rounded up to a whole number (in a kernel it is
# `tl.cdiv`). It gives 2 programs for 13 numbers, and these two have 16 lanes.
#
# ## What does a lane past the end do?
#
# Here `memory` holds 20 numbers: `y` is the first 13, and `neighbour` is the other 7, all of them
# -1. The launch below does not mention `neighbour`.

# %%
memory = torch.full((20,), -1.0, device=DEVICE)
y, neighbour = memory[:n], memory[n:]

# %%
predict("00-test")

# %% tags=["answer"]
double_kernel[(triton.cdiv(n, BLOCK),)](x, y, BLOCK=BLOCK)
print("y:        ", y.tolist())
print("neighbour:", neighbour.tolist())

# %% tags=["check"]
assert triton.cdiv(n, BLOCK) == 2 and torch.equal(y, 2 * x)
assert neighbour.tolist() == [26, 28, 30, -1, -1, -1, -1]
assert find("00-test").answer == "y is right"

# %% [markdown]
# ## How do you stop a lane?
#
# With a **mask**: one truth value for each lane. `offsets < n` is true where the element exists.
# `tl.load` and `tl.store` take the mask, and a lane whose mask is false neither reads nor writes.


# %%
@triton.jit
def masked_double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, 2 * x, mask=mask)


# %% [markdown]
# In program 1 the mask is true in the first five lanes. The other three neither read nor write.

# %%
memory.fill_(-1)
masked_double_kernel[(2,)](x, y, n, BLOCK=BLOCK)
print("y:        ", y.tolist())
print("neighbour:", neighbour.tolist())

# %% tags=["check"]
assert [offset < n for offset in range(BLOCK, 2 * BLOCK)] == 5 * [True] + 3 * [False]
assert torch.equal(y, 2 * x) and (neighbour == -1).all()

# %% [markdown]
# The neighbour keeps its -1. Both the load and the store have the mask.

# %%
predict("00-load-only")


# %% tags=["answer"]
@triton.jit
def half_masked_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, 2 * x)


memory.fill_(-1)
half_masked_kernel[(2,)](x, y, n, BLOCK=BLOCK)
print("neighbour:", neighbour.tolist())

# %% tags=["check"]
memory.fill_(-1)
half_masked_kernel[(2,)](x, y, n, BLOCK=BLOCK)
assert neighbour.tolist() == [0, 0, 0, -1, -1, -1, -1] and torch.equal(y, 2 * x)
assert find("00-load-only").answer == "0 three times, then -1 four times"

# %% [markdown]
# A mask may be any condition. **Your step:** double only the elements from `start` to `stop - 1`, as
# in the slice `y[start:stop]`. In a kernel write `&` for "and", with parentheses around each side.


# %% tags=["step"]
@triton.jit
def double_slice_kernel(x_ptr, y_ptr, start, stop, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: mask: true from `start` to the element before `stop`.
    mask = (offsets >= start) & (offsets < stop)
    # END SOLUTION
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, 2 * x, mask=mask)


step("00-slice")

# %% [markdown]
# ### What does a masked lane hold?
#
# A masked lane loads nothing. But the lane is still there, and all later lines compute with it.
# `other=` says which value it holds. Without `other=` the value is undefined.


# %%
@triton.jit
def four_kernel(x_ptr, result_ptr, n, other, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=other)
    tl.store(result_ptr, tl.sum(x, axis=0))  # one number from all lanes
    tl.store(result_ptr + 1, tl.max(x, axis=0))
    tl.store(result_ptr + 2, tl.sum(x * x, axis=0))
    tl.store(result_ptr + 3, tl.sum(tl.exp(x), axis=0))


# %%
predict("00-zeros")

# %% tags=["answer"]
import numpy as np

numbers = np.array([-7, -3, -9, -4, -8], np.float32)
cold = torch.tensor(numbers.tolist(), device=DEVICE)
result = torch.empty(4, device=DEVICE)
four_kernel[(1,)](cold, result, 5, 0.0, BLOCK=8)
right = [numbers.sum(), numbers.max(), (numbers**2).sum(), np.exp(numbers).sum()]
print("sum, largest, sum of squares, sum of exp(x)")
print("kernel:", [round(number, 2) for number in result.tolist()])
print("right: ", [round(float(number), 2) for number in right])

# %% tags=["check"]
import numpy as np

numbers = np.array([-7, -3, -9, -4, -8], np.float32)
cold = torch.tensor(numbers.tolist(), device=DEVICE)
right = [numbers.sum(), numbers.max(), (numbers**2).sum(), np.exp(numbers).sum()]
found = torch.empty(4, device=DEVICE)
four_kernel[(1,)](cold, found, 5, 0.0, BLOCK=8)
assert np.isclose(found.tolist(), right).tolist() == [True, False, True, False] and found[1] == 0
assert find("00-zeros").answer == "sum and sum of squares"
assert abs(found[3].item() - right[3] - 3) < 1e-5
assert (round(found[3].item(), 2), round(float(right[3]), 2)) == (3.07, 0.07)
four_kernel[(1,)](cold, found, 5, float("-inf"), BLOCK=8)
assert np.isclose(found.tolist(), right).tolist() == [False, True, False, True]

# %% [markdown]
# Which `other` is right depends on what comes next. For a sum it is 0. For a maximum it is minus
# infinity, and for a sum of exp(x), too. For a copy any value is right, because the store is masked,
# too. Which `other` is right for the smallest number? Write it in the next cell. (In a kernel, too,
# `float("inf")` is infinity.)


# %% tags=["step"]
@triton.jit
def smallest_kernel(x_ptr, smallest_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: Give the masked lanes a value that is never the smallest.
    #| x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=float("inf"))
    # END SOLUTION
    tl.store(smallest_ptr, tl.min(x, axis=0))


step("00-smallest")

# %% [markdown]
# Keep one question in mind: "What do the masked lanes hold *now*?" You will need it in nearly every
# lesson.
#
# ## For which n can a test find a missing mask?
#
# The kernel in the picture copies n numbers from x to y. Untick `mask = offsets < n` and drag n along
# the memory: for which n does the memory behind `y` stay as it was? Click a lane to see what it reads
# and writes. At the end choose `n // BLOCK` as the grid, and see what is missing.

# %%
from course_lib.lessons import copy_map

copy_map(n=10, block=4)

# %% [markdown]
# Only where a lane is past the end, and only if the test looks behind `y`. With a block of 8 that is
# 35 of the n from 1 to 40. The multiples of 8 hide the missing mask, and people test with such round
# numbers, 1024 rows or 4096 columns.

# %% tags=["check"]
harmless = []
for n in range(1, 41):
    memory = torch.full((48,), -1.0, device=DEVICE)
    double_kernel[(triton.cdiv(n, 8),)](torch.zeros(48, device=DEVICE), memory[:n], BLOCK=8)
    if (memory[n:] == -1).all():
        harmless.append(n)
assert harmless == [8, 16, 24, 32, 40] and 40 - len(harmless) == 35

# %% [markdown]
# ## Your turn
#
# The panel below has your first exercise. Its link opens your file beside this page. Write the
# missing lines, save the file, then press **Check**. The check runs your kernel with sizes that are
# round and sizes that are not, and it looks at the memory around `y`, as you did above. If
# something is wrong, the check says what is wrong, and shows the smallest input that fails.
# **Hint** costs nothing.

# %%
from course_lib import exercise

exercise("00a")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("00")

# %% [markdown]
# **Where to read on**
#
# - [Vector Addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html),
#   the first tutorial of Triton: the same kernel for a larger array, and a first benchmark.
# - [Triton-Puzzles](https://github.com/srush/Triton-Puzzles) by Sasha Rush: more kernels of this
#   kind, in the same interpreter.
# - [`triton.language.load`](https://triton-lang.org/main/python-api/generated/triton.language.load.html):
#   what `mask` and `other` promise.
#
# **Next:** lesson 01, your first LayerNorm. It begins with a kernel of ten lines. Is it right for
# every row?
