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
# # Half an hour on a GPU
#
# You solved the exercises of lessons 05, 08, 13, 14 and 15 without a GPU. Here they are compiled and run on one, and the times of your own kernels
# join the charts of the lessons. The first cell set the course up in the folder `my-course`.
#
# *About 30 minutes, most of it compiling and timing. Needs: your files of these lessons, or some of them.*
#
# **Before you go on**, bring your files here: by a zip, as the cell above says, or one by one into `my-course/exercises`. The
# next cell lists their names. A file that you leave out counts as not attempted, and the rest runs without it.

# %%
# Up to ten seconds: PyTorch and Triton are imported.
import course_lib
from course_lib.lessons import gpu_visit

for each in gpu_visit.list_exercises():
    print(f"exercises/{each.file}.py  {each.title}")

# %% tags=["check"]
from course_lib import catalog

assert {each.lesson for each in gpu_visit.list_exercises()} == set(gpu_visit.LESSONS)
assert all(each.id in catalog.required() for each in gpu_visit.list_exercises())

# %% [markdown]
# ## Which GPU is it?
#
# The charts of the course were measured on an H100. What is different here?

# %%
# A second.
print(gpu_visit.describe_gpu())

# %% [markdown]
# ## Are your files right on it?
#
# In CPU mode the interpreter ran your kernels. In GPU mode the compiler translates them, and the GPU runs all of a check's cases. The first check
# takes longest. The launch of 15b is timed, too: its verdict says which share of the floor's bandwidth it reached.

# %%
# Less than a minute on an H100 beside 16 cores, longer beside fewer: compiling takes most of it. In CPU mode about 15 seconds.
gpu_visit.check_files()

# %% tags=["check"]
import os

from course_lib.learner import progress

seen = {progress.record(each.id).last["status"] for each in gpu_visit.list_exercises()}
assert seen == {os.environ["COURSE_EXPECT"]}

# %% [markdown]
# ## Where do your times lie?
#
# Lines are the stored times of an H100, and dots are measured now. Both are divided by the floor of their own GPU: the fastest pass over the same
# bytes. So a dot on its line says: on this GPU your kernel is as near to the floor as the course's was there.
#
# First the statistics of lesson 05: mean and variance of streamed rows in fp32.

# %%
# Less than half a minute on a GPU; a second without one.
gpu_visit.show_statistics()

# %% [markdown]
# LayerNorm forward, lesson 08. Your kernel of 08a is a resident one: compare its dots with that line.

# %%
# Less than half a minute on a GPU; a second without one.
forward_times = gpu_visit.show_forward()
forward_times

# %% [markdown]
# LayerNorm backward, lesson 13. Compare your 13b with the line of the persistent kernel.

# %%
# Less than half a minute on a GPU; a second without one.
gpu_visit.show_backward()

# %% tags=["check"]
own = forward_times.data["views"][0]["panels"][0]["series"]
dots = {series["name"] for series in own if not series["line"]}
passed = os.environ["COURSE_EXPECT"] == "pass"
wanted = ({"yours, 08a"} if passed else set()) | {"PyTorch, this GPU"}
assert dots == (wanted if course_lib.MODE == "gpu" else set())
assert all(0.5 < y < 20 for series in own if not series["line"] for y in series["y"])

# %% [markdown]
# ## Does your norm train?
#
# Lesson 14 trained a small model in the interpreter. Here your norm and PyTorch's train it on the GPU. The model is so small that Python's
# launches set the time, not the kernels. The part for dx is from lesson 11: if you upload that file, too, it is yours.

# %%
# Less than half a minute on a GPU; a second without one.
gpu_visit.train_norm()

# %% [markdown]
# ## Where to go on
#
# Lessons 05 to 09, 13 and 15 measure more on a GPU: open them in `my-course/notebooks`, with a copy of the first cell of this notebook at their top.
