"""Measure the host time of an eager call: checking arguments, finding the kernel, launching it, and
autograd's bookkeeping.

With few short rows the GPU finishes before the host returns, so this is the whole time of a call.
Each row has op (a forward operation), provider (one of PROVIDERS; "kernels" is the course's kernels
without the operators around them), passes ("forward" is without gradients; "forward and backward"
goes through autograd, but for "kernels" calls one kernel after the other), M, N, dtype and us, the
median over calls without synchronisation between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import torch

import course_lib
from course_lib.base.translation import mark as N_
from course_lib.bench import grid, operations, tables, timing
from course_lib.bench.measurement import Measurement
from course_lib.bench.operations import DTYPES, OPERATIONS, NormOperation, Values
from course_lib.bench.providers import PEERS, Prepare, ProviderFunctions

KIND = "host"
SHAPE = grid.Shape(64, 1024)
PROVIDERS = ("ours", "kernels", *PEERS)
PASSES = (N_("forward"), N_("forward and backward"))
_OPS = tuple(op for op in OPERATIONS.values() if not op.backward)
_METHOD = (
    f"host time of an eager call on {SHAPE.M} x {SHAPE.N}, median of 500 calls, 50 at a time"
    " without synchronising between them"
)


def measure(dtype: str = "fp16", providers: Iterable[str] | None = None) -> Measurement:
    """Time one eager call of every provider: forward alone, and forward with backward.

    Args:
        dtype: "fp16", "bf16" or "fp32".
        providers: names from PROVIDERS; None means all of them.

    Raises: CourseError without a GPU, for an unknown dtype or provider.
    """
    result, timed = grid.begin(KIND, dtype, providers, PROVIDERS, whole=True, method=_METHOD)
    (values,) = operations.make(
        SHAPE.M, SHAPE.N, DTYPES[dtype], course_lib.DEVICE, 1, tuple(OPERATIONS.values())
    )
    for provider in timed:
        try:
            functions = provider.load()
        except Exception as error:
            grid.record(result, provider, error, {"dtype": dtype})
            continue
        for op in _OPS:
            for passes, prepare in _find_passes(functions, op).items():
                names = {
                    "op": op.name,
                    "provider": provider.name,
                    "passes": passes,
                    "M": SHAPE.M,
                    "N": SHAPE.N,
                    "dtype": dtype,
                }
                try:
                    call = prepare(values)
                    if passes == "forward":
                        operations.check(op, call(), values)
                    result.rows.append({**names, "us": round(timing.host_us(call), 2)})
                except Exception as error:
                    grid.record(result, provider, error, names)
    return result


def _find_passes(functions: ProviderFunctions, op: NormOperation) -> dict[str, Prepare]:
    """Return the calls of ``op`` that this provider has, by passes."""
    kinds = {}
    if op.name in functions.prepare:
        kinds["forward"] = functions.prepare[op.name]
    if op.name in functions.both:
        kinds["forward and backward"] = functions.both[op.name]
    elif op.name in functions.eager:
        kinds["forward and backward"] = lambda values: _call_through_autograd(
            functions.eager[op.name], op, values
        )
    return kinds


def _call_through_autograd(
    forward: Callable[..., tuple], op: NormOperation, values: Values
) -> Callable[[], tuple]:
    leaves = replace(
        values,
        **{
            name: getattr(values, name).detach().requires_grad_()
            for name in ("x", "residual", "w", "b")
        },
    )
    inputs = [leaves.x, leaves.w] + [leaves.b] * op.centred + [leaves.residual] * op.add

    def call() -> tuple:
        outputs = forward(leaves.x, leaves.residual, leaves.w, leaves.b)[: len(op.outputs)]
        return torch.autograd.grad(outputs, inputs, [values.dy] * len(outputs))

    return call


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table of microseconds per kind of call: one line per provider, one column per
    operation. Notes name what was not timed."""
    lines = [result.label()]
    for passes in PASSES:
        rows = [
            ((row["provider"],), row["op"], f"{row['us']:.1f}")
            for row in result.rows
            if row["passes"] == passes
        ]
        marks = [
            ((e["provider"],), e["op"], tables.MARKS[e["state"]])
            for e in result.untimed
            if e.get("passes") == passes
        ]
        lines += ["", *tables.cells(rows, marks, f"{passes}, us a call", width)]
    return "\n".join([*lines, *tables.notes(result, width)])
