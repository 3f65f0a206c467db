"""The time of a launch on a GPU beside the floor: the fastest elementwise pass over the same bytes.
The two are measured in turns.

The launch runs the course's own kernel in the course's own process. A learner contributes only
three numbers, so a learner's code cannot influence the measured time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_lib.tuning.launch import LaunchChoice

GOAL = 0.9  # share of the floor's bandwidth
NEARLY = 0.87  # a share between this and the goal may be noise between runs: it is timed again
ROUNDS = 5

Clock = Callable[[], float]  # times one pass, in microseconds


class NoRoom(Exception):
    """A shape whose inputs and outputs do not fit into the GPU's memory; ``str()`` is PyTorch's
    message."""


@dataclass(frozen=True)
class MatrixShape:
    """M x N numbers of ``dtype``, "fp16" or "fp32"."""

    M: int
    N: int
    dtype: str = "fp16"

    def __str__(self) -> str:
        return f"{self.M} x {self.N} {self.dtype}"


@dataclass(frozen=True)
class Clocks:
    """The clocks for one shape: the floor, the learner's launch, and the course's own launch of the
    same kernel on this GPU."""

    floor: Clock
    tried: Clock
    own: Clock


@dataclass
class Timed:
    """The times of one shape in microseconds, one entry per round; the properties take the
    medians."""

    shape: MatrixShape
    launch: LaunchChoice
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
        """The launch's bandwidth divided by the floor's: 1 is as fast as the floor."""
        return self.floor_us / self.us

    @property
    def own_share(self) -> float:
        return self.floor_us / statistics.median(self.own)

    @property
    def is_reachable(self) -> bool:
        """True if the course's own launch reaches the goal on this GPU. If it does not, a learner's
        launch need not either."""
        return self.own_share >= GOAL

    @property
    def passes(self) -> bool:
        return self.share >= GOAL or not self.is_reachable

    def __str__(self) -> str:
        words = (
            f"{self.us:.1f} us, floor {self.floor_us:.1f} us, {self.share:.2f} of the floor's"
            " bandwidth"
        )
        return (
            words
            if self.is_reachable
            else (
                f"{words}; the course's own launch reaches {self.own_share:.2f} on this GPU, so"
                " nobody is asked for more"
            )
        )


def time_launch(
    shape: MatrixShape,
    launch: LaunchChoice,
    prepare: Callable[[MatrixShape, LaunchChoice], Clocks] | None = None,
) -> Timed:
    """Time a launch, the floor and the course's own launch in turns. A launch that falls a little
    short gets as many rounds again.

    Args:
        prepare: makes the three clocks; None takes those of this machine's GPU.

    Raises: NoRoom; operations.WrongValues if the kernel's results are wrong; any exception of the
    GPU.
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
                    torch.cuda.empty_cache()  # one graph's memory pool cannot serve another graph
            if timed.passes or timed.share < NEARLY:
                break
    except torch.OutOfMemoryError as out_of_memory:
        raise NoRoom(str(out_of_memory).split(".")[0]) from None
    return timed


def prepare_gpu(shape: MatrixShape, launch: LaunchChoice) -> Clocks:
    """Return the clocks of this machine's GPU. They time CUDA graphs over inputs that together are
    many times the size of its L2 cache.

    Raises: operations.WrongValues if the results of either launch are wrong.
    """
    import course_lib
    from course_lib.bench import grid, operations, timing
    from course_lib.kernels.launch import choice, tables

    op, dtype = operations.OPERATIONS["layer_norm"], operations.DTYPES[shape.dtype]
    count = grid.count_inputs(shape.M, shape.N, dtype.itemsize)
    inputs = operations.make(shape.M, shape.N, dtype, course_lib.DEVICE, count, (op,))
    own_choice = LaunchChoice(
        *tables.resident(shape.N, dtype, tuned=choice.find_device_class(inputs[0].x), centred=True)
    )
    clocks = []
    for choice_timed in (launch, own_choice):
        calls = [_make_call(values, choice_timed) for values in inputs]
        operations.check(op, calls[0](), inputs[0])
        clocks.append(lambda calls=calls: timing.device_us(calls))
    return Clocks(lambda: operations.floor_us(op, inputs), *clocks)


def _make_call(values: Any, launch: LaunchChoice) -> Callable[[], Sequence[Any]]:
    import torch

    from course_lib.bench.operations import EPS
    from course_lib.kernels.layer_norm import layer_norm_resident_kernel

    # Any: a type checker cannot know a Triton kernel's arguments
    kernel: Any = layer_norm_resident_kernel
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
