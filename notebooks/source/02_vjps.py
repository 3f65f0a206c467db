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
# # 02 VJPs: the backward pass, derived
#
# Training asks a norm a question that its forward pass does not answer. Somebody behind it wants `y` to move a little. How should `x`, `w`
# and `b` move? The answer is five lines of code. In this lesson you earn each of them, prove them for every row there is, and then find out
# that two of the five are a picture you can turn in your hands.
#
# **You will be able to**
#
# - say what a vector-Jacobian product is, and why nobody builds the Jacobian;
# - derive `dx`, `dw` and `db` of LayerNorm and RMSNorm, index by index;
# - prove a gradient with sympy, and catch a wrong one with finite differences and gradcheck;
# - say which change of a row a norm's gradient can never ask for, and what eps has to do with it;
# - decide what the forward pass should save, by counting bytes and flops.
#
# **You need** lesson 01 (what LayerNorm and RMSNorm compute, the worked example, `reference`), and the derivative of a sum, a quotient and
# a root. Nothing about autograd.
#
# **Time** about 105 minutes: 60 to read and run, 20 for exercise 02a, 10 for 02b, 15 for 02c.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch

from course_lib import exercise
from course_lib.lessons import picture, projection
from course_lib.lessons.figures import lesson02
from course_lib.norms import reference

# %% [markdown]
# ## What does a layer get, and what does it owe?
#
# A network ends in one number, the loss L. A norm stands somewhere in the middle. On the way back it is handed `dy`, as large as `y`:
#
# $$dy_a = \frac{\partial L}{\partial y_a}$$
#
# If `dy[1]` is -2, then raising `y[1]` by 0.001 lowers the loss by 0.002. The layer owes the same for what it was given: `dx`, `dw` and
# `db`. In code `dx` always means $\partial L / \partial x$.
#
# Take one row of three numbers. Nudge `x[0]` a little. How many of the three elements of `y` move? *(Predict, then run.)*

# %%
row, w, b = np.array([2.0, -1.0, 3.5]), np.array([1.5, -0.5, 2.0]), np.array([0.1, 0.2, 0.3])
dy = np.array([1.0, -2.0, 0.5])
eps, h = 1e-5, 1e-6


def forward(row):
    return reference.layer_norm(row[None], w, b, eps).y[0]


J = np.empty((3, 3))
for i in range(3):
    nudge = np.zeros(3)
    nudge[i] = h
    J[:, i] = (forward(row + nudge) - forward(row - nudge)) / (2 * h)
print(f"x[0] moves y by {J[:, 0].round(4)} a unit\nthe whole table:\n{J.round(4)}")
assert (abs(J[:, 0]) > 0.05).all()

# %% [markdown]
# All three: `x[0]` stands in the mean and in `rstd`, and they stand in every element. The table is the **Jacobian**,
# $J_{ai} = \partial y_a / \partial x_i$. Column i says what `x[i]` does to all of `y`.
#
# How does the loss feel `x[i]`? Through every element of `y`. A unit of `x[i]` moves `y[a]` by $J_{ai}$, and a unit of `y[a]` moves the
# loss by `dy[a]`. All these contributions add up. That is the chain rule:
#
# $$dx_i = \sum_a dy_a\, J_{ai}$$
#
# A vector times a matrix: a **vector-Jacobian product**, VJP for short. Every backward pass is one. To test it you need a loss. Near this
# row any loss behaves like $\sum_a dy_a\, y_a$ plus a constant, so take that one.

# %%
dx = dy @ J

nudged = [((dy * forward(row + h * e)).sum() - (dy * forward(row - h * e)).sum()) / (2 * h) for e in np.eye(3)]
x_t = torch.tensor(row, requires_grad=True)
loss = (torch.tensor(dy) * torch.nn.functional.layer_norm(x_t, (3,), torch.tensor(w), torch.tensor(b), eps)).sum()
loss.backward()
print("dy J      ", dx.round(6), "\nnudging L ", np.round(nudged, 6), "\nautograd  ", x_t.grad.numpy().round(6))
assert np.allclose(dx, nudged, atol=1e-7) and np.allclose(dx, x_t.grad, atol=1e-7)

# %% [markdown]
# The same three numbers on three ways. Now take a real size: M = 4096 rows of N = 8192 columns in fp32. How many bytes has the Jacobian of
# *one row*, and how many have the Jacobians of all rows? *(Predict, then run.)*

# %%
M, N = 4096, 8192
one, every = 4 * N * N, 4 * N * N * M
print(f"x: {4 * M * N / 1e6:.0f} MB. Jacobian of one row: {one / 1e6:.0f} MB. Of all rows: {every / 1e12:.1f} TB.")
assert one == 2 * 4 * M * N and round(every / 1e12, 1) == 1.1

# %% [markdown]
# One row's Jacobian is twice as large as all of `x`. Nobody builds it. What is wanted is `dy J` without `J`: a formula that reads each row
# a few times and is done. That formula is what the rest of the derivation is for.
#
# ## w and b first
#
# They are easier, because of one question: **in how many elements of `y` does `w[i]` stand?** Take the matrix with M rows, and
#
# $$y_{ri} = \hat{x}_{ri}\, w_i + b_i$$
#
# `w[i]` stands in column i, once in each row: M elements, and no others. Its derivative there is $\hat{x}_{ri}$, and that of `b[i]` is 1.
# Add up what the loss feels:
#
# $$dw_i = \sum_r dy_{ri}\, \hat{x}_{ri} \qquad\qquad db_i = \sum_r dy_{ri}$$
#
# These sums run down the columns. Mean and variance ran along the rows. Keep the two directions apart; lesson 09 is about the trouble they
# make for a kernel.
#
# Here is the worked example, 3 rows and 8 columns. If `dy` is all ones, what is `db`? *(Predict, then run.)*

