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
# # 06 Reductions and memory: where does the time go?
#
# A LayerNorm kernel computes, its threads exchange numbers, and it moves numbers from memory and back.
# Which of the three takes its time on a GPU?
#
# *About 35 minutes, the exercise included. Needs: lesson 05.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("06")

# %%
M, N = 4096, 8192  # rows, columns; LayerNorm does seven operations for each element
H100_FLOPS = 67e12  # fp32 operations per second, from NVIDIA's data sheet
print(f"{7 * M * N / H100_FLOPS * 1e6:.1f} microseconds of arithmetic")

# %%
from course_lib.lessons import predict, step

predict("06-time")

# %% tags=["answer"] varies={"gpu": "the times are those of that GPU"}
from course_lib.lessons.norm_times import norm_times

times = norm_times(1024, 8192)  # of your GPU if you have one, else of the stored H100
print(times.label)
for provider in ("resident", "torch"):  # the course's fastest kernel, and PyTorch's
    print(f"LayerNorm, {provider:8}: {times.us('layer_norm', provider, 8192):5.1f} us")

# %% tags=["check"]
import numpy as np
import torch

from course_lib.lessons.norm_times import stored_norm_times
from course_lib.lessons.prediction import find

DEVICE = course_lib.DEVICE
stored = stored_norm_times()
assert "H100" in stored.label and "2026-11-21" in stored.label
assert abs(stored.us("layer_norm", "resident", 8192) - find("06-time").answer) < 0.5
assert 3.4 < 7 * M * N / H100_FLOPS * 1e6 < 3.6 and 13.5 < stored.us("layer_norm", "resident", 8192) / 3.5 < 14.5
assert round(stored.us("layer_norm", "torch", 8192)) == 76
assert round(4 * M * N / 1e6) == 134 and round(4 * M * N / 3350e9 * 1e6) == 40

# %% [markdown]
# So arithmetic is not the answer. Two suspects are left. A sum needs all numbers of a row, so the
# threads have to *exchange numbers*. And all numbers have to *come from memory*.
#
# ## How do many threads make one sum?
#
# By default a program runs on 128 **threads**. They share the lanes: with BLOCK = 1024 each thread
# has 8. It adds up its own lanes first. Then the threads have to meet.
#
# Here are 16 numbers and 8 threads. Press **Step**, and press a number to follow it.

# %%
from course_lib.lessons import reduction_tree

reduction_tree(16, threads=8, way="shared")

# %% [markdown]
# Write the step that the picture repeats. `held` is a NumPy array with one number for each thread.


# %% tags=["step"]
def add_in_a_tree(held):
    held = held.copy()  # the caller keeps its own
    stride = len(held) // 2
    while stride >= 1:
        # BEGIN SOLUTION
        #: Every thread t < stride adds what thread t + stride holds.
        held = held[:stride] + held[stride : 2 * stride]
        # END SOLUTION
        stride = stride // 2
    return held[0]


step("06-tree")

# %% [markdown]
# A tree saves no work: 16 numbers need 15 additions in any order. It saves *steps*. With 8192
# numbers, each of 128 threads first adds up its own 64 alone, in 63 steps. Then the tree takes 7
# steps.

# %% tags=["check"]
from course_lib.lessons.lesson06.reduction_tree.model import model as reduction

sixteen = reduction(np.arange(1, 17), threads=8)
assert [step_made.kind for step_made in sixteen.steps] == ["own"] + 3 * ["shared"]
assert sixteen.sum == 136 and sum(step_made.working for step_made in sixteen.steps) == 15
for p in (1, 32, 128, 1024):
    made = reduction(np.ones(8192), threads=p)
    assert len(made.steps) == 8192 // p - 1 + int(np.log2(p)) and made.sum == 8192
    if p == 128:
        assert len(made.steps) == 70
        assert sum(step_made.kind == "own" for step_made in made.steps) == 63

