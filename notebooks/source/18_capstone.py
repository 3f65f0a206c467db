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
# # 18 A capstone without a guide
#
# The last layer of a language model gives each token one number for every word piece that the model
# knows: the token's **logits**. Training needs two things of them: the loss, and its gradient. You
# write the kernels for both. No step leads you there, and the files have a contract, names and
# nothing else. The grader is the one that you know. The whole lesson is optional.
#
# *About 10 minutes for the page. The three tasks take about 45, 30 and 45 minutes. Needs: lessons 07,
# 10 and 14, and exercise 04b.*

# %%
import course_lib

# %%
from course_lib.lessons import recall

recall("18")

# %% [markdown]
# ## What does the last layer weigh?
#
# The 8B model of Llama 3 has 4096 numbers per token inside, and a vocabulary of 128,256 ([a
# published
# configuration](https://huggingface.co/nvidia/Llama3-ChatQA-1.5-8B/blob/main/config.json)).

# %%
from course_lib.lessons import predict

hidden, vocabulary, tokens = 4096, 128256, 8192

# %%
predict("18-weigh")

# %% tags=["answer"]
for name, numbers in {
    "the tokens that go in": tokens * hidden,
    "the layer's weights": vocabulary * hidden,
    "the logits": tokens * vocabulary,
}.items():
    print(f"{name}: {2 * numbers / 1e9:.2g} GB")

# %% tags=["check"]
from course_lib.lessons.prediction import find

assert [f"{2 * n / 1e9:.2g}" for n in (tokens * hidden, vocabulary * hidden, tokens * vocabulary)] == [
    "0.067",
    "1.1",
    "2.1",
]
assert tokens / hidden == 2 and find("18-weigh").answer == "the logits"
assert 1.9 < 4 * vocabulary / (65536 * 4) < 2  # a row in fp32 beside the registers of a multiprocessor
assert 2 * vocabulary == 256_512

# %% [markdown]
# These rows are as long as those of lesson 16, and there are many of them. In fp32 a row is nearly
# twice as large as all registers of a multiprocessor. For a row `x` and its target:
#
# $$\text{lse} = \log \sum_j e^{x_j} \qquad \text{loss} = \text{lse} - x_\text{target} \qquad \text{softmax}_j = e^{x_j - \text{lse}}$$
#
# $$dx = \text{dloss} \cdot (\text{softmax} - \text{onehot}(\text{target}))$$
#
# `onehot(target)` is 1 in the target's column and 0 in all others. loss, lse and dloss have one
# number per row. Forward saves lse, as LayerNorm's forward saves mean and rstd. On paper each row of
# dx adds up to 0, as in lesson 10. You can test that without a reference, but dx = 0 passes, too.

# %% tags=["check"]
import numpy as np
from course_lib.norms import reference

rng = np.random.default_rng(0)
dx = reference.cross_entropy_vjp([3.0], rng.normal(size=(1, 128_256)), [7])
assert abs(dx.sum()) < 1e-9 < abs(dx).max()

# %%
predict("18-large")

# %% tags=["answer"]
import numpy as np

with np.errstate(over="ignore", divide="ignore"):
    for x in ([10000, 9999], [-10000, -9999]):
        terms = np.exp(np.float32(x))
        print(x, "terms:", terms, "loss:", np.log(terms.sum()) - np.float32(x[0]))

# %% tags=["check"]
with np.errstate(over="ignore", divide="ignore"):
    for x, want in (([10000, 9999], np.inf), ([-10000, -9999], -np.inf)):
        assert np.log(np.exp(np.float32(x)).sum()) - np.float32(x[0]) == want
    assert find("18-large").answer == "-Inf"
    assert np.exp(np.float32(88)) < np.inf == np.exp(np.float32(89))
    assert np.exp(np.float32(-103)) > 0 == np.exp(np.float32(-104))
losses = [reference.cross_entropy([x], [0]).loss[0] for x in ([10000, 9999], [-10000, -9999])]
assert [round(float(loss), 2) for loss in losses] == [0.31, 1.31]

# %% tags=["check"]
import torch
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.exp(tl.load(x_ptr)))


y = torch.zeros(1, device=course_lib.DEVICE)
for logit, want in ((89.0, np.inf), (-9999.0, 0.0)):  # a kernel's exp does what NumPy's does
    exp_kernel[(1,)](torch.tensor([logit], device=course_lib.DEVICE), y)
    assert y.item() == want

# %% [markdown]
# ## Your turn: two launches
#
# 18a is the loss and its gradient, with one kernel each. Forward may read a row as often as you
# like. Before you begin, read in the contract how large a logit may be.

# %%
from course_lib import exercise

exercise("18a")