# %%
x = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)
w, b = np.linspace(0.5, 1.5, 8), np.linspace(-1, 1, 8)
mean = x.mean(axis=1, keepdims=True)
rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
xhat = (x - mean) * rstd


def autograd(dy, x, w, norm=torch.nn.functional.layer_norm):
    """What PyTorch's own backward gives, float64: dx, dw and, for LayerNorm, db."""
    wanted = (x, w, b) if norm is torch.nn.functional.layer_norm else (x, w)
    leaves = [torch.tensor(a, requires_grad=True) for a in wanted]
    norm(leaves[0], (x.shape[1],), *leaves[1:], eps=eps).backward(torch.tensor(dy))
    return [leaf.grad.numpy() for leaf in leaves]


for dy in (np.ones_like(x), np.random.default_rng(0).standard_normal(x.shape)):
    dw, db = (dy * xhat).sum(axis=0), dy.sum(axis=0)
    _, dw_torch, db_torch = autograd(dy, x, w)
    print("db", db.round(2), "\ndw", dw.round(2))
    assert np.allclose(dw, dw_torch, atol=1e-12) and np.allclose(db, db_torch, atol=1e-12)
assert (autograd(np.ones_like(x), x, w)[2] == 3).all()

# %% [markdown]
# 3 everywhere: one for each row. Two of the three gradients are done.
#
# ## Three paths from x to xhat
#
# `x[i]` reaches `xhat[a]` by itself if a = i, through the mean, and through sigma. Here **sigma** is the root under which eps stands,
# $\sigma = \sqrt{\mathrm{var} + \mathrm{eps}}$, so `rstd` is $1/\sigma$. Take the paths one by one, from the inside out.
#
# **The mean.** Each of N elements has an Nth of a say:
#
# $$\frac{\partial\, \mathrm{mean}}{\partial x_i} = \frac{1}{N}$$
#
# **A deviation.** $x_j - \mathrm{mean}$ feels `x[i]` twice: by itself if j = i, and through the mean. Write $\delta_{ji}$ for "1 if j = i,
# else 0":
#
# $$\frac{\partial (x_j - \mathrm{mean})}{\partial x_i} = \delta_{ji} - \frac{1}{N}$$
#
# **The variance** is the mean of the squared deviations. Outer derivative times inner derivative, summed over j:
#
# $$\frac{\partial\, \mathrm{var}}{\partial x_i} = \frac{1}{N}\sum_j 2\,(x_j - \mathrm{mean})\left(\delta_{ji} - \frac{1}{N}\right)
# = \frac{2}{N}(x_i - \mathrm{mean}) - \frac{2}{N^2}\sum_j (x_j - \mathrm{mean})$$
#
# The delta has picked one term out of the first sum. And the second sum? It adds up the deviations from the mean. They cancel: it is 0. So
# moving the mean does nothing to the variance, to first order.
#
# **Sigma** is the root of that plus a constant:
#
# $$\frac{\partial \sigma}{\partial x_i} = \frac{1}{2\sigma}\,\frac{\partial\, \mathrm{var}}{\partial x_i}
# = \frac{x_i - \mathrm{mean}}{N\sigma} = \frac{\hat{x}_i}{N}$$
#
# Row 0 is `2 -1 3 .5 -.5 1.5 -2 1` with mean 0.5625. Raise one element by a hair. Which one changes sigma most, and which one hardly at
# all? *(Predict, then run.)*


# %%
def sigma(row):
    return np.sqrt(row.var() + eps)


moved = np.array([(sigma(x[0] + h * e) - sigma(x[0] - h * e)) / (2 * h) for e in np.eye(8)])
for value, change, formula in zip(x[0], moved, xhat[0] / 8, strict=True):
    print(f"x = {value:4}: sigma moves by {change:7.4f} a unit, xhat / N = {formula:7.4f}")
assert np.allclose(moved, xhat[0] / 8, atol=1e-8)
assert x[0, abs(moved).argmax()] == -2 and x[0, abs(moved).argmin()] == 0.5 and moved[6] < 0

# %% [markdown]
# The -2, not the 3: it lies further from the mean, and raising it *shrinks* the spread. The 0.5 sits next to the mean and does nothing.
#
# **xhat** is a quotient, $(x_a - \mathrm{mean}) / \sigma$, and both parts feel `x[i]`:
#
# $$\frac{\partial \hat{x}_a}{\partial x_i} = \frac{\delta_{ai} - \frac{1}{N}}{\sigma} - \frac{x_a - \mathrm{mean}}{\sigma^2}\,
# \frac{\partial \sigma}{\partial x_i}
# = \frac{1}{\sigma}\left(\delta_{ai} - \frac{1}{N} - \frac{\hat{x}_a \hat{x}_i}{N}\right)$$
#
# Three terms, three paths. Here they are as matrices for the row `2 -1 3 .5`.

# %%
four = x[0, :4]
rstd_4 = 1 / sigma(four)
xhat_4 = (four - four.mean()) * rstd_4
direct, through_mean, through_sigma = (
    rstd_4 * part for part in (np.eye(4), -np.ones((4, 4)) / 4, -np.outer(xhat_4, xhat_4) / 4)
)
picture(
    lesson02.three_paths(direct, through_mean, through_sigma),
    alt="Four matrices of 4 x 4 numbers. The first has the same number on its diagonal and 0 elsewhere, the second the same negative number "
    "everywhere, the third the products of two xhats. Their sum, the Jacobian, has no zero entry.",
    caption="rstd times: the identity; minus 1/N everywhere; minus xhat[a] xhat[i] / N; and their sum. Negative numbers are hatched.",
)

