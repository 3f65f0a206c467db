"""Give the arguments of a kernel the types that Triton's launcher gives them.

The stock interpreter keeps a float argument as a Python number, which takes the type of the other
operand: half precision times ``eps`` stays half precision, where a GPU makes it fp32. The stock
interpreter refuses a bool argument, and leaves a tuple one of Python's, not of Triton's.
"""

from __future__ import annotations

import numpy as np


def type_numbers() -> None:
    """Make a float argument an fp32 tensor, a bool an int1 one and a tuple one of Triton's.

    Raises: AttributeError if this Triton's interpreter converts its arguments in another way.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    stock = interpreter._implicit_cvt

    def _implicit_cvt(argument):
        if isinstance(argument, (bool, np.bool_)):
            return tl.tensor(
                interpreter.TensorHandle(np.array([argument], np.bool_), tl.int1), tl.int1
            )
        if isinstance(argument, float):
            return tl.tensor(
                interpreter.TensorHandle(np.array([argument], np.float32), tl.float32), tl.float32
            )
        if type(argument) is tuple:  # as in a compiled kernel
            return tl.tuple([_implicit_cvt(one) for one in argument])
        return stock(argument)

    interpreter._implicit_cvt = _implicit_cvt
