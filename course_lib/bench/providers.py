"""The providers that are timed, and their calls: the course's kernels, PyTorch eager and compiled,
and other installed libraries.

A provider is loaded again for every shape. For each operation that it has, it returns a function
from input values to a call without arguments. Only this call is timed, not the preparation (a
forward pass before a backward one, a cast that the library needs). If a library has its backward
pass only in an autograd function, the function's own ``forward`` and ``backward`` are called,
because autograd would add its host time, and its own stream, to a graph capture.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.base.errors import CourseError
from course_lib.base.installation import find_version
from course_lib.bench.operations import EPS, Values
from course_lib.kernels import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from course_lib.kernels.launch import tables
from course_lib.norms import functional

Call = Callable[[], tuple]
Prepare = Callable[[Values], Call]
# x, residual, w, b -> the operation's outputs
Plain = Callable[[Tensor, Tensor, Tensor, Tensor], tuple]


class ShapeRefused(Exception):
    """The provider does not take this shape."""


@dataclass(frozen=True)
class ProviderFunctions:
    """The functions of a provider, by operation.

    ``prepare`` makes the call to time. The others are for the host's time: ``eager`` is a forward
    operation through which autograd can differentiate, and ``both`` prepares a forward operation
    with its backward one, without autograd.
    """

    prepare: dict[str, Prepare]
    eager: dict[str, Plain] = field(default_factory=dict)
    both: dict[str, Prepare] = field(default_factory=dict)


@dataclass(frozen=True)
class Provider:
    """A provider. ``package`` is imported, ``distributions`` have the versions; ``refuses`` matches
    messages that decline a shape."""

    name: str
    load: Callable[[], ProviderFunctions]
    package: str = ""
    distributions: tuple[str, ...] = ()
    refuses: str = ""
    peer: bool = False  # the course's kernels should be as fast as this provider

    def installed(self) -> bool:
        return not self.package or importlib.util.find_spec(self.package) is not None

    def state(self, error: Exception) -> str:
        """Classify an exception: "refused", or "error" if it is unexpected."""
        return (
            "refused"
            if isinstance(error, ShapeRefused)
            or (self.refuses and re.search(self.refuses, str(error)))
            else "error"
        )


def _call_directly(
    functions: dict[str, Plain], prepared: dict[str, Prepare] | None = None
) -> ProviderFunctions:
    """Make ProviderFunctions from plain forward functions, which need no preparation, and from
    operations that need one."""

    def prepare_call(f: Plain) -> Prepare:
        return lambda v: lambda: f(v.x, v.residual, v.w, v.b)

    return ProviderFunctions(
        {op: prepare_call(f) for op, f in functions.items()} | (prepared or {}), functions
    )


# ---- the course's own ----------------------------------------------------------------------------


def _ours() -> ProviderFunctions:
    """The course's own choice: forward through the public functions, backward through the kernels'
    functions."""

    plain: dict[str, Plain] = {
        "layer_norm": lambda x, residual, w, b: (functional.layer_norm(x, w.shape, w, b, EPS),),
        "rms_norm": lambda x, residual, w, b: (functional.rms_norm(x, w.shape, w, EPS),),
        "add_rms_norm": lambda x, residual, w, b: functional.add_rms_norm(
            x, residual, w.shape, w, EPS
        )[::-1],
        "add_layer_norm": lambda x, residual, w, b: functional.add_layer_norm(
            x, residual, w.shape, w, b, EPS
        )[::-1],
    }
    return _call_directly(plain, _backward("auto"))


_FUSED: dict[str, Plain] = {
    "add_rms_norm": lambda x, residual, w, b: rms_norm.add_rms_norm_forward(x, residual, w, EPS),
    "add_layer_norm": lambda x, residual, w, b: layer_norm.add_layer_norm_forward(
        x, residual, w, b, EPS
    ),
}


def _kernels() -> ProviderFunctions:
    """The course's kernels without the operators around them, for the host's time."""
    forward: dict[str, Plain] = {
        "layer_norm": lambda x, residual, w, b: layer_norm.layer_norm_forward(x, w, b, EPS),
        "rms_norm": lambda x, residual, w, b: rms_norm.rms_norm_forward(x, w, EPS),
    }

    def layer(v: Values) -> Call:
        def call() -> tuple:
            y, mean, rstd = layer_norm.layer_norm_forward(v.x, v.w, v.b, EPS)
            return y, *layer_norm_backward.layer_norm_backward(v.dy, v.x, v.w, mean, rstd)

        return call

    def rms(v: Values) -> Call:
        def call() -> tuple:
            y, rstd = rms_norm.rms_norm_forward(v.x, v.w, EPS)
            return y, *rms_norm_backward.rms_norm_backward(v.dy, v.x, v.w, rstd)

        return call

    return ProviderFunctions(
        _call_directly(forward | _FUSED).prepare, both={"layer_norm": layer, "rms_norm": rms}
    )


def _backward(algorithm: str) -> dict[str, Prepare]:
    def layer(v: Values) -> Call:
        _, mean, rstd = layer_norm.layer_norm_forward(v.x, v.w, v.b, EPS)
        return lambda: layer_norm_backward.layer_norm_backward(
            v.dy, v.x, v.w, mean, rstd, algorithm=algorithm
        )

    def rms(v: Values) -> Call:
        _, rstd = rms_norm.rms_norm_forward(v.x, v.w, EPS)
        return lambda: rms_norm_backward.rms_norm_backward(
            v.dy, v.x, v.w, rstd, algorithm=algorithm
        )

    return {
        op: call
        for op, call, algorithms in (
            ("layer_norm_backward", layer, layer_norm_backward.ALGORITHMS),
            ("rms_norm_backward", rms, rms_norm_backward.ALGORITHMS),
        )
        if algorithm in algorithms
    }


def _forward_design(algorithm: str) -> Callable[[], ProviderFunctions]:
    return lambda: _call_directly(
        {
            "layer_norm": lambda x, residual, w, b: layer_norm.layer_norm_forward(
                x, w, b, EPS, algorithm=algorithm
            ),
            "rms_norm": lambda x, residual, w, b: rms_norm.rms_norm_forward(
                x, w, EPS, algorithm=algorithm
            ),
        },
        _backward(algorithm),
    )


def _resident() -> ProviderFunctions:
    def prepare_fused(fused: Plain) -> Prepare:
        def prepare(v: Values) -> Call:
            if v.x.shape[1] > tables.RESIDENT_LIMIT:
                raise ShapeRefused(
                    f"the addition stays with one program up to {tables.RESIDENT_LIMIT} columns"
                )
            return lambda: fused(v.x, v.residual, v.w, v.b)

        return prepare

    return ProviderFunctions(
        _forward_design("resident")().prepare | {op: prepare_fused(f) for op, f in _FUSED.items()}
    )


def _split() -> ProviderFunctions:
    """The design for long rows, forward and backward. It refuses shorter rows, which need no
    exchange between programs."""

    def refuse_short(prepare: Prepare, limit: int) -> Prepare:
        def call(v: Values) -> Call:
            if v.x.shape[1] <= limit:
                raise ShapeRefused(f"rows of up to {limit} columns stay with one program")
            return prepare(v)

        return call

    every = _forward_design("split")().prepare
    limits = {
        op: tables.PERSISTENT_LIMIT if op.endswith("backward") else tables.RESIDENT_LIMIT
        for op in every
    }
    return ProviderFunctions(
        {op: refuse_short(prepare, limits[op]) for op, prepare in every.items()}
    )


def _backward_design(algorithm: str) -> Callable[[], ProviderFunctions]:
    return lambda: ProviderFunctions(_backward(algorithm))


def _unfused() -> ProviderFunctions:
    """PyTorch's residual addition, then the course's kernel."""

    return _call_directly(
        {
            "add_rms_norm": lambda x, residual, w, b: (
                total := x + residual,
                *rms_norm.rms_norm_forward(total, w, EPS),
            ),
            "add_layer_norm": lambda x, residual, w, b: (
                total := x + residual,
                *layer_norm.layer_norm_forward(total, w, b, EPS),
            ),
        }
    )


# ---- PyTorch -------------------------------------------------------------------------------------


_TORCH: dict[str, Plain] = {
    "layer_norm": lambda x, residual, w, b: (F.layer_norm(x, w.shape, w, b, EPS),),
    "rms_norm": lambda x, residual, w, b: (F.rms_norm(x, w.shape, w, EPS),),
    "add_rms_norm": lambda x, residual, w, b: (
        total := x + residual,
        F.rms_norm(total, w.shape, w, EPS),
    ),
    "add_layer_norm": lambda x, residual, w, b: (
        total := x + residual,
        F.layer_norm(total, w.shape, w, b, EPS),
    ),
}


def _torch_layer_norm_backward(dy, x, mean, rstd, w, b):
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, w.shape, mean, rstd, w, b, [True, True, True]
    )


def _torch_rms_norm_backward(dy, x, rstd, w):
    return torch.ops.aten._fused_rms_norm_backward(dy, x, w.shape, rstd, w, [True, True])


def _torch(wrap: Callable[[Callable], Callable] = lambda f: f) -> ProviderFunctions:
    layer_backward, rms_backward = wrap(_torch_layer_norm_backward), wrap(_torch_rms_norm_backward)

    def layer(v: Values) -> Call:
        _, mean, rstd = torch.ops.aten.native_layer_norm(v.x, v.w.shape, v.w, v.b, EPS)
        return lambda: layer_backward(v.dy, v.x, mean, rstd, v.w, v.b)

    def rms(v: Values) -> Call:
        _, rstd = torch.ops.aten._fused_rms_norm(v.x, v.w.shape, v.w, EPS)
        return lambda: rms_backward(v.dy, v.x, rstd, v.w)

    return _call_directly(
        {op: wrap(f) for op, f in _TORCH.items()},
        {"layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _compile() -> ProviderFunctions:
    torch.compiler.reset()  # after eight shapes of one function PyTorch silently runs it eagerly
    return _torch(lambda f: torch.compile(f, dynamic=False))


# ---- other libraries -----------------------------------------------------------------------------


class SavedTensors:
    """A stand-in for an autograd function's ``ctx``, which keeps the tensors that the forward pass
    saves."""

    saved_tensors: tuple = ()

    def __init__(self, inputs: int):
        self.needs_input_grad = (True,) * inputs

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


def _call_backward_of(
    function: type[torch.autograd.Function], *arguments, dy: Tensor, outputs: int, **named
) -> Call:
    """Run an autograd function's forward pass, and return a call of its backward pass that returns
    the first ``outputs`` gradients."""
    saved = SavedTensors(len(arguments) + len(named))
    function.forward(saved, *arguments, **named)
    return lambda: function.backward(saved, dy)[:outputs]


def _liger() -> ProviderFunctions:
    # timed only where it is installed
    from liger_kernel.ops import (  # pyright: ignore[reportMissingImports]
        LigerFusedAddRMSNormFunction,
        LigerLayerNormFunction,
        LigerRMSNormFunction,
    )

    return _call_liger(LigerLayerNormFunction, LigerRMSNormFunction, LigerFusedAddRMSNormFunction)


def _liger_cutedsl() -> ProviderFunctions:
    """Liger's kernels in CUTLASS's Python language, which it takes instead of its Triton kernels
    where it is told to."""
    from liger_kernel.ops.backends._cutedsl import fused_add_rms_norm, layer_norm  # pyright: ignore[reportMissingImports] - timed only where it is installed
    from liger_kernel.ops.cutedsl.ops.rms_norm import LigerRMSNormFunction  # pyright: ignore[reportMissingImports] - timed only where it is installed

    return _call_liger(
        layer_norm._LigerLayerNormCuTeDSLFunction,
        LigerRMSNormFunction,
        fused_add_rms_norm._LigerFusedAddRMSNormCuTeDSLFunction,
    )


def _call_liger(
    layer_norm: type[torch.autograd.Function],
    rms_norm: type[torch.autograd.Function],
    add_rms_norm: type[torch.autograd.Function],
) -> ProviderFunctions:
    """Make ProviderFunctions from three autograd functions of Liger, which take the same arguments
    in Triton and in CUTLASS's language."""

    def layer(v: Values) -> Call:
        return _call_backward_of(layer_norm, v.x, v.w, v.b, EPS, dy=v.dy, outputs=3)

    def rms(v: Values) -> Call:
        # By default Liger writes dx over dy, so it gets a copy of dy, which other providers still
        # need.
        return _call_backward_of(
            rms_norm, v.x, v.w, EPS, 0.0, "llama", True, None, dy=v.dy.clone(), outputs=2
        )

    return _call_directly(
        {
            "layer_norm": lambda x, residual, w, b: (layer_norm.apply(x, w, b, EPS),),
            "rms_norm": lambda x, residual, w, b: (rms_norm.apply(x, w, EPS),),
            "add_rms_norm": lambda x, residual, w, b: add_rms_norm.apply(x, residual, w, EPS)[::-1],
        },
        {"layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _quack() -> ProviderFunctions:
    from quack.rmsnorm import layernorm_bwd, layernorm_fwd, rmsnorm, rmsnorm_bwd, rmsnorm_fwd  # pyright: ignore[reportMissingImports] - timed only where it is installed

    def layer_forward(v: Values) -> Call:
        # it takes only fp32 w and b, and a model that uses it stores them in fp32
        w, b = v.w.float(), v.b.float()
        return lambda: layernorm_fwd(v.x, w, b, eps=EPS, return_rstd=True, return_mean=True)

    def layer(v: Values) -> Call:
        w = v.w.float()
        _, rstd, mean = layernorm_fwd(
            v.x, w, v.b.float(), eps=EPS, return_rstd=True, return_mean=True
        )
        return lambda: layernorm_bwd(v.x, w, v.dy, rstd, mean)

    def rms(v: Values) -> Call:
        _, _, rstd = rmsnorm_fwd(v.x, v.w, eps=EPS, store_rstd=True)
        return lambda: rmsnorm_bwd(v.x, v.w, v.dy, rstd)[:2]

    return _call_directly(
        {
            "rms_norm": lambda x, residual, w, b: (rmsnorm(x, w, eps=EPS),),
            "add_rms_norm": lambda x, residual, w, b: rmsnorm(
                x, w, residual=residual, eps=EPS, prenorm=True
            )[::-1],
        },
        {"layer_norm": layer_forward, "layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _quack_tuned() -> ProviderFunctions:
    """quack's kernels as quack tunes them: its first call at a shape times hundreds of launches,
    which takes up to minutes."""
    from quack.rmsnorm import layernorm_fwd, rmsnorm_bwd_tuned, rmsnorm_fwd, rmsnorm_fwd_tuned  # pyright: ignore[reportMissingImports] - timed only where it is installed
    from quack.rmsnorm_config import get_sm_count  # pyright: ignore[reportMissingImports] - timed only where it is installed

    def rms_norm(x, residual, w, b):
        y = torch.empty_like(x)
        rmsnorm_fwd_tuned(x, w, y, eps=EPS)
        return (y,)

    def add_rms_norm(x, residual, w, b):
        total, y = torch.empty_like(x), torch.empty_like(x)
        rmsnorm_fwd_tuned(x, w, y, residual=residual, residual_out=total, eps=EPS)
        return total, y

    def layer_forward(v: Values) -> Call:
        w, b = v.w.float(), v.b.float()

        def call() -> tuple:
            y, (mean, rstd) = (
                torch.empty_like(v.x),
                v.x.new_empty(2, v.x.shape[0], dtype=torch.float32),
            )
            rmsnorm_fwd_tuned(v.x, w, y, bias=b, rstd=rstd, mean=mean, eps=EPS, is_layernorm=True)
            return y, rstd, mean

        return call

    def backward(v: Values, w: Tensor, rstd: Tensor, mean: Tensor | None = None) -> Call:
        def call() -> tuple:
            dx = torch.empty_like(v.x)
            # partial sums of dw and of db, as many as quack's untuned path takes
            sums = [
                w.new_empty(get_sm_count(w.numel(), w.device), w.numel(), dtype=torch.float32)
                for _ in range(1 if mean is None else 2)
            ]
            named = dict(zip(("dw_partial", "db_partial"), sums, strict=False))
            has_sums = {f"has_{name}": name in named for name in ("dw_partial", "db_partial")}
            rmsnorm_bwd_tuned(
                v.x,
                w,
                v.dy,
                rstd,
                dx,
                **named,
                **has_sums,
                mean=mean,
                is_layernorm=mean is not None,
            )
            return dx, *(partial.sum(0).to(w.dtype) for partial in sums)

        return call

    def layer(v: Values) -> Call:
        w = v.w.float()
        _, rstd, mean = layernorm_fwd(
            v.x, w, v.b.float(), eps=EPS, return_rstd=True, return_mean=True
        )
        return backward(v, w, rstd, mean)

    def rms(v: Values) -> Call:
        return backward(v, v.w, rmsnorm_fwd(v.x, v.w, eps=EPS, store_rstd=True)[2])

    return _call_directly(
        {"rms_norm": rms_norm, "add_rms_norm": add_rms_norm},
        {"layer_norm": layer_forward, "layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _flashinfer() -> ProviderFunctions:
    from flashinfer.norm import fused_add_rmsnorm, rmsnorm  # pyright: ignore[reportMissingImports] - timed only where it is installed

    def add_rms_norm(v: Values) -> Call:
        # it writes y over x, and the sum over the residual
        x, residual = v.x.clone(), v.residual.clone()

        def call() -> tuple:
            fused_add_rmsnorm(x, residual, v.w, EPS)
            return residual, x

        return call

    return _call_directly(
        {"rms_norm": lambda x, residual, w, b: (rmsnorm(x, w, EPS),)},
        {"add_rms_norm": add_rms_norm},
    )


def _cudnn() -> ProviderFunctions:
    from cudnn.ops.norm import layer_norm, rms_norm  # pyright: ignore[reportMissingImports] - timed only where it is installed

    def wide(rows: Tensor) -> Tensor:
        """Return rows x columns x 1 x 1, the shape that cuDNN's own operators take, w and b as one
        row."""
        return rows.reshape(-1, rows.shape[-1], 1, 1)

    def layer_forward(v: Values) -> Call:
        w, b = v.w.float(), v.b.float()  # its operator takes only fp32 w and b
        return lambda: (layer_norm(v.x, w.shape, w, b, EPS),)

    def layer(v: Values) -> Call:
        dy, x, w = wide(v.dy), wide(v.x), wide(v.w.float())
        _, mean, rstd = torch.ops.cudnn.layernorm(x, w, wide(v.b.float()), EPS)

        def call() -> tuple:
            dx, dw, db = torch.ops.cudnn.layernorm_bwd(dy, x, w, mean, rstd)
            return dx.view_as(v.x), dw.view_as(v.w), db.view_as(v.b)

        return call

    def rms(v: Values) -> Call:
        dy, x, w = wide(v.dy), wide(v.x), wide(v.w)
        _, rstd = torch.ops.cudnn.rmsnorm(x, w, EPS)

        def call() -> tuple:
            dx, dw, _ = torch.ops.cudnn.rmsnorm_bwd(dy, x, w, rstd)
            return dx.view_as(v.x), dw.view_as(v.w)

        return call

    return _call_directly(
        {"rms_norm": lambda x, residual, w, b: (rms_norm(x, w, eps=EPS),)},
        {"layer_norm": layer_forward, "layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _apex() -> ProviderFunctions:
    # timed only where it is installed
    from apex.normalization.fused_layer_norm import (  # pyright: ignore[reportMissingImports]
        FusedLayerNormAffineFunction,
        FusedRMSNormAffineFunction,
    )

    def layer(v: Values) -> Call:
        return _call_backward_of(
            FusedLayerNormAffineFunction, v.x, v.w, v.b, v.w.shape, EPS, dy=v.dy, outputs=3
        )

    def rms(v: Values) -> Call:
        return _call_backward_of(
            FusedRMSNormAffineFunction, v.x, v.w, v.w.shape, EPS, dy=v.dy, outputs=2
        )

    return _call_directly(
        {
            "layer_norm": lambda x, residual, w, b: (
                FusedLayerNormAffineFunction.apply(x, w, b, w.shape, EPS),
            ),
            "rms_norm": lambda x, residual, w, b: (
                FusedRMSNormAffineFunction.apply(x, w, w.shape, EPS),
            ),
        },
        {"layer_norm_backward": layer, "rms_norm_backward": rms},
    )


def _flash_attn() -> ProviderFunctions:
    from flash_attn.ops.triton.layer_norm import LayerNormFn, layer_norm_fn, rms_norm_fn  # pyright: ignore[reportMissingImports] - timed only where it is installed

    def backward(v: Values, b: Tensor | None, is_rms_norm: bool, outputs: int) -> Call:
        # by name, because the positions differ between versions
        return _call_backward_of(
            LayerNormFn, v.x, v.w, b, dy=v.dy, outputs=outputs, eps=EPS, is_rms_norm=is_rms_norm
        )

    return _call_directly(
        {
            "layer_norm": lambda x, residual, w, b: (layer_norm_fn(x, w, b, eps=EPS),),
            "rms_norm": lambda x, residual, w, b: (rms_norm_fn(x, w, None, eps=EPS),),
            "add_rms_norm": lambda x, residual, w, b: rms_norm_fn(
                x, w, None, residual=residual, eps=EPS, prenorm=True
            )[::-1],
            "add_layer_norm": lambda x, residual, w, b: layer_norm_fn(
                x, w, b, residual=residual, eps=EPS, prenorm=True
            )[::-1],
        },
        {
            "layer_norm_backward": lambda v: backward(v, v.b, False, 3),
            "rms_norm_backward": lambda v: backward(v, None, True, 2),
        },
    )


# ---- all of them ---------------------------------------------------------------------------------

# if a kernel of the course does not take a row, its message names the kernel that does
_ELSEWHERE = "; use "
_CUTE = "nvidia-cutlass-dsl"  # the compiler of kernels in CUTLASS's Python language
_LIGER_REFUSES = (
    "Cannot launch Triton kernel|support feature dim|supported size|only supports hidden dim"
)
_QUACK_REFUSES = "does not support N|is not divisible by vector size|'cp_size' only supports"
PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("ours", _ours),
        Provider("blocked", _forward_design("blocked"), refuses=_ELSEWHERE),
        Provider("resident", _resident, refuses=_ELSEWHERE),
        Provider("few_rows", _forward_design("few rows"), refuses=_ELSEWHERE),
        *(
            Provider(name, _backward_design(name), refuses=_ELSEWHERE)
            for name in ("persistent", "two-stage", "locked", "columns")
        ),
        Provider("split", _split, refuses=_ELSEWHERE),
        Provider("unfused", _unfused),
        Provider("kernels", _kernels),
        Provider("torch", _torch, peer=True),
        Provider("compile", _compile, peer=True),
        Provider("liger", _liger, "liger_kernel", ("liger-kernel",), _LIGER_REFUSES, True),
        Provider(
            "liger_cutedsl",
            _liger_cutedsl,
            "liger_kernel",
            ("liger-kernel", _CUTE),
            f"{_LIGER_REFUSES}|No module named 'cutlass",
            True,
        ),
        Provider("quack", _quack, "quack", ("quack-kernels", _CUTE), _QUACK_REFUSES, True),
        Provider(
            "quack_tuned", _quack_tuned, "quack", ("quack-kernels", _CUTE), _QUACK_REFUSES, True
        ),
        Provider("flashinfer", _flashinfer, "flashinfer", ("flashinfer-python", _CUTE), peer=True),
        Provider(
            "cudnn", _cudnn, "cudnn", ("nvidia-cudnn-frontend", "nvidia-cudnn-cu13"), peer=True
        ),
        Provider("apex", _apex, "apex", ("apex",), peer=True),
        Provider(
            "flash_attn", _flash_attn, "flash_attn", ("flash-attn",), "support feature dim", True
        ),
    )
}
PEERS = tuple(name for name, provider in PROVIDERS.items() if provider.peer)


def choose_providers(names: Iterable[str] | None, among: Collection[str]) -> list[Provider]:
    """Return the providers with these ``names``, in the order of PROVIDERS; None takes all of
    ``among``.

    Raises: CourseError if one of them is not among those that this measurement knows.
    """
    names = list(among if names is None else names)
    for name in names:
        if name not in among:
            raise CourseError(
                f"this measurement has no provider {name!r}. It has:"
                f" {', '.join(p for p in PROVIDERS if p in among)}."
            )
    return [provider for name, provider in PROVIDERS.items() if name in names]


def find_versions(providers: Iterable[Provider]) -> dict[str, str]:
    """Return the version of every installed library among ``providers``; "unknown" if it can be
    imported but has no package metadata."""
    versions = {}
    for provider in providers:
        for distribution in provider.distributions if provider.installed() else ():
            versions[distribution] = find_version(distribution) or "unknown"
    return versions
