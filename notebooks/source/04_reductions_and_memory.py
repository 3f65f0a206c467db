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
# # 04 Reductions and memory
#
# Lesson 03 asked how many digits of a sum survive. This one asks what the sum costs. There are two prices. Lanes have to talk to one
# another, and bytes have to travel. At the end you can say how fast a norm kernel can possibly be, before anybody has written it.
#
# **You will be able to**
#
# - add up N numbers with p threads, and say in how many steps, and who is idle;
# - tell a warp, a shuffle and shared memory apart, and find each in what the compiler wrote;
# - say why a row gets one program, not two programs and not one thread;
# - count the passes an algorithm makes over memory, and check the count against a trace;
# - say from two numbers of a data sheet whether bytes or arithmetic set the time, and why a copy is the limit;
# - write a kernel that adds up rows.
#
# **You need** lesson 00 with exercise 00a (programs, lanes, masks) and the algorithms of lesson 03. No knowledge of GPUs.
#
# **Time** about 75 minutes: 60 to read and run, 15 for exercise 04a.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import re

import numpy as np
import torch
import triton
import triton.language as tl

from course_lib import exercise
from course_lib.lessons import pass_counter, picture, reduction_tree

# %% [markdown]
# ## How many steps for sixteen numbers?
#
# Alone you need 15 additions, and each waits for the one before. Now you are eight. Everybody may add two numbers at the same time, then
# again, and so on. How many steps until one of you has the sum? How many additions do you do together? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
held = np.arange(1, 17)
steps = additions = 0
stride = 8
while stride:
    held = held[:stride] + held[stride : 2 * stride]  # thread t adds the number that lies `stride` further on
    steps, additions = steps + 1, additions + stride
    print(f"step {steps}, stride {stride}: {stride} add, {8 - stride} of 8 idle: {held}")
    stride //= 2
print(f"{steps} steps, {additions} additions")
assert (steps, additions, held[0]) == (4, 15, 136) and held[0] == sum(range(1, 17))

# %% [markdown]
# Four steps, because every step halves what is left: log2(16). The additions are 15, as before. A tree saves no work. It does the same work
# sooner, with half of the workers idle in the second step and more in each that follows. It also rounds differently, and better: that was
# lesson 03.
#
# Step through it. Each line shows what the threads hold, and the lines between them show whose number a thread adds. Then take 13 values
# for the 8 threads. How many steps now, and who has nothing to do in the first? *(Predict, then move the slider.)*

# %%
reduction_tree(16, threads=8, way="shared")

# %%
from course_lib.lessons.reduction_tree.model import model as reduction

thirteen = reduction(np.arange(13), threads=8)
print([f"{step.kind}: {step.working} add, {step.idle} idle" for step in thirteen.steps])
assert len(reduction(np.arange(16), threads=8).steps) == len(thirteen.steps) == 4
assert thirteen.steps[0].working == 5 and thirteen.sum == np.arange(13).sum()

# %% [markdown]
# Still four steps, and threads 5, 6 and 7 sit out the first. A number that does not exist costs as much time as one that does.
#
# ### And 8192 numbers?
#
# A program has at most 1024 threads, and a long row has more numbers than that. So the work has two parts. First each of p threads adds up
# its own N / p numbers, and needs nobody. Then the threads meet, in log2(p) steps. How many steps for N = 8192 and p = 1, 32, 128, 1024,
# and 8192 if you could have them? *(Predict, then run.)*

# %%
steps = {}
for p in (1, 32, 128, 1024, 8192):
    alone, together = 8192 // p - 1, int(np.log2(p))
    steps[p] = alone + together
    print(f"{p:5} threads: {alone:4} steps alone + {together:2} together = {steps[p]}")
    if p <= 1024:  # the widget's model, counted step by step
        made = reduction(np.ones(8192), threads=p)
        assert len(made.steps) == steps[p] and made.sum == 8192
assert list(steps.values()) == [8191, 260, 70, 17, 13]

# %% [markdown]
# 128 threads need 70 steps where one needs 8191. 63 of the 70 are spent alone. Only the last 7 need a partner, and these are the ones that
# this lesson calls a conversation. What does a step of it cost?
#
# ## Where do the numbers lie?
#
# So far "thread" was a word. On the GPU it is this.
#
# - A **thread** has registers of its own. What it adds up lies there. No other thread can read them.
# - 32 threads are a **warp**. A warp carries out one instruction for all 32 at once.
# - A **program** is one or more warps: `num_warps`, 4 unless the launch says otherwise. Its BLOCK lanes are dealt out to 32 · num_warps
#   threads.
# - A **multiprocessor** (SM) runs several programs at a time. Next to its registers it has **shared memory**. A program gets a piece of it,
#   which all its threads can read and write, and no other program can.
# - Behind them lie the **L2 cache** and **HBM**, the GPU's memory. Every tensor lives there, and every program can reach it.
#
# How large are they? The numbers below are NVIDIA's for the H100 in its SXM form. An fp32 row of 8192 numbers: does it fit into the
# registers of one multiprocessor? And the registers of all of them together against the L2 cache: which is larger? *(Predict, then run.)*

