"""A launch for each block, looked up; rows are halved where there are few."""

LAUNCHES = {128: (16, 2), 256: (8, 2), 512: (4, 2), 1024: (4, 4), 2048: (2, 4), 4096: (1, 8), 8192: (1, 8), 16384: (1, 16)}


def choose_launch(M, N, itemsize):
    BLOCK = next(block for block in LAUNCHES if block >= N)
    ROWS, num_warps = LAUNCHES[BLOCK]
    while ROWS > 1 and -(-M // ROWS) < 132:
        ROWS //= 2
        num_warps = max(1, num_warps // 2)
    return ROWS, BLOCK, num_warps
