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
# # 10 VJPs: what a norm cannot feel
#
# Two different rows can give the same y. Nothing behind the norm can tell them apart, so the loss is
# the same for both. From this one fact you find LayerNorm's backward pass, term by term. After that
# comes a proof of five lines.
#
# *About 60 minutes, 35 of them for three exercises. Needs: lesson 02, derivatives (product, root,
# chain rule) and the dot product of two vectors.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("10")

# %%
import numpy as np

from course_lib.norms import reference


def layer_norm(row):
    return reference.layer_norm([row], eps=0.0).y[0]  # float64; w is 1, b is 0, eps is 0


x = np.array([2.0, -1.0, 3.5])
print(layer_norm(x).round(4))

# %% [markdown]
# ## Which pushes does y not feel?
#
# A **push** is a small change of x, of one element or of many at once. y does not *feel* a push if
# y stays as it is.
#
# Take the row `2 -1 3.5`. LayerNorm with eps = 0 gives the rows `102 99 103.5` and `20 -10 35` the
# same y (lesson 01).

# %%
print(layer_norm(x + 100).round(4))
print(layer_norm(10 * x).round(4))

# %% tags=["check"]
from course_lib.lessons.prediction import find

assert np.allclose(layer_norm(x + 100), layer_norm(x)) and np.allclose(layer_norm(10 * x), layer_norm(x))

# %% [markdown]
# Two kinds of pushes get a name:
#
# - **along 1**: add the same number to every element.
# - **along xhat**, where $\hat{x} = (x - \mathrm{mean}) \cdot \mathrm{rstd}$: move every element
#   away from the mean, in proportion to its distance. That stretches the row. (`10 * x` is a push
#   along xhat and one along 1.)
#
# The forward pass is *blind* to a push that y does not feel.
#
# ## What does the backward pass return?
#
# A network ends in one number, the loss. On the way back the norm is given `dy`, a number for each
# element of `y`: how much the loss rises for each unit that an element of y rises. The norm has to
# return `dx`, the same for x. (`dx` always means the gradient of the loss, never a small change of
# x.)
#
# Here is `dx` by nudging. Move one element of x a little, see how far each element of y moves,
# multiply that by its `dy`, and add up. This needs no formula, and is far too slow for real rows.


# %%
def nudge(forward, dy, x, h=1e-5):
    """dx of one row: the loss is the sum of dy * y, and each element of x is moved both ways."""
    dx = np.empty(len(x))
    for i, unit in enumerate(np.eye(len(x))):
        dx[i] = (dy * (forward(x + h * unit) - forward(x - h * unit))).sum() / (2 * h)
    return dx


row = np.array([2.0, 4, 4, 4, 5, 5, 7, 9])
dy = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0, 2.0, -0.5])
print(nudge(layer_norm, dy, row).round(4))

# %% [markdown]
# $\partial y_a / \partial x_i$ says how far element a of y moves per unit of element i of x. The
# table of all these numbers is the Jacobian, and nudging measures the vector `dy` times this table.
# So a backward pass is a **vector-Jacobian product**, a VJP. For a row of 8192 numbers the table
# has 67 million entries. The rest of the page replaces it by two numbers per row.

# %%
from course_lib.lessons import predict, step

predict("10-third")

# %% tags=["check"]
assert round(8192**2 / 1e6) == 67
some_dy = np.array([0.3, -0.1, find("10-third").answer]) / reference.layer_norm([x], eps=0.0).rstd[0]
assert np.allclose(nudge(layer_norm, some_dy, x), [0.3, -0.1, -0.2], atol=1e-8)
for seed in range(5):
    dx = nudge(layer_norm, np.random.default_rng(seed).standard_normal(3), x)
    assert abs(dx.sum()) < 1e-8 and abs((dx * layer_norm(x)).sum()) < 1e-8
    assert np.allclose(np.cross(dx, [3, -1, -2]), 0, atol=1e-8)  # the only direction there is
assert 8192**2 == 67_108_864

# %% [markdown]
# The loss rises by $\sum_i dx_i\, p_i$ for a small push p of x. A push that y does not feel leaves
# the loss as it is, so it makes this sum 0.