# %% [markdown]
# Look at the last matrix. Without working it out: what do the four numbers of each *row* add up to, and what those of each *column*?
# Think of what it would mean if it were something else. *(Predict, then run.)*

# %%
J = direct + through_mean + through_sigma


def xhat_of(row):
    return (row - row.mean()) / sigma(row)


measured = np.column_stack([(xhat_of(four + h * e) - xhat_of(four - h * e)) / (2 * h) for e in np.eye(4)])
print("rows add up to   ", J.sum(axis=1).round(12) + 0, "\ncolumns add up to", J.sum(axis=0).round(12) + 0)
assert np.allclose(J, measured, atol=1e-8)
assert np.allclose(J.sum(axis=1), 0, atol=1e-12) and np.allclose(J.sum(axis=0), 0, atol=1e-12)

# %% [markdown]
# All 0. A row of the matrix adds up to how `xhat[a]` moves if *all* of x rises by the same amount: not at all. A column adds up to how the
# sum of xhat moves: not at all, it is always 0. Remember these zeros. They come back.
#
# ## Two means instead of a matrix
#
# One factor is missing: $y_a = \hat{x}_a w_a + b_a$, so what the loss feels at `xhat[a]` is `w[a] * dy[a]`. The course calls it **wdy**. Now
# put the Jacobian into the chain rule, and watch the matrix disappear:
#
# $$dx_i = \sum_a \mathit{wdy}_a\, \frac{1}{\sigma}\left(\delta_{ai} - \frac{1}{N} - \frac{\hat{x}_a \hat{x}_i}{N}\right)
# = \mathrm{rstd}\,\Big(\mathit{wdy}_i - \underbrace{\frac{1}{N}\sum_a \mathit{wdy}_a}_{c_2} - \hat{x}_i\,
# \underbrace{\frac{1}{N}\sum_a \hat{x}_a\, \mathit{wdy}_a}_{c_1}\Big)$$
#
# The delta picks one term. The two other terms are **means over the row**, the same for every i:
#
# $$c_1 = \mathrm{mean}(\hat{x} \cdot \mathit{wdy}) \qquad c_2 = \mathrm{mean}(\mathit{wdy}) \qquad
# dx = (\mathit{wdy} - \hat{x}\, c_1 - c_2)\, \mathrm{rstd}$$
#
# Two means and one line. For N = 8192 that replaces 67 million numbers a row by two. (The names c1 and c2 are those of the Triton tutorial.)

# %%
dy = np.random.default_rng(1).standard_normal(x.shape)
wdy = w * dy
c1 = (xhat * wdy).mean(axis=1, keepdims=True)
c2 = wdy.mean(axis=1, keepdims=True)
dx = (wdy - xhat * c1 - c2) * rstd

J = (np.eye(8) - 1 / 8 - np.outer(xhat[0], xhat[0]) / 8) * rstd[0]
dx_torch = autograd(dy, x, w)[0]
print("two means    ", dx[0].round(4))
print("whole matrix ", (wdy[0] @ J).round(4))
print("autograd     ", dx_torch[0].round(4))
assert np.allclose(dx, dx_torch, atol=1e-12) and np.allclose(dx[0], wdy[0] @ J, atol=1e-14)
assert np.allclose(dx, reference.layer_norm_vjp(dy, x, w, eps).dx, atol=1e-14) and 8192**2 == 67_108_864

# %% [markdown]
# `reference.layer_norm_vjp` is the course's specification of this, in float64. Your exercises are graded against it.
#
# ## Is it true for every row?
#
# You have checked a few rows, and finite differences agree to eight digits. A proof it is not. Somewhere a term could be missing that is
# tiny on these rows; eps is 1e-5, so a wrong eps would hardly show. sympy works with symbols instead of numbers: x, w, dy and eps stay
# letters. It differentiates the forward pass, subtracts your formula, and simplifies. If 0 is left, the formula holds for every row of that
# length.
#
# And if a formula is wrong, does it say so? Let it also try `dx` without c2. What do you expect to be left? *(Predict, then run.)*

# %% tags=["nbval-check-output"]
import sympy


def prove(N, kind="layer_norm", with_c2=True):
    """Derivative minus formula, simplified, for each claim. A set with only 0 in it is a proof."""
    x, w, dy = (sympy.symbols(f"{name}:{N}", real=True) for name in ("x", "w", "dy"))
    eps = sympy.Symbol("eps", positive=True)
    layer = kind == "layer_norm"
    mean = sum(x) / N if layer else sympy.Integer(0)
    sigma = sympy.sqrt(sum((value - mean) ** 2 for value in x) / N + eps)
    xhat = [(value - mean) / sigma for value in x]
    loss = sum(dy[a] * w[a] * xhat[a] for a in range(N))  # b only adds a constant

    wdy = [w[a] * dy[a] for a in range(N)]
    c1 = sum(xhat[a] * wdy[a] for a in range(N)) / N
    c2 = sum(wdy) / N if layer and with_c2 else 0
    delta = sympy.KroneckerDelta
    one = sympy.Rational(1, N) if layer else 0
    left = {
        "d sigma / d x": [sympy.diff(sigma, x[i]) - xhat[i] / N for i in range(N)],
        "d xhat / d x": [
            sympy.diff(xhat[a], x[i]) - (delta(a, i) - one - xhat[a] * xhat[i] / N) / sigma
            for a in range(N)
            for i in range(N)
        ],
        "dx": [sympy.diff(loss, x[i]) - (wdy[i] - xhat[i] * c1 - c2) / sigma for i in range(N)],
    }
    return {claim: {sympy.simplify(rest) for rest in rests} for claim, rests in left.items()}


