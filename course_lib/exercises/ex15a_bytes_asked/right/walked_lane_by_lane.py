"""Walks over programs and blocks as the kernels do, and adds up lanes."""


def blocked_forward(M, N, itemsize):
    read = written = 0
    for row in range(M):
        for sweep in range(3):
            for start in range(0, N, 64):
                read += min(64, N - start) * itemsize
        read += 2 * N * itemsize
        written += N * itemsize + 4 + 4
    return read, written


def resident_forward(M, N, itemsize, ROWS):
    read = written = 0
    for first in range(0, M, ROWS):
        rows = min(ROWS, M - first)
        read += rows * N * itemsize + 2 * N * itemsize
        written += rows * (N * itemsize + 8)
    return read, written


def add_then_rms_norm(M, N, itemsize):
    read, written = add_rms_norm(M, N, itemsize)
    return read + M * N * itemsize, written


def add_rms_norm(M, N, itemsize):
    row = N * itemsize
    return sum(3 * row for _ in range(M)), sum(2 * row + 4 for _ in range(M))


def two_stage_backward(M, N, itemsize, rows_a_chunk, BLOCK_N):
    read = written = 0
    for row in range(M):
        read += 3 * N * itemsize + 8
        written += N * itemsize
    for start in range(0, N, BLOCK_N):
        cols = min(BLOCK_N, N - start)
        for first in range(0, M, rows_a_chunk):
            for row in range(first, min(first + rows_a_chunk, M)):
                read += 2 * cols * itemsize + 8
            written += 2 * cols * 4
            read += 2 * cols * 4
        written += 2 * cols * itemsize
    return read, written
