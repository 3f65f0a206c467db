"""The smallest distance that there is, at a large mean; sums by einsum; the shift as a column that is broadcast."""

import numpy as np


def shifted_one_pass(x):
    wide = np.asarray(x, dtype=np.float32)
    shift = np.repeat(wide[:, 0], wide.shape[1]).reshape(wide.shape)
    d = wide - shift
    scale = np.float32(1) / np.float32(d.shape[1])
    mean = d.sum(axis=1) * scale
    return shift[:, 0] + mean, np.einsum("mn,mn->m", d, d) * scale - np.square(mean)


def defeating_row(N):
    row = np.full((N,), 100000, dtype=np.float32)
    row[0] = np.nextafter(row[1], np.float32(np.inf))
    return row