# %% [markdown]
# ## What is left of a push?
#
# One abbreviation: $y = \hat{x} \cdot w + b$, so the loss rises by `w[a] * dy[a]` for each unit that
# `xhat[a]` moves. The course calls that product **wdy**.
#
# A row of three numbers is a point in space, and wdy is an arrow: push xhat along it, and the loss
# rises fastest. In the picture up is the direction 1, the vector (1, 1, 1). Do these four things:
#
# 1. Slide *mean of x*, then *std of x*. The square xhat stays where it is: y does not feel these
#    pushes.
# 2. Drag the tip of wdy up and down. What happens to the green arrow `left`, which is what reaches
#    dx?
# 3. Drag the foot of wdy around. Where can `left` go? *All that can be left* shows it.
# 4. Turn x. Then try to find a wdy of which nothing is left.

# %%
from course_lib.lessons import projection

projection()

# %% tags=["check"]
from course_lib.lessons.lesson10.projection.model import model, push
from course_lib.lessons.lesson10.projection.model import row as row_of

x_3 = row_of(60, mean=0.5, std=1.0)
for mean, std in ((-1.5, 1.0), (0.5, 3.0), (2.0, 0.1)):
    moved = model("layer_norm", row_of(60, mean, std), push(15, mean=0.75)).xhat
    assert np.allclose(moved, model("layer_norm", x_3, push(15, mean=0.75)).xhat)
directions = set()
for turn in range(0, 360, 15):
    state = model("layer_norm", x_3, push(turn, mean=0.75), eps=0.0)
    assert abs(state.left.mean()) < 1e-12 and abs((state.left * state.xhat).mean()) < 1e-12
    if np.linalg.norm(state.left) > 0.01:
        unit = state.left / np.linalg.norm(state.left)
        directions.add(tuple((unit * np.sign(unit[0])).round(6).tolist()))
assert len(directions) == 1
rms = [model("rms_norm", x_3, push(turn, mean=0.75), eps=0.0).left for turn in range(0, 360, 15)]
assert np.linalg.matrix_rank(np.array(rms), tol=1e-9) == 2 and max(abs(left.mean()) for left in rms) > 0.1

# %% [markdown]
# Now make the row shorter.

# %%
predict("10-two")

# %% tags=["check"]
two, dy_two = [[3.0, 7.0], [-2.0, 100.0]], [[1.0, -3.0], [2.0, 5.0]]
assert find("10-two").answer == 0 and abs(reference.layer_norm_vjp(dy_two, two, eps=0.0).dx).max() < 1e-14
assert np.allclose(abs(reference.layer_norm(two, eps=0.0).y), 1)
equal = reference.layer_norm([[7.0, 7.0]], eps=1e-5)
assert (equal.y == 0).all() and abs(reference.layer_norm_vjp([[1.0, -3.0]], [[7.0, 7.0]], eps=1e-5).dx).min() > 100

# %% [markdown]
# The shortest test of a gradient is `y.sum().backward()`, on a fresh layer whose w is still 1. Many
# people write it. Then wdy is 1 everywhere: it lies along 1, and nothing of it is left. So a function
# that always returns zeros passes the test. Somebody takes `(y * y).sum()` as the loss instead.

# %%
predict("10-squares")

# %% tags=["answer"]
for power in (1, 2, 3):  # of y, in the loss
    dy_of_power = power * layer_norm(row) ** (power - 1)
    dx = nudge(layer_norm, dy_of_power, row)
    print(f"sum of y ** {power}: the largest dx is {abs(dx).max():.3f}")

# %% tags=["check"]
eight = np.random.default_rng(4).standard_normal((8, 8))  # eight wdy for one row of eight columns
row_8 = np.random.default_rng(5).standard_normal(8)
same_row = np.repeat(row_8[None], 8, axis=0)
assert np.linalg.matrix_rank(reference.layer_norm_vjp(eight, same_row, eps=0.0).dx, tol=1e-9) == 8 - 2
assert np.linalg.matrix_rank(reference.rms_norm_vjp(eight, same_row, eps=0.0).dx, tol=1e-9) == 8 - 1
assert abs(reference.layer_norm_vjp(np.ones((8, 8)), eight, eps=1e-5).dx).max() < 1e-14
assert abs(nudge(layer_norm, np.ones(3), x)).max() < 1e-9
assert find("10-squares").answer == "0 in every element, for every x"
of_eight = reference.layer_norm(eight, eps=0.0).y
assert abs(reference.layer_norm_vjp(2 * of_eight, eight, eps=0.0).dx).max() < 1e-13
assert abs(reference.layer_norm_vjp(3 * of_eight**2, eight, eps=0.0).dx).max() > 0.1