# %%
# NVIDIA, "H100 Tensor Core GPU Architecture" (white paper) and the H100 data sheet, SXM5
SMS, REGISTERS, L2 = 132, 256 * 2**10, 50 * 2**20  # multiprocessors; bytes of registers in each; bytes
HBM_BYTES_A_SECOND, FLOPS = 3.35e12, 67e12  # fp32, outside the tensor cores

row = 8192 * 4
print(f"a row takes {row // 2**10} KiB, the registers of an SM {REGISTERS // 2**10} KiB: {REGISTERS // row} rows")
print(f"registers of all SMs {SMS * REGISTERS / 2**20:.0f} MiB, L2 cache {L2 / 2**20:.0f} MiB")
print(f"BLOCK = 1024 on 4 warps: {1024 // (32 * 4)} lanes a thread")
assert REGISTERS // row == 8 and SMS * REGISTERS == 33 * 2**20 < L2 and 1024 // (32 * 4) == 8

# %% [markdown]
# Eight such rows fit next to the arithmetic, and the registers of all 132 together are two thirds of the cache. Keep that in mind. A row
# that has been loaded once has a place to stay.
#
# ### How does thread 0 get a number out of thread 4?
#
# It cannot reach into the other's registers. There are two ways.
#
# **Shared memory.** Every thread writes its number down. All wait at a **barrier** until the last one has written. Then thread 0 reads what
# thread 4 wrote. A write, a wait and a read, at every step.
#
# **A shuffle.** One instruction, `shfl`, hands each thread of a warp the register of another thread of the same warp. Nothing is written to
# memory, and there is no barrier: the instruction itself keeps the 32 in step. In the usual form thread t gets the number of thread t xor
# stride: partners swap.
#
# Let 32 threads swap with strides 16, 8, 4, 2, 1, and each add what it got. What does thread 31 hold at the end? How many additions were
# that, against the 31 that are needed? *(Predict, then run.)*

# %%
t = np.arange(32)
held = np.arange(1, 33)
additions = 0
for stride in (16, 8, 4, 2, 1):
    held = held + held[t ^ stride]  # all 32 at once: one shuffle, one addition
    additions += held.size
print("all threads hold", set(held.tolist()), "after", additions, "additions")
assert (held == 528).all() and sum(range(1, 33)) == 528 and additions == 5 * 32 == 160

# %% [markdown]
# The sum, and so does every other thread. 160 additions instead of 31, and yet no slower: a warp takes the same time for one addition as
# for 32. The idle half of the tree now does its partner's work a second time. In exchange nobody has to be told the result.
#
# ## What does the compiler make of `tl.sum`?
#
# You need no GPU to find out. `compile_report` compiles a kernel for an H100, here and now, and hands over the PTX: the instructions, one a
# line, as every thread of a warp carries them out. (The SASS that the GPU really runs is one translation further. Lesson 06 goes there.)
#
# The kernel loads BLOCK numbers, adds them up and stores one. How many `shfl` do you expect for BLOCK = 1024 on one warp? On four warps?
# And where do you expect a barrier, `bar.sync`? *(Predict, then run.)*

# %%
from course_lib.compiler import Pointer, compile_report


