"""Compute CUDA's mathematical functions (``triton.language.extra.libdevice``) in CPU mode, by
NumPy.

The stock interpreter returns None for them, or raises. Triton's own table says which dtypes a
function takes. The functions here are found by the symbol that the compiler would link. A symbol
without a function here is refused in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.interpreter.meaning import NotInCpuMode
from course_lib.interpreter.operations import fuse


def _each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    return np.vectorize(function, otypes=[np.float64])


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    # raised at 0, at the negative whole numbers and at -inf; at 0 the pole has the sign of the 0
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


_FLOATS: dict[str, Callable[..., np.ndarray]] = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "fabs": np.fabs,
    "cbrt": np.cbrt, "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "copysign": np.copysign,
    "hypot": np.hypot,
    "fmin": np.fmin, "fmax": np.fmax, "nextafter": np.nextafter,
    "rsqrt": lambda x: 1 / np.sqrt(x), "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp10": lambda x: np.power(10.0, x),
    "round": lambda x: np.copysign(np.floor(np.fabs(x) + (np.fabs(x) % 1 >= 0.5) - np.fabs(x) % 1),
        x),
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "erf": _each(math.erf), "erfc": _each(math.erfc), "tgamma": _each(_gamma),
    "lgamma": _each(_log_gamma),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x - y), np.nan, 0.0)),
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "fdivide": np.divide, "ldexp": np.ldexp, "scalbn": np.ldexp, "powi": np.power,
    "llrint": np.rint, "rcp": lambda x: 1 / x, "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
}  # fmt: skip


def _count_zeros(x: np.ndarray) -> np.ndarray:
    width = 8 * x.dtype.itemsize
    return np.array(
        [width - int(value).bit_length() for value in x.view(f"u{x.dtype.itemsize}").flat]
    ).reshape(x.shape)


def _count_ones(x: np.ndarray) -> np.ndarray:
    return np.array(
        [int(value).bit_count() for value in x.view(f"u{x.dtype.itemsize}").flat]
    ).reshape(x.shape)


_EXACT: dict[str, Callable[..., np.ndarray]] = {
    "isnanf": np.isnan, "isnand": np.isnan, "isinff": np.isinf, "isinfd": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite, "signbitf": np.signbit, "signbitd": np.signbit,
    "abs": np.abs, "llabs": np.abs, "min": np.minimum, "max": np.maximum, "umin": np.minimum,
    "umax": np.maximum,
    "llmin": np.minimum, "llmax": np.maximum, "ullmin": np.minimum, "ullmax": np.maximum,
    "popc": _count_ones, "popcll": _count_ones, "clz": _count_zeros, "clzll": _count_zeros,
    "fma": fuse, "fmaf": fuse, "fma_rn": fuse, "fmaf_rn": fuse,
    "float_as_int": lambda x: x.view(np.int32), "int_as_float": lambda x: x.view(np.float32),
    "float_as_uint": lambda x: x.view(np.uint32), "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64),
}  # fmt: skip


def compute_libdevice() -> None:
    """Let the interpreter compute CUDA's functions.

    Raises: AttributeError or ImportError if this Triton has them elsewhere.
    """
    from triton.language.extra import libdevice as names
    from triton.language.extra.cuda import libdevice as functions
    from triton.runtime.interpreter import (
        InterpreterBuilder,
        TensorHandle,
        _get_np_dtype,
        interpreter_semantic,
    )

    getattr(InterpreterBuilder, "create_extern_elementwise")  # noqa: B009 - raises AttributeError if this Triton has no such function

    def create_extern_elementwise(self, library, path, symbol, arguments, returned, is_pure):
        kind = returned.scalar
        data = _find(symbol)(*(argument.data for argument in arguments))
        return TensorHandle(np.asarray(data).astype(_get_np_dtype(kind), copy=False), kind)

    setattr(InterpreterBuilder, "create_extern_elementwise", create_extern_elementwise)  # noqa: B010 - its type is another
    for name, function in list(vars(functions).items()):
        if (
            isinstance(function, FunctionType)
            and not name.startswith("_")
            and function.__module__ == functions.__name__
        ):
            bound = partial(_with_semantic, function, interpreter_semantic)
            setattr(functions, name, bound)
            if isinstance(getattr(names, name, None), FunctionType):
                setattr(names, name, bound)


def _with_semantic(
    function: Callable, semantic: Any, *arguments: Any, _semantic: Any = None, **named: Any
) -> Any:
    return function(*arguments, **named, _semantic=semantic)


def _find(symbol: str) -> Callable[..., np.ndarray]:
    """Return the function that computes the symbol ``__nv_...``.

    Raises: NotInCpuMode if there is none.
    """
    name = symbol.removeprefix("__nv_")
    if name in _EXACT:
        return _EXACT[name]
    plain = name.removeprefix("fast_")
    if plain.endswith("_rn"):  # fadd_rn, dadd_rn, fmaf_rn, ...: all functions here round to nearest
        plain = plain.removesuffix("_rn")
        plain = plain[1:] if plain[1:] in _FLOATS else plain
    for stem in (plain, plain.removesuffix("f")):
        if stem in _FLOATS:
            return _in_double(_FLOATS[stem])
    words = _(
        "CPU mode cannot run libdevice's {name}; a GPU can. Write it with functions of tl, or check"
        " it on a GPU"
    )
    raise NotInCpuMode(words.format(name=name))


def _in_double(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Compute fp32 in fp64 and round the result. No GPU is more accurate. Only nextafter depends on
    the dtype."""
    if function is np.nextafter:
        return function
    return lambda *data: function(
        *(part.astype(np.float64) if part.dtype.kind == "f" else part for part in data)
    )
