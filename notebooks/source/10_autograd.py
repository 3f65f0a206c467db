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
# # 10 autograd: a norm that trains
#
# You have a kernel for `y` and kernels for `dx`, `dw` and `db`. PyTorch knows of neither. In this lesson you introduce them, and at the end
# a small transformer learns this course's own prose with your norm in it. The wiring is ten lines. Almost every bug that fits into them
# lets a model train, only worse.
#
# **You will be able to**
#
# - write a `torch.autograd.Function`: what to save, what to return, what never to touch;
# - name, for each wiring bug that shipped, the test that sees it, and the tests that do not;
# - register a kernel as an operator that `torch.compile` and `opcheck` understand;
# - say what two loss curves on top of each other prove, and what a falling one does not.
#
# **You need** lesson 02: VJPs, `dx`, `dw`, `db`. Lessons 06 and 09 for what the kernels do; you need not have solved their exercises.
#
# **Time** about 80 minutes: 55 to read and run, 25 for exercise 10a.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F

from course_lib import exercise
from course_lib.bench import transformer
from course_lib.lessons import loss_curves, picture
from course_lib.lessons.figures import lesson10
from course_lib.norms import functional, modules
from course_lib.norms.launchers import launch_backward, launch_forward

# %% [markdown]
# ## Does it train already?
#
# `launch_forward(x, w, b, eps)` runs the kernel of lesson 06 on a matrix and returns `y`, `mean` and `rstd`. Put it where a norm stands: a
# linear layer, then `h + norm(h)`, then a loss. Call `backward()`. Three things could happen. PyTorch raises an error; or the parameters
# get gradients; or something else. What do you expect of `w.grad`, and of the gradient of the linear layer? *(Predict, then run.)*

# %%
M, N, eps = 12, 10, 1e-5
generator = torch.Generator().manual_seed(0)


def draw(*shape, mean=0.0):
    return (torch.randn(*shape, generator=generator) + mean).to(DEVICE)


data, linear, g = draw(M, 6), draw(6, N).requires_grad_(), draw(M, N)
w, b = draw(N, mean=1.0).requires_grad_(), draw(N).requires_grad_()


def gradients(norm):
    """The gradients of linear, w and b behind a residual block with this norm."""
    h = data @ linear
    loss = ((h + norm(h, w, b)) * g).sum()
    return torch.autograd.grad(loss, (linear, w, b), allow_unused=True)


true = gradients(lambda h, w, b: F.layer_norm(h, (N,), w, b, eps))
got = gradients(lambda h, w, b: launch_forward(h, w, b, eps)[0])
print("gradient of w:", got[1], "\nlargest error of linear's:", f"{(got[0] - true[0]).abs().max().item():.1f}")
assert got[1] is None and got[2] is None
assert (got[0] - true[0]).abs().max() > 1

# %% [markdown]
# No error. `w` and `b` get nothing, and the linear layer gets a gradient that is wrong: only the path around the norm is in it. The kernel
# wrote its numbers into a fresh tensor, and for autograd that tensor came from nowhere. Because there is another path, nobody notices.
#
# Hold on to this. In this lesson the danger is hardly ever an error message.
#
# ## Ten lines
#
# A `torch.autograd.Function` has two halves. `forward` computes, and keeps on `ctx` what the way back needs. `backward` gets `dy` and
# returns **one value for each argument of forward, by position**: a gradient, or None.
#
# `launch_backward(dy, x, w, mean, rstd)` runs the kernels of lesson 09 and returns `dx`, `dw`, `db`.


# %%
class Bare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, eps):
        y, mean, rstd = launch_forward(x, w, b, eps)
        ctx.save_for_backward(x, w, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = launch_backward(dy, *ctx.saved_tensors)
        return dx, dw, db, None  # None: eps is a number


got = gradients(lambda h, w, b: Bare.apply(h, w, b, eps))
for name, ours, theirs in zip(("linear", "w", "b"), got, true, strict=True):
    print(f"gradient of {name:6}: off by {(ours - theirs).abs().max().item():.0e}")
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)

# %% [markdown]
# It trains. You will call it `Bare`, because so much is missing. Go through it word by word, and break it.
#
# ### What if a gradient is not returned?
#
# Somebody writes `return dx, None, db, None`. The kernel has computed `dw`; it is dropped. What does an optimizer do with the `w`?
# *(Predict, then run.)*


# %%
class NoDw(Bare):
    @staticmethod
    def backward(ctx, dy):
        dx, _, db = launch_backward(dy, *ctx.saved_tensors)
        return dx, None, db, None


