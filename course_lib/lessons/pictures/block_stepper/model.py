"""Lessons 01, 02 and 07: the states of a norm kernel, block by block: lanes, accumulators and row
statistics, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.words import AND, list_words

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
BLOCKS = (2, 4, 8, 16)
EPS = (0.0, 1e-12, 1e-5, 1e-3, 0.1)
MAX_ROWS, MAX_COLUMNS = 6, 16
EXAMPLE = (
    (2.0, -1.0, 3.0, 0.5, -0.5, 1.5, -2.0, 1.0),
    (4.0, -3.0, 2.5, 1.0, -1.5, 0.0, -0.5, 2.0),
    (-1.0, 3.5, -2.5, 1.5, 0.0, -3.0, 2.5, -0.5),
)
# A sweep goes over a row once. Per kind: the phases of a row, each with the work of its sweep.
SWEEPS = {
    "layer_norm": {
        "sum": "sum x for the mean",
        "deviation": "sum (x - mean)^2 for the variance",
        "normalise": "write y",
    },
    "rms_norm": {"squares": "sum x^2 for the mean square", "normalise": "write y"},
}
_WORKING = {
    "sum": "summing",
    "squares": "summing",
    "deviation": "variance",
    "normalise": "normalising",
}


@dataclass(frozen=True)
class RowState:
    """The statistics of one row so far; None if not known yet. ``spread`` is the variance, or the
    mean square for RMSNorm."""

    status: str = "waiting"  # waiting, summing, variance, normalising, done
    total: float | None = None  # sum of x
    mean: float | None = None
    squares: float | None = None  # sum of squared deviations, or of squares for RMSNorm
    spread: float | None = None
    rms: float | None = None  # sqrt(spread + eps)
    rstd: float | None = None
    y: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class BlockFrame:
    """The state after one block of one sweep over one row."""

    kind: str
    eps: float
    block: int
    x: tuple[tuple[float, ...], ...]
    mask_deviation: bool
    row: int
    phase: str  # sum, deviation, squares, normalise
    block_index: int
    columns: tuple[int, ...]  # the column each lane asks for
    masked: tuple[bool, ...]  # lanes at or past N
    lanes: tuple[float, ...]  # value of each lane in this phase: x, x - mean, or y
    added: tuple[float, ...]  # value that each lane adds to its accumulator; empty when normalising
    accumulator: tuple[float, ...]  # partial sum of each lane; empty when normalising
    running: float | None  # sum of the accumulator over the lanes
    rows: tuple[RowState, ...]
    # the true variance of this row, if the unmasked lanes make the kernel's wrong
    right_spread: float | None


def steps(
    x: ArrayLike,
    block: int,
    kind: str,
    eps: float = 1e-5,
    w: ArrayLike | None = None,
    b: ArrayLike | None = None,
    mask_deviation: bool = True,
) -> list[BlockFrame]:
    """Return a frame for every block of every sweep of the blocked forward kernel over x, in order,
    one program after another.

    Args:
        x: shape (M, N), taken as float64.
        block: lanes of a program, a power of two; may be larger than N.
        kind: "layer_norm" (three sweeps) or "rms_norm" (two).
        w, b: shape (N,); None means ones for w and zeros for b. RMSNorm has no b.
        mask_deviation: LayerNorm only. False leaves the lanes past N at 0 - mean when the
            deviations are squared.

    Raises: CourseError if a shape, the block, the kind or eps is not allowed.
    """
    x, w, b = check_rows(x, block, kind, eps, w, b)
    state = _Rows(x, w, b, block, kind, eps, mask_deviation)
    frames: list[BlockFrame] = []
    for row in range(len(x)):
        for phase in SWEEPS[kind]:
            frames += state.sweep(row, phase)
    return frames


class _Rows:
    """The rows' states while the frames are made."""

    def __init__(
        self,
        x: np.ndarray,
        w: np.ndarray,
        b: np.ndarray,
        block: int,
        kind: str,
        eps: float,
        mask_deviation: bool,
    ) -> None:
        self.x = x
        self.w = w
        self.b = b
        self.block = block
        self.kind = kind
        self.eps = eps
        self.mask_deviation = mask_deviation
        self.rows = [RowState(y=(None,) * x.shape[1]) for _ in x]
        self.shown = tuple(tuple(float(value) for value in row) for row in x)

    def sweep(self, row: int, phase: str) -> list[BlockFrame]:
        n = self.x.shape[1]
        accumulator = np.zeros(self.block)
        frames = []
        self.rows[row] = replace(self.rows[row], status=_WORKING[phase])
        for index in range(-(-n // self.block)):
            columns = index * self.block + np.arange(self.block)
            inside = columns < n
            loaded = np.zeros(self.block)  # other=0.0
            loaded[inside] = self.x[row, columns[inside]]
            lanes, added = self._lanes(row, phase, loaded, inside, columns)
            if added is not None:
                accumulator = accumulator + added
            self._record(
                row,
                phase,
                lanes,
                columns[inside],
                accumulator,
                is_last=(index + 1) * self.block >= n,
            )
            frames.append(
                self._frame(row, phase, index, columns, inside, lanes, added, accumulator)
            )
        return frames

    def _lanes(
        self, row: int, phase: str, loaded: np.ndarray, inside: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        state = self.rows[row]
        if phase == "sum":
            return loaded, loaded
        if phase == "squares":
            return loaded, loaded * loaded
        centred = loaded - (state.mean or 0.0)
        if phase == "deviation":
            lanes = np.where(inside, centred, 0.0) if self.mask_deviation else centred
            return lanes, lanes * lanes
        w, b = np.zeros(self.block), np.zeros(self.block)
        w[inside], b[inside] = self.w[columns[inside]], self.b[columns[inside]]
        assert state.rstd is not None, "the statistics of a row come before its normalising"
        # a constant row with eps = 0 gives 0 * inf, and its y is NaN
        with np.errstate(invalid="ignore"):
            return centred * state.rstd * w + b, None

    def _record(
        self,
        row: int,
        phase: str,
        lanes: np.ndarray,
        columns: np.ndarray,
        accumulator: np.ndarray,
        is_last: bool,
    ) -> None:
        n, state, running = self.x.shape[1], self.rows[row], float(accumulator.sum())
        if phase == "normalise":
            y = list(state.y)
            for lane, column in enumerate(columns):
                y[column] = float(lanes[lane])
            self.rows[row] = replace(state, y=tuple(y), status="done" if is_last else state.status)
        elif phase == "sum":
            self.rows[row] = replace(state, total=running, mean=running / n if is_last else None)
        else:
            state = replace(state, squares=running)
            if is_last:
                rms = math.sqrt(running / n + self.eps)
                state = replace(
                    state, spread=running / n, rms=rms, rstd=1.0 / rms if rms else math.inf
                )
            self.rows[row] = state

    def _frame(self, row, phase, index, columns, inside, lanes, added, accumulator) -> BlockFrame:
        sums = added is not None
        wrong = self.kind == "layer_norm" and not self.mask_deviation and phase != "sum"
        return BlockFrame(
            kind=self.kind,
            eps=self.eps,
            block=self.block,
            x=self.shown,
            mask_deviation=self.mask_deviation,
            row=row,
            phase=phase,
            block_index=index,
            columns=tuple(int(column) for column in columns),
            masked=tuple(not bool(ok) for ok in inside),
            lanes=tuple(float(value) for value in lanes),
            added=tuple(float(value) for value in added) if sums else (),
            accumulator=tuple(float(value) for value in accumulator) if sums else (),
            running=float(accumulator.sum()) if sums else None,
            rows=tuple(self.rows),
            right_spread=float(self.x[row].var()) if wrong else None,
        )


def check_rows(x, block, kind, eps, w, b) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise CourseError(
            _(
                "the block stepper takes x of shape (M, N) with at least one number; this x has"
                " shape {shape}."
            ).format(shape=x.shape)
        )
    if kind not in KINDS:
        raise CourseError(
            _("the block stepper knows {known}; you asked for {kind!r}.").format(
                known=list_words(KINDS, AND), kind=kind
            )
        )
    if block < 1 or block & (block - 1):
        raise CourseError(
            _("BLOCK is a power of two, as tl.arange needs; you asked for {block}.").format(
                block=block
            )
        )
    if not eps >= 0.0:
        raise CourseError(
            _("eps is added inside the root and cannot be negative; you passed {eps}.").format(
                eps=eps
            )
        )
    if kind == "rms_norm" and b is not None:
        raise CourseError(_("RMSNorm has no bias: leave b out, or choose kind='layer_norm'."))
    n = x.shape[1]
    w = np.ones(n) if w is None else np.asarray(w, dtype=np.float64)
    b = np.zeros(n) if b is None else np.asarray(b, dtype=np.float64)
    if w.shape != (n,) or b.shape != (n,):
        words = _(
            "w and b have one number for each of the {n} columns; their shapes are {w} and {b}."
        )
        raise CourseError(words.format(n=n, w=w.shape, b=b.shape))
    return x, w, b


def write_rows(x: ArrayLike) -> str:
    """Write rows in the form in which a learner types them into the picture."""
    return "; ".join(
        " ".join(f"{value:.12g}" for value in row) for row in np.asarray(x, dtype=np.float64)
    )


def make_random_rows(mean: float) -> np.ndarray:
    """Return two rows of 13 multiples of 0.5 around ``mean``. Their sums are easy to check, and no
    block size divides 13."""
    return np.round(np.random.default_rng(0).normal(mean, 1.5, size=(2, 13)) * 2) / 2
