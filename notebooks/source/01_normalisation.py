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
# # 01 Normalisation
#
# LayerNorm and RMSNorm are a few lines of arithmetic each. Every kernel of this course computes one of them, or its gradient, so this
# lesson takes them apart by hand: what they are for, which elements they look at, and the details in which implementations part.
#
# **You will be able to**
#
# - say why a network normalises, and over which elements of a (B, T, C) tensor;
# - work out LayerNorm and RMSNorm of a row, block by block;
# - say why the variance is divided by N, and what eps does to a small row, inside the root and outside;
# - say what you may do to a row without changing `y`, and what `w` and `b` can give back;
# - check a published table, and find the rows that are wrong;
# - write both norms in PyTorch operations, for any leading dimensions and three dtypes.
#
# **You need** lesson 00: blocks of BLOCK lanes. From NumPy, broadcasting: `x - x.mean(axis=1, keepdims=True)` subtracts from each row its
# own mean. You write no kernel today.
#
# **Time** about 70 minutes: 45 to read and run, 15 for exercise 01a, 10 for 01b.

# %%
import course_lib

# %%
DEVICE = course_lib.DEVICE  # where tensors go

import numpy as np
import torch

from course_lib import exercise
from course_lib.lessons import block_stepper, picture
from course_lib.lessons.figures import lesson01
from course_lib.norms import reference

# %% [markdown]
# ## Why normalise at all?
#
# A linear layer multiplies a row of numbers by a matrix. Say the matrix is random and makes the numbers a tenth larger. How large are
# they after 100 such layers? And if each layer makes them a tenth smaller?
#
# "How large" asks for one number for a whole row. Take the **root mean square**, rms: square the numbers, take the mean, take the root.
# `rms([3, -3])` is 3. *(Predict both sizes, then run.)*

# %%
WIDTH, LAYERS = 256, 100


def rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x**2).mean(axis=-1, keepdims=True))