weight, bias = torch.nn.Parameter(w.detach().clone()), torch.nn.Parameter(b.detach().clone())
optimizer = torch.optim.AdamW([weight, bias], lr=0.1, weight_decay=0.0)
x = draw(M, N)
losses = []
for _ in range(5):
    loss = (NoDw.apply(x, weight, bias, eps) - g).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(
    "losses:",
    *(f"{loss:.3f}" for loss in losses),
    "\nw moved:",
    not torch.equal(weight, w),
    " b moved:",
    not torch.equal(bias, b),
)
assert torch.equal(weight, w) and not torch.equal(bias, b) and losses[-1] < losses[0]

# %% [markdown]
# The loss falls, and `w` never moves. An optimizer skips a parameter without a gradient; frozen parameters look the same.
#
# > **ERRATUM** (unsloth, `Fast_RMS_Layernorm`, issue #4533). Its backward returned None for the weight. That is harmless where norms are
# > frozen anyway, and so it stayed for years. In full fine-tuning every RMSNorm weight of the model kept its first value.
#
# And if `dw` and `db` change places? Both have N elements, so autograd takes them. Only a *number* of values that is wrong, or a shape, is
# refused.


# %%
class Swapped(Bare):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = launch_backward(dy, *ctx.saved_tensors)
        return dx, db, dw, None


class TooFew(Bare):
    @staticmethod
    def backward(ctx, dy):
        return launch_backward(dy, *ctx.saved_tensors)


swapped = gradients(lambda h, w, b: Swapped.apply(h, w, b, eps))
try:
    gradients(lambda h, w, b: TooFew.apply(h, w, b, eps))
    refused = "nothing"
except RuntimeError as error:
    refused = str(error)
print("swapped: w gets b's gradient:", torch.allclose(swapped[1], true[2], atol=1e-4), "\ntoo few:", refused)
assert torch.allclose(swapped[1], true[2], atol=1e-4) and not torch.allclose(swapped[1], true[1], atol=1e-1)
assert "incorrect number of gradients" in refused

# %% [markdown]
# ## What should forward keep?
#
# The backward formula wants `xhat`, `w` and `rstd`. You could save `xhat` itself, as large as `x`. `Bare` saves `x`, `mean` and `rstd` and
# lets the kernel rebuild it. Count what stays in memory between the two passes, *beyond* the tensors that are there anyway: `x` is the
# input, somebody else holds it. For a 64 x 1024 matrix in fp32 (256 KB): how much does `Bare` add? And LayerNorm typed in PyTorch
# operations, where autograd saves for itself? *(Predict, then run.)*


# %%
def kept(norm, x, w, b):
    """Bytes that the graph of norm(x, w, b) holds, beyond x, w and b themselves."""
    own = {t.untyped_storage().data_ptr() for t in (x, w, b)}
    held = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = norm(x, w, b)
    assert y.requires_grad
    return sum(size for pointer, size in held.items() if pointer not in own)


def typed(x, w, b):
    deviation = x - x.mean(dim=1, keepdim=True)
    rstd = torch.rsqrt((deviation * deviation).mean(dim=1, keepdim=True) + eps)
    return deviation * rstd * w + b


large, w_large, b_large = draw(64, 1024).requires_grad_(), draw(1024).requires_grad_(), draw(1024).requires_grad_()
held = {
    "Bare": kept(lambda x, w, b: Bare.apply(x, w, b, eps), large, w_large, b_large),
    "PyTorch's": kept(lambda x, w, b: F.layer_norm(x, (1024,), w, b, eps), large, w_large, b_large),
    "typed": kept(typed, large, w_large, b_large),
}
for name, size in held.items():
    print(f"{name:10} adds {size:7} bytes, {size / large.untyped_storage().nbytes():.3f} of x")
assert held["Bare"] == 2 * 64 * 4 and held["Bare"] <= held["PyTorch's"] < 0.01 * large.untyped_storage().nbytes()
assert held["typed"] >= 2 * large.untyped_storage().nbytes()

# %% [markdown]
# 512 bytes: two numbers a row. PyTorch's own norm does the same. The typed one holds two matrices more than it needs, because
# each of its operations saves for itself and none knows of the others. In a large model such memory, not the time, is what
# people write such Functions for.
#
# ### Why save_for_backward, and not ctx.x = x?
#
# Attributes work. The gradients come out right. So what is the difference? Here somebody changes `x` in place between the two passes, as
# `relu_` or `x += y` do. What does each of the two give? *(Predict, then run.)*


# %%
class OnCtx(Bare):
    @staticmethod
    def forward(ctx, x, w, b, eps):
        y, ctx.mean, ctx.rstd = launch_forward(x, w, b, eps)
        ctx.x, ctx.w = x, w
        return y

    @staticmethod
    def backward(ctx, dy):
        return (*launch_backward(dy, ctx.x, ctx.w, ctx.mean, ctx.rstd), None)


