"""Names under which a file knows Triton's language: the compiler takes any, Triton's interpreter only some."""

from __future__ import annotations

import types
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction


def make_interpretable(module: types.ModuleType) -> None:
    """Triton's interpreter replaces the operations in ``tl`` at each launch, and takes constexpr for one by its spelling: make it see
    an operation imported by its own name, and ``T.constexpr``, as the compiler does."""
    for name, value in list(vars(module).items()):
        if isinstance(value, InterpretedFunction):
            spelt = {argument: str(kind) for argument, kind in value.fn.__annotations__.items()}
            odd = [a for a, kind in spelt.items() if kind.endswith(".constexpr") and kind != "tl.constexpr"]
            if odd or any(kind is tl.constexpr for kind in value.fn.__annotations__.values()):
                value.rewrite().__annotations__ = value.fn.__annotations__ | dict.fromkeys(odd, "constexpr")
        elif tl.core.is_builtin(value) and getattr(tl, value.__name__, None) is value:
            setattr(module, name, _Forwarded(value.__name__))


class _Forwarded:
    """An operation of ``tl``, whatever stands there when it is called."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(tl, self.name)(*arguments, **named)
