"""Measure lesson 14's transformer at a size at which the norm's speed matters: tokens per second by
norm and provider, eager and compiled.

Each row has norm ("layer_norm", "rms_norm"), provider ("ours", "torch", and for RMSNorm "typed":
the formula written op by op, as model code often does), compiled, layers, M (rows of a norm's
input), N, dtype (of autocast), ms (median of a training step), tokens_per_s, and losses (of each
step, from the same seed; [] if they were not kept).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import course_lib
from course_lib.base.errors import CourseError
from course_lib.bench import measurement, tables
from course_lib.bench import transformer as small
from course_lib.bench.measurement import Measurement
from course_lib.norms import modules

KIND = "training"
SIZE = small.ModelSize(layers=4, heads=16, channels=1024, context=256, batch=64)
_RATE = 3e-4
_WARM_UP = 3


class TypedRMSNorm(nn.Module):
    """RMSNorm op by op: cast up, square, mean, add eps, rsqrt, multiply, cast back, multiply by
    w."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(
            x.dtype
        )


NORMS: dict[tuple[str, str], Callable[[int], nn.Module]] = {
    ("layer_norm", "torch"): nn.LayerNorm,
    ("layer_norm", "ours"): modules.LayerNorm,
    ("rms_norm", "typed"): TypedRMSNorm,
    ("rms_norm", "torch"): nn.RMSNorm,
    ("rms_norm", "ours"): modules.RMSNorm,
}


def latest(steps: int = 30) -> Measurement | None:
    """Measure now, eager only, if there is a GPU; else return the newest stored measurement, or
    None if there is none yet."""
    if course_lib.MODE == "gpu":
        return measure(steps, compiled=False)
    try:
        return measurement.stored(KIND)
    except CourseError:
        if measurement.is_stored(KIND):
            raise  # a measurement exists, but cannot be read
        return None


def measure(
    steps: int = 100, *, compiled: bool = True, size: small.ModelSize = SIZE
) -> Measurement:
    """Train ``steps`` steps with every norm, from one seed, under bf16 autocast.

    Args:
        compiled: also time the whole model under torch.compile, which takes half a minute per norm.

    Raises: CourseError without a GPU; AssertionError if a norm's loss differs too much from
    PyTorch's, since its time would mean nothing.
    """
    result = measurement.new(
        KIND,
        f"training steps on the host's clock, synchronized, median of {steps - _WARM_UP}; bf16"
        " autocast, AdamW",
    )
    text = small.encode(small.fables())
    for with_compile in (False, True)[: 1 + compiled]:
        for (norm, provider), make in NORMS.items():
            losses, ms = _time_steps(text, make, steps, size, with_compile)
            row = {
                "norm": norm,
                "provider": provider,
                "compiled": with_compile,
                "layers": size.layers,
                "M": size.rows,
                "N": size.channels,
            }
            row |= {
                "dtype": "bf16",
                "ms": round(ms, 3),
                "tokens_per_s": round(size.rows / ms * 1e3),
                "losses": [round(loss, 5) for loss in losses],
            }
            result.rows.append(row)
    for row in result.rows:
        reference = next(
            r
            for r in result.rows
            if (r["norm"], r["provider"], r["compiled"]) == (row["norm"], "torch", False)
        )
        apart = abs(
            statistics.fmean(row["losses"][-10:]) - statistics.fmean(reference["losses"][-10:])
        )
        assert apart < 0.1, (
            f"{row['norm']} {row['provider']}: the loss ends {apart:.3f} from PyTorch's: not kept"
        )
    return result


def _time_steps(
    text: small.Text,
    make: Callable[[int], nn.Module],
    steps: int,
    size: small.ModelSize,
    compiled: bool,
) -> tuple[list[float], float]:
    """Return the losses and the median milliseconds per step. To read a loss waits for the GPU, so
    a step ends when its loss is read."""
    model: nn.Module = small.build(text, make, size, device="cuda")
    if compiled:
        optimised = torch.compile(model, dynamic=False)
        assert isinstance(optimised, nn.Module)  # torch.compile turns a module into a module
        model = optimised
    losses, times, since = [], [], time.perf_counter()
    for loss in small.train(model, text, steps, size, rate=_RATE, autocast=torch.bfloat16):
        torch.cuda.synchronize()
        now = time.perf_counter()
        losses.append(loss)
        times.append((now - since) * 1e3)
        since = now
    return losses, statistics.median(times[_WARM_UP:])


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table with one line per norm and provider. It always has the same width, which is
    below WIDTH; ``width`` is ignored."""
    lines = [
        f"{result.label()}",
        f"{'norm':12}{'provider':10}{'':10}{'ms a step':>10}{'tokens/s':>12}{'last loss':>11}",
    ]
    for row in result.rows:
        mode = "compiled" if row["compiled"] else "eager"
        lines.append(
            f"{row['norm']:12}{row['provider']:10}{mode:10}{row['ms']:10.2f}{row['tokens_per_s']:12,}{row['losses'][-1]:11.3f}"
        )
    return "\n".join(lines)
