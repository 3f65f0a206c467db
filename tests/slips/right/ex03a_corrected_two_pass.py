"""two_pass with the correction of Chan, Golub and LeVeque."""

import numpy as np


def one_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x.astype(np.float32)
    mean = np.mean(x, axis=1)
    mean_square = np.mean(x * x, axis=1)
    var = np.maximum(mean_square - mean * mean, 0)
    return mean, var


def two_pass(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x.astype(np.float32)
    mean = np.mean(x, axis=1)
    deviation = x - mean[:, None]
    left = np.mean(deviation, axis=1)  # what the rounding of the mean left
    var = np.maximum(np.mean(deviation * deviation, axis=1) - left * left, np.float32(0))
    return mean, var