outcome = {}
for Function in (OnCtx, Bare):
    h = data @ linear
    y = Function.apply(h, w, b, eps)
    (true_dw,) = torch.autograd.grad((F.layer_norm(h.detach(), (N,), w, b, eps) * g).sum(), w)
    h.mul_(2)
    try:
        (dw,) = torch.autograd.grad((y * g).sum(), w)
        outcome[Function] = f"dw off by up to {(dw - true_dw).abs().max().item():.1f}, and no word"
        assert (dw - true_dw).abs().max() > 0.5
    except RuntimeError as error:
        outcome[Function] = "RuntimeError: ..." + str(error)[50:110] + "..."
    print(f"{Function.__name__:6} {outcome[Function]}")
assert "no word" in outcome[OnCtx] and "inplace operation" in outcome[Bare]

# %% [markdown]
# Every tensor counts its in-place changes. `save_for_backward` notes the count, and looks again when the tensor is taken out. A tensor on
# an attribute is just a tensor. (It also keeps its memory after `backward()`, and an *output* kept that way keeps its own graph alive: a
# leak.) Numbers and shapes may go on attributes.
#
# ### What if backward runs twice?
#
# After `backward()` the saved tensors are freed. A second pass raises an error, unless the first was told `retain_graph=True`. Then it
# finds the saved tensors *as your first backward left them*. So they are read, never worked in.

# %%
h = draw(M, N).requires_grad_()
y = Bare.apply(h, w, b, eps)
(first,) = torch.autograd.grad(y, h, g, retain_graph=True)
(second,) = torch.autograd.grad(y, h, g)
try:
    torch.autograd.grad(y, h, g)
    third = "nothing raised"
except RuntimeError as error:
    third = str(error)
print("second pass equal to the first:", torch.equal(first, second), "\nthird:", third[:57])
assert torch.equal(first, second) and "second time" in third

# %% [markdown]
# ## What does dy look like?
#
# In every test so far `dy` was a plain matrix, because the loss was `(y * g).sum()`. What arrives depends on what stands *behind* the norm.
# Here are five losses. For each, which strides has `dy`, in elements? Start with `y.sum()`: the gradient of every element is 1. How many
# ones does PyTorch store? *(Predict, then run.)*


# %% tags=["nbval-check-output"]
def strides_of_dy(loss_of):
    seen = []
    y = draw(M, N).requires_grad_() * 1
    y.register_hook(lambda dy: seen.append(tuple(dy.stride())))
    loss_of(y).backward()
    return seen[0]


behind = {
    "(y * g).sum()": lambda y: (y * g).sum(),
    "y.sum()": lambda y: y.sum(),
    "(y.sum(0) * v).sum()": lambda y: (y.sum(0) * g[0]).sum(),
    "(y.sum(1) * v).sum()": lambda y: (y.sum(1) * g[:, 0]).sum(),
    "(y.t() * g).sum()": lambda y: (y.t() * g.t().contiguous()).sum(),
}
strides = {name: strides_of_dy(loss_of) for name, loss_of in behind.items()}
for name, found in strides.items():
    print(f"{name:21} dy has strides {found}")
assert strides["y.sum()"] == (0, 0) and strides["(y.t() * g).sum()"] == (1, M) and strides["(y * g).sum()"] == (N, 1)

# %% [markdown]
# One. `y.sum()` sends a single number, *expanded*: both strides are 0. A transposition sends strides (1, M). Our launcher takes the stride
# between rows and reads the N elements of a row one after the other, as many kernels do. What does `Bare` make of the five? *(Predict: how
# many of them are right?)*


# %%
class Packed(Bare):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = launch_backward(dy.contiguous(), *ctx.saved_tensors)
        return dx, dw, db, None


def off(Function, loss_of, x):
    leaf = x.detach().clone().requires_grad_()
    pairs = []
    for norm in (lambda x: Function.apply(x, w, b, eps), lambda x: F.layer_norm(x, (N,), w, b, eps)):
        pairs.append(torch.autograd.grad(loss_of(norm(leaf)), (leaf, w, b)))
    return max((ours - theirs).abs().nan_to_num(torch.inf).max().item() for ours, theirs in zip(*pairs, strict=True))


x = draw(M, N, mean=1.0)
errors = {
    Function: {name: off(Function, loss_of, x) for name, loss_of in behind.items()} for Function in (Bare, Packed)
}
for name in behind:
    print(f"{name:21} Bare off by {errors[Bare][name]:7.1e}   with dy.contiguous() {errors[Packed][name]:7.1e}")
assert sum(error < 1e-3 for error in errors[Bare].values()) == 2 and max(errors[Packed].values()) < 1e-3