# %% [markdown]
# ## How do you take a direction out?
#
# Now write down what the green arrow shows, one direction after the other. Along 1 first: which
# number do you have to subtract from every element, so that the rest adds up to 0?


# %% tags=["step"]
def without_one(push):
    # BEGIN SOLUTION
    #: Subtract the same number from every element, so that what you return adds up to 0.
    #| return push
    return push - push.mean()
    # END SOLUTION


step("10-along-one")

# %% [markdown]
# The other direction works in the same way. You subtract a multiple of xhat, so that `sum(xhat *
# rest)` is 0. Which multiple? One fact helps: xhat has mean 0 and standard deviation 1, so its N
# squares add up to N.


# %% tags=["step"]
def without_xhat(push, xhat):
    # BEGIN SOLUTION
    #: Find the number that xhat has to be multiplied by. Here it is always 1.
    #| return push - xhat
    return push - xhat * (xhat * push).mean()
    # END SOLUTION


step("10-along-xhat")

# %% [markdown]
# **c1** is the mean of `xhat * wdy`: how much of wdy lies along xhat. **c2** is the mean of wdy:
# how much lies along 1. (The names come from the Triton tutorial.) 1 and xhat stand at a right
# angle, so it does not matter which of them you take out first.
#
# A real x has many rows, and each row has a c1 and a c2 of its own. In PyTorch `mean(dim=1)` has
# the shape (M,), and you want a column of shape (M, 1): `keepdim=True` keeps the 1 (lesson 01).
#
# ## In which unit?
#
# Two parts are out. A factor is still missing. To find it, think of a row in metres, and then of
# the same row in decimetres: all of `x` is multiplied by 10. y is the same as before. To move it as
# far as before, you now have to push x ten times as far, so every element of `dx` is multiplied by
# 0.1. This is the factor rstd, which is a tenth of what it was.

# %% tags=["check"]
assert np.allclose(nudge(layer_norm, dy, 10 * row), 0.1 * nudge(layer_norm, dy, row))
assert np.allclose(reference.layer_norm([10 * x], eps=0.0).rstd, 0.1 * reference.layer_norm([x], eps=0.0).rstd)

# %% [markdown]
# ## Is that all?
#
# You have guessed the backward pass from the pushes that y does not feel: `dx` is what is left of
# wdy, times rstd. Here is the proof. Push x by a small p, and follow p through the forward pass,
# one line of the table after the other. Write mean(p) for the mean of p over the row.
#
# | What | moves by | because |
# |---|---|---|
# | mean | $\mathrm{mean}(p)$ | it is a mean |
# | x - mean | $p - \mathrm{mean}(p)$ | |
# | var | $2\,\mathrm{mean}((x - \mathrm{mean})\, p)$ | the square; and deviations add up to 0, so mean(p) drops out |
# | rstd | $-\mathrm{rstd}^2\, \mathrm{mean}(\hat{x}\, p)$ | $(\mathrm{var} + \mathrm{eps})^{-1/2}$ has the derivative $-\frac{1}{2}\, \mathrm{rstd}^3$, and $(x - \mathrm{mean})\, \mathrm{rstd}$ is $\hat{x}$ |
# | xhat | $\big(p - \mathrm{mean}(p) - \hat{x}\, \mathrm{mean}(\hat{x}\, p)\big)\, \mathrm{rstd}$ | the product rule, with the lines above |
#
# The last line says by how much xhat moves if x is pushed by p. It has your three parts, for any eps.
#
# Now go back: the loss rises by `wdy[i]` for each unit that `xhat[i]` moves. How much does it rise
# for each unit of `x[i]`? Leave rstd out. For a push p the loss rises by $\sum_i
# \mathit{wdy}_i\, (p_i - \mathrm{mean}(p) - \hat{x}_i\, \mathrm{mean}(\hat{x}\, p))$. Write this
# sum as $\sum_i p_i \cdot (\ldots)$: `dx` is what stands in the brackets. (`mean(p)`
# does not depend on i. So the sum of `wdy[i] * mean(p)` is the sum of wdy times `mean(p)`, which is
# `mean(wdy)` times the sum of p.)


# %% tags=["step"]
def arrive(p, xhat):  # the last line of the table, without rstd
    return p - p.mean() - xhat * (xhat * p).mean()


def what_x_gets(wdy, xhat):
    # BEGIN SOLUTION
    #: For every push p, sum(p * what you return) has to be sum(wdy * arrive(p, xhat)).
    #| return wdy
    return wdy - wdy.mean() - xhat * (xhat * wdy).mean()
    # END SOLUTION


