"""Lesson 06: how often each way to normalise a row sweeps over the matrix, counted from a trace of real kernels."""
