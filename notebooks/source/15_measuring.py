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
# # 15 Measuring: a curve that climbs ninefold
#
# Triton's tutorial "Layer Normalization" ends with a benchmark: the backward pass in fp16, 4096
# rows, and N from 1024 to 15872 columns. This is the table that it
# [publishes](https://triton-lang.org/main/getting-started/tutorials/05-layer-norm.html) (copied in
# November 2026). It does not name its GPU.
#
# Who is slow here, and why? You have three suspects: the bytes, the clock, and the warps. In the end
# you question your own shape.
#
# *About 50 minutes, both exercises included. Needs: lessons 08, 09 and 13.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("15")

# %%
from course_lib.lessons.lesson15 import figures

figures.show_published()

# %% [markdown]
# From N = 1024 to N = 8192 the tutorial's kernels climb from {{published_1024}} to
# {{published_8192}} GB/s. Why are they nine times as fast with long rows?

# %%
import numpy as np

from course_lib.lessons import predict, step

predict("15-climb")

# %% tags=["answer"]
figures.show_published_times()

# %% tags=["check"]
from course_lib.bench.published import read_published
from course_lib.lessons.prediction import find

english, chinese = ({line.N: line for line in read_published(edition)} for edition in ("English", "Chinese"))
assert (
    8.5 < english[8192].triton / english[1024].triton < 9.5
    and abs(english[1024].us("triton") / english[8192].us("triton") - 1) < 0.1
)
assert find("15-climb").answer == "as long, within a tenth" and round(3 * 4096 * 8192 * 2 / 1e6) == 201
assert [round(english[N].us("triton")) for N in (8192, 1024)] == [230, 253] and round(
    english[1024].triton * 8 / 3, -1
) == 270
for table in (english, chinese):
    level = [line.us("triton") for N, line in table.items() if N <= 8192]
    assert max(level) < 1.25 * min(level) and len(level) == 15
level = [line.us("triton") for N, line in english.items() if N <= 8192]
assert f"{min(level):.0f} to {max(level):.0f} µs at every N" in find("15-climb").why
assert english[8704].us("triton") > 290 and english[15872].us("torch") > 11 * english[1024].us("torch")

# %% [markdown]
# So the bytes did not do it. The tutorial times `y.backward(...)`, and that is more than its kernels:
# autograd looks up what to call, tensors are allocated, kernels are launched. On the host of the
# course's stored H100 forward and backward of a 64 x 1024 matrix, which the GPU does in no time, keep
# Python busy for {{both_torch}} µs with PyTorch's LayerNorm and for {{both_ours}} with the course's.
#
# **Your step.** Python makes the call while the memory moves the bytes, and the longer of the two
# sets the time. What does a benchmark report? `moved` are bytes, `memory_gbps` is in 10⁹ bytes per
# second.


# %% tags=["step"]
def reported_gbps(moved, call_us, memory_gbps):
    memory_us = moved / memory_gbps / 1e3
    # BEGIN SOLUTION
    #: The time of one call, and the GB/s that follow from it.
    time_us = max(call_us, memory_us)
    return moved / time_us / 1e3
    # END SOLUTION


step("15-report")

# %% tags=["check"]
from course_lib.bench import measurement

host = {(r["op"], r["passes"], r["provider"]): r["us"] for r in measurement.stored("host").rows}
both = {name: host["layer_norm", "forward and backward", name] for name in ("torch", "ours", "kernels")}
assert both["torch"] < both["kernels"] < both["ours"]
assert {(r["M"], r["N"]) for r in measurement.stored("host").rows} == {(64, 1024)}

# %% [markdown]
# ## What does a clock see?
#
# A launch only puts the kernel into a queue, and Python goes on while the GPU works. So three clocks
# answer three questions.
#
# - **Python's clock** shows the time of the call, however long the kernel works, unless you wait
#   with `torch.cuda.synchronize()`. On the host of the stored H100 the call of the course's
#   LayerNorm kernel takes 54 µs.
# - **CUDA events** are marks in the GPU's queue, before and behind the kernel. Where the GPU has to
#   wait for Python between the two marks, the wait is counted. `triton.testing.do_bench` is of this
#   kind. It also overwrites a large buffer before each call, so that inputs come from memory.
# - **A CUDA graph** records many calls once and replays them with a single launch. It sees the
#   kernels alone, and gaps of about a microsecond. The course's bench is of this kind.
#
# None of them is wrong: in a small model Python's share is real, and your users wait for it. Say
# which clock you read, and leave out the first calls: one compiles, and the clock rate of the GPU may
# still be low.
#
# **Your step.** `times` has a time in µs for each call, in their order. The first `warm_up` of them
# do not count. Report a typical time: as many calls are above it as below, and one interruption
# does not change it.