@triton.jit
def sum_kernel(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(sum_ptr, tl.sum(x, axis=0))


WORDS = {
    "shuffles": r"shfl\.sync\.bfly",
    "additions": r"add\.f32",
    "stores": r"st\.shared",
    "loads": r"ld\.shared",
    "barriers": r"bar\.sync",
}


def bill(BLOCK: int, num_warps: int) -> dict[str, int]:
    arguments = {"x_ptr": Pointer("fp32"), "sum_ptr": Pointer("fp32")}
    ptx = compile_report(sum_kernel, arguments, {"BLOCK": BLOCK}, num_warps=num_warps, disassemble=False).ptx
    return {name: len(re.findall(pattern, ptx)) for name, pattern in WORDS.items()}


print("BLOCK warps  shuffles additions | shared memory: stores loads barriers")
bills = {}
for BLOCK, num_warps in ((32, 1), (1024, 1), (1024, 2), (1024, 4), (1024, 32), (4096, 4)):
    b = bills[BLOCK, num_warps] = bill(BLOCK, num_warps)
    inside, outside = f"{b['shuffles']:9} {b['additions']:9}", f"{b['stores']:21} {b['loads']:5} {b['barriers']:8}"
    print(f"{BLOCK:5} {num_warps:5} {inside} | {outside}")

    alone, together = BLOCK // (32 * num_warps) - 1, 5 + int(np.log2(num_warps))
    assert b["shuffles"] == together and b["additions"] == alone + together
    meets = num_warps > 1
    assert (b["stores"] > 0, b["loads"] > 0, b["barriers"] > 0) == (meets, meets, meets)
assert bills[1024, 1]["shuffles"] == 5 and bills[1024, 4]["shuffles"] == 7

# %% [markdown]
# Read the table line by line.
#
# - **One warp:** five shuffles, because 32 = 2⁵, for 32 numbers as for 1024. What the 1024 add is 31 additions that each thread does by
#   itself, before the first shuffle. No shared memory, no barrier. The lanes talk only inside the warp.
# - **Four warps:** seven additions alone instead of 31, and two more shuffles. A shuffle does not leave its warp, so the four warps meet in
#   shared memory: each writes one number, all wait, one warp adds the four by two shuffles, writes the total, all wait again, and everybody
#   reads it.
# - **32 warps:** nothing left to do alone, ten shuffles, and 32 warps that wait for one another.
#
# So more warps share the work and pay with waiting. And neither shuffles nor barriers grow with BLOCK.
#
# Here is the same with 8 threads and warps of 4, which fit into a picture. Change the threads a warp to 8. Which lines of the picture go
# away?

# %%
reduction_tree(16, threads=8, way="shuffle", warp=4)

# %%
one_warp, two_warps = (reduction(np.arange(16), 8, "shuffle", warp=warp) for warp in (8, 4))
print("one warp: ", [step.kind for step in one_warp.steps], "barriers:", one_warp.barriers)
print("two warps:", [step.kind for step in two_warps.steps], "barriers:", two_warps.barriers)
assert (one_warp.barriers, two_warps.barriers) == (0, 2)
assert {step.kind for step in two_warps.steps} - {step.kind for step in one_warp.steps} == {"meet", "share"}

# the picture is what the compiler wrote: 1024 numbers, 128 threads, warps of 32
real = reduction(np.ones(1024), 128, "shuffle", warp=32)
assert sum(step.kind == "shuffle" for step in real.steps) == bills[1024, 4]["shuffles"] == 7
assert len(real.additions) == bills[1024, 4]["additions"] == 14

# %% [markdown]
# The two lines through shared memory, with both barriers.
#
# ### Once a row, or once a block?
#
# A row of 8192 columns in blocks of 1024 is eight steps. You can add up the lanes in every step and keep one number. Or let each lane keep
# its own sum through the whole row, and add up the lanes once. How many shuffles does a thread carry out, one way and the other? *(Predict,
# then run.)*


# %%
@triton.jit
def sum_each_block_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0), axis=0)
    tl.store(sum_ptr, total)


