"""The course's kernels behind PyTorch's signatures: layer_norm, rms_norm, and both with the
residual added first.

The functions take all that :mod:`torch.nn.functional` takes: any leading dimensions, a normalized
shape of several dimensions, weight or bias None or of another dtype, any strides, empty batches,
autocast, torch.compile and CUDA graphs. They refuse what it refuses, in its words or clearer ones.
With ``create_graph=True`` their gradients come from PyTorch operations, which can be differentiated
again; the backward kernels cannot, and are not launched then. Under the transforms of
``torch.func`` and in forward-mode differentiation PyTorch operations compute the norm itself,
because a kernel carries no tangents and no batch dimension.

A DTensor is refused with PyTorch's NotImplementedError, because the operators have no sharding
strategy: call the functions on its ``to_local()`` where each process has whole rows. Under FSDP the
modules get plain tensors.

Each function is a registered operator (``course::...``), so that torch.compile sees one node with
known shapes and an autograd formula instead of a graph break. A call outside torch.compile bypasses
the operator, and goes to the kernels or to an autograd function: PyTorch's machinery for operators
written in Python costs more host time per call than everything else together. Everything about
normalized shapes happens here; the kernels' functions get (..., N) and any strides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor
from torch.autograd import forward_ad

from course_lib.kernels.launch.operands import statistics_dtype
from course_lib.kernels.layer_norm import add_layer_norm_forward, layer_norm_forward
from course_lib.kernels.layer_norm_backward import layer_norm_backward
from course_lib.kernels.rms_norm import add_rms_norm_forward, rms_norm_forward
from course_lib.kernels.rms_norm_backward import rms_norm_backward

_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    dtype: torch.dtype | None = None,
    weight_offset: float = 0.0,
) -> Tensor:
    """Apply layer normalisation over the last ``len(normalized_shape)`` dimensions.

    Signature and errors follow :func:`torch.nn.functional.layer_norm`.

    Args:
        input: shape (..., *normalized_shape), fp16, bf16, fp32 or fp64, any strides.
        weight, bias: shape normalized_shape, any of those dtypes; None leaves scale or shift out.
        eps: added to the variance inside the root.
        dtype: of the result, one of those; None takes input's, or fp32 under autocast on a GPU, as
            PyTorch does.
        weight_offset: added to weight in the dtype of the statistics: 1.0 for models that store
            their scale minus 1. The gradient of weight is the same for any. Ignored if weight is
            None.

    Returns: shape of input, contiguous. Statistics are fp32, those of an fp64 input fp64; the
    result is rounded once, to dtype.

    Raises: RuntimeError if shapes or devices do not match, NotImplementedError for another dtype,
    TypeError for arguments of another type.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization".
    """
    _check("layer_norm", input, normalized_shape, dtype, weight=weight, bias=bias)
    dtype = dtype or _choose_autocast_dtype(input)
    if input.numel() == 0:
        return _normalise_nothing(input, dtype, weight, bias)
    if _is_transformed():
        return _normalise_in_pytorch(
            input, normalized_shape, weight, bias, eps, dtype, weight_offset, centred=True
        )
    run = _choose_eager(_LayerNorm, _infer_layer_norm, input, weight, bias) or _layer_norm
    y, *_ = run(
        _flatten_rows(input, normalized_shape), _flatten(weight), _flatten(bias), float(eps), dtype,
        weight_offset,
    )  # fmt: skip
    return _shape_as(y, input)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    dtype: torch.dtype | None = None,
    weight_offset: float = 0.0,
) -> Tensor:
    """Apply root-mean-square normalisation over the last ``len(normalized_shape)`` dimensions.

    Signature and errors follow :func:`torch.nn.functional.rms_norm`.

    Args:
        input: shape (..., *normalized_shape), fp16, bf16, fp32 or fp64, any strides.
        weight: shape normalized_shape, any of those dtypes; None leaves the scale out.
        eps: added to the mean square inside the root; None takes the machine epsilon of the dtype
            in which PyTorch computes, 1.2e-7 for fp16, bf16 and fp32.
        dtype: of the result, one of those; None takes input's, also under autocast, as PyTorch
            does.
        weight_offset: as for :func:`layer_norm`: 1.0 for Gemma's models.

    Returns: as :func:`layer_norm`.

    Raises: as :func:`layer_norm`.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
    """
    _check("rms_norm", input, normalized_shape, dtype, weight=weight)
    dtype = dtype or input.dtype
    if input.numel() == 0:
        return _normalise_nothing(input, dtype, weight)
    if _is_transformed():
        return _normalise_in_pytorch(
            input,
            normalized_shape,
            weight,
            None,
            _resolve_eps(eps, input),
            dtype,
            weight_offset,
            centred=False,
        )
    run = _choose_eager(_RMSNorm, rms_norm_forward, input, weight) or _rms_norm
    y, *_ = run(
        _flatten_rows(input, normalized_shape),
        _flatten(weight),
        _resolve_eps(eps, input),
        dtype,
        weight_offset,
    )
    return _shape_as(y, input)


def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    dtype: torch.dtype | None = None,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Compute ``total = input + residual`` and its RMSNorm, with ``total`` read and written once.

    Args:
        input, residual: shape (..., *normalized_shape), of one dtype; the other arguments as in
            :func:`rms_norm`, dtype that of the norm.

    Returns: the norm and ``total``, each of input's shape; total has input's dtype. The norm is
    that of the rounded total; up to 8192 columns it equals ``rms_norm(input + residual)`` bit by
    bit. Backward, the gradient of total is added inside the kernel, before dx is rounded.

    Raises: as :func:`rms_norm`; RuntimeError if input and residual differ in shape, dtype or
    device.
    """
    _check("add_rms_norm", input, normalized_shape, dtype, weight=weight)
    _check_alike(input, residual)
    dtype = dtype or input.dtype
    if input.numel() == 0:
        return _normalise_nothing(input, dtype, weight), input + residual
    if _is_transformed():
        total = input + residual
        y = rms_norm(total, normalized_shape, weight, eps, dtype=dtype, weight_offset=weight_offset)
        return y, total
    run = (
        _choose_eager(_AddRMSNorm, _add_rms_norm_outputs, input, residual, weight) or _add_rms_norm
    )
    y, total, *_ = run(
        _flatten_rows(input, normalized_shape),
        _flatten_rows(residual, normalized_shape),
        _flatten(weight),
        _resolve_eps(eps, input),
        dtype,
        weight_offset,
    )
    return _shape_as(y, input), _shape_as(total, input)