for N in (3, 4):
    for claim, rest in prove(N).items():
        print(f"N = {N}: {claim:13} minus formula = {rest}")
        assert rest == {0}
wrong = prove(3, with_c2=False)["dx"]
print("without c2, left is 0:", wrong == {0})
assert 0 not in wrong and len(wrong) == 1

# %%
given = {symbol.name: symbol for symbol in next(iter(wrong)).free_symbols}
middle = (given["x0"] + given["x1"] + given["x2"]) / 3
root = sympy.sqrt(sum((given[f"x{i}"] - middle) ** 2 for i in range(3)) / 3 + given["eps"])
c2_symbol = sum(given[f"w{i}"] * given[f"dy{i}"] for i in range(3)) / 3
print("left without c2:", *wrong)
assert sympy.simplify(next(iter(wrong)) + c2_symbol / root) == 0

# %% [markdown]
# Zeros for N = 3 and N = 4, with eps kept as a letter. The wrong formula leaves `-c2 / sigma`, the very term that it lacks. Nothing in the
# derivation used the value of N, so two lengths are a check on your algebra, and the derivation is the proof for the others.
#
# ## Which test is no test?
#
# The quickest gradient test there is: `y.sum().backward()`, with w still at its initial 1. It sends a `dy` of ones. What is `dx` then, for
# any x? Work out c2 and c1 first. And which mistakes in `dx` does this test let through? *(Predict, then run.)*

# %%
formulas = {
    "right": lambda wdy, c1, c2: (wdy - xhat * c1 - c2) * rstd,
    "c1 forgotten": lambda wdy, c1, c2: (wdy - c2) * rstd,
    "c2 forgotten": lambda wdy, c1, c2: (wdy - xhat * c1) * rstd,
    "rstd forgotten": lambda wdy, c1, c2: wdy - xhat * c1 - c2,
    "c1 not divided by N": lambda wdy, c1, c2: (wdy - xhat * 8 * c1 - c2) * rstd,
    "always zero": lambda wdy, c1, c2: 0 * wdy,
}


def largest_error(formula, dy, w):
    wdy = w * dy
    got = formula(wdy, (xhat * wdy).mean(axis=1, keepdims=True), wdy.mean(axis=1, keepdims=True))
    return abs(got - reference.layer_norm_vjp(dy, x, w, eps).dx).max()


sum_test = {name: largest_error(formula, np.ones_like(x), np.ones(8)) for name, formula in formulas.items()}
real_test = {name: largest_error(formula, dy, w) for name, formula in formulas.items()}
print(f"{'':20} y.sum(), w = 1   random dy and w")
for name in formulas:
    print(f"{name:20} {sum_test[name]:15.0e} {real_test[name]:17.0e}")
assert [name for name, error in sum_test.items() if error > 1e-9] == ["c2 forgotten"]
assert [name for name, error in real_test.items() if error < 1e-9] == ["right"]

# %% [markdown]
# wdy is 1 everywhere, c2 is 1, c1 is the mean of xhat, 0. So `dx` is 0 for every x, and a function that returns zeros passes. So does every
# mistake but one. **Test a gradient with a random `dy` and weights away from 1.**
#
# ## RMSNorm: one path less
#
# RMSNorm subtracts no mean: $\hat{x} = x / \sigma$ with $\sigma = \sqrt{\mathrm{mean}(x^2) + \mathrm{eps}}$. Which of the three paths is
# gone? Which of c1 and c2 goes with it? And does $\partial\sigma / \partial x_i$ change? *(Predict, then read on.)*
#
# The path through the mean is gone, the two others stay:
#
# $$\frac{\partial \sigma}{\partial x_i} = \frac{1}{2\sigma}\,\frac{2 x_i}{N} = \frac{x_i}{N\sigma} = \frac{\hat{x}_i}{N} \qquad
# \frac{\partial \hat{x}_a}{\partial x_i} = \frac{1}{\sigma}\left(\delta_{ai} - \frac{\hat{x}_a \hat{x}_i}{N}\right) \qquad
# dx = (\mathit{wdy} - \hat{x}\, c_1)\, \mathrm{rstd}$$
#
# The derivative of sigma reads as before, with RMSNorm's own xhat. The -1/N is gone and c2 with it. `dw` is the same sum; there is no b, so
# there is no `db`.

# %%
for N in (3, 4):
    assert all(rest == {0} for rest in prove(N, "rms_norm").values())

ours = reference.rms_norm_vjp(dy, x, w, eps)
dx_torch, dw_torch = autograd(dy, x, w, torch.nn.functional.rms_norm)
with_c2 = ours.dx - (w * dy).mean(axis=1, keepdims=True) / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)
print("sympy: proved for N = 3 and 4")
print(
    f"dx against autograd: off by {abs(ours.dx - dx_torch).max():.0e}; with a c2: {abs(with_c2 - dx_torch).max():.2f}"
)
assert np.allclose(ours.dx, dx_torch, atol=1e-12) and np.allclose(ours.dw, dw_torch, atol=1e-12)
assert abs(with_c2 - dx_torch).max() > 0.1