# %% [markdown]
# Two: the plain matrix, and the one row that stands for all. The others read elements that are not there (they count as infinitely wrong
# here; on a GPU they would be whatever lies behind), or the wrong ones.
#
# `.contiguous()` copies only if it must. The course's own kernels take both strides instead and copy never.
#
# > **ERRATUM** (several). quack's RMSNorm took `dy` for packed (issue #88): after `.sum().backward()` it raised an error, which is the good
# > case. FlagGems' (PR 1082) and unsloth's (PR 10617) read on at the wrong places, and returned numbers.
#
# ## Whose is dy?
#
# Memory is short, and `dx` has the shape of `dy`. Why not write it there? Behind the launch nobody needs `dy` any more. Or does somebody?
# Try it behind a norm alone, and in the residual block `y + x`. *(Predict, then run.)*


# %%
class OverDy(Bare):
    @staticmethod
    def backward(ctx, dy):
        dy = dy.contiguous()
        dx, dw, db = launch_backward(dy, *ctx.saved_tensors)
        return dy.copy_(dx), dw, db, None


def residual_off(Function, x, loss_of=lambda z: (z * g).sum()):
    leaf = x.detach().clone().requires_grad_()
    (ours,) = torch.autograd.grad(loss_of(Function.apply(leaf, w, b, eps) + leaf), leaf)
    (theirs,) = torch.autograd.grad(loss_of(F.layer_norm(leaf, (N,), w, b, eps) + leaf), leaf)
    (alone,) = torch.autograd.grad(loss_of(F.layer_norm(leaf, (N,), w, b, eps)), leaf)
    return (ours - theirs).abs().max().item(), (ours - 2 * alone).abs().max().item()


alone = off(OverDy, behind["(y * g).sum()"], x)
in_block, twice_dx = residual_off(OverDy, x)
print(f"alone: off by {alone:.0e}\nin y + x: off by {in_block:.1f}, and by {twice_dx:.0e} from twice the norm's dx")
assert alone < 1e-3 and in_block > 0.5 and twice_dx < 1e-3

# %% [markdown]
# Alone it is right. An addition does not compute two gradients. It hands *the same tensor* to both sides. The residual side meant `dy`, and
# finds `dx` in it: the sum is `2 dx` instead of `dy + dx`. A transformer has such an addition around every norm.
#
# > **ERRATUM** (Liger-Kernel, RMSNorm with its default `in_place=True`; PR 1305). `dx` is written into the incoming gradient. Two of its
# > own tests passed one gradient to two backward passes. One of them then compared two results that shared their memory: a buffer with
# > itself, which always agrees. The option is there for a block whose residual is added elsewhere. It has to be a decision, and documented.
#
# ## Which dtype has a gradient?
#
# That of its tensor. With `x` in fp16 and `w` in fp32, `dx` is fp16 and `dw` fp32. The launcher gives `dw` in fp32. Somebody
# tidies up: all gradients to `dy.dtype`. Autograd then casts `dw` back to fp32 by itself, without a word. So is all well? *(Predict, then
# run.)*


# %%
class Tidied(Packed):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = launch_backward(dy.contiguous(), *ctx.saved_tensors)
        return dx, dw.to(dy.dtype), db.to(dy.dtype), None


half = draw(64, N, mean=1.0).half().requires_grad_()
scale = 4096.0  # a loss scale, as fp16 training uses it
grads = {}
for Function in (Packed, Tidied):
    y = Function.apply(half, w, b, eps)
    grads[Function] = torch.autograd.grad(y, (w, b), torch.full_like(y, scale))
    print(f"{Function.__name__:7} db[0] {grads[Function][1][0].item():9.0f}, dtype {grads[Function][1].dtype}")
assert all(grad.dtype == torch.float32 for pair in grads.values() for grad in pair)
assert (grads[Packed][1] == 64 * scale).all() and torch.isinf(grads[Tidied][1]).all() and 64 * scale > 65504

# %% [markdown]
# The dtype is right, the number is Inf. 64 rows of 4096 are 262144, and fp16 ends at 65504. With smaller numbers you would only lose
# digits, and nobody would look.
#
# Under **autocast** somebody else chooses dtypes. `torch.autocast` runs a matrix product in half precision, and on a GPU it runs
# `layer_norm` in fp32, because statistics want it. Your Function is not on its list, so it gets what arrives: half `x`, fp32 `w`. The
# course's `functional.layer_norm` does what PyTorch's does, on each device.

# %%
x_half = draw(3, N).bfloat16()
with torch.autocast(DEVICE, dtype=torch.bfloat16):
    product = (draw(3, N) @ draw(N, N)).dtype
    ours, theirs = functional.layer_norm(x_half, (N,)).dtype, F.layer_norm(x_half, (N,)).dtype
    by_function = Bare.apply(x_half, w, b, eps).dtype
print(
    f"matrix product {product}; layer_norm of bf16: PyTorch's and ours agree: {ours == theirs}; Bare gives {by_function}"
)
assert product == torch.bfloat16 and ours == theirs and by_function == torch.bfloat16