def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    dtype: torch.dtype | None = None,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Compute ``total = input + residual`` and its LayerNorm, with ``total`` read and written once.

    Args:
        input, residual: shape (..., *normalized_shape), of one dtype; the other arguments as in
            :func:`layer_norm`, dtype that of the norm; None takes input's.

    Returns: as :func:`add_rms_norm`. Under autocast, too, the norm has input's dtype, because the
    residual stream keeps its dtype.

    Raises: as :func:`layer_norm`; RuntimeError if input and residual differ in shape, dtype or
    device.
    """
    _check("add_layer_norm", input, normalized_shape, dtype, weight=weight, bias=bias)
    _check_alike(input, residual)
    dtype = dtype or input.dtype
    if input.numel() == 0:
        return _normalise_nothing(input, dtype, weight, bias), input + residual
    if _is_transformed():
        total = input + residual
        y = layer_norm(
            total, normalized_shape, weight, bias, eps, dtype=dtype, weight_offset=weight_offset
        )
        return y, total
    run = (
        _choose_eager(_AddLayerNorm, _add_layer_norm_outputs, input, residual, weight, bias)
        or _add_layer_norm
    )
    y, total, *_ = run(
        _flatten_rows(input, normalized_shape),
        _flatten_rows(residual, normalized_shape),
        _flatten(weight),
        _flatten(bias),
        float(eps),
        dtype,
        weight_offset,
    )
    return _shape_as(y, input), _shape_as(total, input)


# ---- arguments -----------------------------------------------------------------------------------


def _check(
    name: str, input: Tensor, normalized_shape: Sequence[int], dtype: torch.dtype | None,
    **parameters: Tensor | None,
) -> None:  # fmt: skip
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    for size in (None,) if isinstance(normalized_shape, int) else normalized_shape:
        if not isinstance(size, int):
            raise TypeError(
                f"{name}(): argument 'normalized_shape' must be tuple of ints, not"
                f" {type(normalized_shape).__name__}"
            )
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one"
            " element, but got normalized_shape = []"
        )
    if input.shape[-len(shape) :] != shape:
        expected_shape = ", ".join(map(str, ["*", *shape]))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{expected_shape}],"
            f" but got input of size{list(input.shape)}"
        )
    if input.dtype not in _DTYPES:
        raise NotImplementedError(
            f'"{name}" not implemented for {input.dtype}: it takes fp16, bf16, fp32 and fp64'
        )
    if dtype not in (None, *_DTYPES):
        raise NotImplementedError(
            f'"{name}" not implemented for a result of {dtype}: it returns fp16, bf16, fp32 and'
            " fp64"
        )
    for parameter, tensor in parameters.items():
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise RuntimeError(
                f"Expected {parameter} to be of same shape as normalized_shape, but got"
                f" {parameter} of shape {list(tensor.shape)} and normalized_shape = {list(shape)}"
            )
        if tensor.dtype not in _DTYPES:
            raise NotImplementedError(
                f'"{name}" not implemented for a {parameter} of {tensor.dtype}: it takes fp16,'
                " bf16, fp32 and fp64"
            )
        if tensor.device != input.device:
            raise RuntimeError(
                f"Expected all tensors on one device, but {parameter} is on {tensor.device} and"
                f" input on {input.device}"
            )


def _check_alike(input: Tensor, residual: Tensor) -> None:
    if (residual.shape, residual.dtype, residual.device) != (
        input.shape,
        input.dtype,
        input.device,
    ):
        raise RuntimeError(
            f"Expected residual to be as input, but got {_describe(residual)} and input"
            f" {_describe(input)}"
        )


def _describe(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {list(tensor.shape)} on {tensor.device}"


def _choose_autocast_dtype(input: Tensor) -> torch.dtype:
    """Return the dtype of PyTorch's layer_norm: fp32 under autocast on a GPU, else input's.

    PyTorch casts the arguments first. Here the kernel reads them as they are: for bf16 it moves 6
    bytes per element instead of 14.
    """
    if not input.is_cuda or input.dtype == torch.float64 or not torch.is_autocast_enabled("cuda"):
        return input.dtype
    return torch.float32


def _flatten_rows(tensor: Tensor, normalized_shape: Sequence[int]) -> Tensor:
    """Return the tensor with the dimensions of a row in one."""
    return tensor if len(normalized_shape) == 1 else tensor.flatten(-len(normalized_shape))


def _shape_as(y: Tensor, input: Tensor) -> Tensor:
    # a needless view would cost host time
    return y if y.shape == input.shape else y.view(input.shape)


def _flatten(parameter: Tensor | None) -> Tensor | None:
    return parameter if parameter is None or parameter.ndim == 1 else parameter.reshape(-1)


def _resolve_eps(eps: float | None, input: Tensor) -> float:
    return torch.finfo(statistics_dtype(input.dtype)).eps if eps is None else float(eps)


def _normalise_nothing(input: Tensor, dtype: torch.dtype, *parameters: Tensor | None) -> Tensor:
    """Return y for an input without rows or columns. Nothing is launched; every gradient that is
    required exists and is 0."""
    y = (
        torch.empty_like(input, memory_format=torch.contiguous_format)
        if not input.requires_grad
        else input * 1
    )
    for parameter in parameters:
        if parameter is not None and parameter.requires_grad:
            y = y + parameter.sum() * 0  # broadcasts over no elements
    return y.to(dtype)


def _on_device_of(tensor: Tensor) -> contextlib.AbstractContextManager:
    """Return a context in which the tensor's device is current: Triton launches on the current
    device, which may be another one."""
    if tensor.device.type == "cuda" and tensor.device.index != torch.cuda.current_device():
        return torch.cuda.device(tensor.device)
    return contextlib.nullcontext()


_PLAIN = (Tensor, torch.nn.Parameter)


def _choose_eager(
    function: type[torch.autograd.Function],
    forward: Callable,
    input: Tensor,
    *parameters: Tensor | None,
) -> Callable | None:
    """Return the function to call for plain tensors outside torch.compile; None if the operator is
    needed."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return None
    needs_gradient = False
    for tensor in (input, *parameters):
        if tensor is not None:
            if type(tensor) not in _PLAIN:
                return None
            needs_gradient |= tensor.requires_grad
    if input.is_cuda and input.get_device() != torch._C._cuda_getDevice():
        return None  # the operators change the device
    return function.apply if needs_gradient and torch.is_grad_enabled() else forward