@triton.jit
def sum_once_kernel(x_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(sum_ptr, tl.sum(total, axis=0))


def carried_out(kernel, word: str, trips: int) -> int:
    """How often a thread meets the word, with ``trips`` round the loop."""
    arguments = {"x_ptr": Pointer("fp32"), "sum_ptr": Pointer("fp32"), "N": 8192}
    ptx = compile_report(kernel, arguments, {"BLOCK": 1024}, num_warps=4, disassemble=False).ptx
    label_to_jump_back = r"^(\$L__BB\w+):.*?bra(?:\.uni)?\s+\1;"
    loop = re.search(label_to_jump_back, ptx, re.DOTALL | re.MULTILINE).group()
    inside = len(re.findall(word, loop))
    return trips * inside + len(re.findall(word, ptx)) - inside


x_row = torch.randn(8192, device=DEVICE)
done = {}
for kernel in (sum_each_block_kernel, sum_once_kernel):
    result = torch.empty(1, device=DEVICE)
    kernel[(1,)](x_row, result, 8192, BLOCK=1024)
    name = "once a block" if kernel is sum_each_block_kernel else "once a row"
    done[name] = [carried_out(kernel, WORDS[word], trips=8) for word in ("shuffles", "barriers")]
    print(f"{name:12}: {done[name][0]:2} shuffles, {done[name][1]:2} barriers, sum {result.item():.3f}")
    assert abs(result.item() - x_row.double().sum().item()) < 1e-2
assert done["once a row"][0] == 7 and done["once a block"][0] == 8 * 7
assert done["once a row"][1] == 2 and done["once a block"][1] >= 8 * 2

# %% [markdown]
# 7 shuffles against 56, and in place of two barriers two or three in every block. The sums agree. So lanes keep their own sums, and meet
# once. That is the pattern of every blocked kernel in this course, and of exercise 04a.
#
# ## Why is a row one program?
#
# Why not two programs for a row, each with one half? Two programs share nothing but HBM: no shuffle and no barrier reaches from one to the
# other. So each stores its partial sum, and a second launch adds up the partial sums. Here it is for four rows.


# %%
@triton.jit
def partial_sums_kernel(x_ptr, partial_ptr, N, HALF, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * HALF + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < tl.minimum(N, (part + 1) * HALF), other=0.0)
    tl.store(partial_ptr + row * tl.num_programs(1) + part, tl.sum(x, axis=0))


@triton.jit
def finish_kernel(partial_ptr, sum_ptr, PARTS: tl.constexpr):
    row = tl.program_id(0)
    partial = tl.load(partial_ptr + row * PARTS + tl.arange(0, PARTS))
    tl.store(sum_ptr + row, tl.sum(partial, axis=0))


M, N, PARTS = 4, 1000, 2
x = torch.randn(M, N, device=DEVICE)
partial, sums = torch.empty(M, PARTS, device=DEVICE), torch.empty(M, device=DEVICE)
partial_sums_kernel[(M, PARTS)](x, partial, N, N // PARTS, BLOCK=512)
finish_kernel[(M,)](partial, sums, PARTS=PARTS)
print("partial sums:", partial.tolist(), "\nsums:", sums.tolist())
assert torch.allclose(sums, x.sum(dim=1), atol=1e-3)

# %% [markdown]
# Right, and twice the launches. What would it buy? More programs, for the multiprocessors that have none. How many programs has each of the
# 132 if a row is one program and M = 4096? And how many of the 132 work if M = 1? *(Predict, then run.)*

# %%
for M in (4096, 132, 16, 1):
    busy = min(M, SMS)
    print(f"M {M:4}: {M / SMS:6.2f} programs an SM, {busy} of {SMS} at work, {100 * busy / SMS:.0f} %")
assert round(4096 / SMS) == 31 and min(1, SMS) / SMS < 0.01

# %% [markdown]
# 31 programs for each: splitting rows would add nothing but a launch. A norm in training has thousands of rows, so one program a row is the
# rule. At M = 1 less than a hundredth of the GPU works, and then splitting pays. Lesson 12 does it, with one launch.
#
# ### Then why not one thread a row?
#
# 32 rows a warp, one a thread, and no conversation at all: every thread adds up its own row. It sounds like the better idea. Look at what
# the warp asks of memory in one load. Memory does not deliver numbers. It delivers **sectors** of 32 bytes, aligned, whole.
#
# fp16, rows of 8192. How many sectors does a warp touch if its threads take 32 neighbours in a row? If they take column 0 of 32 rows? And
# how many bytes come along that nobody asked for? *(Predict, then run.)*

# %%
threads = np.arange(32)
sectors = {}
for name, element in (("one row, 32 columns", threads), ("32 rows, one column", threads * 8192)):
    sectors[name] = np.unique(element * 2 // 32).size  # 2 bytes an element, 32 a sector
    print(f"{name}: {sectors[name]:2} sectors = {sectors[name] * 32:4} bytes moved for {32 * 2} asked for")
assert list(sectors.values()) == [2, 32]

# %% [markdown]
# 2 against 32: sixteen times the traffic, unless a cache keeps the rest of each sector until the thread comes back for it. So the lanes lie
# *along* the row, neighbours take neighbours, and the price is the conversation. Seven shuffles are cheap against that.
#
# ## What does one pass cost?
#
# With the conversation settled, the bytes remain. A **pass** is: every element of an M x N matrix once, read or written. Take M = 4096, N =
# 8192, fp16. The data sheet promises 3350 GB/s. A copy makes two passes and does nothing else. How much of the 3350 does it reach?
# *(Predict, then run.)*
#
# The measurement is taken on this machine if it has a GPU. If not, it is the stored one of the GPU that the output names.

# %%
from course_lib.bench import forward

measured = forward.latest((1024, 8192))
rows = {(r["op"], r["provider"], r["N"]): r for r in measured.rows}


def copy_us(N: int) -> float:
    """Time of a copy of the same matrix, from the same run."""
    resident = rows["rms_norm", "resident", N]
    return resident["us"] / resident["over_floor"]


M, N = rows["rms_norm", "resident", 8192]["M"], 8192
matrix_bytes = M * N * 2
copied = 2 * matrix_bytes / (copy_us(N) * 1e-6)  # bytes a second
pass_us = copy_us(N) / 2
print(f"{measured.label()}: a copy of {M} x {N} in fp16 ({matrix_bytes / 1e6:.0f} MB) takes {copy_us(N):.1f} us")
print(f"{copied / 1e9:.0f} GB/s; one pass {pass_us:.1f} us")
assert (M, matrix_bytes) == (4096, 67108864)
if "H100" in measured.device and "HBM3" in measured.device:
    print(f"{100 * copied / HBM_BYTES_A_SECOND:.0f} % of the data sheet")
    assert 0.75 < copied / HBM_BYTES_A_SECOND < 0.95

# %% [markdown]
# About 84 % on the stored H100, and that is a good copy: switching between reading and writing, refreshing the memory and filling the GPU
# take the rest. So the data sheet is not what to compare with. The copy is. One pass over this matrix takes about 24 µs there, and that is
# the coin in which everything below is paid.
#
# ### How many passes does each algorithm make?
#
# You know the algorithms from lesson 03. Here each has to write `y` as well, for rows longer than a block:
#
# - **op by op:** `mean`, `x - mean`, square, `mean`, multiply: five kernels, each writes its result for the next to read;
# - **one-pass:** both sums in one sweep, then a sweep that writes `y`;
# - **two-pass, blocked:** mean, then squared deviations, then `y`;
# - **Welford, blocked:** mean and M2 in one sweep, then `y`;
# - **two-pass, resident:** the row fits into one block and stays in registers.
#
# Count reads and writes for each. *(Write six numbers down, the copy's is 2. Then run.)*
#
# The cell does not count by thinking. It runs a small kernel of each in the interpreter, records every access, and divides the bytes asked
# for by the bytes of the matrix.

# %% tags=["nbval-check-output"]
from course_lib.lessons.pass_counter.model import ALGORITHMS, count

counted = {name: count(name, N=8192) for name in ALGORITHMS}
print(f"{'':20} reads writes passes launches")
for name, c in counted.items():
    reads, writes = c.passes("load"), c.passes("store")
    print(f"{ALGORITHMS[name]:20} {reads:5.0f} {writes:6.0f} {c.passes():6.0f} {c.launches:8}")
assert {name: c.passes() for name, c in counted.items()} == {
    "copy": 2, "naive": 8, "one_pass": 3, "two_pass": 4, "welford": 3, "resident": 2,
}  # fmt: skip

# %% [markdown]
# Eight, three, four, three, two. Choose each in the widget and find its sweeps. Then make N = 100, which leaves 924 of 1024 lanes without a
# column. Does the number of passes change? And what happens to the bytes from fp16 to fp32? *(Predict, then move.)*

# %%
pass_counter("two_pass", M=4096, N=8192)

# %%
for name in ALGORITHMS:  # a masked lane asks for nothing
    assert count(name, N=100).passes() == counted[name].passes()
two_pass = counted["two_pass"]
for dtype, itemsize in (("fp16", 2), ("fp32", 4)):
    print(f"two-pass, blocked, {dtype}: {two_pass.bytes(M, itemsize) / 1e6:.0f} MB")
assert two_pass.bytes(M, 4) == 2 * two_pass.bytes(M, 2) == 4 * M * N * 4
assert counted["naive"].a_row == 4 * 4  # mean and variance: four bytes a row each, written once and read once

# %% [markdown]
# Passes do not change, and bytes double. (`w` and `b` are left out: every row reads the same few kilobytes, and they stay in the cache.)
#
# ### Does a pass more cost time?
#
# The post "Layer Normalization as fast as possible" measured three WebGPU kernels on one matrix. Its two-pass kernel takes 159.4 µs. If
# passes are the whole story, what do its one-pass and its Welford kernel take? *(Predict, then run.)*

# %%
published = {"two_pass": 159.4, "one_pass": 126.5, "welford": 113.9}  # microseconds, as the post gives them
for name, us in published.items():
    passes = counted[name].passes()
    predicted = published["two_pass"] * passes / counted["two_pass"].passes()
    print(f"{ALGORITHMS[name]:18} {passes:.0f} passes: predicted {predicted:5.1f} us, published {us} us")
    assert abs(predicted / us - 1) < 0.06

# %% [markdown]
# 119.6 µs, within 6 % of both, and nothing was said about arithmetic, threads or the GPU. Welford's update has a division in it and is by
# far the most laborious of the three. It wins because it saves a sweep. What is left over, some above and some below, you can put a name
# to: the post's one-pass kernel adds up in a tree in shared memory, its Welford kernel by shuffles, with wider loads.
#
# Which means: where there is no sweep to save, Welford saves nothing. A row that stays in registers is read once whatever the algorithm,
# and then you take the accurate one that is cheapest to write. That is two-pass.
#
# ### Does the GPU make all the passes it is asked for?
#
# Four passes at 24 µs are 95 µs. What does the course's blocked LayerNorm take? *(Predict, then run.)*

# %%
blocked, resident = rows["layer_norm", "blocked", N], rows["layer_norm", "resident", N]
print(measured.label())
for name, r, asked in (("blocked", blocked, 4), ("resident", resident, 2)):
    took = f"takes {r['us']:5.1f} us, the time of {2 * r['over_floor']:.1f} passes"
    print(f"{name:8}: asks for {asked} passes = {asked * pass_us:5.1f} us; {took}")
at_once = 4 * SMS * N * 2  # say four programs on each SM, a row each
print(f"four rows on each SM at a time: {at_once / 1e6:.1f} MB; L2 holds {L2 / 1e6:.0f} MB")
assert at_once < L2 / 5 and abs(blocked["us"] / pass_us - 2 * blocked["over_floor"]) < 0.1
if not measured.live:
    assert blocked["us"] < 4 * pass_us and 2 * blocked["over_floor"] < 3

# %% [markdown]
# Less: on the stored H100 the time of two and a half passes. The rows that are at work at one moment are few megabytes, so the second and
# third read of a row find it in L2. A count from a trace is what the kernel *asks for*. What HBM really moves lies between 2 passes, if a
# cache answers every repeated read, and the count, if it answers none. The count is a question, and a measurement answers it. Lesson 06
# measures all row lengths.
#
# ## Is it really the bytes?
#
# Perhaps the arithmetic would take just as long. Count it. For one element LayerNorm adds to the sum (1), subtracts the mean (1), squares
# and adds (2), multiplies by `rstd` (1) and by `w` (1), adds `b` (1): 7 FLOP. RMSNorm squares and adds (2) and multiplies twice: 4. In fp16
# an element moves 4 bytes, in and out.
#
# The H100 does 67 · 10¹² FLOP a second and moves 3.35 · 10¹² bytes. How long does LayerNorm of the 4096 x 8192 matrix take for the
# arithmetic alone? For the bytes alone? *(Predict, then run.)*

# %%
FLOP = {"LayerNorm": 7, "RMSNorm": 4}
arithmetic_us = FLOP["LayerNorm"] * M * N / FLOPS * 1e6
bytes_us = 2 * matrix_bytes / HBM_BYTES_A_SECOND * 1e6
print(f"arithmetic {arithmetic_us:.1f} us, bytes {bytes_us:.1f} us: {bytes_us / arithmetic_us:.1f} times as long")
assert 3 < arithmetic_us < 4 and 40 < bytes_us < 41 and 11 < bytes_us / arithmetic_us < 12
assert bytes_us > 5 * 2 * arithmetic_us  # the sheet counts a fused multiply-add as two; without any it is half the peak

# %% [markdown]
# 3.5 µs against 40. And the two overlap: while some warps wait for memory, others add. So the arithmetic hides behind the bytes.
#
# Is 7 honest? It counts no addresses, no masks and no conversation. Ask the compiler: the resident kernel of the pass counter has no `w`
# and no `b`, so it should need 5. How many floating-point operations an element does the PTX hold? An `fma` is two. *(Predict, then run.)*

# %%
from course_lib.lessons.pass_counter.model import resident_kernel

per_element = {}
for BLOCK, num_warps in ((1024, 4), (4096, 8), (8192, 8)):
    arguments = {"x_ptr": Pointer("fp16"), "y_ptr": Pointer("fp16"), "N": BLOCK, "eps": 1e-5}
    ptx = compile_report(resident_kernel, arguments, {"BLOCK": BLOCK}, num_warps=num_warps, disassemble=False).ptx
    flop = len(re.findall(r"\b(?:add|sub|mul)\.f32", ptx)) + 2 * len(re.findall(r"\bfma\.rn\.f32", ptx))
    elements = BLOCK // (32 * num_warps)  # a thread's share of the row
    per_element[elements] = flop / elements
    print(f"{elements:2} elements a thread: {flop:3} FLOP a thread = {flop / elements:.2f} an element")
assert all(5 <= value < 7 for value in per_element.values()) and per_element[32] < 5.6

# %% [markdown]
# Five and a little: what is above 5 is the conversation and a division or two, and it thins out as a thread's share grows.
#
# ### The roofline
#
# FLOP over bytes is an operation's **arithmetic intensity**. Peak over bandwidth is the device's **ridge**. Left of the ridge bytes set the
# time, right of it arithmetic does. LayerNorm has 7 / 4 FLOP a byte. Where is the H100's ridge? On which side is LayerNorm typed op by op,
# and on which a product of two 4096 x 4096 matrices? *(Predict, then run.)*

# %%
from course_lib.lessons.figures import lesson04

H100 = lesson04.Device("H100 SXM", HBM_BYTES_A_SECOND, FLOPS)
intensity = {
    "LayerNorm, op by op": FLOP["LayerNorm"] / (counted["naive"].passes() * 2),
    "RMSNorm": FLOP["RMSNorm"] / (2 * 2),
    "LayerNorm": FLOP["LayerNorm"] / (2 * 2),
    "matrix product": 2 * 4096**3 / (3 * 4096**2 * 2),
}
for name, value in intensity.items():
    print(f"{name:20} {value:8.2f} FLOP a byte: {'bytes' if value < H100.ridge else 'arithmetic'}")
print(f"ridge {H100.ridge:.0f}")
assert H100.ridge == 20 and intensity["LayerNorm"] == 1.75 and intensity["LayerNorm, op by op"] < 0.5
assert [name for name, value in intensity.items() if value > H100.ridge] == ["matrix product"]

# %%
speed = {}
for name, op in (("LayerNorm", "layer_norm"), ("RMSNorm", "rms_norm")):
    speed[name] = FLOP[name] * M * N / (rows[op, "resident", N]["us"] * 1e-6)
assert intensity["LayerNorm, op by op"] == 7 / 16 and 1 - (2 + 1) / (2 + 2) == 0.25  # fp16 in, fp8 out: a quarter less
dots = {f"{name}, measured": (intensity[name], speed[name]) for name in speed}
picture(
    lesson04.roofline(H100, intensity, dots, measured.label()),
    alt="Roofline of an H100, TFLOP/s against FLOP a byte, both axes logarithmic. The slope of the bandwidth meets "
    "the level of the peak at 20 FLOP a byte. LayerNorm op by op, RMSNorm and LayerNorm stand on the slope at 0.44, "
    f"1 and 1.75; a matrix product of 4096 stands on the level. Diamonds: {measured.label()}.",
)

# %% [markdown]
# LayerNorm would have to do eleven times the arithmetic before anybody noticed. Now answer without a cell: you find a way to do the
# arithmetic twice as fast. How much faster is the kernel? And if you store `y` in fp8 instead of fp16, with more arithmetic for it?
#
# Not at all, and about a quarter: three bytes an element instead of four. Left of the ridge only bytes count. (A matrix product is another
# world, and has the tensor cores for a roof.)
#
# ## Why is the copy the limit?
#
# Put it together. A norm reads `x` and writes `y`: 2 passes, no algorithm has less. Its arithmetic hides behind them. A copy makes the same
# 2 passes with no arithmetic at all. So a norm kernel is perfect when it takes the time of a copy, and **time over the copy's** says how
# far it is from that, on any GPU. How near do you expect the course's kernels, and PyTorch's? *(Predict, then run.)*

# %%
print(f"{measured.label()}: time over a copy of the same matrix")
print(" " * 22 + "".join(f"N = {n:<8}" for n in (1024, 8192)))
compared = (("rms_norm", "resident"), ("layer_norm", "resident"), ("layer_norm", "blocked"), ("layer_norm", "torch"))
for op, provider in compared:
    ratios = [rows[op, provider, n]["over_floor"] for n in (1024, 8192)]
    print(f"{op:11} {provider:10}" + "".join(f"{ratio:<12.2f}" for ratio in ratios))
    assert all(ratio > 0.8 for ratio in ratios)  # below 1 only by the copy's own imperfection
if not measured.live:
    assert all(rows["rms_norm", "resident", n]["over_floor"] < 1.05 for n in (1024, 8192))
    assert all(rows["layer_norm", "torch", n]["over_floor"] > 1.5 for n in (1024, 8192))

# %% [markdown]
# On the stored H100 RMSNorm is a copy, to a percent or so, and nothing that anybody invents will make it faster. PyTorch's LayerNorm takes
# the time of more than one and a half copies. So when you read "twice as fast as PyTorch", ask how far from the copy.
#
# ## What if there are hardly any bytes?
#
# M = 16 rows of 4096, fp16. Two passes are 262 kB. How long does the H100's copy speed need for that? *(Predict, then run.)*
#
# Before the first byte moves, the kernel has to be launched: Python calls Triton, Triton the driver, the driver writes a command, the GPU
# fetches it and starts the programs. That takes microseconds, whatever the kernel then does. Take 10 µs, and measure your own if you have a
# GPU: the cell does.

# %%
LAUNCH_US = 10.0
RATE = 2.8e12  # bytes a second: the copy on an H100, rounded
small, large = 2 * 16 * 4096 * 2, 2 * matrix_bytes
share = {}
for name, size in (("16 x 4096", small), ("4096 x 8192", large)):
    us = size / RATE * 1e6
    share[name] = LAUNCH_US / (LAUNCH_US + us)
    print(f"{name:11}: {size / 1e6:8.3f} MB in {us:6.2f} us; the launch is {100 * share[name]:.0f} % of the time")
even = LAUNCH_US * 1e-6 * RATE
print(f"as long as a launch: {even / 1e6:.0f} MB")
assert small == 262144 and small / RATE * 1e6 < 0.1 and round(even / 1e6) == 28
assert share["16 x 4096"] > 0.98 and share["4096 x 8192"] < 0.2 and 5 * LAUNCH_US == 50

if course_lib.MODE == "gpu":
    import time

    one, two = torch.randn(1024, device=DEVICE), torch.empty(1, device=DEVICE)
    sum_kernel[(1,)](one, two, BLOCK=1024)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(1000):
        sum_kernel[(1,)](one, two, BLOCK=1024)
    torch.cuda.synchronize()
    launch_us = (time.perf_counter() - started) * 1e3
    print(f"here: {launch_us:.1f} us for a launch and a sum of 1024 numbers, one after the other")
    assert 0.5 < launch_us < 2000

# %%
picture(
    lesson04.launch_or_bytes(np.logspace(4, 9.3, 60), RATE, LAUNCH_US, {"16 x 4096": small, "4096 x 8192": large}),
    alt="Time of a copy against its bytes, both axes logarithmic, for a launch of 10 microseconds and 2800 GB/s. Flat at "
    "10 microseconds up to several megabytes, then the line of bytes over bandwidth. 16 x 4096 lies on the flat part, "
    "4096 x 8192 on the slope.",
)

# %% [markdown]
# Under a tenth of a microsecond. For the small matrix the launch is 99 % of the time, and no kernel is fast or slow: only their number
# counts. Op by op that is five launches, 50 µs, for what one launch does. (While the GPU is busy with one kernel, the launch of the next
# goes on beside it. Large kernels hide their launches that way. Small ones cannot.)
#
# So fusing wins twice. Large matrices: 2 passes instead of 8. Small ones: 1 launch instead of 5. And a measurement of a small matrix,
# called from Python, measures Python. Lesson 11 shows how not to fall for it.
#
# ## Exercise 04a: the sum of each row
#
# One program a row, lanes along the row, a running sum in each lane, one meeting at the end. You know the pieces. Two things the pictures
# above did not show: rows that are `stride_x` apart, and half-precision input. In which dtype does a lane keep its sum? (fp16 ends at
# 65504, and in bf16 256 + 1 is 256.)

# %%
fp16_sum = torch.tensor([60000.0, 60000.0], dtype=torch.float16)
assert torch.finfo(torch.float16).max == 65504 and torch.isinf(fp16_sum[0] + fp16_sum[1])
assert torch.tensor(256.0, dtype=torch.bfloat16) + 1 == 256

# %%
exercise("04a")

# %% [markdown]
# ## Summary
#
# - N numbers on p threads: N / p - 1 steps alone, log2(p) together. A tree saves steps, no additions.
# - Inside a warp lanes meet by shuffles: five for 32 threads, no waiting. Warps meet in shared memory, at barriers. So let lanes keep their
#   own sums and meet once a row.
# - Programs meet only in HBM. With thousands of rows, a row is one program. Lanes lie along the row, because memory delivers 32
#   neighbouring bytes or none.
# - Passes: copy 2, resident 2, one-pass and Welford 3, two-pass blocked 4, op by op 8. A trace counts what is asked for. A cache may answer
#   part of it.
# - LayerNorm does 1.75 FLOP a byte and an H100 has 20 to give. Bytes set the time, so a copy of the same matrix is the limit, and the unit.
# - A launch of 10 µs costs as much as moving 28 MB. Small matrices pay for launches, large ones for passes.
#
# **Where to read on**
#
# - Mark Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007): the tree in shared memory, seven versions of it.
# - Yuan Lin and Vinod Grover, "Using CUDA Warp-Level Primitives" (NVIDIA, 2018): shuffles, from their inventors.
# - Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model for Multicore Architectures".
# - The post "Layer Normalization as fast as possible": three kernels, and where a sweep can be saved. Its one-pass formula is lesson 03's
#   erratum.
# - `course_lib/lessons/pass_counter/model.py`: the nine small kernels that were traced.
#
# **Next: lesson 05, statistics in Triton.** Welford and Chan need a reduction of three numbers at once. `tl.reduce` takes any function:
# what becomes of the tree?