# %% [markdown]
# ## How does a thread get another thread's number?
#
# - Each thread keeps the numbers of its lanes in **registers**. Other threads cannot read them.
# - 32 threads are a **warp**. They carry out the same instruction together. The instruction `shfl`, a
#   **shuffle**, gives each thread a number from a register of another thread of its warp. No other
#   warp waits.
# - The warps of a program meet in **shared memory**: each writes its sum there, all wait at a
#   **barrier**, then threads read these few sums and add them up by shuffles.
# - All programs share the **L2 cache** and, behind it, **HBM**, the GPU's memory. Your tensors lie
#   there.
#
# Here is the shortest kernel that adds up a block. The compiler counts its instructions, and needs no
# GPU for that.

# %%
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(sum_ptr, tl.sum(x, axis=0))


# %% [markdown]
# The exchange depends on how many threads there are, not on how many numbers:

# %%
from course_lib.lessons.instruction_counts import count_instructions

for BLOCK, num_warps in ((32, 1), (1024, 1), (1024, 4), (8192, 4)):
    print(f"BLOCK {BLOCK}, {num_warps} warps:", count_instructions(sum_kernel, BLOCK, num_warps))

# %% tags=["check"]
for BLOCK, num_warps in ((32, 1), (1024, 1), (1024, 2), (1024, 4), (1024, 32), (4096, 4), (8192, 4)):
    counts = count_instructions(sum_kernel, BLOCK, num_warps)
    alone, together = BLOCK // (32 * num_warps) - 1, 5 + int(np.log2(num_warps))
    assert counts["shuffles"] == together and counts["additions"] == alone + together
    assert (counts["shared memory"] > 0) == (counts["barriers"] > 0) == (num_warps > 1)
    if (BLOCK, num_warps) == (1024, 4):
        assert counts["shuffles"] == 7
        drawn = reduction(np.ones(1024), 128, "shuffle", warp=32)  # the picture's model does what the compiler does
        assert sum(s.kind == "shuffle" for s in drawn.steps) == counts["shuffles"]
        assert len(drawn.additions) == counts["additions"]
assert counts["shuffles"] == 7  # of BLOCK = 8192, the last one

# %% [markdown]
# The same picture with shuffles: 8 threads in warps of 4. In a shuffle both threads of a pair get
# the other's number, so in the end all threads of the warp have the sum. Choose 8 threads per warp:
# which lines go away?

# %%
reduction_tree(16, threads=8, way="shuffle", warp=4)

# %% tags=["check"]
two_warps, one_warp = (reduction(np.arange(16), 8, "shuffle", warp=warp) for warp in (4, 8))
assert (two_warps.barriers, one_warp.barriers) == (2, 0)
assert {s.kind for s in two_warps.steps} - {s.kind for s in one_warp.steps} == {"meet", "share"}

# %% [markdown]
# ## Once per row, or once per block?
#
# A long row takes a loop. This kernel adds up each block as soon as it has loaded it.


# %%
@triton.jit
def sum_each_block_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(sum_ptr, total)


# %%
print(count_instructions(sum_each_block_kernel, BLOCK=1024, num_warps=4, N=8192))


# %% tags=["check"]
@triton.jit
def sum_once_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(sum_ptr, tl.sum(total, axis=0))


each, once = (count_instructions(kernel, 1024, 4, N=8192) for kernel in (sum_each_block_kernel, sum_once_kernel))
assert each["shuffles"] == 56 == 8 * 7 and once["shuffles"] == 7
assert once["barriers"] == 2 and each["barriers"] == 8 * 3
row = torch.randn(8192, device=DEVICE)
for kernel in (sum_each_block_kernel, sum_once_kernel):
    result = torch.empty(1, device=DEVICE)
    kernel[(1,)](row, result, 8192, BLOCK=1024)
    assert abs(result.item() - row.double().sum().item()) < 1e-2

# %% [markdown]
# Each of the eight blocks takes seven shuffles, 56 in all. After them the warps exchange their sums,
# and wait for one another at three barriers per block.
#
# Instead each *lane* can keep its own sum through the whole row, so that the lanes meet once, after the
# loop. Write the part before that: the kernel below stores what each lane holds after the loop.


# %% tags=["step"]
@triton.jit
def lane_sums_kernel(x_ptr, sums_ptr, N, BLOCK: tl.constexpr):
    # BEGIN SOLUTION
    #: total: BLOCK running sums, one for each lane, all 0.
    total = tl.zeros([BLOCK], dtype=tl.float32)
    # END SOLUTION
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # BEGIN SOLUTION
        #: Each lane adds its number to its sum. Lanes past N add nothing.
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        # END SOLUTION
    tl.store(sums_ptr + tl.arange(0, BLOCK), total)


