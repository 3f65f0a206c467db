"""Stands in for ``triton._C.libtriton`` in a browser tab: the native functions and enums that
Triton's interpreter uses, in NumPy.

It compiles nothing. The classes of the compiler exist only because Triton's Python code names them.
A test compares the functions with those of Triton.
"""

from __future__ import annotations

import ctypes
import enum
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np


class _Named(enum.IntEnum):
    """An enum whose members print as those of Triton do: "ATOMIC_OP.FADD". The interpreter's hooks
    read the name."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


_ENUMS = {
    "MEM_SEMANTIC": "RELAXED ACQUIRE RELEASE ACQUIRE_RELEASE",
    "ATOMIC_OP": "AND OR XOR ADD FADD MAX MIN UMAX UMIN XCHG",
    "RMW_OP": "ADD FADD AND OR XOR XCHG MAX MIN UMIN UMAX",
    "DESCRIPTOR_REDUCE_KIND": "ADD MIN MAX INC DEC AND OR XOR",
    "PADDING_OPTION": "PAD_ZERO PAD_NAN",
    "ROUNDING_MODE": "RTZ RTNE",
    "CACHE_MODIFIER": "NONE CA CG WB CS WT CV",
    "EVICTION_POLICY": "NORMAL EVICT_FIRST EVICT_LAST",
    "MEM_SYNC_SCOPE": "GPU CTA SYSTEM",
    "INPUT_PRECISION": "TF32 TF32x3 IEEE BF16x3 BF16x6",
    "PROPAGATE_NAN": "NONE ALL",
    "ScaleDotElemTypeTY": "E4M3 E5M2 E2M3 E3M2 E2M1 BF16 FP16",
}
# These classes are used in annotations and as base classes only.
_CLASSES = {
    "ir": (
        "builder block block_argument block_type context InsertPoint Loc module operation"
        " pass_manager pointer_type type value"
    ),
    "gluon_ir": "GluonOpBuilder",
    "linear_layout": "LinearLayout",
}


def _make_module(name: str) -> types.ModuleType:
    module = types.ModuleType(f"{__name__}.{name}")
    for kind in _CLASSES.get(name, "").split():
        setattr(module, kind, type(kind, (), {}))
    sys.modules[module.__name__] = module
    return module


ir, gluon_ir, linear_layout, interpreter = map(
    _make_module, ("ir", "gluon_ir", "linear_layout", "interpreter")
)
for _name, _members in _ENUMS.items():
    _enum = _Named(_name, _members.split())  # the numbers are not Triton's; nothing reads them
    for _module in (ir, interpreter):
        setattr(_module, _name, _enum)

# ---- functions that tell Triton's Python code about its process


def getenv(name: str, default: str | None = None) -> str | None:
    return os.environ.get(name, default)


def getenv_bool(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    return default if value is None else value.lower() in ("1", "true", "on", "yes", "y")


def get_cache_invalidating_env_vars() -> dict[str, str]:
    return {}


_KINDS = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int64": "i64",
    "int32": "i32", "int16": "i16",
    "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "i1",
}  # fmt: skip


def native_specialize_impl(backend: Any, argument: Any, *options: Any) -> tuple[str, None]:
    """Return Triton's name of the type of a kernel's argument: "*fp16" for a tensor, "i32" for a
    small integer."""
    if hasattr(argument, "data_ptr"):
        return "*" + _KINDS[str(argument.dtype).removeprefix("torch.")], None
    if isinstance(argument, bool):
        return "u1", None
    if isinstance(argument, int):
        if -(2**31) <= argument < 2**31:
            return "i32", None
        return ("i64" if argument < 2**63 else "u64"), None
    if isinstance(argument, float):
        return "fp32", None
    raise TypeError(f"a kernel takes no argument of type {type(argument).__name__}")


# ---- memory. Addresses are uint64 arrays; a lane whose mask is False is not touched.


def _read_bytes(addresses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the memory between the lowest and the highest address, and the indices of each lane's
    bytes in it, shape (lanes, size)."""
    low = int(addresses.min())
    span = (ctypes.c_uint8 * (int(addresses.max()) - low + size)).from_address(low)
    lanes = (addresses - np.uint64(low)).astype(np.intp)[:, None] + np.arange(size, dtype=np.intp)
    return np.ctypeslib.as_array(span), lanes


def _find_live(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return which lanes are not masked. A mask may be of integers: Triton's interpreter makes one
    out of a block and a scalar."""
    return np.broadcast_to(mask, shape).astype(bool)


def _load(addresses: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    loaded = np.array(np.broadcast_to(other, addresses.shape), dtype=dtype)
    live = _find_live(mask, addresses.shape)
    if live.any():
        memory, lanes = _read_bytes(addresses[live], dtype.itemsize)
        loaded[live] = memory[lanes].view(dtype)[:, 0]
    return loaded


def _store(addresses: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    live = _find_live(mask, addresses.shape)
    if live.any():
        stored = np.ascontiguousarray(np.broadcast_to(values, addresses.shape)[live])
        memory, lanes = _read_bytes(addresses[live], stored.itemsize)
        # if lanes share an address, the last one wins
        memory[lanes] = stored.view(np.uint8).reshape(lanes.shape)


def _apply_unsigned(apply: Callable) -> Callable:
    return lambda old, value: apply(
        old.view(f"u{old.itemsize}"), value.view(f"u{old.itemsize}")
    ).view(old.dtype)


_APPLIED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "ADD": np.add, "FADD": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor, "MAX": np.maximum,
    "MIN": np.minimum, "UMAX": _apply_unsigned(np.maximum), "UMIN": _apply_unsigned(np.minimum),
    "XCHG": lambda old, value: value,
}  # fmt: skip


def _update(
    addresses: np.ndarray,
    live: np.ndarray,
    dtype: np.dtype,
    change: Callable[[int, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Replace the value at each live lane by ``change(lane, old)``, lane after lane. Returns: the
    values before."""
    before = np.zeros(addresses.size, dtype)
    for lane in np.flatnonzero(live):
        cell = (ctypes.c_uint8 * dtype.itemsize).from_address(int(addresses.flat[lane]))
        memory = np.ctypeslib.as_array(cell).view(dtype)
        before[lane : lane + 1] = memory
        memory[:] = change(int(lane), before[lane : lane + 1])
    return before.reshape(addresses.shape)


def _atomic_rmw(
    operation: Any, addresses: np.ndarray, values: np.ndarray, mask: np.ndarray, order: Any
) -> np.ndarray:
    apply = _APPLIED[operation.name]
    operands = np.broadcast_to(values, addresses.shape).ravel()
    live = _find_live(mask, addresses.shape)
    with np.errstate(all="ignore"):
        return _update(
            addresses, live, values.dtype, lambda lane, old: apply(old, operands[lane : lane + 1])
        )


def _atomic_cas(
    addresses: np.ndarray, expected: np.ndarray, values: np.ndarray, order: Any
) -> np.ndarray:
    expected_lanes = np.broadcast_to(expected, addresses.shape).ravel()
    new_values = np.broadcast_to(values, addresses.shape).ravel()
    live = np.ones(addresses.shape, bool)
    return _update(
        addresses,
        live,
        values.dtype,
        lambda lane, old: (
            new_values[lane : lane + 1]
            if old.tobytes() == expected_lanes[lane : lane + 1].tobytes()
            else old
        ),
    )


vars(interpreter).update(load=_load, store=_store, atomic_rmw=_atomic_rmw, atomic_cas=_atomic_cas)
