"""Python's floats, which are exact for whole numbers of this size, and lists."""

import math


class Account:
    def __init__(self):
        self.read = self.written = 0.0

    def move(self, read=0, written=0, size=4):
        self.read += read * size
        self.written += written * size
        return self

    def close(self):
        return [self.read, self.written]


def blocked_forward(M, N, itemsize):
    return Account().move(read=5 * M * N, written=M * N, size=itemsize).move(written=2 * M).close()


def resident_forward(M, N, itemsize, ROWS):
    programs = math.ceil(M / ROWS)
    return Account().move(M * N + 2 * programs * N, M * N, itemsize).move(written=2 * M).close()


def add_then_rms_norm(M, N, itemsize):
    account = Account().move(2 * M * N, M * N, itemsize)
    return account.move(2 * M * N, M * N, itemsize).move(written=M).close()


def add_rms_norm(M, N, itemsize):
    return Account().move(3 * M * N, 2 * M * N, itemsize).move(written=M).close()


def two_stage_backward(M, N, itemsize, rows_a_chunk, BLOCK_N):
    chunks, blocks = math.ceil(M / rows_a_chunk), math.ceil(N / BLOCK_N)
    account = Account().move(3 * M * N, M * N, itemsize).move(2 * M)
    account.move(2 * M * N, 0, itemsize).move(2 * M * blocks, 2 * chunks * N)
    return account.move(2 * chunks * N).move(0, 2 * N, itemsize).close()