def _infer_layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, dtype: torch.dtype,
    offset: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Compute layer_norm without saving the statistics, which only a backward pass reads."""
    return layer_norm_forward(x, weight, bias, eps, dtype, offset, save=False)


def _add_rms_norm_outputs(
    x: Tensor, residual: Tensor, weight: Tensor | None, eps: float, dtype: torch.dtype,
    offset: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    total, y, rstd = add_rms_norm_forward(x, residual, weight, eps, dtype, offset)
    return y, total, rstd


def _add_layer_norm_outputs(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float,
    dtype: torch.dtype, offset: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    total, y, mean, rstd = add_layer_norm_forward(x, residual, weight, bias, eps, dtype, offset)
    return y, total, mean, rstd


# ---- gradients -----------------------------------------------------------------------------------
# They serve the operators and eager calls: ``backward`` is an operator or a kernel's function.
# Autograd ignores a dx that is not needed. A parameter that is None must get None, and so must eps,
# dtype and offset, the last arguments. With a residual dx is the gradient of total: it includes
# dtotal, because total is used twice, by the norm and by the next layer's addition. It is the
# gradient of x and of the residual. An output that the loss does not use has the gradient None.


def _layer_norm_gradients(
    ctx, backward: Callable, dy: Tensor | None, dtotal: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    x, weight, mean, rstd = ctx.saved_tensors
    *inputs, w_needed, b_needed, _, _, _ = ctx.needs_input_grad
    if dy is None:  # only total is used
        return *[dtotal] * len(inputs), None, None, None, None, None
    if torch.is_grad_enabled():
        dx, dw, db = _compute_differentiable_gradients(
            ctx, dy, x, weight, rstd.dtype, dtotal, centred=True
        )
        db = db.to(ctx.bias_dtype)
    else:
        dx, dw, db = backward(
            dy, x, weight, mean, rstd, dtotal=dtotal, needs_dw=w_needed, needs_db=b_needed,
            bias_dtype=ctx.bias_dtype, w_offset=ctx.offset,
        )  # fmt: skip
    dw, db = dw if w_needed else None, db if b_needed else None
    return *[dx] * len(inputs), dw, db, None, None, None


def _rms_norm_gradients(
    ctx, backward: Callable, dy: Tensor | None, dtotal: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    x, weight, rstd = ctx.saved_tensors
    *inputs, w_needed, _, _, _ = ctx.needs_input_grad
    if dy is None:  # only total is used
        return *[dtotal] * len(inputs), None, None, None, None
    if torch.is_grad_enabled():
        dx, dw, _ = _compute_differentiable_gradients(
            ctx, dy, x, weight, rstd.dtype, dtotal, centred=False
        )
    else:
        dx, dw = backward(
            dy, x, weight, rstd, dtotal=dtotal, needs_dw=w_needed, w_offset=ctx.offset
        )
    return *[dx] * len(inputs), dw if w_needed else None, None, None, None


def _compute_differentiable_gradients(
    ctx, dy: Tensor, x: Tensor, weight: Tensor | None, dtype: torch.dtype, dtotal: Tensor | None, *,
    centred: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute dx, dw and db in PyTorch operations for ``create_graph=True``. Autograd records them,
    so that they have derivatives too.

    What the kernels return has no history: a second derivative would take it for a constant.
    ``once_differentiable`` does not refuse all of these: with ``torch.autograd.grad(..., inputs)``
    its error is off the path from the loss to the inputs, and is never raised.
    """
    dy32 = dy.to(dtype)
    xhat, rstd = _normalise(x.to(dtype), ctx.eps, centred=centred)
    wdy = dy32 if weight is None else dy32 * (weight.to(dtype) + ctx.offset)
    dx = wdy - xhat * (xhat * wdy).mean(-1, keepdim=True)
    if centred:
        dx = dx - wdy.mean(-1, keepdim=True)
    dx = dx * rstd
    if dtotal is not None:
        dx = dx + dtotal.to(dtype)
    dw, db = (rows.reshape(-1, x.shape[-1]).sum(0) for rows in (dy32 * xhat, dy32))
    return dx.to(x.dtype), dw if weight is None else dw.to(weight.dtype), db


