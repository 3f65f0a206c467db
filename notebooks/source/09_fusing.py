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
# # 09 Fusing: where two right kernels waste a fifth
#
# In a transformer every layer adds its output to a running sum, the residual, and the next layer
# normalises that sum. Here are two kernels for it. Both are right, and you could not make either of
# them faster. Yet a fifth of the bytes that they move is wasted. Which fifth?
#
# *About 40 minutes, the exercise included. Needs: lessons 02, 06 and 08.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("09")

# %%
import torch
import triton
import triton.language as tl

from course_lib.norms.functional import rms_norm


def two_kernels(x, residual, w, eps=1e-5):
    total = x + residual  # one kernel: x is what the last layer computed
    y = rms_norm(total, w.shape, w, eps)  # another: what the next layer reads
    return total, y


# %% [markdown]
# Watch the two kernels move their matrices, beside one kernel that does the work of both: a
# **fused** kernel. Press **Play**, or drag the line. Where does the fused kernel get ahead?

# %%
from course_lib.lessons import bytes_moved, predict, step

bytes_moved(M=4096, N=4096, dtype="fp16", case="add")

# %% tags=["check"]
import numpy as np

from course_lib.kernels.launch import tables
from course_lib.lessons.lesson09.bytes_moved.model import model
from course_lib.lessons.norm_times import stored_norm_times
from course_lib.lessons.prediction import find
from course_lib.norms import reference

DEVICE = course_lib.DEVICE
add = model("add", 4096, 4096, "fp16")
chains = [[(part.tensor, part.write) for part in launch.traffic] for launch in (*add.unfused, *add.fused)]
*before, last = chains[2]
assert chains[0] + chains[1] == [*before, ("total", False), last]  # what the one kernel leaves out
assert chains[1][0] == ("total", False)
assert add.unfused_bytes == 5 * 4096 * 4096 * 2 and add.ratio == 0.8 and round(add.unfused_bytes / 1e6) == 168

# %% [markdown]
# The addition reads `x` and `residual` and writes `total`, and the norm reads `total` and writes
# `y`: five sweeps over M N elements, `w` aside. When the addition ends, `total` is still in its
# registers, and the norm loads it from memory again: the wasted fifth. It lies *between* the two
# kernels, so measuring either one cannot find it. The fused kernel makes four sweeps: it reads `x`
# and `residual`, and writes `total` and `y`.

# %% [markdown]
# ## And if the norm itself is not one kernel?
#
# This is RMSNorm as model code often has it. Each operation is a kernel of its own.


# %%
def rms_norm_op_by_op(x, w, eps=1e-5):
    wide = x.float()  # fp16 in, fp32 from here on
    mean_square = wide.pow(2).mean(dim=-1, keepdim=True)
    xhat = wide * torch.rsqrt(mean_square + eps)
    return xhat.to(x.dtype) * w  # two roundings, before and after w


# %% [markdown]
# Most of the eight launches read and write matrices of fp32. For each fp16 element of x they move
# 36 bytes. One kernel reads 2 and writes 2: nine times fewer.

# %%
bytes_moved(M=4096, N=4096, dtype="fp16", case="eager")

# %% tags=["check"]
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Counts the operations that reach PyTorch's kernels."""

    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


x = torch.randn(4, 100, device=DEVICE).half()
w = torch.rand(100, device=DEVICE).half()
with Calls() as calls:
    y = rms_norm_op_by_op(x, w)
assert np.abs(reference.float64(y) - reference.rms_norm(x, w, 1e-5).y).max() < 5e-3
typed = model("eager", 4096, 4096, "fp16")
assert calls.number == len(typed.unfused) == 8
assert round(typed.unfused_bytes / typed.fused_bytes, 1) == 9
assert round(typed.unfused_bytes / 4096**2) == 36

# %% tags=["check"]
drawn = torch.Generator().manual_seed(0)
for dtype in (torch.float16, torch.bfloat16):
    x = torch.randn(64, 1024, generator=drawn).to(DEVICE, dtype)
    w = (torch.rand(1024, generator=drawn) + 0.5).to(DEVICE, dtype)
    twice, once = rms_norm_op_by_op(x, w), rms_norm(x, w.shape, w, 1e-5)
    assert 0.22 < (twice != once).float().mean() < 0.3
    single = (reference.rms_norm(x, w, 1e-5).y, reference.float64(twice), reference.float64(once))
    assert np.abs(single[1] - single[0]).mean() > 1.1 * np.abs(single[2] - single[0]).mean()

