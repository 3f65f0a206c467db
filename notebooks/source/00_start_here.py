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
# # 00 Start here
#
# A NumPy line hands a whole array to code that somebody else wrote. A kernel is that code, and here you write it. This lesson starts at
# eight numbers and ends at your first graded kernel: a copy that stops where its data stops.
#
# **You will be able to**
#
# - say where your kernels run, on this machine, and what that changes;
# - read a kernel: programs, lanes, pointers, offsets, masks;
# - work out how many programs a launch needs, and which lanes have nothing to do;
# - say what a store without a mask does to your memory, and why no error tells you;
# - check an exercise, and read its verdict.
#
# **You need** Python functions and NumPy slices. No GPU, and no knowledge of one.
#
# **Time** about 45 minutes: 35 to read and run, 10 for exercise 00a.
#
# Run the cells from top to bottom with Shift+Enter. Where the text says *(predict, then run)*, write your answer down first. A wrong
# prediction is worth more than a right cell.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.base import runtime
from course_lib.lessons import copy_map

# %% [markdown]
# ## What did the first cell say?
#
# It printed one line, and that line names one of two modes.
#
# - **GPU mode.** Triton compiles a kernel for your GPU when it is first launched. Tensors live in the GPU's memory.
# - **CPU mode.** Triton's interpreter runs the same text with NumPy, one piece of work after the other. Right, and slow. Tensors live in
#   ordinary memory.
#
# The choice has to be made before Triton is imported, so `import course_lib` is the first cell of every lesson. You write the same kernel
# in both modes. `DEVICE` is where its tensors go.

# %%
print("mode:", course_lib.MODE, "  tensors on:", DEVICE)
assert (course_lib.MODE, DEVICE) in {("gpu", "cuda"), ("cpu", "cpu")}
assert runtime.triton_imported_as() == course_lib.MODE  # how Triton stands, not how it was asked to
assert (os.environ.get("TRITON_INTERPRET") == "1") == (course_lib.MODE == "cpu")
assert torch.zeros(1, device=DEVICE).device.type == DEVICE

# %% [markdown]
# ### Will it run here?
#
# The doctor looks at versions, the GPU, memory, disk and your files. It also launches two small kernels and checks their values. `note`
# is something unusual that the course can live with, such as a setting that forces a mode. `problem` is not, and comes with a remedy.

# %%
from course_lib import doctor

findings = doctor.examine()  # a few seconds: it tries things in processes of their own
for finding in findings:
    print(f"{finding.level:8} {finding.name}")

problems = [finding for finding in findings if finding.level == doctor.PROBLEM]
print(doctor.as_text(problems) or "\nNo problem: the course can run here.")
assert doctor.can_run(findings), "the lines above say what to do"

# %% [markdown]
# `course doctor` in a terminal says all of it in full.
#
# ## How does a program add eight numbers?
#
# In Python you would write a loop, or let NumPy do it. A Triton kernel has neither. It describes one **program**, and a program has
# **lanes** that do the same thing at the same time, each to its own number.
#
# `tl.arange(0, 8)` is eight lanes, numbered 0 to 7. A kernel gets no tensors. It gets **pointers**: `x_ptr` is the address of element 0 of
# `x`. `x_ptr + lanes` is eight addresses, one a lane. `tl.load` fetches what lies there, `tl.store` puts something there.


# %%
@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr):
    lanes = tl.arange(0, 8)  # 0 1 2 3 4 5 6 7
    x = tl.load(x_ptr + lanes)  # eight numbers, one a lane
    y = tl.load(y_ptr + lanes)
    tl.store(z_ptr + lanes, x + y)  # eight additions, no loop


x = torch.arange(8.0, device=DEVICE)
y = torch.full((8,), 100.0, device=DEVICE)
z = torch.empty(8, device=DEVICE)
add_kernel[(1,)](x, y, z)  # [(1,)]: launch one program

print(z.tolist())
assert torch.equal(z, x + y)

# %% [markdown]
# Three things differ from a function.
#
# - `@triton.jit` hands the text to Triton. Only Triton's operations work inside; `x` is neither a tensor nor an array.
# - The square brackets are the **grid**: how many programs to launch.
# - A kernel returns nothing. It leaves its result in memory, at addresses that you gave it.
#
# ### What is an address plus 7 minus the lane?
#
# Offsets count elements, and any whole numbers will do. Below, the load uses `x_ptr + 7 - lanes`. `x` holds 0 to 7. What does `z` hold?
#
# The second launch passes `x[2:]`, a slice. Its element 0 is element 2 of `x`. It uses the addition above with `y` = 100 again, and `x`
# is ten numbers long this time. What is the last number of `z`? *(Predict, then run.)*


