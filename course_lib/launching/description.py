"""A launch as typed data: the kernel's name, the grid, the tensors in one block of memory, and the
arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Element 0 of a tensor lies at a multiple of this many bytes, like that of a new tensor of PyTorch.
ALIGNMENT = 64


@dataclass(frozen=True)
class LaunchTensor:
    """A tensor of a launch. ``start``: bytes from the beginning of the launch's memory to element
    0; ``strides`` are in elements.

    A ``far`` tensor spans more memory than it uses. In the launch's memory its elements have the
    ``packed_strides``; where the kernel runs, they are laid ``strides`` apart.
    """

    name: str
    dtype: str  # "fp16", "int64"
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int
    far: bool = False
    packed_strides: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Launch:
    """A launch of the kernel ``entry_point``.

    ``arguments`` are in the kernel's order: a text is the name of a tensor, anything else a value.
    ``constexprs`` are by name. ``sample``: the programs of a one-dimensional grid that run in the
    interpreter; empty means all programs.
    """

    entry_point: str
    grid: tuple[int, ...]
    tensors: tuple[LaunchTensor, ...]
    arguments: tuple[Any, ...]
    constexprs: dict[str, Any]
    sample: tuple[int, ...] = ()

    def fill_in(self, tensors: Mapping[str, Any]) -> list[Any]:
        """Return the arguments with ``tensors``, given by name, in the places of their names."""
        return [tensors[value] if isinstance(value, str) else value for value in self.arguments]
