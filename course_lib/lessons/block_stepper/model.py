"""Lessons 01, 06 and 07: a blocked norm kernel, one block at a time, with its lanes, accumulators and row statistics: what is shown, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons.words import agree, format_decimal

KINDS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
BLOCKS = (2, 4, 8, 16)
EPS = (0.0, 1e-12, 1e-5, 1e-3, 0.1)
TYPED = "type your own"
MAX_ROWS, MAX_COLUMNS = 6, 16
EXAMPLE = (
    (2.0, -1.0, 3.0, 0.5, -0.5, 1.5, -2.0, 1.0),
    (4.0, -3.0, 2.5, 1.0, -1.5, 0.0, -0.5, 2.0),
    (-1.0, 3.5, -2.5, 1.5, 0.0, -3.0, 2.5, -0.5),
)
# what a sweep does, by phase
SWEEPS = {
    "layer_norm": {
        "sum": "sum x for the mean",
        "deviation": "sum (x - mean)^2 for the variance",
        "normalise": "write y",
    },
    "rms_norm": {"squares": "sum x^2 for the mean square", "normalise": "write y"},
}
_WORKING = {"sum": "summing", "squares": "summing", "deviation": "variance", "normalise": "normalising"}


@dataclass(frozen=True)
class RowState:
    """What is known of one row so far; None is not known yet. ``spread`` is the variance, or the mean square for RMSNorm."""

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
    lanes: tuple[float, ...]  # what each lane holds after its load: x, x - mean, or y
    added: tuple[float, ...]  # what each lane adds to its accumulator; empty when normalising
    accumulator: tuple[float, ...]  # partial sum of each lane; empty when normalising
    running: float | None  # sum of the accumulator over the lanes
    rows: tuple[RowState, ...]
    right_spread: float | None  # the true variance of this row, where the unmasked one is wrong

    @property
    def last_block(self) -> bool:
        return (self.block_index + 1) * self.block >= len(self.x[0])


def steps(
    x: ArrayLike,
    block: int,
    kind: str,
    eps: float = 1e-5,
    w: ArrayLike | None = None,
    b: ArrayLike | None = None,
    mask_deviation: bool = True,
) -> list[BlockFrame]:
    """Every block of every sweep of the blocked forward kernel over x, in order, one program after another.

    Args:
        x: shape (M, N), taken as float64.
        block: lanes of a program, a power of two; may be larger than N.
        kind: "layer_norm" (three sweeps) or "rms_norm" (two).
        w, b: shape (N,); None is all ones and all zeros. RMSNorm has no b.
        mask_deviation: LayerNorm only. False leaves the lanes past N at 0 - mean when the deviations are squared.

    Raises: CourseError if a shape, the block, the kind or eps does not fit.
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
        self, x: np.ndarray, w: np.ndarray, b: np.ndarray, block: int, kind: str, eps: float, mask_deviation: bool
    ) -> None:
        self.x, self.w, self.b, self.block, self.kind, self.eps, self.mask_deviation = (
            x,
            w,
            b,
            block,
            kind,
            eps,
            mask_deviation,
        )
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
            self._record(row, phase, lanes, columns[inside], accumulator, last=(index + 1) * self.block >= n)
            frames.append(self._frame(row, phase, index, columns, inside, lanes, added, accumulator))
        return frames

    def _lanes(
        self, row: int, phase: str, loaded: np.ndarray, inside: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        known = self.rows[row]
        if phase == "sum":
            return loaded, loaded
        if phase == "squares":
            return loaded, loaded * loaded
        centred = loaded - (known.mean or 0.0)
        if phase == "deviation":
            lanes = np.where(inside, centred, 0.0) if self.mask_deviation else centred
            return lanes, lanes * lanes
        w, b = np.zeros(self.block), np.zeros(self.block)
        w[inside], b[inside] = self.w[columns[inside]], self.b[columns[inside]]
        assert known.rstd is not None, "the statistics of a row come before its normalising"
        with np.errstate(invalid="ignore"):  # 0 * inf, if eps is 0: NaN is what such a row becomes
            return centred * known.rstd * w + b, None

    def _record(
        self, row: int, phase: str, lanes: np.ndarray, columns: np.ndarray, accumulator: np.ndarray, last: bool
    ) -> None:
        n, known, running = self.x.shape[1], self.rows[row], float(accumulator.sum())
        if phase == "normalise":
            y = list(known.y)
            for lane, column in enumerate(columns):
                y[column] = float(lanes[lane])
            self.rows[row] = replace(known, y=tuple(y), status="done" if last else known.status)
        elif phase == "sum":
            self.rows[row] = replace(known, total=running, mean=running / n if last else None)
        else:
            known = replace(known, squares=running)
            if last:
                rms = math.sqrt(running / n + self.eps)
                known = replace(known, spread=running / n, rms=rms, rstd=1.0 / rms if rms else math.inf)
            self.rows[row] = known

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
            f"the block stepper takes x of shape (M, N) with at least one number; this x has shape {x.shape}."
        )
    if kind not in KINDS:
        raise CourseError(f"the block stepper knows {' and '.join(KINDS)}; you asked for {kind!r}.")
    if block < 1 or block & (block - 1):
        raise CourseError(f"BLOCK is a power of two, as tl.arange needs; you asked for {block}.")
    if not eps >= 0.0:
        raise CourseError(f"eps is added inside the root and cannot be negative; you passed {eps}.")
    if kind == "rms_norm" and b is not None:
        raise CourseError("RMSNorm has no bias: leave b out, or choose kind='layer_norm'.")
    n = x.shape[1]
    w = np.ones(n) if w is None else np.asarray(w, dtype=np.float64)
    b = np.zeros(n) if b is None else np.asarray(b, dtype=np.float64)
    if w.shape != (n,) or b.shape != (n,):
        raise CourseError(
            f"w and b have one number for each of the {n} columns; their shapes are {w.shape} and {b.shape}."
        )
    return x, w, b


