"""Keep Triton 3.6's interpreter working with NumPy 2.5, which no longer converts a block of one
element to an int.

The loop bound of a kernel is such a block. Without this change every ``for start in range(0, N,
BLOCK)`` raises. Triton 3.7 needs no such change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


def let_one_element_be_an_index() -> None:
    """Make one-element blocks usable as loop bounds with every version of NumPy.

    Raises: AttributeError if this Triton's interpreter has no such hook.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    stock = interpreter._patch_lang_tensor
    # The stock interpreter does not patch x.exp(), x.sqrt() and similar methods. They need the
    # semantics of the launch.
    methods = [
        (name, _bind_semantic(method, interpreter.interpreter_semantic))
        for name, method in vars(tl.tensor).items()
        if isinstance(method, FunctionType)
        and not tl.core.is_builtin(method)
        and not name.startswith("_")
        and "_semantic" in inspect.signature(method).parameters
    ]

    def _patch_lang_tensor(tensor, scope):
        stock(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
        # A rewritten kernel never uses the truth of a tensor. Triton's own code uses it only to
        # test for None, as in `if other`.
        scope.set_attr(tensor, "__bool__", lambda self: True)
        for name, method in methods:
            scope.set_attr(tensor, name, method)

    interpreter._patch_lang_tensor = _patch_lang_tensor


def _bind_semantic(method: Callable, semantic: Any) -> Callable:
    return lambda *arguments, **named: method(*arguments, **named, _semantic=semantic)
