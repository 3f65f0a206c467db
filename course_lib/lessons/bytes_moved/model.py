"""Lesson 07: the bytes that a chain of kernels moves through HBM, against one fused kernel: what is shown, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.base.errors import CourseError
from course_lib.lessons.words import format_bytes, format_count, format_duration

ITEMSIZE = {"fp16": 2, "bf16": 2, "fp32": 4}
CASES = {"add": "add, then rms_norm", "eager": "rms_norm, op by op"}
L2_BYTES = 50e6  # H100
ROWS = (1, 16, 128, 1024, 4096, 16384, 65536)
COLUMNS = (1, 16, 256, 1024, 4096, 8192, 32768)


@dataclass(frozen=True)
class Traffic:
    """One tensor read or written once by a launch."""

    tensor: str  # as the operation calls it
    colour: str  # the key in style.COLOURS
    write: bool
    elements: int
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.elements * self.itemsize


@dataclass(frozen=True)
class LaunchTraffic:
    """One kernel launch and what it moves."""

    name: str
    traffic: tuple[Traffic, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.traffic)


@dataclass(frozen=True)
class Comparison:
    """The same result by several launches and by one."""

    case: str
    m: int
    n: int
    dtype: str
    upcast: bool
    unfused: tuple[LaunchTraffic, ...]
    fused: tuple[LaunchTraffic, ...]

    @property
    def unfused_bytes(self) -> int:
        return sum(launch.bytes for launch in self.unfused)

    @property
    def fused_bytes(self) -> int:
        return sum(launch.bytes for launch in self.fused)

    @property
    def ratio(self) -> float:
        return self.fused_bytes / self.unfused_bytes


def model(case: str, m: int, n: int, dtype: str, upcast: bool = True) -> Comparison:
    """Count what each launch reads and writes.

    Every tensor of a launch crosses HBM once, and nothing waits in L2 for the next launch. w (N elements, shared by
    all rows) and the saved rstd of a fused kernel (M elements) are left out on both sides; per-row intermediates
    that an op-by-op chain writes and reads back (M elements) are counted.

    Args:
        case: "add": r + x, then rms_norm of the sum s, both results kept: 5 M N against 4 M N elements.
            "eager": pow, mean, add eps, rsqrt, mul, mul against one kernel of 2 M N.
        dtype: fp16, bf16 or fp32, of x, r, s and y.
        upcast: "eager" only: x is cast to fp32 first and back before w, as model code does. Means nothing for fp32.

    Raises: CourseError if the case or dtype is unknown or a size is below 1.
    """
    if case not in CASES or dtype not in ITEMSIZE or m < 1 or n < 1:
        raise CourseError(
            f"bytes_moved knows the cases {', '.join(CASES)}, the dtypes {', '.join(ITEMSIZE)} and sizes from 1; "
            f"you asked for case={case!r}, M={m}, N={n}, dtype={dtype!r}."
        )
    size = ITEMSIZE[dtype]
    if case == "add":
        mn = _Tensors(m * n, size)
        unfused = (
            LaunchTraffic("add", (mn.read("x"), mn.read("r"), mn.write("s"))),
            LaunchTraffic("rms_norm", (mn.read("s"), mn.write("y"))),
        )
        fused = (LaunchTraffic("add + rms_norm", (mn.read("x"), mn.read("r"), mn.write("s"), mn.write("y"))),)
    else:
        unfused = _eager(m, n, size, upcast)
        mn = _Tensors(m * n, size)
        fused = (LaunchTraffic("rms_norm", (mn.read("x"), mn.write("y"))),)
    return Comparison(case, m, n, dtype, upcast, unfused, fused)


def _eager(m: int, n: int, size: int, upcast: bool) -> tuple[LaunchTraffic, ...]:
    casts = upcast and size != 4
    inner = 4 if casts else size
    low, high, row = _Tensors(m * n, size), _Tensors(m * n, inner), _Tensors(m, inner)
    chain = [
        LaunchTraffic("pow", (high.read("x"), high.write("x^2"))),
        LaunchTraffic("mean", (high.read("x^2"), row.write("ms"))),
        LaunchTraffic("add eps", (row.read("ms"), row.write("ms"))),
        LaunchTraffic("rsqrt", (row.read("ms"), row.write("rstd"))),
        LaunchTraffic("mul rstd", (high.read("x"), row.read("rstd"), high.write("xhat"))),
        LaunchTraffic("mul w", (low.read("xhat"), low.write("y"))),
    ]
    if casts:
        chain.insert(0, LaunchTraffic("cast up", (low.read("x"), high.write("x"))))
        chain.insert(-1, LaunchTraffic("cast down", (high.read("xhat"), low.write("xhat"))))
    return tuple(chain)


@dataclass(frozen=True)
class _Tensors:
    elements: int
    itemsize: int

    def read(self, tensor: str) -> Traffic:
        return Traffic(tensor, _COLOUR_OF.get(tensor, tensor), False, self.elements, self.itemsize)

    def write(self, tensor: str) -> Traffic:
        return Traffic(tensor, _COLOUR_OF.get(tensor, tensor), True, self.elements, self.itemsize)


# s, the new residual, continues r; xhat is y before w
_COLOUR_OF = {"s": "r", "x^2": "mean", "ms": "mean", "xhat": "y"}


def microseconds(moved: float, bandwidth: float) -> float:
    """Time at the memory limit for ``moved`` bytes at ``bandwidth`` GB/s (10^9 bytes a second)."""
    return moved / bandwidth * 1e-3


def title(state: Comparison) -> str:
    """The ratio, in words."""
    if state.case == "add":
        return f"Fusing add and rms_norm moves {state.ratio:.2f} of the bytes: 4 M N instead of 5 M N"
    launches = len(state.unfused)
    return f"Op by op, rms_norm moves {1 / state.ratio:.1f} times the bytes, in {launches} launches"


def describe(state: Comparison, bandwidth: float) -> str:
    """The caption: sizes, times and every assumption that they rest on."""
    words = [
        f"M = {state.m}, N = {state.n}, {state.dtype}: {format_count(len(state.unfused), 'launch')} move {format_bytes(state.unfused_bytes)}, "
        f"{format_duration(microseconds(state.unfused_bytes, bandwidth))} at {bandwidth:g} GB/s; {format_count(len(state.fused), 'launch')} moves "
        f"{format_bytes(state.fused_bytes)}, {format_duration(microseconds(state.fused_bytes, bandwidth))}."
    ]
    if state.case == "eager":
        casts = state.upcast and ITEMSIZE[state.dtype] != 4
        words.append("x is cast to fp32 first and back before w." if casts else f"Every intermediate is {state.dtype}.")
    words.append(
        "Counted: every tensor of a launch crosses HBM once. Left out on both sides: w (N elements) and the saved rstd."
    )
    if state.m < 16:
        words.append("With so few rows w is not small beside x, and launch cost, not bytes, sets the time.")
    elif state.m * state.n * ITEMSIZE[state.dtype] < L2_BYTES:
        size = format_bytes(state.m * state.n * ITEMSIZE[state.dtype])
        words.append(
            f"A tensor of {size} fits in an H100's 50 MB of L2, so a real second launch finds part of it there."
        )
    return " ".join(words)