step("10-swap")

# %% tags=["check"]
from functools import partial


def move(function, p, h=1e-5):
    """By how much ``function`` of x moves for a push p of x."""
    return (function(x + h * p) - function(x - h * p)) / (2 * h)


def forward_with(eps, row):
    return reference.layer_norm([row], eps=eps).y[0]


def rstd_with(eps, row):
    return (row.var() + eps) ** -0.5


def carry(p, xhat, rstd):
    """The last line of the table."""
    return (p - p.mean() - xhat * (xhat * p).mean()) * rstd


rng = np.random.default_rng(1)
for eps in (0.0, 1e-5, 0.3):
    p, wdy = rng.standard_normal(3), rng.standard_normal(3)
    xhat, rstd = forward_with(eps, x), rstd_with(eps, x)
    assert np.isclose(move(np.var, p), 2 * ((x - x.mean()) * p).mean())
    assert np.isclose(move(partial(rstd_with, eps), p), -(rstd**2) * (xhat * p).mean())
    assert np.allclose(move(partial(forward_with, eps), p), carry(p, xhat, rstd), atol=1e-8)
    assert np.allclose(nudge(partial(forward_with, eps), wdy, x), carry(wdy, xhat, rstd), atol=1e-8)
    assert np.isclose((wdy * carry(p, xhat, rstd)).sum(), (p * carry(wdy, xhat, rstd)).sum())
    assert np.allclose(reference.layer_norm_vjp([wdy], [x], eps=eps).dx[0], carry(wdy, xhat, rstd))

# %% [markdown]
# ## What do w and b get?
#
# w and b are easier. Ask one question: **in which elements of y does `w[i]` stand?** Mean and variance
# run along a row. w and b are shared by all rows.
#
# Here are two rows of four columns. How much does the loss rise for a unit of `w[0]`, of `w[1]`,
# and so on? You can do it in your head: `w[1]` moves `y[0, 1]` and `y[1, 1]`, and nothing else.

# %% tags=["step"]
xhat = [[1, -1, 1, -1], [1, 1, -1, -1]]
dy = [[1, 2, 0, 3], [2, 1, 1, 0]]
# BEGIN SOLUTION
#: Four numbers, one for each w.
#| dw = [0, 0, 0, 0]
dw = [3, -1, -1, -3]
# END SOLUTION

step("10-weights")

# %% tags=["check"]
import torch

from course_lib.lessons.steps import find as find_step

xhat_2, dy_2 = (
    np.array([[1.0, -1, 1, -1], [1, 1, -1, -1]]),
    np.array([[1.0, 2, 0, 3], [2, 1, 1, 0]]),
)
x_t, w_t, b_t = (torch.tensor(values, requires_grad=True) for values in (xhat_2, np.ones(4), np.zeros(4)))
torch.nn.functional.layer_norm(x_t, (4,), w_t, b_t, eps=0.0).backward(torch.tensor(dy_2))
assert w_t.grad.tolist() == [3, -1, -1, -3] and b_t.grad.tolist() == [3, 3, 1, 3]
assert find_step("10-weights").accepts([3, -1, -1, -3]) == ""
assert "db" in find_step("10-weights").accepts(b_t.grad.tolist())

# %% [markdown]
# For `b` ask the same: which elements of y move for a unit of `b[i]`, and by how much?
#
# ## Your turn: LayerNorm
#
# Put the parts together, in PyTorch operations, so that nothing but the formula is in your way.
# Before you type, say of each sum whether it runs along the rows or down the columns.

# %%
from course_lib import exercise

exercise("10a")

# %% [markdown]
# ## What is left of it for RMSNorm?
#
# RMSNorm divides by $\sqrt{\mathrm{mean}(x^2) + \mathrm{eps}}$ and subtracts no mean. Its xhat is
# `x * rstd`. Which pushes does y not feel now? Stretch the row, and the root mean square stretches
# with it: y does not feel a push along xhat. Add the same number to every element, and nothing takes
# it out again. So one of your two parts has to go from the formula, and the rows of `dx` need not
# add up to 0.


# %% tags=["check"]
def rms_norm(row):
    return reference.rms_norm([row], eps=0.0).y[0]