def _normalise(x: Tensor, eps: float, *, centred: bool) -> tuple[Tensor, Tensor]:
    """Compute xhat, (..., N), and rstd, (..., 1), in PyTorch operations."""
    if centred:
        x = x - x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    return x * rstd, rstd


def _is_transformed() -> bool:
    """Return whether ``torch.func`` (grad, jvp, vmap, ...) or forward-mode differentiation is at
    work.

    An operator written in Python would return tangents of zeros, and ``torch.func.grad`` refuses
    it.
    """
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def _normalise_in_pytorch(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
    eps: float, dtype: torch.dtype, offset: float, *, centred: bool,
) -> Tensor:  # fmt: skip
    """Compute y in PyTorch operations, which all of these transforms know."""
    wide = statistics_dtype(input.dtype)
    y, _ = _normalise(_flatten_rows(input, normalized_shape).to(wide), eps, centred=centred)
    if (weight := _flatten(weight)) is not None:
        y = y * (weight.to(wide) + offset)
    if (bias := _flatten(bias)) is not None:
        y = y + bias.to(wide)
    return _shape_as(y.to(dtype), input)


# ---- operators -----------------------------------------------------------------------------------


@torch.library.custom_op("course::layer_norm", mutates_args=())
def _layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, dtype: torch.dtype,
    offset: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    with _on_device_of(x):
        return layer_norm_forward(x, weight, bias, eps, dtype, offset)


