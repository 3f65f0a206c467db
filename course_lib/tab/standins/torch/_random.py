"""torch.Generator and PyTorch's random numbers: the Mersenne Twister of its CPU generator, and what is made of its words.

Source: ATen/core/MT19937RNGEngine.h, ATen/core/DistributionsHelper.h and ATen/native/cpu/DistributionTemplates.h of PyTorch.
"""

from __future__ import annotations

import os

import numpy as np

_DEFAULT_SEED = 67280421310721  # of a generator that nobody has seeded
_BLOCK = 16  # normal numbers are made in blocks: eight radii and eight angles give sixteen


class Generator:
    """torch.Generator of the CPU."""

    def __init__(self, device: object = "cpu") -> None:
        self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        self._engine = np.random.RandomState(seed & 0xFFFFFFFF)
        self._spare: float | None = None
        return self

    def words(self, count: int) -> np.ndarray:
        """The next ``count`` words of 32 bits, as uint64."""
        return self._engine.randint(0, 2**32, count, dtype=np.uint32).astype(np.uint64)

    def long_words(self, count: int) -> np.ndarray:
        """The next ``count`` words of 64 bits."""
        high, low = self.words(2 * count).reshape(count, 2).T
        return (high << np.uint64(32)) | low

    def uniform(self, count: int, kind: np.dtype) -> np.ndarray:
        """``count`` numbers from 0 up to 1, float32 or float64."""
        if kind == np.float32:
            return (self.words(count) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2**-24)
        return (self.long_words(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53

    def normal(self, count: int, kind: np.dtype) -> np.ndarray:
        """``count`` normal numbers, float32 or float64."""
        if count < _BLOCK:
            return np.array([self._next_normal() for _ in range(count)], np.float64).astype(kind)
        made = self.uniform(count, kind)
        whole = count // _BLOCK * _BLOCK
        made[:whole] = _make_normal(made[:whole])
        if whole < count:  # the last sixteen are drawn anew; some of them belong to the last whole block
            made[-_BLOCK:] = _make_normal(self.uniform(_BLOCK, kind))
        return made

    def _next_normal(self) -> float:
        """One normal number. They are made in pairs, and the second waits for the next call."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        angle, below_one = self.uniform(2, np.dtype(np.float64))
        radius, angle = np.sqrt(-2 * np.log1p(-below_one)), 2 * np.pi * angle
        self._spare = radius * np.sin(angle)
        return radius * np.cos(angle)

    def integers(self, low: int, high: int, count: int) -> np.ndarray:
        """``count`` integers from ``low`` up to ``high`` without it, int64."""
        span = np.uint64(high - low)
        words = self.words(count) if high - low < 2**32 else self.long_words(count)
        return (words % span).astype(np.int64) + low

    def permutation(self, count: int) -> np.ndarray:
        """The numbers from 0 to ``count`` - 1 in a random order, int64."""
        order = np.arange(count)
        for at, word in enumerate(self.words(max(count - 1, 0)).tolist()):
            other = at + word % (count - at)
            order[[at, other]] = order[[other, at]]
        return order


def _make_normal(uniform: np.ndarray) -> np.ndarray:
    """Normal numbers out of uniform ones, whose count is a multiple of 16: Box and Muller's transform."""
    below_one, turns = uniform.reshape(-1, 2, _BLOCK // 2).transpose(1, 0, 2)
    radius = np.sqrt(-2 * np.log(1 - below_one))
    angle = turns * uniform.dtype.type(2 * np.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


default = Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))  # what torch.randn(3) draws from
