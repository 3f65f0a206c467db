"""Optional task 04c: many partial statistics become one, in as few steps as a tree has levels.

K groups of numbers are known by how many they are, n, their mean, and M2, the sum of their squared deviations from that mean: three fp32
arrays of shape (K,).

merge(n_a, mean_a, M2_a, n_b, mean_b, M2_b): as in 04b. It merges as many pairs as the arrays are long, and returns (n, mean, M2).

merge_all(n, mean, M2): K is 1 or more, and need not be a power of two. It returns (n, mean, M2) of all groups together, one fp32 number each,
and may call merge, or a copy of it, at most ceil(log2(K)) times: ten times for K = 1024, and for K = 1000 too. Groups of no numbers have n, mean and M2 of 0, and any or
all of them may be empty. Counts are whole numbers, and fp32 holds their sum exactly. A NaN in a mean reaches the mean of all. Means may be
10000 times as large as the spread. Leave the inputs as they are.

Check with the panel in lesson 04, or with `course check 04c` in a terminal.
"""

import numpy as np


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # BEGIN SOLUTION
    #:
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    M2 = M2_a + M2_b + difference * difference * n_a * share
    return n, mean, M2
    # END SOLUTION


def merge_all(n: np.ndarray, mean: np.ndarray, M2: np.ndarray) -> tuple[np.float32, np.float32, np.float32]:
    # BEGIN SOLUTION
    #:
    groups = np.stack([n, mean, M2])
    while groups.shape[1] > 1:
        half = groups.shape[1] // 2
        left, right, rest = groups[:, :half], groups[:, half : 2 * half], groups[:, 2 * half :]
        merged = np.stack(merge(*left, *right))
        groups = np.concatenate([merged, rest], axis=1)
    return groups[0, 0], groups[1, 0], groups[2, 0]
    # END SOLUTION
