"""Rows one after the other, transposed sums, a first element below all others, and a variance that is not below 0."""

import numpy as np


def of_row(row):
    d = row.astype(np.float32) - np.float32(row[0])
    mean = d.sum(dtype=np.float32) / np.float32(d.size)
    return np.float32(row[0]) + mean, np.maximum(np.dot(d, d) / np.float32(d.size) - mean**2, 0)


def shifted_one_pass(x):
    pairs = [of_row(row) for row in x]
    return np.array([m for m, _ in pairs], np.float32), np.array([v for _, v in pairs], np.float32)


def defeating_row(N):
    return np.where(np.arange(N) == 0, np.float32(-1e6), np.float32(1e6))
