"""The text of a tensor, as PyTorch prints it."""

from __future__ import annotations

from typing import Any

import numpy as np

_DIGITS, _EDGE, _THRESHOLD, _WIDTH = 4, 3, 1000, 80  # PyTorch's print options
_INDENT = len("tensor(")


def tensor_text(values: np.ndarray, dtype: Any, *, default: bool) -> str:
    """Return the text of a tensor with these values. ``default``: the dtype is one that PyTorch
    does not print."""
    suffixes = [] if default and (values.size or values.dtype == np.float32) else [f"dtype={dtype}"]
    if values.size:
        summarised = values.size > _THRESHOLD
        body = _write(
            values, _Formatter(_edges(values) if summarised else values), _INDENT, summarised
        )
    else:
        body = "[]"
        if values.ndim != 1:
            suffixes.insert(0, f"size={tuple(values.shape)}")
    text = "tensor(" + body
    length = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if length + len(suffix) + 2 > _WIDTH:
            text, length = f"{text},\n{' ' * _INDENT}{suffix}", _INDENT + len(suffix)
        else:
            text, length = f"{text}, {suffix}", length + len(suffix) + 2
    return text + ")"


class _Formatter:
    """Writes single numbers, all with the same width."""

    def __init__(self, values: np.ndarray) -> None:
        self._pattern, self._dot = "{}", ""
        numbers = values.ravel()
        if values.dtype.kind == "f":
            numbers = numbers[np.isfinite(numbers) & (numbers != 0)].astype(np.float64)
            small, large = (
                (np.abs(numbers).min(), np.abs(numbers).max()) if numbers.size else (1.0, 1.0)
            )
            whole = bool((numbers == np.ceil(numbers)).all())
            if large / small > 1000 or large > 1e8 or (small < 1e-4 and not whole):
                self._pattern = f"{{:.{_DIGITS}e}}"
            else:
                self._pattern, self._dot = ("{:.0f}", ".") if whole else (f"{{:.{_DIGITS}f}}", "")
        self.width = max([1, *(len(self._bare(value)) for value in numbers.tolist())])

    def _bare(self, value: float) -> str:
        return self._pattern.format(value) + (self._dot if np.isfinite(value) else "")

    def __call__(self, value: float) -> str:
        return self._bare(value).rjust(self.width)


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the first and last elements of each long dimension. PyTorch prints only these of a
    long tensor."""
    for axis, size in enumerate(values.shape):
        if size > 2 * _EDGE:
            values = values.take([*range(_EDGE), *range(size - _EDGE, size)], axis)
    return values


def _write(values: np.ndarray, write: _Formatter, indent: int, summarised: bool) -> str:
    if not values.ndim:
        return write(values.item())
    cut = summarised and len(values) > 2 * _EDGE
    parts_shown = [*values[:_EDGE], ..., *values[-_EDGE:]] if cut else list(values)
    if values.ndim > 1:
        parts = [
            "..." if part is ... else _write(part, write, indent + 1, summarised)
            for part in parts_shown
        ]
        return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"
    words = [" ..." if value is ... else write(value.item()) for value in parts_shown]
    in_line = max(1, (_WIDTH - indent) // (write.width + 2))
    lines = [", ".join(words[at : at + in_line]) for at in range(0, len(words), in_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