# %% [markdown]
# The results differ, too. These operations round xhat, multiply it by `w`, and round the product
# again, as Llama's code does. In fp16 and in bf16 about a quarter of the elements differ from those
# of a kernel that rounds once.
#
# Now count a longer chain. A third kernel multiplies the norm by a gate, element by element:
#
# ```
# total = x + residual
# y = rms_norm(total)
# z = y * gate
# ```
#
# `gate` is a matrix of M x N like the others. Later kernels read `total` and `z`, and none reads
# `y`. How many sweeps do the three kernels make, and how many would one kernel make?

# %% tags=["step"]
# BEGIN SOLUTION
#: A sweep: M N elements, read or written. First three kernels, then one.
#| three_kernels, one_kernel = 0, 0
three_kernels, one_kernel = 8, 5
# END SOLUTION
sweeps = (three_kernels, one_kernel)

step("09-passes")

# %% [markdown]
# ## Does total have to be stored?
#
# Back to the addition and the norm. Without the store of `total` the fused kernel would make 3
# sweeps instead of 4. The next addition needs `total`, but perhaps it can compute it from `y`: `y =
# total * rstd * w`, and `rstd` (fp32) and `w` are known. Here all matrices are bf16.

# %%
predict("09-total")

# %% tags=["answer"]
from course_lib.kernels.rms_norm import add_rms_norm_forward

random = torch.Generator().manual_seed(0)
x, residual = (torch.randn(8, 1024, generator=random).bfloat16() for _ in range(2))
w = (torch.rand(1024, generator=random) + 0.5).bfloat16()
x, residual, w = (tensor.to(course_lib.DEVICE) for tensor in (x, residual, w))

total, y, rstd = add_rms_norm_forward(x, residual, w, 1e-5)  # the course's fused kernel
again = (y.float() / (rstd[:, None] * w.float())).bfloat16()
print(f"{100 * (again != total).float().mean():.0f} % of the elements come back as another number")

# %% tags=["check"]
random = torch.Generator().manual_seed(0)
x, residual = (torch.randn(8, 1024, generator=random).bfloat16().to(DEVICE) for _ in range(2))
w = (torch.rand(1024, generator=random) + 0.5).bfloat16().to(DEVICE)
total, y, rstd = add_rms_norm_forward(x, residual, w, 1e-5)
again = (y.float() / (rstd[:, None] * w.float())).bfloat16()
assert (
    0.07 < (again != total).float().mean() < 0.12
    and abs(100 * (again != total).float().mean() - find("09-total").answer) < 1
)

# %% [markdown]
# ## Which sum do you normalise?
#
# `total` is rounded to bf16 when it is stored. But the fused kernel also has the sum in fp32,
# nearly exact, and could normalise that one.

# %%
predict("09-sum")

# %% tags=["answer"]
_, of_two_kernels = two_kernels(x, residual, w)
exact = x.float() + residual.float()
of_exact_sum = rms_norm(exact, w.shape, w, 1e-5).bfloat16()
for which, other in (("exact", of_exact_sum), ("rounded", y)):
    print(f"the {which} sum normalised: {(other != of_two_kernels).sum()} of 8192 differ")

# %% tags=["check"]
two_totals, of_two_kernels = two_kernels(x, residual, w)
of_exact_sum = rms_norm(x.float() + residual.float(), w.shape, w, 1e-5).bfloat16()
differ = (of_exact_sum != of_two_kernels).sum()
share = differ / of_two_kernels.numel()
assert 0.15 < share < 0.25 and abs(differ - 1645) <= 10 and find("09-sum").answer == "one in five"
assert torch.equal(total, two_totals) and torch.equal(y, of_two_kernels)
want = reference.rms_norm(total, w, 1e-5).y
one_rounding = 2.0**-8 * np.abs(want) + 1e-30
off = {
    name: (np.abs(reference.float64(got) - want) / one_rounding)[want != 0].max()
    for name, got in (("exact", of_exact_sum), ("rounded", y))
}
assert off["rounded"] < 1.01 < 1.2 < off["exact"]

# %% [markdown]
# Which sum is the right one? The next layer adds to the `total` that is *stored*, and the backward
# pass computes `xhat` from it. So in the course `y` is the norm of the stored `total`. The fused
# kernel then gives the same bits as an addition and the course's own RMSNorm, if both add up a row
# in the same order.
#
# Libraries differ here. Liger-Kernel adds in the dtype of its inputs, so it rounds the sum before
# it normalises it ([commit
# fef5504](https://github.com/linkedin/Liger-Kernel/blob/fef5504b5bc626046c1beab30b2354fa3f7f2be5/src/liger_kernel/ops/fused_add_rms_norm.py)).
# flash-attention stores the rounded sum and goes on with the exact one ([commit
# fd2fc9d](https://github.com/Dao-AILab/flash-attention/blob/fd2fc9d85c8e54e5c20436465bca709bc1a6c5a1/flash_attn/ops/triton/layer_norm.py)).
#
# Change the reference below, so that it does what two kernels do. It returns `total`, and `y` in
# fp32, not yet rounded.


