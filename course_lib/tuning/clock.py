"""Times launches on a GPU beside the floor: the fastest elementwise pass over the same bytes, measured in turns with the launch.

What is launched is the course's kernel, in the course's own process. Of somebody else's only three numbers get here, so nobody but the
GPU has a say in a time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_lib.tuning.launch import Launch

GOAL = 0.9  # of the bandwidth of the floor
NEARLY = 0.87  # two runs of one launch differ by up to 0.03: who comes so near is timed again before it counts
ROUNDS = 5

Clock = Callable[[], float]  # times one pass, in microseconds


class NoRoom(Exception):
    """The GPU's memory does not hold the inputs and outputs of a shape; ``str()`` says what PyTorch said of it."""


@dataclass(frozen=True)
class Shape:
    """M x N numbers of ``dtype``, "fp16" or "fp32"."""

    M: int
    N: int
    dtype: str = "fp16"

    def __str__(self) -> str:
        return f"{self.M} x {self.N} {self.dtype}"


@dataclass(frozen=True)
class Clocks:
    """Of one shape: the floor, the launch that is tried, and the course's own launch of the same kernel on this GPU."""

    floor: Clock
    tried: Clock
    own: Clock


@dataclass
class Timed:
    """The times of one shape, each a median of all rounds, in microseconds."""

    shape: Shape
    launch: Launch
    floors: list[float] = field(default_factory=list)
    tried: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    @property
    def floor_us(self) -> float:
        return statistics.median(self.floors)

    @property
    def us(self) -> float:
        return statistics.median(self.tried)

    @property
    def share(self) -> float:
        """Of the floor's bandwidth: 1 is the floor."""
        return self.floor_us / self.us

    @property
    def own_share(self) -> float:
        return self.floor_us / statistics.median(self.own)

    @property
    def is_reachable(self) -> bool:
        """Whether the course's own launch of this kernel comes so near on this GPU. Where it does not, nobody is asked to."""
        return self.own_share >= GOAL

    @property
    def passes(self) -> bool:
        return self.share >= GOAL or not self.is_reachable

    def __str__(self) -> str:
        words = f"{self.us:.1f} us, floor {self.floor_us:.1f} us, {self.share:.2f} of the floor's bandwidth"
        return (
            words
            if self.is_reachable
            else f"{words}; the course's own launch reaches {self.own_share:.2f} on this GPU, so nobody is asked for more"
        )


def time_launch(shape: Shape, launch: Launch, prepare: Callable[[Shape, Launch], Clocks] | None = None) -> Timed:
    """Time one launch, the floor and the course's own launch in turns. One that falls a little short is timed for as many rounds again.

    Args:
        prepare: makes the three clocks; None takes those of this machine's GPU.

    Raises: NoRoom; operations.WrongValues if the kernel's results are wrong; what the GPU raises.
    """
    import torch

    timed = Timed(shape, launch)
    try:
        clocks = (prepare or prepare_gpu)(shape, launch)
        for _ in range(2):
            for _ in range(ROUNDS):
                timed.floors.append(clocks.floor())
                timed.tried.append(clocks.tried())
                timed.own.append(clocks.own())
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()  # a graph's pool serves no other graph
            if timed.passes or timed.share < NEARLY:
                break
    except torch.OutOfMemoryError as full:
        raise NoRoom(str(full).split(".")[0]) from None
    return timed


def prepare_gpu(shape: Shape, launch: Launch) -> Clocks:
    """The clocks of this machine's GPU: CUDA graphs over inputs that are together many times as large as its L2 cache.

    Raises: operations.WrongValues if the results of either launch are wrong.
    """
    import course_lib
    from course_lib.bench import grid, operations, timing
    from course_lib.kernels.launch import choice, tables

    op, dtype = operations.OPERATIONS["layer_norm"], operations.DTYPES[shape.dtype]
    count = grid.count_inputs(shape.M, shape.N, dtype.itemsize)
    inputs = operations.make(shape.M, shape.N, dtype, course_lib.DEVICE, count, (op,))
    own = Launch(*tables.resident(shape.N, tuned=choice.find_device_class(inputs[0].x), centred=True))
    clocks = []
    for one in (launch, own):
        calls = [_make_call(values, one) for values in inputs]
        operations.check(op, calls[0](), inputs[0])
        clocks.append(lambda calls=calls: timing.device_us(calls))
    return Clocks(lambda: operations.floor_us(op, inputs), *clocks)


def _make_call(values: Any, launch: Launch) -> Callable[[], Sequence[Any]]:
    import torch

    from course_lib.bench.operations import EPS
    from course_lib.kernels.layer_norm import layer_norm_resident_kernel

    kernel: Any = layer_norm_resident_kernel  # what a launch takes, no type checker knows
    x, w, b = values.x, values.w, values.b
    M, N = x.shape

    def call() -> Sequence[torch.Tensor]:
        y = torch.empty_like(x)
        mean, rstd = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
        kernel[(-(-M // launch.rows),)](
            x,
            y,
            w,
            b,
            mean,
            rstd,
            N,
            1,
            N,
            1,
            M,
            N,
            EPS,
            HAS_W=True,
            HAS_B=True,
            ROWS=launch.rows,
            BLOCK=launch.block,
            num_warps=launch.num_warps,
        )
        return y, mean, rstd

    return call