# %% tags=["step"]
def report_us(times, warm_up):
    # BEGIN SOLUTION
    #: One number for what is left.
    #| return np.mean(times)
    return np.median(times[warm_up:])
    # END SOLUTION


step("15-median")

# %% tags=["check"]
assert round(host["layer_norm", "forward", "kernels"]) == 54

# %% [markdown]
# ## The same benchmark, here
#
# This is the tutorial's benchmark, for the course's LayerNorm and PyTorch's.

# %%
import torch
import triton

from course_lib.norms import functional

NORMS = {"ours": functional.layer_norm, "torch": torch.nn.functional.layer_norm}
lines = {"line_arg": "norm", "line_vals": [*NORMS], "line_names": [*NORMS], "ylabel": "GB/s"}
lengths = [1024, 2048, 4096, 6144, 8192, 12288, 15872]
chart = triton.testing.Benchmark(["N"], lengths, **lines, plot_name="", args={"M": 4096})


# %%
@triton.testing.perf_report(chart)
def backward_gbps(M, N, norm):
    x = torch.randn(M, N, device=course_lib.DEVICE).half().requires_grad_()
    w, b = (torch.ones(N, device=x.device).half().requires_grad_() for _ in range(2))
    y = NORMS[norm](x, (N,), w, b)
    dy = 0.1 * torch.randn_like(y)
    ms = triton.testing.do_bench(lambda: y.backward(dy, retain_graph=True), grad_to_none=[x, w, b])
    return 3 * x.numel() * x.element_size() / ms * 1e-6


# %% tags=["check"]
from unittest import mock

with mock.patch.object(triton.testing, "do_bench", lambda call, grad_to_none: call() or 2.0):
    assert [backward_gbps.fn(4, 64, norm) for norm in NORMS] == [3 * 4 * 64 * 2 / 2 * 1e-6] * 2

# %% [markdown]
# With a GPU the cell below runs it, Python's share included. Without one it shows what the stored
# H100 took for the kernels alone, at 2^25 numbers per matrix, whatever N is.

# %%
figures.show_benchmark(backward_gbps)

# %% tags=["check"]
device = {provider: dict(points) for provider, points in figures.list_device_gbps().items()}
own = [device["ours"][N] for N in (1024, 2048, 4096, 8192)]
assert min(own) / max(own) > 0.95
assert all(round(gbps, -2) in (2600, 2700) for gbps in own)
locked_us = {N: 3 * 2**25 * 2 / device["locked"][N] / 1e3 for N in (1024, 8192)}
assert round(locked_us[8192]) == 193 and 300 < locked_us[1024] < 340
assert (
    max(device["locked"].values()) < 1050 and 900 < min(device["torch"].values()) < max(device["torch"].values()) < 1270
)

# %% [markdown]
# The course's kernels reach about 2600 GB/s from 1024 to 8192 columns: the curve is level, because
# here bytes set the time. The published curve has a fixed cost and bytes that grow with N, so it
# climbs.
#
# *The tutorial's design* is its lock, with its mistakes mended (lesson 13). At 8192 columns, where
# the shapes are the same, its kernels alone take {{locked_8192}} µs on the H100, most of the
# published {{published_us}}. So the clock is guilty at short rows, and the lock at long ones.

# %% tags=["check"]
assert device["locked"][1024] < device["torch"][1024] and english[1024].triton < english[1024].torch

# %% [markdown]
# ## Can a number of GB/s be too high?
#
# The blocked kernel of lesson 07 asks for 4 M N numbers. With 8192 x 4096 in fp16 these are 268 MB,
# and the stored H100 took 54.5 µs: 4924 GB/s, where the memory moves 3350 at most. Caches answered
# the second and third reading.

# %% tags=["check"]
forward = {(r["op"], r["provider"], r["N"]): r for r in measurement.stored("forward").rows}
blocked = forward["layer_norm", "blocked", 4096]["us"]
asked = 4 * 8192 * 4096 * 2
assert forward["layer_norm", "blocked", 4096]["M"] == 8192 and round(blocked, 1) == 54.5
assert round(asked / 1e6) == 268 and abs(asked / blocked / 1e3 - 4924) < 2

