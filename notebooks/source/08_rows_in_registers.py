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
# # 08 Rows in registers
#
# Lesson 07's kernel loads each row in three loops. If the block is as wide as the row, each loop
# runs once, and all three load the same numbers. Does the compiler leave two of them out? You look
# at the compiled code, and write a kernel that loads each row once.
#
# *About 40 minutes, the exercise included. Needs: lesson 07.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("08")

# %% [markdown]
# ## What does the compiler make of it?
#
# You need no GPU to find out: Triton's compiler works on this machine, and compiles for an H100. It
# writes PTX, NVIDIA's assembly language. An assembler turns PTX into machine code, SASS.
#
# The picture shows the course's kernel with three loops, for rows of N = BLOCK = 8192 columns. Each
# column of the picture shows the kernel with another number of warps; take 4. The line *loads from
# global memory* counts the load instructions, and says how many bits each of them brings to a
# thread. Press the three lines of the source that load `x`, one after the other, to see their
# instructions. When your 07a passes, choose *yours, 07a* above the picture and press **Compile
# it**.

# %%
from course_lib.lessons import kernel_explorer

kernel_explorer("blocked", BLOCK=8192)

# %% tags=["check"]
import torch

from course_lib.lessons.pictures.compiled_kernel.model import compile_forward
from course_lib.lessons.prediction import find

blocked, four = compile_forward("blocked"), compile_forward("resident")
a_load = 8192 // (32 * 4) * 2 // 16  # instructions of 16 bytes that bring a row of fp16 to 128 threads
assert a_load == 8
assert blocked.loads == {16: (3 + 2) * a_load} == {16: 40} and four.loads == {16: (1 + 2) * a_load}
many = compile_forward("blocked", num_warps=32)
copies = [sum("LDG" in many.sass.splitlines()[n - 1] for n in part.sass) for part in many.lines.values()]
assert many.loads == {16: 17} and sorted(n for n in copies if n) == [1, 1, 1, 7, 7]
assert sum("ld.global" in line for line in many.ptx.splitlines()) == 5

# %% [markdown]
# It loads the row three times. On 4 warps there are 40 load instructions of 16 bytes (128 bits):
# eight for `x` in each loop, eight for `w` and eight for `b`. (On 32 warps you see 17 and not 5:
# the assembler unrolls the first two loops.)
#
# Here is a shorter kernel, with two loops: it subtracts the mean of a row from the row. For N =
# BLOCK = 8192 its compiled code has two sets of loads of `x`, one per loop.


# %%
import triton
import triton.language as tl


@triton.jit
def centre_rows_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    mean = tl.sum(total, axis=0) / N
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + cols, x - mean, mask=cols < N)


# %%
from course_lib.lessons import predict, step

predict("08-constant")

# %% tags=["answer"]
from course_lib.lessons.instruction_counts import count_row_loads

for constant in (False, True):
    sets = count_row_loads(centre_rows_kernel, N=8192, BLOCK=8192, constant=constant)
    print("N a constexpr:" if constant else "N an argument:", f"{sets:.0f} sets of loads of x")

# %% tags=["check"]
sets = [
    count_row_loads(centre_rows_kernel, N=N, BLOCK=8192, constant=constant)
    for N, constant in ((8192, False), (8000, True))
]
assert sets == [2, 1] and find("08-constant").answer == "one set: the row stays"

# %% [markdown]
# ## Where can a row stay?
#
# In **registers**. Each multiprocessor of an H100 has 65,536 of them, of 4 bytes each, for all its
# threads. Every value that a lane holds, such as its `x` in fp32, takes a register of its thread.
# So a row in fp32 takes BLOCK / (32 * num_warps) registers of each thread: a row of 8192 lanes
# takes 64 on 4 warps, and 16 on 16 warps.
#
# A thread has at most 255 registers. On 1 warp this row alone would take 256. What does not fit is
# **spilled**: the compiler stores it in memory and loads it again later. That costs instructions
# and time.
#
# A multiprocessor holds several programs at a time: while one warp waits for memory, another can
# run. It has places for 64 warps, but the registers usually run out first. At 160 registers per
# thread, a program of 4 warps takes 128 * 160 = 20,480. Three programs fit in 65,536, and four do
# not: 12 warps.
#
# The next kernel loads `x` once. BLOCK is at least N, so one load brings the whole row, and the
# kernel uses that variable again.

