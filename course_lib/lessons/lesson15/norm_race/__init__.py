"""Lesson 15: a race of PyTorch, torch.compile, two libraries and the course's kernels over the same
matrix."""