# %% [markdown]
# ## Your turn: one sweep
#
# First find the maximum, then subtract it from each logit: so forward reads a row twice. Backward
# reads it once and writes dx. Each of the four transfers has 256,512 bytes per token in bf16. With
# one read in forward three remain. (A GPU may find the second read of a row in its L2. It is a read
# all the same.)
#
# In 18b forward reads each logit once, so the maximum is not known when the first block is added
# up. In lesson 04 two halves of a row were merged: each had a count, a mean and an M2. Here each
# half has a maximum and a sum.

# %%
exercise("18b")

# %% [markdown]
# ## Your turn: no logits at all
#
# In 18c your kernel gets what the last layer gets, makes the logits in tiles, and forgets them. Each program has several rows,
# so that w is read once for all of them.

# %%
exercise("18c")

# %% [markdown]
# ## All of it, together
#
# The fables of lesson 14 once more. This time the model's norms are yours, and so is its loss:
# forward is 18c, so nobody stores the logits. Backward makes the logits of 64 rows at a time again,
# and 18a's kernel turns them into their gradient. For a task that you have not passed, PyTorch's
# operations are used (for parts of the norm, the course's kernels). On a CPU this takes half a
# minute.

# %% varies={"solved": "it names your own kernels"}
import torch
from course_lib.lessons import own_kernels
from course_lib.lessons.lesson18 import own_loss

norm, loss = own_kernels.gather_norm(), own_loss.gather_loss()
print(norm, loss, sep="\n")

# %% varies={"always": "a training ends a little elsewhere on each machine"}
from course_lib.bench import transformer
from course_lib.lessons import loss_curves
from IPython.display import display

corpus, STEPS = transformer.split(transformer.fables()), 100
size = transformer.ModelSize(context=16)
name = f"{sum(part.own for part in norm.parts + loss.parts)} of 6 parts yours"
norms, where = (torch.nn.LayerNorm, norm.Module), {"size": size, "device": course_lib.DEVICE}
theirs, yours = (transformer.build(corpus.training, Norm, **where) for Norm in norms)
live = loss_curves({"PyTorch": transformer.learn(theirs, corpus, STEPS, size), name: []}, STEPS)
display(live)
for nats in transformer.learn(yours, corpus, STEPS, size, loss):
    live.add(name, nats)
transformer.show(transformer.write(yours, corpus.training, 300))

# %% tags=["check"]
losses = live.runs
assert len(corpus.training.characters) == 43
assert losses["PyTorch"][0] > corpus.training.entropy() > 2 > losses["PyTorch"][-1]
assert abs(losses[name][0] - losses["PyTorch"][0]) < 1e-4
assert abs(losses[name][-1] - losses["PyTorch"][-1]) < 0.2
assert loss.launches["18c"] == STEPS and loss.launches["18a"] == STEPS * size.rows // own_loss.CHUNK

# %% [markdown]
# The toy has 43 characters. This is what the same loss saves in a model with Llama's vocabulary:

# %%
from course_lib.lessons.lesson18 import figures

figures.show_loss_memory(M=8192, N=vocabulary)

# %% [markdown]
# ## What you built
#
# How near to the memory's limit is each of your kernels, and where are PyTorch, Liger-Kernel and
# quack? Find the kernel that is farthest from it: which of its bytes could stay where they are?

# %%
from course_lib.lessons import ladder

ladder("18", with_libraries=True)

# %% [markdown]
# The next cell writes one page of all that you made: the code of each exercise that you pass, the
# ladder, the predictions that surprised you, the hunts that you won. It is a single file that needs
# no network, to keep and to send. `course status --html FILE` in a terminal writes it, too.

# %%
from pathlib import Path

from course_lib.cli import status_page

page = Path("what-i-built.html")
status_page.write(page)
print(f"written beside this notebook: {page}")

# %% tags=["check"]
assert "<h2>" in page.read_text(encoding="utf-8")

# %% [markdown]
# ## What you predicted

# %%
from course_lib.lessons import review_predictions

review_predictions("18")

# %% [markdown]
# **Where to read on**
#
# - Milakov and Gimelshein 2018, [Online normalizer calculation for
#   softmax](https://arxiv.org/abs/1805.02867): maximum and sum in one sweep.
# - Hsu and others 2024, [Liger Kernel](https://arxiv.org/abs/2410.10989): the cross entropy fused
#   with the last linear layer, in chunks.
# - Blanchard, Higham and Higham 2021, [Accurately computing the log-sum-exp and softmax
#   functions](https://doi.org/10.1093/imanum/draa038): how many digits each form keeps.
#
# ## From here
#
# You can go on in two ways:
#
# - **Measure on your GPU.** `course bench` times the course's kernels, PyTorch and other libraries;
#   `course bench forward --columns 5120` takes a row length from your own work. Without a GPU,
#   `course bench --stored` shows what was measured before.
# - **Contribute.** `CONTRIBUTING.md` in the course's repository says how to add an exercise, a
#   lesson, a picture or a kernel. A wrong solution that the grader passes, or a right one that it
#   refuses, is worth a report.