# %% [markdown]
# ## What do c1 and c2 take away?
#
# So far they are algebra. Now look at them. A row of three numbers is a point in space, and `wdy` is an arrow: the way the loss wants xhat
# to go. (Uphill. A training step goes the other way.)
#
# One tool is enough. To take out of an arrow v its part along a direction u, with u of length 1, subtract $u\,(u \cdot v)$. What is left
# stands at a right angle to u.
#
# - Let u point along **1** = (1, 1, 1): it is $\mathbf{1}/\sqrt{N}$. The part of wdy along it is
#   $\mathbf{1}\,\frac{1}{N}\sum_a \mathit{wdy}_a = c_2 \mathbf{1}$.
# - Let u point along **xhat**. Its squares add up to N, if eps is 0. So u is $\hat{x}/\sqrt{N}$, and the part of wdy along it is
#   $\hat{x}\,\frac{1}{N}\sum_a \hat{x}_a \mathit{wdy}_a = c_1 \hat{x}$.
#
# These are the two terms. `dx / rstd` is wdy with its parts along 1 and along xhat taken out. As a matrix that acts on wdy:
#
# $$dx = \left(I - \frac{\mathbf{1}\mathbf{1}^{\mathsf T}}{N} - \frac{\hat{x}\hat{x}^{\mathsf T}}{N}\right) \mathit{wdy} \;\;\mathrm{rstd}$$
#
# Why these two directions? Move x along 1, adding the same to every element: y does not change. Move x along xhat, away from its mean or
# towards it: that scales the row, and y does not change. The forward pass is blind to both, so the loss cannot feel them, and a gradient
# that asked for them would be wrong.
#
# In space there are three directions, and LayerNorm takes two of them out. Turn wdy as you like: where can `left` go? Then turn x. Then
# choose a larger eps, and then RMSNorm. *(Predict before each.)*

# %%
projection()

# %%
from course_lib.lessons.projection.model import model, push
from course_lib.lessons.projection.model import row as row_of

x_3 = row_of(60, mean=0.5, std=1.0)
directions = set()
for turn in range(0, 360, 15):
    state = model("layer_norm", x_3, push(turn, mean=0.75), eps=0.0)
    assert abs(state.left.mean()) < 1e-12 and abs((state.left * state.xhat).mean()) < 1e-12
    if np.linalg.norm(state.left) > 0.01:
        unit = state.left / np.linalg.norm(state.left)
        directions.add(tuple((unit * np.sign(unit[0])).round(6).tolist()))
print("24 directions of wdy, directions of dx:", *directions)
assert len(directions) == 1

rms = [model("rms_norm", x_3, push(turn, mean=0.75), eps=0.0).left for turn in range(0, 360, 15)]
spanned = np.linalg.matrix_rank(np.array(rms), tol=1e-9)
print(f"RMSNorm's dx span {spanned} directions, with means up to {max(abs(left.mean()) for left in rms):.2f}")
assert spanned == 2 and max(abs(left.mean()) for left in rms) > 0.1

eight = np.random.default_rng(4).standard_normal((8, 8))  # eight wdy for one row of eight columns
same_row = np.repeat(x[:1], 8, axis=0)
assert np.linalg.matrix_rank(reference.layer_norm_vjp(eight, same_row, eps=0.0).dx, tol=1e-9) == 8 - 2
assert np.linalg.matrix_rank(reference.rms_norm_vjp(eight, same_row, eps=0.0).dx, tol=1e-9) == 8 - 1

# %% [markdown]
# One line. However wdy turns, `dx` only moves forwards and backwards on it. With N columns it is N - 2 directions out of N. RMSNorm takes
# out one and leaves N - 1, and those that it leaves may well change the mean.
#
# That answers a question you may not have asked: what is LayerNorm's `dx` for rows of *two* numbers? *(Predict, then run.)*

# %%
two, dy_two = np.array([[3.0, 7.0], [-2.0, 100.0]]), np.array([[1.0, -3.0], [2.0, 5.0]])
y_two, dx_two = reference.layer_norm(two, eps=0.0).y, reference.layer_norm_vjp(dy_two, two, eps=0.0).dx
print("y =", y_two.tolist(), "and dx =", (dx_two.round(12) + 0).tolist())
assert np.allclose(abs(y_two), 1) and abs(dx_two).max() < 1e-14
assert (reference.layer_norm_vjp([[5.0]], [[2.0]]).dx == 0).all()  # and one number leaves y = b

# %% [markdown]
# 0: nothing is left. Two numbers, moved to mean 0 and spread 1, are -1 and 1, whatever they were. There is nothing to learn from.
#
# ### What can the gradient never change?
#
# x is no parameter. Pretend for a moment that it is one, and take a training step, `x - 0.1 * dx`, on eight rows of 64 numbers. What happens
# to the mean of each row? What to its spread? And if the step is ten times smaller? *(Predict, then run.)*

# %%
rng = np.random.default_rng(2)
rows, dy_rows = 3 + 2 * rng.standard_normal((8, 64)), rng.standard_normal((8, 64))
layer = reference.layer_norm_vjp(dy_rows, rows, eps=0.0).dx
rms = reference.rms_norm_vjp(dy_rows, rows, eps=0.0).dx
grown = {}
for step in (0.1, 0.01):
    after = rows - step * layer
    grown[step] = after.var(axis=1) - rows.var(axis=1)
    moved = abs(after.mean(axis=1) - rows.mean(axis=1)).max()
    moved_rms = abs((step * rms).mean(axis=1)).max()
    print(f"step {step}: means move by {moved:.0e}, variances by {grown[step].max():.1e}")
    print(f"    RMSNorm's step moves the means by {moved_rms:.0e}")
    assert moved < 1e-13 and moved_rms > 1e-2 * step and (grown[step] > 0).all()
    assert np.allclose(grown[step], step**2 * (layer**2).mean(axis=1), rtol=1e-6, atol=1e-12)