# %% [markdown]
# ## Who needs a gradient at all?
#
# In fine-tuning most parameters are frozen. `ctx.needs_input_grad` says for each argument whether anybody wants its gradient. A value that
# nobody wants is dropped, so ignoring the question is not wrong. It is wasted work, and for one case an error: an argument that was None
# must get None.


# %%
class Asking(Packed):
    asked: ClassVar = []

    @staticmethod
    def backward(ctx, dy):
        Asking.asked.append(ctx.needs_input_grad)
        return Packed.backward(ctx, dy)


for frozen in ("", "w b", "x"):
    leaves = {name: t.detach().clone().requires_grad_(name not in frozen) for name, t in (("x", x), ("w", w), ("b", b))}
    Asking.apply(*leaves.values(), eps).sum().backward()
    there = [t.grad is not None for t in leaves.values()]
    print(f"frozen: {frozen or 'nothing':8} needs_input_grad {Asking.asked[-1]}, gradients there: {there}")
    assert there == list(Asking.asked[-1][:3])

try:
    Packed.apply(x.clone().requires_grad_(), w, None, eps).sum().backward()
    refused = "nothing"
except RuntimeError as error:
    refused = str(error)
print("b is None, and db is returned:", refused[:70])
assert "None at position" in refused

# %% [markdown]
# A kernel that computes all three gradients in one pass over `x` and `dy` saves little by leaving one out: the reading is what costs. If
# only `dx` is wanted, a kernel without column sums is simpler and needs no second stage.
#
# ## Which test sees which bug?
#
# You have a collection by now. Add one: a backward that never looks at `dy` and takes ones instead. (It was the published solution of a GPU
# puzzle, mojo-gpu-puzzles p22.) And here are six tests. Each compares all three gradients with PyTorch's, except the third: `gradcheck`,
# which compares with finite differences in fp64 and needs no second implementation.
#
# Which single test would you keep? And which of the six bugs does gradcheck let through? *(Predict, then run.)*


# %%
class DyIgnored(Packed):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = launch_backward(torch.ones_like(dy, memory_format=torch.contiguous_format), *ctx.saved_tensors)
        return dx, dw, db, None


class PackedNoDw(Packed):
    @staticmethod
    def backward(ctx, dy):
        return NoDw.backward(ctx, dy.contiguous())


class PackedSwapped(Packed):
    @staticmethod
    def backward(ctx, dy):
        return Swapped.backward(ctx, dy.contiguous())


bugs = {
    "dw not returned": PackedNoDw,
    "dw, db swapped": PackedSwapped,
    "dy ignored": DyIgnored,
    "dx written over dy": OverDy,
    "dy's strides ignored": Bare,
    "dw in x's dtype": Tidied,
}


# %%
def agrees(Function, loss_of, x=x):
    """All three gradients as PyTorch's, to what rounding allows; dx may be fp16."""
    mine, true = ([t.detach().clone().requires_grad_() for t in (start, w, b)] for start in (x, x.float()))
    ours = torch.autograd.grad(loss_of(Function.apply(*mine, eps), mine[0]), mine, allow_unused=True)
    theirs = torch.autograd.grad(loss_of(F.layer_norm(true[0], (N,), *true[1:], eps), true[0]), true)
    limits = (2e-3 if x.dtype == torch.float16 else 2e-5, 2e-5, 2e-5)
    near = [
        got is not None and bool((got - want).abs().max() <= limit * want.abs().max())
        for got, want, limit in zip(ours, theirs, limits, strict=True)
    ]
    return all(near)


def gradcheck_passes(Function):
    leaves = [t.detach().clone().requires_grad_() for t in small]
    return torch.autograd.gradcheck(lambda *a: Function.apply(*a, eps), leaves, raise_exception=False)


small = [draw(*shape, mean=1.0).double() for shape in ((2, 3), (3,), (3,))]
tests = {
    "y.sum()": lambda Function: agrees(Function, lambda y, x: y.sum()),
    "y * g": lambda Function: agrees(Function, lambda y, x: (y * g).sum()),
    "gradcheck": gradcheck_passes,
    "y + x": lambda Function: agrees(Function, lambda y, x: ((y + x) * g).sum()),
    "y.t()": lambda Function: agrees(Function, lambda y, x: (y.t() * g.t().contiguous()).sum()),
    "fp16 x": lambda Function: agrees(Function, lambda y, x: (y.float() * g.half().float()).sum(), x.half()),
}
assert all(test(Packed) for test in tests.values()), "a test that fails the right Function is no test"
table = {bug: {name: not test(Function) for name, test in tests.items()} for bug, Function in bugs.items()}
picture(
    lesson10.seen(table),
    alt="A grid of six bugs and six tests. "
    + " ".join(
        f"{bug}: seen by {', '.join(name for name, sees in row.items() if sees)}." for bug, row in table.items()
    ),
    caption="Each cell was computed just now: the test was run on the Function with the bug.",
)

