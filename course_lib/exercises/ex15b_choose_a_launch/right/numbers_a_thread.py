"""Thirty-two numbers a thread for every shape, and a tile for two warps at least where the rows are short."""

import math

import numpy as np


def choose_launch(M, N, itemsize):
    lanes = 2 ** math.ceil(math.log2(N))
    rows = int(np.clip(2048 // lanes, 1, max(1, M // 132)))
    rows = 2 ** int(math.log2(rows))
    warps = np.maximum(1, rows * lanes // 1024)
    return rows, lanes, int(min(32, warps))