assert np.allclose(rms_norm(x + 1e-3 * rms_norm(x)), rms_norm(x)) and abs(rms_norm(x + 1) - rms_norm(x)).max() > 0.1
dy_3 = rng.standard_normal(3)
rms_dx = nudge(rms_norm, dy_3, x)
assert abs((rms_dx * rms_norm(x)).sum()) < 1e-8 and abs(rms_dx.sum()) > 0.1
with_c2 = reference.rms_norm_vjp([dy_3], [x], eps=0.0).dx[0] - dy_3.mean() * reference.rms_norm([x], eps=0.0).rstd[0]
assert np.allclose(reference.rms_norm_vjp([dy_3], [x], eps=0.0).dx[0], rms_dx, atol=1e-8)
assert abs(with_c2 - rms_dx).max() > 0.05

# %% [markdown]
# Go back to the picture, choose *RMSNorm*, and see where `left` can go now. Then copy your 10a and
# remove what RMSNorm does not need. The file of 10b shows you no formula.

# %%
exercise("10b")

# %% [markdown]
# ## Would your test find a wrong one?
#
# A set of derivation notes on LayerNorm gets `dx` right, and then prints for the weight
#
# $$\frac{\partial L}{\partial w_i} = \sum_a dy_a\, x_i$$
#
# It is wrong in two ways. Take only one of them: x stands where xhat should. You test with random
# rows of mean 0 and standard deviation 1, as most people do.

# %%
predict("10-hat")

# %% tags=["answer"]
noise, dy = np.random.default_rng(3).standard_normal((2, 64, 4096))
for name, rows in (("mean 0", noise), ("mean 3", 3 + noise)):
    right = reference.layer_norm_vjp(dy, rows).dw
    error = np.linalg.norm((dy * rows).sum(axis=0) - right) / np.linalg.norm(right)
    print(f"{name}: dw is off by {error:.1%}")

# %% tags=["check"]
off = {}
noise, dy = np.random.default_rng(3).standard_normal((2, 64, 4096))
for mean, std in ((0, 1), (3, 1), (0, 5)):
    right = reference.layer_norm_vjp(dy, mean + std * noise).dw
    off[mean, std] = np.linalg.norm((dy * (mean + std * noise)).sum(axis=0) - right) / np.linalg.norm(right)
assert find("10-hat").is_expected(100 * off[0, 1]) and 1.5 < 100 * off[0, 1] < 2.5
assert 2.8 < off[3, 1] < 3.3 and off[0, 5] > 3

# %% [markdown]
# **Test data must not be normalised already.** The rows that your exercises are graded on have
# means away from 0. Now find everything that is wrong with the published line.

# %%
exercise("10c")

# %%
from course_lib.lessons import offer_hunt

offer_hunt("09a")

# %% [markdown]
# ## Without rails
#
# In a model the input of a norm is a sum, and the sum is used behind the norm as well. So its
# gradient comes back by two paths. This task asks for the backward pass of both, with a contract and
# nothing else. It is optional, and it needs no kernel.

# %%
exercise("10d")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("10")

# %% [markdown]
# **Where to read on**
#
# - [Layer Normalization](https://arxiv.org/abs/1607.06450) (Ba, Kiros and Hinton 2016) and [Root
#   Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467) (Zhang and Sennrich 2019).
#   The second has a table of what each norm is invariant to.
# - [The layernorm page of
#   llm.c](https://github.com/karpathy/llm.c/blob/master/doc/layernorm/layernorm.md): the same
#   gradient in PyTorch and in C, and what is better saved or computed again.
# - The dives below: the table after all, a proof by a computer, two tests of a gradient, eps, and
#   what the forward pass should save.
#
# **Next:** lesson 11, where two means and one line become a kernel, and somebody's kernel has lost
# a term.

# %% [markdown] tags=["dive"]
# ## Dive: the three paths, index by index
#
# Most derivations compute the whole Jacobian. `x[i]` reaches `xhat[a]` on three paths: by itself if a =
# i, through the mean, and through $\sigma = \sqrt{\mathrm{var} + \mathrm{eps}} = 1 /
# \mathrm{rstd}$. Write $\delta_{ai}$ for "1 if a = i, else 0". Then
#
# $$\frac{\partial \sigma}{\partial x_i} = \frac{1}{2\sigma}\,\frac{\partial\,\mathrm{var}}{\partial x_i}
# = \frac{x_i - \mathrm{mean}}{N\sigma} = \frac{\hat{x}_i}{N} \qquad\qquad
# \frac{\partial \hat{x}_a}{\partial x_i} = \frac{1}{\sigma}\left(\delta_{ai} - \frac{1}{N} - \frac{\hat{x}_a \hat{x}_i}{N}\right)$$
#
# Here are the three terms as matrices, for the row `2 -1 3 .5`.

