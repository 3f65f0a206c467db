"""Lesson 05: the error of each statistics kernel against mean/std, for the course's kernels and the
learner's own."""
