"""Profile one training step of lesson 14's transformer: when the GPU works, on what, and when it
waits for the host.

Each row has size ("small": 4 layers of 1024 channels; "wide": one block of 4096 channels), norm,
provider ("torch", "ours"), mode ("eager", "compiled": torch.compile; "graph": the whole eager step
in one CUDA graph), M and N (rows and columns of a norm's input), dtype (of autocast), ms (median of
a step without the profiler, on the host's clock, synchronized), tokens_per_s, peak_mb (most memory
that PyTorch allocated), and from one profiled step, in milliseconds: span_ms (from its first
kernel's start to its last one's end), idle_ms (the GPU's time without any kernel in it), kernels
(their number), pieces: [start, end, kind] of each stretch of kernels of one kind without a gap
above 2 us, and kinds: the length of the pieces by kind. Kernels that overlap (the course's column
sums start while the kernel before them ends) are one stretch, so their common time counts once.

python -m course_lib.authoring.bench.profile            measures on this machine's GPU, saves, prints the table
"""  # noqa: E501

from __future__ import annotations

import gc
import itertools
import re
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.authoring.bench import run_as_script
from course_lib.bench import measurement, tables, training
from course_lib.bench import transformer as small
from course_lib.bench.measurement import Measurement

KIND = "profile"
METHOD = (
    "training step: bf16 autocast, AdamW; ms: host's clock, synchronized, median of 20 steps; the"
    " rest: one step under torch.profiler, CUDA activities only"
)
SIZES = {
    "small": training.SIZE,
    "wide": small.ModelSize(layers=1, heads=32, channels=4096, context=256, batch=32),
}
MODES = ("eager", "compiled", "graph")
_PROVIDERS = ("torch", "ours")
# By the kernel's name, the first that fits. The compiler names a fused kernel after all operations
# in it, so one with a norm counts as a norm.
_KINDS = {
    "norm": r"norm|GammaBeta|column_sums",
    "attention": r"flash|fmha|attention",
    "matmul": r"gemm|nvjet|cutlass|splitK",
    "optimizer": r"multi_tensor|adam",
}
_OTHER = "other"
_STEPS, _WARM_UP, _GAP_US = 20, 5, 2.0


def measure() -> Measurement:
    """Profile a step of each size, norm, provider and mode.

    Raises: CourseError without a GPU.
    """
    result = measurement.new(KIND, METHOD)
    for (name, size), norm, provider, mode in itertools.product(
        SIZES.items(), ("layer_norm", "rms_norm"), _PROVIDERS, MODES
    ):
        torch.compiler.reset()
        gc.collect()  # a compiled model is part of a reference cycle
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step = _make_step(training.NORMS[norm, provider], size, mode)
        ms = _time(step)
        peak = torch.cuda.max_memory_allocated() - before
        row = {
            "size": name,
            "norm": norm,
            "provider": provider,
            "mode": mode,
            "M": size.rows,
            "N": size.channels,
            "dtype": "bf16",
        }
        row |= {
            "ms": round(ms, 3),
            "tokens_per_s": round(size.rows / ms * 1e3),
            "peak_mb": round(peak / 1e6),
        }
        result.rows.append(row | summarise(_profile(step)))
        del step  # the model, or the next one would be made beside it
    return result


def _make_step(
    norm: Callable[[int], nn.Module], size: small.ModelSize, mode: str
) -> Callable[[], object]:
    """Return a training step on one fixed batch, warmed up; for "graph" it is the replay of a
    graph."""
    text = small.encode(small.fables())
    model: nn.Module = small.build(text, norm, size, device="cuda")
    codes, targets = next(small.batches(text, size, 0, "cuda"))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=3e-4, weight_decay=0.0, capturable=mode == "graph"
    )
    run: Callable = torch.compile(model, dynamic=False) if mode == "compiled" else model

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=mode != "graph"):
            loss = F.cross_entropy(run(codes).flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    if mode != "graph":
        return step
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _time(step: Callable[[], object]) -> float:
    """Return the median of the milliseconds from one synchronisation to the next."""
    times = []
    for _ in range(_WARM_UP + _STEPS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[_WARM_UP:])


def _profile(step: Callable[[], object]) -> list[tuple[str, float, float]]:
    """Return name, start and end in microseconds of each kernel of one step."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True):
        step()  # the first profile of a process sets the profiler up
        torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        step()
        torch.cuda.synchronize()
    events = [e for e in profile.events() or () if e.device_type.name == "CUDA"]
    return [(e.name, e.time_range.start, e.time_range.end) for e in events]


def summarise(kernels: list[tuple[str, float, float]]) -> dict:
    """Return span_ms, idle_ms, kinds, kernels and pieces of a step, from the name, start and end in
    microseconds of each kernel."""
    kernels = sorted(kernels, key=lambda kernel: kernel[1])
    begin, busy, reached = kernels[0][1], 0.0, kernels[0][1]
    pieces: list[list] = []
    for name, start, end in kernels:
        kind = next(
            (kind for kind, pattern in _KINDS.items() if re.search(pattern, name, re.IGNORECASE)),
            _OTHER,
        )
        busy += max(0.0, end - max(start, reached))
        if pieces and pieces[-1][2] == kind and start - reached <= _GAP_US:
            pieces[-1][1] = max(pieces[-1][1], end)
        else:
            pieces.append([start, end, kind])
        reached = max(reached, end)
    kinds = dict.fromkeys(sorted(piece[2] for piece in pieces), 0.0)
    for start, end, kind in pieces:
        kinds[kind] += end - start
    return {
        "span_ms": round((reached - begin) / 1e3, 3),
        "idle_ms": round((reached - begin - busy) / 1e3, 3),
        "kinds": {kind: round(us / 1e3, 3) for kind, us in kinds.items()},
        "kernels": len(kernels),
        "pieces": [
            [round((start - begin) / 1e3, 3), round((end - begin) / 1e3, 3), kind]
            for start, end, kind in pieces
        ],
    }


def table(result: Measurement, width: int = tables.WIDTH) -> str:
    """Write a table with one line per row of the measurement. Its width is always the same;
    ``width`` is ignored."""
    lines = [
        result.label(),
        f"{'size':6}{'norm':11}{'by':6}{'mode':9}{'ms':>8}{'tokens/s':>11}{'MB':>7}{'span':>8}{'idle':>8}{'norms':>8}{'kernels':>8}",
    ]
    for r in result.rows:
        line = f"{r['size']:6}{r['norm']:11}{r['provider']:6}{r['mode']:9}{r['ms']:8.2f}{r['tokens_per_s']:11,}{r['peak_mb']:7}"  # noqa: E501
        lines.append(
            f"{line}{r['span_ms']:8.2f}{r['idle_ms']:8.2f}{r['kinds'].get('norm', 0.0):8.2f}{r['kernels']:8}"  # noqa: E501
        )
    return "\n".join(lines)


if __name__ == "__main__":
    run_as_script(KIND, measure, table)
