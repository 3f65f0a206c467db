"""Constructs that make values: casts, mathematical functions, shapes, reductions. See
constructs.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from constructs import BITS, F32, I32, INF, NAN, SHORT, Construct, values, wrap

_ML = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5": ml_dtypes.float8_e5m2,
}
# numbers of every kind of trouble: halves between two neighbours, subnormal, too large
_FLOATS = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, -(1 + 3 * 2**-11), 0.1, -2.75, 65520.0, 2.0**-24]


def _nearest(value: float, dtype: str) -> float:
    """``value`` (exact in fp64) rounded to nearest even: digits counted by hand, and no library's
    cast."""
    digits, lowest, largest = {
        "float16": (11, -24, 65504.0),
        "bfloat16": (8, -133, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
        "float32": (24, -149, float(np.finfo(np.float32).max)),
        "float64": (53, -1074, float(np.finfo(np.float64).max)),
        "float8e4nv": (4, -9, 448.0), "float8e5": (3, -16, 57344.0),
    }[dtype]  # fmt: skip
    if math.isinf(value) and dtype.startswith("float8"):
        return math.copysign(largest, value)
    if value == 0 or not math.isfinite(value):
        return value
    step = 2.0 ** max(math.frexp(value)[1] - digits, lowest)
    rounded = round(value / step) * step  # Python's round goes to even, and the quotient is exact
    if abs(rounded) > largest:
        return math.copysign(largest if dtype.startswith("float8") else INF, value)
    return rounded


def _casts() -> Iterator[Construct]:
    kinds = [*SHORT, "float8e4nv", "float8e5"]
    for source, target in product(kinds, repeat=2):
        if source == target:
            continue
        floats = not source.startswith(("int", "uint"))
        to_float = not target.startswith(("int", "uint"))
        if floats and to_float:
            given = [_nearest(value, source) for value in _FLOATS]
        elif floats:
            given = [
                _nearest(value, source) for value in ([-3.75] if target.startswith("i") else [3.75])
            ]
            given += [_nearest(value, source) for value in (0.0, 0.99, 1.5, 7.9, 100.0, 2.0, 3.0)]
        else:
            given = [wrap(value, source) for value in (3, -3, 127, 255, 257, 65537, 16777217, 0)]
            if to_float and source in ("int64", "uint64"):
                given[7] = 2**60 + 2**36 + 1  # halfway between two fp32 but for the last bit
        if to_float:
            # bf16 of an int64 is rounded once, as newer GPUs do; every GPU rounds to fp16 and fp8
            # through fp32 or at once alike
            want = [
                (
                    _nearest(float(value), target)
                    if floats or abs(value) < 2**53
                    else _nearest_of_int(int(value), target)
                )
                for value in given
            ]
        else:
            want = [wrap(int(value), target) for value in given]
        eight = [name for name in (source, target) if name.startswith("float8")]
        other = target if source.startswith("float8") else source
        if eight and not (len(eight) == 2 or other.startswith(("float", "bfloat"))):
            yield Construct(
                f"{source} to {target}",
                f"result = tl.load(x_ptr + tl.arange(0, 8)).to(tl.{target})",
                None,
                target,
                extra={"x_ptr": (source, given)},
            )
            continue
        if ("float64" in (source, target) and eight) or len(eight) == 2:
            continue  # the frontend takes these, and the code generator of some GPUs does not
        yield Construct(
            f"{source} to {target}", f"result = tl.load(x_ptr + tl.arange(0, 8)).to(tl.{target})",
            want, target,
            extra={"x_ptr": (source, given)}, only="hopper" if eight else "",
        )  # fmt: skip
        if eight:
            continue
        yield Construct(
            f"{source} to {target} by a store", "tl.store(out_ptr + lanes, tl.load(x_ptr + lanes))",
            want, target, stores=True,
            extra={"x_ptr": (source, given)},
        )  # fmt: skip
    for kind in SHORT:
        given = [0, 1, 2, 0, 3, 0, 0, 1]
        body = "result = tl.load(x_ptr + tl.arange(0, 8)).to(tl.int1)"
        yield Construct(
            f"{kind} to int1",
            body,
            [bool(v) for v in given],
            "bool",
            extra={"x_ptr": (kind, given)},
        )
        yield Construct(
            f"int1 to {kind}", f"result = (lanes < 3).to(tl.{kind})", [1] * 3 + [0] * 5, kind
        )
    yield Construct(
        "float32 to float16 toward zero",
        "result = tl.load(x_ptr + tl.arange(0, 2)).to(tl.float16, fp_downcast_rounding='rtz')",
        [1 + 2**-10, -1.0],
        "float16",
        extra={"x_ptr": ("float32", [1 + 3 * 2**-11, -(1 + 2**-11)])},
    )
    yield Construct(
        "float32 to bfloat16 toward zero",
        "result = tl.load(x_ptr + tl.arange(0, 2)).to(tl.bfloat16, fp_downcast_rounding='rtz')",
        [1 + 2**-7, -1.0],
        "bfloat16",
        extra={"x_ptr": ("float32", [1 + 3 * 2**-8, -(1 + 2**-8)])},
    )
    yield Construct(
        "NaN and infinity to bfloat16",
        "result = odd32.to(tl.bfloat16)",
        values("odd32"),
        "bfloat16",
    )
    yield Construct(
        "NaN and infinity to float16", "result = odd32.to(tl.float16)", values("odd32"), "float16"
    )
    yield Construct(
        "too large for an integer",
        "result = odd32.to(tl.int32)",
        [0, 2**31 - 1, -(2**31), 0, 1, 0, 2, -3],
    )
    yield Construct(
        "fp64 to bfloat16 is rounded once",
        "result = tl.load(x_ptr + tl.arange(0, 2)).to(tl.bfloat16)",
        [1 + 2**-7, 1.0],
        "bfloat16",
        extra={"x_ptr": ("float64", [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40])},
        only="hopper",
    )
    yield Construct(
        "tl.cast", "result = tl.cast(i32, tl.float64)", [float(v) for v in I32], "float64"
    )
    yield Construct("x.cast", "result = i32.cast(tl.int64)", I32, "int64")
    yield Construct(
        "to: bits",
        "result = f32.to(tl.int32, bitcast=True)",
        [wrap(int(b), "int32") for b in np.array(F32, np.float32).view(np.uint32)],
    )
    yield Construct(
        "to: bits back",
        "result = f32.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)",
        F32,
        "float32",
    )
    yield Construct(
        "to: bits of bf16",
        "result = bf16.to(tl.uint16, bitcast=True)",
        [int(b) for b in np.array(values("bf16"), ml_dtypes.bfloat16).view(np.uint16)],
        "uint16",
    )
    yield Construct("to: bits of another width", "result = f32.to(tl.int16, bitcast=True)", None)
    yield Construct(
        "to the dtype of a pointer", "result = f32.to(out_ptr.dtype.element_ty)", F32, "float32"
    )


def _nearest_of_int(value: int, target: str) -> float:
    """An integer beyond fp64's 53 bits: its digits cut so that the last says whether anything was
    lost."""
    if target == "float64":
        return float(value)
    keep = value.bit_length() - 50
    return _nearest(float((value >> keep | (value & (2**keep - 1) != 0)) * 2**keep), target)


def _each(function: Any, given: list, dtype: str = "float32") -> list[float]:
    with np.errstate(all="ignore"):
        return [float(v) for v in function(np.array(given, np.float64))]


def _math() -> Iterator[Construct]:
    positive = [0.25, 1.0, 2.0, 4.0, 9.0, 100.0, 1e-6, 3.0]
    some = [0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -0.25, 10.0]
    for name, function, given in (
        ("exp", np.exp, some), ("exp2", np.exp2, some), ("log", np.log, positive),
        ("log2", np.log2, positive),
        ("sin", np.sin, some), ("cos", np.cos, some), ("sqrt", np.sqrt, positive),
        ("sqrt_rn", np.sqrt, positive),
        ("rsqrt", lambda x: 1 / np.sqrt(x), positive), ("floor", np.floor, some),
        ("ceil", np.ceil, some), ("abs", np.abs, some),
        ("erf", np.vectorize(math.erf), some), ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), some),
    ):  # fmt: skip
        extra = {"x_ptr": ("float32", given)}
        near = 0.0 if name in ("floor", "ceil", "abs") else 1e-5
        body = "x = tl.load(x_ptr + tl.arange(0, 8))\n"
        yield Construct(
            f"tl.{name}",
            f"{body}result = tl.{name}(x)",
            _each(function, given),
            "float32",
            near=near,
            extra=extra,
        )
        yield Construct(
            f"x.{name}",
            f"{body}result = x.{name}()",
            _each(function, given),
            "float32",
            near=near,
            extra=extra,
        )
        if name != "sigmoid":
            yield Construct(
                f"tl.math.{name}",
                f"{body}result = tl.math.{name}(x)",
                _each(function, given),
                "float32",
                near=near,
                extra=extra,
            )
        if name not in ("abs", "sigmoid"):
            yield Construct(f"tl.{name} of fp16", f"result = tl.{name}(f16)", None)
    yield Construct(
        "tl.abs of bf16", "result = tl.abs(bf16)", [abs(v) for v in values("bf16")], "bfloat16"
    )
    yield Construct(
        "tl.sqrt of fp64", "result = tl.sqrt(f64 * f64)", [abs(v) for v in values("f64")], "float64"
    )
    yield Construct("tl.exp of an integer", "result = tl.exp(i32)", None)
    third = [1 / 3] * 8
    a = np.float32(1 + 2**-12)
    fused = float(np.float32(float(a) * float(a) - 1.0))
    one = "x = tl.load(x_ptr + tl.arange(0, 1))\n"
    yield Construct(
        "tl.fma rounds once",
        f"{one}result = tl.fma(x, x, x * 0 - 1.0)",
        [fused],
        "float32",
        extra={"x_ptr": ("float32", [float(a)])},
    )
    yield Construct(
        "tl.math.fma of fp64",
        f"{one}result = tl.math.fma(x, x, x * 0 - 1.0)",
        [2.0**-29 + 2.0**-60],
        "float64",
        extra={"x_ptr": ("float64", [1 + 2**-30])},
    )
    yield Construct(
        "tl.fdiv", "result = tl.fdiv(f32 * 0 + 1, f32 * 0 + 3)", third, "float32", near=1e-6
    )
    yield Construct(
        "tl.math.fdiv",
        "result = tl.math.fdiv(f32 * 0 + 1, f32 * 0 + 3)",
        third,
        "float32",
        near=1e-6,
    )
    yield Construct(
        "tl.div_rn",
        "result = tl.div_rn(f32 * 0 + 1, f32 * 0 + 3)",
        [float(np.float32(1 / 3))] * 8,
        "float32",
    )
    yield Construct(
        "tl.math.div_rn",
        "result = tl.math.div_rn(f32 * 0 + 1, f32 * 0 + 3)",
        [float(np.float32(1 / 3))] * 8,
        "float32",
    )
    yield Construct("tl.math.umulhi", "result = tl.math.umulhi(two << 30, two)", [1] * 8)
    yield Construct(
        "f32 % f32 has the sign of the left",
        "result = f32 % 0.75",
        [math.fmod(v, 0.75) for v in F32],
        "float32",
    )
    yield Construct(
        "tl.maximum: NaN gives way",
        "result = tl.maximum(odd32, 0.5)",
        [0.5, INF, 0.5, 0.5, 1, 0.5, 2, 0.5],
        "float32",
    )
    yield Construct(
        "tl.minimum: NaN gives way",
        "result = tl.minimum(odd32, 0.5)",
        [0.5, 0.5, -INF, -0.0, 0.5, 0.5, 0.5, -3],
        "float32",
    )
    yield Construct(
        "tl.maximum: NaN is passed on",
        "result = tl.maximum(odd32, 0.5, propagate_nan=tl.PropagateNan.ALL)",
        [NAN, INF, 0.5, 0.5, 1, NAN, 2, 0.5],
        "float32",
    )
    yield Construct(
        "tl.minimum: NaN is passed on",
        "result = tl.minimum(odd32, 0.5, propagate_nan=tl.PropagateNan.ALL)",
        [NAN, 0.5, -INF, -0.0, 0.5, NAN, 0.5, -3],
        "float32",
    )
    yield Construct(
        "tl.maximum of integers", "result = tl.maximum(i32, 0)", [max(v, 0) for v in I32]
    )
    yield Construct(
        "tl.maximum of bf16",
        "result = tl.maximum(bf16, 0.5)",
        [max(v, 0.5) for v in values("bf16")],
        "float32",
    )
    yield Construct(
        "tl.clamp",
        "result = tl.clamp(f32, -1.0, 2.0)",
        [min(max(v, -1), 2) for v in F32],
        "float32",
    )
    yield Construct(
        "tl.clamp: NaN is the lower bound",
        "result = tl.clamp(odd32, -1.0, 2.0)",
        [-1, 2, -1, 0, 1, -1, 2, -1],
        "float32",
    )
    yield Construct(
        "tl.clamp: NaN is passed on",
        "result = tl.clamp(odd32, -1.0, 2.0, propagate_nan=tl.PropagateNan.ALL)",
        [NAN, 2, -1, 0, 1, NAN, 2, -1],
        "float32",
    )
    yield Construct("tl.clamp of integers", "result = tl.clamp(i32, 0, 1)", None)
    yield Construct(
        "comparisons with NaN",
        "result = (odd32 < 1) | (odd32 == odd32)",
        [not math.isnan(v) for v in values("odd32")],
        "bool",
    )
    yield Construct(
        "NaN is not equal",
        "result = odd32 != odd32",
        [math.isnan(v) for v in values("odd32")],
        "bool",
    )
    soft = np.exp(np.array(F32) / 500 - 2)
    yield Construct(
        "tl.softmax",
        "result = tl.softmax(f32 / 500)",
        [float(v) for v in soft / soft.sum()],
        "float32",
        near=1e-5,
    )
    yield Construct(
        "x.softmax",
        "result = (f32 / 500).softmax()",
        [float(v) for v in soft / soft.sum()],
        "float32",
        near=1e-5,
    )
    yield Construct("0 / 0 is NaN", "result = (f32 * 0) / (f32 * 0)", [NAN] * 8, "float32")
    yield Construct(
        "1 / 0 is infinite", "result = (f32 * 0 + 1) / (tl.abs(f32) * 0)", [INF] * 8, "float32"
    )


def _libdevice() -> Iterator[Construct]:
    imports = "from triton.language.extra import libdevice\n"
    some = [0.5, 1.0, -1.0, 0.25, -0.5, 0.75, -0.25, 0.125]
    for name, function in (
        ("tanh", np.tanh), ("rint", np.rint), ("log1p", np.log1p), ("expm1", np.expm1),
        ("atan", np.arctan), ("trunc", np.trunc),
        ("cbrt", np.cbrt), ("asin", np.arcsin), ("exp10", lambda x: 10**x),
        ("erfc", np.vectorize(math.erfc)),
        ("tgamma", np.vectorize(lambda x: math.gamma(x) if x != -1 else NAN)),
    ):  # fmt: skip
        body = f"result = libdevice.{name}(tl.load(x_ptr + tl.arange(0, 8)))"
        yield Construct(
            f"libdevice.{name}",
            body,
            _each(function, some),
            "float32",
            near=1e-4,
            helpers=imports,
            extra={"x_ptr": ("float32", some)},
        )
    yield Construct(
        "libdevice.rsqrt",
        "result = libdevice.rsqrt(f32 * 0 + 4)",
        [0.5] * 8,
        "float32",
        near=1e-6,
        helpers=imports,
    )
    yield Construct(
        "libdevice.rsqrt of fp64",
        "result = libdevice.rsqrt(f64 * 0 + 4)",
        [0.5] * 8,
        "float64",
        near=1e-6,
        helpers=imports,
    )
    yield Construct(
        "libdevice.pow",
        "result = libdevice.pow(f32 * 0 + 2, f32 * 0 + 3)",
        [8.0] * 8,
        "float32",
        near=1e-6,
        helpers=imports,
    )
    yield Construct(
        "libdevice.round",
        "result = libdevice.round(f32)",
        [1.0, -3.0, 0.0, 1000.0, 0.0, -1.0, 3.0, 7.0],
        "float32",
        helpers=imports,
    )
    yield Construct(
        "libdevice.isnan",
        "result = libdevice.isnan(odd32)",
        [math.isnan(v) for v in values("odd32")],
        "bool",
        helpers=imports,
    )
    yield Construct(
        "libdevice.fma",
        "x = tl.load(x_ptr + tl.arange(0, 1))\nresult = libdevice.fma(x, x, x * 0 - 1.0)",
        [2.0**-11 + 2.0**-24],
        "float32",
        helpers=imports,
        extra={"x_ptr": ("float32", [1 + 2**-12])},
    )
    yield Construct(
        "libdevice.sqrt_rn",
        "result = libdevice.sqrt_rn(f32 * f32)",
        [abs(v) for v in F32],
        "float32",
        helpers=imports,
    )
    yield Construct(
        "libdevice by name",
        "result = popc(i32)",
        [v % 2**32 for v in I32] and [(v % 2**32).bit_count() for v in I32],
        helpers="from triton.language.extra.libdevice import popc\n",
    )
    yield Construct(
        "libdevice of CUDA",
        "result = tl.extra.cuda.libdevice.clz(i32)",
        [32 - (v % 2**32).bit_length() for v in I32],
    )
    yield Construct(
        "libdevice.j0",
        "result = libdevice.j0(f32)",
        None,
        cpu="words",
        words="libdevice's j0",
        helpers=imports,
    )


def _shapes() -> Iterator[Construct]:
    square = "x = tl.reshape(lanes, [2, 4])\n"
    line = list(range(8))
    columns = [0, 4, 1, 5, 2, 6, 3, 7]
    yield Construct("tl.arange", "result = tl.arange(8, 16)", list(range(8, 16)))
    yield Construct("tl.arange: no power of two", "result = tl.arange(0, 6)", None)
    yield Construct("tl.arange: of a tensor", "result = tl.arange(0, n)", None)
    yield Construct("tl.full", "result = tl.full([4], 3, tl.int64)", [3] * 4, "int64")
    yield Construct(
        "tl.full of a tensor", "result = tl.full([4], n, tl.float32)", [5.0] * 4, "float32"
    )
    yield Construct(
        "tl.full of bf16", "result = tl.full([4], 1.00390625, tl.bfloat16)", [1.0] * 4, "bfloat16"
    )
    yield Construct("tl.zeros", "result = tl.zeros([4], dtype=tl.float16)", [0.0] * 4, "float16")
    yield Construct("tl.zeros: a tuple", "result = tl.zeros((2, 2), tl.int32)", [0] * 4)
    yield Construct("tl.zeros_like", "result = tl.zeros_like(f16)", [0.0] * 8, "float16")
    yield Construct(
        "tl.where",
        "result = tl.where(lanes < n, i32, 0)",
        [v if i < 5 else 0 for i, v in enumerate(I32)],
    )
    yield Construct("tl.where: one condition", "result = tl.where(n > 3, i32, 0)", I32)
    yield Construct(
        "tl.where: of bf16",
        "result = tl.where(lanes < 3, bf16, 0.5)",
        [*values("bf16")[:3], *[0.5] * 5],
        "bfloat16",
    )
    yield Construct(
        "tl.where: of pointers",
        "result = tl.load(tl.where(lanes < 3, small_ptr + lanes, two_ptr + lanes)) + small * 0 +"
        " two * 0",
        [0, 1, 1, 2, 2, 2, 2, 2],
    )
    yield Construct(
        "None index",
        "result = lanes[:, None] * 10 + tl.arange(0, 2)[None, :]",
        [10 * i + j for i in range(8) for j in range(2)],
    )
    yield Construct("index by a number", "result = lanes[0]", None)
    yield Construct("index of a scalar", "result = n[None]", [5])
    yield Construct(
        "tl.expand_dims",
        "result = tl.expand_dims(lanes, 0) + lanes.expand_dims(0)",
        [2 * i for i in line],
    )
    yield Construct(
        "tl.unsqueeze and tl.squeeze", "result = tl.squeeze(tl.unsqueeze(lanes, 0), 0)", line
    )
    yield Construct("tl.broadcast_to", "result = tl.broadcast_to(n, [4])", [5] * 4)
    yield Construct(
        "x.broadcast_to",
        "result = lanes[:, None].broadcast_to(8, 2)",
        [i for i in range(8) for _ in range(2)],
    )
    yield Construct(
        "tl.broadcast", "a, b = tl.broadcast(n, lanes)\nresult = a - b", [5 - i for i in line]
    )
    yield Construct("lengths that do not fit", "result = lanes + tl.arange(0, 4)", None)
    yield Construct("tl.reshape", f"{square}result = tl.sum(x, 1)", [6, 22])
    yield Construct("x.reshape", "result = tl.sum(lanes.reshape(2, 4), 1)", [6, 22])
    yield Construct(
        "tl.view", "result = tl.sum(tl.view(lanes, [8]), 0) + tl.sum(lanes.view(8), 0)", 56
    )
    yield Construct("tl.ravel", f"{square}result = tl.ravel(x) + x.ravel()", [2 * i for i in line])
    yield Construct("tl.trans", f"{square}result = tl.trans(x)", columns)
    yield Construct("x.trans, x.T", f"{square}result = x.trans() + x.T", [2 * i for i in columns])
    yield Construct(
        "tl.permute",
        f"{square}result = tl.permute(x, (1, 0)) + x.permute(1, 0)",
        [2 * i for i in columns],
    )
    yield Construct(
        "tl.cat", "result = tl.sort(tl.cat(lanes, lanes + 8, can_reorder=True))", list(range(16))
    )
    yield Construct(
        "tl.join",
        "result = tl.join(lanes, lanes + 8)",
        [i + 8 * j for i in range(8) for j in range(2)],
    )
    yield Construct(
        "tl.split",
        "a, b = tl.split(tl.join(lanes, lanes * 3))\nresult = b - a",
        [2 * i for i in line],
    )
    yield Construct(
        "x.split", "a, b = tl.join(lanes, lanes * 3).split()\nresult = b - a", [2 * i for i in line]
    )
    yield Construct(
        "tl.interleave",
        "result = tl.interleave(lanes, lanes + 8)",
        [i + 8 * j for i in range(8) for j in range(2)],
    )
    yield Construct("tl.flip", "result = tl.flip(lanes, 0)", line[::-1])
    yield Construct("tl.flip of floats", "result = tl.flip(f32, 0)", F32[::-1], "float32")
    yield Construct("x.flip", "result = i32.flip(0)", I32[::-1])
    yield Construct("tl.sort", "result = tl.sort(i32)", sorted(I32))
    yield Construct(
        "tl.sort: descending",
        "result = tl.sort(f32, descending=True)",
        sorted(F32, reverse=True),
        "float32",
    )
    yield Construct("x.sort is not there", "result = small.sort().to(tl.int64)", None)
    yield Construct(
        "tl.sort of rows",
        "result = tl.sort(tl.reshape(i32, [2, 4]))",
        [*sorted(I32[:4]), *sorted(I32[4:])],
    )
    yield Construct("tl.topk", "result = tl.topk(small, 4)", [3, 3, 3, 2])
    yield Construct(
        "tl.bitonic_merge",
        "result = tl.bitonic_merge(tl.where(lanes < 4, lanes, 7 - lanes))",
        [0, 0, 1, 1, 2, 2, 3, 3],
    )
    yield Construct(
        "tl.gather", "result = tl.gather(i32, perm, 0)", [I32[i] for i in values("perm")]
    )
    yield Construct("x.gather", "result = i32.gather(perm, 0)", [I32[i] for i in values("perm")])
    yield Construct("tl.histogram", "result = tl.histogram(small, 4)", [2, 2, 1, 3])
    yield Construct("x.histogram", "result = small.histogram(4)", [2, 2, 1, 3])
    yield Construct(
        "tl.histogram: masked", "result = tl.histogram(small, 4, mask=lanes < 4)", [1, 2, 0, 1]
    )
    yield Construct("x.item", "result = tl.full([1], 3, tl.int32).item()", 3)
    yield Construct("tl.to_tensor", "result = tl.to_tensor(3) + n", 8)
    yield Construct(
        "tl.multiple_of and the like",
        "result = tl.multiple_of(tl.max_contiguous(tl.max_constancy(lanes, 1), 8), 8)",
        line,
    )
    yield Construct("tl.assume", "tl.assume(n > 0)\nresult = n", 5)


def _reductions() -> Iterator[Construct]:
    square = "x = tl.reshape(i32, [2, 4])\n"
    yield Construct("tl.sum", "result = tl.sum(small, axis=0)", 13)
    yield Construct("x.sum", "result = small.sum(0)", 13)
    yield Construct("tl.sum: no axis", f"{square}result = tl.sum(x)", wrap(sum(I32), "int32"))
    yield Construct(
        "tl.sum: axis 0",
        f"{square}result = tl.sum(x, 0)",
        [wrap(a + b, "int32") for a, b in zip(I32[:4], I32[4:], strict=True)],
    )
    yield Construct(
        "tl.sum: the last axis",
        f"{square}result = tl.sum(x, -1)",
        [wrap(sum(I32[:4]), "int32"), wrap(sum(I32[4:]), "int32")],
    )
    yield Construct(
        "tl.sum: keep_dims",
        f"{square}result = x * 0 + tl.sum(x * 0 + 1, 1, keep_dims=True)",
        [4] * 8,
    )
    yield Construct(
        "tl.sum: wraps", "result = tl.sum(i32 * 0 + 2147483647, 0)", wrap(8 * (2**31 - 1), "int32")
    )
    yield Construct("tl.sum: of a mask", "result = tl.sum((lanes < 3).to(tl.int32), 0)", 3)
    yield Construct("tl.sum: of int1", "result = tl.sum(lanes < 3, 0)", 3, "uint32")
    yield Construct(
        "tl.sum: dtype", "result = tl.sum(i8, 0, dtype=tl.int64)", sum(values("i8")), "int64"
    )
    yield Construct(
        "tl.sum of fp16 rounds as it goes",
        "result = tl.sum(tl.full([4096], 1.0, tl.float16) + 0.0009765625, 0)",
        4100.0,
        "float16",
    )
    yield Construct("tl.max", "result = tl.max(i32, 0)", 2**31 - 1)
    yield Construct("x.max and x.min", "result = small.max(0) * 10 + small.min(0)", 30)
    yield Construct(
        "tl.max: NaN gives way",
        "result = tl.max(tl.where(lanes == 1, 0.0, odd32), 0)",
        2.0,
        "float32",
    )
    yield Construct("tl.min", "result = tl.min(f32, 0)", -2.5, "float32")
    yield Construct(
        "tl.max with its index",
        "a, b = tl.max(small, 0, return_indices=True)\nresult = a * 10 + b",
        33,
    )
    yield Construct(
        "tl.min with its index",
        "a, b = tl.min(small, 0, return_indices=True)\nresult = a * 10 + b",
        0,
    )
    yield Construct("tl.argmax: the first of equals", "result = tl.argmax(small, 0)", 3)
    yield Construct("tl.argmin: the first of equals", "result = tl.argmin(small, 0)", 0)
    yield Construct("x.argmax and x.argmin", "result = small.argmax(0) * 10 + f32.argmin(0)", 31)
    yield Construct("tl.argmax of rows", "result = tl.argmax(tl.reshape(small, [2, 4]), 1)", [3, 0])
    yield Construct("tl.argmax of bf16", "result = tl.argmax(-bf16, 0)", 1)
    yield Construct(
        "tl.xor_sum",
        "result = tl.xor_sum(small, 0) * 10 + small.xor_sum(0)",
        11 * _xor(values("small")),
    )
    yield Construct("tl.reduce_or", "result = tl.reduce_or(small, 0) * 10 + small.reduce_or(0)", 33)
    yield Construct(
        "tl.cumsum", "result = tl.cumsum(small, 0)", [int(v) for v in np.cumsum(values("small"))]
    )
    yield Construct(
        "tl.cumsum: reverse",
        "result = tl.cumsum(small, 0, reverse=True)",
        [int(v) for v in np.cumsum(values("small")[::-1])[::-1]],
    )
    yield Construct(
        "x.cumsum and x.cumprod",
        "result = small.cumsum(0) + two.cumprod(0)",
        [int(v) + 2 ** (i + 1) for i, v in enumerate(np.cumsum(values("small")))],
    )
    yield Construct("tl.cumprod", "result = tl.cumprod(two, 0)", [2 ** (i + 1) for i in range(8)])
    yield Construct(
        "tl.cumsum of int8 is int32",
        "result = tl.cumsum(i8, 0)",
        [int(v) for v in np.cumsum(values("i8"))],
    )
    yield Construct(
        "tl.cumsum of rows",
        "result = tl.cumsum(tl.reshape(small, [2, 4]), 1)",
        [0, 1, 2, 5, 3, 6, 8, 8],
    )
    eye = (
        "i = tl.arange(0, 16)\nx = (i[:, None] * 2 + i[None, :] % 4).to(tl.{0})\ny = tl.where(i[:,"
        " None] == i[None, :], 2.0, 0.0).to(tl.{0})\n"
    )
    twice = [2.0 * (2 * i + j % 4) for i in range(16) for j in range(16)]
    for kind in ("float16", "bfloat16", "float32"):
        yield Construct(
            f"tl.dot of {kind}", f"{eye.format(kind)}result = tl.dot(x, y)", twice, "float32"
        )
    yield Construct(
        "tl.dot: adds to a block",
        f"{eye.format('float16')}result = tl.dot(x, y, tl.zeros([16, 16], tl.float32) + 1.0)",
        [v + 1 for v in twice],
        "float32",
    )
    yield Construct(
        "tl.dot of int8",
        "i = tl.arange(0, 32)\nx = (i[:, None] + i[None, :] * 0).to(tl.int8)\ny = (i[:, None] * 0 +"
        " i[None, :] * 0 + 2).to(tl.int8)\nresult = tl.max(tl.max(tl.dot(x, y), 0), 0)",
        31 * 2 * 32,
    )
    yield Construct(
        "tl.dot of fp32 reads tf32",
        f"{eye.format('float32')}result = tl.dot(x * 0 + 1.00048828125, y)",
        [2.0] * 256,
        "float32",
    )
    yield Construct(
        "tl.dot of fp32, exactly",
        f"{eye.format('float32')}result = tl.dot(x * 0 + 1.00048828125, y, input_precision='ieee')",
        [2.0009765625] * 256,
        "float32",
    )
    yield Construct(
        "tl.dot_scaled",
        "i = tl.arange(0, 32)\nx = tl.full([32, 32], 1.0, tl.float32).to(tl.float8e5)\ns ="
        " tl.full([32, 1], 127, tl.uint8)\nresult = tl.dot_scaled(x, s, 'e5m2', x, s, 'e5m2')",
        None,
        cpu="words",
        words="dot_scaled",
        only="hopper",
    )
    yield Construct(
        "tl.inline_asm_elementwise",
        "result = tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [n], tl.int32, True, 1)",
        None,
        cpu="words",
        words="inline_asm_elementwise",
    )


def _xor(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total ^= number
    return total


def values_and_shapes() -> Iterator[Construct]:
    assert BITS["bfloat16"] == 16
    for make in (_casts, _math, _libdevice, _shapes, _reductions):
        yield from make()
