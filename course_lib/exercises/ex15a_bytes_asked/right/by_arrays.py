"""NumPy's integers, and a dot product of elements and bytes."""

import numpy as np

FP32 = 4


def total(*parts):
    elements, sizes = np.array(parts, dtype=np.int64).T
    return elements @ sizes


def blocked_forward(M, N, itemsize):
    return total((3 * M * N, itemsize), (2 * M * N, itemsize)), total((M * N, itemsize), (2 * M, FP32))


def resident_forward(M, N, itemsize, ROWS):
    programs = np.ceil(M / ROWS).astype(int)
    return total((M * N, itemsize), (2 * N * programs, itemsize)), total((M * N, itemsize), (2 * M, FP32))


def add_then_rms_norm(M, N, itemsize):
    return total((4 * M * N, itemsize)), total((2 * M * N, itemsize), (M, FP32))


def add_rms_norm(M, N, itemsize):
    return total((3 * M * N, itemsize)), total((2 * M * N, itemsize), (M, FP32))


def two_stage_backward(M, N, itemsize, rows_a_chunk, BLOCK_N):
    chunks, blocks = len(np.arange(0, M, rows_a_chunk)), len(np.arange(0, N, BLOCK_N))
    read = total((5 * M * N, itemsize), (2 * M * (1 + blocks), FP32), (2 * chunks * N, FP32))
    return read, total((M * N + 2 * N, itemsize), (2 * chunks * N, FP32))
