"""Lesson 06: the passes over the matrix that each way to normalise a row makes, counted from a
trace of real kernels."""