assert np.allclose(grown[0.1], 100 * grown[0.01], rtol=1e-6)

# %% [markdown]
# The mean stays, but for rounding. The variance moves by `step**2 * mean(dx**2)`: a hundredth of it for a tenth of the step. To first order
# it stays, too. You walk along a tangent, and a tangent leaves the circle a little, always outwards: the spread creeps up, and never
# shrinks.
#
# **LayerNorm's gradient cannot change the mean of a row, and hardly its scale.** If a kernel's `dx` does not add up to 0 in each row, a term
# is missing, and you know which. RMSNorm's gradient moves the mean like anything else.
#
# ### Why only when eps is 0?
#
# Something that takes a part out, and changes nothing when you apply it again, is called a **projector**. Along 1 the matrix is one, always.
# Along xhat the argument said "its squares add up to N, if eps is 0". With eps they add up to a bit less:
#
# $$\frac{1}{N}\sum_a \hat{x}_a^2 = \frac{\mathrm{var}}{\mathrm{var} + \mathrm{eps}} = 1 - \mathrm{eps}\cdot\mathrm{rstd}^2$$
#
# So the c1 term takes out not quite everything. The share $\mathrm{eps}\cdot\mathrm{rstd}^2$ of a push along xhat comes through. Is that a
# flaw? eps is 1e-5. What comes through for a row with standard deviation 1, with $\sqrt{\mathrm{eps}}$ = 0.0032, and with 0.0001?
# *(Predict, then run.)*

# %% tags=["nbval-check-output"]
unit_row = np.array([1.0, -1, 1, -1, 1, -1, 1, -1])  # mean 0, standard deviation 1
other = np.array([1.0, 1, -1, -1, 1, 1, -1, -1])  # at a right angle to 1 and to the row
share = {}
for name, std in (("1", 1.0), ("sqrt(eps)", 1e-5**0.5), ("0.0001", 1e-4)):
    xhat_8 = std * unit_row / np.sqrt(std**2 + 1e-5)
    P = np.eye(8) - 1 / 8 - np.outer(xhat_8, xhat_8) / 8
    share[name] = (P @ unit_row)[0]
    along_one = abs((P @ np.ones(8))[0])
    print(f"std {name:9}: along 1 {along_one:.5f}, along xhat {share[name]:.5f}, elsewhere {(P @ other)[0]:.5f}")
    assert along_one < 1e-15
    assert np.allclose(P @ unit_row, share[name] * unit_row) and np.allclose(P @ other, other)
    assert np.isclose(share[name], 1e-5 / (std**2 + 1e-5))
    assert np.allclose(P @ P, P, atol=1e-4) == (std == 1.0) and not np.allclose(P @ P, P, atol=1e-7)
exact = np.eye(8) - 1 / 8 - np.outer(unit_row, unit_row) / 8  # eps = 0
assert np.allclose(exact @ exact, exact, atol=1e-15)
assert round(share["sqrt(eps)"], 9) == 0.5 and share["0.0001"] > 0.99 and round(xhat_8.std(), 2) == 0.03

# %%
stds = np.logspace(-5, 0, 31)
shares = [eps * reference.layer_norm(std * unit_row[None], eps=eps).rstd[0] ** 2 for std in stds]
assert np.allclose(shares, eps / (stds**2 + eps))
picture(
    lesson02.let_through(stds, shares, eps),
    alt="Share of a push along xhat that reaches dx, against the standard deviation of the row on a logarithmic axis, eps = 1e-5. The share is "
    "nearly 1 for rows below 0.0003, one half at sqrt(eps) = 0.0032, and nearly 0 from 0.1 on.",
)

# %% [markdown]
# 0.00001, one half, 0.999. It is no flaw, it is the right derivative. With eps the forward pass is not blind to the scale: a row of spread
# 0.0001 comes out at 0.03, not at 1, and stretching it changes y. So a push along xhat has something to gain, and the gradient says so.
#
# ## Would you catch a wrong one?
#
# You will write gradients that sympy never sees: kernels. They are tested with numbers. PyTorch has the tool: **gradcheck**. It builds the
# Jacobian by finite differences, column by column, in float64, and compares it with what your backward returns.
#
# A `torch.autograd.Function` is the place where you tell PyTorch what your backward is: `forward` saves what it needs, `backward` gets `dy`
# and returns one gradient for each argument of `forward`. (Lesson 10 builds a real one.)


# %%
def function_with(dw_of):
    """LayerNorm as an autograd Function whose dw is ``dw_of(dy, x, xhat)``; the rest is ours."""

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b):
            mean = x.mean(dim=1, keepdim=True)
            rstd = torch.rsqrt(x.var(dim=1, correction=0, keepdim=True) + eps)
            ctx.save_for_backward(x, w, mean, rstd)
            return (x - mean) * rstd * w + b

        @staticmethod
        def backward(ctx, dy):
            x, w, mean, rstd = ctx.saved_tensors
            xhat, wdy = (x - mean) * rstd, w * dy
            c1, c2 = (xhat * wdy).mean(dim=1, keepdim=True), wdy.mean(dim=1, keepdim=True)
            return (wdy - xhat * c1 - c2) * rstd, dw_of(dy, x, xhat), dy.sum(dim=0)

    return Norm.apply


