"""Check what a kernel promises about a value by ``tl.multiple_of``, ``tl.max_contiguous`` and
``tl.max_constancy``.

A compiler believes them: of a promise that is not kept it makes wider loads at wrong addresses. The
stock interpreter does nothing with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.interpreter.meaning import unwrap


class BrokenPromise(AssertionError):
    """Raised for a value that is not what the kernel promises."""


def check_hints() -> None:
    """Make a hint raise :class:`BrokenPromise` for a value that it does not hold for.

    Raises: AttributeError if this Triton's interpreter has no such hook.
    """
    from triton.runtime import interpreter

    stock_core = interpreter._patch_lang_core

    def check(name: str, take: Any, finds_breach: Any) -> Any:
        def hint(input: Any, values: Any) -> Any:
            input = take(input, values)
            handle = getattr(input, "handle", None)
            if handle is not None:
                _check(name, handle.data, values, finds_breach)
            return input

        return hint

    def _patch_lang_core(language: Any, scope: Any) -> None:
        stock_core(language, scope)
        for name, finds_breach in _BREACHES.items():
            scope.set_attr(language, name, check(name, getattr(language, name), finds_breach))

    interpreter._patch_lang_core = _patch_lang_core


def _check(name: str, data: np.ndarray, values: Any, finds_breach: Any) -> None:
    promised = [int(unwrap(v)) for v in (values if isinstance(values, Sequence) else [values])]
    for axis, count in enumerate(promised):
        lanes = np.moveaxis(data.reshape(data.shape or (1,)), axis, -1)
        if lanes.size and count > 1 and finds_breach(lanes, count):
            words = _(
                "tl.{name} promises {count}, and it does not hold: the values begin with {first}. A"
                " compiler believes it, and loads from wrong addresses"
            )
            raise BrokenPromise(
                words.format(name=name, count=count, first=", ".join(map(str, lanes.flat[:4])))
            )


def _is_no_multiple(lanes: np.ndarray, count: int) -> bool:
    """Return True unless the first value, with which a run of neighbours begins, is a multiple."""
    return bool((lanes[..., 0] % count).any())


def _split(lanes: np.ndarray, count: int) -> np.ndarray:
    """Return the lanes in groups of ``count``, or in one group if there are fewer."""
    count = min(count, lanes.shape[-1])
    groups = lanes.shape[-1] // count
    return lanes[..., : groups * count].reshape(*lanes.shape[:-1], groups, count)


def _is_no_run(lanes: np.ndarray, count: int) -> bool:
    groups = _split(lanes, count)
    return bool((groups[..., 1:] != groups[..., :-1] + 1).any())


def _is_not_constant(lanes: np.ndarray, count: int) -> bool:
    groups = _split(lanes, count)
    return bool((groups != groups[..., :1]).any())


_BREACHES = {
    "multiple_of": _is_no_multiple,
    "max_contiguous": _is_no_run,
    "max_constancy": _is_not_constant,
}
