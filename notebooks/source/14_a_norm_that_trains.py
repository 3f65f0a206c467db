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
# # 14 A norm that trains
#
# You have written kernels for `y`, `dx`, `dw` and `db`. In this lesson they train a language model
# that is small enough for this machine. It begins with noise and ends with words.
#
# *About 45 minutes, exercise included. Needs: lesson 13.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("14")

# %%
import torch
from course_lib.bench import transformer

DEVICE = course_lib.DEVICE
corpus = transformer.split(transformer.fables())
transformer.show(transformer.fables()[:487])

# %% [markdown]
# These are 168 short fables, written for this course. The model reads 32 characters and guesses the
# next one. A tenth of the text is **held out**: the model is judged on it and never trained on it.
#
# `gather_norm()` checks your files of 08a (forward), 11a (dx), 13b (dw and db) and 14a (the wiring,
# below). What passes is used, else the course's part.

# %% varies={"solved": "it names your own kernels"}
from course_lib.lessons.lesson14 import figures
from course_lib.lessons.own_kernels import gather_norm

norm = gather_norm()
print(norm)
figures.show_parts(norm.parts)

# %% [markdown]
# `norm.Module` is a `torch.nn.LayerNorm` whose forward and backward are these four parts.
#
# Build a model with it and let it write, untrained.

# %%
model = transformer.build(corpus.training, norm.Module, device=DEVICE)
transformer.show(transformer.write(model, corpus.training, 200))

# %% tags=["check"]
import math

import numpy as np

from course_lib.lessons.prediction import find

size, text = transformer.TOY, transformer.fables()
assert {part.exercise for part in norm.parts} == {"08a", "11a", "13b", "14a"}
assert (size.rows, size.channels, size.norms, size.context) == (512, 64, 3, 32)
assert round(sum(parameter.numel() for parameter in model.parameters()), -3) == 58_000
assert text.count("\n") == 168 and 0.09 < len(corpus.held_out.codes) / len(text) < 0.11
characters, entropy = len(corpus.training.characters), corpus.training.entropy()
assert characters == 43 and round(math.log(characters), 2) == 3.76 and round(entropy, 2) == 3.00
before = transformer.write(model, corpus.training, 400)
assert transformer.share_of_words(before, text) < 0.15

# %% [markdown]
# ## Does it learn?
#
# In each of 300 steps the model's three norms get 512 rows of 64 columns. The measure is the loss on
# the held-out text, per character, in nats: lower is better. Guessing blindly among the 43
# characters costs log 43 = 3.76. Knowing only how often each character occurs costs 3.00. You train
# two models, with PyTorch's norm and with yours.

# %%
from course_lib.lessons import predict, step

predict("14-apart")

# %% [markdown]
# The next cell takes three steps of each training, and says how long all of it takes on this machine.

# %% varies={"always": "it says how fast this machine is"}
print(transformer.estimate(corpus, [torch.nn.LayerNorm, norm.Module], 300, device=DEVICE))

# %% tags=["answer"]
from course_lib.lessons import loss_curves

STEPS = 300
theirs, ours = "PyTorch's LayerNorm", norm.name
model_theirs = transformer.build(corpus.training, torch.nn.LayerNorm, device=DEVICE)
runs = {theirs: list(transformer.learn(model_theirs, corpus, STEPS)), ours: []}
live = loss_curves(runs, STEPS, baseline=corpus.training.entropy())
live

# %% tags=["answer"]
from itertools import islice