# %%
passes_gradcheck = [bug for bug, row in table.items() if not row["gradcheck"]]
together = [bug for bug, row in table.items() if row["y + x"] or row["y.t()"] or row["fp16 x"]]
print("gradcheck lets through:", *passes_gradcheck, sep="\n  ")
assert passes_gradcheck == ["dx written over dy", "dy's strides ignored", "dw in x's dtype"]
assert not any(all(row[test] for row in table.values()) for test in tests)
assert together == list(bugs) and not table["dy ignored"]["y.sum()"] and table["dy ignored"]["y * g"]

# %% [markdown]
# Half of them. gradcheck always sends a fresh, packed `dy` in fp64: nothing to share, no strides, one dtype. It is the best test of
# a *formula*. The wiring needs others, and `y + x`, `y.t()` and mixed dtypes together see all six.
#
# `y.sum()`, the loss that everybody types first, cannot tell a backward that ignores `dy`: there `dy` is 1.
#
# ## Exercise 10a: wire it up
#
# `Bare` takes packed fp32 matrices, and `w` and `b` that are there. A norm that others can use takes any leading dimensions and strides,
# None, mixed dtypes. The grader calls yours in every way of this lesson.

# %%
exercise("10a")

# %% [markdown]
# ## From a Function to a module
#
# People do not want to call `apply`. They want to replace a line of their model. The smallest module that does it inherits everything from
# PyTorch's and changes `forward`. What becomes of checkpoints? *(Predict, then run.)*


# %%
class Norm(torch.nn.LayerNorm):
    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        return Packed.apply(rows, self.weight, self.bias, self.eps).view(x.shape)


theirs = torch.nn.LayerNorm(N, device=DEVICE)
torch.nn.init.normal_(theirs.weight)
ours = Norm(N, device=DEVICE)
result = ours.load_state_dict(theirs.state_dict())
three = draw(2, 3, N)
print(ours, "|", result, f"| off by {(ours(three) - theirs(three)).abs().max().item():.0e}")
assert not result.missing_keys and not result.unexpected_keys and torch.allclose(ours(three), theirs(three), atol=1e-5)
assert repr(ours).removeprefix("Norm") == repr(theirs).removeprefix("LayerNorm")

# %% [markdown]
# The weights load, names and all. `course_lib/norms/modules.py` has `LayerNorm` and `RMSNorm` in the same manner.
#
# ## What does torch.compile see?
#
# `torch.compile` traces a model with *fake* tensors: shape, dtype and device, no memory. A kernel cannot run on those. For a compiler, your
# launch has to be an **operator**: a name, a signature, and a second function that says what comes out for given shapes. `custom_op`
# registers one. The compiler then treats it as a box that it never opens. (`triton_op` lets it see the launch inside and place it in its
# own code; it wants kernels that can be compiled, so not the interpreter's. The course takes the box.)
#
# The second function can lie, and nothing else will notice. Here `rstd` gets the dtype of `x`. For which `x` is that a lie? *(Predict, then
# run.)*