def sizes(gain: float, normalise: bool = False) -> list[float]:
    """The rms of 64 rows before the first layer and after each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, WIDTH))
    after = [float(np.sqrt((x**2).mean()))]
    for _ in range(LAYERS):
        matrix = rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)  # keeps the size of a row, roughly
        x = x @ (gain * matrix)
        if normalise:
            x = x / rms(x)
        after.append(float(np.sqrt((x**2).mean())))
    return after


larger, smaller, normalised = sizes(1.1), sizes(0.9), sizes(1.1, normalise=True)
for words, after, law in (("a tenth larger", larger, 1.1**LAYERS), ("a tenth smaller", smaller, 0.9**LAYERS)):
    print(f"{words:16} {after[-1]:10.2g}, and {law:.2g} on paper")
    assert 0.5 < after[-1] / law < 2
print(f"with a norm      {normalised[-1]:10.2g}")
assert rms(np.array([3.0, -3.0])) == 3 and larger[-1] > 5000 and smaller[-1] < 1e-4
assert np.allclose(normalised[1:], 1, rtol=1e-12)
assert np.finfo(np.float16).max == 65504 and round(float(np.finfo(np.float16).tiny), 5) == 0.00006

# %%
curves = {
    "each layer 1.1 times": larger,
    "each layer 0.9 times": smaller,
    "1.1 times, then x / rms(x)": normalised,
}
picture(
    lesson01.through_layers(curves),
    alt="Root mean square of the numbers after each of 100 layers, on a logarithmic axis. With layers of 1.1 times it rises in a straight "
    "line to over 5000, with layers of 0.9 times it falls below 0.0001. With a division by the rms after each layer it stays at 1.",
)

# %% [markdown]
# Thousands, and less than a ten-thousandth. The largest fp16 number is 65504 and its smallest ordinary one is 0.00006, so the first
# network is about to leave that range, and the second has left it. You could tune each matrix until its factor is 1. Training would
# change it the next minute.
#
# The third curve divides each row by its own rms after every layer. Whatever the factor was, the size is 1 again. That division is most of
# RMSNorm. LayerNorm also moves the mean of the row to 0.

# %% [markdown]
# ## Over which elements?
#
# In a language model `x` has shape (B, T, C): B sequences of T tokens, and for each token a row of C numbers, its channels. To normalise
# is to take a mean and a size of *some* of these elements and apply them to the same elements. Which ones?
#
# Two answers became famous. **BatchNorm** looks at one channel at a time, over all tokens of all sequences. **LayerNorm** looks at one
# token at a time, over all its channels. How many means does each compute for B = 2, T = 3, C = 4? *(Predict, then run.)*

# %%
B, T, C = 2, 3, 4
x = np.random.default_rng(1).standard_normal((B, T, C))
by_layer_norm = x.mean(axis=-1, keepdims=True)
by_batch_norm = x.mean(axis=(0, 1), keepdims=True)
print(f"LayerNorm: {by_layer_norm.size} means, shape {by_layer_norm.shape}")
print(f"BatchNorm: {by_batch_norm.size} means, shape {by_batch_norm.shape}")
assert by_layer_norm.shape == (2, 3, 1) and by_batch_norm.shape == (1, 1, 4)

# %%
picture(
    lesson01.shared_means(B, T, C),
    alt="A tensor of 2 sequences, 3 tokens, 4 channels, drawn twice; each element carries the number of the mean it belongs to. LayerNorm: "
    "the four channels of a token share a mean, 0 to 5. BatchNorm: a channel shares one mean over all tokens of both sequences, 0 to 3.",
    caption="Each element shows the number of its mean; those with mean 0 are drawn heavy. LayerNorm's group is a row inside one sequence, "
    "BatchNorm's a column through both.",
)

# %% [markdown]
# Six and four. Now the question that decides between them. Add 100 to *one* of the 24 elements, channel 0 of token 2 of sequence 1. How
# many elements of the normalised result change, for each? *(Predict, then run.)*


# %%
def normalised_over(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True)


louder = x.copy()
louder[1, 2, 0] += 100
changed = {}
for name, axis in (("LayerNorm", -1), ("BatchNorm", (0, 1))):
    where = ~np.isclose(normalised_over(louder, axis), normalised_over(x, axis))
    changed[name] = int(where.sum())
    print(f"{name}: {changed[name]} of {x.size} change; by token\n{where.sum(axis=2)}")
assert changed == {"LayerNorm": C, "BatchNorm": B * T}

x_t = torch.from_numpy(x)
assert np.allclose(normalised_over(x, -1), torch.nn.functional.layer_norm(x_t, (C,), eps=0))
torch_batch = torch.nn.functional.batch_norm(x_t.mT, None, None, training=True, eps=1e-15).mT  # it wants (B, C, T)
assert np.allclose(normalised_over(x, (0, 1)), torch_batch)

# %% [markdown]
# With LayerNorm four elements change, all of the token that was touched. With BatchNorm six, one in every token: what a token becomes
# depends on who else is in the batch. A language model writes its text one token at a time, for one user or for fifty, and must give the
# same answer. So it uses LayerNorm, or RMSNorm, which looks at the same elements.
#
# ### Rows and columns
#
# If each token is normalised by itself, B and T do not matter. Flatten them: **M rows, one a token, and N columns, the channels.** From
# here on every tensor of this course is M x N, whatever shape it came in.
#
# A model sends (8, 128, 768). What are M and N, and what is `x.shape[0]`? *(Predict, then run.)*

# %%
sent = np.random.default_rng(2).standard_normal((8, 128, 768))
rows = sent.reshape(-1, sent.shape[-1])
M, N = rows.shape
print(f"M = {M}, N = {N}, shape[0] = {sent.shape[0]}")
assert (M, N, sent.shape[0]) == (1024, 768, 8) and M == 8 * 128
assert np.array_equal(normalised_over(rows, -1).reshape(sent.shape), normalised_over(sent, -1))

# %% [markdown]
# M = 1024 = 8 * 128. `x.shape[0]` is 8, the number of sequences. For a matrix the two are the same number, and a test with a matrix does
# not notice the difference.
#
# ## LayerNorm of one row, by hand
#
# Here is a matrix of 3 rows and 8 columns. It stays with you to lesson 07.
#
# | row | x |
# |---|---|
# | 0 | `2 -1 3 .5 -.5 1.5 -2 1` |
# | 1 | `4 -3 2.5 1 -1.5 0 -.5 2` |
# | 2 | `-1 3.5 -2.5 1.5 0 -3 2.5 -.5` |
#
# LayerNorm subtracts the mean of the row and divides by its spread, the standard deviation:
#
# $$\mathrm{mean} = \frac{1}{N}\sum_j x_j \qquad \mathrm{var} = \frac{1}{N}\sum_j (x_j - \mathrm{mean})^2 \qquad
# \hat{x}_j = \frac{x_j - \mathrm{mean}}{\sqrt{\mathrm{var}}}$$
#
# Code spells $\hat{x}$ `xhat`. A program has BLOCK lanes, and a row may be longer than that, so a kernel works through a row block by
# block. Do the same: BLOCK = 4, two blocks. First the mean. Take row 0 and a pencil. What does each block add up to, and what is the mean?
# *(Predict, then run.)*

# %%
x = np.array(
    [
        [2, -1, 3, 0.5, -0.5, 1.5, -2, 1],
        [4, -3, 2.5, 1, -1.5, 0, -0.5, 2],
        [-1, 3.5, -2.5, 1.5, 0, -3, 2.5, -0.5],
    ]
)
row, N = x[0], 8
blocks = row.reshape(2, 4)  # BLOCK = 4: columns 0 to 3, columns 4 to 7
sums = blocks.sum(axis=1)
mean = sums.sum() / N
print(f"blocks {sums[0]} + {sums[1]} = {sums.sum()}, mean {mean}")
assert sums.tolist() == [4.5, 0.0] and mean == 0.5625

# %% [markdown]
# 4.5 and 0, so the mean is 0.5625. Now the variance: subtract the mean from all eight, square, add up block by block. The 3 in column 2
# becomes 2.4375, and its square is 5.94. What will it be in `xhat`? *(Predict, then run.)*

# %%
deviation = row - mean
squares = (deviation.reshape(2, 4) ** 2).sum(axis=1)
var = squares.sum() / N
xhat = deviation / np.sqrt(var)
print(f"x - mean       {deviation}\nblocks         {squares[0]} + {squares[1]} = {squares.sum()}")
print(f"variance       {var:.4f}, standard deviation {np.sqrt(var):.4f}\nxhat           {xhat.round(2)}")
assert deviation[2] == 2.4375 and round(deviation[2] ** 2, 2) == 5.94
assert squares.tolist() == [10.453125, 8.765625] and round(var, 4) == 2.4023 and round(xhat[2], 2) == 1.57
assert abs(xhat.mean()) < 1e-15 and abs((xhat**2).mean() - 1) < 1e-15

# %% [markdown]
# 1.57: the 3 lies 1.57 standard deviations above the mean of its row. The eight numbers of `xhat` have mean 0 and mean square 1. That is
# all a LayerNorm does, and a good question to ask of any result: *is its mean 0, is its mean square 1?*
#
# Notice the order. No deviation can be squared before the mean is known, and the mean is not known before the last block.
#
# ### Why divide by N?
#
# `torch.var(row)` gives another number. It divides by N - 1 unless you tell it not to. How far apart are the two for N = 8? For N = 4096?
# And what is the variance of a row of one number? *(Predict, then run.)*

# %%
for values in (row, np.random.default_rng(0).standard_normal(4096)):
    by_N, by_torch = values.var(), torch.from_numpy(values).var().item()
    print(f"N = {values.size:4}: by N {by_N:.4f}, torch.var {by_torch:.4f}, ratio {by_torch / by_N:.5f}")
    assert np.isclose(by_torch / by_N, values.size / (values.size - 1), rtol=1e-9)
    assert np.isclose(torch.from_numpy(values).var(correction=0).item(), by_N, rtol=1e-9)

too_small = deviation / np.sqrt(var * 8 / 7)
print(f"mean square of xhat after a division by N - 1: {(too_small**2).mean():.3f}")
one = torch.tensor([3.0])
total = ((one - one.mean()) ** 2).sum()
print(f"one number: by N {(total / 1).item()}, by N - 1 {(total / (1 - 1)).item()}")
assert np.isclose((too_small**2).mean(), 7 / 8) and total / 1 == 0 and torch.isnan(total / (1 - 1))
assert np.allclose(torch.nn.functional.layer_norm(torch.from_numpy(row), (8,), eps=0), xhat, atol=1e-12)

# %% [markdown]
# The ratio is N / (N - 1): 8/7 here, 1.00024 for 4096 columns, where a loose test lets it through. For one number N - 1 is 0, and
# 0 / 0 is NaN.
#
# N - 1 is for guessing the variance of a population from a few samples. Nobody guesses here. The row is all there is, and `xhat` should
# have mean square 1, not 7/8. A variance divided by N is called **biased**, and PyTorch's LayerNorm uses it.
#
# ## A row of equal numbers
#
# Eight channels, all 3. Such rows exist: a padding token, a part of the network that is switched off. What is its `xhat`? *(Predict, then
# run.)*

# %%
equal = np.full(8, 3.0)
with np.errstate(invalid="ignore"):
    hopeless = (equal - equal.mean()) / np.sqrt(equal.var())
eps = 1e-5
rescued = (equal - equal.mean()) / np.sqrt(equal.var() + eps)
print("without eps:", hopeless, "\nwith eps:   ", rescued)
assert np.isnan(hopeless).all() and (rescued == 0).all()
assert (torch.nn.functional.layer_norm(torch.from_numpy(equal), (8,), eps=eps) == 0).all()

# %% [markdown]
# 0 / 0, eight times NaN, and a NaN spreads to everything it is multiplied with. So a small number **eps** is added to the variance, inside
# the root. Now the formula is complete, apart from two vectors that come later:
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\mathrm{var} + \mathrm{eps}}} \qquad \hat{x}_j = (x_j - \mathrm{mean})\,\mathrm{rstd}$$
#
# `rstd`, the reciprocal standard deviation, is one number a row. You divide once, then multiply N times. Kernels save it for the backward
# pass.
#
# ### Is eps only a guard?
#
# It is there for rows whose variance is 0. But it is added to every row. Take row 0 and scale it down. Its `xhat` should have standard
# deviation 1 whatever the scale. With eps = 1e-5, what is it when the row's own standard deviation is 0.1? When it is the root of eps,
# 0.00316? When it is 0.0001? *(Predict, then run.)*

# %%
spread = {}
for std in (1, 0.1, eps**0.5, 1e-4):
    small = deviation / np.sqrt(var) * std  # mean 0, this standard deviation
    spread[std] = float(reference.layer_norm(small[None], eps=eps).y.std())
    print(f"row with std {std:.5f}: xhat has std {spread[std]:.4f}")
    assert np.isclose(spread[std], std / np.sqrt(std**2 + eps))
assert spread[0.1] > 0.999 and np.isclose(spread[eps**0.5], 0.5**0.5) and round(spread[1e-4], 3) == 0.032

# %% [markdown]
# 0.9995, 0.7071, 0.0316. Far above `sqrt(eps)` a row comes out with spread 1. Below it, it stays small. At `sqrt(eps)` it is half way in
# the squares: var and eps are equal, and 1 / sqrt(2) is left. So eps is a threshold: it says which rows are too quiet to be worth
# amplifying.
#
# ## RMSNorm: what can be left out?
#
# The third curve of the first figure needed no mean. **RMSNorm** divides by the rms, with eps in the same place, and subtracts nothing:
#
# $$\mathrm{rstd} = \frac{1}{\sqrt{\frac{1}{N}\sum_j x_j^2 + \mathrm{eps}}} \qquad \hat{x}_j = x_j\,\mathrm{rstd}$$
#
# Row 0 again, BLOCK = 4. What is the sum of squares of each block, and what is 1 / rms? Leave eps out by hand: you work to three digits.
# *(Predict, then run.)*

# %%
first, second = (row.reshape(2, 4) ** 2).sum(axis=1)
mean_square = (first + second) / N
root = np.sqrt(mean_square)
print(
    f"blocks {first} + {second} = {first + second}, mean square {mean_square:.3f}, rms {root:.3f}, 1 / rms {1 / root:.3f}"
)
print("y =", (row / root).round(2))
assert (first, second, first + second) == (14.25, 7.50, 21.75)
assert (round(mean_square, 3), round(root, 3), round(1 / root, 3)) == (2.719, 1.649, 0.606)
assert (row / root).round(2).tolist() == [1.21, -0.61, 1.82, 0.3, -0.3, 0.91, -1.21, 0.61]
assert np.allclose(reference.rms_norm(x).y[0], row / root, rtol=1e-5, atol=0)  # eps: the sixth digit

# %% [markdown]
# One sum instead of two, and no wait for a mean. The 3 becomes 1.82, in LayerNorm it was 1.57. When do the two norms agree? *(Predict, then
# run.)*

# %%
centred = x - x.mean(axis=1, keepdims=True)
apart = abs(reference.rms_norm(x).y - reference.layer_norm(x).y).max(axis=1)
off_centre = abs(x.mean(axis=1)) / x.std(axis=1)
print("y apart by up to, row by row:     ", apart.round(2))
print("mean over standard deviation:     ", off_centre.round(2))
apart_centred = abs(reference.rms_norm(centred).y - reference.layer_norm(x).y).max(axis=1)
print("y apart by up to, on centred rows:", apart_centred.round(2))
assert np.allclose(reference.rms_norm(centred).y, reference.layer_norm(x).y, rtol=0, atol=1e-12)
assert np.argsort(apart).tolist() == np.argsort(off_centre).tolist() and apart[0] > 0.2 > 0.05 > apart[2]

# %% [markdown]
# When the row has mean 0. **LayerNorm is RMSNorm of the centred row.** The larger the mean against the spread, the further apart they are.
#
# ### Where does eps stand?
#
# `1 / sqrt(mean square + eps)` or `1 / (rms + eps)`: both avoid the division by zero, and both have been published as RMSNorm. With eps =
# 1e-5, by which factor is the second one larger, on rows with an rms of 1, of 0.001, of 0.0001? And how large is `rstd` on a row of zeros?
# *(Predict, then run.)*

# %%
ratio, rstd = {}, {}
for size in (1, 1e-2, 1e-3, 1e-4, 0):
    small = size * np.array([[1.0, -1, 1, -1, 1, -1, 1, -1]])
    mean_square = (small**2).mean()
    rstd[size] = inside, outside = 1 / np.sqrt(mean_square + eps), 1 / (np.sqrt(mean_square) + eps)
    by_torch = torch.nn.functional.rms_norm(torch.from_numpy(small), (8,), eps=eps).numpy()
    ratio[size] = outside / inside
    print(f"rms {size:6}: inside {inside:8.2f}   outside {outside:9.2f}   factor {ratio[size]:6.2f}")
    assert np.allclose(small * inside, by_torch, rtol=1e-12, atol=0)
    assert size in (0, 1) or not np.allclose(small * outside, by_torch, rtol=1e-2)
assert abs(ratio[1] - 1) < 1e-5 and 3.2 < ratio[1e-3] < 3.3 and 28 < ratio[1e-4] < 30
assert round(rstd[0][0]) == 316 and round(rstd[0][1]) == 100000

# %%
quiet = np.logspace(-7, 1, 65)
outputs = {"inside": quiet / np.sqrt(quiet**2 + eps), "outside": quiet / (quiet + eps)}
picture(
    lesson01.small_rows(quiet, outputs["inside"], outputs["outside"], eps),
    alt="The rms of y against the rms of the row, eps = 1e-5, logarithmic axis. With eps inside the root the curve rises from 0 to 1 "
    "around sqrt(eps) = 0.0032. With eps outside it rises around 0.00001, so rows between the two come out at nearly full size.",
)

# %% [markdown]
# > **ERRATUM** (blog post "Triton Kernels - RMS Norm"). Its text computes `1 / (rms + eps)`. Its full kernel computes
# > `1 / sqrt(mean square + eps)`. Only the kernel matches PyTorch.
#
# On ordinary rows nothing shows: at an rms of 1 the factor is 1 to five digits. At 0.001 it is 3.3, at 0.0001 it is 29. With eps outside,
# the threshold is not at `sqrt(eps)` = 0.003 but at eps itself, 316 times lower. So a test that should tell the two apart needs a quiet
# row.
#
# A row of zeros is no such test. `y` is 0 either way. What differs is `rstd`, 316 against 100000.
#
# ### Which eps?
#
# `torch.nn.functional.layer_norm` takes 1e-5 if you name none. And `rms_norm`? *(Predict, then run.)*

# %%
low = torch.tensor([[1e-3, 2e-3, -1e-3, 5e-4]])
unnamed = torch.nn.functional.rms_norm(low, (4,))
machine = torch.nn.functional.rms_norm(low, (4,), eps=torch.finfo(torch.float32).eps)
usual = torch.nn.functional.rms_norm(low, (4,), eps=1e-5)
print("none:", unnamed.tolist(), "\n1e-5:", usual.tolist())
assert torch.equal(unnamed, machine) and unnamed[0, 0] > 2 * usual[0, 0]
assert round(torch.finfo(torch.float32).eps, 8) == 1.2e-7
named = torch.nn.functional.layer_norm(low, (4,), eps=1e-5)
assert torch.equal(torch.nn.functional.layer_norm(low, (4,)), named)

# %% [markdown]
# The machine epsilon of the dtype, 1.2e-7 for fp32. On this row `y` is more than twice as large. Models write their eps down. Pass it on.
#
# ## What leaves y as it is?
#
# You multiply a row by 10. Or you add 3 to all of it. Or you turn all its signs. Which of the three changes the result of LayerNorm, and
# which that of RMSNorm? Six answers. *(Predict, then run.)*

# %%
many = np.random.default_rng(0).standard_normal((4, 64))
moved = {}
for norm in (reference.layer_norm, reference.rms_norm):
    y = norm(many).y
    for words, other in (("times 10", 10 * many), ("plus 3", many + 3), ("times -1", -many)):
        moved[norm.__name__, words] = abs(norm(other).y - y).max()
        print(f"{norm.__name__:10} {words:8}: y moves by up to {moved[norm.__name__, words]:.0e}")
    assert np.array_equal(norm(-many).y, -y)  # the signs of y turn, too
    assert np.allclose(norm(10 * many, eps=100 * 1e-5).y, y, rtol=0, atol=1e-12)
assert moved["layer_norm", "times 10"] < 1e-4 and moved["rms_norm", "times 10"] < 1e-4
assert moved["layer_norm", "plus 3"] < 1e-12 and moved["rms_norm", "plus 3"] > 1

# %% [markdown]
# **Scale:** both ignore it. `y` moves in the fifth digit, and that is eps: multiply eps by 100 as well and nothing moves. **Shift:**
# LayerNorm ignores it, RMSNorm does not. **Signs:** those of `y` turn along.
#
# So what a norm throws away is the length of the row, and LayerNorm also its mean. RMSNorm's authors asked whether throwing the mean away
# is needed, and report that their models train as well without it.
#
# ## What can w and b give back?
#
# After a norm every row has the same size. Perhaps the next layer wants channel 5 louder than the others. So a norm ends with a **weight**
# `w` and a **bias** `b`, learned in training: one number a *column*, the same for every row. RMSNorm has `w` only.
#
# $$y_j = \hat{x}_j\, w_j + b_j$$
#
# Then can training undo the norm? Choose `w` and `b` so that row 0 comes out as it went in. What do rows 1 and 2 become? *(Predict, then
# run.)*

# %%
plain = reference.layer_norm(x, eps=eps)
w = np.full(8, 1 / plain.rstd[0])  # multiply by the spread of row 0
b = np.full(8, plain.mean[0])  # and add its mean
y = reference.layer_norm(x, w, b, eps).y
print("y - x =\n", (y - x).round(2) + 0)
assert np.allclose(y[0], x[0], rtol=0, atol=1e-12) and abs(y - x)[1:].max(axis=1).min() > 0.3
assert np.allclose(y.mean(axis=1), plain.mean[0]) and np.allclose(y.std(axis=1), x[0].std(), rtol=1e-5)
x_t, w_t, b_t = map(torch.from_numpy, (x, w, b))
assert np.allclose(y, torch.nn.functional.layer_norm(x_t, (8,), w_t, b_t, eps), rtol=0, atol=1e-12)

# %% [markdown]
# Row 0 is back. Rows 1 and 2 are not: they have got the mean and the spread *of row 0*. `w` and `b` give columns a size that all rows
# share. What made one row louder than another is gone for good.
#
# `w` and `b` also end your check: the mean square of `y` is 1 before `w`, not after it. And watch the axis. `w` has N elements, `mean` and
# `rstd` have M. In a square matrix nothing but the values tells you which of them you have broadcast along which side.
#
# ## Is the table right?
#
# The post works the 3 x 8 example out for RMSNorm, with w = 1 and blocks of four. This is its column of sums of squares:
#
# | row | x | the post's sum of squares |
# |---|---|---|
# | 0 | `2 -1 3 .5 -.5 1.5 -2 1` | 21.75 |
# | 1 | `4 -3 2.5 1 -1.5 0 -.5 2` | 44.25 |
# | 2 | `-1 3.5 -2.5 1.5 0 -3 2.5 -.5` | 50.00 |
#
# Row 0 you have just worked out. What about the others? Put the rows that you believe to be wrong into the list. A pencil is enough.

# %%
suspects = []  # your answer, for instance [1] or [0, 2]
published = np.array([21.75, 44.25, 50.00])

# %% tags=["nbval-check-output"]
true = (x.reshape(3, 2, 4) ** 2).sum(axis=2)  # rows, blocks, lanes: the sum of squares of each block
wrong = [r for r in range(3) if true[r].sum() != published[r]]
for r, (first, second) in enumerate(true):
    print(f"row {r}: {first:5.2f} + {second:5.2f} = {first + second:5.2f}, published {published[r]:5.2f}")
assert wrong == [1, 2] and true.tolist() == [[14.25, 7.50], [32.25, 6.50], [21.75, 15.50]]
assert true.sum(axis=1).tolist() == [21.75, 38.75, 37.25]

# %% [markdown]
# > **ERRATUM** (the same post). Two of three rows are wrong. Row 1 is 32.25 + 6.50 = 38.75, row 2 is 21.75 + 15.50 = 37.25.

# %%
print("wrong rows:", wrong, "- as you said" if sorted(suspects) == wrong else f"- you said {suspects}")
for r in wrong:
    mean_square = true[r].sum() / 8
    print(f"row {r}: mean square {mean_square:.3f}, rms {mean_square**0.5:.3f}, 1 / rms {mean_square**-0.5:.3f}")
    print("       y =", reference.rms_norm(x).y[r].round(2) + 0)
assert reference.rms_norm(x).y[1].round(2).tolist() == [1.82, -1.36, 1.14, 0.45, -0.68, 0, -0.23, 0.91]
assert reference.rms_norm(x).y[2].round(2).tolist() == [-0.46, 1.62, -1.16, 0.7, 0, -1.39, 1.16, -0.23]

# %% [markdown]
# ### Could you have known without adding up again?
#
# Take the post's sums as they are, and normalise with them. You have a question to ask of any result. What is the mean square of each row
# of `y`? *(Predict, then run.)*

# %%
y_published = x / np.sqrt(published / 8)[:, None]
y_true = x / np.sqrt(true.sum(axis=1) / 8)[:, None]
check = (y_published**2).mean(axis=1)
print("mean square of y, from the post's sums:", check.round(3))
print("mean square of y, from the true ones:  ", (y_true**2).mean(axis=1).round(3))
print(f"row 0 with the root forgotten:          {((x[0] / (true[0].sum() / 8)) ** 2).mean():.3f}")
assert check.round(3).tolist() == [1.0, 0.876, 0.745] and np.allclose((y_true**2).mean(axis=1), 1)
assert ((x[0] / (true[0].sum() / 8)) ** 2).mean() < 0.4

# %% [markdown]
# 0.876 and 0.745. A norm carries its own check. *Is the mean square of `y` about 1?* needs no reference, and catches a wrong sum, a
# forgotten root and a wrong divisor.
#
# ## When is the first y known?
#
# So far NumPy saw a whole row at once. A kernel's program sees BLOCK lanes at a time. It keeps one partial sum a lane, and adds up the
# lanes after the last block. Row 0, BLOCK = 4, LayerNorm: how many blocks does the program load before it can write its first element of
# `y`? How many for RMSNorm? Predict, then step until a `y` appears.
#
# Then look for three more things.
#
# 1. Change BLOCK to 2, 8 and 16. What changes, and what does not?
# 2. Choose *type your own* and enter `1 2 6; 101 102 106`. Compare the rows of `y`, for LayerNorm and for RMSNorm.
# 3. Enter `.002 -.002`, and change eps. At which eps is `y` nearly 1, at which nearly 0?

# %%
block_stepper(kind="layer_norm", block=4)

# %%
from course_lib.lessons.block_stepper.model import steps


def loads_before_y(kind: str, BLOCK: int) -> int:
    return next(i for i, frame in enumerate(steps(x, BLOCK, kind)) if frame.phase == "normalise")


for kind in ("layer_norm", "rms_norm"):
    print(f"{kind:10} blocks loaded before the first y:", {BLOCK: loads_before_y(kind, BLOCK) for BLOCK in (2, 4, 8)})
assert loads_before_y("layer_norm", 4) == 4 and loads_before_y("rms_norm", 4) == 2
assert len(steps(x, 4, "layer_norm")) == 3 * 3 * 2 and len(steps(x, 4, "rms_norm")) == 3 * 2 * 2  # rows, sweeps, blocks
for BLOCK in (2, 4, 8, 16):
    y = [r.y for r in steps(x, BLOCK, "layer_norm")[-1].rows]
    assert np.allclose(y, reference.layer_norm(x).y, rtol=0, atol=1e-12)

# %%
typed = [[1, 2, 6], [101, 102, 106]]
layer, only_rms = reference.layer_norm(typed).y, reference.rms_norm(typed).y
print(f"LayerNorm:\n{layer.round(2)}\nRMSNorm:\n{only_rms.round(2)}")
assert np.allclose(layer[0], layer[1]) and np.allclose(only_rms[1], 1, atol=0.05) and only_rms[0, 0] < 0.3
faint = {e: reference.rms_norm([[0.002, -0.002]], eps=e).y[0, 0] for e in (1e-12, 1e-3)}
print(f"0.002 becomes {faint[1e-12]:.3f} with eps = 1e-12, and {faint[1e-3]:.3f} with eps = 0.001")
assert faint[1e-12] > 0.999 and faint[1e-3] < 0.1

# %% [markdown]
# Four blocks for LayerNorm: the row once for the mean, once more for the variance. Two for RMSNorm. Then both load the row again to write
# `y`: three sweeps and two. BLOCK changes the number of steps, and what lies in the lanes, never `y`.
#
# The two typed rows differ by 100. LayerNorm gives them the same `y`. RMSNorm turns the second into three numbers near 1: there the mean
# *is* the length, and what set the columns apart is nearly gone. And `.002 -.002` lies between the thresholds: with eps = 1e-12 it comes
# out at full size, with eps = 0.001 at less than a tenth.
#
# ## In which dtype?
#
# Models keep `x` in fp16 or bf16 and often `w` in fp32. You are about to write both norms for any of them. Three questions first. What is
# 300 squared in fp16? What is 256 + 1 in bf16? And which dtype has an fp16 tensor times an fp32 tensor? *(Predict, then run.)*

# %%
half = torch.tensor([300.0], dtype=torch.float16, device=DEVICE)
brain = torch.tensor([256.0], dtype=torch.bfloat16, device=DEVICE)
mixed = half * torch.ones(1, device=DEVICE)
print(f"300 squared: {(half * half).item()}   256 + 1: {(brain + 1).item()}   fp16 times fp32: {mixed.dtype}")
assert torch.isinf(half * half).all() and (brain + 1).item() == 256 and mixed.dtype == torch.float32
assert (half.float() * half.float()).item() == 90000 and half.float().to(torch.float16) == half

# %% [markdown]
# Infinite, 256, and fp32. So: `x.float()` before the first sum, everything in fp32, and one `.to(x.dtype)` at the very end, because the
# product with an fp32 `w` is fp32 whatever `x` was.
#
# ## Exercise 01a: LayerNorm
#
# Before you type: which axis do the statistics belong to, whatever stands in front of it? Which variance? And which element of `mean` does
# an element of `x` meet, if `x` is square?

# %%
exercise("01a")

# %% [markdown]
# ## Exercise 01b: RMSNorm
#
# Shorter, and with one decision: where eps stands.

# %%
exercise("01b")

# %% [markdown]
# ## Summary
#
# - A norm sets the size of each row to 1 after every layer, so that a hundred factors do not multiply up.
# - LayerNorm and RMSNorm look at one token, over its channels. Flatten (B, T, C) to M x N with M = B * T: one `mean` and one `rstd` a row.
# - LayerNorm: subtract the mean, divide by the root of the biased variance. RMSNorm: divide by the root of the mean square. LayerNorm is
#   RMSNorm of the centred row.
# - Divide by N. eps is added inside the root and sets a threshold at `sqrt(eps)`. Outside the root the threshold is at eps, and only quiet
#   rows tell.
# - Scale is ignored by both (eps aside), a shift by LayerNorm only. `w` and `b` belong to columns and cannot bring back what a row lost.
# - The mean square of `xhat` is 1. That checks a kernel, or somebody's table.
#
# After a pass the panel tells you what the bug you avoided did elsewhere.
#
# **Where to read on**
#
# - Ba, Kiros and Hinton 2016, "Layer Normalization": the paper; section 5 sorts norms by what leaves them unchanged.
# - Zhang and Sennrich 2019, "Root Mean Square Layer Normalization": why the mean may stay in.
# - PyTorch's pages on `LayerNorm` and `RMSNorm`: look for "biased", and for the default of eps.
# - The blog post "Triton Kernels - RMS Norm": two phases, drawn step by step. Read it with the two errata of this lesson at hand.
#
# **Next: lesson 02, VJPs.** How does `y` answer when one element of `x` moves? Each element is in the mean and in the variance of its whole
# row, so all N answers come at once.
