"""Make names of Triton's language work that the compiler accepts and Triton's interpreter does
not."""

from __future__ import annotations

import types
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction


def make_interpretable(module: types.ModuleType) -> None:
    """Let the interpreter recognise an operation that is imported by its own name, and
    ``T.constexpr``, as the compiler does.

    The stock interpreter replaces operations only as attributes of ``tl``, and recognises constexpr
    only by its spelling.
    """
    for name, value in list(vars(module).items()):
        if isinstance(value, InterpretedFunction):
            spelt = {argument: str(kind) for argument, kind in value.fn.__annotations__.items()}
            odd = [
                a
                for a, kind in spelt.items()
                if kind.endswith(".constexpr") and kind != "tl.constexpr"
            ]
            if odd or any(kind is tl.constexpr for kind in value.fn.__annotations__.values()):
                value.rewrite().__annotations__ = value.fn.__annotations__ | dict.fromkeys(
                    odd, "constexpr"
                )
        elif tl.core.is_builtin(value) and getattr(tl, value.__name__, None) is value:
            setattr(module, name, _Forwarded(value.__name__))


class _Forwarded:
    """Calls the operation that stands in ``tl`` at the time of the call."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(tl, self.name)(*arguments, **named)
