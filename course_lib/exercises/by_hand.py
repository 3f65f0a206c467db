"""Small whole numbers for the cases that a person works out by hand (``Case.by_hand``): any two in
a row or column of a tensor differ."""

from __future__ import annotations

import numpy as np

# The numbers of a row, by its length. For 2, 4 and 6 numbers the mean is 4 and the standard
# deviation 3; for 5 numbers the mean is 3 and the standard deviation 4. The root of the mean square
# is 5 in all of these. Three whole numbers cannot have a whole standard deviation.
_ROWS = {
    1: (4,),
    2: (1, 7),
    3: (1, 2, 6),
    4: (5, -1, 7, 5),
    5: (4, -4, 8, 2, 5),
    6: (1, 2, 2, 4, 5, 10),
}


def choose_rows(M: int, N: int) -> np.ndarray:
    """Return x, (M, N): rows of the same few numbers; every other row has them doubled and in
    reverse order."""
    row = np.resize(_ROWS.get(N, _ROWS[6]), N).astype(np.float64)
    rows = [np.roll(2 * row[::-1] if r % 2 else row, r // 2) for r in range(M)]
    return np.stack(rows) if rows else np.zeros((0, N))


def choose_weights(N: int) -> np.ndarray:
    """Return w, (N,): 2, -3, 4, -5, ..., neither 0 nor 1."""
    return (np.arange(N) + 2.0) * (-1.0) ** np.arange(N)


def choose_shifts(N: int) -> np.ndarray:
    """Return b, (N,): 1, 2, 3, ..."""
    return np.arange(N) + 1.0


def choose_gradient(M: int, N: int) -> np.ndarray:
    """Return dy, (M, N), from 1 to 5."""
    return (2.0 * np.arange(N) + np.arange(M)[:, None]) % 5 + 1


def choose_residual(M: int, N: int) -> np.ndarray:
    """Return the residual, (M, N), from 1 to 3."""
    return (np.arange(N) + np.arange(M)[:, None]) % 3 + 1.0


def choose_sums(P: int, N: int, offset: int) -> np.ndarray:
    """Return partial sums, (P, N), from 1 to 7; ``offset`` makes those of two tensors differ."""
    return (offset + 3.0 * np.arange(P)[:, None] + 2.0 * np.arange(N)) % 7 + 1
