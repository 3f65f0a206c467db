"""Keeps Triton 3.6's interpreter working with NumPy 2.5, which no longer turns a block of one element into an int.

A kernel's loop bound is such a block: without this, every ``for start in range(0, N, BLOCK)`` raises. Triton 3.7 does it
itself.
"""

from __future__ import annotations


def let_one_element_be_an_index() -> None:
    """Make one-element blocks usable as loop bounds, whatever the NumPy.

    Raises: AttributeError if this Triton's interpreter has no such hook.
    """
    from triton.runtime import interpreter

    stock = interpreter._patch_lang_tensor

    def _patch_lang_tensor(tensor, scope):
        stock(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
        # a rewritten kernel asks for no tensor's truth; Triton's own Python means "is there one?", as in `if other`
        scope.set_attr(tensor, "__bool__", lambda self: True)

    interpreter._patch_lang_tensor = _patch_lang_tensor