generator = torch.Generator().manual_seed(0)
x_t = (3 + torch.randn(4, 6, generator=generator, dtype=torch.float64)).to(DEVICE).requires_grad_()
w_t, b_t = (
    torch.rand(6, generator=generator, dtype=torch.float64).add(0.5).to(DEVICE).requires_grad_() for _ in range(2)
)

ours = function_with(lambda dy, x, xhat: (dy * xhat).sum(dim=0))
assert torch.autograd.gradcheck(ours, (x_t, w_t, b_t))
print("gradcheck: dx, dw and db are right on this input")

# %% [markdown]
# Now a formula from somebody else. A set of derivation notes on LayerNorm goes through the chain rule as you have just done, gets
# $\partial\sigma/\partial x$, $\partial\hat{x}/\partial x$ and `dx` right, and then prints for the weight
#
# $$\frac{\partial L}{\partial w_i} = \sum_a dy_a\, x_i$$
#
# Three readings are possible: to the letter, once for each row and added up; with the index put right, $\sum_r dy_{ri}\, x_{ri}$; and yours.
# Will gradcheck find it, and will it say which gradient is wrong? *(Predict, then run.)*

# %%
from torch.autograd.gradcheck import GradcheckError

readings = {
    "to the letter: sum over a of dy_a x_i": lambda dy, x, xhat: (dy.sum(dim=1, keepdim=True) * x).sum(dim=0),
    "index put right: sum over r of dy_ri x_ri": lambda dy, x, xhat: (dy * x).sum(dim=0),
    "yours: sum over r of dy_ri xhat_ri": lambda dy, x, xhat: (dy * xhat).sum(dim=0),
}
verdicts, zeros = {}, {}
for name, dw_of in readings.items():
    try:
        torch.autograd.gradcheck(function_with(dw_of), (x_t, w_t, b_t))
        verdicts[name] = "passes"
    except GradcheckError as found:
        verdicts[name] = str(found).strip().splitlines()[0].rstrip(",")
        zeros[name] = [table.count("0.0000") for table in str(found).split("analytical:")]
    print(f"{name}\n    {verdicts[name]}")
assert list(verdicts.values())[2] == "passes"
assert all(
    "Jacobian mismatch for output 0 with respect to input 1" in verdict for verdict in list(verdicts.values())[:2]
)
print("zeros among the 6 x 24 derivatives, measured and returned:", list(zeros.values()))
assert list(zeros.values()) == [[120, 0], [120, 120]]

# %% [markdown]
# > **ERRATUM** (derivation notes in index notation). The printed `dw` is wrong twice. `w[i]` stands in one element of a row, so there is no
# > sum over a; and it is multiplied by **xhat**, not by x. The gradient is $\sum_r dy_{ri}\,\hat{x}_{ri}$, and the sums of `dw` and `db` run
# > over the rows.
#
# gradcheck says "input 1". Counting from 0, that is w. Its message goes on with two tables, what it measured and what your backward
# returned: 6 weights by 24 elements of y. Measured, 120 of the 144 derivatives are 0, because `w[i]` stands in 4 of the 24 elements. The
# formula to the letter returns no zero at all: that is the sum over a. The second reading has its zeros in place; only the numbers are off.
#
# Would an ordinary test have found it? Take the second reading, which only lacks the hat. Test data are often normal numbers with mean 0
# and spread 1, rows of 4096. How far off is `dw` there, relative to its size? And for rows with mean 3? *(Predict, then run.)*

# %%
rng = np.random.default_rng(3)
noise, dy_64 = rng.standard_normal((64, 4096)), rng.standard_normal((64, 4096))
off = {}
for name, rows in (("mean 0, std 1", noise), ("mean 3, std 1", 3 + noise), ("mean 0, std 5", 5 * noise)):
    right = reference.layer_norm_vjp(dy_64, rows).dw
    off[name] = np.linalg.norm((dy_64 * rows).sum(axis=0) - right) / np.linalg.norm(right)
    print(f"{name}: dw without the hat is off by {off[name]:.1%}")
assert off["mean 0, std 1"] < 0.03 < 2 < off["mean 3, std 1"] and off["mean 0, std 5"] > 3

# %% [markdown]
# 2 %. On such data x is nearly xhat already, and a tolerance of 5 % lets it pass. With mean 3 it is off by three times its size. **Test data must not be normalised already.** The cases your exercises are graded on are not.
#
# ## Saved or recomputed?
#
# The backward pass needs xhat and rstd. Should the forward pass save xhat, or should the backward pass work it out again from x?
#
# Saving costs bytes: M N elements written by the forward pass, held in memory until the backward pass reads them. Recomputing costs flops:
# `(x - mean) * rstd`, two an element. Which is dearer on a GPU that moves 3000 GB/s and does 60 TFLOP/s in fp32? By which factor, for fp16?
# *(Predict, then run. Then change the numbers in the first line and run again.)*

# %% tags=["nbval-check-output"]
M, N, itemsize, bandwidth, flops = 4096, 4096, 2, 3000e9, 60e12  # yours to change: 4 bytes for fp32, your GPU's figures

