"""torch.Generator and PyTorch's random numbers: the Mersenne Twister of its CPU generator, and the
numbers that are made from its words.

Source: ATen/core/MT19937RNGEngine.h, ATen/core/DistributionsHelper.h and
ATen/native/cpu/DistributionTemplates.h of PyTorch.
"""

from __future__ import annotations

import os

import numpy as np

_DEFAULT_SEED = 67280421310721  # the seed of a generator before its first manual_seed
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
        """Return the next ``count`` words of 32 bits, as uint64."""
        return self._engine.randint(0, 2**32, count, dtype=np.uint32).astype(np.uint64)

    def long_words(self, count: int) -> np.ndarray:
        """Return the next ``count`` words of 64 bits."""
        high, low = self.words(2 * count).reshape(count, 2).T
        return (high << np.uint64(32)) | low

    def uniform(self, count: int, kind: np.dtype) -> np.ndarray:
        """Return ``count`` numbers from 0 up to 1, float32 or float64."""
        if kind == np.float32:
            return (self.words(count) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(
                2**-24
            )
        return (self.long_words(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53

    def normal(self, count: int, kind: np.dtype) -> np.ndarray:
        """Return ``count`` normal numbers, float32 or float64."""
        if count < _BLOCK:
            return np.array([self._next_normal() for _ in range(count)], np.float64).astype(kind)
        numbers = self.uniform(count, kind)
        whole = count // _BLOCK * _BLOCK
        numbers[:whole] = _make_normal(numbers[:whole])
        # PyTorch draws the last sixteen numbers anew, which include some of the last whole block
        if whole < count:
            numbers[-_BLOCK:] = _make_normal(self.uniform(_BLOCK, kind))
        return numbers

    def _next_normal(self) -> float:
        """Return one normal number. Numbers are made in pairs; the second of a pair is kept for the
        next call."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        angle, below_one = self.uniform(2, np.dtype(np.float64))
        radius, angle = np.sqrt(-2 * np.log1p(-below_one)), 2 * np.pi * angle
        self._spare = radius * np.sin(angle)
        return radius * np.cos(angle)

    def integers(self, low: int, high: int, count: int) -> np.ndarray:
        """Return ``count`` integers from ``low`` up to ``high`` without it, int64."""
        span = np.uint64(high - low)
        words = self.words(count) if high - low < 2**28 else self.long_words(count)
        return (words % span).astype(np.int64) + low

    def permutation(self, count: int) -> np.ndarray:
        """Return the numbers from 0 to ``count`` - 1 in a random order, int64."""
        order = np.arange(count)
        for at, word in enumerate(self.words(max(count - 1, 0)).tolist()):
            swapped = at + word % (count - at)
            order[[at, swapped]] = order[[swapped, at]]
        return order


def _make_normal(uniform: np.ndarray) -> np.ndarray:
    """Turn uniform numbers into normal ones by Box and Muller's transform. Their count is a
    multiple of 16."""
    below_one, turns = uniform.reshape(-1, 2, _BLOCK // 2).transpose(1, 0, 2)
    angle = turns * uniform.dtype.type(2 * np.pi)
    if uniform.dtype == np.float32:
        logarithm, (sine, cosine) = _log(1 - below_one), _sine_and_cosine(angle)
    else:
        logarithm, sine, cosine = np.log(1 - below_one), np.sin(angle), np.cos(angle)
    radius = np.sqrt(-2 * logarithm)
    return np.stack([radius * cosine, radius * sine], axis=1).reshape(-1)


# ---- logarithm, sine and cosine in fp32, with the roundings of PyTorch's kernel for AVX2 and
# AVX-512: Cephes' polynomials
# Source: aten/src/ATen/native/cpu/avx_mathfun.h of PyTorch; its compiler fuses a multiplication and
# the addition after it.

_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
# -pi / 4 in three parts
_QUARTER_TURN = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)


def _fuse(a: np.ndarray, b: np.ndarray | float, c: np.ndarray | float) -> np.ndarray:
    """Return a * b + c in fp32, rounded once: fp64 holds a product of two fp32 numbers exactly."""
    wide = np.float32(b).astype(np.float64) * a + np.float32(c)
    return wide.astype(np.float32)


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = _fuse(total, x, coefficient)
    return total


def _log(x: np.ndarray) -> np.ndarray:
    fraction, exponent = np.frexp(x)
    small = fraction < np.float32(0.5**0.5)
    exponent = (exponent - small).astype(np.float32)
    x = np.where(small, fraction - 1 + fraction, fraction - 1)
    square = x * x
    y = _fuse(_polynomial(_LOG, x) * x, square, exponent * np.float32(-2.12194440e-4))
    return _fuse(exponent, 0.693359375, x + (y - square * np.float32(0.5)))


def _sine_and_cosine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    octant = ((x * np.float32(4 / np.pi)).astype(np.int32) + 1) & ~1
    for part in _QUARTER_TURN:
        x = _fuse(octant.astype(np.float32), part, x)
    square = x * x
    cosine = _fuse(_polynomial(_COSINE, square) * square, square, square * np.float32(-0.5)) + 1
    sine = _fuse(_polynomial(_SINE, square) * square, x, x)
    swapped = (octant & 2) != 0
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    return np.where(octant & 4, -sine, sine), np.where((octant + 2) & 4, -cosine, cosine)


# the generator of calls without one, as in torch.randn(3)
default = Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