# %%
from course_lib.lessons.lesson10 import figures

four = np.array([2, -1, 3, 0.5])
figures.show_three_paths(four)

# %% tags=["check"]
h = 1e-6
parts = figures.split_jacobian(four)
J = sum(parts)


def xhat_of(row):
    return forward_with(1e-5, row)


def sigma(row):
    return 1 / rstd_with(1e-5, row)


measured = np.column_stack([(xhat_of(four + h * e) - xhat_of(four - h * e)) / (2 * h) for e in np.eye(4)])
assert np.allclose(J, measured, atol=1e-8)
assert np.allclose(J.sum(axis=1), 0, atol=1e-12) and np.allclose(J.sum(axis=0), 0, atol=1e-12)
worked = np.array([2, -1, 3, 0.5, -0.5, 1.5, -2, 1])
moved = np.array([(sigma(worked + h * e) - sigma(worked - h * e)) / (2 * h) for e in np.eye(8)])
assert np.allclose(moved, xhat_of(worked) / 8, atol=1e-8)

# %% [markdown]
# The rows of the sum add up to 0: a push along 1 does not move xhat. The columns add up to 0, too:
# xhat always has mean 0. Put the Jacobian into $dx_i = \sum_a \mathit{wdy}_a\, \partial \hat{x}_a /
# \partial x_i$. The delta picks one term, and the two others are means over the row:
#
# $$dx_i = \mathrm{rstd}\,\Big(\mathit{wdy}_i - \underbrace{\frac{1}{N}\sum_a \mathit{wdy}_a}_{c_2} - \hat{x}_i\,
# \underbrace{\frac{1}{N}\sum_a \hat{x}_a\, \mathit{wdy}_a}_{c_1}\Big)$$

# %% [markdown] tags=["dive"]
# ## Dive: a proof by sympy
#
# Numbers that agree are no proof. sympy computes with letters: x, w, dy and eps stay symbols. It
# differentiates the loss, subtracts the formula, and simplifies. If 0 is left, the formula holds
# for every row of three numbers and every eps.

# %%
import sympy

N = 3
x, w, dy = (sympy.symbols(f"{name}:{N}", real=True) for name in ("x", "w", "dy"))
mean, eps = sum(x) / N, sympy.Symbol("eps", positive=True)
rstd = 1 / sympy.sqrt(sum((value - mean) ** 2 for value in x) / N + eps)
xhat = [(value - mean) * rstd for value in x]
loss = sum(dy[a] * w[a] * xhat[a] for a in range(N))  # b only adds a constant

wdy = [w[a] * dy[a] for a in range(N)]
c1, c2 = sum(xhat[a] * wdy[a] for a in range(N)) / N, sum(wdy) / N
for name, taken in (("dx", c2), ("dx without c2", 0)):
    rest = [sympy.diff(loss, x[i]) - (wdy[i] - xhat[i] * c1 - taken) * rstd for i in range(N)]
    print(f"derivative minus {name} is 0:", {sympy.simplify(each) == 0 for each in rest} == {True})

# %% tags=["check"]
from course_lib.lessons.gradients import find_remainders

for N in (3, 4):
    assert find_remainders(N) == {0} and find_remainders(N, "rms_norm") == {0}
left = find_remainders(3, with_c2=False)
assert 0 not in left and len(left) == 1
by_name = {symbol.name: symbol for symbol in next(iter(left)).free_symbols}
middle = (by_name["x0"] + by_name["x1"] + by_name["x2"]) / 3
root_3 = sympy.sqrt(sum((by_name[f"x{i}"] - middle) ** 2 for i in range(3)) / 3 + by_name["eps"])
c2_3 = sum(by_name[f"w{i}"] * by_name[f"dy{i}"] for i in range(3)) / 3
assert sympy.simplify(next(iter(left)) + c2_3 / root_3) == 0

# %% [markdown]
# Without c2 it leaves `-c2 * rstd`: the very term that is missing. Nothing in the derivation uses
# the value of N, so three columns check your algebra, and the derivation is the proof for the
# others.