statistics = 2 * 4 * M  # mean and rstd, fp32
# what is saved: (bytes the forward pass writes more, bytes the backward pass reads for xhat, flops an element to get xhat)
choices = {
    "xhat in fp32": (4 * M * N + 4 * M, 4 * M * N + 4 * M, 0),
    "xhat in x's dtype": (itemsize * M * N + 4 * M, itemsize * M * N + 4 * M, 0),
    "x, mean, rstd": (statistics, itemsize * M * N + statistics, 2),
    "x alone": (0, itemsize * M * N, 2 + 5),  # and the sums for mean and variance once more
}
print("saved              forward writes  backward reads  flops      time of the bytes, of the flops")
time = {}
for name, (written, read, each) in choices.items():
    time[name] = 1e6 * (written + read) / bandwidth, 1e6 * each * M * N / flops
    print(f"{name:18} {written / 1e6:11.1f} MB {read / 1e6:12.1f} MB {each * M * N / 1e6:6.0f} M "
          f"{time[name][0]:15.1f} us {time[name][1]:10.1f} us")  # fmt: skip

# %%
saved_bytes = time["xhat in x's dtype"][0] - time["x, mean, rstd"][0]
print(f"recomputing xhat saves {saved_bytes:.1f} us of bytes and costs {time['x, mean, rstd'][1]:.1f} us of flops")
if (M, N, itemsize, bandwidth, flops) == (4096, 4096, 2, 3000e9, 60e12):
    assert 18 < saved_bytes / time["x, mean, rstd"][1] < 22
    assert statistics < 0.001 * itemsize * M * N
    assert time["x, mean, rstd"][0] < time["xhat in x's dtype"][0] < time["xhat in fp32"][0]

# %% [markdown]
# Twenty to one against saving xhat, and the flops run while the kernel waits for memory anyway. x costs nothing extra to keep where the
# layer before holds it, as a residual stream does. (Where nobody else needs x, saving xhat *in its place* is no dearer in memory; the write
# remains.) PyTorch, Liger-Kernel and the Triton tutorial all save x, mean and rstd.
#
# And x alone? The bytes for mean and rstd are nothing, so there is nothing to save. Recomputing them costs two more sums over the row that
# wait for each other, and one more way for forward and backward to disagree.
#
# ### In which dtype?
#
# mean and rstd are two numbers a row. Somebody will want to save them in bf16 like everything else. Take rows with a mean around 100 and
# spread 1. How far off is xhat, whose values lie mostly between -3 and 3? *(Predict, then run.)*

# %%
rows = 100 + rng.uniform(-1, 1, (64, 1)) + rng.standard_normal((64, 256))
exact = reference.layer_norm(rows)
worst = {}
for dtype in (torch.float32, torch.bfloat16):
    mean_saved, rstd_saved = (reference.float64(torch.tensor(values).to(dtype)) for values in (exact.mean, exact.rstd))
    worst[dtype] = abs((rows - mean_saved[:, None]) * rstd_saved[:, None] - exact.y).max()
    print(f"statistics saved as {dtype}: xhat off by up to {worst[dtype]:.0e}")
assert worst[torch.float32] < 1e-5 and 0.15 < worst[torch.bfloat16] < 0.35
assert torch.tensor(100.3).bfloat16() == 100.5 and torch.tensor(100.2).bfloat16() == 100

# %% [markdown]
# By 0.2, and nearly all elements of a row to the same side. bf16 has eight bits; near 100 its numbers are 0.5 apart. The x you stored had
# been rounded, too, but the forward pass used it as it was; here the backward pass uses another mean than the forward pass did. This
# shipped in two libraries. **mean and rstd are saved in fp32, always.**
#
# ## Exercise 02a: the VJP of LayerNorm
#
# In PyTorch operations, on the CPU, so that nothing but the formula is in your way. Before you type: which of the sums run along the rows,
# and which down the columns?

# %%
exercise("02a")

# %% [markdown]
# ## Exercise 02b: the VJP of RMSNorm
#
# The same with one path less. The file shows you no formula.

# %%
exercise("02b")

# %% [markdown]
# ## Exercise 02c: repair the published dw
#
# You get a function that does what the notes say. It runs and returns the right shapes. Three things are wrong in it, one more than in the
# erratum, because it has rows to deal with.

# %%
exercise("02c")

# %% [markdown]
# ## Summary
#
# - A backward pass is a vector-Jacobian product: `dy` times the table of all $\partial y_a / \partial x_i$, without the table.
# - `dw` and `db` are sums down the columns: one term for each row that uses the same w.
# - `dx = (wdy - xhat * c1 - c2) * rstd` with `c1 = mean(xhat * wdy)` and `c2 = mean(wdy)`. RMSNorm has no c2 and no `db`.
# - c2 takes out the push along 1, c1 the push along xhat, because the forward pass is blind to both. `dx` adds up to 0 in every row.
# - With eps the share `eps * rstd**2` of the push along xhat comes through, as it should. Only at eps = 0 is the matrix a projector.
# - sympy proves a formula, gradcheck tests a function. Neither helps with `dy` of ones, w of 1, or rows that are normalised already.
# - Save x, mean and rstd, the last two in fp32. xhat is two flops away.
#
# After each pass the panel tells you what the bug you avoided did elsewhere.
#
# **Where to read on**
#
# - Ba, Kiros and Hinton 2016, "Layer Normalization", and Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
# - The layernorm page of llm.c: the same derivation in C, with the trade of memory against compute thought aloud.
# - PyTorch, "Gradcheck mechanics": what it perturbs, and why it wants float64.
# - `course_lib/norms/reference.py`: the two VJPs as the course specifies them. After the exercises.
#
# **Next: lesson 03, statistics.** The mean and the variance looked harmless here. Add them up in fp32 on rows with mean 1000, and one of
# four ways to do it gives you a negative variance.
