"""Exercise 04b: Chan's merge of two partial statistics.

Some numbers a are known by how many they are, n_a, their mean, mean_a, and M2_a, the sum of their squared deviations from
that mean; other numbers b likewise. merge returns n, mean and M2 of all of them together, from these six alone.

All six are fp32 arrays of shape (K,): K merges at once. Counts are whole numbers that fp32 holds exactly. Of no numbers at
all n, mean and M2 are 0, and so they must be after two such are merged. Return (n, mean, M2), fp32 of shape (K,), and leave
the inputs as they are.

Check with the panel in lesson 04, or with `course check 04b` in a terminal.
"""

import numpy as np


def merge(
    n_a: np.ndarray, mean_a: np.ndarray, M2_a: np.ndarray, n_b: np.ndarray, mean_b: np.ndarray, M2_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # BEGIN SOLUTION
    #: The count, and b's share of it. What is the share if both are empty?
    n = n_a + n_b
    share = n_b / np.maximum(n, 1)
    # END SOLUTION
    # BEGIN SOLUTION
    #: The mean. Where between mean_a and mean_b does it lie?
    difference = mean_b - mean_a
    mean = mean_a + difference * share
    # END SOLUTION
    # BEGIN SOLUTION
    #: M2. What is missing in M2_a + M2_b?
    M2 = M2_a + M2_b + difference * difference * n_a * share
    # END SOLUTION
    return n, mean, M2
