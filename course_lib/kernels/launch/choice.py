"""Choose the algorithm for a tensor: by the lines of its device's class and, for rows too long for
one program, by the size of x."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from course_lib.kernels.launch import device, device_classes, operands, tables
from course_lib.kernels.launch.device_classes import DeviceClass


def find_device_class(x: Tensor) -> DeviceClass:
    """Return the first class of DEVICE_CLASSES that x's device and the size of its elements belong
    to."""
    return _find_class(
        device_classes.DEVICE_CLASSES, device.find_bandwidth(x.device), x.element_size()
    )


@functools.cache
def _find_class(classes: tuple[DeviceClass, ...], bandwidth: float, itemsize: int) -> DeviceClass:
    return next(
        one for one in classes if bandwidth >= one.bandwidth and one.itemsize in (None, itemsize)
    )


@functools.cache
def _find_algorithm(
    table: str, tuned: DeviceClass, N: int, dtype: torch.dtype, centred: bool, add: bool = False
) -> str:
    return device_classes.find_line(getattr(tuned, table), N, dtype, centred, add).algorithm


def choose_forward(
    x: Tensor, residual: Tensor | None, *vectors: Tensor | None, centred: bool, tuned: DeviceClass
) -> str:
    """Choose the algorithm of a forward pass.

    Args:
        x, residual: shape (M, N).
        vectors: w and b.
        centred: True for LayerNorm, False for RMSNorm.
        tuned: the class of x's device.
    """
    N, add = x.shape[-1], residual is not None
    algorithm = _find_algorithm("forward", tuned, N, x.dtype, centred, add)
    if algorithm != "split":
        return algorithm
    # "few rows" and "split" give a row the same bits only if both distribute x over their threads
    # in the same way, which needs loads of whole vectors. The choice between them depends on M, so
    # it is made only for such tensors.
    small = x.dtype != torch.float64 and x.shape[0] * N * x.element_size() <= tuned.few_rows_bytes
    if small and all(
        tensor is None or _loads_whole_vectors(tensor) for tensor in (x, residual, *vectors)
    ):
        return "few rows"
    if has_room_for(x, tables.split(N, x.dtype, centred=centred, add=add, tuned=tuned)):
        return "split"
    if N <= tables.RESIDENT_LIMIT:
        return "resident"
    return "blocked" if x.dtype == torch.float64 else "few rows"  # which never waits


def choose_backward(x: Tensor, *, centred: bool, tuned: DeviceClass) -> str:
    """Choose the algorithm of a backward pass over x of shape (M, N): for LayerNorm if ``centred``,
    else for RMSNorm."""
    N = x.shape[-1]
    algorithm = _find_algorithm("backward", tuned, N, x.dtype, centred)
    if algorithm != "split":
        return algorithm
    few = (
        tuned.few_rows_backward >= x.shape[0]
        and x.numel() * x.element_size() <= tuned.few_rows_backward_bytes
    )
    if few or not has_room_for(x, tables.split_backward(N, x.dtype, tuned=tuned)):
        return "columns"
    return "split"


def has_room_for(x: Tensor, shares: tables.SplitLaunch) -> bool:
    """Return whether the programs that share a row of x can all run at once, and their fp32 numbers
    fit a word (x is not fp64).

    Each has a multiprocessor even if only one program fits there. A quarter of the places that the
    launch counts on stays free: kernels on other streams, such as NCCL's, hold some until another
    GPU has answered, and under MPS another process has its share.
    """
    if x.dtype == torch.float64:
        return False
    if x.device.type != "cuda":
        return True
    multiprocessors = device.count_multiprocessors(x.device)
    places = multiprocessors * shares.programs_per_multiprocessor
    return shares.chunks <= min(multiprocessors, 3 * places // 4)


def _loads_whole_vectors(tensor: Tensor) -> bool:
    rows = tensor.shape[-1] if tensor.ndim == 1 else operands.row_stride(tensor)
    vector = device_classes.count_vector_columns(tensor.shape[-1], tensor.element_size())
    return (
        tensor.shape[-1] % vector == 0
        and rows % vector == 0
        and tensor.stride(-1) == 1
        and tensor.data_ptr() % 16 == 0
    )
