"""Lesson 15: PyTorch, compilers, libraries and the course's kernels, in a race over the same matrix."""
