"""One helper for the mean of rows; keepdims and squeeze."""

import numpy as np


def row_mean(x, keepdims=False):
    return np.mean(x, axis=-1, dtype=np.float32, keepdims=keepdims)


def one_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=np.float32)
    mean = row_mean(x)
    return mean, np.clip(row_mean(np.square(x)) - np.square(mean), 0, None)


def two_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=np.float32)
    mean = row_mean(x, keepdims=True)
    return np.squeeze(mean, axis=1), row_mean((x - mean) ** 2)
