"""PyTorch for a browser tab: the names that the lessons' cells and the course's modules need, on
NumPy's arrays.

The set of names is closed. The functions here give PyTorch's results; any other name raises an
error which says that it needs PyTorch.
"""

from . import _definitions, _functions, _refusal
from ._dtypes import DTYPES, dtype, finfo
from ._functions import (
    allclose,
    arange,
    as_strided,
    count_nonzero,
    empty,
    empty_like,
    equal,
    from_numpy,
    full,
    full_like,
    no_grad,
    ones,
    rand,
    randint,
    randn,
    randperm,
    tensor,
    where,
    zeros,
    zeros_like,
)
from ._random import Generator
from ._tensor import OPERATIONS, Size, Tensor, UntypedStorage, contiguous_format, device

inf, nan = float("inf"), float("nan")
globals().update(DTYPES)
globals().update(OPERATIONS)

functional = _refusal.Submodule(
    "nn.functional",
    layer_norm=_functions.layer_norm,
    pad=_functions.pad,
    rms_norm=_functions.rms_norm,
)
nn = _refusal.Submodule(
    "nn",
    functional=functional,
    LayerNorm=_definitions.LayerNorm,
    Module=_definitions.Module,
    Parameter=_definitions.Parameter,
    RMSNorm=_definitions.RMSNorm,
)
function = _refusal.Submodule(
    "autograd.function", once_differentiable=_definitions.once_differentiable
)
_refusal.Submodule(
    "autograd.gradcheck",
    GradcheckError=_definitions.GradcheckError,
    gradcheck=_definitions.gradcheck,
)
autograd = _refusal.Submodule(
    "autograd",
    Function=_definitions.Function,
    forward_ad=_refusal.Submodule("autograd.forward_ad", _current_level=-1),
    function=function,
    gradcheck=_definitions.gradcheck,
)
library = _refusal.Submodule("library", custom_op=_definitions.custom_op)
compiler = _refusal.Submodule("compiler", is_compiling=lambda: False)
_C = _refusal.Submodule(
    "_C", _are_functorch_transforms_active=lambda: False, _len_torch_dispatch_stack=lambda: 0
)
del functional, function

__all__ = [
    "Generator", "Size", "Tensor", "UntypedStorage", "allclose", "arange", "as_strided", "autograd",
    "compiler",
    "contiguous_format", "count_nonzero", "device", "dtype", "empty", "empty_like", "equal",
    "finfo", "from_numpy",
    "full", "full_like", "inf", "library", "nan", "nn", "no_grad", "ones", "rand", "randint",
    "randn", "randperm",
    "tensor", "where", "zeros", "zeros_like",
]  # fmt: skip
del DTYPES, OPERATIONS


def __getattr__(name: str) -> object:
    raise _refusal.NeedsPyTorch(f"torch.{name}")
