"""Measure two times of a call: the device's, without the host's time and without help from the
cache, and the host's alone.

An eager call on a small input measures the host, because its launch takes longer than the kernel. A
call repeated on one input measures the L2 cache. So for the device's time the calls are captured in
one CUDA graph, over inputs that are together larger than the cache, with every output kept alive,
and events time the graph's replay. For the host's time the input is so small that the device always
waits for the host, and there is no synchronisation between calls.

A time counts only if the timed work was done. So the results of a replay that was timed can be
judged. For a kernel that nobody knows, every replay also gets new inputs: then a kernel that keeps
results of an earlier call, or does its work before the clock runs, has wrong results.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch

_WARM_UP = 2
# eager calls between two synchronisations, far fewer than fill the launch queue: a full queue makes
# the host wait
_BATCH = 50


def device_us(
    calls: Sequence[Callable[[], object]],
    replays: int = 12,
    *,
    renew: Callable[[], object] | None = None,
    judge: Callable[[], object] | None = None,
) -> float:
    """Return the median device time of one call, in microseconds.

    Args:
        calls: the same work on different inputs; together they should touch several times the bytes
            of the L2 cache.
        replays: how often the whole graph is timed.
        renew: writes new numbers into the inputs of all calls, before each replay and outside its
            time.
        judge: is called after the last timed replay, and raises an exception if what the calls
            wrote is wrong.

    Raises: RuntimeError without a CUDA device; what ``judge`` raises.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # the inputs may not be finished yet
    with torch.cuda.stream(stream):
        for call in calls[:_WARM_UP]:
            call()  # compile, and fill the allocator's pool, before the capture
        stream.synchronize()
        results = []
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for call in calls:
                results.append(call())
        times = []
        for _ in range(replays + _WARM_UP):
            if renew is not None:
                renew()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / len(calls))
        if judge is not None:
            judge()
    return statistics.median(times[_WARM_UP:])


def host_us(call: Callable[[], object], batches: int = 10) -> float:
    """Return the median host time of one eager call, in microseconds.

    Args:
        call: works on an input so small that the device finishes before the host returns.
        batches: number of batches of 50 calls; the host waits for the device between batches, never
            inside one.
    """
    synchronize = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
    times = []
    for batch in range(batches + 1):
        synchronize()
        batch_times = []
        for _ in range(_BATCH):
            start = time.perf_counter_ns()
            call()
            batch_times.append(time.perf_counter_ns() - start)
        if batch:  # the first batch compiles and warms up, so its times do not count
            times += batch_times
    synchronize()
    return statistics.median(times) / 1e3