# %%
@triton.jit
def backwards_kernel(x_ptr, z_ptr):
    lanes = tl.arange(0, 8)
    tl.store(z_ptr + lanes, tl.load(x_ptr + 7 - lanes))


backwards_kernel[(1,)](x, z)
print("backwards:", z.tolist())
assert z.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]

ten = torch.arange(10.0, device=DEVICE)
add_kernel[(1,)](ten[2:], y, z)
print("from 2 on:", z.tolist())
assert z[-1] == 109 and ten[2:].data_ptr() == ten.data_ptr() + 2 * ten.element_size()

# %% [markdown]
# A slice of a tensor is the same memory from a later address. The kernel does not know how long `x` is, or where it began. It has an
# address, and it believes you.
#
# ## Which program am I?
#
# Eight numbers are not much. Launch two programs. Both run the same text; the only difference between them is `tl.program_id(0)`, which
# is 0 in the one and 1 in the other. What turns a number and eight lanes into the right eight elements?
#
# $$\mathrm{offsets} = \mathrm{program} \cdot \mathrm{BLOCK} + \mathrm{lanes}$$
#
# BLOCK is how many lanes a program has. It is a `tl.constexpr`: a number that is fixed when the kernel is compiled, and a power of two.
# The kernel below writes, for every element, which program and which lane wrote it. Three programs, BLOCK = 4: who writes element 6?
# *(Predict, then run.)*