# %% [markdown]
# So say *which* bytes you count. The course's bench counts what the operation cannot do without,
# 2 M N forward and 3 M N backward. Then no kernel gains by loading more than it needs.

# %%
predict("15-written")

# %% tags=["answer"]
from course_lib.bench import measurement

for row in measurement.stored("counters").rows:
    if (row["op"], row["M"], row["N"]) == ("layer_norm", 8192, 4096):
        print(f"{2 * 8192 * 4096 * 2 / row['us'] / 1e3:.0f} GB/s counted")
        print(f"{(row['read_mb'] + row['written_mb']) / row['us'] * 1e3:.0f} GB/s moved")

# %% tags=["check"]
counters = {(r["op"], r["M"], r["N"], r["kernel"]): r for r in measurement.stored("counters").rows}
ahead = counters["layer_norm", 8192, 4096, "layer_norm_resident_kernel"]
assert (
    round(ahead["us"]) == 43 and ahead["written_mb"] == find("15-written").answer and round(8192 * 4096 * 2 / 1e6) == 67
)
counted, moved = (mb / ahead["us"] * 1e3 for mb in (2 * 8192 * 4096 * 2 / 1e6, ahead["read_mb"] + ahead["written_mb"]))
assert f"{counted:.0f} GB/s are counted, and {moved:.0f} moved" in find("15-written").why
assert 1.1 * (ahead["read_mb"] + ahead["written_mb"]) < 2 * 8192 * 4096 * 2 / 1e6

# %% [markdown]
# ## Your turn: whose bytes?
#
# **Your step.** A program takes ROWS rows, and loads `w` once. How many bytes of `w` do all
# programs together ask for?