# %% [markdown] tags=["dive"]
# ## Dive: gradcheck, and a test that is none
#
# A kernel is no formula, so sympy never sees it. It is tested with numbers.
# [gradcheck](https://docs.pytorch.org/docs/stable/notes/gradcheck.html) of PyTorch nudges every
# input and compares the result with what your backward returns. Below it gets a LayerNorm whose
# `dx` and `db` are right, with three formulas for `dw`.

# %%
from course_lib.lessons.gradients import run_gradcheck

for name, dw_of in {
    "sum over a of dy_a x_i": lambda dy, x, xhat: (dy.sum(1, keepdim=True) * x).sum(0),
    "sum over rows of dy * x": lambda dy, x, xhat: (dy * x).sum(0),
    "sum over rows of dy * xhat": lambda dy, x, xhat: (dy * xhat).sum(0),
}.items():
    found = run_gradcheck(dw_of)
    print(f"{name}: {found.splitlines()[0] if found else 'passes'}")


# %% tags=["check"]
def right_dw(dy, x, xhat):
    return (dy * xhat).sum(0)


zeros = []
for dw_of in (
    lambda dy, x, xhat: (dy.sum(1, keepdim=True) * x).sum(0),
    lambda dy, x, xhat: (dy * x).sum(0),
):
    found = run_gradcheck(dw_of)
    assert "with respect to input 1" in found
    zeros.append([table.count("0.0000") for table in found.split("analytical:")])
assert zeros == [[120, 0], [120, 120]]
assert run_gradcheck(right_dw) == "" and run_gradcheck(right_dw, torch.float32) != ""

# %% [markdown]
# Input 1 is w, counted from 0. Give it float64: in fp32 the rounding error is larger than the
# effect of a nudge of 1e-6, and even the right backward fails.
#
# > **ERRATUM** (derivation notes in index notation; the solution of 10c). The printed `dw` is wrong twice. `w[i]` stands in one element of a row, so there is no
# > sum over a; and it is multiplied by **xhat**, not by x. The gradient is $\sum_r dy_{ri}\,\hat{x}_{ri}$, and the sums of `dw` and `db` run
# > over the rows.
#
# With `y.sum()` and w = 1 the true `dx` is 0. Here is every mistake in `dx` with two tests, and the
# largest error that each of them sees.

# %%
from course_lib.lessons.gradients import MISTAKES, measure_mistake

print(f"{'':20} y.sum(), w = 1   random dy and w")
for name in MISTAKES:
    sum_test, random_test = (measure_mistake(name, ones=ones) for ones in (True, False))
    print(f"{name:20} {sum_test:15.0e} {random_test:17.0e}")

# %% tags=["check"]
assert [name for name in MISTAKES if measure_mistake(name, ones=True) > 1e-9] == ["c2 forgotten"]
assert [name for name in MISTAKES if measure_mistake(name, ones=False) < 1e-9] == ["right"]

# %% [markdown]
# **Test a gradient with a random `dy`, and with weights away from 1.**

# %% [markdown] tags=["dive"]
# ## Dive: what eps lets through
#
# "The squares of xhat add up to N" is true at eps = 0. With eps they add up to a little less:
#
# $$\mathrm{mean}(\hat{x}^2) = \frac{\mathrm{var}}{\mathrm{var} + \mathrm{eps}} = 1 - \mathrm{eps} \cdot \mathrm{rstd}^2$$
#
# So c1 does not take out everything. The share $\mathrm{eps} \cdot \mathrm{rstd}^2$ of a push
# along xhat comes through. That is no flaw: with eps the forward pass is not blind to the scale. A
# row with standard deviation 0.0001 comes out at 0.03, not at 1, and stretching it changes y.

# %%
figures.show_let_through(eps=1e-5)

# %% tags=["check"]
stds, shares = figures.measure_let_through(eps=1e-5)
assert np.allclose(shares, 1e-5 / (stds**2 + 1e-5))
unit_row = np.array([1.0, -1, 1, -1, 1, -1, 1, -1])  # mean 0, standard deviation 1
other = np.array([1.0, 1, -1, -1, 1, 1, -1, -1])  # at a right angle to 1 and to the row
for std, share in ((1.0, 1e-5), (1e-5**0.5, 0.5), (1e-4, 0.999)):
    xhat_8 = std * unit_row / np.sqrt(std**2 + 1e-5)
    P = np.eye(8) - 1 / 8 - np.outer(xhat_8, xhat_8) / 8
    assert np.allclose(P @ unit_row, 1e-5 / (std**2 + 1e-5) * unit_row) and np.isclose(
        (P @ unit_row)[0], share, rtol=1e-3
    )
    assert np.allclose(P @ other, other) and abs(P @ np.ones(8)).max() < 1e-15
    assert not np.allclose(P @ P, P, atol=1e-7)