# %%
@triton.jit
def who_kernel(program_ptr, lane_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    offsets = program * BLOCK + lanes
    tl.store(program_ptr + offsets, lanes * 0 + program)  # the same number in every lane
    tl.store(lane_ptr + offsets, lanes)


programs, lanes = (torch.full((12,), -1, dtype=torch.int32, device=DEVICE) for _ in range(2))
who_kernel[(3,)](programs, lanes, BLOCK=4)
print("element", np.arange(12))
print("program", programs.cpu().numpy())
print("lane   ", lanes.cpu().numpy())
assert (programs[6], lanes[6]) == (1, 2)
assert programs.tolist() == [e // 4 for e in range(12)] and lanes.tolist() == [e % 4 for e in range(12)]

# %% [markdown]
# Program 1, lane 2. In general program `e // BLOCK`, lane `e % BLOCK`.
#
# ### In which order do they run?
#
# You may not ask. A GPU runs as many programs at once as it has room for and promises no order. So turn the numbers round: let
# the program with the highest number take the first block. Does the result change? *(Predict, then run.)*


# %%
@triton.jit
def double_kernel(x_ptr, y_ptr, TURNED: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    if TURNED:
        program = tl.num_programs(0) - 1 - program
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets))


sixteen = torch.arange(16.0, device=DEVICE)
results = []
for TURNED in (False, True):
    y = torch.empty(16, device=DEVICE)
    double_kernel[(2,)](sixteen, y, TURNED=TURNED, BLOCK=8)
    results.append(y.tolist())
print(*results, sep="\n")
assert results[0] == results[1] == (2 * sixteen).tolist()

# %% [markdown]
# It does not, because no program reads what another writes. Keep it so, and you need not think about order. (Lesson 09 is about kernels
# that cannot keep it so.)
#
# ## How many programs for 13 numbers?
#
# 16 numbers were two blocks of 8. With n = 13, `n // BLOCK` is 1, so launch one program. `y` starts full of NaN, which no doubling of
# these numbers can give. What is in `y` afterwards? *(Predict, then run.)*

# %%
n, BLOCK = 13, 8
x = sixteen[:n]
y = torch.full((n,), float("nan"), device=DEVICE)
double_kernel[(n // BLOCK,)](x, y, TURNED=False, BLOCK=BLOCK)

print(y.tolist())
unwritten = torch.isnan(y).nonzero().flatten().tolist()
assert n // BLOCK == 1 and unwritten == [8, 9, 10, 11, 12]

# %% [markdown]
# Elements 8 to 12 belong to nobody. A grid that is too small is not an error, and without the NaN you would have seen whatever lay in
# that memory before: zeros, or yesterday's result.
#
# So round up: **ceil(n / BLOCK)** programs, in whole numbers `(n + BLOCK - 1) // BLOCK`, in Triton `triton.cdiv(n, BLOCK)`. That gives
# `cdiv(n, BLOCK) * BLOCK` lanes for n numbers. How many programs, and how many lanes too many, for n = 13, 16 and 17 at BLOCK = 8, and
# for n = 1000 at BLOCK = 64? *(Predict, then run.)*

# %%
spare = {}
for n, BLOCK in ((13, 8), (16, 8), (17, 8), (1000, 64)):
    grid = triton.cdiv(n, BLOCK)
    spare[n] = grid * BLOCK - n
    print(f"n {n:4}, BLOCK {BLOCK:2}: {grid:2} programs, {spare[n]:2} lanes too many; the last program is {grid - 1}")
    assert grid == (n + BLOCK - 1) // BLOCK == -(-n // BLOCK)
    assert 0 <= spare[n] < BLOCK  # fewer than one block: so they are all in the last program
assert spare == {13: 3, 16: 0, 17: 7, 1000: 24}

# %% [markdown]
# ## What does a lane past the end do?
#
# What you told it to. With n = 13 and two programs, lanes 5, 6 and 7 of program 1 have offsets 13, 14 and 15. The kernel believes its
# addresses.
#
# You can watch it safely if the memory behind `y` is yours. Below, `memory` holds 20 numbers. `y` is the first 13, and `neighbour` is the
# other 7, all of them -1. In the same way `x` is the front of 16 numbers. No line of the cell mentions `neighbour` after it is made. What
# does it hold after the launch, and what does Python say? *(Predict, then run.)*

# %%
n, BLOCK = 13, 8
memory = torch.full((20,), -1.0, device=DEVICE)
y, neighbour = memory[:n], memory[n:]
x = sixteen[:n]
double_kernel[(triton.cdiv(n, BLOCK),)](x, y, TURNED=False, BLOCK=BLOCK)

print("y:        ", y.tolist())
print("neighbour:", neighbour.tolist())
assert torch.equal(y, 2 * x)
assert neighbour.tolist() == [26, 28, 30, -1, -1, -1, -1]

# %% [markdown]
# `y` is right, and three numbers of another tensor are gone. Python says nothing, in either mode: the addresses exist, and nobody asks
# whose they are. On a GPU PyTorch cuts its tensors from large pieces of memory, so something of yours usually lies behind. You find out
# later, in a place that has nothing to do with this kernel. A test that looks at `y` never finds out.
#
# ## How do you stop a lane?
#
# With a **mask**: one truth value a lane. `offsets < n` is true where the element exists. `tl.load` and `tl.store` take it, and a lane
# whose mask is false neither reads nor writes. Program 1 of the launch above: what is its mask? *(Predict, then run.)*


# %% tags=["nbval-check-output"]
@triton.jit
def masked_double_kernel(x_ptr, y_ptr, mask_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(mask_ptr + offsets, mask.to(tl.int32))  # every lane may: mask_ptr has room for all 16
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


memory.fill_(-1)
masks = torch.empty(16, dtype=torch.int32, device=DEVICE)
masked_double_kernel[(2,)](x, y, masks, n, BLOCK=BLOCK)
print("masks:    ", masks.view(2, 8).tolist())
print("neighbour:", neighbour.tolist())
assert masks.view(2, 8).tolist() == [[1] * 8, [1, 1, 1, 1, 1, 0, 0, 0]]
assert torch.equal(y, 2 * x) and (neighbour == -1).all()

# %% [markdown]
# Five lanes on, three off, and the neighbour is left alone.
#
# ### What does a masked lane hold?
#
# The mask stops the *load*. It does not stop the *lane*: the value goes on through the kernel, and it is undefined unless you say what it
# should be with `other=`. Which `other` is right depends on what comes next. Take the largest of five numbers, all of them negative, with
# eight lanes, once with `other=0.0` and once with minus infinity. What is the largest? *(Predict, then run.)*


# %%
@triton.jit
def largest_kernel(x_ptr, largest_ptr, n, other, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=other)
    tl.store(largest_ptr, tl.max(x, axis=0))  # one number from all lanes, the masked ones too


cold = torch.tensor([-7.0, -3, -9, -4, -8], device=DEVICE)
largest = torch.empty(1, device=DEVICE)
for other, expected in ((0.0, 0.0), (float("-inf"), -3.0)):
    largest_kernel[(1,)](cold, largest, 5, other, BLOCK=8)
    print(f"other = {other}: the largest of {cold.tolist()} is {largest.item()}")
    assert largest.item() == expected

# %% [markdown]
# With 0.0 three lanes that have no number win. For a sum 0.0 is right, for a maximum it is not, and for a copy it does not matter: the
# store is masked too. "What do the masked lanes hold *now*?" is the question of this course. Lesson 06 shows three libraries that shipped
# the wrong answer.
#
# ## Which n gives a missing mask away?
#
# Suppose you forget the mask. You test with BLOCK = 8 and some n between 1 and 40, and look at the memory behind `y`, as you did above.
# For how many of the 40 does the test find nothing? Write it down. Then move the sliders: take `mask = offsets < n` away and look for
# them. Last, switch `grid = cdiv(n, BLOCK)` off and make the grid too small.

# %%
copy_map(n=10, block=4)

# %%
from course_lib.lessons.copy_map.model import model

harmless = [n for n in range(1, 41) if not model(n, block=8, masked=False).past_end]
print("nothing to find for n =", harmless)
assert harmless == [8, 16, 24, 32, 40]
assert model(10, block=4).needed == 3 and model(10, block=4, masked=False).past_end == (10, 11)
assert model(10, block=4, programs=2).unwritten == (8, 9)

# %% [markdown]
# For five: the multiples of 8. They look harmless because they are round, and round numbers are what people test with: 1024 rows, 4096
# columns. A kernel that passes at n = 1024 has said nothing about its mask.
#
# ## What does a check try?
#
# Not only round numbers. These are the cases of exercise 00a. On how many of them would a copy without a mask fail? *(Predict, then
# run.)*

# %%
from course_lib.grading.public import list_cases

cases = list_cases("00a")
for case in cases:
    print(f"{case.name:17} {case.describe()}")
with_spare_lanes = [case for case in cases if -case.N % case.block]
print(f"\n{len(with_spare_lanes)} of {len(cases)} have lanes past the end")
assert len(with_spare_lanes) > len(cases) / 2

# %% [markdown]
# On more than half of them. The check also does what you did above. Outputs start as NaN, so an element you never write stays visible. And each
# tensor lies between guard bands, so a store past the end lands where somebody looks. For 13 fp32 numbers:

# %%
from course_lib.grading.public import Tensor

prepared = Tensor("y", "fp32", shape=(13,), strides=(1,))
buffer = np.frombuffer(prepared.initial_bytes(), dtype=np.float32)
print(f"{buffer.size} numbers for 13: {prepared.guard} of guard in front, {prepared.guard} behind")
assert np.isnan(buffer).all() and buffer.size == 64 + 13 + 64

# %% [markdown]
# ### Five outcomes
#
# A check gives one of five verdicts, and `course check` in a terminal exits with the number in brackets.
#
# - **pass** (0): every case is right.
# - **fail** (1): the kernel ran and something is wrong. You get the cause, the first case that shows it, and a question.
# - **not attempted** (2): the file is as the course wrote it.
# - **error** (3): the file cannot be read or run. You get the line.
# - **grader fault** (4): the course itself failed. That is ours, and never counts against you.
#
# Below are five versions of exercise 00a. None of them is your file. Which verdict does each get? *(Predict, then run.)*

# %%
from course_lib import catalog
from course_lib.catalog import texts

task = catalog.get("00a")
fresh = texts.make_unsolved_text(task)


def filled(*lines: str) -> str:
    return (
        fresh + "".join(f"\n    {line}" for line in ("offsets = program * BLOCK + tl.arange(0, BLOCK)", *lines)) + "\n"
    )


masked_load = "x = tl.load(x_ptr + offsets, mask=offsets < n)"
tries = {
    "nothing filled in": fresh,
    "a bracket lost": fresh.replace("tl.program_id(0)", "tl.program_id(0"),
    "no mask": filled(masked_load, "tl.store(y_ptr + offsets, x)"),
    "stores nothing": filled(masked_load),
    "through fp16": filled(masked_load, "tl.store(y_ptr + offsets, x.to(tl.float16), mask=offsets < n)"),
}

# %%
from course_lib.grading.public import EXIT_CODES, check

verdicts = {}
with tempfile.TemporaryDirectory() as folder:
    for name, text in tries.items():
        file = Path(folder, "ex00a_masked_copy.py")
        file.write_text(text)
        verdicts[name] = check(task, file)
        print(f"{name:18} {verdicts[name].status}, exit code {verdicts[name].exit_code}")
assert [verdict.status for verdict in verdicts.values()] == ["not attempted", "error", "fail", "fail", "fail"]
assert EXIT_CODES == {"pass": 0, "fail": 1, "not attempted": 2, "error": 3, "grader fault": 4}

# %% [markdown]
# Three of them fail, and for three reasons. Read what the verdicts say.

# %%
for name in ("a bracket lost", "no mask", "stores nothing", "through fp16"):
    print(f"{name}: {verdicts[name].message}\n")

causes = [verdicts[name].cause for name in ("no mask", "stores nothing", "through fp16")]
assert causes == ["store_outside", "not_written", "rounded_on_the_way"]
assert "7 of 8 lanes" in verdicts["no mask"].message and "outside y" in verdicts["no mask"].message
assert "the allowed error" in verdicts["through fp16"].message
assert [case.name for case in verdicts["through fp16"].cases if case.status == "pass"] == ["half precision"]
assert not any("hint" in verdict.as_json() for verdict in verdicts.values())

# %% [markdown]
# A verdict shows the smallest case that fails. "No mask" shows one number in a block of eight, where seven lanes are past the end, as
# three were in `neighbour` above. "Stores nothing" was found by the NaN.
#
# "Through fp16" is right in one case only: the one whose numbers are fp16 already. In the others it is off by so many **x the allowed
# error**. Computers round, so nearly right has to count as right. How nearly is worked out for each element from the formula and the
# dtype, never one flat tolerance for all. 1 x or less is right. A copy has nothing to round, so it has to be exact.
#
# A verdict knows nothing of hints. Each exercise has three, each more direct than the last. They are counted so that you can see what you
# took, and they never count against you.
#
# ## Exercise 00a: a masked copy
#
# Your turn. The panel has a link that opens `exercises/ex00a_masked_copy.py` beside this notebook. Fill in the part marked YOUR CODE,
# save, and press **Check**. **Hint** gives the next of the three. **Compare** draws your output beside the right one. **Solution** shows
# the course's own, after a pass or when you confirm. **Reset** starts over and keeps a copy of what you had.
#
# In a terminal the same is `course check 00a`, `course hint 00a`, `course solution 00a`, `course reset 00a`.

# %%
exercise("00a")

# %% [markdown]
# ## How do the lessons work?
#
# - **Predict, then run.** A number stands in the text only after you could have guessed it.
# - **Cells assert.** Every claim has an `assert` that fails if the claim is false. Change a number and run the cell again: that is what
#   they are for. Your notebook is yours to spoil, and so is your exercise file.
# - **ERRATUM** marks a place where a tutorial, a blog post or a paper is wrong. The lesson shows that it is, with numbers.
# - **One number ties it together.** Lesson 06 has exercises 06a and 06b, and they lie in `exercises/ex06a_...py` and `ex06b_...py`.
# - **Symbols** are the same everywhere: M rows, N columns, BLOCK lanes, `x` in, `y` out, `w` and `b` for weight and bias.
#
# The exercises there are, with difficulty from 1 to 5 and the minutes they take:

# %%
for e in catalog.exercises().values():
    print(f"{e.id}  {'#' * e.difficulty:5}  {e.minutes:3} min  {e.title}")
    assert e.id.startswith(e.lesson) and e.file.startswith(f"ex{e.id}_") and len(e.hints) == 3
assert catalog.get("06a").prerequisites[0] == "00a"

# %% [markdown]
# ## Summary
#
# - A kernel describes one program; the grid says how many run. Programs differ in `tl.program_id(0)` and in nothing else, and no order is
#   promised.
# - Lanes do the same thing to different numbers. `offsets = program * BLOCK + tl.arange(0, BLOCK)` says which.
# - A pointer is an address without a length. A kernel reads and writes where you point it.
# - ceil(n / BLOCK) programs. Fewer leave elements unwritten, and the last one usually has lanes past the end.
# - A mask stops a lane's load and store. `other=` says what such a lane holds afterwards, and what comes next decides which value is right.
# - Nothing complains. Round sizes hide a missing mask, and only a look outside the output finds it.
#
# **Where to read on**
#
# - Triton tutorial "Vector Addition": the same kernel for a larger array, and a first benchmark.
# - Triton-Puzzles by Sasha Rush: more kernels of this kind to fill in, in the same interpreter.
# - The documentation page of `triton.language.load`: what `mask` and `other` promise, and what they do not.
#
# **Next:** the lessons follow one another by number, and each says what it needs. **Lesson 06, LayerNorm forward**, needs nothing but
# this one. Its rows have padded lanes as well, and there a mask on the load turns out not to be enough.