# %%
@torch.library.custom_op("lesson10::layer_norm", mutates_args=())
def layer_norm_op(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return launch_forward(x, w, b, eps)


@layer_norm_op.register_fake
def _(x, w, b, eps):
    return torch.empty_like(x), x.new_empty(x.shape[0]), x.new_empty(x.shape[0])


def opcheck(op, *arguments):
    try:
        torch.library.opcheck(op, arguments, test_utils=("test_schema", "test_faketensor"))
    except torch.testing._internal.optests.generate_tests.OpCheckError as lie:
        return str(lie).split("found ")[-1].split(" (scroll")[0]
    return "passes"


fixed = [t.detach() for t in (w, b)]
found = {dtype: opcheck(layer_norm_op, x.to(dtype), *fixed, eps) for dtype in (torch.float32, torch.float16)}
for dtype, says in found.items():
    print(f"{dtype}: {says}")
assert (
    found[torch.float32] == "passes" and "Dtypes torch.float32 and torch.float16 are not equal" in found[torch.float16]
)
assert opcheck(functional._layer_norm, x.half(), *fixed, eps) == "passes"

# %% [markdown]
# Only fp16 and bf16 show it: statistics are fp32. `opcheck` runs the operator on real and on fake tensors and compares. The last assertion
# is the course's own operator, which tells the truth.
#
# An operator has no gradient until you give it one: `register_autograd(backward, setup_context=...)`, with the two halves that you know. So
# how many graphs, and which nodes, does the compiler see of a model around `functional.layer_norm`? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
graphs = []


def look(graph, inputs):
    """A compiler that compiles nothing: it keeps the graph, and runs it as it is."""
    graphs.append(graph)
    return graph.forward


model = torch.compile(
    lambda x: torch.relu(functional.layer_norm(torch.relu(x), (N,), w, b)), backend=look, fullgraph=True
)
leaf = x.detach().clone().requires_grad_()
model(leaf).sum().backward()
nodes = [
    getattr(node.target, "__name__", str(node.target)) for node in graphs[0].graph.nodes if node.op == "call_function"
]
print(len(graphs), "graph:", *nodes)
expected = x.detach().clone().requires_grad_()
torch.relu(F.layer_norm(torch.relu(expected), (N,), w, b)).sum().backward()
assert (
    len(graphs) == 1 and nodes.count("layer_norm.default") == 1 and torch.allclose(leaf.grad, expected.grad, atol=1e-4)
)

# %% [markdown]
# One graph, one node for the norm. The compiler fuses what stands in front of it and behind it, and calls your kernel in between. That is
# also the price: PyTorch's own norm it may fuse with its neighbours, yours it may not. You will see it in the speed below.
#
# ## Does it train?
#
# Now the use. `course_lib/bench/transformer.py` is a character-level transformer of a page: read it, there is nothing hidden. The norm is passed
# in. It learns to predict the next character of this course's prose. With three norms and a batch of 2 x 16 characters, a norm sees
# 32 rows of 32 columns: small, because here the kernels may run in the interpreter.
#
# What is a bad loss? A model that knows only how often each character occurs reaches the entropy of that distribution. A model that knows
# nothing starts near the logarithm of the number of characters.

# %%
text = transformer.encode(transformer.course_text())
characters, entropy = len(text.characters), text.entropy()
size = transformer.TOY
print(f"{len(text.codes)} characters, {characters} different ones; a norm sees {size.rows} rows of {size.channels}")
print(f"knowing nothing {np.log(characters):.2f}, counting characters {entropy:.2f} nats a character")
assert (size.rows, size.channels, size.norms) == (32, 32, 3) and entropy < np.log(characters)

# %% [markdown]
# Train it twice: the same seed for the weights, the same batches in the same order. First PyTorch's LayerNorm, then the course's, its
# losses drawn as they come. After 100 steps, how far apart are the two losses: in the second digit, the fourth, the sixth? Or equal?
# *(Predict, then run.)*

# %%
from IPython.display import display

STEPS = 100


theirs, ours = "PyTorch's LayerNorm", "the course's LayerNorm"
models = {
    theirs: transformer.build(text, torch.nn.LayerNorm, device=DEVICE),
    ours: transformer.build(text, modules.LayerNorm, device=DEVICE),
}
live = loss_curves({theirs: transformer.train(models[theirs], text, STEPS), ours: []}, STEPS, baseline=entropy)
shown = display(live, display_id="live-losses")
for loss in transformer.train(models[ours], text, STEPS):
    live.add(ours, loss)
shown.update(live)

# %%
runs = dict(live.runs)
gaps = np.abs(np.subtract(runs[theirs], runs[ours]))
end = {name: transformer.loss_on(model, text) for name, model in models.items()}  # steadier than a batch of two
print(f"largest difference {gaps.max():.0e}; after training, over 128 pieces: {end[theirs]:.4f} and {end[ours]:.4f}")
assert gaps[0] < 1e-5 and gaps.max() < 1e-3
assert all(loss < entropy - 0.05 for loss in end.values()) and runs[theirs][0] > np.log(characters) - 0.5

# %% [markdown]
# One curve on top of the other, and both below the entropy. The difference is a few roundings of a loss, and it is not 0: your kernel adds
# up in another order than PyTorch's. Is the difference that remains as small as it can be?
#
# There is a fair comparison. Take PyTorch's norm both times, and move every number of the *embedding* by one unit in its last place, an
# ulp: the smallest change that there is. The training does with it what it does with any rounding. How far apart are those two after 100
# steps? *(Predict, then run.)*


# %%
def one_ulp(model):
    with torch.no_grad():
        weight = model.tokens.weight
        weight.copy_(torch.nextafter(weight, torch.full_like(weight, torch.inf)))


nudged = "PyTorch's, embedding one ulp off"
models[nudged] = transformer.build(text, torch.nn.LayerNorm, device=DEVICE)
one_ulp(models[nudged])
runs[nudged] = list(transformer.train(models[nudged], text, STEPS))
nudged_gaps = np.abs(np.subtract(runs[theirs], runs[nudged]))
print(f"the course's norm: up to {gaps.max():.0e} apart; embedding one ulp off: up to {nudged_gaps.max():.0e}")
assert 0 < nudged_gaps.max() < 1e-3 and gaps.max() < 100 * nudged_gaps.max()

# %% [markdown]
# Of the same kind. Two trainings agree as well as the last bits of their weights let them. More cannot be asked of two norms that are both
# right.
#
# ### Would you have seen the bug in the curve?
#
# Now the norm that never returns `dw`. Its weights stay at 1. Does the loss fall? Does it fall below the entropy? *(Predict, then look.)*


# %%
class NeverDw(torch.nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight.detach(), self.bias, self.eps)


broken = "dw never returned"
models[broken] = transformer.build(text, NeverDw, device=DEVICE)
runs[broken] = list(transformer.train(models[broken], text, STEPS))
broken_gaps = np.abs(np.subtract(runs[theirs], runs[broken]))
end[broken] = transformer.loss_on(models[broken], text)
first_apart = int(np.argmax(broken_gaps > 1e-3))
print(
    f"after training {end[broken]:.4f}, PyTorch's {end[theirs]:.4f}; more than 0.001 apart from step {first_apart} on"
)
assert end[broken] < entropy - 0.05 and abs(end[broken] - end[theirs]) < 0.05
assert all((norm.weight == 1).all() for norm in models[broken].modules() if isinstance(norm, NeverDw))
assert 1 <= first_apart < 10 and broken_gaps.max() > 20 * gaps.max() and broken_gaps[0] < 1e-5

# %% [markdown]
# It falls, and ends within 0.05 nats of the right one. A falling loss proves that *something* learns. Nothing in this curve says that three
# weight vectors never moved. Put it beside a training that is known to be right, from the same seed, and it parts in the first steps.
#
# Move the menu from run to run: look at the upper axis, where you cannot tell them apart, and then at the lower one. Set "apart" lower: at which
# step does each run part?

# %%
loss_curves(runs, baseline=entropy, show=broken)

# %%
from course_lib.lessons.loss_curves.model import model as compared

for name in (ours, nudged, broken):
    step = compared(runs, name, STEPS, limit=1e-3).parts
    print(f"{name:35} apart by 0.001: {'never' if step is None else f'from step {step} on'}")
    assert (step is not None) == (name == broken)

# %% [markdown]
# ## Is it fast?
#
# At toy size nothing is. The same model with 4 layers and 1024 channels has norms over 16384 rows, and there a GPU has something to do.
# Norms are a small part of a transformer's arithmetic and a larger part of its bytes. Guess: by how much does the whole training gain when
# RMSNorm is one kernel instead of eight operations typed in Python? And the course's LayerNorm against PyTorch's, eager and compiled?
# *(Predict, then run.)*

# %%
from course_lib.bench import training

measured = training.latest()
if measured is None:
    print("There is no measurement yet. On a machine with a GPU, `python -m course_lib.bench.training` takes one.")
    rows = []
else:
    rows = measured.rows
    print(training.table(measured))
for row in rows:
    base = next(r for r in rows if (r["norm"], r["provider"], r["compiled"]) == (row["norm"], "torch", False))
    assert (
        abs(np.mean(row["losses"][-10:]) - np.mean(base["losses"][-10:])) < 0.1
    )  # the same training, as far as bf16 goes

# %%
speed = rows and picture(
    lesson10.training_speed(rows, measured.label()),
    alt=f"Bars of tokens a second by norm and provider. {measured.label()}. The cell above prints the numbers.",
)
speed or None  # nothing to draw where nothing was measured

# %% [markdown]
# Two things to read off where there are numbers. Eager, a typed norm pays for every operation in bytes and launches. Compiled, the compiler
# fuses the typed one by itself and may melt a norm into its neighbours, while it has to walk around the course's box: what a kernel of your
# own gains eager, it can lose there. Lesson 11 is about measuring such a thing without fooling yourself.
#
# ## Summary
#
# - A kernel call is invisible to autograd. With another path around it, training goes on, wrong and silent.
# - backward returns by position. A gradient that is missing or in the wrong place raises nothing.
# - Save with `save_for_backward`: two numbers a row beyond what is there, a change in place raises, memory is freed.
# - `dy` comes with any strides, and it belongs to others as well. Never write to it.
# - gradcheck tests formulas. `y + x`, `y.t()` and mixed dtypes test the wiring.
# - An operator is a name, a truthful fake, and a backward. `opcheck` finds the lie.
# - A falling loss proves little. A loss on top of one that is known to be right proves a lot.
#
# **Where to read on**
#
# - PyTorch's notes "Extending PyTorch" and "Autograd mechanics": saved tensors, version counters, in-place.
# - PyTorch's "Custom operators" landing page: custom_op, triton_op, opcheck.
# - `course_lib/norms/functional.py`: the public functions, with autocast, empty batches and every error of PyTorch's. After the exercise.
# - Karpathy's minGPT: the transformer of this lesson, grown up.
#
# **Next: lesson 11, measuring.** How fast is it really, and against what?
