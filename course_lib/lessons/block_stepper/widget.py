"""Lessons 01, 06 and 07: a blocked norm kernel, one block at a time, with its lanes, accumulators and row statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.base.errors import CourseError
from course_lib.lessons import style
from course_lib.lessons.live import LiveStepper, Picture, wide
from course_lib.lessons.words import format_decimal

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
    "layer_norm": {"sum": "sum x for the mean", "deviation": "sum (x - mean)^2 for the variance", "normalise": "write y"},
    "rms_norm": {"squares": "sum x^2 for the mean square", "normalise": "write y"},
}
_NOISE = 1e-13  # what rounding leaves of a 0; anything larger is a number of the reader's
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
class Frame:
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
) -> list[Frame]:
    """Every block of every sweep of the blocked forward kernel over x, in order, one program after another.

    Args:
        x: shape (M, N), taken as float64.
        block: lanes of a program, a power of two; may be larger than N.
        kind: "layer_norm" (three sweeps) or "rms_norm" (two).
        w, b: shape (N,); None is all ones and all zeros. RMSNorm has no b.
        mask_deviation: LayerNorm only. False leaves the lanes past N at 0 - mean when the deviations are squared.

    Raises: CourseError if a shape, the block, the kind or eps does not fit.
    """
    x, w, b = _checked(x, block, kind, eps, w, b)
    state = _Rows(x, w, b, block, kind, eps, mask_deviation)
    frames: list[Frame] = []
    for row in range(len(x)):
        for phase in SWEEPS[kind]:
            frames += state.sweep(row, phase)
    return frames


class _Rows:
    """The rows' states while the frames are made."""

    def __init__(self, x: np.ndarray, w: np.ndarray, b: np.ndarray, block: int, kind: str, eps: float, mask_deviation: bool) -> None:
        self.x, self.w, self.b, self.block, self.kind, self.eps, self.mask_deviation = x, w, b, block, kind, eps, mask_deviation
        self.rows = [RowState(y=(None,) * x.shape[1]) for _ in x]
        self.shown = tuple(tuple(float(value) for value in row) for row in x)

    def sweep(self, row: int, phase: str) -> list[Frame]:
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
        with np.errstate(invalid="ignore"):  # 0 * inf, if eps is 0: NaN is what such a row becomes
            return centred * known.rstd * w + b, None

    def _record(self, row: int, phase: str, lanes: np.ndarray, columns: np.ndarray, accumulator: np.ndarray, last: bool) -> None:
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

    def _frame(self, row, phase, index, columns, inside, lanes, added, accumulator) -> Frame:
        sums = added is not None
        wrong = self.kind == "layer_norm" and not self.mask_deviation and phase != "sum"
        return Frame(
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


def _checked(x, block, kind, eps, w, b) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise CourseError(f"the block stepper takes x of shape (M, N) with at least one number; this x has shape {x.shape}.")
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
        raise CourseError(f"w and b have one number for each of the {n} columns; their shapes are {w.shape} and {b.shape}.")
    return x, w, b


def title(frame: Frame) -> str:
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


def describe(frame: Frame) -> str:
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
            words.append(f"{spare} and {_s(pad, 'stores', 'store')} nothing.")
        elif frame.phase == "deviation" and not frame.mask_deviation:
            words.append(f"{spare} and, unmasked, {_s(pad, 'holds', 'hold')} 0 - mean = {format_decimal(-row.mean)}.")
        else:
            words.append(f"{spare} and {_s(pad, 'adds', 'add')} 0.")
    if frame.running is not None:
        words.append(
            f"The lanes' partial sums are {', '.join(format_decimal(value) for value in frame.accumulator)}: {format_decimal(frame.running)} together."
        )
    if frame.phase == "sum" and row.mean is not None:
        words.append(f"mean = {format_decimal(row.total)} / {n} = {format_decimal(row.mean)}.")
    elif frame.phase in ("deviation", "squares") and row.rstd is not None:
        name = "variance" if frame.phase == "deviation" else "mean square"
        words.append(f"{name} = {format_decimal(row.squares)} / {n} = {format_decimal(row.spread)}, rstd = {format_decimal(row.rstd)}.")
        if frame.eps >= 0.01 * row.spread > 0:
            words.append(f"eps = {frame.eps:g} matters here: without it rstd would be {format_decimal(row.spread**-0.5)}.")
        elif row.spread == 0:
            without = f"1 / sqrt(eps), and eps is {frame.eps:g}" if frame.eps else "1 / 0, and 0 times that is no number"
            words.append(f"The {name} is 0, so rstd is {without}.")
    if row.spread is not None and _is_wrong(frame):
        words.append(
            f"The right variance is {format_decimal(frame.right_spread)}: the padded lanes added {format_decimal(row.spread - frame.right_spread)}."
        )
    words.append(f"Row {frame.row} is {'done' if row.status == 'done' else 'in the state ' + row.status}.")
    return " ".join(words)


def draw(frames: Sequence[Frame], index: int) -> Picture:
    """Matrix with the current block outlined, the lanes and accumulators under it, and what is known of each row."""
    frame = frames[index]
    m, n = len(frame.x), len(frame.x[0])
    padded = -(-n // frame.block) * frame.block
    left, cell_w = 1.05, min(0.5, (style.WIDTH - 1.25) / max(padded, frame.block))
    matrix_top, row_h = 0.95, 0.5
    lanes_top = matrix_top + m * row_h + 0.55
    lane_h = 0.34
    lane_rows = 3 if frame.accumulator else 1
    table_top = lanes_top + 3 * lane_h + 0.35  # the same place in every sweep, so that nothing jumps
    height = table_top + 0.3 * (m + 1) + 0.2
    figure, axes = style.drawing(style.WIDTH, height)
    style.write(axes, 0.2, 0.26, title(frame), font=12, bold=True)
    _draw_matrix(axes, frame, left, matrix_top, cell_w, row_h)
    _draw_lanes(axes, frame, left, lanes_top, cell_w, lane_h, lane_rows)
    _draw_table(axes, frame, table_top)
    caption = f"Frame {index + 1} of {len(frames)}. {describe(frame)}"
    alt = f"{title(frame)}. A {m} x {n} matrix, the current block outlined, its lanes, and the numbers of each row. {caption}"
    return Picture(style.png(figure, alt), alt, caption)


def _draw_matrix(axes: Axes, frame: Frame, left: float, top: float, cell_w: float, row_h: float) -> None:
    n = len(frame.x[0])
    padded = -(-n // frame.block) * frame.block
    style.write(axes, 0.2, 0.58, "x above, y below it once it is written", colour=style.QUIET)
    for column in range(padded):
        style.write(axes, left + (column + 0.5) * cell_w, top - 0.12, str(column), ha="center", colour=style.QUIET)
    style.write(axes, left - 0.85, top - 0.12, "column", colour=style.QUIET)
    for r, values in enumerate(frame.x):
        at_y = top + r * row_h
        style.write(axes, left - 0.12, at_y + (row_h - 0.06) / 2, f"row {r}", ha="right", bold=r == frame.row)
        for column in range(padded):
            at = (left + column * cell_w, at_y)
            here = r == frame.row and column in frame.columns
            if column >= n:
                style.cell(axes, at, (cell_w, row_h - 0.06), "", "masked")
                continue
            y = frame.rows[r].y[column]
            kind = "active" if here else "waiting" if y is None else "done"
            style.cell(axes, at, (cell_w, row_h - 0.06), _fitting(values[column], cell_w - 0.04), kind, dy=0.27 if y is not None else 0.5)
            if y is not None:
                colour = style.COLOURS[kind]
                style.write(axes, at[0] + cell_w / 2, at_y + 0.32, _fitting(y, cell_w - 0.05), on=colour, ha="center", bold=True)
    start = left + frame.columns[0] * cell_w
    outline = {"fill": False, "linewidth": 2.6, "edgecolor": style.INK, "zorder": 5}
    axes.add_patch(Rectangle((start, top + frame.row * row_h), frame.block * cell_w, row_h - 0.06, **outline))


def _draw_lanes(axes: Axes, frame: Frame, left: float, top: float, cell_w: float, lane_h: float, lane_rows: int) -> None:
    held = {"sum": "x", "squares": "x", "deviation": "x - mean", "normalise": "y"}[frame.phase]
    added = {"sum": "adds x", "squares": "adds x^2", "deviation": "squared", "normalise": ""}[frame.phase]
    wrong = frame.phase == "deviation" and not frame.mask_deviation
    style.write(
        axes, 0.2, top - 0.2, f"the {frame.block} lanes of this block: sweep to {SWEEPS[frame.kind][frame.phase]}", colour=style.QUIET
    )
    rows = [(held, frame.lanes), (added, frame.added), ("sum so far", frame.accumulator)][:lane_rows]
    for r, (name, values) in enumerate(rows):
        style.write(axes, left - 0.08, top + (r + 0.46) * lane_h, name, ha="right")
        for lane, value in enumerate(values):
            off = frame.masked[lane]
            kind = ("fault" if wrong and value else "masked") if off and r < 2 else "active" if r < 2 else "waiting"
            label = "off" if off and frame.phase == "normalise" else _fitting(value, cell_w - 0.04)
            at = (left + lane * cell_w, top + r * lane_h)
            style.cell(axes, at, (cell_w, lane_h - 0.04), label, kind, heavy=kind == "fault")
    if frame.running is not None:
        x = left + frame.block * cell_w + 0.1
        below = x > style.WIDTH - 1.2
        at = (left, top + 3 * lane_h + 0.1) if below else (x, top + 2.46 * lane_h)
        style.write(axes, *at, f"together {format_decimal(frame.running)}", bold=True)


def _draw_table(axes: Axes, frame: Frame, top: float) -> None:
    layer = frame.kind == "layer_norm"
    names = ["row", *(["sum", "mean"] if layer else []), "sum of sq." if not layer else "sq. dev.", "variance" if layer else "mean sq."]
    names += ["rms" if not layer else "std", "rstd", "state"]
    right = layer and not frame.mask_deviation
    if right:
        names.insert(-1, "right var.")
    step = (style.WIDTH - 0.4 - 0.95) / (len(names) - 1)
    edges = [0.2 + 0.3] + [0.2 + 0.3 + (i + 1) * step for i in range(len(names) - 2)] + [style.WIDTH - 0.25]
    line = 0.3
    for x, name in zip(edges, names, strict=True):
        style.write(axes, x, top + 0.1, name, ha="right", colour=style.QUIET)
    axes.plot([0.2, style.WIDTH - 0.2], [top + 0.2, top + 0.2], color=style.GRID, linewidth=1.0, marker="")
    for r, row in enumerate(frame.rows):
        values: list[Any] = [str(r), *([row.total, row.mean] if layer else []), row.squares, row.spread]
        values += [None if row.spread is None else math.sqrt(row.spread), row.rstd]  # the true rms: where eps matters, not 1 / rstd
        if right:
            values.append(_variance(frame.x[r]) if row.spread is not None else None)
        at_y = top + 0.2 + (r + 0.5) * line
        if r == frame.row:
            band = {"facecolor": style.COLOURS["active"], "alpha": 0.25, "zorder": 0, "linewidth": 0}
            axes.add_patch(Rectangle((0.2, top + 0.2 + r * line + 0.02), style.WIDTH - 0.4, line - 0.04, **band))
        wrong = right and row.spread is not None and not math.isclose(row.spread, _variance(frame.x[r]), rel_tol=1e-9, abs_tol=1e-12)
        if wrong:
            style.cell(axes, (edges[names.index("variance")] - 0.65, at_y - 0.12), (0.7, 0.24), "", "fault", heavy=True)
        for x, name, value in zip(edges, names, values, strict=False):
            on = style.COLOURS["fault"] if wrong and name == "variance" else style.PANEL
            style.write(
                axes,
                x,
                at_y,
                value if isinstance(value, str) else format_decimal(value, 3),
                on=on,
                ha="right",
                bold=r == frame.row,
                halo=on != style.PANEL,
            )
        style.write(axes, edges[-1], at_y, row.status, ha="right", bold=r == frame.row)


def block_stepper(kind: str = "rms_norm", x: ArrayLike | None = None, block: int = 4) -> LiveStepper:
    """Step a blocked norm kernel through its sweeps: lanes, masks, accumulators and the statistics of each row.

    Args:
        kind: "layer_norm" or "rms_norm".
        x: shape (M, N) with at most 6 rows and 16 columns; None takes the 3 x 8 worked example.
        block: 2, 4, 8 or 16.

    In the widget the reader can also type rows, take random ones, and change eps.

    Raises: CourseError if an argument is outside those.
    """
    if block not in BLOCKS:
        raise CourseError(f"the block stepper shows BLOCK from {BLOCKS}; you asked for {block}.")
    given = np.asarray(EXAMPLE if x is None else x, dtype=np.float64)
    _checked(given, block, kind, 1e-5, None, None)
    _check_room(given.shape)
    first = "worked example" if x is None else "yours"
    controls = {
        "kind": ipywidgets.Dropdown(
            options=[(label, key) for key, label in KINDS.items()], value=kind, description="norm", layout=wide(170)
        ),
        "data": ipywidgets.Dropdown(options=[first, TYPED, "random, mean 0", "random, mean 3"], description="x", layout=wide(180)),
        "typed": ipywidgets.Text(
            "; ".join(" ".join(f"{value:g}" for value in row) for row in given[:2]),
            description="rows",
            placeholder="numbers, with ; between rows",
            continuous_update=False,
            layout=wide(420),
        ),
        "rows": ipywidgets.IntSlider(given.shape[0], 1, MAX_ROWS, description="rows M", layout=wide(230)),
        "columns": ipywidgets.IntSlider(given.shape[1], 1, MAX_COLUMNS, description="columns N", layout=wide(250)),
        "block": ipywidgets.Dropdown(options=BLOCKS, value=block, description="BLOCK", layout=wide(130)),
        "eps": ipywidgets.Dropdown(options=[(f"{eps:g}", eps) for eps in EPS], value=1e-5, description="eps", layout=wide(120)),
        "mask_deviation": ipywidgets.Checkbox(True, description="mask the deviation", indent=False, layout=wide(170)),
    }

    def arrange(controls: Mapping[str, Any]) -> None:
        data = controls["data"].value
        controls["mask_deviation"].disabled = controls["kind"].value != "layer_norm"
        controls["typed"].layout.display = None if data == TYPED else "none"
        fixed = {first: given.shape, TYPED: None}.get(data, ())
        for control in (controls["rows"], controls["columns"]):
            control.disabled = fixed != ()
        if data == TYPED:
            fixed = parsed(controls["typed"].value).shape
        for name, size in zip(("rows", "columns"), fixed, strict=False):
            controls[name].value = size

    def frames(kind: str, data: str, typed: str, rows: int, columns: int, block: int, eps: float, mask_deviation: bool) -> list[Frame]:
        if data in (first, TYPED):
            values = given if data == first else parsed(typed)
        else:
            values = _random(rows, columns, mean=3.0 if data.endswith("3") else 0.0)
        return steps(values, block, kind, eps, mask_deviation=mask_deviation)

    return LiveStepper(frames, draw, controls, arrange=arrange, still=_telling)


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
    _check_room((len(rows), lengths[0]))
    return np.array(values)


def _typed_number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise CourseError(f"{word!r} is not a number. Type for example `2 -1 3 .5; 4 -3 2.5 1`.") from None
    if not math.isfinite(value) or abs(value) >= 1e6:
        raise CourseError(f"{word} cannot be drawn: the block stepper takes numbers between -1e6 and 1e6.")
    return value


def _check_room(shape: tuple[int, ...]) -> None:
    if shape[0] > MAX_ROWS or shape[1] > MAX_COLUMNS:
        raise CourseError(f"the block stepper shows up to {MAX_ROWS} rows and {MAX_COLUMNS} columns; this x has shape {shape}.")


def _telling(frames: Sequence[Frame]) -> int:
    """The frame in which row 0 gets its variance or mean square."""
    return next(i for i, frame in enumerate(frames) if frame.phase in ("squares", "deviation") and frame.last_block)


def _random(rows: int, columns: int, mean: float) -> np.ndarray:
    draws = np.random.default_rng(0).normal(mean, 1.5, size=(MAX_ROWS, MAX_COLUMNS))
    return np.round(draws[:rows, :columns] * 2) / 2  # halves: sums you can check in your head


def _is_wrong(frame: Frame) -> bool:
    spread = frame.rows[frame.row].spread
    return (
        frame.right_spread is not None and spread is not None and not math.isclose(spread, frame.right_spread, rel_tol=1e-9, abs_tol=1e-12)
    )


def _variance(values: tuple[float, ...]) -> float:
    return float(np.var(values))


def _columns(frame: Frame) -> str:
    inside = [column for column, off in zip(frame.columns, frame.masked, strict=True) if not off]
    return f"column {inside[0]}" if len(inside) == 1 else f"columns {inside[0]} to {inside[-1]}"


def _fitting(value: float, width: float) -> str:
    """``value`` with as many decimals, two at most, as a cell of ``width`` inches holds."""
    texts = [format_decimal(value, places) for places in (2, 1, 0)]
    return next((text for text in texts if style.text_width(text) <= width), texts[-1])


def _s(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
