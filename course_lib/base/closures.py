"""The values that a function takes from the functions around it."""

from __future__ import annotations

import contextlib
from types import FunctionType
from typing import Any


def read_closure(function: FunctionType) -> dict[str, Any]:
    """Return the values of the function's free variables by name, without those to which nothing
    has been assigned yet."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # raised by an empty cell
            values[name] = cell.cell_contents
    return values
