"""Device time of a call, without the host's share and without the cache's help.

An eager call on a small input measures the host: its launch costs more than the kernel. And a call repeated on one
input measures the L2 cache. So the calls are captured in one CUDA graph, over enough inputs to outgrow the cache, with
every output kept alive, and the graph's replay is timed by events.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

_WARM_UP = 2


def device_us(calls: Sequence[Callable[[], object]], replays: int = 12) -> float:
    """Median device time of one call, in microseconds.

    Args:
        calls: the same work on different inputs; together they should touch several times the L2 cache.
        replays: how often the whole graph is timed.

    Raises: RuntimeError without a CUDA device.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls[:_WARM_UP]:
            call()  # compiles, and fills the allocator's pool, before the capture
        stream.synchronize()
        kept = []
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for call in calls:
                kept.append(call())
        times = []
        for _ in range(replays + _WARM_UP):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / len(calls))
    return statistics.median(times[_WARM_UP:])