training = transformer.learn(model, corpus, STEPS)
for loss in islice(training, STEPS // 2):
    live.add(ours, loss)
transformer.show(transformer.write(model, corpus.training, 120))

# %% tags=["answer"]
for loss in training:  # the other half
    live.add(ours, loss)
runs = dict(live.runs)

# %% tags=["answer"]
sample = transformer.write(model, corpus.training, 400)
transformer.show(sample)
print(f"\nwords of the text: {transformer.share_of_words(sample, transformer.fables()):.0%}")

# %% tags=["check"]
end = {name: transformer.loss_on(m, corpus.held_out) for name, m in {theirs: model_theirs, ours: model}.items()}
gaps = np.abs(np.subtract(runs[theirs], runs[ours]))
print(
    {name: round(loss, 3) for name, loss in end.items()},
    f"first gap {gaps[0]:.0e}, largest {gaps.max():.0e}",
)
assert 0.70 <= transformer.share_of_words(sample, text) <= 1.00
assert all(0.5 < loss < 1.0 for loss in end.values()) and len(runs[ours]) == len(runs[theirs]) == STEPS
assert gaps[0] < 1e-5 and gaps.max() < 0.2 and runs[ours][0] > entropy
assert 0 < gaps[:10].max() < 1e-4 and find("14-apart").answer == "apart within ten steps, at first in the last digits"
assert all(count >= STEPS * size.norms for count in norm.launches.values()), norm.launches

# %% tags=["check"]
nudged = transformer.build(corpus.training, torch.nn.LayerNorm, device=DEVICE)
with torch.no_grad():
    weight = nudged.tokens.weight
    weight.copy_(torch.nextafter(weight, torch.full_like(weight, torch.inf)))
of_nudged = np.abs(np.subtract(runs[theirs], list(transformer.learn(nudged, corpus, STEPS))))
print(f"one ulp off: first gap {of_nudged[0]:.0e}, largest {of_nudged.max():.0e}")
assert 0 < of_nudged.max() < 0.2 and gaps.max() < 100 * of_nudged.max()

# %% [markdown]
# Most words that the model writes now stand in the text. What they say makes little sense: the
# model has 58,000 weights, and it sees 32 characters.

# %% [markdown]
# ## Would the curve show a bug?
#
# Take three wrong backward passes, in PyTorch operations, with the symbols of lesson 10. The right
# one returns `(wdy - xhat * c1 - c2) * rstd`.

# %%
from course_lib.lessons.lesson14.broken_norms import norm_with

bugs = {
    "wrong sign of c1": norm_with(lambda wdy, xhat, c1, c2, rstd: (wdy + xhat * c1 - c2) * rstd),
    "c1 and c2 left out": norm_with(lambda wdy, xhat, c1, c2, rstd: wdy * rstd),
    "w left out": norm_with(w_in_dx=False),  # dy where wdy belongs
}

# %%
predict("14-harm")

# %% tags=["answer"] varies={"always": "it says how fast this machine is"}
print(transformer.estimate(corpus, bugs.values(), STEPS, device=DEVICE))

# %% tags=["answer"] varies={"always": "a training that diverges ends elsewhere on each machine"}
models = {}
for bug, Norm in bugs.items():
    models[bug] = transformer.build(corpus.training, Norm, device=DEVICE)
    runs[bug] = list(transformer.learn(models[bug], corpus, STEPS))
for name, one in {theirs: model_theirs, **models}.items():
    apart = abs(runs[name][9] - runs[theirs][9])
    loss = transformer.loss_on(one, corpus.held_out)
    print(f"{name:20} ends at {loss:.2f}; after ten steps {apart:.4f} from PyTorch's")

# %% tags=["check"]
end |= {bug: transformer.loss_on(m, corpus.held_out) for bug, m in models.items()}
right = end[theirs]
print({name: round(loss, 3) for name, loss in end.items()})
assert end["wrong sign of c1"] > right + 1 and end["c1 and c2 left out"] > right + 0.05
assert min(runs["wrong sign of c1"]) > 2 > 1.2 > max(runs[bug][-1] for bug in ("c1 and c2 left out", "w left out"))
assert abs(end["w left out"] - right) < 0.15 and find("14-harm").answer == "the wrong sign"
noise = transformer.write(models["wrong sign of c1"], corpus.training, 400)
print(f"words with the wrong sign {transformer.share_of_words(noise, text):.2f}")
assert transformer.share_of_words(noise, text) < 0.4
weights = [m.norm.weight for m in (model, models["w left out"])]
print(f"w is on average {max((weight - 1).abs().mean() for weight in weights):.3f} from 1")
assert all((weight - 1).abs().mean() < 0.2 for weight in weights)
assert all((weight - 1).abs().max() > 0.05 for weight in weights)  # w had moved away from 1, and it was left out

# %% [markdown]
# The lower chart has the distance of each run from PyTorch's. Drag the dashed line down: at which
# step does each run part?

# %% tags=["answer"]
loss_curves(runs, STEPS, baseline=corpus.training.entropy(), show="wrong sign of c1")

# %% tags=["answer"] varies={"always": "a training that diverges ends elsewhere on each machine"}
transformer.show(transformer.write(models["wrong sign of c1"], corpus.training, 200))

# %% tags=["check"]
early = {name: abs(runs[name][9] - runs[theirs][9]) for name in (*bugs, ours)}
print({name: f"{gap:.0e}" for name, gap in early.items()})
assert min(early[bug] for bug in bugs) > 10 * max(early[ours], 1e-7)
assert early[ours] < (0.000001 if course_lib.MODE == "cpu" else 2e-5)
for gap, written in zip((early[bug] for bug in bugs), (0.1, 0.04, 0.0002), strict=True):
    assert written / 2 < gap < 2 * written
assert min(early[bug] for bug in bugs) > 0.0001 and "0.0001" in find("14-harm").why
# this run is one of the five
assert 0.72 - 0.01 < right < 0.80 + 0.01
for bug, (low, high) in zip(bugs, ((1.6, 2.0), (0.02, 0.15), (-0.04, 0.002)), strict=True):
    assert low - 0.02 < end[bug] - right < high + 0.02

# %% [markdown]
# ## How does autograd learn of your kernels?
#
# Autograd records the operations that PyTorch runs. `launch_forward(x, w, b, eps)` runs a kernel
# and returns `y`, `mean` and `rstd`. Put it behind a linear layer, in a residual sum, and call
# `backward()`.

# %%
from course_lib.lessons.lesson14.wiring import draw
from course_lib.norms.launchers import launch_backward, launch_forward

data, g = draw(12, 6, seed=1), draw(12, 10, seed=2)
linear = draw(6, 10, seed=3).requires_grad_()
w, b = draw(10, seed=4).requires_grad_(), draw(10, seed=5).requires_grad_()


def gradients(norm):
    h = data @ linear
    loss = ((h + norm(h)) * g).sum()
    return torch.autograd.grad(loss, (linear, w, b), allow_unused=True)


# %%
predict("14-silent")

# %% tags=["answer"]
true = gradients(lambda h: torch.nn.functional.layer_norm(h, (10,), w, b))
got = gradients(lambda h: launch_forward(h, w, b, 1e-5)[0])
print("gradient of w:", got[1])
print(f"gradient of linear: off by up to {(got[0] - true[0]).abs().max():.1f}")

# %% tags=["check"]
true = gradients(lambda h: torch.nn.functional.layer_norm(h, (10,), w, b))
got = gradients(lambda h: launch_forward(h, w, b, 1e-5)[0])
assert got[1] is None and got[2] is None and (got[0] - true[0]).abs().max() > 1
assert find("14-silent").answer == "no error: w gets none, and linear a wrong one"

# %% [markdown]
# A `torch.autograd.Function` tells autograd what to do. `forward` computes, and keeps on `ctx` what
# the way back needs. `backward` gets `dy` and returns one value for each argument of `forward`
# except `ctx`, by position: a gradient, or None.


# %% varies={"always": "the last bits of a sum depend on the processor"}
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


got = gradients(lambda h: Bare.apply(h, w, b, 1e-5))
print([f"off by {(a - t).abs().max():.0e}" for a, t in zip(got, true, strict=True)])

# %% tags=["check"]
assert all(torch.allclose(a, t, rtol=1e-4, atol=1e-4) for a, t in zip(got, true, strict=True))

# %% [markdown]
# The gradients are right now. With `create_graph=True` autograd also records what backward does.
# But a launch is no operation of PyTorch, so `dx` is a constant to it, and a loss that holds the size
# of a gradient gets a wrong one. `@once_differentiable` above `backward` is there to raise an error
# instead. Does it always? Here is a common case, a loss plus a gradient penalty.

# %%
from torch.autograd.function import once_differentiable


class Once(Bare):
    backward = staticmethod(once_differentiable(Bare.backward))


def penalise(norm):
    x = draw(12, 10, seed=6).requires_grad_()
    y = ((x + norm(x)) * g).sum()
    (d,) = torch.autograd.grad(y, x, create_graph=True)
    (y + (d * d).sum()).backward()
    return x.grad


# %%
predict("14-once")

# %% tags=["answer"]
true = penalise(lambda x: torch.nn.functional.layer_norm(x, (10,), w, b))
once = penalise(lambda x: Once.apply(x, w, b, 1e-5))
print(f"no error, and off by {(once - true).norm() / true.norm():.0%} of its size")

# %% tags=["check"]
from course_lib.norms.functional import layer_norm as of_the_course

true, once = (
    penalise(one)
    for one in (lambda x: torch.nn.functional.layer_norm(x, (10,), w, b), lambda x: Once.apply(x, w, b, 1e-5))
)
assert (once - true).norm() > 0.5 * true.norm() and find("14-once").answer == "a wrong number, without an error"
mine = penalise(lambda x: of_the_course(x, (10,), w, b))
assert torch.allclose(mine, true, rtol=1e-3, atol=1e-3)

# %% [markdown]
# So `@once_differentiable` refuses only where `dy` has a history. Where the loss is not linear in y,
# such as the sum of `y**3`, `backward()` refuses, but `torch.autograd.grad(loss, x)` still gives a
# wrong number. The course's own norms have right second derivatives.

# %% tags=["check"]
from course_lib.lessons.lesson14.wiring import differentiate_twice
from torch.autograd.function import once_differentiable


class Refusing(Bare):
    backward = staticmethod(once_differentiable(Bare.backward))


def penalise_cube(norm, how):
    h = draw(12, 10, seed=6).requires_grad_()
    (first,) = torch.autograd.grad(((h + norm(h)) ** 3).sum(), h, create_graph=True)
    return how(first.square().sum(), h)


true = differentiate_twice(lambda x, w, b: torch.nn.functional.layer_norm(x, (10,), w, b))
assert (differentiate_twice(lambda x, w, b: Bare.apply(x, w, b, 1e-5)) - true).norm() > 0.3 * true.norm()
mine = differentiate_twice(lambda x, w, b: of_the_course(x, (10,), w, b))
assert torch.allclose(mine, true, rtol=1e-3, atol=1e-2)
try:
    differentiate_twice(lambda x, w, b: Refusing.apply(x, w, b, 1e-5))
    said = ""
except RuntimeError as error:
    said = str(error)
assert "differentiate twice" in said
norms = (
    lambda h: Refusing.apply(h, w, b, 1e-5),
    lambda h: torch.nn.functional.layer_norm(h, (10,), w, b),
)
passed, true = (penalise_cube(norm, lambda loss, h: torch.autograd.grad(loss, h)[0]) for norm in norms)
assert (passed - true).norm() > 0.3 * true.norm()  # once_differentiable, and no error

# %% [markdown]
# `ctx.needs_input_grad` has True or False for each argument. For a frozen weight it says False:
# return None there. For an argument that is None you must return None: everything else is an error.

# %% tags=["step"]
# Somebody calls forward(ctx, x, w, b, eps) with a frozen w and b = None. What does backward return?
# BEGIN SOLUTION
#: One entry for each argument: the name of a gradient in quotes ("dx"), or None.
#| returned = ["dx", "dw", "db"]
returned = ["dx", None, None, None]
# END SOLUTION


step("14-returned")

# %% [markdown]
# ## What should forward keep?
#
# The formula of `dx` needs `xhat`, `w` and `rstd`. `Bare` keeps x, which somebody keeps anyway, and
# two numbers per row, `mean` and `rstd`. Its kernel computes `xhat` again. LayerNorm typed in PyTorch
# operations keeps two matrices more, because each operation saves for itself.

# %%
from course_lib.lessons.lesson14.wiring import count_kept_bytes


def typed(x, w, b):
    d = x - x.mean(1, keepdim=True)
    return d * torch.rsqrt((d * d).mean(1, keepdim=True) + 1e-5) * w + b


for name, one in {"Bare": lambda x, w, b: Bare.apply(x, w, b, 1e-5), "typed": typed}.items():
    print(f"{name:6} keeps {count_kept_bytes(one, 64, 1024):,} bytes beyond x, w and b")

# %% tags=["check"]
from course_lib.lessons.lesson14.wiring import count_kept_bytes


def typed_again(x, w, b):
    d = x - x.mean(1, keepdim=True)
    return d * torch.rsqrt((d * d).mean(1, keepdim=True) + 1e-5) * w + b


bare = count_kept_bytes(lambda x, w, b: Bare.apply(x, w, b, 1e-5), 64, 1024)
builtin = count_kept_bytes(lambda x, w, b: torch.nn.functional.layer_norm(x, (1024,), w, b), 64, 1024)
assert bare == 512 == 2 * 64 * 4 and bare <= builtin < 0.01 * 64 * 1024 * 4
assert count_kept_bytes(typed_again, 64, 1024) >= 2 * 64 * 1024 * 4

# %% [markdown]
# Keep tensors with `ctx.save_for_backward`, never as `ctx.x = x`. If somebody changes `x` in place,
# as `relu_` does, backward raises an error for a saved tensor, and silently uses the new numbers of
# an attribute. Numbers and shapes may go on attributes.


# %% [markdown]
# ## What does dy look like?
#
# Up to now `dy` was a plain matrix. What arrives depends on the operations after the norm. Here is
# the gradient that reaches a `y` of shape (12, 10), for five losses. After `y.sum()` it is a single
# 1, **expanded**: both strides are 0. `launch_backward`, as most launchers, takes the stride between
# rows, and reads the N elements of a row one after the other.

# %%
from course_lib.lessons.lesson14.wiring import LOSSES, find_dy_strides

for name, loss_of in LOSSES.items():
    print(f"{name:21} dy has strides {find_dy_strides(loss_of)}")

# %% [markdown]
# So `Bare` is right where the last stride is 1: for the plain matrix, and for `y.sum(0)`, whose one
# row stands for all rows with a row stride of 0.

# %%
from course_lib.lessons.lesson14.wiring import is_right

for name, loss_of in LOSSES.items():
    print(f"{name:21} {'right' if is_right(Bare, loss_of) else 'wrong'}")

# %% tags=["check"]
from course_lib.lessons.lesson14.wiring import Packed, is_right

assert find_dy_strides(LOSSES["y.sum()"]) == (0, 0) and find_dy_strides(LOSSES["(y.t() * g).sum()"]) == (1, 12)
assert sum(is_right(Bare, loss_of) for loss_of in LOSSES.values()) == 2
assert all(is_right(Packed, loss_of) for loss_of in LOSSES.values())

# %% [markdown]
# quack's RMSNorm raised an error at `.sum().backward()` ([issue
# 88](https://github.com/Dao-AILab/quack/issues/88)); other libraries read the wrong elements.
# `dy.contiguous()` mends it: it copies whatever is not packed. The same holds for `x`.


# %% tags=["step"]
def read_rows(x):
    x = x.transpose(-1, -2)  # a view: no element has moved
    # BEGIN SOLUTION
    #: Make a matrix of all rows whose elements lie as the launcher reads them.
    #| rows = x.reshape(-1, x.shape[-1])
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    # END SOLUTION
    # what a launcher finds: N elements, one after the other, from the start of each row
    return torch.as_strided(rows, rows.shape, (rows.shape[1], 1))


step("14-rows")

# %% [markdown]
# At the end of backward this is undone: `dx` gets the shape of `dy`, and each gradient the dtype of
# its tensor.


# %% tags=["step"]
def hand_back(dx, dw, dy, w):  # dx is a matrix (M, N), and dw is fp32, as the launcher gives them
    # BEGIN SOLUTION
    #: dx in the shape of dy, dw in the dtype of w.
    #| return dx, dw
    return dx.view(dy.shape), dw.to(w.dtype)
    # END SOLUTION


step("14-back")

# %% [markdown]
# ## Whose is dy?
#
# Memory is short, and `dx` has the shape of `dy`. So somebody writes `dx` into `dy`. Behind a norm
# alone the gradient is right. But an addition hands the same tensor to both sides. Behind
# `norm(x) + x` the residual side means `dy` and finds `dx` in it: the sum is `2 dx` instead of
# `dy + dx`. (Lesson 17 has a library that did this.)

# %%
from course_lib.lessons.lesson14.wiring import OverDy, find_gradients

x = draw(12, 10, seed=6)
behind = {"norm(x)": lambda y, x: (y * g).sum(), "norm(x) + x": lambda y, x: ((y + x) * g).sum()}
for name, loss_of in behind.items():
    found, wanted = find_gradients(OverDy, loss_of, x)
    print(f"{name:12} gradient of x off by {(found[0] - wanted[0]).abs().max():.0e}")

# %% tags=["check"]
from course_lib.lessons.lesson14.wiring import OverDy, find_gradients

x = draw(12, 10, seed=6)
(alone, *_), (want_alone, *_) = find_gradients(OverDy, lambda y, x: (y * g).sum(), x)
(block, *_), (want_block, *_) = find_gradients(OverDy, lambda y, x: ((y + x) * g).sum(), x)
assert torch.allclose(alone, want_alone, atol=1e-4) and (block - want_block).abs().max() > 0.5
assert torch.allclose(block, 2 * want_alone, atol=1e-4)

# %% [markdown]
# ## Which test sees which bug?
#
# Seven bugs, most once released, and seven tests. Five compare all three gradients with PyTorch's,
# each for the loss or dtype in its name. `gradcheck` is PyTorch's own: it compares with finite
# differences. `twice` wants a second derivative that is right or refused.

# %%
predict("14-gradcheck")

# %% tags=["answer"]
from course_lib.lessons.lesson14.wiring import find_who_sees_what

table = find_who_sees_what()
figures.show_seen(table)

# %% tags=["check"]
from course_lib.lessons.lesson14.wiring import find_who_sees_what, list_tests

table = find_who_sees_what()
assert all(test(Packed) for test in list_tests().values()), "a test that fails the right Function is no test"
passed = [bug for bug, row in table.items() if not row["gradcheck"]]
assert passed == [
    "dx written over dy",
    "dy's strides ignored",
    "dw in x's dtype",
    "twice, not refused",
]
assert len(passed) == find("14-gradcheck").answer
assert not any(all(row[test] for row in table.values()) for test in table["dy ignored"])
assert all(row["y + x"] or row["y.t()"] or row["fp16 x"] or row["twice"] for row in table.values())
assert not table["dy ignored"]["y.sum()"] and table["dy ignored"]["y * g"]

# %% [markdown]
# ## Your turn: wire it up
#
# `Bare` takes packed matrices, with `w` and `b` given and one dtype. Yours takes any leading
# dimensions and strides, None, and mixed dtypes: `dx` in the dtype of `x`, `dw` and `db` in those
# of `w` and `b`. Save the tensor that the launcher reads: x itself if it is packed, else the packed
# copy. `save_for_backward` takes None, too. A second derivative is right, or refused where `dy` has a
# history. The grader calls it in every way of this lesson.

# %%
from course_lib import exercise

exercise("14a")

# %% [markdown]
# When it passes, run the cell with `gather_norm()` again, then `norm.Module` and the training.
#
# ## Is it fast?
#
# Here is such a model with 4 layers, 1024 channels and 16384 rows per norm, trained on an H100. Timed
# alone, the course's kernels are faster than PyTorch's. A step can run eager, as one CUDA graph
# (lesson 15), or under `torch.compile`, which joins operations of PyTorch into larger kernels. The
# course's norm reaches it as one operator, `torch.library.custom_op`.

# %%
predict("14-compiled")

# %% tags=["answer"]
from course_lib.bench import measurement

profiled = measurement.stored("profile")
figures.show_steps(profiled)

# %% tags=["check"]
profiled = measurement.stored("profile")
steps = {(r["size"], r["norm"], r["provider"], r["mode"]): r for r in profiled.rows}
ratio = {
    mode: steps["small", "layer_norm", "ours", mode]["ms"] / steps["small", "layer_norm", "torch", mode]["ms"]
    for mode in ("eager", "graph", "compiled")
}
assert find("14-compiled").answer == "about 9 percent longer" and round(100 * ratio["compiled"]) == 109
assert round(100 * ratio["eager"]) == 96 and round(100 * ratio["graph"]) == 95
assert steps["small", "layer_norm", "ours", "eager"]["M"] == 16384

# %% [markdown]
# The course's kernels win as long as the norm stays a kernel of its own, and lose to a compiler that
# joins PyTorch's norm with its neighbours. The dive "Where does a step's time go?" has the rest.
#
# ## What you predicted

# %%
from course_lib.lessons import offer_hunt

offer_hunt("08a")

# %%
from course_lib.lessons import review_predictions

review_predictions("14")

# %% [markdown]
# **Where to read on**
#
# - PyTorch, [Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html) and
#   [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html): saved tensors,
#   in-place changes.
# - `course_lib/norms/functional.py`: the course's norms behind PyTorch's signatures, with autocast,
#   errors and the GPU of x.
#
# **Next:** lesson 15, which measures without fooling itself.

# %% [markdown] tags=["dive"]
# ## Dive: where does a step's time go?
#
# Eager, Python launches each kernel while the GPU works on earlier ones (lesson 09). A forward and
# backward call of the course's norm, written in Python, costs {{host_ours}} µs of the CPU's time,
# and of PyTorch's {{host_torch}}. A **CUDA graph** (lesson 15) holds all kernels of a step, and one
# launch replays them, so none waits for Python.

# %%
profiled = measurement.stored("profile")
figures.show_profile(profiled)

# %% tags=["check"]
profiled = measurement.stored("profile")
steps = {(r["size"], r["norm"], r["provider"], r["mode"]): r for r in profiled.rows}
for size, norm, mode in {(r["size"], r["norm"], r["mode"]) for r in profiled.rows}:
    ours, torchs = steps[size, norm, "ours", mode], steps[size, norm, "torch", mode]
    if mode != "compiled":
        assert ours["kinds"]["norm"] < 0.7 * torchs["kinds"]["norm"]
    if mode == "graph":
        assert ours["ms"] < 0.985 * torchs["ms"] and ours["idle_ms"] < 0.03 * ours["span_ms"]
    elif mode == "eager":
        assert ours["ms"] < torchs["ms"] and (size == "small" or ours["idle_ms"] < 0.05 * ours["span_ms"])
    elif mode == "compiled":
        assert ours["ms"] > torchs["ms"]
ours, torchs = (steps["small", "layer_norm", provider, "eager"] for provider in ("ours", "torch"))
assert ours["idle_ms"] > 1.5 * torchs["idle_ms"]
assert (SIZE := profiled.rows[-1])["size"] == "wide" and (SIZE["M"], SIZE["N"]) == (8192, 4096)
costs = figures.find_host_costs()
assert costs["ours"] > 3 * costs["torch"]

# %% [markdown]
# The profiler slows the host, so these eager steps are longer than those above. The course's norms
# take {{norm_ours}} ms of the GPU's time, and PyTorch's {{norm_torch}}. **A wide model**, one block
# of 4096 channels, has longer kernels: its GPU waits {{wide_idle}} of {{wide_ours}} ms, and
# PyTorch's step takes {{wide_torch}}.
#
# On a slower host the waits grow. The next bars are another run, on such a host: eager, PyTorch's
# norm is ahead there. The longest bar is RMSNorm typed op by op, compiled: measure that before you
# write a kernel for a training.

# %%
measured = measurement.stored("training")
figures.show_speed(measured)

# %% tags=["check"]
per_second = {(r["norm"], r["provider"], r["compiled"]): r["tokens_per_s"] for r in measured.rows}
pairs = [(key, speed) for key, speed in per_second.items() if key[1] == "ours"]
assert len(pairs) == 4
lost = [per_second[n, "torch", compiled] / speed for (n, _, compiled), speed in pairs]
assert all(1.04 < ratio < 1.06 for ratio in lost[:2]) and all(1.10 < ratio < 1.14 for ratio in lost[2:])
fewer = {
    (
        norm,
        compiled,
    ): f"{100 - 100 * per_second[norm, 'ours', compiled] / per_second[norm, 'torch', compiled]:.0f}"
    for norm in ("layer_norm", "rms_norm")
    for compiled in (False, True)
}
eager, joined = (
    " and ".join(fewer[norm, compiled] for norm in ("layer_norm", "rms_norm")) for compiled in (False, True)
)
assert (joined, eager) == ("10 and 11", "4 and 5")
assert per_second["rms_norm", "typed", False] < 0.82 * per_second["rms_norm", "ours", False]
assert per_second["rms_norm", "typed", True] == max(per_second.values())
assert measured.rows[0]["M"] == 16384

# %% [markdown] tags=["dive"]
# ## Dive: what does torch.compile see?
#
# `torch.compile` traces a model with fake tensors, which have a shape and a dtype and no memory. A
# kernel cannot run on those. One way out is to make the launch an **operator**: a name, a
# signature, and a second function that says what comes out. That function can lie. Here it says
# that `mean` and `rstd` have the dtype of `x`. `opcheck` runs the operator on real and on fake
# tensors and compares.


# %%
@torch.library.custom_op("lesson14::layer_norm", mutates_args=())
def layer_norm_op(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return launch_forward(x, w, b, eps)


@layer_norm_op.register_fake
def _(x, w, b, eps):
    return torch.empty_like(x), x.new_empty(x.shape[0]), x.new_empty(x.shape[0])


# %%
from course_lib.lessons.lesson14.wiring import find_lie

fixed = w.detach(), b.detach(), 1e-5
for dtype in (torch.float32, torch.float16):
    print(dtype, find_lie(layer_norm_op, x.to(dtype), *fixed))

# %% tags=["check"]
from course_lib.norms import functional

assert find_lie(layer_norm_op, x, *fixed) == "passes"
assert "Dtypes torch.float32 and torch.float16 are not equal" in find_lie(layer_norm_op, x.half(), *fixed)
assert find_lie(functional._layer_norm, x.half(), *fixed, torch.float16, 0.0) == "passes"

# %% [markdown]
# Statistics are fp32, so only half precision shows the lie. The course's own operator passes. A
# model around it is one graph, and the norm is one node in it: the compiler fuses what stands
# before and behind, and calls your kernel in between.
#
# `custom_op` is opaque. `torch.library.triton_op`, with each launch in `wrap_triton`, is the other
# way ([PyTorch's
# tutorial](https://docs.pytorch.org/tutorials/recipes/torch_compile_user_defined_triton_kernel_tutorial.html),
# PyTorch 2.6 or later). Here is one RMSNorm as both. `triton.JITFunction` makes a kernel for the
# compiler; in CPU mode `@triton.jit` makes one for the interpreter, which cannot be traced.

# %%
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


def rms_rows(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * N + cols
    x = tl.load(x_ptr + at, mask=cols < N, other=0.0)
    tl.store(y_ptr + at, x * tl.rsqrt(tl.sum(x * x) / N + eps), mask=cols < N)


rms_rows = triton.JITFunction(rms_rows)


# %%
def launch(kernel, x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], 1e-5, BLOCK=16)
    return y


@torch.library.custom_op("lesson14::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    return launch(rms_rows, x)


@triton_op("lesson14::seen", mutates_args=())
def seen(x: torch.Tensor) -> torch.Tensor:
    return launch(wrap_triton(rms_rows), x)


# %%
from course_lib.lessons.lesson14.wiring import list_operations_around

opaque.register_fake(torch.empty_like)
for operator in (opaque, seen):
    print(*list_operations_around(operator, x), sep="\n    ")

# %% tags=["check"]
inside = [list_operations_around(one, x) for one in (opaque, seen)]
assert inside[0] == ["relu.default", "opaque.default", "relu.default"]
assert inside[1][1:3] == [
    "empty_like.default",
    "triton_kernel_wrapper_functional(x_ptr, y_ptr, N, eps, BLOCK)",
]
assert inside[1][0] == inside[1][-1] == "relu.default"

# %% [markdown]
# That is the graph of `relu(operator(relu(x)))` that goes to the compiler, written without a GPU;
# no kernel ran. Of the opaque operator it has the name. Of the other it has the allocation of `y`,
# the kernel and its arguments, and needs no second function. What the compiler makes of this graph
# on a GPU was not tried here. Lesson 09 names the setting that fuses what follows a kernel.
#
# **Sharded tensors**, tried with PyTorch 2.13 in one process on a CPU. A `DTensor` that enters the
# course's norm ends in an error: *Operator course.layer_norm.default does not have a sharding
# strategy registered*. PyTorch's norm takes it; the course's takes `x.to_local()` where the rows
# are whole. FSDP (`fully_shard`) hands the norm plain tensors, and its values and gradients are
# those without it.

# %% tags=["check"]
graphs = []


def look(graph, inputs):
    """A compiler that compiles nothing: it keeps the graph, and runs it as it is."""
    graphs.append(graph)
    return graph.forward


compiled = torch.compile(
    lambda x: torch.relu(functional.layer_norm(torch.relu(x), (10,), w, b)),
    backend=look,
    fullgraph=True,
)
leaf = x.detach().clone().requires_grad_()
compiled(leaf).sum().backward()
nodes = [getattr(n.target, "__name__", str(n.target)) for n in graphs[0].graph.nodes if n.op == "call_function"]
expected = x.detach().clone().requires_grad_()
torch.relu(torch.nn.functional.layer_norm(torch.relu(expected), (10,), w, b)).sum().backward()
assert len(graphs) == 1 and nodes.count("layer_norm.default") == 1
assert torch.allclose(leaf.grad, expected.grad, atol=1e-4)

# %% [markdown] tags=["dive"]
# ## Dive: which dtype does a gradient have?
#
# A gradient has the dtype of its tensor. With `x` in fp16 and `w` in fp32, `dx` is fp16 and `dw` is
# fp32. Suppose that backward casts all gradients to the dtype of `dy`. Autograd casts `dw` back to
# fp32 without a word, and the dtype is right. But fp16 ends at 65504. With a loss scale of 4096, as
# fp16 training uses it, 64 rows add up to 262144.

# %%
from course_lib.lessons.lesson14.wiring import Packed, Tidied

half, scale = draw(64, 10, seed=7).half().requires_grad_(), 4096.0
for Function in (Packed, Tidied):
    y = Function.apply(half, w, b, 1e-5)
    (db,) = torch.autograd.grad(y, b, torch.full_like(y, scale))
    print(f"{Function.__name__:7} db[0] is {db[0].item()}, dtype {db.dtype}")

# %% tags=["check"]
found = {}
for Function in (Packed, Tidied):
    y = Function.apply(half, w, b, 1e-5)
    (found[Function],) = torch.autograd.grad(y, b, torch.full_like(y, scale))
assert (found[Packed] == 64 * scale).all() and torch.isinf(found[Tidied]).all() and 64 * scale > 65504
assert {db.dtype for db in found.values()} == {torch.float32}

# %% [markdown]
# Under `torch.autocast` a matrix product returns bf16, `w` and `b` stay fp32, and a norm gets both.
# On a GPU autocast has PyTorch's `layer_norm` cast them to fp32 and return fp32; on a CPU, and for
# `rms_norm`, it leaves them alone. The course's functions do the same. `Bare` takes what comes, and
# so does yours. `torch.amp.custom_fwd(cast_inputs=torch.float32)` above `forward` and `custom_bwd`
# above `backward` are for a Function that needs fp32.

# %% varies={"gpu": "autocast casts layer_norm on a GPU, and not on a CPU"}
from course_lib.norms import functional

with torch.autocast(torch.device(DEVICE).type, dtype=torch.bfloat16):
    h = data @ linear
    for name, norm in {"PyTorch": torch.nn.functional, "the course": functional}.items():
        print(f"{name:10}", norm.layer_norm(h, (10,), w, b).dtype, norm.rms_norm(h, (10,)).dtype)

# %% tags=["check"]
device = torch.device(DEVICE).type


class InFp32(Bare):
    forward = staticmethod(torch.amp.custom_fwd(Bare.forward, device_type=device, cast_inputs=torch.float32))
    backward = staticmethod(torch.amp.custom_bwd(Bare.backward, device_type=device))


with torch.autocast(device, dtype=torch.bfloat16):
    h = data @ linear
    assert h.dtype == torch.bfloat16 and w.dtype == torch.float32
    both = torch.nn.functional, functional
    theirs, ours = ([n.layer_norm(h, (10,), w, b).dtype, n.rms_norm(h, (10,)).dtype] for n in both)
    assert theirs == ours == [torch.bfloat16 if device == "cpu" else torch.float32, torch.bfloat16]
    assert Bare.apply(h, w, b, 1e-5).dtype == torch.bfloat16 and InFp32.apply(h, w, b, 1e-5).dtype == torch.float32

# %% [markdown] tags=["dive"]
# ## Dive: what if x is changed in place, or backward runs twice?
#
# Every tensor counts its changes in place. `save_for_backward` notes the count and looks again when
# the tensor is taken out. A second backward pass raises an error, too, because saved tensors are
# freed after the first. With `retain_graph=True` it finds them as your first backward left them: so
# read them, and never work in them.

# %% varies={"gpu": "the message names the tensor's type, which is another one on a GPU"}
h = data @ linear
y = Bare.apply(h, w, b, 1e-5)
h.mul_(2)
try:
    y.sum().backward()
except RuntimeError as error:
    print("RuntimeError: ..." + str(error)[50:110] + "...")

# %% tags=["check"]
h = data @ linear
y = Bare.apply(h, w, b, 1e-5)
(first,) = torch.autograd.grad(y, linear, g, retain_graph=True)
(second,) = torch.autograd.grad(y, linear, g, retain_graph=True)
assert torch.equal(first, second)
h.mul_(2)
try:
    torch.autograd.grad(y, linear, g)
    said = ""
except RuntimeError as error:
    said = str(error)
assert "inplace operation" in said

# %% tags=["values"]
from course_lib.bench import measurement
from course_lib.lessons.lesson14 import figures

costs = figures.find_host_costs()
steps = {(r["size"], r["norm"], r["mode"], r["provider"]): r for r in measurement.stored("profile").rows}
values = {
    "host_ours": costs["ours"],
    "host_torch": costs["torch"],
    "wide_idle": f"{steps['wide', 'layer_norm', 'eager', 'ours']['idle_ms']:.1f}",
}
for provider in ("ours", "torch"):
    values[f"norm_{provider}"] = f"{steps['small', 'layer_norm', 'eager', provider]['kinds']['norm']:.1f}"
    values[f"wide_{provider}"] = f"{steps['wide', 'layer_norm', 'eager', provider]['ms']:.1f}"