# %% tags=["step"]
def bytes_of_w(M, N, itemsize, ROWS):
    # BEGIN SOLUTION
    #: Programs, times what each of them loads.
    return -(-M // ROWS) * N * itemsize
    # END SOLUTION


step("15-weights")

# %% [markdown]
# Here are the exercise's kernels. Press a name to see the text. For each, say exactly how many bytes
# it asks for. `count_bytes` counts them in a trace, for any shape.

# %%
from course_lib.lessons.lesson15.accounting import count_bytes, show_kernels

show_kernels()

# %%
read, written = count_bytes("resident_forward", M=5, N=10, itemsize=4, ROWS=4)
print(f"resident_forward, 5 rows of 10 numbers, 4 rows per program: {read} and {written} bytes")

# %%
from course_lib import exercise

exercise("15a")

# %% tags=["check"]
assert count_bytes("resident_forward", 5, 10, 4, ROWS=4) == (
    5 * 10 * 4 + 2 * 80,
    5 * 10 * 4 + 2 * 5 * 4,
)

# %% [markdown]
# ## Is it the warps?
#
# A kernel whose bytes and clock are in order may still be slow. Slow beside what? No kernel reaches
# the data sheet, and two GPUs of one name differ. So take the fastest elementwise sweep over the same
# bytes, in the same run: a time divided by that is **over the floor**, and 1 / 0.9 = 1.11 is nine
# tenths of what is possible.
#
# Take 600 ns from the start of a load to its answer, on a GPU that moves 3350 GB/s. If memory is
# never to be idle, the bytes of 600 ns have to be *under way* at any moment: bandwidth times
# waiting time. This is **Little's law**.
#
# **Your step.** How many bytes must each multiprocessor have asked for?


# %% tags=["step"]
def bytes_in_flight(gbps, latency_ns, multiprocessors):
    # BEGIN SOLUTION
    #: The bytes that one multiprocessor must have asked for at any moment.
    return gbps * latency_ns / multiprocessors
    # END SOLUTION


step("15-flight")

# %%
predict("15-warps")

# %% tags=["check"]
behind = counters["layer_norm_backward", 8192, 4096, "layer_norm_backward_persistent_kernel"]
assert (round(ahead["occupancy_percent"]), round(ahead["dram_percent"])) == (69, 78)
assert behind["occupancy_percent"] == 12.5 and f"about {behind['dram_percent']:.0f} %" == find("15-warps").answer
from course_lib.kernels.launch import tables

assert tables.persistent(4096).stages == 3 and round(3350 * 600 / 132 / 1000) == 15

# %% [markdown]
# Three launch settings decide how much is under way, and each has a price.
#
# | setting | more of it | its price |
# |---|---|---|
# | rows per program | more loads under way in each program, fewer programs | registers: too many, and they spill (lesson 08) |
# | `num_warps` | fewer numbers per thread | more threads have to meet in each sum (lesson 06) |
# | `num_stages` | tiles asked for ahead | shared memory for each tile |
#
# `predict_launch` says what a launch holds. Here are three, for rows of 256 numbers in fp16.

# %% varies={"gpu": "the registers depend on the Triton of that machine"}
from course_lib.lessons.lesson15.tuning import predict_launch

for rows, num_warps in ((1, 4), (1, 32), (16, 4)):
    print(predict_launch(N=256, rows=rows, num_warps=num_warps))

# %% tags=["check"]
tried = {(r, w): predict_launch(N=256, rows=r, num_warps=w) for r, w in ((1, 4), (1, 32), (16, 4))}
assert tried[1, 4].under_way / 1024 == 8 and tried[1, 4].programs == 16
assert tried[1, 32].under_way <= 1024 and tried[16, 4].under_way > 2 * 15227

# %% [markdown]
# A program loads for a part of its time, and then adds up and stores. So aim at twice the 15 KB of
# your step.
#
# NVIDIA's profiler Nsight Compute (`ncu python your_script.py`) writes dozens of numbers. Three decide
# what to do next: how much of the memory's bandwidth is used (DRAM), in how many cycles an
# instruction is issued, and how many places for warps are filled (occupancy).

# %%
predict("15-page")

# %% tags=["answer"]
figures.show_counters()

# %% tags=["check"]
import re

paged = counters["rms_norm", 8192, 4096, "rms_norm_resident_kernel"]
assert round(100 / forward["rms_norm", "ours", 4096]["over_floor"]) == 97
odd = counters["layer_norm", 8192, 4095, "_two_tiles_forward"]
assert (round(odd["dram_percent"]), round(odd["us"]), round(ahead["us"])) == (59, 58, 43)
for kernel, choice in zip((paged, behind, odd), find("15-page").choices, strict=True):
    written = [float(number) for number in re.findall(r"([\d.]+) %", choice)]
    counted = [kernel[f"{key}_percent"] for key in ("occupancy", "issue", "dram")]
    assert all(abs(a - b) <= 0.5 for a, b in zip(written, counted, strict=True)), (choice, counted)
assert find("15-page").answer == find("15-page").choices[2]
assert max(odd[key] for key in ("dram_percent", "lsu_percent", "issue_percent")) < 60 and behind["dram_percent"] > 80

# %% [markdown]
# Rows of 4095 numbers do not begin at addresses that a wide load can take (lesson 08). Such a
# LayerNorm took 58 µs, with 4096 numbers 43: there is something to gain.
#
# ## And your own shape?
#
# The roofline of lesson 06 again, with all kernels of the course. Drag N to your row length. Switch
# the bytes to *asks for*, and press *LayerNorm, blocked*: its point goes above the roof. Then put
# your own kernel there. One that passes its check is traced to count its bytes, and timed on a GPU.

# %%
from course_lib.lessons import kernel_roofline

kernel_roofline()

# %% tags=["check"]
from course_lib.lessons.pictures.kernel_roofline.model import KERNELS, OWN

assert KERNELS["locked"].passes == KERNELS["persistent"].passes == 3 and "08a" in OWN

# %% [markdown]
# Now choose your norm and your row length. Who is ahead there, by the device's clock, and who with
# Python's call?

# %%
from course_lib.lessons import norm_race

norm_race()

# %% tags=["check"]
peers = ("torch", "compile", "liger", "quack")
lengths = (256, 1024, 2048, 4096, 8192, 16384, 32768)
us = {
    (op, N, p): forward[op, p, N]["us"] for op in ("layer_norm", "rms_norm") for N in lengths for p in ("ours", *peers)
}
ratios = [us[op, N, "ours"] / min(us[op, N, p] for p in peers) for op in ("layer_norm", "rms_norm") for N in lengths]
assert len(ratios) == 14 and max(ratios) < 1.03
back = {(r["op"], r["provider"], r["N"]): r["us"] for r in measurement.stored("backward").rows}
gains = [
    back[op, "ours", N] / min(back[op, p, N] for p in peers)
    for op in ("layer_norm_backward", "rms_norm_backward")
    for N in lengths
]
assert max(gains) < 0.95
field = {(r["op"], r["provider"], r["N"]): r["us"] for r in measurement.stored("field").rows if r["dtype"] == "fp16"}
ahead_of_us = {
    (op, N)
    for op in ("layer_norm_backward", "rms_norm_backward")
    for N in (256, 1024, 4096, 8192, 16384)
    if field[op, "cudnn", N] < field[op, "ours", N]
}
assert ahead_of_us == {("rms_norm_backward", N) for N in (4096, 8192, 16384)}
calls = {p: host["layer_norm", "forward", p] for p in ("torch", "quack", "compile", "liger", "ours")}
assert list(calls) == sorted(calls, key=lambda name: calls[name])

# %% [markdown]
# Forward, most races have no winner: two runs of one kernel differ by up to 2 %. Backward the
# course's kernels are ahead of these four in all {{races}} races, by {{least}} to {{most}} %. That is
# true, and chosen: cuDNN, which is not here, has an RMSNorm backward that is ahead of the course's at
# 4096 to 16384 columns, by {{cudnn_least}} to {{cudnn_most}} %. And with Python's call the course
# loses: {{forward_ours}} µs of the host's time for one LayerNorm, where PyTorch takes
# {{forward_torch}}.
#
# ## Your turn: a launch
#
# The course's resident kernel, launched badly: one row, the longest block and 32 warps at every
# shape. Three divisions judge a launch. For N = 1024 in fp16, one row and 8 warps they are:
#
# 1. Numbers per thread: 1024 / (8 * 32) = 4. A thread takes 26 registers.
# 2. Programs per multiprocessor: 65536 / (26 * 256) = 9, but 64 warps / 8 = 8.
# 3. Bytes under way: 8 programs of 1024 * 2 bytes are 16 KB, half of what you aim at. With 4 warps
#    a thread has 8 numbers, 16 programs fit,
#    and 32 KB are under way.
#
# `predict_launch` tells you what a launch holds. On a GPU yours are timed, too: {{goal}} of the
# floor's bandwidth.

# %%
exercise("15b")

# %% tags=["check"]
tried = {warps: predict_launch(N=1024, rows=1, num_warps=warps) for warps in (8, 4)}
if course_lib.MODE == "cpu":
    assert tried[8].made.registers == 26 and 65536 // (26 * 256) == 9
assert [(made.programs, made.under_way) for made in tried.values()] == [
    (8, 16 * 1024),
    (16, 32 * 1024),
]

# %%
from course_lib.lessons import offer_hunt

offer_hunt("07a")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("15")

# %% [markdown]
# **Where to read on**
#
# - [`triton.testing.do_bench`](https://triton-lang.org/main/python-api/generated/triton.testing.do_bench.html):
#   one of the three clocks. `course_lib/bench/timing.py` has the course's two, in 70 lines.
# - [Nsight Compute, "Kernel Profiling
#   Guide"](https://docs.nvidia.com/nsight-compute/ProfilingGuide/): the counters of this page.
# - Williams, Waterman and Patterson, [Roofline](https://doi.org/10.1145/1498765.1498785) (2009).
# - No GPU of your own? `notebooks/hosted/half_hour_on_a_gpu.ipynb` times your kernels on a hosted one.
#
# **Next:** lesson 16. What if rows are very long, or there are hardly any?

# %% [markdown] tags=["dive"]
# ## Dive: tune the backward kernel
#
# The course's persistent kernel with your settings. With `num_stages=3` two tiles of `x` and `dy`
# wait in shared memory, or are on their way there, and the third is at work in registers. Say
# before each run whether the compiler will spill, and how many KB are asked for ahead; about 15 KB
# are needed. The registers are those of an H100, on any machine. On a GPU you also see the time
# over the floor, and 1.11 is nine tenths of what is possible. Without one, nobody can tell you
# whether your choice is fast. You can rule out what cannot be.

# %% varies={"gpu": "the times are those of that GPU"}
from course_lib.lessons.lesson15.tuning import try_launch

for rows, num_warps, num_stages in ((2, 8, 3), (2, 4, 3), (1, 8, 2)):
    print(try_launch(N=4096, rows=rows, num_warps=num_warps, num_stages=num_stages))

# %% tags=["check"]
from course_lib.tuning.clock import GOAL

tried = {warps: try_launch(N=4096, rows=2, num_warps=warps, num_stages=3) for warps in (4, 8)}
assert round(tried[8].shared_bytes / 1024) == 64 and tried[8].ahead == 2 * 32 * 1024
assert tried[4].spill_bytes > 0 == tried[8].spill_bytes and tables.persistent(4096) == (
    2,
    4096,
    8,
    1,
    3,
)

# %% [markdown]
# The second spills: 4 warps are 128 threads for 8192 numbers of `x`, of `dy`, of `dw` and of `db`.
# The course's tables (`course_lib/kernels/launch/device_classes.py`) have (2, 8, 3) here. They were
# found by trying every setting that holds 4 to 32 numbers of a row per thread, on an H100. On your
# GPU another one may win.

# %% [markdown] tags=["dive"]
# ## Dive: where other libraries stop
#
# A race shows who came in. It does not show who could not start. On the stored H100 quack
# {{quack_version}} refuses rows whose length is no multiple of its vector (4095, 4097), and its
# LayerNorm takes {{quack_layer_norm}} times the floor at N = 16384, where its RMSNorm takes
# {{quack_rms_norm}}. Liger-Kernel {{liger_version}} takes rows up to 65536 columns, and
# {{liger_long}} times the floor there. The tutorial stops at 64 KB, which are 32768 numbers in
# fp16. The course's persistent kernel stops at 8192 columns; above it another design takes over.
#
# Look at your own shapes. A library that wins at 4096 columns may refuse your 4097.

# %% tags=["check"]
long = {(r["op"], r["provider"], r["N"]): r["over_floor"] for r in measurement.stored("long_rows").rows}
assert forward["layer_norm", "quack", 16384]["over_floor"] > 10 * forward["rms_norm", "quack", 16384]["over_floor"]
assert ("layer_norm M=many", "liger", 65536) in long and (
    "layer_norm M=many",
    "liger",
    131072,
) not in long
assert ("layer_norm", "quack", 4095) not in forward and ("layer_norm", "quack", 4097) not in forward
assert tables.PERSISTENT_LIMIT == 8192 and round(1 / 0.9, 2) == 1.11 and GOAL == 0.9

# %% tags=["values"]
from course_lib.bench import measurement
from course_lib.bench.published import read_published
from course_lib.tuning.clock import GOAL

english = {line.N: line for line in read_published("English")}
host = {(r["op"], r["passes"], r["provider"]): r["us"] for r in measurement.stored("host").rows}
forward = {(r["op"], r["provider"], r["N"]): r for r in measurement.stored("forward").rows}
back = {(r["op"], r["provider"], r["N"]): r for r in measurement.stored("backward").rows}
long = {(r["op"], r["provider"], r["N"]): r["over_floor"] for r in measurement.stored("long_rows").rows}
lengths = (256, 1024, 2048, 4096, 8192, 16384, 32768)
gains = [
    100 - 100 * back[op, "ours", N]["us"] / min(back[op, p, N]["us"] for p in ("torch", "compile", "liger", "quack"))
    for op in ("layer_norm_backward", "rms_norm_backward")
    for N in lengths
]
field = {(r["op"], r["provider"], r["N"]): r["us"] for r in measurement.stored("field").rows if r["dtype"] == "fp16"}
cudnn = [
    100 - 100 * field["rms_norm_backward", "cudnn", N] / field["rms_norm_backward", "ours", N]
    for N in (4096, 8192, 16384)
]
versions = measurement.stored("forward").versions
values = {
    "cudnn_least": f"{min(cudnn):.0f}",
    "cudnn_most": f"{max(cudnn):.0f}",
    "published_1024": english[1024].triton,
    "published_8192": f"{english[8192].triton:.0f}",
    "published_us": f"{english[8192].us('triton'):.0f}",
    "both_torch": f"{host['layer_norm', 'forward and backward', 'torch']:.0f}",
    "both_ours": f"{host['layer_norm', 'forward and backward', 'ours']:.0f}",
    **{f"forward_{p}": f"{host['layer_norm', 'forward', p]:.0f}" for p in ("torch", "ours")},
    "locked_8192": f"{back['layer_norm_backward', 'locked', 8192]['us']:.0f}",
    "races": len(gains),
    "least": f"{min(gains):.0f}",
    "most": f"{max(gains):.0f}",
    "quack_version": versions["quack-kernels"],
    "liger_version": versions["liger-kernel"],
    "quack_layer_norm": f"{forward['layer_norm', 'quack', 16384]['over_floor']:.1f}",
    "quack_rms_norm": f"{forward['rms_norm', 'quack', 16384]['over_floor']:.2f}",
    "liger_long": f"{long['layer_norm M=many', 'liger', 65536]:.1f}",
    "goal": GOAL,
}