# %% tags=["step"]
def add_rms_norm(x, residual, w, eps):
    # BEGIN SOLUTION
    #: wide, which is normalised, has to be the total that is returned.
    #| wide = x.float() + residual.float()
    #| total = wide.to(x.dtype)
    total = x + residual
    wide = total.float()
    # END SOLUTION
    rstd = torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + eps)
    return total, wide * rstd * w.float()


step("09-round")

# %% [markdown]
# The kernel below adds two matrices, and also stores what the rounding of the sum lost. Two things
# are wrong: it does not round, and it reads `residual` as if it were packed. But `residual` is a
# part of a wider matrix, so its rows lie farther apart.


# %% tags=["step"]
@triton.jit
def add_kernel(x_ptr, residual_ptr, total_ptr, lost_ptr, stride_residual, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    # BEGIN SOLUTION
    #: The rows of residual lie stride_residual elements apart.
    #| start = row * N
    start = row * stride_residual
    # END SOLUTION
    exact = x + tl.load(residual_ptr + start + cols, mask=cols < N, other=0.0).to(tl.float32)
    # BEGIN SOLUTION
    #: Round the exact sum to the dtype that total_ptr points to.
    #| rounded = exact
    rounded = exact.to(total_ptr.dtype.element_ty)
    # END SOLUTION
    tl.store(total_ptr + row * N + cols, rounded, mask=cols < N)
    tl.store(lost_ptr + row * N + cols, exact - rounded.to(tl.float32), mask=cols < N)


step("09-add")

# %% [markdown]
# ## What is saved in the backward pass?
#
# Backward, `x + residual` computes nothing: `x` and `residual` both get the gradient of `total`.
# The norm has a kernel that reads `dy` and `total` and writes a gradient (lesson 10 derives it).

# %%
predict("09-backward")

# %% tags=["check"]
from course_lib.base import paths
from course_lib.kernels.norm_backward import norm_backward_persistent_kernel
from course_lib.kernels.rms_norm_backward import rms_norm_backward
from course_lib.lessons.pictures.access_map.model import model as count_accesses
from course_lib.lessons.pictures.access_map.run import record

dy, dtotal, dx = torch.randn(4, 128), torch.randn(4, 128), torch.empty(4, 128)
norm, ones = (torch.randn(4, 128), torch.ones(128), torch.ones(4), torch.ones(4)), torch.empty(2, 128)
of_two, of_one = (
    count_accesses(
        record(
            norm_backward_persistent_kernel,
            (2,),
            (dy, *norm, dtotal, dx, ones, ones.clone(), 128, 1, 128, 1, 128, 4, 128),
            {
                "CENTRED": False, "HAS_W": True, "FULL": True, "ROWS": 1, "BLOCK": 128, "STAGES": 1,
                "HAS_DB": False, "HAS_DTOTAL": has_dtotal,
            },
        )
    )
    for has_dtotal in (False, True)
)  # fmt: skip
sweeps = [
    sum(counted.times(name, "read") for name in ("dy", "x", "dtotal")) + counted.times("dx", "write")
    for counted in (of_two, of_one)
]
assert sweeps == [3, 4] and (3 + 3 - 4) / (3 + 3) == 1 / 3 and find("09-backward").answer == "a third"
trials = (paths.ROOT / "docs" / "kernel-trials.md").read_text(encoding="utf-8")
assert "RMSNorm 0.69, 0.68, 0.76, 0.76 at 4096, 8192, 16384 and 65536 columns, LayerNorm 0.77, 0.69, 0.77" in trials
dy, dtotal = (torch.randn(8, 1024, generator=random).bfloat16().to(DEVICE) for _ in range(2))
separate, together = (rms_norm_backward(dy, total, w, rstd, dtotal=add, needs_dw=False)[0] for add in (None, dtotal))
exact = rms_norm_backward(dy.float(), total.float(), w.float(), rstd, needs_dw=False)[0] + dtotal.float()
off = [(got.float() - exact).abs().mean() for got in (separate + dtotal, together)]
assert off[0] > 1.2 * off[1]

# %% [markdown]
# ## Is the time saved, too?
#
# Forward, two kernels should take 5 / 4 = 1.25 times as long as one. On the stored H100 they took
# {{fused_low}} to {{fused_high}} times as long.

# %%
from course_lib.lessons.lesson09 import figures
from course_lib.lessons.norm_times import count_loads_per_row, norm_times

times = norm_times(1024, 4096, 16384)  # of your GPU, else of the stored H100
figures.show_fused_cost(times)

# %% tags=["check"]
stored = stored_norm_times()
assert "H100" in stored.label
lengths = [256, 1024, 2048, 4096, 8192, 16384, 32768]
ratios = [stored.us("add_rms_norm", "unfused", N) / stored.us("add_rms_norm", "resident", N) for N in lengths]
assert all(1.21 < ratio < 1.245 for ratio in ratios) and 2**25 * 2 / 1e6 > 50  # MB of L2
odd = [stored.us("add_rms_norm", "unfused", N) / stored.us("add_rms_norm", "resident", N) for N in (4095, 4097, 5120)]
assert 1.18 < min(odd) < max(odd) < 1.26

# %% [markdown]
# ### And does leaving out the mean save time?
#
# RMSNorm has one sum in place of two, and no subtraction. It moves the same bytes, and the GPU
# computes while it waits for them: up to 16384 columns the two differ by at most 3 %.

# %% varies={"gpu": "the times are those of that GPU"}
print(times.label)
for N in times.columns:
    rms, layer = (times.us(op, "resident", N) for op in ("rms_norm", "layer_norm"))
    print(f"N = {N:5}: RMSNorm {rms:.1f} us, LayerNorm {layer:.1f} us, {rms / layer:.2f}")

# %% tags=["check"]
fewer = [stored.us("rms_norm", "resident", N) / stored.us("layer_norm", "resident", N) for N in lengths]
assert set(lengths) < set(stored.columns) and 512 not in stored.columns
assert all(0.97 < ratio < 1.01 for ratio in fewer[:-1]) and round(fewer[-1], 2) == 0.89
less = [1 - stored.us("rms_norm", "resident", N) / stored.us("layer_norm", "resident", N) for N in (4095, 4097, 5120)]
assert [round(100 * share) for share in less] == [31, 33, 13]
assert tables.resident(32768)[:] == (1, 32768, 32)  # one row, 32 warps
over = {N: stored.us("rms_norm", "blocked", N) / stored.us("rms_norm", "resident", N) for N in (8192, 32768)}
assert over[8192] < 1.05 and over[32768] > 1.25

# %% [markdown]
# ### One column more
#
# If a row is shorter than its block, the lanes past its end are *idle*. And if a packed row has an
# odd length, every load is *narrow*: it brings one number instead of eight (lesson 08). This is the
# resident LayerNorm on the stored H100. A copy takes {{copy}} µs at all four lengths.
#
# | columns | block | idle lanes | loads | time |
# |---|---|---|---|---|
# | 4096 | 4096 | none | wide | {{layer_4096}} µs |
# | 5120 | 8192 | 3 of 8 | wide | {{layer_5120}} µs |
# | 4095 | 4096 | one | narrow | {{layer_4095}} µs |
# | 4097 | 8192 | nearly half | narrow | ? |

# %%
predict("09-odd")

# %% tags=["answer"] varies={"gpu": "the times are those of that GPU"}
odd_times = norm_times(4095, 4096, 4097, 5120)
print(odd_times.label)
for N in odd_times.columns:
    took = f"{odd_times.us('layer_norm', 'resident', N):.1f} us"
    print(f"N = {N}: {count_loads_per_row(N):6} loads per row of LayerNorm, {took}")

# %% tags=["check"]
assert odd_times.columns == [4095, 4096, 4097, 5120]  # no machine drops a length
loads = {N: count_loads_per_row(N) for N in odd_times.columns}
assert loads == {4095: 8 * 1536, 4096: 1536, 4097: 16 * 1536, 5120: 2 * 1536} and "1536 loads" in find("09-odd").why
assert [tables.resident(N).block for N in (4096, 5120, 4095, 4097)] == [
    4096,
    8192,
    4096,
    8192,
] and 3 / 8 == 1 - 5120 / 8192
us = {N: stored.us("layer_norm", "resident", N) for N in loads}
assert {N: round(time) for N, time in us.items()} == {4095: 82, 4096: 48, 4097: 136, 5120: 58}
assert (
    round(us[4096]) + (82 - 48) + (58 - 48) == 92
    and round(stored.us("rms_norm", "resident", 4097) / us[4097], 2) == 0.67
)
assert (
    1536 == 3 * 512 and round(stored.us("rms_norm", "resident", 4095) / us[4095], 2) == 0.69
)  # x, w and b; RMSNorm has no b
assert {round(stored.copy_us(N)) for N in loads} == {48}
assert find("09-odd").answer.startswith("about 136 µs")

# %%
predict("09-rms")

# %% tags=["answer"] varies={"gpu": "the times are those of that GPU"}
for N in odd_times.columns:
    layer, rms = (odd_times.us(op, "resident", N) for op in ("layer_norm", "rms_norm"))
    print(f"N = {N}: RMSNorm {rms:.1f} us, LayerNorm {layer:.1f} us, {rms / layer:.2f}")

# %% tags=["check"]
assert round(100 * (1 - stored.us("rms_norm", "resident", 4097) / us[4097])) == 33
assert find("09-rms").answer == "a third less"

# %% [markdown]
# ## Your turn
#
# Exercise 09a is 02b with an addition in front. Each check counts the bytes that *your* kernel
# moves for each element of the matrix. In fp16 two kernels move 10.

# %%
from course_lib import exercise

exercise("09a")

# %% [markdown]
# When it passes, choose exercise 09a under the picture and press **Count it**. (The other bars are
# LayerNorms, which have no residual to read and no total to write.)

# %%
from course_lib.lessons import pass_counter

pass_counter("resident", M=4096, N=4096)

# %% tags=["check"]
from course_lib.lessons.pictures.pass_counter.model import OWN, count

assert "09a" in OWN and count("resident", N=4096).passes() == 2

# %%
from course_lib.lessons import offer_hunt

offer_hunt("08a")

# %% [markdown]
# ## Without rails
#
# No layer needs the old residual after the addition. So the sum may overwrite it, and one matrix
# less is needed. This optional task asks for that kernel, with rows of any length.

# %%
exercise("09b")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("09")

# %% [markdown]
# **The ladder.** Run this cell again after each kernel that you pass.

# %%
from course_lib.lessons import ladder

ladder("09")

# %% [markdown]
# **Where to read on**
#
# - The two files linked above: Liger-Kernel's fused kernel, and flash-attention's, which has
#   dropout and a second output as well.
# - `course_lib/kernels/rms_norm.py`: blocked, resident and fused as the course has them. After the
#   exercise.
#
# **Next:** lesson 10. The gradients of both norms, and the two directions that they cannot see.

# %% [markdown] tags=["dive"]
# ## Dive: would a compiler have found it?

# %% [markdown]
# On the stored H100 `torch.compile` and two libraries with a fused kernel, Liger-Kernel and quack,
# did the same work, for 8192 rows of 4096 columns in fp16. `torch` is the addition and
# `F.rms_norm`, `unfused` the addition and the course's kernel, `resident` the course's fused
# kernel.

# %%
from course_lib.lessons.norm_times import stored_norm_times

h100 = stored_norm_times()
print(h100.label, "with PyTorch", h100.measured.versions["torch"])
for provider in ("torch", "unfused", "compile", "liger", "quack", "resident"):
    print(f"{provider:8} {h100.us('add_rms_norm', provider, 4096):6.1f} us")

# %% tags=["check"]
us = {
    name: h100.us("add_rms_norm", name, 4096) for name in ("torch", "unfused", "compile", "liger", "quack", "resident")
}
assert max(us[name] for name in ("compile", "liger", "quack", "resident")) < 96 < 114 < us["unfused"] < us["torch"]

# %% [markdown]
# All that fuse move 4 M N elements, and are within {{apart}} % of one another. `torch.compile`
# fuses operations of PyTorch. It calls a hand-written Triton kernel as it is. A setting fuses what
# *follows* such a kernel ([PR 173662](https://github.com/pytorch/pytorch/pull/173662), 2026), but
# here the addition comes before it, so somebody has to write the fused kernel.

# %% tags=["values"]
from course_lib.lessons.norm_times import stored_norm_times

h100 = stored_norm_times()
ratios = [h100.us("add_rms_norm", "unfused", N) / h100.us("add_rms_norm", "resident", N) for N in (1024, 4096, 16384)]
fused = [h100.us("add_rms_norm", name, 4096) for name in ("compile", "liger", "quack", "resident")]
values = {
    "fused_low": f"{min(ratios):.2f}",
    "fused_high": f"{max(ratios):.2f}",
    "apart": f"{100 * max(fused) / min(fused) - 100:.0f}",
}
values |= {f"layer_{N}": f"{h100.us('layer_norm', 'resident', N):.0f}" for N in (4095, 4096, 5120)}
values["copy"] = f"{h100.copy_us(4096):.0f}"