@_layer_norm.register_fake
def _(x, weight, bias, eps, dtype, offset):
    row = x.new_empty(prod(x.shape[:-1]), dtype=statistics_dtype(x.dtype))
    return x.new_empty(x.shape, dtype=dtype), row, torch.empty_like(row)


@torch.library.custom_op("course::layer_norm_backward", mutates_args=())
def _layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    dtotal: Tensor | None,
    needs_dw: bool,
    needs_db: bool,
    bias_dtype: torch.dtype,
    w_offset: float,
) -> tuple[Tensor, Tensor, Tensor]:
    with _on_device_of(x):
        dx, dw, db = layer_norm_backward(
            dy, x, weight, mean, rstd, dtotal=dtotal, needs_dw=needs_dw, needs_db=needs_db,
            bias_dtype=bias_dtype, w_offset=w_offset,
        )  # fmt: skip
    return dx, _fill_output(dw, x), _fill_output(db, x)


def _fill_output(gradient: Tensor | None, x: Tensor) -> Tensor:
    """Return the gradient, or an empty tensor in its place, because an operator returns tensors."""
    return x.new_empty(0) if gradient is None else gradient


@_layer_norm_backward.register_fake
def _(dy, x, weight, mean, rstd, dtotal, needs_dw, needs_db, bias_dtype, w_offset):
    N = x.shape[-1]
    w_dtype = x.dtype if weight is None else weight.dtype
    return (
        x.new_empty(x.shape),
        x.new_empty(N, dtype=w_dtype) if needs_dw else x.new_empty(0),
        x.new_empty(N, dtype=bias_dtype) if needs_db else x.new_empty(0),
    )


def _layer_norm_setup(ctx, inputs, output):
    x, weight, bias, ctx.eps, _, ctx.offset = inputs
    _, mean, rstd = output
    ctx.save_for_backward(x, weight, mean, rstd)
    ctx.bias_dtype = x.dtype if bias is None else bias.dtype
    ctx.mark_non_differentiable(mean, rstd)


def _layer_norm_vjp(ctx, dy, _mean, _rstd):
    return _layer_norm_gradients(ctx, _layer_norm_backward, dy)


_layer_norm.register_autograd(_layer_norm_vjp, setup_context=_layer_norm_setup)


@torch.library.custom_op("course::rms_norm", mutates_args=())
def _rms_norm(
    x: Tensor, weight: Tensor | None, eps: float, dtype: torch.dtype, offset: float
) -> tuple[Tensor, Tensor]:
    with _on_device_of(x):
        return rms_norm_forward(x, weight, eps, dtype, offset)


@_rms_norm.register_fake
def _(x, weight, eps, dtype, offset):
    return x.new_empty(x.shape, dtype=dtype), x.new_empty(
        prod(x.shape[:-1]), dtype=statistics_dtype(x.dtype)
    )


@torch.library.custom_op("course::rms_norm_backward", mutates_args=())
def _rms_norm_backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    rstd: Tensor,
    dtotal: Tensor | None,
    needs_dw: bool,
    w_offset: float,
) -> tuple[Tensor, Tensor]:
    with _on_device_of(x):
        dx, dw = rms_norm_backward(
            dy, x, weight, rstd, dtotal=dtotal, needs_dw=needs_dw, w_offset=w_offset
        )
    return dx, _fill_output(dw, x)


@_rms_norm_backward.register_fake
def _(dy, x, weight, rstd, dtotal, needs_dw, w_offset):
    w_dtype = x.dtype if weight is None else weight.dtype
    return x.new_empty(x.shape), x.new_empty(
        x.shape[-1] if needs_dw else 0, dtype=w_dtype if needs_dw else x.dtype
    )


def _rms_norm_setup(ctx, inputs, output):
    x, weight, ctx.eps, _, ctx.offset = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _rms_norm_vjp(ctx, dy, _rstd):
    return _rms_norm_gradients(ctx, _rms_norm_backward, dy)