def title(frame: BlockFrame) -> str:
    """The message of one frame."""
    row = frame.rows[frame.row]
    pad = sum(frame.masked)
    if frame.phase == "deviation" and pad and not frame.mask_deviation and row.mean:
        return f"Row {frame.row}: {pad} padded {'lane adds' if pad == 1 else 'lanes add'} mean^2 to the variance"
    if row.status == "done":
        return f"Row {frame.row} is done" + (", with the wrong variance" if _is_wrong(frame) else "")
    if frame.phase == "normalise":
        return f"Row {frame.row}, last sweep: y for {_columns(frame)}"
    of = {"sum": "x", "deviation": "(x - mean)^2", "squares": "x^2"}[frame.phase]
    if frame.last_block:
        result = {"sum": "the mean", "deviation": "variance and rstd", "squares": "mean square and rstd"}[frame.phase]
        return f"Row {frame.row}: the lanes add up to {format_decimal(frame.running)}, which gives {result}"
    return f"Row {frame.row}: lanes collect {of} of {_columns(frame)}"


def describe(frame: BlockFrame) -> str:
    """The caption: where the kernel is, what the lanes hold, and what is known of the row, in sentences."""
    row = frame.rows[frame.row]
    sweeps = list(SWEEPS[frame.kind])
    n, blocks = len(frame.x[0]), -(-len(frame.x[0]) // frame.block)
    words = [
        f"{KINDS[frame.kind]}, row {frame.row} of {len(frame.x)} x {n}, sweep {sweeps.index(frame.phase) + 1} of {len(sweeps)} "
        f"({SWEEPS[frame.kind][frame.phase]}), block {frame.block_index + 1} of {blocks}: {_columns(frame)}."
    ]
    pad = sum(frame.masked)
    if pad:
        spare = f"{pad} {'lane lies' if pad == 1 else 'lanes lie'} past column {n - 1}"
        if frame.phase == "normalise":
            words.append(f"{spare} and {agree(pad, 'stores', 'store')} nothing.")
        elif frame.phase == "deviation" and not frame.mask_deviation:
            words.append(
                f"{spare} and, unmasked, {agree(pad, 'holds', 'hold')} 0 - mean = {format_decimal(-(row.mean or 0.0))}."
            )
        else:
            words.append(f"{spare} and {agree(pad, 'adds', 'add')} 0.")
    if frame.running is not None:
        words.append(
            f"The lanes' partial sums are {', '.join(format_decimal(value) for value in frame.accumulator)}: {format_decimal(frame.running)} together."
        )
    if frame.phase == "sum" and row.mean is not None:
        words.append(f"mean = {format_decimal(row.total)} / {n} = {format_decimal(row.mean)}.")
    elif frame.phase in ("deviation", "squares") and row.rstd is not None and row.spread is not None:
        name = "variance" if frame.phase == "deviation" else "mean square"
        words.append(
            f"{name} = {format_decimal(row.squares)} / {n} = {format_decimal(row.spread)}, rstd = {format_decimal(row.rstd)}."
        )
        if frame.eps >= 0.01 * row.spread > 0:
            words.append(
                f"eps = {frame.eps:g} matters here: without it rstd would be {format_decimal(row.spread**-0.5)}."
            )
        elif row.spread == 0:
            without = (
                f"1 / sqrt(eps), and eps is {frame.eps:g}" if frame.eps else "1 / 0, and 0 times that is no number"
            )
            words.append(f"The {name} is 0, so rstd is {without}.")
    if row.spread is not None and frame.right_spread is not None and _is_wrong(frame):
        words.append(
            f"The right variance is {format_decimal(frame.right_spread)}: the padded lanes added {format_decimal(row.spread - frame.right_spread)}."
        )
    words.append(f"Row {frame.row} is {'done' if row.status == 'done' else 'in the state ' + row.status}.")
    return " ".join(words)


def parsed(text: str) -> np.ndarray:
    """Rows as a reader types them, as (M, N): numbers with spaces or commas between, and a semicolon between rows.

    Raises: CourseError if something is no finite number, the rows differ in length, or there is no room to draw them.
    """
    rows = [line.replace(",", " ").split() for line in text.replace("\n", ";").split(";") if line.strip()]
    if not rows:
        raise CourseError("there is no row yet: type numbers with spaces between them, and a semicolon between rows.")
    values = [[_typed_number(word) for word in row] for row in rows]
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise CourseError(f"every row needs as many numbers as the others; these have {', '.join(map(str, lengths))}.")
    check_room((len(rows), lengths[0]))
    return np.array(values)


def _typed_number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise CourseError(f"{word!r} is not a number. Type for example `2 -1 3 .5; 4 -3 2.5 1`.") from None
    if not math.isfinite(value) or abs(value) >= 1e6:
        raise CourseError(f"{word} cannot be drawn: the block stepper takes numbers between -1e6 and 1e6.")
    return value


def check_room(shape: tuple[int, ...]) -> None:
    if shape[0] > MAX_ROWS or shape[1] > MAX_COLUMNS:
        raise CourseError(
            f"the block stepper shows up to {MAX_ROWS} rows and {MAX_COLUMNS} columns; this x has shape {shape}."
        )


def _is_wrong(frame: BlockFrame) -> bool:
    spread = frame.rows[frame.row].spread
    return (
        frame.right_spread is not None
        and spread is not None
        and not math.isclose(spread, frame.right_spread, rel_tol=1e-9, abs_tol=1e-12)
    )


def _columns(frame: BlockFrame) -> str:
    inside = [column for column, off in zip(frame.columns, frame.masked, strict=True) if not off]
    return f"column {inside[0]}" if len(inside) == 1 else f"columns {inside[0]} to {inside[-1]}"