assert round(xhat_8.std(), 2) == 0.03
exact = np.eye(8) - 1 / 8 - np.outer(unit_row, unit_row) / 8  # eps = 0
assert np.allclose(exact @ exact, exact, atol=1e-15)

# %% [markdown]
# A matrix that takes a part out, and changes nothing when it is applied again, is a *projector*. At
# eps = 0 the VJP is one, times rstd. In the picture above choose a larger eps: the cross shows
# where a second time would lead.
#
# This has a consequence. Take a step `x - 0.1 * dx` at eps = 0. The mean of the row does not
# change. Its variance grows by `0.1**2 * mean(dx**2)`: `dx` is at a right angle to xhat, so a step
# along it makes the row longer (Pythagoras).

# %% tags=["check"]
rng = np.random.default_rng(2)
rows, dy_rows = 3 + 2 * rng.standard_normal((8, 64)), rng.standard_normal((8, 64))
layer = reference.layer_norm_vjp(dy_rows, rows, eps=0.0).dx
rms = reference.rms_norm_vjp(dy_rows, rows, eps=0.0).dx
for step_size in (0.1, 0.01):
    after = rows - step_size * layer
    grown = after.var(axis=1) - rows.var(axis=1)
    assert abs(after.mean(axis=1) - rows.mean(axis=1)).max() < 1e-13 and (grown > 0).all()
    assert np.allclose(grown, step_size**2 * (layer**2).mean(axis=1), rtol=1e-6, atol=1e-12)
    assert abs((step_size * rms).mean(axis=1)).max() > 1e-2 * step_size

# %% [markdown] tags=["dive"]
# ## Dive: saved or recomputed?
#
# The backward pass needs xhat and rstd. Should the forward pass save xhat, or should the backward
# pass compute it again from x, mean and rstd? Saving it moves 2 M N more elements: one write, one
# read. Recomputing it needs the M N elements of x, and two operations for each. (x costs nothing
# extra where the layer before keeps it anyway, as it does with a residual sum.) Change the numbers to
# those of your GPU.

# %%
M, N, itemsize = 4096, 4096, 2  # fp16
bandwidth, flops = 3000e9, 60e12  # bytes/s and operations/s, round numbers
statistics = 2 * 2 * 4 * M  # mean and rstd in fp32, written and read
print(f"xhat saved: {1e6 * 2 * itemsize * M * N / bandwidth:.1f} us of bytes")
print(f"x, mean and rstd: {1e6 * (itemsize * M * N + statistics) / bandwidth:.1f} us of bytes,")
print(f"    {1e6 * 2 * M * N / flops:.1f} us of operations, which run while bytes are on their way")

# %% tags=["check"]
if (M, N, itemsize, bandwidth, flops) == (4096, 4096, 2, 3000e9, 60e12):
    saved = 2 * itemsize * M * N - (itemsize * M * N + statistics)
    assert 18 < (saved / bandwidth) / (2 * M * N / flops) < 22
rows_100 = 100 + rng.uniform(-1, 1, (64, 1)) + rng.standard_normal((64, 256))
exact_100 = reference.layer_norm(rows_100)
worst = {}
for dtype in (torch.float32, torch.bfloat16):
    kept = (reference.float64(torch.tensor(values).to(dtype)) for values in (exact_100.mean, exact_100.rstd))
    mean_kept, rstd_kept = (values[:, None] for values in kept)
    worst[dtype] = abs((rows_100 - mean_kept) * rstd_kept - exact_100.y).max()
assert [
    part.shape for part in torch.native_layer_norm(torch.ones(2, 3, device=course_lib.DEVICE), (3,), None, None, 1e-5)
] == [
    (2, 3),
    (2, 1),
    (2, 1),
]
assert (
    worst[torch.float32] < 1e-5
    and 0.15 < worst[torch.bfloat16] < 0.35
    and torch.finfo(torch.bfloat16).eps * 64 / 2 == 0.25
)

# %% [markdown]
# PyTorch computes xhat again: `torch.native_layer_norm` returns y, mean and rstd. Save the two
# statistics in fp32: in bf16, at mean/std = 100, all xhats of a row are shifted by the same amount,
# up to 0.25. Lesson 11 measures what that does to `dx`.