# %%
predict("08-warps")

# %% tags=["answer"]
kernel_explorer("resident", BLOCK=8192)

# %% tags=["check"]
import triton

assert 128 * 160 == 20_480 and 65_536 // 20_480 == 3 and 3 * 4 == 12
assert 16 == 8192 // (32 * 16) and 8192 // (32 * 4) == 64 and 8192 // 32 == 256
one, sixteen = compile_forward(num_warps=1), compile_forward(num_warps=16)
assert one.spill_bytes > 0 == four.spill_bytes == sixteen.spill_bytes
assert 64 < four.registers < 255 and 16 < sixteen.registers < four.registers

# %% [markdown]
# Drag *num_warps* and watch the bars. Hatched bars show what is spilled. The line *resident warps*
# says how many warps a multiprocessor holds at a time.
#
# A program has at most 32 warps. The course's own kernel keeps `x` in 16 or 32 registers per
# thread, so its rows end at 32768 columns. Lesson 16 splits longer rows over several programs.

# %% tags=["check"]
from course_lib.compiler import occupancy
from course_lib.kernels.launch import tables

used = {N: tables.resident(N) for N in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)}
assert {made.rows * made.block // (32 * made.num_warps) for made in used.values()} == {16, 32}
assert used[32768].num_warps == 32 and tables.RESIDENT_LIMIT == 32768 and used[256].rows == 16
held = [occupancy("sm_90", made.registers, made.shared_bytes, warps) for made, warps in ((four, 4), (sixteen, 16))]
assert held[1] > 2 * held[0]
assert occupancy("sm_90", 160, 0, 4) == 4 * 3 == 12 and 128 * 160 * 3 < 65536 < 128 * 160 * 4
if triton.__version__.startswith("3.7."):
    assert (held, four.registers, sixteen.registers) == ([12, 32], 167, 48)
    assert find("08-warps").answer == "two rows" and held[1] // 16 == 2
    assert (128 * 167, 512 * 48) == (21_376, 24_576)

# %% [markdown]
# ## What do three loads cost?
#
# Lesson 06 gave the times for 4096 x 8192 fp16 numbers on an H100: 59.3 µs with three loads and
# 48.7 with one, 1.22 times as long. For as many numbers in rows of 1024 columns it is 1.04 times,
# and from 4096 columns on {{long_low}} to {{long_high}} times.

# %% [markdown]
# The chart divides each time by that of a copy of the same bytes. On a machine with a GPU it is
# measured now.

# %%
from course_lib.lessons.lesson08 import figures

figures.show_forward_cost()

# %% tags=["check"]
from course_lib.bench import forward, measurement

shown = measurement.stored("forward").only(forward.COLUMNS)
stored = {(row["provider"], row["N"]): row for row in figures.list_costs(shown)}
times = {N: stored["blocked", N]["us"] / stored["resident", N]["us"] for name, N in stored if name == "resident"}
assert [round(times[N], 2) for N in (8192, 1024)] == [1.22, 1.04] and stored["resident", 8192]["M"] == 4096
assert [round(stored[name, 8192]["us"], 1) for name in ("blocked", "resident")] == [59.3, 48.7]
assert {N: tables.resident(N).rows for N in (256, 1024, 2048, 4096, 8192, 16384, 32768)} == {
    256: 16, 1024: 4, 2048: 2, 4096: 1, 8192: 1, 16384: 1, 32768: 1,
}  # fmt: skip
assert all(ratio > 1 for ratio in times.values()) and max(times, key=times.get) == 256 and times[256] > 1.5

# %% [markdown]
# ## How does a program take several rows?
#
# At 256 columns the lines of the chart lie far apart. But there the two kernels differ in two
# things: the one with one load also takes 16 rows per program, and the other takes one. It loads a
# **tile** of ROWS x BLOCK numbers.
#
# Triton's blocks broadcast as NumPy's arrays do: `rows[:, None]` is a column, `cols[None, :]` is a
# row, and their sum is a table of offsets.

# %%
import numpy as np

rows, cols = np.arange(4, 6), np.arange(4)
print(rows[:, None] * 3 + cols[None, :])

# %%
predict("08-tile")

# %% tags=["check"]
offsets = rows[:, None] * 3 + cols[None, :]
assert offsets.tolist() == [[12, 13, 14, 15], [15, 16, 17, 18]]
assert (offsets == 15).sum() == 2 and ((offsets == 15) & (cols < 3)).sum() == 1
assert find("08-tile").answer == "for one of them"

# %% [markdown]
# `tl.sum(tile, axis=1)` adds along the rows and leaves ROWS numbers, one per row. A mask broadcasts
# like offsets: `(cols < N)[None, :]` is a row of truth values, for every row of the tile.
#
# **Your step.** Load a tile. M is a multiple of ROWS here, so every row exists.


# %% tags=["step"]
@triton.jit
def sum_kernel(x_ptr, sum_ptr, stride, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: tile: ROWS rows of x, and 0 past column N.
    tile_ptr = x_ptr + rows[:, None] * stride + cols[None, :]
    tile = tl.load(tile_ptr, mask=(cols < N)[None, :], other=0.0)
    # END SOLUTION
    tl.store(sum_ptr + rows, tl.sum(tile, axis=1))


step("08-tile")

# %% [markdown]
# ### Which mean is subtracted?
#
# Shapes are matched from the right: a mean of shape (4,) becomes (1, 4), a row. So in a tile of 4 x
# 4 numbers `x - mean` subtracts the mean of row 2 from *column* 2, and raises no error. `mean[:,
# None]` has shape (4, 1), a column: from each row its own mean is subtracted.

# %%
tile = np.array([[0], [10], [20], [30]]) + np.array([-1, 1, -2, 2])
mean = tile.mean(axis=1)
print("tile - mean\n", tile - mean)
print("tile - mean[:, None]\n", tile - mean[:, None])

# %% tags=["check"]
tile = np.array([[0], [10], [20], [30]]) + np.array([-1, 1, -2, 2])
mean = tile.mean(axis=1)
assert mean.tolist() == [0, 10, 20, 30] and (tile[0] - (tile - mean)[0]).tolist() == mean.tolist()
assert not (tile - mean[:, None]).mean(axis=1).any()

# %% [markdown]
# **Your step.** Here is one tile. Subtract from each row its own mean.


# %% tags=["step"]
@triton.jit
def centre_kernel(x_ptr, y_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    offsets = rows[:, None] * BLOCK + cols[None, :]
    x = tl.load(x_ptr + offsets)
    mean = tl.sum(x, axis=1) / BLOCK
    # BEGIN SOLUTION
    #: Subtract from each row its own mean.
    #| deviation = x - mean
    deviation = x - mean[:, None]
    # END SOLUTION
    tl.store(y_ptr + offsets, deviation)


step("08-broadcast")

# %% [markdown]
# ### What if the last tile has too many rows?
#
# With M = 5 and ROWS = 4 the second program has the rows 4, 5, 6 and 7, and only row 4 exists. If
# it stores four means without a mask, the other three land behind the tensor.


# %% tags=["check"]
@triton.jit
def store_rows_kernel(mean_ptr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tl.store(mean_ptr + rows, rows.to(tl.float32))


memory = torch.zeros(10, device=course_lib.DEVICE)
store_rows_kernel[(triton.cdiv(5, 4),)](memory, ROWS=4)
assert (memory[5:] != 0).sum() == 3 and memory[5:8].tolist() == [5, 6, 7]

# %% [markdown]
# So there are two conditions now: the row is below M, and the column is below N. The load and the
# store of a tile need both, `(rows < M)[:, None] & (cols < N)[None, :]`. The store of one number
# per row needs only the first.
#
# **Your step.** The kernel treats rows that do not exist as if they did. Mend both masks.


# %% tags=["step"]
@triton.jit
def mean_kernel(x_ptr, mean_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # BEGIN SOLUTION
    #: M need not be a multiple of ROWS.
    #| mask = (cols < N)[None, :]
    #| row_mask = rows >= 0
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    row_mask = rows < M
    # END SOLUTION
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(mean_ptr + rows, tl.sum(x, axis=1) / N, mask=row_mask)


step("08-rows")

# %% [markdown]
# ## Your turn: each row once
#
# After the subtraction a lane past the last *column* still holds `-mean`. Compute the variance by
# two-pass: one-pass would save no load, because the row is in registers. Each check also says what
# the compiler makes of *your* kernel: registers, spilled bytes, and load instructions.

# %%
from course_lib import exercise

exercise("08a")

# %% [markdown]
# When yours passes, run it in the map below.

# %%
from course_lib.lessons.pictures.access_map.forward import forward_map

forward_map("resident", "yours, 08a")

# %% tags=["check"]
from course_lib.kernels.layer_norm import layer_norm_resident_kernel
from course_lib.lessons.pictures.access_map.model import model
from course_lib.lessons.pictures.access_map.run import record
from course_lib.compiler import Pointer, compile_report

x, y = torch.randn(4, 100).half(), torch.empty(4, 100).half()
tensors = (x, y, torch.ones(100), torch.zeros(100), torch.empty(4), torch.empty(4))
constants = {"HAS_W": True, "HAS_B": True, "ROWS": 2, "BLOCK": 128}
asked = model(record(layer_norm_resident_kernel, (2,), (*tensors, 100, 1, 100, 1, 4, 100, 1e-5), constants))
assert (asked.times("x", "read"), asked.times("y", "write"), asked.times("w", "read")) == (1, 1, 2)

# %% [markdown]
# ## How much does one load bring?
#
# A load instruction brings up to 16 bytes, eight fp16 numbers, if they begin at a multiple of 16
# bytes. On 4 warps a thread has 64 numbers of a row of 8192: 8 loads.

# %%
predict("08-8184")

# %% tags=["answer"]
from course_lib.lessons.pictures.compiled_kernel.model import compile_forward

for N in (8192, 8184, 8191):
    print(f"N = {N}: loads of x, w and b, by bytes per thread: {compile_forward(N=N).loads}")

# %% tags=["check"]
narrow = compile_forward(N=8191)
assert narrow.loads == {2: 3 * 64} and find("08-8184").answer.startswith("64") and 8191 % 16 and 8192 % 16 == 0
assert compile_forward(N=8191, stride=8192).loads == narrow.loads == compile_forward(aligned=False).loads
assert compile_forward(N=8176).loads == four.loads and 8176 % 16 == 0 and compile_forward(N=8184).loads == narrow.loads

# %% [markdown]
# ### Why is my load narrow?
#
# The compiler takes a wide load only if it can prove that address and mask allow it. It needs three
# facts, and without one of them every load is narrow:
#
# | It has to know that | It does not if | What you do |
# |---|---|---|
# | the tensor begins at a multiple of 16 bytes: the **pointer** | you pass a slice such as `x[:, 1:]` | `x.contiguous()`, or slice at a multiple of 8 |
# | so does each row: the **stride** | the stride is no multiple of 16 | `stride = stride // 8 * 8`, if 8 divides it |
# | eight neighbours are in or out together: the **mask** | N is no multiple of 16 | `N = N // 8 * 8`, if 8 divides N |
#
# Choose N as a multiple of 16 if you can. If only 8 divides it, `N // 8 * 8` is the same number,
# and now the compiler sees the factor 8 (in fp32 a factor of 4 is enough). For any other N it would
# drop columns. The course's kernels call the factor `VECTOR`. There is also a hint,
# [`tl.multiple_of`](https://triton-lang.org/main/python-api/generated/triton.language.multiple_of.html),
# but with Triton 3.7 it changes no load when it is applied to an argument of the kernel. Look at
# the loads before you trust a hint.


# %% tags=["check"]
@triton.jit
def copy_rows_kernel(x_ptr, y_ptr, stride, N, HOW: tl.constexpr, BLOCK: tl.constexpr):
    if HOW == "arithmetic":
        N, stride = N // 8 * 8, stride // 8 * 8
    elif HOW == "stride alone":
        stride = stride // 8 * 8
    elif HOW == "mask alone":
        N = N // 8 * 8
    elif HOW == "promise":
        N, stride = tl.multiple_of(N, 8), tl.multiple_of(stride, 8)
    at = tl.program_id(0).to(tl.int64) * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < N
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask, other=0.0), mask=mask)


hinted = {
    how: compile_report(copy_rows_kernel, [Pointer("fp16")] * 2 + [1016, 1016], {"HOW": how, "BLOCK": 1024}).loads
    for how in ("", "promise", "stride alone", "mask alone", "arithmetic")
}
assert hinted[""] == hinted["stride alone"] == hinted["mask alone"] == {2: 8} and hinted["arithmetic"] == {16: 1}
elsewhere = [Pointer("fp16", aligned=False)] * 2 + [1016, 1016]
assert compile_report(copy_rows_kernel, elsewhere, {"HOW": "arithmetic", "BLOCK": 1024}).loads == {2: 8}
row = [*[Pointer("fp16")] * 4, *[Pointer("fp32")] * 2, 8184, 1, 8184, 1, 4096, 8184, 1e-5]
shown = {"HAS_W": True, "HAS_B": True, "ROWS": 1, "BLOCK": 8192, "VECTOR": 8}
assert compile_report(layer_norm_resident_kernel, row, shown).loads == four.loads
assert hinted["promise"] == {2: 8} or not triton.__version__.startswith("3.7.")

# %% [markdown]
# ## Without rails
#
# In a batch of sentences each row has its own length, and what lies behind its end in memory may be
# any number. This optional task asks for a kernel that takes such rows.

# %%
exercise("08b")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("07a")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("08")

# %% [markdown]
# **The ladder.** Run this cell again after each kernel that you pass.

# %%
from course_lib.lessons import ladder

ladder("08")

# %% [markdown]
# **Where to read on**
#
# - [CUDA C++ Programming Guide, "Compute
#   Capabilities"](https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities): how
#   many registers, warps and threads a multiprocessor holds (read November 2026).
# - [Nsight Compute, "Kernel Profiling
#   Guide"](https://docs.nvidia.com/nsight-compute/ProfilingGuide/): how to ask a GPU what your
#   kernel really moved, and what it waited for (read November 2026).
# - `course_lib/kernels/layer_norm.py`: the resident kernel of the course, with column strides and
#   cache hints.
#
# **Next:** lesson 09. The operation before a norm is often an addition, and it moves bytes, too.

# %% tags=["values"]
from course_lib.bench import forward, measurement
from course_lib.lessons.lesson08 import figures

us = {
    (row["provider"], row["N"]): row["us"]
    for row in figures.list_costs(measurement.stored("forward").only(forward.COLUMNS))
}
ratios = {N: us["blocked", N] / us["resident", N] for N in (4096, 8192, 16_384, 32_768)}
values = {
    "long_low": f"{min(ratios.values()):.2f}",
    "long_high": f"{max(ratios.values()):.2f}",
}
