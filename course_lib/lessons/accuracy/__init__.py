"""Lesson 05: how far each statistics kernel is from the truth, against mean/std, on the course's kernels and on the reader's own."""