step("06-lanes")

# %% [markdown]
# ## Why do the lanes lie along a row?
#
# With one *thread* per row no thread would need another. Is that faster? First see what memory sends
# for a load.

# %%
predict("06-eighth")

# %% tags=["answer"]
import numpy as np

for what, element in (("every column", np.arange(8192)), ("every eighth", np.arange(0, 8192, 8))):
    sectors = np.unique(element * 2 // 32).size  # an fp16 number has 2 bytes
    print(f"{what}: {element.size} numbers, {sectors} sectors, {sectors * 32} bytes")

# %% [markdown]
# Memory does not send single numbers. It sends **sectors** of 32 bytes. So count sectors, and not the
# numbers that a kernel asks for.
#
# Now give each row of 8192 fp16 numbers to one thread. A load of a warp then asks for one number in
# each of 32 rows, and these lie 16384 bytes apart:

# %%
import numpy as np

threads = np.arange(32)
for what, element in (("32 columns of a row", threads), ("column 0 of 32 rows", threads * 8192)):
    sectors = np.unique(element * 2 // 32).size
    print(f"{what}: {sectors} sectors, {sectors * 32} bytes for the {32 * 2} that were asked for")

# %% tags=["check"]
assert np.unique(np.arange(32) * 8192 * 2 // 32).size == 32
assert np.unique(np.arange(32) * 2 // 32).size == 2 and 4096 // 132 == 31
assert np.unique(np.arange(0, 8192, 8) * 2 // 32).size == np.unique(np.arange(8192) * 2 // 32).size == 512
assert find("06-eighth").answer == "all of it"

# %% [markdown]
# The other bytes are useful only if a cache still holds them when the next columns are asked for.
# So the lanes lie *along* the row, and the price is the exchange. Why not two programs per row?
# They cannot shuffle with each other. And with 4096 rows each of the 132 multiprocessors of an
# H100, which run the programs, has 31 rows to do anyway. (Lesson 16 has few rows.)
#
# ## So where did the time go?
#
# Into the exchange, or into memory? RMSNorm is a test: it needs one sum per row, and LayerNorm two.

# %%
predict("06-rms")

# %% tags=["answer"] varies={"gpu": "the times are those of that GPU"}
print(times.label)
print(f"LayerNorm   {times.us('layer_norm', 'resident', 8192):.1f} us, two sums per row")
print(f"RMSNorm     {times.us('rms_norm', 'resident', 8192):.1f} us, one sum")
print(f"a copy      {times.copy_us(8192):.1f} us, none")

# %% tags=["check"]
copy = stored.copy_us(8192)
rms, layer = (stored.us(op, "resident", 8192) for op in ("rms_norm", "layer_norm"))
assert find("06-rms").answer == "about 1 %" and 0.005 < layer / rms - 1 < 0.015
assert f"takes {layer:.1f} µs, RMSNorm {rms:.1f} µs" in find("06-rms").why
assert f"and it takes {copy:.1f} µs" in find("06-rms").why
assert copy < stored.us("rms_norm", "resident", 8192) < stored.us("layer_norm", "resident", 8192) < 1.03 * copy
gbps = round(2 * M * N * 2 / copy / 1e3, -1)
assert (gbps, round(100 * gbps / 3350)) == (2810, 84)
over = {provider: stored.over_floor("layer_norm", provider, 8192) for provider in ("resident", "torch")}
assert round(over["torch"], 1) == 1.6

# %% [markdown]
# ## How many sweeps does LayerNorm make?
#
# From here on the course divides the time of a kernel by that of a copy of the same matrix.
#
# A copy makes two sweeps over the matrix: one reads, one writes. Here is LayerNorm as you would type
# it, without `w` and `b`. Every operation is a kernel of its own.


# %%
import torch


def layer_norm_op_by_op(x, eps=1e-5):
    d = x - x.mean(dim=-1, keepdim=True)
    var = (d * d).mean(dim=-1, keepdim=True)
    return d * torch.rsqrt(var + eps)


# %% [markdown]
# Its operations make eight sweeps. `mean` reads `x`. The subtraction reads `x` and writes `d`. The
# product reads `d` and writes `d * d`, and the next `mean` reads that. The last line reads `d` and
# writes `y`. `var + eps` and `rsqrt` move one number per row: no sweep, but two of the seven
# launches.

# %% tags=["check"]
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.lessons.pictures.pass_counter import model as pass_model
from course_lib.lessons.pictures.pass_counter.model import ALGORITHMS, count


class Calls(TorchDispatchMode):
    """Counts the operations that reach PyTorch's kernels."""

    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


x = torch.randn(4, 100, device=DEVICE)
with Calls() as calls:
    y = layer_norm_op_by_op(x)
assert torch.allclose(y, torch.nn.functional.layer_norm(x, (100,)), atol=1e-4)
counted = {name: count(name, N=8192) for name in ALGORITHMS}
assert calls.number == counted["naive"].launches == 7
assert {name: c.passes() for name, c in counted.items()} == {
    "copy": 2, "naive": 8, "one_pass": 3, "two_pass": 4, "welford": 3,
    "resident": 2,
}  # fmt: skip
assert pass_model.LAUNCH_US == 10
assert all(count(name, N=100).passes() == counted[name].passes() for name in ALGORITHMS)  # a masked lane moves nothing

# %% [markdown]
# The picture shows the accesses of a copy and of five ways to compute LayerNorm. Press a bar, then
# drag the handle below the row. Which of them read the row more often than they need? (A triangle marks the CPU time of the
# launches, at an assumed 10 µs each. The second dive has measured numbers.)

# %%
from course_lib.lessons import pass_counter

pass_counter("naive", M=4096, N=8192)

# %% [markdown]
# ### How fast could it be at best?
#
# You can compute that before a kernel is written. `itemsize` is the bytes of an element, and `gbps`
# the speed of memory in 10⁹ bytes per second.


# %% tags=["step"]
def fewest_microseconds(M, N, itemsize, sweeps, gbps):
    # BEGIN SOLUTION
    #: The time of these sweeps; gbps is in 10**9 bytes per second.
    moved = sweeps * M * N * itemsize
    return moved / (gbps * 1e9) * 1e6
    # END SOLUTION


step("06-floor")

# %% [markdown]
# ### What does each further sweep cost?
#
# A two-pass LayerNorm for long rows reads `x` three times and writes `y`: four sweeps (lesson 07).
# Two copies take {{four_passes_us}} µs.

# %%
predict("06-cache")

# %% tags=["answer"] varies={"gpu": "the times are those of that GPU"}
blocked = times.us("layer_norm", "blocked", 8192)
sweeps = 2 * blocked / times.copy_us(8192)
print(f"{times.label}: {blocked:.1f} us, the time of {sweeps:.1f} sweeps")

# %% tags=["check"]
blocked = stored.us("layer_norm", "blocked", 8192)
assert 58 < blocked < 61 and find("06-cache").answer == "about 60 µs"
assert round(2 * blocked / copy, 1) == 2.5
assert round(4 * 132 * N * 2 / 1e6, 1) == 8.7  # four programs on each multiprocessor, a row each

# %% [markdown]
# ## Would faster arithmetic help?
#
# In fp16 LayerNorm does 7 operations and moves 4 bytes for each element: 1.75 operations per byte. That
# is its **arithmetic intensity**. An H100 can do 67 · 10¹² operations and move 3.35 · 10¹² bytes per
# second, 20 operations in the time of one byte. This ratio is its **ridge**. Left of it bytes set the
# time, right of it arithmetic does. The chart of both is called a **roofline**.

# %%
from course_lib.lessons.lesson06 import figures
from course_lib.lessons.norm_times import norm_times

figures.norms_on_the_roofline(norm_times(1024, 8192))

# %% tags=["check"]
assert figures.INTENSITY["LayerNorm"] == 7 / 4 == 1.75 and figures.INTENSITY["LayerNorm, op by op"] == 7 / 16
assert figures.H100.ridge == 20 == H100_FLOPS / 3.35e12 and 11 < figures.H100.ridge / 1.75 < 12
assert torch.finfo(torch.float16).max == 65504 and max(figures.INTENSITY.values()) < 20

# %% [markdown]
# By this chart LayerNorm could do eleven times the arithmetic before it took longer. (A real kernel
# reaches its limit earlier, because masks, addresses and merges are instructions, too: Welford of
# lesson 05 did on short rows.) Fewer bytes would help: `y` in fp8, one byte per number, makes 3
# bytes of 4.
#
# ## Your turn
#
# Exercise 06a adds up rows of any length. Each check counts how often the lanes of *your* kernel
# meet, beside the course's kernel. Do not forget the row number of 64 bits (lesson 05).
# `.to(tl.float32)` is needed where fp16 meets fp16, as in `tl.sum` of an fp16 block. Here the
# accumulator is fp32.

# %%
from course_lib import exercise

exercise("06a")


# %% tags=["check"]
@triton.jit
def sum_as_loaded_kernel(x_ptr, sum_ptr, N, CAST: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        total += x.to(tl.float32) if CAST else x
    tl.store(sum_ptr, tl.sum(total, axis=0))


large = (300 + torch.randn(1000, generator=torch.Generator().manual_seed(0))).half().to(DEVICE)
found = []
for cast in (True, False):
    result = torch.empty(1, device=DEVICE)
    sum_as_loaded_kernel[(1,)](large, result, 1000, CAST=cast, BLOCK=128)
    found.append(result.item())
with np.errstate(over="ignore"):
    sum_kernel[(1,)](large, result, BLOCK=512)  # tl.sum of a block of fp16
assert found[0] == found[1] > 65504 and result.isinf().all()

# %% [markdown]
# When it passes, go back to the picture of the sweeps, choose exercise 06a under it, and press
# **Count it**: how many sweeps are yours?

# %% [markdown]
# ## Without rails
#
# A language model takes the largest of its logits, a row of 100,000 numbers, and what it needs is
# the column. This optional task asks for both in one sweep.

# %%
exercise("06b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import offer_hunt

offer_hunt("05a")

# %%
from course_lib.lessons import review_predictions

review_predictions("06")

# %% [markdown]
# **The ladder.** A bar is a kernel's time divided by the least that the operation needs. On a GPU
# each kernel of yours that passes gets a bar; on a CPU its bytes are counted. Run the cell again
# after the next pass.

# %%
from course_lib.lessons import ladder

ladder("06")

# %% [markdown]
# **Where to read on**
#
# - Mark Harris, [Optimizing Parallel Reduction in
#   CUDA](https://developer.download.nvidia.com/assets/cuda/files/reduction.pdf) (NVIDIA, 2007): the
#   tree in shared memory, in seven versions.
# - Yuan Lin and Vinod Grover, [Using CUDA Warp-Level
#   Primitives](https://developer.nvidia.com/blog/using-cuda-warp-level-primitives/) (2018): how to
#   use shuffles. The instruction itself came with the Kepler GPUs of 2012.
# - Williams, Waterman and Patterson, [Roofline](https://doi.org/10.1145/1498765.1498785) (2009).
# - NVIDIA, [H100 data sheet](https://www.nvidia.com/en-us/data-center/h100/) and [Hopper
#   architecture in depth](https://developer.nvidia.com/blog/nvidia-hopper-architecture-in-depth/)
#   (2022): the numbers of this page.
#
# **Next:** lesson 07, a LayerNorm for rows of any length, any stride and any dtype.

# %% [markdown] tags=["dive"]
# ## Dive: is seven an honest count?

# %% [markdown]
# It counts no masks, no addresses and no exchange of numbers. The compiler can count all of it.
# `resident_kernel` is LayerNorm without `w` and `b`, so it should need 5 operations for each
# element.

# %%
from course_lib.lessons.instruction_counts import count_flop_per_element
from course_lib.lessons.pictures.pass_counter.model import resident_kernel

for BLOCK, num_warps in ((1024, 4), (4096, 8), (8192, 8)):
    flop = count_flop_per_element(resident_kernel, BLOCK, num_warps)
    print(f"{BLOCK // (32 * num_warps):2} elements per thread: {flop:.2f} operations for each")

# %% tags=["check"]
flop = [count_flop_per_element(resident_kernel, *shape) for shape in ((1024, 4), (4096, 8), (8192, 8))]
assert 7 > flop[0] > flop[1] > flop[2] > 5 and flop[2] < 5.6

# %% [markdown]
# What is above 5 is the exchange of numbers and the divisions. A thread does those once per row, so
# they thin out as its share of the row grows.

# %% [markdown] tags=["dive"]
# ## Dive: what if there are hardly any bytes?

# %% [markdown]
# 16 rows of 4096 columns are 0.26 MB for a copy. At {{copy_gbps}} GB/s that is a tenth of a
# microsecond. No kernel is that fast, for three reasons.
#
# - 16 programs keep 16 of 132 multiprocessors busy. So few cannot ask for enough bytes at once to
#   fill the memory's bandwidth.
# - A kernel has to start, and its first load has to come back. In the course's stored counters of
#   an H100 the shortest kernels take {{shortest_us}} µs, and they move nothing.
# - Python has to call it. The course stores what a call costs the CPU: {{call_torch_us}} µs for
#   PyTorch's LayerNorm, {{call_kernel_us}} µs for a launch of the course's kernel, and
#   {{call_ours_us}} µs for the course's LayerNorm, a function that checks its arguments, chooses a
#   launch, and launches it.
#
# While one kernel runs, the CPU prepares the next. So in a long series of calls each takes the
# *longer* of the two, not their sum.

# %%
from course_lib.lessons.lesson06 import figures

figures.call_or_bytes(bandwidth=2.81e12)

# %% tags=["check"]

from course_lib.bench import measurement

shortest = sorted(row["us"] for row in measurement.stored("counters").rows)[:3]
assert shortest[-1] - shortest[0] < 0.1
assert round(2 * 16 * 4096 * 2 / 1e6, 2) == 0.26 and 0.09 < 262144 / 2.81e12 * 1e6 < 0.1

# %% [markdown]
# Below {{torch_mb}} MB PyTorch's call is what takes time, below {{kernel_mb}} MB the call of a
# Triton kernel from Python. So for small matrices count calls. Lesson 15 shows how to measure in
# spite of this.

# %% [markdown] tags=["dive"]
# ## Dive: do sweeps explain somebody else's GPU?

# %% [markdown]
# The post [Layer Normalization as fast as
# possible](https://fleetwood.dev/posts/layernorm-as-fast-as-possible) (December 2023) times three
# kernels in a browser, on WebGPU. Its two-pass kernel takes 159.4 µs. If the sweeps are the whole
# story, the other two follow.

# %%
published = {"two_pass": (4, 159.4), "one_pass": (3, 126.5), "welford": (3, 113.9)}
for name, (sweeps, us) in published.items():
    print(f"{name:8}: {sweeps} sweeps, expected {159.4 * sweeps / 4:.1f} us, published {us} us")

# %% tags=["check"]
for name, (sweeps, us) in published.items():
    assert sweeps == counted[name].passes() and abs(159.4 * sweeps / 4 / us - 1) < 0.06

# %% [markdown]
# The expected times are right within 6 %, without a word about arithmetic or the GPU. Sweeps explain
# why Welford beats two-pass, with the most arithmetic of the three. They do not explain why
# one-pass, which saves the same pass, is slower than Welford.

# %% tags=["values"]
from course_lib.bench import measurement
from course_lib.lessons.norm_times import stored_norm_times

h100 = stored_norm_times()
copy_us, copy_gbps = h100.copy_us(8192), round(2 * 4096 * 8192 * 2 / h100.copy_us(8192) / 1e3, -1)
host = {
    r["provider"]: r["us"]
    for r in measurement.stored("host").rows
    if (r["op"], r["passes"]) == ("layer_norm", "forward")
}
values = {
    "copy_gbps": f"{copy_gbps:.0f}",
    "four_passes_us": f"{2 * copy_us:.0f}",
    "shortest_us": min(r["us"] for r in measurement.stored("counters").rows),
    "call_torch_us": f"{host['torch']:.0f}",
    "call_kernel_us": f"{host['kernels']:.0f}",
    "call_ours_us": f"{host['ours']:.0f}",
    "torch_mb": f"{round(host['torch'] * copy_gbps / 1e3, -1):.0f}",
    "kernel_mb": f"{round(host['kernels'] * copy_gbps / 1e3, -1):.0f}",
}