_rms_norm.register_autograd(_rms_norm_vjp, setup_context=_rms_norm_setup)


@torch.library.custom_op("course::add_rms_norm", mutates_args=())
def _add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None, eps: float, dtype: torch.dtype,
    offset: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    with _on_device_of(x):
        return _add_rms_norm_outputs(x, residual, weight, eps, dtype, offset)


@_add_rms_norm.register_fake
def _(x, residual, weight, eps, dtype, offset):
    return (
        x.new_empty(x.shape, dtype=dtype),
        x.new_empty(x.shape),
        x.new_empty(prod(x.shape[:-1]), dtype=statistics_dtype(x.dtype)),
    )


def _add_rms_norm_setup(ctx, inputs, output):
    _, _, weight, ctx.eps, _, ctx.offset = inputs
    _, total, rstd = output
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(total, weight, rstd)
    ctx.mark_non_differentiable(rstd)


def _add_rms_norm_vjp(ctx, dy, dtotal, _rstd):
    return _rms_norm_gradients(ctx, _rms_norm_backward, dy, dtotal)


_add_rms_norm.register_autograd(_add_rms_norm_vjp, setup_context=_add_rms_norm_setup)


@torch.library.custom_op("course::add_layer_norm", mutates_args=())
def _add_layer_norm(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float,
    dtype: torch.dtype, offset: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    with _on_device_of(x):
        return _add_layer_norm_outputs(x, residual, weight, bias, eps, dtype, offset)


@_add_layer_norm.register_fake
def _(x, residual, weight, bias, eps, dtype, offset):
    row = x.new_empty(prod(x.shape[:-1]), dtype=statistics_dtype(x.dtype))
    return x.new_empty(x.shape, dtype=dtype), x.new_empty(x.shape), row, torch.empty_like(row)


def _add_layer_norm_setup(ctx, inputs, output):
    x, _, weight, bias, ctx.eps, _, ctx.offset = inputs
    _, total, mean, rstd = output
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(total, weight, mean, rstd)
    ctx.bias_dtype = x.dtype if bias is None else bias.dtype
    ctx.mark_non_differentiable(mean, rstd)


def _add_layer_norm_vjp(ctx, dy, dtotal, _mean, _rstd):
    return _layer_norm_gradients(ctx, _layer_norm_backward, dy, dtotal)


_add_layer_norm.register_autograd(_add_layer_norm_vjp, setup_context=_add_layer_norm_setup)


# ---- the same for eager calls --------------------------------------------------------------------
# The statistics stay on ctx instead of being outputs, because each output costs host time.


class _LayerNormBackward(torch.autograd.Function):
    @staticmethod
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride] - a forward pass may have two outputs
        return _layer_norm_gradients(ctx, layer_norm_backward, *gradients)


class _RMSNormBackward(torch.autograd.Function):
    @staticmethod
    def backward(ctx, *gradients):  # pyright: ignore[reportIncompatibleMethodOverride] - a forward pass may have two outputs
        return _rms_norm_gradients(ctx, rms_norm_backward, *gradients)


class _LayerNorm(_LayerNormBackward):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, dtype, offset):
        y, mean, rstd = layer_norm_forward(x, weight, bias, eps, dtype, offset)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.eps, ctx.offset = eps, offset
        ctx.bias_dtype = x.dtype if bias is None else bias.dtype
        return (y,)


class _RMSNorm(_RMSNormBackward):
    @staticmethod
    def forward(ctx, x, weight, eps, dtype, offset):
        y, rstd = rms_norm_forward(x, weight, eps, dtype, offset)
        ctx.save_for_backward(x, weight, rstd)
        ctx.eps, ctx.offset = eps, offset
        return (y,)


class _AddRMSNorm(_RMSNormBackward):
    @staticmethod
    def forward(ctx, x, residual, weight, eps, dtype, offset):
        y, total, rstd = _add_rms_norm_outputs(x, residual, weight, eps, dtype, offset)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(total, weight, rstd)
        ctx.eps, ctx.offset = eps, offset
        return y, total


class _AddLayerNorm(_LayerNormBackward):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps, dtype, offset):
        y, total, mean, rstd = _add_layer_norm_outputs(
            x, residual, weight, bias, eps, dtype, offset
        )
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(total, weight, mean, rstd)
        ctx.eps, ctx.offset = eps, offset
        ctx.bias_dtype = x.dtype if bias is None else bias.dtype
        return y, total
